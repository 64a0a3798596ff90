"""Controllers in torque mode and their gains: PID, PID with feed-forward, computed torque (PA-10 (21))."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.control.control_model import ControlError, ControlModel
from armid.control.reference import Reference
from armid.dynamics.model import Motion
from armid.errors import UnknownNameError
from armid.experiment.drive import State
from armid.files import plain

MISMATCH = 0.05  # share of the friction that a model is expected to get wrong
TOLERANCE = np.radians(0.05)  # error that this may cause, and four standard deviations of what noise causes [rad]
PEAK = 4.0  # standard deviations that noise hardly ever passes
LOWEST_HZ = 3.0
CYCLES = 4.0  # cycles that a controller's time constant 1 / w spans at least
SMOOTH = 2.0  # cycles of the time constant of the low-pass on measured errors of velocity


@dataclass(frozen=True, eq=False)
class Gains:
    """What all controllers of a comparison have in common.

    The error of an ideally compensated joint obeys e'' + 2 w e' + w^2 e = 0 (double pole at w); a controller without
    a model gets the same loop from a constant inertia J: Kp = J w^2, Kd = 2 J w. The error of velocity e' passes a
    low-pass with a time constant of two cycles: behind a gear that gives way, fast changes move the motor alone, whose
    inertia is far below J, and a sampled loop would swing it up.

    Attributes:
        omega: w per joint [rad/s].
        inertia: J per joint, mean of the mass matrix's diagonal along the motion [kg m^2].
        rule: how `omega` was chosen, in words.
    """

    omega: Array
    inertia: Array
    rule: str

    @property
    def bandwidth_hz(self) -> Array:
        """Bandwidth w / (2 pi) per joint [Hz]."""
        return self.omega / (2.0 * np.pi)

    @property
    def kp(self) -> Array:
        """K_P = w^2 of PA-10 (21) per joint [1/s^2]."""
        return self.omega**2

    @property
    def kv(self) -> Array:
        """K_V = 2 w of PA-10 (21) per joint [1/s]."""
        return 2.0 * self.omega

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {name: plain(getattr(self, name)) for name in ("bandwidth_hz", "kp", "kv", "inertia", "rule")}


def choose_gains(
    model: ControlModel,
    motion: Motion,
    cycle_s: float,
    *,
    bandwidth_hz: ArrayLike | None = None,
    noise: ArrayLike | None = None,
) -> Gains:
    """Gains for a motion.

    Without `bandwidth_hz` they are graded: a torque error d leaves a position error d / (J w^2), and white torque noise
    of standard deviation s per cycle T one of s sqrt(T / (4 w^3)) / J, so that a joint with little inertia needs a
    higher w. Taken is the w at which neither 5 % of the joint's largest friction along the motion nor four standard
    deviations of the noise's effect cause more than 0.05°, but at least 3 Hz and at most 1 / (4 T), which a sampled
    loop bears.

    Args:
        model: what is known of the arm, usually the identified model.
        motion: reference motion.
        cycle_s: of the controller [s].
        bandwidth_hz: one number for all joints, or one for each.
        noise: standard deviation of the drives' torque per joint [N m]; None if unknown.

    Raises:
        ControlError: a bandwidth is not positive, or too high for the cycle.
    """
    joints = motion.q.shape[1]
    step = max(1, len(motion.q) // 200)
    mass = model.mass_matrix(np.ascontiguousarray(motion.q[::step]))
    inertia = np.diagonal(mass, axis1=1, axis2=2).mean(axis=0)
    highest = 1.0 / (CYCLES * cycle_s)
    if bandwidth_hz is not None:
        given = np.asarray(bandwidth_hz, dtype=float)
        if given.shape not in ((), (1,), (joints,)):
            raise ControlError(f"bandwidth has {given.size} values; give one, or one for each of the {joints} joints")
        omega = np.broadcast_to(2.0 * np.pi * given, (joints,)).copy()
        if not np.all((omega > 0.0) & (omega <= highest)):
            raise ControlError(
                f"bandwidth {np.max(given):g} Hz: must be above zero and, for a cycle of {1e3 * cycle_s:g} ms, at most "
                f"{highest / (2.0 * np.pi):.3g} Hz"
            )
        return Gains(omega, inertia, "bandwidth as given")
    friction = np.abs(_friction(model, motion)).max(axis=0)
    wanted = np.sqrt(MISMATCH * friction / (inertia * TOLERANCE))
    if noise is not None:
        sigma = np.broadcast_to(np.asarray(noise, dtype=float), (joints,))
        wanted = np.maximum(wanted, np.cbrt(0.25 * cycle_s * (PEAK * sigma / (inertia * TOLERANCE)) ** 2))
    omega = np.clip(wanted, 2.0 * np.pi * LOWEST_HZ, highest)
    causes = f"{100 * MISMATCH:g} % of the friction" + ("" if noise is None else " or the noise")
    rule = f"graded: {causes} causes {np.degrees(TOLERANCE):g}°, within "
    return Gains(omega, inertia, rule + f"{LOWEST_HZ:g} and {highest / (2.0 * np.pi):.3g} Hz")


def _friction(model: ControlModel, motion: Motion) -> Array:
    """The part of the rest that changes with velocity (samples, joints)."""
    still = Motion(motion.q, np.zeros_like(motion.q), np.zeros_like(motion.q))
    return model.rest(motion) - model.rest(still)


INTEGRAL = 0.25  # rate of the integral action over the bandwidth
SOURCES = ("reference", "measurement")

#: Torque to command and the part of it that is feedback, each (joints,) [N m], for the reference's row and the state.
Law = Callable[[int, State], tuple[Array, Array]]


class Controller(ABC):
    """A control law; `begin` makes the function that is called once per cycle."""

    name: ClassVar[str]

    @property
    def title(self) -> str:
        """In words."""
        return self.name

    @abstractmethod
    def begin(self, reference: Reference, gains: Gains, holding: Array) -> Law:
        """The law for one run.

        Args:
            reference: what is to be followed.
            gains: bandwidths.
            holding: torque with which the arm stands at the start, as its drives report it [N m].
        """


@dataclass(frozen=True, kw_only=True)
class PID(Controller):
    """Independent joints: u = J (w^2 e + 2 w e' + integral w^3 times the integral of e).

    The integral starts with the torque that holds the arm, as it would have if the controller had been on before.

    Attributes:
        integral: rate of the integral action over the bandwidth; at 0.25 it hardly changes the loop's speed.
    """

    name: ClassVar[str] = "pid"
    integral: float = INTEGRAL

    @property
    def title(self) -> str:
        """In words."""
        return "PID"

    def begin(self, reference: Reference, gains: Gains, holding: Array) -> Law:
        """The law for one run."""
        return _pid(reference, gains, self.integral, holding, np.zeros_like(reference.motion.q))


@dataclass(frozen=True, kw_only=True)
class FeedForward(Controller):
    """PID, to which the model's torque for the reference motion is added; its integral starts with zero.

    Attributes:
        model: what is known of the arm.
        integral: as in `PID`.
    """

    name: ClassVar[str] = "feedforward"
    model: ControlModel
    integral: float = INTEGRAL

    @property
    def title(self) -> str:
        """In words."""
        return f"PID + feed-forward, {self.model.title}"

    def begin(self, reference: Reference, gains: Gains, holding: Array) -> Law:
        """The law for one run; the model's torque is computed beforehand."""
        return _pid(reference, gains, self.integral, np.zeros_like(holding), self.model.torque(reference.motion))


@dataclass(frozen=True, kw_only=True)
class ComputedTorque(Controller):
    """Inverse dynamics, PA-10 (21) with C(q, qd) qd (erratum PA-7).

    u = M(q) (qdd_d + K_V (qd_d - qd) + K_P (q_d - q)) + C(q, qd) qd + G(q) + F + S. Friction F and load loss S act on
    the joint side (PA-11). They are those of the reference motion: with measured velocities the friction of a joint
    that stands still would follow the sign of the noise. The feedback part is M (K_V e' + K_P e).

    Attributes:
        model: what is known of the arm.
        rest: motion that F and S are computed for, ``reference`` or ``measurement``.
    """

    name: ClassVar[str] = "computed-torque"
    model: ControlModel
    rest: str = "reference"

    def __post_init__(self) -> None:
        """Check the options."""
        if self.rest not in SOURCES:
            raise UnknownNameError("rest", self.rest, SOURCES)

    @property
    def title(self) -> str:
        """In words."""
        return f"computed torque, {self.model.title}"

    def begin(self, reference: Reference, gains: Gains, holding: Array) -> Law:
        """The law for one run."""
        model, rigid = self.model, self.model.rigid
        kp, kv = gains.kp, gains.kv
        q_d, qd_d, qdd_d = reference.motion
        rest = model.rest(reference.motion) if self.rest == "reference" else None
        rigid(q_d[0], qd_d[0], qdd_d[0])  # compiled now rather than in the first cycle
        smooth = _smoothed(q_d.shape[1])

        def law(row: int, state: State) -> tuple[Array, Array]:
            q, qd = state.position, state.velocity
            correction = kv * smooth(qd_d[row] - qd) + kp * (q_d[row] - q)
            planned = rigid(q, qd, qdd_d[row])
            torque = rigid(q, qd, qdd_d[row] + correction)
            feedback = torque - planned
            if rest is not None:
                return torque + rest[row], feedback
            now = Motion(q[None], qd[None], qdd_d[row : row + 1])
            return torque + model.rest(now)[0], feedback

        return law


def _pid(reference: Reference, gains: Gains, rate: float, start: Array, known: Array) -> Law:
    """PID of independent joints beside a `known` torque; the integral is kept in torque and starts with `start`."""
    q_d, qd_d, _ = reference.motion
    kp, kd = gains.inertia * gains.kp, gains.inertia * gains.kv
    step = rate * gains.omega * kp * reference.cycle_s
    stored, smooth = np.array(start, dtype=float), _smoothed(len(start))

    def law(row: int, state: State) -> tuple[Array, Array]:
        error = q_d[row] - state.position
        stored[:] += step * error
        feedback = kp * error + kd * smooth(qd_d[row] - state.velocity) + stored
        return known[row] + feedback, feedback

    return law


def _smoothed(joints: int) -> Callable[[Array], Array]:
    """Low-pass of first order, called once per cycle."""
    last, share = np.zeros(joints), -np.expm1(-1.0 / SMOOTH)

    def smooth(error: Array) -> Array:
        last[:] += share * (error - last)
        return last

    return smooth
