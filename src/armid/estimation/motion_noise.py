"""How noisy positions, velocities and accelerations are after a data set's filters."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.estimation.problem import EstimationError
from armid.experiment.settings import PerJoint, per_joint
from armid.logs.log import Log, LogInfo
from armid.signals.dataset import Dataset
from armid.signals.pipeline import Pipeline


def is_period(dataset: Dataset) -> bool:
    """Whether a data set is one averaged period, whole and not filtered."""
    return dataset.periods >= 2 and dataset.kernel is None and len(dataset.rows) == len(dataset.q)


def motion_noise(
    dataset: Dataset,
    position_noise: PerJoint | None = None,
    given: tuple[float, float, float] | None = None,
) -> Array:
    """Standard deviations of q, qd, qdd [rad, rad/s, rad/s^2] in the rows of a data set, (3, joints).

    Args:
        dataset: the data.
        position_noise: standard deviation of the position [rad]: for an averaged period that of its kept harmonics, as
            `Dataset.position_noise` (the default); for other data that of the raw encoder, where there is no default.
        given: the result for every joint, if it is known.
    """
    joints = dataset.q.shape[1]
    if given is not None:
        return np.tile(np.array(given, dtype=float)[:, None], joints)
    if position_noise is not None:
        noise = np.array(per_joint("position_noise", position_noise, joints))
    elif dataset.position_noise is not None and is_period(dataset):
        noise = np.asarray(dataset.position_noise)
    else:
        raise EstimationError(
            "the noise of the positions is not known: give position_noise [rad] (of the raw encoder), or average at "
            "least two periods"
        )
    result: Array = _periodic(dataset) * noise if is_period(dataset) else _filtered(dataset) * noise
    return result


def kept_harmonics(dataset: Dataset) -> Array:
    """Which harmonics of each joint an averaged period holds, from 0 (the mean) on, (harmonics, joints) of bool."""
    size = np.abs(np.fft.rfft(dataset.q, axis=0))
    kept = size > 1e-9 * np.maximum(size.max(axis=0), 1e-300)
    kept[0] = True
    return np.asarray(kept)


def _periodic(dataset: Dataset) -> Array:
    """White noise on the kept harmonics alone, each of which has its own frequency."""
    kept = kept_harmonics(dataset)
    rate = 2.0 * np.pi * dataset.rate_hz / len(dataset.q) * np.arange(len(kept))[:, None]
    share = 2.0 * kept / (1 + 2 * kept[1:].sum(axis=0))
    return np.array([np.ones(kept.shape[1]), *(np.sqrt(np.sum(share * rate ** (2 * k), axis=0)) for k in (1, 2))])


def _filtered(dataset: Dataset) -> Array:
    """White noise sent through the same pipeline; the kernel that torque and regressor share acts on it too."""
    strategy = Pipeline.of([dict(step) for step in dataset.pipeline]).strategy if dataset.pipeline else None
    if strategy is None or dataset.periods > 0:
        raise EstimationError("the data set does not say how its positions were filtered; give motion_noise")
    white = np.random.default_rng(0).normal(size=(len(dataset.time), 1))
    info = LogInfo(joints=("noise",), effort="joint torque", rate_hz=dataset.rate_hz)
    made = strategy.dataset(Log(dataset.time, {"position": white, "effort": np.zeros_like(white)}, info))
    return np.array([made.at_rows(array).std(axis=0) for array in made.motion])
