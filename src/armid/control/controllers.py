"""Controllers in torque mode: PID, PID with feed-forward, computed torque (PA-10 (21)). Interchangeable objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.control.control_model import ControlModel
from armid.control.gains import Gains
from armid.control.reference import Reference
from armid.dynamics.model import Motion
from armid.errors import UnknownNameError
from armid.experiment.drive import State

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
        feedback = _pid(reference, gains, self.integral, holding)

        def law(row: int, state: State) -> tuple[Array, Array]:
            torque = feedback(row, state)
            return torque, torque

        return law


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
        known = self.model.torque(reference.motion)
        feedback = _pid(reference, gains, self.integral, np.zeros_like(holding))

        def law(row: int, state: State) -> tuple[Array, Array]:
            correction = feedback(row, state)
            return known[row] + correction, correction

        return law


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

        def law(row: int, state: State) -> tuple[Array, Array]:
            q, qd = state.position, state.velocity
            correction = kv * (qd_d[row] - qd) + kp * (q_d[row] - q)
            planned = rigid(q, qd, qdd_d[row])
            torque = rigid(q, qd, qdd_d[row] + correction)
            feedback = torque - planned
            if rest is not None:
                return torque + rest[row], feedback
            now = Motion(q[None], qd[None], qdd_d[row : row + 1])
            return torque + model.rest(now)[0], feedback

        return law


def _pid(reference: Reference, gains: Gains, rate: float, start: Array) -> Callable[[int, State], Array]:
    """PID of independent joints; the integral is kept in torque and starts with `start`."""
    q_d, qd_d, _ = reference.motion
    kp, kd = gains.inertia * gains.kp, gains.inertia * gains.kv
    step = rate * gains.omega * kp * reference.cycle_s
    stored = np.array(start, dtype=float)

    def feedback(row: int, state: State) -> Array:
        error = q_d[row] - state.position
        stored[:] += step * error
        return kp * error + kd * (qd_d[row] - state.velocity) + stored

    return feedback
