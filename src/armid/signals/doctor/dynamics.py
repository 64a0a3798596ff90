"""Effort against the robot's model: late, reversed, exchanged, or of another arm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.signals.doctor.finding import Finding, Where
from armid.signals.doctor.fit import Fit, Rows, fit, known_torque, model_columns, rows_of
from armid.signals.doctor.motion import Track
from armid.signals.doctor.noise import noise_level
from armid.signals.doctor.scale import examine_scale
from armid.signals.doctor.wiring import Mistake, trials, undone

# Undoing a mistake must divide the product of all joints' mean square residuals by at least exp(1.5). On clean logs
# the best of a hundred trials gains 0.3; exchanged efforts gain 10 and more.
_GAIN = 1.5
_ROUNDS = 3  # mistakes that are looked for, one after the other
# Friction that feeds power: this share of the effort's own, and this many standard errors.
_FEEDS, _SIGMAS = 0.1, 5.0
_POOR = 0.16  # mean square residual over variance, from which on the model does not explain the effort
# The doubt in a delay: a model that is wrong by its residual may shift the delay by about half of what the residual is
# worth; and the scatter between parts of the log. Over 70 clean logs of the virtual robot the common delay over its
# doubt has an rms of 0.8, as it should. A common delay must be 3.5 times its doubt; that of a single joint, where the
# error of the model does not average out and several joints are asked, six times.
_DOUBT, _SURE, _ALONE, _LEAST_S = 0.5, 3.5, 6.0, 2e-3

Mask = NDArray[np.bool_]


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
        for _ in range(_ROUNDS):
            found = list(trials(model, rows, moving))
            best, gain = _best(found)
            if best is None:
                break
            yield from _mistaken(best, gain, names)
            rows = undone(rows, best)
        yield from examine_scale(model, rows, moving)
    found_fit = fit(rows, model_columns(model, rows), known_torque(model, rows), shared=shared)
    flipped = shared & moving & (found_fit.friction_power < -_FEEDS)
    flipped &= found_fit.friction_power < -_SIGMAS * found_fit.friction_error
    for joint in np.flatnonzero(flipped):
        yield _feeding(names[joint], float(found_fit.friction_power[joint]))
    if flipped.any():
        return
    yield from _poor(names, found_fit, moving)
    yield from _late(names, found_fit, _doubt(track, effort, rows, found_fit), moving, track.step)


@lru_cache(maxsize=4)
def _model(robot: Robot) -> Model:
    """The model, kept for the next log of the same robot: its base parameters take a second to find."""
    return Model(robot)


def _best(found: list[Mistake]) -> tuple[Mistake | None, float]:
    as_is = found[0]
    best = min(found, key=lambda mistake: mistake.score)
    gain = as_is.score - best.score
    return (best, gain) if gain > _GAIN and best.kind != "none" else (None, 0.0)


def _mistaken(mistake: Mistake, gain: float, names: tuple[str, ...]) -> Iterator[Finding]:
    of = {"both": "all channels", "motion": "position and velocity", "effort": "the effort"}[mistake.of]
    one = mistake.of == "effort"
    sure = float(np.clip(1.0 - np.exp(-gain), 0.5, 0.99))
    factor = np.exp(gain / len(names))
    better = f"{float(f'{factor:.2g}'):.0f}" if factor >= 10.0 else f"{factor:.2g}"
    if mistake.kind == "flip":
        joint = names[mistake.joints[0]]
        yield Finding(
            "sign-flipped",
            "error",
            joint,
            Where(),
            sure,
            f"The model of the robot fits {better} times better (mean square residual per joint) if {of} of "
            f"{joint} {'has' if one else 'have'} the other sign.",
            f"Change the sign of {joint} in the recipe; turning its motion or its effort round may fit alike.",
            {"of": mistake.of, "gain": gain},
        )
        return
    for first, second in (mistake.joints, mistake.joints[::-1]):
        yield Finding(
            "swapped-joints",
            "error",
            names[first],
            Where(),
            sure,
            f"The model of the robot fits {better} times better (mean square residual per joint) if {of} of "
            f"{names[first]} {'is' if one else 'are'} exchanged with {'that' if one else 'those'} of {names[second]}.",
            f"Exchange the columns of {names[first]} and {names[second]} in the recipe.",
            {"of": mistake.of, "with": names[second], "gain": gain},
        )


def _feeding(joint: str, power: float) -> Finding:
    return Finding(
        "sign-flipped",
        "error",
        joint,
        Where(),
        0.95,
        f"Friction of {joint} would feed power into the motion ({-power:.0%} of what its effort turns over).",
        f"Effort and motion of {joint} have opposite signs: change one of them in the recipe.",
        {"of": "effort", "friction_power": power},
    )


def _poor(names: tuple[str, ...], found: Fit, moving: Mask) -> Iterator[Finding]:
    for joint in np.flatnonzero(moving & (found.residual > _POOR)):
        share = float(found.residual[joint])
        yield Finding(
            "model-misfit",
            "warning",
            names[joint],
            Where(),
            0.7,
            f"The model of the robot leaves {np.sqrt(share):.0%} (rms) of the effort of {names[joint]} unexplained, "
            "whatever its parameters.",
            "Check robot, order of joints, zero positions, couplings and kind of effort; or noise exceeds the motion.",
            {"unexplained": float(np.sqrt(share))},
        )


def _doubt(track: Track, effort: Array, rows: Rows, found: Fit) -> Array:
    """Uncertainty of each delay: scatter between parts of the log, and error of the model [s].

    The residual is part noise, which averages out and shows in the scatter, and part error of the model, which does
    not. White noise of the level between neighbouring samples leaves 2 cut-off / rate of its power after the low-pass.
    """
    noise = np.array([noise_level(column) for column in effort.T])
    passed = noise**2 * 2.0 * rows.cutoff_hz / track.rate_hz
    pairs = zip(rows.effort.T, rows.keep.T, strict=True)
    power = np.array([np.var(column[keep]) if keep.any() else 0.0 for column, keep in pairs])
    wrong = np.clip(1.0 - passed / np.maximum(found.residual * power, 1e-300), 0.05, 1.0)
    return np.asarray(np.sqrt(found.delay_error_s**2 + _DOUBT**2 * wrong * found.delay_doubt_s**2))


def _late(names: tuple[str, ...], found: Fit, doubt: Array, moving: Mask, step: float) -> Iterator[Finding]:
    """One finding if all joints agree on a delay, otherwise one for each joint that is late."""
    usable = moving & (found.residual < _POOR)
    least = max(_LEAST_S, 0.5 * step)
    if not usable.any():
        return
    weight = np.where(usable, 1.0 / np.maximum(doubt, 1e-9) ** 2, 0.0)
    mean = float(weight @ found.delay_s / weight.sum())
    scatter = float(weight @ (found.delay_s - mean) ** 2 / weight.sum() / max(usable.sum() - 1, 1))
    error = float(np.sqrt(max(1.0 / float(weight.sum()), scatter)))
    agree = bool((np.abs(found.delay_s - mean) < 3.0 * doubt)[usable].all())
    if agree and abs(mean) > max(least, _SURE * error):
        only = names[int(np.argmax(usable))] if usable.sum() == 1 else None
        yield _delay(only, mean, error, {name: float(d) for name, d in zip(names, found.delay_s, strict=True)})
        return
    for joint in np.flatnonzero(usable & (np.abs(found.delay_s) > np.maximum(least, _ALONE * doubt))):
        yield _delay(names[joint], float(found.delay_s[joint]), float(doubt[joint]), {})


def _delay(joint: str | None, delay: float, error: float, by_joint: dict[str, float]) -> Finding:
    word = "late against" if delay > 0.0 else "ahead of"
    return Finding(
        "effort-delay",
        "warning",
        joint,
        Where(),
        float(np.clip(1.0 - (2.0 * error / delay) ** 2, 0.5, 0.99)),
        f"The effort of {joint or 'all joints'} is {word} the motion by {1e3 * abs(delay):.2g} ± {1e3 * error:.1g} ms.",
        "Shift the effort by this before fitting (step Shift), or low-pass both well below its inverse.",
        {"delay_s": delay, "uncertainty_s": error, "joints": by_joint},
    )
