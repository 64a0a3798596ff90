"""Drive gains from a known load: logs with and without it, in one weighted, physically consistent estimation.

The arm is identified from the logs without load. If the gain of joint k is off by the share e_k, that fit is off by
D_k e_k (see `armid.estimation.gains`), and a log with the load reads

    torque_j = (1 + e_j) (W_j arm + L_j load) + friction_j + noise.

What the load adds in the units of each drive, its own gain scales; links that several joints see tie gains to each
other, in both logs. All of it is linear, and repeated with torque corrected by what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array
from armid.display import short
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.estimation.fit import Fit
from armid.estimation.identifying import identify
from armid.estimation.linear import inverted, residual_variance
from armid.payload.joint import LoadedProblem, arm_columns, moved_friction, root_of
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.doctor.robot import check_torque
from armid.validation.metrics import REACH

ROUNDS = 3  # of torque corrected by the gains found
WEIGHTS = 4  # rounds of weights from residuals, in each
BEFOREHAND = 0.3  # standard deviation of a gain before it is measured, as a share
TOLD = 0.5  # share of that below which the data tell a gain, or a ratio of gains


@dataclass(frozen=True, eq=False, repr=False)
class GainEstimate:
    """True over stated gain of each drive.

    Attributes:
        joints: names.
        ratio: what the stated gains, or all torque, are to be multiplied by.
        covariance: of the ratios.
        absolute: whether a known load fixed the scale; otherwise only `ratios` between joints mean something.
        fit: the arm with corrected torque.
    """

    joints: tuple[str, ...]
    ratio: Array
    covariance: Array
    absolute: bool
    fit: Fit

    @property
    def sigma(self) -> Array:
        """Standard deviations of the ratios."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def told(self) -> tuple[bool, ...]:
        """Of which joints the data tell the gain; without a load, its ratio to that of `reference`."""
        spread = self.sigma if self.absolute else self.relative()[1]
        return tuple(bool(sigma < TOLD * BEFOREHAND) for sigma in spread)

    @property
    def reference(self) -> int:
        """Joint whose gain the ratios of the others are told best to."""
        c = self.covariance
        spread = np.add.outer(np.diag(c), np.diag(c)) - 2.0 * c
        return int(np.argmin(np.median(spread, axis=1)))

    def relative(self) -> tuple[Array, Array]:
        """Gain of each joint over that of `reference`, and its standard deviation."""
        own, c = self.reference, self.covariance
        variance = np.diag(c) + c[own, own] - 2.0 * c[:, own]
        return self.ratio / self.ratio[own], np.sqrt(np.maximum(variance, 0.0))

    def summary(self) -> str:
        """A table for people."""
        what = "true over stated gain" if self.absolute else f"gain over that of {self.joints[self.reference]}"
        values, sigmas = (self.ratio, self.sigma) if self.absolute else self.relative()
        lines = [f"{self.fit.robot.name}: {what}, 95 % intervals"]
        width = max(map(len, self.joints))
        for name, value, sigma, told in zip(self.joints, values, sigmas, self.told, strict=True):
            words = f"{value:.4f} ± {REACH * sigma:.4f}" if told else "this motion does not tell it"
            lines.append(f"  {name:<{width}}  {words}")
        if not self.absolute:
            lines.append("one log tells ratios of gains alone; for their scale give logs with a known load (--load)")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """One line."""
        return short(self, self.fit.robot.name, " ".join(f"{one:.3f}" for one in self.ratio))

    def to_data(self) -> dict[str, object]:
        """For JSON."""
        values, sigmas = (self.ratio, self.sigma) if self.absolute else self.relative()
        rows = zip(self.joints, values.tolist(), sigmas.tolist(), self.told, strict=True)
        gains = [{"joint": name, "ratio": v, "sigma": s, "told": told} for name, v, s, told in rows]
        reference = None if self.absolute else self.joints[self.reference]
        return {"robot": self.fit.robot.name, "absolute": self.absolute, "reference": reference, "gains": gains}


def identify_gains(
    robot: Robot,
    empty: Sequence[Dataset],
    loaded: Sequence[Dataset] = (),
    load: Array | None = None,
    *,
    load_within: float = 0.01,
) -> GainEstimate:
    """Gains of all drives from logs without and with a known load; without such logs, ratios between joints.

    Args:
        robot: the arm.
        empty: without the load.
        loaded: with it, in units of the same drives.
        load: its ten inertial parameters in the tool frame.
        load_within: standard deviation of its mass, as a share.
    """
    if bool(loaded) != (load is not None):
        raise ArmidError("logs with a load and the load itself belong together; give both or none")
    for one in loaded:
        check_torque(one, robot)
    scale, covariance = np.ones(robot.n_joints), np.zeros((robot.n_joints,) * 2)
    for turn in range(ROUNDS):
        report_progress(f"gains, round {turn + 1}", turn / ROUNDS)
        fit = identify(robot, [_scaled(one, scale) for one in empty])
        known = fit.gain_errors(np.full(robot.n_joints, BEFOREHAND))
        errors, covariance = known.mean, known.covariance
        if load is not None:
            errors, covariance = _with_load(fit, [_scaled(one, scale) for one in loaded], load, load_within)
        scale = scale / (1.0 + np.clip(errors, -0.5, 0.5))
    return GainEstimate(robot.joint_names, scale, covariance * np.outer(scale, scale), load is not None, fit)


def corrected_recipe(data: Mapping[str, object], found: GainEstimate) -> dict[str, object]:
    """A recipe's entries with the gains found and how well they are known."""
    if not found.absolute:
        raise ArmidError("without a known load gains are known up to their scale; give logs with one (--load)")
    joints, result = len(found.joints), dict(data)
    gains = data.get("current_gain")
    if gains is not None:
        each = gains if isinstance(gains, list) and len(gains) == joints else [gains] * joints
        result["current_gain"] = [
            (np.asarray(one, dtype=float) * ratio).tolist() for one, ratio in zip(each, found.ratio, strict=True)
        ]
    else:
        units = dict(data.get("units") or {})  # type: ignore[call-overload]
        if "effort" in units:
            raise ArmidError("the recipe states a unit of effort; correct it by the ratios, or leave it out")
        result["units"] = {**units, "effort": found.ratio.tolist()}
    result["gain_uncertainty"] = found.sigma.round(5).tolist()
    return result


def _scaled(data: Dataset, scale: Array) -> Dataset:
    measured = None if data.measured is None else data.measured * scale
    return replace(data, torque=data.torque * scale, measured=measured)


def _with_load(fit: Fit, data: Sequence[Dataset], load: Array, within: float) -> tuple[Array, Array]:
    """Relative errors of gains and their covariance; see the module's equation."""
    problem, joints, effects = LoadedProblem(fit, data, carried=load), fit.robot.n_joints, fit.gain_effects
    assert effects is not None
    arm, friction = arm_columns(fit)
    factor = problem.factor()
    moved = moved_friction(fit, friction, factor)
    root, _ = root_of(fit.covariance[np.ix_(arm, arm)])
    z, count = root.shape[1], root.shape[1] + 1 + len(moved) + joints
    start = np.append(np.where(np.isin(np.arange(len(fit.names)), moved), 0.0, fit.values), load)
    shared = np.zeros((len(start), count))
    shared[arm, :z] = root
    shared[len(fit.names) :, z] = load
    shared[moved, z + 1 : z + 1 + len(moved)] = np.eye(len(moved))
    shared[arm, -joints:] = -effects[arm]
    rigid = start.copy()
    rigid[friction] = 0.0
    maps = [shared.copy() for _ in range(joints)]
    for joint, own in enumerate(maps):
        own[:, count - joints + joint] += rigid
    known = fit.gain_errors(np.full(joints, BEFOREHAND))
    precision = np.zeros((count, count))
    precision[:z, :z], precision[z, z] = np.eye(z), within**-2.0
    precision[-joints:, -joints:] = np.linalg.inv(known.covariance)
    pull = precision[:, -joints:] @ known.mean
    correlated = np.maximum(1.0 / np.maximum(fit.weights * fit.residual_rms**2, 1e-300), 1.0)
    weights = np.where(np.array(factor.counts) > 0, fit.weights, 0.0)
    with one_blas_thread():
        for _ in range(WEIGHTS):
            matrix, vector = precision + 1e-12 * np.eye(count), pull.copy()
            for joint, (own, columns) in enumerate(zip(maps, factor.columns, strict=True)):
                gram, part = factor.gram(joint), own[columns]
                matrix += weights[joint] * part.T @ gram[:-1, :-1] @ part
                vector += weights[joint] * part.T @ (gram[:-1, -1] - gram[:-1, :-1] @ start[columns])
            inverse = inverted(matrix)
            found = inverse @ vector
            residual = [residual_variance(factor, start + own @ found)[joint] for joint, own in enumerate(maps)]
            weights = np.where(np.array(factor.counts) > 0, 1.0 / (np.array(residual) * correlated), 0.0)
    return found[-joints:], inverse[-joints:, -joints:]
