"""What each format holds of an arm, and how much torque it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.exporting import arm as causes
from armid.exporting.arm import Arm
from armid.exporting.friction import LinearFriction
from armid.exporting.mjcf import springs_held

FORMATS = ("urdf", "mjcf", "c", "python", "yaml")
_WORDS = {
    causes.ROTORS: "rotor inertia",
    causes.ROTOR_COUPLING: "coupling of rotors with the links they sit on",
    causes.MOTOR_INERTIA: "rotor inertia of motors that move several joints",
    causes.MOTOR_FRICTION: "friction of motors that move several joints",
    causes.OFFSET: "constant torque (offset of friction or sensor)",
    causes.SPRINGS: "springs",
    causes.COUNTERBALANCE: "counterbalance tables",
    causes.LOAD_LOSS: "loss in proportion to the load",
}


@dataclass(frozen=True, eq=False)
class Lost:
    """Torque that a format cannot hold.

    Attributes:
        what: in words.
        torque: (samples, joints) on the random states [N m]; None for what is no torque.
        total: the whole torque there.
        note: more words.
        units: of each joint's torque.
    """

    what: str
    torque: Array | None
    total: Array
    note: str = ""
    units: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """For JSON: root mean square and largest torque per joint, and its share of the whole torque."""
        if self.torque is None:
            return {"what": self.what, "rms": None, "largest": None, "units": None, "share": None, "note": self.note}
        return {
            "what": self.what,
            "rms": np.sqrt(np.mean(self.torque**2, axis=0)).tolist(),
            "largest": np.abs(self.torque).max(axis=0).tolist(),
            "units": list(self.units),
            "share": (np.sqrt(np.mean(self.torque**2, axis=0)) / self._scale).tolist(),
            "note": self.note,
        }

    @property
    def _scale(self) -> Array:
        return np.maximum(np.sqrt(np.mean(self.total**2, axis=0)), 1e-12)

    def sentence(self) -> str:
        """One line for people: the joint that suffers most."""
        if self.torque is None:
            return f"{self.what}: {self.note}"
        rms = np.sqrt(np.mean(self.torque**2, axis=0))
        worst = int(np.argmax(rms / self._scale))
        share = rms[worst] / self._scale[worst]
        percent = f"{100.0 * share:.2g}" if share < 0.1 else f"{100.0 * share:.0f}"
        size = f"{rms[worst]:.3g} {self.units[worst]} rms, {percent} % of the torque, at joint {worst + 1}"
        return f"{self.what}: up to {size}" + (f" ({self.note})" if self.note else "")


def holds(arm: Arm, form: str) -> str:
    """What a format holds of an arm, in words; nothing that the arm has not."""
    robot = arm.robot
    if form == "urdf":
        return "mass, centre of mass and inertia of the links; damping and friction of the joints"
    if form == "mjcf":
        springs = "springs as tendons, " if robot.springs and springs_held(arm) else ""
        return f"links, joints with ranges, gravity, armature, damping, frictionloss, {springs}motors"
    if form == "yaml":
        return "the description, all values as its published set `identified`, and the identified arm for simulation"
    springs = ", springs" if robot.springs or robot.counterbalances else ""
    delays = ", everything but delays" if np.any(arm.fit.delay_s) else ""
    return f"inverse dynamics, gravity, friction{springs} and mass matrix{delays}"


def left_out(arm: Arm, form: str, friction: LinearFriction, motion: Motion) -> list[Lost]:
    """What a format cannot hold of an arm."""
    parts = arm.parts(motion)
    total = np.sum(list(parts.values()), axis=0)
    rows = [*_friction(arm, form, friction, motion, total)]
    for cause, torque in parts.items():
        if cause in _WORDS and not _held(arm, form, cause):
            rows.append(Lost(_WORDS[cause], torque, total, "", _units(arm)))
    delays = arm.fit.delay_s
    if np.any(delays):
        text = "torque lags motion by " + " ".join(f"{1e3 * delay:.3g}" for delay in delays) + " ms, joint by joint"
        rows.append(Lost("delay of the torque", None, total, text))
    return rows


def _units(arm: Arm) -> tuple[str, ...]:
    return tuple("N" if joint.prismatic else "N m" for joint in arm.robot.joints)


def _held(arm: Arm, form: str, cause: str) -> bool:
    held: Mapping[str, tuple[str, ...]] = {
        "urdf": (),
        "mjcf": (causes.ROTORS, causes.MOTOR_INERTIA, causes.MOTOR_FRICTION),
        "yaml": tuple(key for key in _WORDS if key != causes.LOAD_LOSS),
        "c": tuple(_WORDS),
        "python": tuple(_WORDS),
    }
    return cause in held[form] or (form == "mjcf" and cause == causes.SPRINGS and springs_held(arm))


def _friction(arm: Arm, form: str, friction: LinearFriction, motion: Motion, total: Array) -> list[Lost]:
    """Friction beyond what the format's own law can say."""
    if form in ("c", "python"):
        return []
    rest = arm.parts(motion).get(causes.JOINT_FRICTION, np.zeros_like(total)) - friction.torque(motion.qd)
    if form == "yaml":  # the description's own law may know two directions
        own = [not arm.beyond_description(joint) for joint in range(arm.robot.n_joints)]
        rest = np.where(own, 0.0, rest)
    rest = np.where(np.abs(rest) <= 1e-12 * max(float(np.abs(total).max()), 1e-12), 0.0, rest)
    if not rest.any():
        return []
    names = []
    for joint in np.flatnonzero(np.any(rest, axis=0)):
        words = arm.curve_words(int(joint)) or ["negative coefficients"]
        names.append(f"joint {joint + 1}: {', '.join(words)}")
    note = f"{'; '.join(names)}; the nearest viscous and Coulomb friction is kept"
    return [Lost("friction beyond viscous and Coulomb friction", rest, total, note, _units(arm))]
