"""Log and robot side by side: names, limits, and effort against the model: late, reversed, exchanged, out of scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from armid.arrays import Array, Mask
from armid.dynamics.model import Model, Motion
from armid.dynamics.threads import one_blas_thread
from armid.logs.convert import to_joint_side, torque_from_current
from armid.logs.log import Log, LogError
from armid.logs.turns import TURN
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.doctor.channels import noise_level
from armid.signals.doctor.finding import Finding, found
from armid.signals.doctor.fit import EffortFit, FitRows, fit, friction_columns, known_torque, model_columns, rows_of
from armid.signals.doctor.mistakes import examine_mistakes, stated_inertia
from armid.signals.doctor.motion import Track, Travel
from armid.signals.repair import MOVES

_OUTSIDE = 0.02  # of the range, beyond the limits
_STRONG, _FAINT = 1.5, 2e-3  # times the torque limit; all joints below the latter are in another unit
# Friction that feeds power: this share of the effort's own, and this many standard errors.
_FEEDS, _SIGMAS = 0.1, 5.0
_POOR = 0.16  # mean square residual over variance, from which on the model does not explain the effort
# The doubt in a delay: a model that is wrong by its residual may shift the delay by about half of what the residual is
# worth; and the scatter between parts of the log. Over 70 clean logs of the virtual robot the common delay over its
# doubt has an rms of 0.8, as it should. A common delay must be 3.5 times its doubt; that of a single joint, where the
# error of the model does not average out and several joints are asked, six times.
_DOUBT, _SURE, _ALONE, _LEAST_S = 0.5, 3.5, 6.0, 2e-3
# A description's masses are off by a factor of two or three where they are guesses, and rotors may multiply inertia;
# wrong units and gains start at 100.
_OFF = 20.0
_HEAVY = 0.1  # stated torque over the largest of all joints, moving or held; below, friction and rotors decide
_WEIGHT = 0.3  # share of gravity in it, from which on rotors that nobody has stated cannot multiply it
_LEFT = 0.2  # of the stated torque's deviation that must be left when what friction could explain is taken off
_ALIKE = 0.5  # correlation with the stated torque that an effort far larger than it must have
_ABSURD = 100.0  # as _OFF, to refuse a log: wrong units make a thousand, and good counterbalances may leave a 20th
_LEAST_TORQUE, _MOST_TORQUE = 1e-5, 1e7  # of a whole arm [N m or N]
_ENOUGH = 4000  # rows to judge the size of torques by


@dataclass(frozen=True, eq=False)
class Effort:
    """Velocity [rad/s or m/s], effort [N m or N] and which of it to use, (rows, joints) each."""

    qd: Array
    effort: Array
    keep: Mask


def matched(log: Log, robot: Robot) -> tuple[Log | None, list[Finding]]:
    """The log with the robot's joints, in its order and on the joint side; None if it is a log of another robot."""
    missing = [name for name in robot.joint_names if name not in log.joints]
    if missing:
        counts: dict[str, Any] = {"count": len(missing), "of": robot.n_joints, "robot": robot.name}
        return None, [found("other-robot", confidence=0.95, **counts, missing=missing, joints=list(log.joints))]
    findings = []
    if log.info.robot and robot.name and log.info.robot != robot.name:
        name = log.info.robot
        findings.append(found("other-robot", confidence=0.5, variant="name", name=name, robot=robot.name))
    picked = log.for_joints(robot.joint_names)
    if picked.info.effort == "current" and robot.current_gain is not None:
        picked = torque_from_current(picked, robot.current_gain)
    if picked.info.side == "motor" or picked.info.effort == "motor torque":
        ratios = np.array([drive.gear_ratio for drive in robot.drives])
        picked = to_joint_side(picked, ratios if robot.coupling is None else robot.coupling)
    return picked, findings


def examine_limits(log: Log, robot: Robot, travel: Travel) -> Iterator[Finding]:
    """Positions and efforts against what the robot can do."""
    limits = robot.limits
    room = _OUTSIDE * (limits.upper - limits.lower)
    for joint, name in enumerate(robot.joint_names):
        low, high = travel.lower[joint], travel.upper[joint]
        least, most = float(limits.lower[joint]), float(limits.upper[joint])
        away = np.round((0.5 * (low + high) - 0.5 * (least + most)) / TURN) * TURN  # whole turns are the same place
        around = (0.0,) if robot.joints[joint].prismatic or not np.isfinite(away) else (0.0, away)
        if not all(low - x < least - room[joint] or high - x > most + room[joint] for x in around):
            continue
        yield found("outside-limits", name, confidence=0.8, lower=float(low), upper=float(high), least=least, most=most)
    if log.info.effort == "joint torque" and len(log):
        yield from _strength(np.percentile(np.nan_to_num(np.abs(log["effort"])), 99.0, axis=0), robot, travel.moving)


def _strength(size: Array, robot: Robot, moving: Mask) -> Iterator[Finding]:
    """Torques beyond the limits, or so far below all of them that gear or unit must be wrong; errors where by far.

    Limits are often placeholders. Where masses are stated, or many joints have the same limit, they give no errors.

    Args:
        size: torque that each joint reaches [N m or N].
        robot: with its limits.
        moving: joints that move.
    """
    limit, ratio = robot.limits.torque, np.abs([drive.gear_ratio for drive in robot.drives])
    known = moving & np.isfinite(limit)
    trusted = not _states_masses(robot) and not (known.sum() > 2 and np.ptp(limit[known]) == 0.0)
    far = "error" if trusted and moving.any() and (size > _OFF * limit)[moving].all() else ""
    for joint in np.flatnonzero(size > _STRONG * limit):
        reached, most = float(size[joint]), float(limit[joint])
        values: dict[str, Any] = {"effort": reached, "limit": most}
        yield found("effort-out-of-range", robot.joint_names[joint], confidence=0.8, severity=far, **values)
    geared = known & (ratio >= 10.0)
    if trusted and known.sum() >= 2 and (size[known] < _FAINT * limit[known]).all():
        yield found("effort-kind", confidence=0.7, variant="faint", part=round(1.0 / _FAINT))
    elif geared.sum() >= 2 and (size[geared] < limit[geared] / ratio[geared]).all():
        yield found("effort-kind", confidence=0.7)


def _states_masses(robot: Robot) -> bool:
    return robot.nominal_inertia is not None and bool(np.any(robot.nominal_inertia))


def check_torque(data: Dataset, robot: Robot | None, expected: Callable[[Motion], Array] | None = None) -> None:
    """Refuse torques that the arm's drives cannot have: always the same while a joint moves, or of an absurd size.

    The size is judged by what is `expected`, else by the masses that the description states, else by its limits.

    Args:
        data: on the joint side.
        robot: the arm; None where it is not known.
        expected: torque (samples, joints) that a fit of this arm has for a motion [N m or N].

    Raises:
        LogError: the source of the data and what is wrong with them.
    """
    source, names = str(data.history.get("source", "")), data.joints
    thin = slice(None, None, max(1, len(data) // _ENOUGH))
    rows = data.rows[thin]
    torque, motion = np.asarray(data.torque[thin]), Motion(*(np.asarray(x[rows]) for x in (data.q, data.qd, data.qdd)))
    moving = np.std(motion.q, axis=0) > MOVES
    keep = np.isfinite(torque) if data.use is None else np.isfinite(torque) & data.use[thin]
    keep &= moving
    size = np.array(
        [np.percentile(np.abs(x[k]), 99.0) if k.any() else 0.0 for x, k in zip(torque.T, keep.T, strict=True)]
    )
    if keep.any() and not _LEAST_TORQUE < size.max() < _MOST_TORQUE:
        problem = f"is {size.max():.3g} N m at the most, which is no arm's; check the recipe's column, unit and gain"
        raise LogError(source, "effort", problem)
    for name, column, good in zip(names, torque.T, keep.T, strict=True):
        if good.sum() > 1 and np.ptp(column[good]) <= 1e-12 * np.abs(column[good]).max():
            problem = (
                f"is {column[good][0] + 0.0:g} in all rows although the joint moves; if it was not measured, write "
                "`null` for its column in the recipe; if there is no motor, say so in the robot file (drives.passive)"
            )
            raise LogError(source, f"effort.{name}", problem)
    beyond: Iterable[Finding] = ()
    if expected is not None:
        effort, variant = Effort(motion.qd, torque, keep), "fit"
        beyond = _out_of_scale(names, effort, expected(motion), keep.any(axis=0), _ABSURD, variant=variant)
    elif robot is not None and _states_masses(robot):
        beyond = _against_masses(_model(robot), motion, Effort(motion.qd, torque, keep), keep.any(axis=0), _ABSURD)
    elif robot is not None:
        beyond = _strength(size, robot, keep.any(axis=0))
    for finding in beyond:
        if finding.severity == "error":
            raise LogError(source, "effort", f"{finding.what} {finding.advice}")


def examine_dynamics(log: Log, robot: Robot, track: Track, moving: Mask) -> Iterator[Finding]:
    """Fit the model to the log as it is, and with every single mistake undone.

    Args:
        log: with the robot's joints, on the joint side.
        robot: the robot.
        track: the same log on a regular grid.
        moving: joints that move enough; the effort of others is left out.
    """
    channel = "effort" if "effort" in track.channels else "current"
    if channel not in track.channels or moving.sum() < 1:
        return
    effort = track.channels[channel]
    if np.isnan(effort).any() or np.isnan(track.channels["position"]).any():
        return
    if log.info.gravity is not None and not np.array_equal(log.info.gravity, robot.gravity):
        robot = robot.with_gravity(log.info.gravity)
    model = _model(robot)
    if not model.unknown:
        return
    rows = rows_of(track, effort)
    rows.keep[:, ~moving] = False
    if rows.keep[:, moving].sum(axis=0).min() < 20 * robot.n_joints:
        return
    shared = channel == "effort"
    names = robot.joint_names
    if shared:
        wrong, model, rows = examine_mistakes(model, rows, moving)
        yield from wrong
        yield from examine_scale(model, rows, moving)
    found_fit = fit(rows, model_columns(model, rows), known_torque(model, rows), shared=shared)
    flipped = shared & moving & (found_fit.friction_power < -_FEEDS)
    flipped &= found_fit.friction_power < -_SIGMAS * found_fit.friction_error
    for joint in np.flatnonzero(flipped):
        power = float(found_fit.friction_power[joint])
        shares: dict[str, Any] = {"of": "effort", "friction_power": power, "fed": -power}
        yield found("sign-flipped", names[joint], confidence=0.95, variant="friction", **shares)
    if flipped.any():
        return
    yield from _poor(names, found_fit, moving)
    yield from _late(names, found_fit, _doubt(track, effort, rows, found_fit), moving, track.step)


@lru_cache(maxsize=4)
def _model(robot: Robot) -> Model:
    """The model, kept for the next log of the same robot: its base parameters take a second to find."""
    return Model(robot)


def _poor(names: tuple[str, ...], fitted: EffortFit, moving: Mask) -> Iterator[Finding]:
    for joint in np.flatnonzero(moving & (fitted.residual > _POOR)):
        share = float(np.sqrt(fitted.residual[joint]))
        yield found("model-misfit", names[joint], confidence=0.7, unexplained=share)


def _doubt(track: Track, effort: Array, rows: FitRows, fitted: EffortFit) -> Array:
    """Uncertainty of each delay: scatter between parts of the log, and error of the model [s].

    The residual is part noise, which averages out and shows in the scatter, and part error of the model, which does
    not. White noise of the level between neighbouring samples leaves 2 cut-off / rate of its power after the low-pass.
    """
    noise = np.array([noise_level(column) for column in effort.T])
    passed = noise**2 * 2.0 * rows.cutoff_hz / track.rate_hz
    pairs = zip(rows.effort.T, rows.keep.T, strict=True)
    power = np.array([np.var(column[keep]) if keep.any() else 0.0 for column, keep in pairs])
    wrong = np.clip(1.0 - passed / np.maximum(fitted.residual * power, 1e-300), 0.05, 1.0)
    return np.asarray(np.sqrt(fitted.delay_error_s**2 + _DOUBT**2 * wrong * fitted.delay_doubt_s**2))


def _late(names: tuple[str, ...], fitted: EffortFit, doubt: Array, moving: Mask, step: float) -> Iterator[Finding]:
    """One finding if all joints agree on a delay, otherwise one for each joint that is late."""
    usable = moving & (fitted.residual < _POOR)
    least = max(_LEAST_S, 0.5 * step)
    weight = np.where(usable, 1.0 / np.maximum(doubt, 1e-9) ** 2, 0.0)
    if not weight.sum() > 0.0:
        return
    mean = float(weight @ fitted.delay_s / weight.sum())
    scatter = float(weight @ (fitted.delay_s - mean) ** 2 / weight.sum() / max(usable.sum() - 1, 1))
    error = float(np.sqrt(max(1.0 / float(weight.sum()), scatter)))
    agree = bool((np.abs(fitted.delay_s - mean) < 3.0 * doubt)[usable].all())
    if agree and abs(mean) > max(least, _SURE * error):
        only = names[int(np.argmax(usable))] if usable.sum() == 1 else None
        yield _delay(only, mean, error, {name: float(d) for name, d in zip(names, fitted.delay_s, strict=True)})
        return
    for joint in np.flatnonzero(usable & (np.abs(fitted.delay_s) > np.maximum(least, _ALONE * doubt))):
        yield _delay(names[joint], float(fitted.delay_s[joint]), float(doubt[joint]), {})


def _delay(joint: str | None, delay: float, error: float, by_joint: dict[str, float]) -> Finding:
    return found(
        "effort-delay",
        joint,
        confidence=float(np.clip(1.0 - (2.0 * error / delay) ** 2, 0.5, 0.99)),
        delay_s=delay,
        uncertainty_s=error,
        joints=by_joint,
        whose=joint or "all joints",
        word="late against" if delay > 0.0 else "ahead of",
    )


def examine_scale(model: Model, rows: FitRows, moving: Mask) -> Iterator[Finding]:
    """Effort that is far smaller or larger than the inertias stated by a URDF or MJCF file call for.

    Args:
        model: of the robot; without stated inertias nothing is said.
        rows: motion and joint torque.
        moving: joints to look at.
    """
    if _states_masses(model.robot):
        few = rows.thinned()
        yield from _against_masses(model, Motion(few.q, few.qd, few.qdd), few, moving, _OFF)


def _against_masses(
    model: Model, motion: Motion, rows: FitRows | Effort, moving: Mask, off: float
) -> Iterator[Finding]:
    """Joints without gravity are left out where the effort is large: rotors may multiply what is stated."""
    values, names = stated_inertia(model), model.robot.joint_names
    stated, weight = model.inverse_dynamics(*motion, values), model.gravity_torque(motion.q, values)
    yield from _out_of_scale(names, rows, stated, moving, off, weight)


def _out_of_scale(
    names: Sequence[str],
    rows: FitRows | Effort,
    stated: Array,
    moving: Mask,
    off: float,
    weight: Array | None = None,
    variant: str = "",
) -> Iterator[Finding]:
    """Effort more than `off` times larger or smaller than the stated torque.

    Light joints are left out: their effort is friction and rotors, which descriptions seldom state. Torque is taken
    about its mean, which may be friction too, unless no joint's load changes much.
    """
    most = float(np.sqrt(np.mean(stated**2, axis=0)).max())
    for about_mean in (True, False):
        size, left, effort, alike = _sizes(rows, stated, about_mean)
        heavy = moving & (size > _HEAVY * most) & (left > _LEFT * size)
        if heavy.any():
            break
    ratio = effort / np.maximum(left, 1e-300)
    small = heavy & (ratio * off < 1.0)
    large = heavy & (ratio * alike > off) & (alike > _ALIKE)
    if weight is not None:
        large &= (weight.std(axis=0) if about_mean else np.sqrt(np.mean(weight**2, axis=0))) > _WEIGHT * size
    for far in (small, large):
        if 2 * far.sum() > heavy.sum():
            yield _scaled(None, float(np.median(ratio[far])), variant)
            return
    for joint in np.flatnonzero(small | large):
        yield _scaled(names[int(joint)], float(ratio[joint]), variant)


def _sizes(rows: FitRows | Effort, stated: Array, about_mean: bool) -> Array:
    """Sizes of each joint, (4, joints): that of the stated torque [N m or N], and three without friction.

    These are the stated torque and the effort with what friction could explain taken off, and their correlation; the
    mean is friction's too, or none of it.
    """
    friction = friction_columns(rows.qd)[:, :, 0 if about_mean else 1 :]
    sizes = np.zeros((4, rows.qd.shape[1]))
    with one_blas_thread():
        for joint in range(rows.qd.shape[1]):
            keep = rows.keep[:, joint]
            if keep.sum() < 20:
                continue
            both = np.column_stack([stated[keep, joint], rows.effort[keep, joint]])
            left = both - friction[keep, joint] @ np.linalg.lstsq(friction[keep, joint], both, rcond=None)[0]
            size = np.sqrt(np.mean(left**2, axis=0))
            alike = abs(np.mean(left[:, 0] * left[:, 1])) / max(size[0] * size[1], 1e-300)
            whole = both[:, 0].std() if about_mean else np.sqrt(np.mean(both[:, 0] ** 2))
            sizes[:, joint] = whole, size[0], size[1], alike
    return sizes


def _scaled(name: str | None, ratio: float, variant: str) -> Finding:
    times = 1.0 / max(ratio, 1e-12) if ratio < 1.0 else ratio
    return found(
        "effort-scale",
        name,
        confidence=float(np.clip(1.0 - _OFF / times * 0.5, 0.5, 0.95)),
        variant=variant,
        factor=ratio,
        whose=name or "all joints",
        times=float(f"{times:.1g}"),
        word="smaller" if ratio < 1.0 else "larger",
    )
