"""Contacts in the external torque: limits that follow the prediction interval, calibrated for a rate of false alarms.

    limit_j = scale_j sigma_j + level_j gate_j + steepness_j fast_j + sum_i inertia_ji stop_i
    sigma_j^2 = c_j0 + c_j1 qd_j^2 + c_j2 qdd_j^2 + c_j3 (sum of the other joints' qdd^2) + friction_j^2

sigma has the shape of the fit's interval, and more where contact-free recordings ask for it. Friction is not the same
every day: how it differs from the fit's is learnt while the arm moves, and taken away; what is not known of it yet is
friction_j. A joint that is slow has a dead zone as wide as its friction, since that may be anything up to its level
(`gate`: 1 while slow, then falling with the observer's time constant). Speeds beyond those of the calibration raise
the limit by as much friction as the joint has per speed (`fast`: the excess), since no recording shows what it is
there, and accelerations beyond, as in an emergency stop, by the inertial torque of the excess (`stop`). The scales
come from exponential tails (peaks over a threshold), and are widened where recordings that were left out may pass them
more often than stated: recordings differ by more than one of them shows, and few of them show little of that. This
finds contacts; it is no safety function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.stats import norm
from scipy.stats import t as student

from armid.arrays import Array, Mask
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.estimation.fit import STANDSTILL, Fit
from armid.files import plain, read_result, write_result
from armid.monitoring.observer import GAIN, STRANGE, Observed, Observer, held, learned
from armid.monitoring.recordings import Samples

FORMAT = "armid limits 3"
BLOCK_S = 1.0  # peaks so far apart are different ones, and so are alarms
TAIL = 0.1  # share of the blocks whose peaks make the tail, at most
NEAR, LEAST_TAIL = 3.0, 50  # times as many peaks as are stated make it, where that is enough of them
LEAST_BLOCKS = 20
SURE = 0.95  # one-sided, of the widening for few recordings
TOLD = 3.0  # false alarms that a calibration must last for to state their rate from what it has seen
STATIC = 1.5  # times the friction at the slowest speeds of the data: what a joint may hold before it moves
OPEN = 0.05  # gate below which a joint moves as the model knows it
USUAL = 0.999  # quantile of speed and acceleration that counts as usual
SELDOM = 0.01  # share of the time in which a recording may accelerate harder than others of its kind
HARDER = 1.5, 4.0  # times the usual acceleration that a motion of the same kind may, and may not, have in any case
LEAST_SHARE = 0.02  # of the friction's level: what it usually does between recordings where the fit does not tell
SETTLED = 1e-3  # what sigma is at least, as a share of the level of friction: of arms without noise


@dataclass(frozen=True, eq=False)
class ContactLimits:
    """What a detector needs beside the observer.

    Attributes:
        joints: names.
        gain: of the observer they were calibrated with [1/s].
        variance: coefficients c of sigma^2, (joints, 4).
        scale: of sigma, (joints,).
        level, slow_speed: dead zone [N m] of joints below this speed [rad/s].
        usual_speed: beyond it a joint is fast [rad/s].
        steepness: friction over speed at the usual speed [N m s/rad].
        usual_acceleration: beyond it an acceleration is a stop [rad/s^2].
        inertia: absolute mass matrix, mean over the calibration, (joints, joints) [kg m^2].
        friction: standard deviations by which friction differs between recordings, (joints, 3): all of it in
            proportion, viscous friction besides [N m s/rad], offset [N m].
        false_alarms: stated rate, of the whole arm [1/h].
        hours: of the calibration.
        left_out: alarms in each recording of the calibration, with limits from the others; by source.
        harder: times the usual acceleration that a recording of the calibration reaches in a hundredth of its time,
            with the usual from the others; the largest of all recordings and joints, but 1.5 to 4.
    """

    joints: tuple[str, ...]
    gain: float
    variance: Array
    scale: Array
    level: Array
    slow_speed: Array
    usual_speed: Array
    steepness: Array
    usual_acceleration: Array
    inertia: Array
    friction: Array
    false_alarms: float
    hours: float
    left_out: dict[str, int] = field(default_factory=dict)
    harder: float = HARDER[0]

    @property
    def extrapolated(self) -> bool:
        """Whether the calibration does not show the rate: up to three alarms in it, or a single recording."""
        return round(self.false_alarms * self.hours) <= TOLD or len(self.left_out) < 2

    @property
    def rate_factor(self) -> float | None:
        """Within which factor the calibration tells the rate in 19 of 20 cases, by the alarms that it is worth.

        None where the rate is extrapolated.
        """
        return None if self.extrapolated else float(np.exp(norm.ppf(0.975) / np.sqrt(self.false_alarms * self.hours)))

    def noise(self, qd: Array, acceleration: Array) -> Array:
        """Variance of the external torque without contact, of known friction, (samples, joints) [N m squared]."""
        return np.asarray(np.einsum("tjk,jk->tj", _features(qd, acceleration), self.variance))

    def sensitivity(self, duration_s: float) -> Array:
        """External torque (joints,) [N m] that is found in 19 of 20 contacts of a duration, moving evenly."""
        rest = np.zeros((1, len(self.joints)))
        sigma = np.sqrt(self.noise(rest, rest)[0])
        return np.asarray((self.scale + 2.0) * sigma / -np.expm1(-self.gain * duration_s))

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, FORMAT, plain(self))


def load_limits(path: str | Path) -> ContactLimits:
    """Read limits that `ContactLimits.save` wrote."""
    found = read_result(path, ContactLimits, "limits", FORMAT, "armid observe -o")
    n = len(found.joints)
    shapes = {"variance": (n, 4), "inertia": (n, n), "friction": (n, 3)}
    speeds = "slow_speed", "usual_speed", "steepness", "usual_acceleration"
    for name in ("variance", "inertia", "friction", "scale", "level", *speeds):
        array = getattr(found, name)
        if array.shape != shapes.get(name, (n,)) or not (np.isfinite(array) & (array >= 0.0)).all():
            raise ArmidError(f"{path}: {name}: must be finite and not below zero; write it again with armid observe -o")
    return found


@dataclass(frozen=True, eq=False)
class Detected:
    """What a detector says, each (samples, joints).

    Attributes:
        torque: external torque, less what is known of the friction of the day [N m].
        limit: beyond which it is a contact [N m].
        sigma: its standard deviation without contact [N m].
        gate: share of the dead zone of friction in the limit: 1 for a slow joint.
        fast: speed beyond the usual [rad/s].
        stop: acceleration beyond the usual [rad/s^2].
        still: whether a joint stands still.
    """

    torque: Array
    limit: Array
    sigma: Array
    gate: Array
    fast: Array
    stop: Array
    still: Mask

    @property
    def over(self) -> Mask:
        """Where the limit is passed."""
        return np.abs(self.torque) > self.limit


class Detector:
    """An observer with limits; a stream sample by sample (`step`), or a recording at once (`run`).

    Attributes:
        observer: of the external torque.
        limits: calibrated ones.
    """

    def __init__(self, fit: Fit, limits: ContactLimits) -> None:
        """Start without a sample."""
        if limits.joints != fit.robot.joint_names:
            raise ArmidError(
                f"the limits are of the joints {', '.join(limits.joints)}; the fit is of "
                f"{', '.join(fit.robot.joint_names)}; calibrate with this fit"
            )
        self.observer, self.limits = Observer(fit, gain=limits.gain), limits
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self.observer.reset()
        self._held: Array | None = None
        usual = self.limits.friction
        self._friction = (np.zeros_like(usual), np.zeros_like(usual), usual[:, :, None] ** 2 * np.eye(3))

    def step(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, dt: float) -> Detected:
        """External torque and limit of the next sample, each (1, joints); see `Detected.over`."""
        rows = (np.atleast_2d(np.asarray(array, dtype=float)) for array in (q, qd, tau))
        return self.run(np.array([dt]), *rows)

    def run(self, dt: ArrayLike, q: Array, qd: Array, tau: Array) -> Detected:
        """External torque and limits of samples (samples, joints), each `dt` (samples,) after the one before."""
        seen = self.observer.run(dt, q, qd, tau)
        return self._judged(np.asarray(dt, dtype=float), qd, seen)

    def _judged(self, dt: Array, qd: Array, seen: Observed, strange: float = STRANGE) -> Detected:
        limits, n = self.limits, qd.shape[1]
        speed, excess = np.abs(qd), np.maximum(np.abs(seen.acceleration) - limits.usual_acceleration, 0.0)
        beyond = np.maximum(speed - limits.usual_speed, 0.0)
        raised = np.hstack([speed < limits.slow_speed, beyond, excess])
        steps = dt if self._held is not None else np.concatenate([[0.0], dt[1:]])
        raised = held(steps, raised, limits.gain, np.zeros(3 * n) if self._held is None else self._held)
        self._held, gate, fast, stop = raised[-1], raised[:, :n], raised[:, n : 2 * n], raised[:, 2 * n :]
        noise = limits.noise(qd, seen.acceleration)
        known = ((gate < OPEN) & (beyond <= 0.0), strange, limits.friction, limits.gain, *self._friction)
        bias, unknown = learned(steps, seen.torque, seen.friction, seen.rubbing, noise, *known)
        sigma = np.sqrt(noise + unknown)
        limit = limits.scale * sigma + limits.level * gate + limits.steepness * fast + stop @ limits.inertia
        return Detected(seen.torque - bias, limit, sigma, gate, fast, stop, seen.still)


def calibrate(
    fit: Fit,
    quiet: Sequence[Sequence[Samples]],
    *,
    false_alarms: float = 10.0,
    gain: float = GAIN,
) -> ContactLimits:
    """ContactLimits from contact-free recordings.

    Args:
        fit: the model.
        quiet: recordings without contact, each in stretches without gaps.
        false_alarms: of the whole arm [1/h].
        gain: of the observer [1/s].
    """
    if not (np.isfinite(false_alarms) and false_alarms > 0.0):
        raise ArmidError(f"the rate of false alarms is {false_alarms:g} per hour; it must be above zero")
    if not quiet:
        raise ArmidError("there is no recording to calibrate on; give contact-free ones (--calibrate)")
    runs = [[_run(fit, stretch, gain) for stretch in recording] for recording in quiet]
    limits = _calibrated(fit, [run for recording in runs for run in recording], false_alarms, gain)
    shares, peaks, hardest = [], [], []  # of the limits that the other recordings give
    for recording in runs:
        others = [run for other in runs if other is not recording for run in other] or recording
        own = Detector(fit, _calibrated(fit, others, false_alarms, gain))
        found = [_judge(own, run) for run in recording]
        shares.append([_score(one, own.limits) / own.limits.scale for one in found])
        stops = np.quantile(np.vstack([one.stop for one in found]), 1.0 - SELDOM, axis=0)
        hardest.append(1.0 + np.max(stops / np.maximum(own.limits.usual_acceleration, 1e-12)))
        peaks.append(_peaks(recording, shares[-1]).max(axis=1))
    for k, recording in enumerate(runs if len(runs) > 1 else ()):
        wider = _wider([peak for other, peak in enumerate(peaks) if other != k], false_alarms)
        name = quiet[k][0].source or "recording"
        limits.left_out[f"{name} ({k + 1})" if name in limits.left_out else name] = sum(
            len(alarm_rows(run.stretch.time, share > wider)) for run, share in zip(recording, shares[k], strict=True)
        )
    harder = float(np.clip(max(hardest), *HARDER))
    return replace(limits, scale=_wider(peaks, false_alarms) * limits.scale, harder=harder)


def alarm_rows(time: Array, over: Mask) -> list[tuple[int, int]]:
    """First and last row of each alarm: limits passed less than a second apart are one."""
    rows = np.flatnonzero(over.any(axis=1))
    if not len(rows):
        return []
    ends = np.flatnonzero(np.diff(time[rows]) > BLOCK_S)
    return list(zip(rows[np.r_[0, ends + 1]].tolist(), rows[np.r_[ends, len(rows) - 1]].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Run:
    """A quiet stretch, what the observer makes of it, and the variance of the fit's interval along it."""

    stretch: Samples
    seen: Observed
    interval: Array
    inertia: Array


def _run(fit: Fit, stretch: Samples, gain: float) -> _Run:
    observer = Observer(fit, gain=gain)
    seen = observer.run(stretch.dt, stretch.q, stretch.qd, stretch.tau)
    some = slice(None, None, max(1, len(stretch.dt) // 2000))
    found = fit.predict(Motion(*(np.ascontiguousarray(a[some]) for a in (stretch.q, stretch.qd, seen.acceleration))))
    interval = found.sigma**2 + fit.residual_rms**2
    where = np.clip(np.searchsorted(np.arange(len(stretch.dt))[some], np.arange(len(stretch.dt)), "right") - 1, 0, None)
    return _Run(stretch, seen, interval[where], np.abs(observer.mass_matrix(stretch.q[some])).mean(axis=0))


def _judge(detector: Detector, run: _Run) -> Detected:
    detector.reset()
    return detector._judged(run.stretch.dt, run.stretch.qd, run.seen)


def _calibrated(fit: Fit, runs: Sequence[_Run], false_alarms: float, gain: float) -> ContactLimits:
    still, level = fit.standstill
    qd, acceleration, interval = (
        np.vstack(parts) for parts in zip(*((r.stretch.qd, r.seen.acceleration, r.interval) for r in runs), strict=True)
    )
    features, joints = _features(qd, acceleration), range(len(level))
    least = np.outer((SETTLED * level) ** 2 + 1e-24, [1.0, 0.0, 0.0, 0.0])
    variance = least + [_not_negative(features[:, j] / interval[:, [j]], np.ones(len(qd))) for j in joints]
    blank = ContactLimits(
        fit.robot.joint_names,
        gain,
        variance,
        np.zeros(len(level)),
        STATIC * level,
        still / STANDSTILL,
        *_steepness(qd, np.vstack([r.seen.friction for r in runs])),
        np.quantile(np.abs(acceleration), USUAL, axis=0),
        np.mean([r.inertia for r in runs], axis=0),
        _shares(fit, runs),
        false_alarms,
        sum(r.stretch.duration for r in runs) / 3600.0,
    )
    blank = replace(blank, friction=_between(fit, blank, runs))
    found = [_judge(Detector(fit, blank), run) for run in runs]
    torque, moving = np.vstack([f.torque for f in found]), np.vstack([f.gate for f in found]) < OPEN
    more = [_beyond(features[moving[:, j], j], variance[j], torque[moving[:, j], j]) for j in joints]
    blank = replace(blank, variance=variance + more)
    scores = [_score(_judge(Detector(fit, blank), run), blank) for run in runs]
    each = _peaks(runs, scores)
    scale = np.maximum(_levels(each, false_alarms), 1.0)
    scale *= _tail(_peaks(runs, [score / scale for score in scores]).max(axis=1), false_alarms)
    return replace(blank, scale=scale)


def _levels(peaks: Array, false_alarms: float) -> Array:
    """What makes the joints' peaks (blocks, joints) alike: frequent ones, whose level is well known, (joints,).

    Where the rate is extrapolated, each joint's own tail tells more, on the safe side.
    """
    if false_alarms * len(peaks) * BLOCK_S / 3600.0 > TOLD:
        return np.asarray(np.quantile(peaks, 1.0 - LEAST_BLOCKS / max(len(peaks), LEAST_BLOCKS / TAIL), axis=0))
    return np.array([_tail(one, false_alarms / peaks.shape[1]) for one in peaks.T])


def _score(found: Detected, limits: ContactLimits) -> Array:
    """External torque beyond dead zones and stops, in standard deviations, (samples, joints)."""
    rest = found.limit - limits.scale * found.sigma
    return np.asarray(np.maximum(np.abs(found.torque) - rest, 0.0) / found.sigma)


def _wider(peaks: Sequence[Array], false_alarms: float) -> float:
    """Factor of the limits that keeps recordings left out of the calibration below the stated rate; at least one.

    The slope of their tail counts with as many standard errors as Student's t is beyond the normal distribution, which
    vanishes with many recordings: these, not their seconds, are independent.
    """
    errors = float(student.ppf(SURE, max(len(peaks) - 1, 1)) - norm.ppf(SURE))
    return max(1.0, _tail(np.concatenate(peaks), false_alarms, errors))


def _between(fit: Fit, limits: ContactLimits, runs: Sequence[_Run]) -> Array:
    """How friction differs between recordings, by one step of expectation maximisation; at least what is assumed."""
    squares = []
    for run in runs:
        detector = Detector(fit, limits)
        detector._judged(run.stretch.dt, run.stretch.qd, run.seen, strange=np.inf)
        _, mean, spread = detector._friction
        squares.append(mean**2 + np.diagonal(spread, axis1=1, axis2=2))
    return np.maximum(np.sqrt(np.mean(squares, axis=0)), limits.friction)


def _steepness(qd: Array, friction: Array) -> tuple[Array, Array]:
    """Usual speed, and friction over speed of the samples beyond it, (joints,) each."""
    speed = np.abs(qd)
    usual = np.quantile(speed, USUAL, axis=0)
    top = speed >= usual
    return usual, np.sum(np.abs(friction) * top, axis=0) / np.maximum(np.sum(speed * top, axis=0), 1e-12)


def _shares(fit: Fit, runs: Sequence[_Run]) -> Array:
    """What friction usually does between recordings, in proportion to what it is in these, (joints, 3)."""
    friction = np.mean([np.abs(run.seen.friction).mean(axis=0) for run in runs], axis=0)
    coulomb, viscous, _ = usual_friction(fit).T
    share = np.divide(coulomb, friction, out=np.zeros_like(coulomb), where=friction > 0.0)
    return np.column_stack([share, viscous, np.zeros_like(share)])  # an offset is what a long contact looks like


def usual_friction(fit: Fit) -> Array:
    """Standard deviations by which Coulomb and viscous friction and offset differ between recordings, (joints, 3)."""
    known = np.zeros((fit.robot.n_joints, 3)) if fit.recording is None else fit.recording
    return np.maximum(known, LEAST_SHARE * fit.standstill[1][:, None] + 1e-3)


def _features(qd: Array, acceleration: Array) -> Array:
    """Terms of sigma^2, (samples, joints, 4)."""
    squared = acceleration**2
    others = squared.sum(axis=1, keepdims=True) - squared
    return np.stack([np.ones_like(qd), qd**2, squared, others], axis=2)


def _beyond(features: Array, shape: Array, torque: Array) -> Array:
    """Coefficients of variance that recordings without contact ask for beyond the shape of the fit's interval."""
    known = features @ shape
    return _not_negative(features / known[:, None], torque**2 / known - 1.0)


def _not_negative(matrix: Array, wanted: Array) -> Array:
    """Least squares without negative coefficients, from the normal equations: few columns, many rows."""
    size = np.sqrt(np.maximum(np.einsum("ij,ij->j", matrix, matrix), 1e-300))
    gram = (matrix.T @ matrix) / np.outer(size, size) + 1e-12 * np.eye(len(size))
    root = np.linalg.cholesky(gram).T
    return np.asarray(nnls(root, np.linalg.solve(root.T, matrix.T @ wanted / size))[0] / size)


def _peaks(runs: Sequence[_Run], scores: Sequence[Array]) -> Array:
    """Largest score of each joint in each block of a second, (blocks, joints)."""
    result = []
    for run, score in zip(runs, scores, strict=True):
        age = run.stretch.time - run.stretch.time[0]
        block = np.minimum(age // BLOCK_S, max(age[-1] // BLOCK_S - 1.0, 0.0)).astype(np.int64)
        peaks = np.zeros((block[-1] + 1, score.shape[1]))
        np.maximum.at(peaks, block, score)
        result.append(peaks)
    return np.vstack(result)


def _tail(peaks: Array, rate: float, errors: float | None = None) -> float:
    """Level that peaks pass `rate` times an hour: an exponential tail, whose own uncertainty counts (Lomax).

    Its slope counts with `errors` standard errors; with two, unless stated, where the level would have been passed
    fewer than three times, so that nothing but the tail's shape tells it: rather too few alarms than too many.

    Raises:
        ArmidError: there are too few peaks.
    """
    if len(peaks) < LEAST_BLOCKS:
        raise ArmidError(
            f"the contact-free recordings last {len(peaks)} s (where there are several, without the one that they "
            f"judge); give at least {LEAST_BLOCKS} s"
        )
    wanted = rate * len(peaks) * BLOCK_S / 3600.0
    threshold = float(np.quantile(peaks, 1.0 - min(TAIL, max(NEAR * wanted, LEAST_TAIL) / len(peaks))))
    excess = peaks[peaks > threshold] - threshold
    if not len(excess):
        return threshold
    errors = (0.0 if wanted >= TOLD else 2.0) if errors is None else errors
    slope = excess.mean() * (1.0 + errors / np.sqrt(len(excess)))
    return float(threshold + len(excess) * slope * np.expm1(max(np.log(len(excess) / wanted), 0.0) / len(excess)))


def describe(limits: ContactLimits) -> dict[str, Any]:
    """For JSON: per joint, for a joint that moves evenly."""
    even = np.zeros((1, len(limits.joints)))
    return {
        name: {"limit": limit, "sensitivity_100ms": least, "dead_zone": zone, "slow_speed": speed}
        for name, limit, least, zone, speed in zip(
            limits.joints,
            limits.scale * np.sqrt(limits.noise(even, even)[0]),
            limits.sensitivity(0.1),
            limits.level,
            limits.slow_speed,
            strict=True,
        )
    }
