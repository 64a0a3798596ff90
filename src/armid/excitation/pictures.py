"""Pictures of a plan: motion within limits, tool path, spectrum, and what the design has gained."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.dynamics.kinematics import link_frames, tool_frame
from armid.dynamics.model import Model, Motion
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError
from armid.excitation.criteria import Conditioning, conditioning
from armid.excitation.design import torque_weights
from armid.excitation.fourier import FourierSeries
from armid.excitation.plan import Plan
from armid.figures import Block, Figure, Panel, band, level, line, span
from armid.robot.robot import Robot

QUANTITIES = ("position", "velocity", "acceleration")
_POINTS = 1000
_DRAWS = 25
_SAMPLES = 512


def draw_plan(plan: Plan, robot: Robot, folder: Path, stem: str) -> list[Path]:
    """Write all pictures of a plan: STEM-motion, -tool-path, -spectrum and -singular-values.png, 1200 pixels wide.

    Args:
        plan: its trajectory must be a Fourier series.
        robot: the robot it is for, with the limits it was designed for.
        folder: where to write, which must exist.
        stem: start of the files' names.

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
    return [theme.save(figure, folder / f"{stem}-{name}.png") for name, figure in figures.items()]


def motion_panels(robot: Robot, time: Array, motion: Motion, used: Array | None = None) -> Figure:
    """Position, velocity and acceleration of each joint over time with their limits (Swevers et al., Fig. 5).

    Args:
        robot: with the limits.
        time: [s], (samples,).
        motion: (samples, joints).
        used: exact share of the limits that is used, (position velocity acceleration, joints); from the samples if
            not given.
    """
    used = _shares(robot, motion) if used is None else used
    blocks = []
    for j, joint in enumerate(robot.joints):
        panels = []
        for k, (values, (lower, upper)) in enumerate(zip(motion, _bounds(robot), strict=True)):
            mine = np.asarray(values)[:, j]
            known = [float(bound) for bound in (lower[j], upper[j]) if np.isfinite(bound)]
            words = "no limit known" if np.isnan(used[k, j]) else f"{_percent(used[k, j])} of limit"
            panels.append(
                Panel(
                    ("m" if joint.prismatic else "rad") + ("", "/s", "/s²")[k],
                    [line("predicted", time, mine, name="planned"), *(level(bound) for bound in known)],
                    name=QUANTITIES[k],
                    corner="at rest" if np.ptp(mine) == 0.0 else words,
                    y_range=span(np.append(mine, known), 0.1),
                    x_range=[float(time[0]), float(time[-1])],
                    x_title="time [s]",
                )
            )
        blocks.append(Block(joint.name, [panels], (92.0,)))
    caption = "position, velocity and acceleration of each joint over one period, with their limits"
    return Figure("excitation", blocks, caption, {"predicted": "planned motion", "limit": "limit"})


def motion_figure(plan: Plan, robot: Robot) -> theme.Picture:
    """Positions, velocities and accelerations over one period with their limits."""
    series = _checked(plan, robot)
    times, used = np.linspace(0.0, series.duration, _POINTS), _used(series, robot)
    return motion_panels(robot, times, series.at(times), used).draw(_motion_sentence(plan, used))


def tool_figure(plan: Plan, robot: Robot) -> theme.Picture:
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
        f"{size[0]:.2g} × {size[1]:.2g} × {size[2]:.2g}\u00a0m; its shadow lies below{_box_words(box, forbidden)}."
        f"{_unchecked(plan)}",
    )
    return figure


def spectrum_figure(plan: Plan, robot: Robot) -> theme.Picture:
    """Amplitude of each harmonic of the positions (Swevers et al., Fig. 7)."""
    series = _checked(plan, robot)
    amplitude = np.hypot(series.sine, series.cosine)
    frequency = np.array(series.harmonics) * series.base_frequency_hz
    blocks = []
    for j, joint in enumerate(robot.joints):
        same = [other.prismatic == joint.prismatic for other in robot.joints]
        moves = bool(_moves(series)[j])
        panel = Panel(
            "m" if joint.prismatic else "rad",
            [line("predicted", frequency, amplitude[j], mode="stems")] if moves else (),
            name="amplitude of position",
            corner="" if moves else "at rest",
            y_range=[0.0, 1.15 * (float(amplitude[same].max()) or 1.0)],
            x_range=[0.0, float(frequency.max()) + 0.5 * series.base_frequency_hz],
            x_title="frequency [Hz]",
        )
        blocks.append(Block(joint.name, [[panel]], (77.0,)))
    j, k = map(int, np.unravel_index(int(amplitude.argmax()), amplitude.shape))
    picture = Figure("spectrum", blocks).draw(
        f"{plan.robot}: all motion is at {len(frequency)} harmonics up to {frequency.max():.3g} Hz; the largest "
        f"amplitude is {amplitude[j, k]:.2g} {'m' if robot.joints[j].prismatic else 'rad'}, of {plan.joint_names[j]} "
        f"at {frequency[k]:.3g} Hz."
    )
    if len(frequency) <= 12 and np.ptp(frequency) <= 12.0 * np.min(np.diff(np.sort(frequency)), initial=np.inf):
        picture.axes[0].set_xticks(frequency, [f"{value:.3g}" for value in frequency])
    return picture


def singular_value_figure(plan: Plan, robot: Robot) -> theme.Picture:
    """Singular values of the column-scaled regressor, beside those of random trajectories within the same limits."""
    series = _checked(plan, robot)
    sensitivity = Sensitivity(Model(robot), plan.parameters)
    weights = torque_weights(robot, plan.options.get("noise"), plan.options.get("joints"))

    def describe(trajectory: FourierSeries) -> Conditioning:
        motion = trajectory.at(np.arange(_SAMPLES) * trajectory.duration / _SAMPLES)
        return conditioning(sensitivity.information(motion, weights), _SAMPLES)

    after = describe(series)
    random = sorted((describe(draw) for draw in random_like(plan, robot)), key=lambda c: c.condition)
    before = random[len(random) // 2]
    index = np.arange(1, len(plan.parameters) + 1)
    floor = 0.5 * min((v for c in (after, *random) for v in c.singular_values if v > 1e-7), default=1.0)  # round-off
    shown = np.maximum([c.singular_values for c in random], floor)
    traces = [
        band("nominal", index, shown.min(axis=0), shown.max(axis=0)),
        line("nominal", index, np.maximum(before.singular_values, floor)),
        line("predicted", index, np.maximum(after.singular_values, floor), mode="lines+markers", size=3.0),
    ]
    ends, title = [0.5, len(index) + 0.5], "singular value, largest first"
    panel = Panel("value, columns scaled to unit length [–]", traces, log="y", x_range=ends, x_title=title)
    log_det = float(np.median([c.log_det for c in random]))
    picture = Figure("singular values", [Block("", [[panel]], (320.0,))]).draw(
        _gain_sentence(plan, after, before, log_det)
    )
    notes = (
        (f"this plan: condition number {_figure(after.condition)}", theme.PREDICTED),
        (f"random (median of {_DRAWS}): condition number {_figure(before.condition)}", theme.NOMINAL),
        (f"range of the {_DRAWS}: {_figure(random[0].condition)} to {_figure(random[-1].condition)}", theme.NOMINAL),
    )
    axis: Any = picture.axes[0]
    for row, (text, colour) in enumerate(notes):
        place = {"transform": axis.transAxes, "fontsize": theme.LABEL + 0.5}
        axis.text(0.02, 0.05 + 0.06 * (2 - row), text, color=colour, **place)
    return picture


def random_like(plan: Plan, robot: Robot, *, draws: int = _DRAWS, seed: int = 0) -> list[FourierSeries]:
    """Random trajectories with the plan's harmonics and moving joints.

    Each joint reaches the share of its limits that the plan reaches at most, of any joint.

    Args:
        plan: what they are to be compared with.
        robot: with the limits.
        draws: how many.
        seed: of the coefficients.
    """
    series = _checked(plan, robot)
    rng = np.random.default_rng(seed)
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
    """Share of the limits that is used over continuous time, see `_shares`."""
    extrema = series.extrema()
    fastest = [np.vstack([-bound, bound]) for bound in (extrema.velocity, extrema.acceleration)]
    return _shares(robot, Motion(np.vstack([extrema.lower, extrema.upper]), *fastest))


def _shares(robot: Robot, motion: Motion) -> Array:
    """Share of the limits that samples use, (position velocity acceleration, joints); NaN where they are unknown.

    A position counts from the middle of its range.
    """
    shares = []
    for values, (lower, upper) in zip(motion, _bounds(robot), strict=True):
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        shares.append(np.abs(np.asarray(values) - middle).max(axis=0) / np.where(half > 0.0, half, np.nan))
    return np.array(shares)


def _percent(share: float) -> str:
    return f"{100.0 * share:.{1 if 0.01 <= abs(share) < 0.995 else 0}f} %"


def _motion_sentence(plan: Plan, used: Array) -> str:
    if np.isnan(used).all():
        return f"{plan.robot}: one period of {plan.trajectory.duration:.4g} s; no limits are known.{_unchecked(plan)}"
    row, j = np.unravel_index(int(np.nanargmax(used)), used.shape)
    quantity, share = QUANTITIES[row], 100.0 * used[row, j]
    nearest = f"{plan.joint_names[j]} comes nearest, using {share:.1f} % of its {quantity} limit"
    if used[row, j] > 1.0:
        return f"{plan.robot}: LIMITS ARE BROKEN; {plan.joint_names[j]} reaches {share:.1f} % of its {quantity} limit."
    inside = f"{plan.robot}: every joint stays inside its limits (red) over the whole period; {nearest}."
    return inside + _unchecked(plan)


def _unchecked(plan: Plan) -> str:
    """What a picture of a plan has to say about limits that nobody has checked."""
    return f" Not checked: {'; '.join(plan.unchecked)}." if plan.unchecked else ""


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
    for start, end in combinations(product(*corners.T), 2):
        if sum(a != b for a, b in zip(start, end, strict=True)) == 1:
            axis.plot(*zip(start, end, strict=True), **theme.LINES["limit"])
