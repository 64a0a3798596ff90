"""What an exporter is: one format, the files it makes of an arm, what it cannot hold, and how a file is proved.

Another package adds a format by a subclass of `Exporter` under an entry point in the group ``armid.exporters``, a
program by the decorator ``@exporters.add("name")``; it then works in `armid.export` and on the command line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.exporting import arm as causes
from armid.exporting.arm import ExportError, IdentifiedArm, LinearFriction
from armid.monitoring.detector import ContactLimits, Detector
from armid.monitoring.observer import Observer
from armid.notes import Note
from armid.registry import Registry
from armid.robot.robot import Robot

TOLERANCE, TIGHT = 1e-9, 1e-10  # of the range of torque; the second for programs
ROUND_OFF = 2e-14  # of the sum of absolute terms that cancel: 90 times the precision of a double
OBSERVED_S = 0.004  # [s] between the states as the observer takes them, with accelerations in place of torques
LIMIT = "limit of contacts"
_SMALLEST = 1e-3  # ranges of torque below this share of the largest count as that much

#: Causes of torque that a format may lack, in words.
CAUSES: Mapping[str, str] = {
    causes.ROTORS: "rotor inertia",
    causes.ROTOR_COUPLING: "coupling of rotors with the links they sit on",
    causes.MOTOR_INERTIA: "rotor inertia of motors that move several joints",
    causes.MOTOR_FRICTION: "friction of motors that move several joints",
    causes.OFFSET: "constant torque (offset of friction or sensor)",
    causes.SPRINGS: "springs",
    causes.COUNTERBALANCE: "counterbalance tables",
    causes.LOAD_LOSS: "loss in proportion to the load",
}


class ProofError(ExportError):
    """A written file does not give the fit's torque; nothing was kept of it."""


@dataclass(frozen=True)
class Proof:
    """The comparison of one file with the fit.

    Attributes:
        file: name of the file.
        against: program that read it; None if there was none.
        error: largest difference of torque over the range of that joint's torque; None if not proved.
        states: how many random states.
        tolerance: what would have been too much there: fixed, or more where large terms cancel (see `checked`).
        note: what was compared, or why not.
    """

    file: str
    against: str | None
    error: float | None
    states: int
    tolerance: float
    note: str


def relative_error(found: Array, wanted: Array) -> float:
    """Largest difference over the range of each column; ranges below 1e-3 of the largest count as that much."""
    return float(_column_errors(found, wanted).max())


def _column_errors(found: Array, wanted: Array) -> Array:
    return np.where(np.isfinite(found).all(), np.abs(found - wanted).max(axis=0) / _ranges(wanted), np.inf)


def _ranges(wanted: Array) -> Array:
    span = np.ptp(wanted, axis=0)
    result: Array = np.maximum(span, max(_SMALLEST * float(span.max(initial=0.0)), 1e-12))
    return result


def checked(
    path: Path,
    against: str,
    pairs: dict[str, tuple[Array, Array]],
    tolerance: float,
    note: str,
    terms: Mapping[str, Array] | None = None,
) -> Proof:
    """A proof from what was found and wanted, by name; raises if it fails.

    A double holds 16 digits of each term of a sum. Where terms are much larger than what is left of them, as with
    parameters that the data hardly determine, two right programs differ by more: up to `ROUND_OFF` of the sum of the
    terms' sizes, which is allowed where it exceeds the tolerance.

    Args:
        path: the file.
        against: who read it.
        pairs: found and wanted (states, columns), by name.
        tolerance: largest difference, as a share of each column's range.
        note: what was compared.
        terms: by the same names, largest sum (columns,) of the absolute terms that make up each column.
    """
    largest, allowed = -1.0, tolerance
    for name, (found, wanted) in pairs.items():
        errors, limits = _column_errors(found, wanted), np.full(wanted.shape[1], tolerance)
        if terms is not None and name in terms:
            limits = np.maximum(limits, ROUND_OFF * terms[name] / _ranges(wanted))
        worst = int(np.argmax(errors / limits))
        if not errors[worst] <= limits[worst]:
            raise ProofError(
                f"{path.name}: was not kept, because {against} finds another {name} in it than the fit has (by "
                f"{errors[worst]:.2g} of its range, {limits[worst]:.2g} allowed); please report this"
            )
        at = int(np.argmax(errors))
        if errors[at] > largest:
            largest, allowed = float(errors[at]), float(limits[at])
    return Proof(path.name, against, largest, len(next(iter(pairs.values()))[0]), allowed, note)


@dataclass(frozen=True, eq=False)
class Content:
    """Bytes of a file, what to know about it, and names of other files it needs; unproved if only needed."""

    content: bytes
    notes: tuple[Note, ...] = ()
    needs: tuple[str, ...] = ()
    proved: bool = True


@dataclass(frozen=True, eq=False)
class Job:
    """What all formats of one export share.

    Attributes:
        arm: what is exported.
        motion: random states at which files are proved.
        friction: nearest viscous and Coulomb friction.
        banner: sentences for the first comment of a file.
        urdf, mjcf: the robot's own files; None without.
        formats: names of all formats that are wanted.
        limits: of contacts, for programs; None without.
    """

    arm: IdentifiedArm
    motion: Motion
    friction: LinearFriction
    banner: list[str] = field(default_factory=list)
    urdf: Path | None = None
    mjcf: Path | None = None
    formats: tuple[str, ...] = ()
    limits: ContactLimits | None = None

    @cached_property
    def parts(self) -> dict[str, Array]:
        """Torque (samples, joints) by cause."""
        return self.arm.parts(self.motion)

    @cached_property
    def torque(self) -> Array:
        """Torque (samples, joints) of all causes."""
        result: Array = np.sum(list(self.parts.values()), axis=0)
        return result

    @cached_property
    def sizes(self) -> dict[str, Array]:
        """Sums of absolute terms, by which round-off is judged.

        The observer takes differences of two momenta, and each joint's Coriolis torque holds what all of them move.
        """
        found, n = self.arm.sizes(self.motion), self.arm.robot.n_joints
        momentum = found["mass matrix"].reshape(n, n) @ np.abs(self.motion.qd).max(axis=0)
        external = found["torque"] + 2.0 * momentum / OBSERVED_S
        return {**found, "external torque": np.full(n, external.max())}

    def quantities(self, torque: Array) -> dict[str, Array]:
        """What a program must give beside the torque, by armid's own dynamics."""
        arm, q, zero = self.arm, self.motion.q, np.zeros_like(self.motion.q)
        friction = (causes.JOINT_FRICTION, causes.MOTOR_FRICTION, causes.OFFSET, causes.LOAD_LOSS)
        springs = (causes.SPRINGS, causes.COUNTERBALANCE)
        friction_torque, spring_torque = (
            sum((self.parts.get(cause, zero) for cause in group), zero) for group in (friction, springs)
        )
        steps = np.full(len(q), OBSERVED_S)
        limit = {} if self.limits is None else {LIMIT: Detector(arm.fit, self.limits).run(steps, *self.motion).limit}
        return limit | {
            "torque": torque,
            "gravity": arm.model.gravity_torque(q, arm.values),
            "friction": friction_torque,
            "springs": spring_torque,
            "mass matrix": arm.model.mass_matrix(q, arm.values).reshape(len(q), -1),
            "external torque": Observer(arm.fit).run(steps, *self.motion).torque,
        }


class Exporter(ABC):
    """One format.

    Attributes:
        title: what it writes, for help.
        links: whether it can only write physically consistent links (method ``feasible``).
        linear: whether it has no friction but viscous and Coulomb friction.
    """

    title: ClassVar[str] = ""
    links: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    @abstractmethod
    def files(self, job: Job) -> dict[str, Content]:
        """The files, by name; those it only needs beside its own are not proved."""

    def holds(self, arm: IdentifiedArm) -> str:
        """What a file holds of an arm, in words; nothing that the arm has not."""
        return self.title

    def causes(self, arm: IdentifiedArm) -> tuple[str, ...]:
        """Those of `CAUSES` whose torque a file holds."""
        return tuple(CAUSES)

    def friction(self, job: Job) -> Array:
        """Friction (samples, joints) that a file gives: viscous and Coulomb friction, or all of it."""
        whole = job.parts.get(causes.JOINT_FRICTION, np.zeros_like(job.motion.q))
        return job.friction.torque(job.motion.qd) if self.linear else whole

    def reads(self, robot: Robot) -> str:
        """Which of the robot's own files is read: ``urdf``, ``mjcf`` or none."""
        return ""

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Compare a file with the fit's torque (samples, joints) at the states, less what it cannot hold.

        Raises:
            ProofError: they differ.
        """
        return Proof(path.name, None, None, 0, 0.0, "not proved: this format has no proof")


class Program(Exporter):
    """A format that computes everything but delays."""

    def holds(self, arm: IdentifiedArm) -> str:
        """In words."""
        springs = ", springs" if arm.robot.springs or arm.robot.linear_springs or arm.robot.counterbalances else ""
        delays = ", everything but delays" if np.any(arm.fit.delay_s) else ""
        return (
            f"inverse dynamics, gravity compensation, feed-forward, friction{springs}, mass matrix and momentum "
            f"observer{delays}"
        )

    def compared(self, path: Path, against: str, found: Mapping[str, Array], job: Job, torque: Array) -> Proof:
        """Proof of all that a program computes; a spring that the arm has not is not worth a word."""
        wanted = job.quantities(torque)
        note = ", ".join(name for name, values in wanted.items() if np.any(values))
        pairs = {name: (found[name], wanted[name]) for name in found}
        return checked(path, against, pairs, TIGHT, note, job.sizes)


exporters: Registry[type[Exporter]] = Registry("format", "armid.exporters", "armid.exporting")


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Torque that a format cannot hold.

    Attributes:
        what: in words.
        rms: root mean square per joint on the random states [N m]; None for what is no torque.
        largest: largest torque per joint.
        units: of each joint's torque.
        share: of the whole torque there, root mean square.
        note: more words.
        torque: (samples, joints).
    """

    what: str
    rms: Array | None = None
    largest: Array | None = None
    units: tuple[str, ...] | None = None
    share: Array | None = None
    note: str = ""
    torque: Array | None = field(default=None, repr=False)

    def sentence(self) -> str:
        """One line for people: the joint that suffers most."""
        if self.rms is None or self.share is None or self.units is None:
            return f"{self.what}: {self.note}"
        worst = int(np.argmax(self.share))
        share = self.share[worst]
        percent = f"{100.0 * share:.2g}" if share < 0.1 else f"{100.0 * share:.0f}"
        size = f"{self.rms[worst]:.3g} {self.units[worst]} rms, {percent} % of the torque, at joint {worst + 1}"
        return f"{self.what}: up to {size}" + (f" ({self.note})" if self.note else "")


def left_out(exporter: Exporter, job: Job) -> list[LeftOut]:
    """What a format cannot hold of an arm."""
    arm, total = job.arm, job.torque
    units = tuple("N" if joint.prismatic else "N m" for joint in arm.robot.joints)

    def row(what: str, torque: Array, note: str = "") -> LeftOut:
        rms, whole = (np.sqrt(np.mean(array**2, axis=0)) for array in (torque, total))
        return LeftOut(what, rms, np.abs(torque).max(axis=0), units, rms / np.maximum(whole, 1e-12), note, torque)

    rows = []
    rest = job.parts.get(causes.JOINT_FRICTION, np.zeros_like(total)) - exporter.friction(job)
    rest = np.where(np.abs(rest) <= 1e-12 * max(float(np.abs(total).max()), 1e-12), 0.0, rest)
    if rest.any():
        names = [
            f"joint {joint + 1}: {', '.join(arm.curve_words(int(joint)) or ['negative coefficients'])}"
            for joint in np.flatnonzero(np.any(rest, axis=0))
        ]
        note = f"{'; '.join(names)}; the nearest viscous and Coulomb friction is kept"
        rows.append(row("friction beyond viscous and Coulomb friction", rest, note))
    lost = [cause for cause in CAUSES if cause in job.parts and cause not in exporter.causes(arm)]
    rows += [row(CAUSES[cause], job.parts[cause]) for cause in lost]
    if np.any(delays := arm.fit.delay_s):
        text = "torque lags motion by " + " ".join(f"{1e3 * delay:.3g}" for delay in delays) + " ms, joint by joint"
        rows.append(LeftOut("delay of the torque", note=text))
    if (lags := arm.fit.friction_lag_s) is not None and np.any(lags):
        text = "friction changes sides " + " ".join(f"{1e3 * lag:.3g}" for lag in lags) + " ms after the motion"
        rows.append(LeftOut("lag of friction", note=text))
    return rows
