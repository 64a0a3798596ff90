"""The payload as estimated: what it is, how sure that is, what it does to the torques, and whether it will do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid.arrays import Array
from armid.display import short
from armid.errors import ArmidError
from armid.figures import Block, Figure, Panel, line, span
from armid.files import MaybeNaN, plain, read_result, write_result
from armid.notes import Note
from armid.robot.inertia import INERTIAL_NAMES, INERTIAL_UNITS, tensor, to_com

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from armid.estimation.fit import Fit
    from armid.robot.robot import Robot

FORMAT = "armid payload 1"
_DASHED = {"linestyle": (0, (4, 1.5))}


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a payload has to be known to; the defaults are what industry asks for (Swevers et al. 2007).

    Attributes:
        mass: half of the 95 % interval, as a share of the mass.
        com_m: the same of the centre of mass, per axis [m].
    """

    mass: float = 0.05
    com_m: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what nothing can meet."""
        for name, value in (("mass", self.mass), ("com_m", self.com_m)):
            if not (np.isfinite(value) and value > 0.0):
                raise ArmidError(f"the requirement {name} is {value:g}; it must be above zero")


@dataclass(frozen=True)
class Quantity:
    """One number about the payload.

    Attributes:
        name: such as ``c_x``.
        value: of the physically consistent body.
        sigma: standard deviation; not finite where the data say nothing.
        interval_95: its ends.
        determined: whether the data tell it, rather than what bodies are usually like.
        unit: such as m.
    """

    name: str
    value: MaybeNaN
    sigma: MaybeNaN
    interval_95: tuple[MaybeNaN, MaybeNaN]
    determined: bool
    unit: str

    @property
    def lower(self) -> float:
        """Lower end of the interval."""
        return self.interval_95[0]

    @property
    def upper(self) -> float:
        """Upper end of the interval."""
        return self.interval_95[1]

    @property
    def half(self) -> float:
        """Half of the interval."""
        return 0.5 * (self.upper - self.lower)


@dataclass(frozen=True)
class JointLoad:
    """What the payload does to one joint.

    Attributes:
        name: of the joint.
        moved: whether it moved fast enough to take part.
        rms_without: error of the arm's own model [N m], while moving; NaN where it did not move.
        rms_with: with the payload and the friction found with it [N m].
        noise: standard deviation of the measured torque's noise [N m]; NaN if not measured.
        payload_rms: torque of the payload itself [N m].
    """

    name: str
    moved: bool
    rms_without: MaybeNaN
    rms_with: MaybeNaN
    noise: MaybeNaN
    payload_rms: MaybeNaN


@dataclass(frozen=True)
class FrictionChange:
    """A friction coefficient with payload, and what the arm's fit has; sigma is that of the new value."""

    name: str
    unit: str
    value: float
    sigma: float
    before: float


@dataclass(frozen=True)
class ReferenceValue:
    """One quantity beside its reference.

    Attributes:
        name, unit: as in `QUANTITIES`.
        value, sigma: estimate and its standard deviation.
        reference: what was said.
        sigmas: difference in standard deviations.
        within_2_sigma: the test of Swevers et al., Table 3.
    """

    name: str
    unit: str
    value: float
    sigma: MaybeNaN
    reference: float
    sigmas: MaybeNaN
    within_2_sigma: bool


@dataclass(frozen=True, eq=False)
class PayloadSeries:
    """Torque over time, (rows,) and (rows, joints); pictures are drawn from it.

    Attributes:
        time: [s]; each log begins anew.
        measured, with_payload, without: [N m].
        moving: which joints take part.
    """

    time: Array
    measured: Array
    with_payload: Array
    without: Array
    moving: tuple[bool, ...]


@dataclass(frozen=True, eq=False, repr=False)
class PayloadEstimate:
    """What `identify_payload` returns; positions and inertias are in the robot's tool frame.

    Attributes:
        robot: name of the robot.
        parameters: ten inertial parameters about the tool frame's origin, physically consistent.
        free: the same without physical limits.
        covariance: of these; the arm's own uncertainty and that of the torque's scale included.
        quantities: mass, centre of mass, inertia about it.
        about_frame: the ten `parameters` with intervals.
        friction: of joints that moved, with payload and before.
        joints: torque errors with and without payload.
        arm_share: share of the mass's variance that comes from the arm's own fit.
        gain: standard deviation of drive gains that was taken into account, as a share; the largest of all joints.
        gain_effects: change of the ten parameters per relative change of each joint's gain, (10, joints).
        in_drive_units: `parameters` as the drives report torque, without correction of their gains.
        loaded_values, loaded_covariance: the fit's values with the payload attached, in the order of its names.
        fit_sha256: data the fit was made from, by hash; tells whether a fit is the one.
        data_sha256: the same of the logs with payload.
        reference: comparison with a known payload; empty without.
        requirement: what was asked for.
        good: the verdict.
        reasons: for a poor one.
        notes, advice: what was found, and what would help.
        series: torque over time; None after loading.
        pipeline: signal processing, as data.
        options: of the command.
        history: versions and hashes.
    """

    robot: str
    parameters: Array
    free: Array
    covariance: Array
    quantities: tuple[Quantity, ...]
    about_frame: tuple[Quantity, ...]
    friction: tuple[FrictionChange, ...]
    joints: tuple[JointLoad, ...]
    arm_share: float
    gain: float
    gain_effects: Array
    in_drive_units: Array
    loaded_values: Array
    loaded_covariance: Array
    fit_sha256: tuple[str, ...]
    data_sha256: tuple[str, ...]
    reference: tuple[ReferenceValue, ...]
    requirement: Requirement
    good: bool
    reasons: tuple[Note, ...]
    notes: tuple[Note, ...]
    advice: tuple[Note, ...]
    series: PayloadSeries | None = field(default=None, repr=False)
    pipeline: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.parameters[0])

    @property
    def com(self) -> Array:
        """Centre of mass in the tool frame [m]."""
        return to_com(self.parameters)[1]

    @property
    def inertia(self) -> Array:
        """Inertia tensor (3, 3) about the centre of mass [kg m^2]."""
        return to_com(self.parameters)[2]

    @property
    def inertia_about_frame(self) -> Array:
        """Inertia tensor (3, 3) about the tool frame's origin [kg m^2]."""
        return tensor(self.parameters)

    def quantity(self, name: str) -> Quantity:
        """One of `quantities`, such as ``m`` or ``c_x``."""
        return next(quantity for quantity in self.quantities if quantity.name == name)

    def apply(self, fit: Fit) -> Fit:
        """The fit of the arm with this payload attached, to predict, control and export."""
        from armid.payload.attach import loaded_fit

        return loaded_fit(fit, self)

    def apply_to_robot(self, robot: Robot) -> Robot:
        """The description with this payload: in its nominal inertia, and on its virtual arm."""
        from armid.payload.attach import loaded_robot

        return loaded_robot(robot, self.parameters)

    @property
    def verdict(self) -> str:
        """``good`` or ``poor``."""
        return "good" if self.good else "poor"

    @property
    def undetermined(self) -> list[str]:
        """Names of the quantities that the data do not tell."""
        return [quantity.name for quantity in self.quantities if not quantity.determined]

    def __repr__(self) -> str:
        """One line."""
        return short(self, self.robot, f"{self.mass:.4g} kg", self.verdict)

    def plot(self) -> Picture:
        """Measured torque, predicted with the payload and for the arm alone; a matplotlib figure."""
        return payload_figure(self)

    def summary(self) -> str:
        """A page for people."""
        lines = [f"{self.robot}: payload in the tool frame, 95 % intervals"]
        told = {row.name: row for row in self.reference}
        for quantity in self.quantities:
            line = _line(quantity)
            if quantity.name in told:
                row = told[quantity.name]
                line += f"   reference {row.reference:.4g}: {row.sigmas:.1f} σ" + ("" if row.within_2_sigma else "  ✗")
            lines.append(line)
        lines.append("inertia Ixx … Iyz is about the centre of mass; about the tool frame:")
        lines += [_line(quantity) for quantity in self.about_frame[4:]]
        if told:
            inside = sum(row.within_2_sigma for row in self.reference)
            lines.append(f"{inside} of {len(told)} reference values are within 2 σ")
        lines.append("error of torque while moving [N m], arm alone → with payload:")
        width = max(len(joint.name) for joint in self.joints)
        for joint in self.joints:
            if not joint.moved:
                lines.append(f"  {joint.name:<{width}}  at rest, took no part")
                continue
            noise = "" if np.isnan(joint.noise) else f"   noise {joint.noise:.3g}"
            lines.append(f"  {joint.name:<{width}}  {joint.rms_without:.3g} → {joint.rms_with:.3g}{noise}")
        lines += [*map(str, self.notes), f"verdict: {self.verdict}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines += [f"advice: {line}" for line in self.advice]
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, FORMAT, self.to_data())

    def to_data(self) -> dict[str, Any]:
        """Everything but the series, for JSON."""
        mass, com, inertia = to_com(self.parameters)
        told = {"mass": mass, "com": com, "inertia": inertia, "inertia_about_frame": self.inertia_about_frame}
        names = {"parameter_names": INERTIAL_NAMES, "parameter_units": INERTIAL_UNITS}
        inside = [sum(row.within_2_sigma for row in self.reference), len(self.reference)]
        return dict(plain({**told, **plain(self), **names, "verdict": self.verdict, "within_2_sigma": inside}))


def load_payload(path: str | Path) -> PayloadEstimate:
    """Read what `PayloadEstimate.save` wrote."""
    found = read_result(path, PayloadEstimate, "a payload", FORMAT, "armid payload -o")
    count = found.loaded_values.size
    shapes = {
        "loaded_values": (count,),
        "parameters": (10,),
        "free": (10,),
        "in_drive_units": (10,),
        "covariance": (10, 10),
        "gain_effects": (10, len(found.joints)),
        "loaded_covariance": (count, count),
    }
    for name, shape in shapes.items():
        array = getattr(found, name)
        if array.shape != shape or not np.isfinite(array).all():
            raise ArmidError(f"{path}: {name}: must be {shape} finite numbers; write it again with armid payload -o")
    if len(found.quantities) != 10 or len(found.about_frame) != 10 or not found.joints or found.parameters[0] <= 0.0:
        raise ArmidError(f"{path}: is not complete; write it again with armid payload -o")
    return found


def _line(quantity: Quantity) -> str:
    if not np.isfinite(quantity.sigma):
        return f"  {quantity.name:<4} not determined"
    interval = f"{quantity.lower:.4g} … {quantity.upper:.4g}"
    mark = "" if quantity.determined else "   not determined by these data"
    return f"  {quantity.name:<4} {quantity.value:>10.4g} {quantity.unit:<7} {interval:<20}{mark}"


def payload_figure(payload: PayloadEstimate) -> Picture:
    """Measured torque, predicted with payload, predicted for the arm alone; errors beside it at the same scale."""
    series = payload.series
    if series is None:
        raise ArmidError("this payload was read from a file, which holds no series; estimate it again to draw it")
    rows = [j for j, moved in enumerate(series.moving) if moved]
    breaks = np.flatnonzero(np.diff(series.time) <= 0.0) + 1
    time = np.insert(series.time - series.time[0], breaks, np.nan)
    blocks = []
    for j in rows:
        joint = payload.joints[j]
        measured, loaded, bare = (
            np.insert(values[:, j], breaks, np.nan) for values in (series.measured, series.with_payload, series.without)
        )
        low, high = span(np.concatenate([measured, loaded, bare]), 0.05)
        half = max(0.5 * (high - low), float(np.nanmax(np.abs(measured - bare))))
        middle = 0.5 * (low + high)
        torque = [line("nominal", time, bare), line("measured", time, measured)]
        torque.append(line("predicted", time, loaded, style=_DASHED))
        errors = [line("nominal", time, measured - bare), line("residual", time, measured - loaded)]
        ends = ([middle - half, middle + half], [-half, half])
        corner = f"RMS {joint.rms_without:.3g} → {joint.rms_with:.3g}"
        panels = [
            Panel("", torque, name="torque [N m]", y_range=ends[0], x_title="time [s]"),
            Panel("", errors, name="error [N m]", y_range=ends[1], x_title="time [s]", corner=corner),
        ]
        blocks.append(Block(joint.name.replace("_", " "), [panels], (130.0,)))
    mass = payload.quantity("m")
    taken = [1.0 - payload.joints[j].rms_with / payload.joints[j].rms_without for j in rows]
    return Figure("payload", blocks).draw(
        f"A payload of {mass.value:.4g} ± {mass.half:.2g} kg explains {100 * min(taken):.0f} to "
        f"{100 * max(taken):.0f} % of what the model of the arm alone (grey) misses; measured black, with payload blue."
    )
