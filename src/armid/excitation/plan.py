"""A plan: the trajectory of an experiment, how informative it is, and what it guarantees."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid._version import __version__
from armid.display import html_table, short
from armid.excitation.certificate import Binding, Certificate, Margin
from armid.excitation.criteria import Conditioning
from armid.excitation.trajectory import Trajectory
from armid.files import FieldError, Unbounded, plain, read_result, write_result
from armid.notes import Note

if TYPE_CHECKING:
    from armid.robot.robot import Robot

FORMAT = "armid plan 1"
MOST_SAMPLES = 10_000_000
#: Limits that every plan is checked for, besides those of each joint's motion; what a plan does not know it may break.
CHECKS = ("torque", "self-collision", "floor", "tool speed")
UNCHECKED = "excitation.unchecked"  # how codes of notes begin that say what was not checked


@dataclass(frozen=True, eq=False)
class Plan:
    """What `design` returns.

    Attributes:
        robot: name of the robot it is for.
        joint_names: its joints, in order.
        trajectory: the motion of one period.
        rate_hz: rate the experiment is to be sampled with.
        criterion: name of the criterion.
        value: its cost (minus log det for d-optimal, log of the condition number for condition).
        parameters: columns whose information counted.
        conditioning: figures of the information matrix.
        margins: distances to all limits; together they are the `certificate`.
        seconds: time the search took.
        options: everything needed to repeat it, the seed included; ``stopped`` where an interruption ended the search.
        notes: what was assumed for the limits, and which could not be checked.
        binding: limits that the design leans on, and what relaxing them would bring.
    """

    robot: str
    joint_names: tuple[str, ...]
    trajectory: Trajectory
    rate_hz: float
    criterion: str
    value: Unbounded
    parameters: tuple[str, ...]
    conditioning: Conditioning
    margins: tuple[Margin, ...]
    seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    binding: tuple[Binding, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no experiment can have: a file can be damaged."""
        if not 0.0 < self.rate_hz * self.trajectory.duration <= MOST_SAMPLES:
            period = f"{self.trajectory.duration:g} s"
            raise FieldError("rate_hz", f"is {self.rate_hz:g}; {period} must have 1 to {MOST_SAMPLES} samples")
        if len(self.joint_names) != self.trajectory.joints:
            moved = f"the trajectory moves {self.trajectory.joints}"
            raise FieldError("joint_names", f"holds {len(self.joint_names)} names; {moved}")

    @property
    def certificate(self) -> Certificate:
        """What the plan guarantees."""
        return Certificate(self.margins)

    @property
    def certified(self) -> bool:
        """Whether all limits that were checked are kept."""
        return self.certificate.holds

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What the plan may break, because it was not checked."""
        noted = [str(note) for note in self.notes if note.code.startswith(UNCHECKED)]
        known = {margin.quantity for margin in self.margins} | {str(note.values.get("check")) for note in self.notes}
        return (*noted, *(f"{name}: no part of this design" for name in CHECKS if name not in known))

    def __repr__(self) -> str:
        """One line."""
        limits = "limits are kept" if self.certified else "LIMITS ARE BROKEN"
        limits += f", {len(self.unchecked)} not checked" if self.unchecked else ""
        about = (f"{self.trajectory.duration:g} s", self.criterion, f"{len(self.parameters)} parameters")
        return short(self, self.robot, *about, f"condition number {self.conditioning.condition:.3g}", limits)

    def _repr_html_(self) -> str:
        """A table of the margins for notebooks."""
        rows = [(m.quantity, m.joint or "", m.text, m.guarantee) for m in self.margins]
        return html_table(self.robot, ("limit", "joint", "margin", "guarantee"), rows, [repr(self)])

    def plot(self, robot: Robot) -> Any:
        """Positions, velocities and accelerations over one period with their limits; a matplotlib figure."""
        from armid.excitation.pictures import motion_figure

        return motion_figure(self, robot)

    def summary(self) -> str:
        """A few lines for people."""
        c = self.conditioning
        lines = [
            f"{self.robot}: {self.trajectory.duration:g} s, {len(self.parameters)} parameters, {self.criterion}",
            f"condition number {c.condition:.3g} (raw {c.condition_raw:.3g}), log det {c.log_det:.2f}, "
            f"smallest singular value {c.sigma_min:.3g}",
        ]
        lines += [
            f"{m.quantity:<14} margin {m.text:>9}  "
            + (f"(joint {m.joint}; {m.guarantee})" if m.joint else f"({m.guarantee})")
            for m in self.margins
        ]
        if "stopped" in self.options:
            lines.append(f"the search was stopped {self.options['stopped']}; a longer one may find a better plan")
        lines += [f"assumed: {note}" for note in self.notes if not note.code.startswith(UNCHECKED)]
        lines += [f"not checked: {what}" for what in self.unchecked]
        if self.certified:
            lines.append("the limits above are kept" if self.unchecked else "all limits are kept")
        else:
            lines.append("LIMITS ARE BROKEN: do not run this plan")
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The plan as data for JSON."""
        return {
            "format": FORMAT,
            "armid": __version__,
            **plain(self),
            "certified": self.certified,
            "unchecked": self.unchecked,
        }

    def save(self, path: str | Path) -> None:
        """Write the plan to a JSON file."""
        write_result(path, FORMAT, self.to_data())


def load_plan(path: str | Path) -> Plan:
    """Read a plan written by `Plan.save`."""
    return read_result(path, Plan, "a plan", FORMAT, "armid design")
