"""Gains from a bandwidth: the same closed loop for every controller, stiffer where inertia is small for friction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.control.control_model import ControlModel
from armid.control.problems import ControlError
from armid.dynamics.model import Motion

MISMATCH = 0.05  # share of the friction that a model is expected to get wrong
TOLERANCE = np.radians(0.05)  # error that this may cause, and four standard deviations of what noise causes [rad]
PEAK = 4.0  # standard deviations that noise hardly ever passes
LOWEST_HZ = 3.0
CYCLES = 4.0  # cycles that a controller's time constant 1 / w spans at least


@dataclass(frozen=True, eq=False)
class Gains:
    """What all controllers of a comparison have in common.

    The error of an ideally compensated joint obeys e'' + 2 w e' + w^2 e = 0 (double pole at w); a controller without
    a model gets the same loop from a constant inertia J: Kp = J w^2, Kd = 2 J w.

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
        return {
            "bandwidth_hz": self.bandwidth_hz.tolist(),
            "kp": self.kp.tolist(),
            "kv": self.kv.tolist(),
            "inertia": self.inertia.tolist(),
            "rule": self.rule,
        }


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
