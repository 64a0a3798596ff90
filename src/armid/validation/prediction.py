"""Torque that a fit predicts for a plan, a log or a data set, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from armid._version import __version__
from armid.arrays import Array
from armid.display import short
from armid.dynamics.model import Motion
from armid.errors import ArmidError, DataShapeError
from armid.estimation.fit import Fit
from armid.excitation.plan import Plan
from armid.excitation.trajectory import Trajectory
from armid.files import plain
from armid.logs.log import Log
from armid.notes import Note, note
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass, Smoothed
from armid.signals.pipeline import Pipeline, process
from armid.signals.preparations import Trim, TrimRest
from armid.signals.problems import plural
from armid.signals.repair import increasing_rows
from armid.signals.steps import Step
from armid.validation.comparison import check_joints, delayed, late_friction

FORMAT = "armid prediction 1"
DEFAULT_RATE_HZ = 150.0
HOLE = 2.5  # steps without a measured position that make a hole


@dataclass(frozen=True, eq=False)
class TorquePrediction:
    """Predicted torque; arrays are (samples, joints) but `time`.

    Attributes:
        joints: names.
        time: [s].
        torque: [N m or N].
        lower, upper: ends of the interval for the model's torque, from the parameters' covariance [N m]; a band where
            a joint stands still.
        sample_lower, sample_upper: ends of the interval for one sample of a new recording: the model's, friction's
            spread between recordings, and what one sample scatters by [N m].
        level: of the intervals.
        residual_rms: error of the fit per joint on its training data, as averaged or filtered for the fit [N m].
        sample_rms: the same for one sample as recorded, without averaging or filtering [N m]; that of the filtered ones
            where the fit does not tell.
        measured: torque that a log or data set holds [N m]; None without.
        source: what was predicted.
        notes: what was left out.
        history: hashes and versions.
    """

    joints: tuple[str, ...]
    time: Array
    torque: Array
    lower: Array
    upper: Array
    sample_lower: Array
    sample_upper: Array
    level: float
    residual_rms: Array
    sample_rms: Array
    measured: Array | None = None
    source: str = ""
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return short(self, self.source, f"{len(self.joints)} joints", self.summary().splitlines()[0])

    def columns(self) -> dict[str, Array]:
        """Named columns: time, then torque, its interval, that of a sample, and measured of each joint."""
        result = {"time": self.time}
        for key in ("torque", "lower", "upper", "sample_lower", "sample_upper", "measured"):
            values = getattr(self, key)
            if values is not None:
                result |= {f"{key}.{joint}": values[:, j] for j, joint in enumerate(self.joints)}
        return result

    def summary(self) -> str:
        """A few lines for people."""
        half, sample = 0.5 * (self.upper - self.lower), 0.5 * (self.sample_upper - self.sample_lower)
        lines = [f"{plural(len(self.time), 'sample')} over {np.ptp(self.time):.4g} s, {self.level:.0%} intervals"]
        width = max(len(name) for name in self.joints)
        for j, name in enumerate(self.joints):
            lines.append(
                f"  {name:<{width}}  torque {self.torque[:, j].min():+.3g} to {self.torque[:, j].max():+.3g} N m, "
                f"model ± {np.median(half[:, j]):.2g} (largest {half[:, j].max():.2g}), one recorded sample "
                f"± {np.median(sample[:, j]):.2g}"
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"format": FORMAT, "armid": __version__, **plain(self)}


def predict(
    fit: Fit, what: Plan | Trajectory | Log | Dataset, *, level: float = 0.95, rate_hz: float | None = None
) -> TorquePrediction:
    """Torque of a motion, with intervals that follow from the parameters' covariance.

    A plan or trajectory is sampled over its duration, and its torque is that which acts at each instant. For a log the
    motion is found as the fit's own pipeline does, without cutting or averaging, at the log's own instants; for a data
    set at its samples. There the torque is the one that would be reported, with the fit's delays. Instants so near to
    an end, or to a hole in the log, that the filter on the positions feels it are left out: accelerations are wrong
    there, and the intervals would not know.

    Args:
        fit: the model.
        what: the motion.
        level: of the intervals.
        rate_hz: at which a plan or trajectory is sampled (default: the plan's rate, 150 Hz for a bare trajectory).
    """
    if not 0.0 < level < 1.0:
        raise ArmidError(f"level is {level:g}; use a share such as 0.95")
    if isinstance(what, Plan):
        check_joints(fit, what.joint_names, "plan")
        return _of_trajectory(fit, what.trajectory, what.rate_hz if rate_hz is None else rate_hz, level, "plan")
    if isinstance(what, Trajectory):
        return _of_trajectory(fit, what, DEFAULT_RATE_HZ if rate_hz is None else rate_hz, level, "trajectory")
    if isinstance(what, Log):
        return _of_log(fit, what, level)
    check_joints(fit, what.joints, "data set")
    measured = what.measured if what.kernel is not None or len(what.torque) != len(what.time) else what.torque
    return _result(fit, what, what.time, level, measured, "data set", what.time)


def _of_trajectory(fit: Fit, trajectory: Trajectory, rate_hz: float, level: float, source: str) -> TorquePrediction:
    if trajectory.joints != fit.robot.n_joints:
        raise DataShapeError(f"the {source} has {trajectory.joints} joints; {fit.robot.name} has {fit.robot.n_joints}")
    time, motion = trajectory.sample(rate_hz)
    found = fit.predict_at_rest(Motion(*(np.ascontiguousarray(array) for array in motion)))
    return _wrapped(fit, time, [found.torque, found.sigma, found.recording], level, source)


def _of_log(fit: Fit, log: Log, level: float) -> TorquePrediction:
    torque = log.info.effort != "none"
    if not torque:
        log = log.with_channels({"effort": np.zeros_like(log["position"])}, effort="joint torque")
    data = process(log, _uncut(fit), robot=fit.robot)
    known = increasing_rows(log.time) & np.isfinite(log.for_joints(fit.robot.joint_names)["position"]).all(axis=1)
    return _result(fit, data, log.time, level, data.measured if torque else None, log.info.source, log.time[known])


def _uncut(fit: Fit) -> Pipeline:
    """The fit's pipeline without cutting; a low-pass in place of averaging."""
    steps = Pipeline.from_data(fit.pipeline)
    kept: list[Step] = [s for s in steps.steps[:-1] if not isinstance(s, Trim | TrimRest)]
    strategy = steps.strategy
    if not isinstance(strategy, LowPass | Smoothed):
        strategy = LowPass(cutoff_hz="auto")
    return Pipeline((*kept, strategy))


def _result(
    fit: Fit, data: Dataset, time: Array, level: float, measured: Array | None, source: str, known: Array
) -> TorquePrediction:
    keep, notes = _settled(data, time, known, fit.delay_s)
    if not keep.any():
        raise ArmidError(f"{source or 'the log'}: is too short to differentiate ({notes[0]}); give a longer one")
    found = fit.predict_at_rest(data.motion)
    torque = found.torque + late_friction(fit, data)
    arrays = [delayed(array, data, fit.delay_s) for array in (torque, found.sigma, found.recording)]
    if measured is not None and len(measured) == len(data.time):
        arrays.append(measured)
    if len(time) != len(data.time) or not np.array_equal(time, data.time):
        arrays = [np.column_stack([np.interp(time, data.time, c) for c in array.T]) for array in arrays]
    return _wrapped(fit, time[keep], [array[keep] for array in arrays], level, source, notes)


def _settled(data: Dataset, time: Array, known: Array, delay_s: Array) -> tuple[NDArray[np.bool_], tuple[Note, ...]]:
    """Instants at which the motion is not touched by an end or a hole, and what to say about the others.

    Args:
        data: the motion.
        time: instants to judge [s].
        known: times at which the positions were measured [s], increasing.
        delay_s: the torque of an instant belongs to a motion so much earlier, per joint [s].
    """
    strategy = Pipeline.from_data(data.pipeline).strategy if data.pipeline else None
    reach = 0 if strategy is None or data.periods else strategy.reach(data.rate_hz)
    if not reach:
        return np.ones(len(time), dtype=bool), ()
    reach_s = reach / data.rate_hz
    first, last = _holes(known)
    keep: NDArray[np.bool_] = np.isfinite(time)
    for delay in np.unique(delay_s):
        moment, slack = time - delay, 1e-6 / data.rate_hz
        place = np.searchsorted(last + reach_s - slack, moment, side="right")  # the hole that is not over yet
        keep &= moment <= first[np.minimum(place, len(first) - 1)] - reach_s + slack
    rows = np.flatnonzero(keep)
    start, end = (int(rows[0]), len(time) - 1 - int(rows[-1])) if len(rows) else (len(time), 0)
    lost = {"samples": int((~keep).sum()), "start": start, "end": end}
    inside = {"inside": lost["samples"] - start - end, "holes": len(first) - 2}
    return keep, (note("validation.left_out", **lost, **inside, reach_s=reach_s),)


def _holes(known: Array) -> tuple[Array, Array]:
    """Last and next measured time around each stretch without any [s], that before and that after the log included."""
    step = np.diff(known)
    holes = np.flatnonzero(step > HOLE * np.median(step)) if len(step) else np.zeros(0, dtype=np.int64)
    first = np.concatenate([[-np.inf], known[holes], known[-1:]])
    return first, np.concatenate([known[:1], known[holes + 1], [np.inf]])


def _sample_rms(fit: Fit) -> Array:
    """Error of one sample as recorded: what is left on training data, and what averaging or filtering took away."""
    taken = fit.history.get("taken_away_rms")
    return np.asarray(np.hypot(fit.residual_rms, np.zeros_like(fit.residual_rms) if taken is None else taken))


def _wrapped(
    fit: Fit, time: Array, arrays: Sequence[Array], level: float, source: str, notes: tuple[Note, ...] = ()
) -> TorquePrediction:
    """The result from torque, its standard deviation, that between recordings, and perhaps measured torque."""
    torque, sigma, recording, *measured = arrays
    factor, scatter = float(norm.ppf(0.5 + 0.5 * level)), _sample_rms(fit)
    reach, sample = factor * sigma, factor * np.sqrt(sigma**2 + recording**2 + scatter**2)
    return TorquePrediction(
        joints=fit.robot.joint_names,
        time=time,
        torque=torque,
        lower=torque - reach,
        upper=torque + reach,
        sample_lower=torque - sample,
        sample_upper=torque + sample,
        level=level,
        residual_rms=fit.residual_rms,
        sample_rms=scatter,
        measured=measured[0] if measured else None,
        source=source,
        notes=notes,
        history={"armid": __version__, "fit_data_sha256": list(fit.history.get("data_sha256", ()))},
    )
