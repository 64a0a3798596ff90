"""Pictures of a plan: motion within limits, tool path, spectrum, and what the design has gained."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.dynamics.kinematics import link_frames, tool_frame
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError
from armid.excitation.criteria import Conditioning, conditioning
from armid.excitation.fourier import FourierSeries
from armid.excitation.plan import Plan
from armid.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 1000
_DRAWS = 25
_SAMPLES = 512


def draw_plan(plan: Plan, robot: Robot, folder: Path, stem: str, *, svg: bool = False) -> list[Path]:
    """Write all pictures of a plan: STEM-motion, -tool-path, -spectrum and -singular-values.png, 1200 pixels wide.

    Args:
        plan: its trajectory must be a Fourier series.
        robot: the robot it is for, with the limits it was designed for.
        folder: where to write, which must exist.
        stem: start of the files' names.
        svg: write each picture as .svg too.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    theme.need_matplotlib()
    figures = {
        "motion": motion_figure(plan, robot),
        "tool-path": tool_figure(plan, robot),
        "spectrum": spectrum_figure(plan, robot),
        "singular-values": singular_value_figure(plan, robot),
    }
    paths = []
    for name, figure in figures.items():
        for suffix in ("png", "svg") if svg else ("png",):
            paths.append(folder / f"{stem}-{name}.{suffix}")
            theme.save(figure, paths[-1])
    return paths


def motion_figure(plan: Plan, robot: Robot) -> Figure:
    """Positions, velocities and accelerations over one period with their limits (Swevers et al., Fig. 5)."""
    series = _checked(plan, robot)
    times = np.linspace(0.0, series.duration, _POINTS)
    bounds, used = _bounds(robot), _used(series, robot)
    quantities = ("position", "velocity", "acceleration")
    figure, axes = theme.small_multiples(plan.joint_names, quantities, x_label="time [s]")
    for column, values in enumerate(series.at(times)):
        for j, joint in enumerate(robot.joints):
            axis = axes[j, column]
            axis.plot(times, values[:, j], **theme.LINES["predicted"])
            low, high = bounds[column][0][j], bounds[column][1][j]
            for bound in (low, high):
                if np.isfinite(bound):
                    axis.axhline(bound, **theme.LINES["limit"])
            _span(axis, values[:, j], low, high)
            axis.set_ylabel(("m" if joint.prismatic else "rad") + ("", "/s", "/s²")[column])
            if not _moves(series)[j]:
                theme.corner(axis, "at rest")
            elif np.isfinite(used[column, j]):
                theme.corner(axis, f"{100 * used[column, j]:.0f} % of limit")
    axes[0, 0].set_xlim(0.0, series.duration)
    figure.align_ylabels(axes)
    theme.say(figure, _motion_sentence(plan, used))
    return figure


def tool_figure(plan: Plan, robot: Robot) -> Figure:
    """Path of the tool in space with the arm at the start (Swevers et al., Fig. 6)."""
    series = _checked(plan, robot)
    times = np.linspace(0.0, series.duration, _POINTS)
    path = tool_frame(robot, series.at(times).q)[:, :3, 3]
    arm = _arm(robot, series.at([0.0]).q)
    figure = theme.new_figure(6.6)
    axis: Any = figure.add_subplot(projection="3d")
    box = None if robot.limits.box is None else np.asarray(robot.limits.box)
    forbidden = _keep_out(plan)
    floor = float(np.vstack([path, arm] if box is None else [path, arm, box])[:, 2].min())
    axis.plot(path[:, 0], path[:, 1], np.full(len(path), floor), color=theme.NOMINAL, alpha=0.45, linewidth=0.8)
    axis.plot(*arm.T, color=theme.NOMINAL, linewidth=3.0, marker="o", markersize=4.0, solid_capstyle="round")
    axis.plot(*path.T, **theme.LINES["predicted"])
    axis.plot(*path[:1].T, color=theme.MEASURED, marker="o", markersize=6.0, linestyle="none")
    _label(axis, path[0], "start", theme.MEASURED)
    _label(axis, arm[len(arm) // 2], "arm at the start", theme.NOMINAL)
    for corners in forbidden if box is None else [box, *forbidden]:
        _draw_box(axis, corners)
    theme.style_space(axis, "m")
    size = np.ptp(path, axis=0)
    length = float(np.sum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
    theme.say(
        figure,
        f"{plan.robot}: in {series.duration:.4g} s the tool travels {length:.3g} m through a space of "
        f"{size[0]:.2g} × {size[1]:.2g} × {size[2]:.2g}\u00a0m; its shadow lies below{_box_words(box, forbidden)}.",
    )
    return figure


def spectrum_figure(plan: Plan, robot: Robot) -> Figure:
    """Amplitude of each harmonic of the positions (Swevers et al., Fig. 7)."""
    series = _checked(plan, robot)
    amplitude = np.hypot(series.sine, series.cosine)
    frequency = np.array(series.harmonics) * series.base_frequency_hz
    figure, axes = theme.small_multiples(
        plan.joint_names, ("amplitude of position",), x_label="frequency [Hz]", row_height=0.8
    )
    for j, joint in enumerate(robot.joints):
        axis = axes[j, 0]
        if _moves(series)[j]:
            axis.vlines(frequency, 0.0, amplitude[j], **theme.LINES["predicted"])
            axis.plot(frequency, amplitude[j], "o", color=theme.PREDICTED, markersize=4.0, clip_on=False)
        else:
            theme.corner(axis, "at rest")
        same = [other.prismatic == joint.prismatic for other in robot.joints]
        axis.set_ylim(0.0, 1.15 * (float(amplitude[same].max()) or 1.0))
        axis.set_ylabel("m" if joint.prismatic else "rad")
    if len(frequency) <= 12 and np.ptp(frequency) <= 12.0 * np.min(np.diff(np.sort(frequency)), initial=np.inf):
        axes[0, 0].set_xticks(frequency, [f"{value:.3g}" for value in frequency])
    axes[0, 0].set_xlim(0.0, frequency.max() + 0.5 * series.base_frequency_hz)
    figure.align_ylabels(axes)
    theme.say(figure, _spectrum_sentence(plan, robot, frequency, amplitude))
    return figure


def singular_value_figure(plan: Plan, robot: Robot) -> Figure:
    """Singular values of the column-scaled regressor, beside those of random trajectories within the same limits."""
    series = _checked(plan, robot)
    sensitivity, weights = Sensitivity(Model(robot), plan.parameters), _weights(plan, robot)

    def describe(trajectory: FourierSeries) -> Conditioning:
        motion = trajectory.at(np.arange(_SAMPLES) * trajectory.duration / _SAMPLES)
        return conditioning(sensitivity.information(motion, weights), _SAMPLES)

    after = describe(series)
    random = sorted((describe(draw) for draw in random_like(plan, robot)), key=lambda c: c.condition)
    before = random[len(random) // 2]
    values = np.array([c.singular_values for c in random])
    index = np.arange(1, len(plan.parameters) + 1)
    figure = theme.new_figure(4.4)
    axis = figure.subplots()
    theme.style(axis)
    seen = [v for c in (after, *random) for v in c.singular_values if v > 1e-7]  # below is round-off
    floor = 0.5 * min(seen, default=1.0)
    shown = np.maximum(values, floor)
    axis.fill_between(
        index, shown.min(axis=0), shown.max(axis=0), color=theme.NOMINAL, alpha=theme.INTERVAL_ALPHA, linewidth=0.0
    )
    axis.plot(index, np.maximum(before.singular_values, floor), **theme.LINES["nominal"])
    axis.plot(index, np.maximum(after.singular_values, floor), marker="o", markersize=3.0, **theme.LINES["predicted"])
    theme.log_scale(axis)
    axis.set_xlabel("singular value, largest first")
    axis.set_ylabel("value, columns scaled to unit length [–]")
    axis.set_xlim(0.5, len(index) + 0.5)
    notes = (
        (f"this plan: condition number {_figure(after.condition)}", theme.PREDICTED),
        (f"random (median of {_DRAWS}): condition number {_figure(before.condition)}", theme.NOMINAL),
        (f"range of the {_DRAWS}: {_figure(random[0].condition)} to {_figure(random[-1].condition)}", theme.NOMINAL),
    )
    for line, (text, colour) in enumerate(notes):
        axis.text(
            0.02, 0.05 + 0.06 * (2 - line), text, transform=axis.transAxes, fontsize=theme.LABEL + 0.5, color=colour
        )
    theme.say(figure, _gain_sentence(plan, after, before, float(np.median([c.log_det for c in random]))))
    return figure


def random_like(
    plan: Plan, robot: Robot, *, draws: int = _DRAWS, seed: int = 0, share: float | None = None
) -> list[FourierSeries]:
    """Random trajectories with the plan's harmonics and moving joints, each joint as large as the limits admit.

    Args:
        plan: what they are to be compared with.
        robot: with the limits.
        draws: how many.
        seed: of the coefficients.
        share: of the limits that each joint reaches (default: the largest that the plan reaches).
    """
    series = _checked(plan, robot)
    rng = np.random.default_rng(seed)
    if share is None:
        share = float(np.nan_to_num(_used(series, robot)).max()) or 1.0
    moves = _moves(series)
    middle = np.where(moves, 0.5 * (robot.limits.lower + robot.limits.upper), series.offset)
    middle = np.where(np.isnan(middle), series.offset, middle)
    found = []
    for _ in range(draws):
        sine, cosine = rng.normal(size=(2, *series.sine.shape)) / np.array(series.harmonics) * moves[:, None]
        free = FourierSeries(series.base_frequency_hz, series.harmonics, sine, cosine, middle)
        used = np.nan_to_num(_used(free, robot)).max(axis=0)
        size = np.divide(share, used, out=np.ones_like(used), where=used > 0.0)[:, None]
        found.append(FourierSeries(series.base_frequency_hz, series.harmonics, size * sine, size * cosine, middle))
    return found


def _checked(plan: Plan, robot: Robot) -> FourierSeries:
    if robot.joint_names != plan.joint_names:
        raise ArmidError(
            f"the plan is for {plan.robot} with joints {', '.join(plan.joint_names)}, "
            f"not for {robot.name} with joints {', '.join(robot.joint_names)}"
        )
    if not isinstance(plan.trajectory, FourierSeries):
        raise ArmidError(f"pictures need a plan with a Fourier series, this one has a {plan.trajectory.type_name}")
    return plan.trajectory


def _moves(series: FourierSeries) -> Array:
    """Which joints move."""
    return np.asarray(np.any((series.sine != 0.0) | (series.cosine != 0.0), axis=1))


def _bounds(robot: Robot) -> list[tuple[Array, Array]]:
    """Lower and upper limits of position, velocity and acceleration, NaN where unknown."""
    limits = robot.limits
    symmetric = [(-bound, bound) for bound in (limits.velocity, limits.acceleration)]
    return [(limits.lower, limits.upper), *symmetric]


def _used(series: FourierSeries, robot: Robot) -> Array:
    """Share of the limits that is used, (position velocity acceleration, joints); NaN where they are unknown.

    A position counts from the middle of its range.
    """
    extrema, limits = series.extrema(), robot.limits
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    position = np.maximum(extrema.upper - middle, middle - extrema.lower) / half
    return np.vstack([position, extrema.velocity / limits.velocity, extrema.acceleration / limits.acceleration])


def _span(axis: Any, values: Array, low: float, high: float) -> None:
    """Show a curve and its limits: panels of one quantity differ in scale but the limits stand at the same height."""
    bottom, top = np.fmin(low, values.min()), np.fmax(high, values.max())
    room = 0.12 * (top - bottom) or 1.0
    axis.set_ylim(bottom - room, top + room)


def _motion_sentence(plan: Plan, used: Array) -> str:
    if np.isnan(used).all():
        return f"{plan.robot}: one period of {plan.trajectory.duration:.4g} s; no limits are known."
    row, j = np.unravel_index(int(np.nanargmax(used)), used.shape)
    quantity, share = ("position", "velocity", "acceleration")[row], 100.0 * used[row, j]
    nearest = f"{plan.joint_names[j]} comes nearest, using {share:.1f} % of its {quantity} limit"
    if used[row, j] > 1.0:
        return f"{plan.robot}: LIMITS ARE BROKEN; {plan.joint_names[j]} reaches {share:.1f} % of its {quantity} limit."
    return f"{plan.robot}: every joint stays inside its limits (red) over the whole period; {nearest}."


def _spectrum_sentence(plan: Plan, robot: Robot, frequency: Array, amplitude: Array) -> str:
    j, k = np.unravel_index(int(amplitude.argmax()), amplitude.shape)
    unit = "m" if robot.joints[j].prismatic else "rad"
    return (
        f"{plan.robot}: all motion is at {len(frequency)} harmonics up to {frequency.max():.3g} Hz; the largest "
        f"amplitude is {amplitude[j, k]:.2g} {unit}, of {plan.joint_names[j]} at {frequency[k]:.3g} Hz."
    )


def _gain_sentence(plan: Plan, after: Conditioning, before: Conditioning, log_det: float) -> str:
    """What the design gains over a random trajectory and over their typical log det."""
    opening = f"{plan.robot}, {len(plan.parameters)} parameters: the design has condition number "
    if not np.isfinite(before.condition):
        return f"{opening}{_figure(after.condition)}; random motion inside the same limits leaves some unseen."
    # The axes of the confidence ellipsoid shrink by this factor in the (geometric) mean.
    narrower = float(np.exp((after.log_det - log_det) / (2 * len(plan.parameters))))
    intervals = f"{narrower:.2g} times narrower" if narrower >= 1.0 else f"{1.0 / narrower:.2g} times wider"
    return (
        f"{opening}{_figure(after.condition)}, random motion inside the same limits {_figure(before.condition)}; "
        f"the design's confidence intervals are {intervals} on average."
    )


def _figure(value: float) -> str:
    """A condition number with three digits, without exponent."""
    return f"{float(f'{value:.3g}'):g}" if value < 1e6 else "infinite" if np.isinf(value) else f"{value:.1e}"


def _weights(plan: Plan, robot: Robot) -> Array:
    """Inverse variance of each joint's torque as in the design: nothing is measured on joints that rest."""
    joints, noise = plan.options.get("joints"), plan.options.get("noise")
    measured = np.ones(robot.n_joints) if joints is None else np.isin(np.arange(1, robot.n_joints + 1), joints)
    return measured * (1.0 if noise is None else 1.0 / np.square(np.asarray(noise, dtype=float)))


def _arm(robot: Robot, q: Array) -> Array:
    """Base, origins of the links on the way to the tool, and the tool [m]; points that coincide only once."""
    frames = link_frames(robot, q)[0]
    origins = [np.zeros(3), *(frames[j, :3, 3] for j in robot.path_to(robot.n_joints)), tool_frame(robot, q)[0, :3, 3]]
    kept = origins[:1]
    kept += [after for before, after in pairwise(origins) if np.linalg.norm(after - before) > 1e-3]
    return np.array(kept)


def _label(axis: Any, point: Array, text: str, colour: str) -> None:
    axis.text(*point, f"  {text}", fontsize=theme.LABEL, color=colour, zorder=20)


def _keep_out(plan: Plan) -> list[Array]:
    """Lower and upper corners (2, 3) of the boxes that the tool was to stay out of."""
    told = [entry for entry in plan.options.get("constraints") or () if isinstance(entry, Mapping)]
    return [np.array([entry["corner"], entry["opposite"]], dtype=float) for entry in told if "opposite" in entry]


def _box_words(box: Array | None, forbidden: list[Array]) -> str:
    if box is not None and forbidden:
        return ", the boxes it has to stay in and to keep out of are red"
    if forbidden:
        return ", what it has to keep out of is red"
    return "" if box is None else ", the box it has to stay in is red"


def _draw_box(axis: Any, corners: Array) -> None:
    """The edges of a box that the tool stays in or out of."""
    for direction in range(3):
        others = [d for d in range(3) if d != direction]
        for a in (0, 1):
            for b in (0, 1):
                edge = np.empty((2, 3))
                edge[:, direction] = corners[:, direction]
                edge[:, others[0]], edge[:, others[1]] = corners[a, others[0]], corners[b, others[1]]
                axis.plot(*edge.T, **theme.LINES["limit"])
