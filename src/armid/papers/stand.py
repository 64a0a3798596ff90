"""What the stands of several papers share: arms and their truth, friction sweeps, torque checks, statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armid.arrays import Array
from armid.dynamics.sensitivity import Sensitivity
from armid.estimation.fit import Fit
from armid.estimation.single_joint.friction_fit import FrictionFit, fit_friction
from armid.estimation.single_joint.friction_points import friction_points
from armid.excitation.constraints import prior_values
from armid.excitation.criteria import Conditioning, conditioning
from armid.excitation.pictures import random_like
from armid.excitation.plan import Plan
from armid.experiment.drive import Recording
from armid.experiment.friction_runs import friction_sweep
from armid.experiment.gravity_free import gravity_free
from armid.experiment.settings import DriveLoop, Elasticity, PerJoint, Presliding, Thermal
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.files import plain
from armid.papers.bench import PaperBench
from armid.papers.pictures import torque_figure
from armid.robot.load import load_robot
from armid.robot.parts import Friction
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.known import KnownTorque
from armid.torque.model import model_of
from armid.validation.auditing import audit
from armid.validation.comparison import compare
from armid.validation.metrics import joint_metrics

FIGURES = ("rms", "mse", "correlation", "noise_ratio")  # of every torque check


@cache
def without_friction(robot: Robot) -> Robot:
    """The arm whose friction is no unknown."""
    return replace(robot, friction=(Friction(),) * robot.n_joints)


def with_tool_of_link(robot: Robot, name: str, link: int) -> Robot:
    """The first links of a library robot with the origin of another frame as the tool."""
    return replace(robot, tool=load_robot(name, links=link).joints[link - 1].placement)


def stribeck_arm(robot: Robot, breakaway: float, speed: float, coulomb: PerJoint = 1.0, viscous: float = 1.0) -> Robot:
    """The arm whose true friction is higher at low speed (Stribeck); what is to be estimated stays the same.

    Args:
        robot: with Coulomb and viscous friction as its truth.
        breakaway: static over Coulomb friction.
        speed: Stribeck velocity [rad/s].
        coulomb: factor on the arm's own Coulomb friction, by joint or of all.
        viscous: factor on its viscous friction.
    """
    truth = truth_of(robot)
    coefficients = tuple(
        {"fv": viscous * c["fv"], "fc": k * c["fc"], "fs": breakaway * k * c["fc"], "vs": speed}
        for c, k in zip(truth.coefficients, np.broadcast_to(coulomb, robot.n_joints).tolist(), strict=True)
    )
    laws = (Friction("stribeck"),) * robot.n_joints
    return replace(robot, virtual=replace(truth, friction=laws, coefficients=coefficients))


@dataclass(frozen=True, kw_only=True)
class Hardness:
    """What makes a stand as hard as a real arm, as a paper's file sets it.

    Attributes:
        loop_hz: bandwidth of the position loops.
        coulomb: factor on the arm's own Coulomb friction, by joint or of all.
        breakaway: static over Coulomb friction; 1 for the arm's own friction.
        stribeck_speed: [rad/s].
        presliding: deflection before a joint slides [rad]; 0 lets friction jump.
        ripple: amplitude of the torque that gears add with the angle, by joint or of all [N m].
        per_turn: waves of this ripple per turn of a joint; none for two per turn of its motor (harmonic drives).
        warming: viscous friction of the cold over that of the warm arm, less 1; it falls while the arm moves.
        gain_drift: how much the torque constants of the drives differ from one experiment to the next (temperature);
            standard deviation, as a share.
        elastic_hz: lowest resonance of a joint's gear, by joint or of all; 0 for rigid gears.
    """

    loop_hz: float = 8.0
    coulomb: float | Sequence[float] = 1.0
    breakaway: float = 1.0
    stribeck_speed: float = 0.05
    presliding: float = 0.0
    ripple: float | Sequence[float] = 0.0
    per_turn: Sequence[int] = (2, 7)
    warming: float = 0.0
    gain_drift: float = 0.0
    elastic_hz: float | Sequence[float] = 0.0


class StandRobot(VirtualRobot):
    """The virtual robot on a stand."""

    def __init__(
        self,
        robot: Robot,
        hard: Hardness,
        *,
        friction: tuple[float, float] = (1.0, 1.0),
        hour: int | None = None,
        **more: Any,
    ) -> None:
        """Make the arm for an experiment.

        Args:
            robot: the arm.
            hard: settings of the stand.
            friction: further factors on its Coulomb and viscous friction.
            hour: runs of the same hour share the torque constants of the drives; None for an hour of its own.
            more: of the virtual robot.
        """
        motors = [[2.0 * abs(drive.gear_ratio) for drive in robot.drives]]
        waves = np.array([[turns] * robot.n_joints for turns in hard.per_turn] or motors, dtype=float)
        sizes = np.broadcast_to(hard.ripple, robot.n_joints).tolist()
        ripple = [(j + 1, sizes[j], float(turns)) for row in waves for j, turns in enumerate(row) if sizes[j]]
        resonances = np.broadcast_to(hard.elastic_hz, robot.n_joints).tolist()
        drift = np.random.default_rng([more.get("seed", 0) if hour is None else hour, 7]).normal(size=robot.n_joints)
        self.gain = 1.0 + hard.gain_drift * drift
        if hard.breakaway > 1.0:
            factors = tuple(np.multiply(hard.coulomb, friction[0]) * np.ones(robot.n_joints)), friction[1]
            robot = stribeck_arm(robot, hard.breakaway, hard.stribeck_speed, *factors)
        more.setdefault("thermal", Thermal(excess=hard.warming) if hard.warming else None)
        super().__init__(
            robot,
            loop=DriveLoop(bandwidth_hz=hard.loop_hz),
            presliding=Presliding(deflection=hard.presliding) if hard.presliding else None,
            ripple=ripple,
            elasticity=Elasticity(tuple(resonances)) if any(resonances) else None,
            **more,
        )

    def stream(self, commands: ArrayLike) -> Recording:
        """Drive; torque is read with the torque constants of the hour."""
        recording = super().stream(commands)
        return replace(recording, effort=self.gain * recording.effort)


def true_values(robot: Robot) -> Array:
    """Base parameters of the virtual arm; only comparisons may use them."""
    model = model_of(robot)
    values = dict(zip(model.names, prior_values(model).tolist(), strict=True))
    return np.asarray(model.base.matrix @ np.array([values[name] for name in model.base.names]))


def base_groups(robot: Robot) -> dict[str, str]:
    """Expression of each base parameter."""
    base = model_of(robot).base
    return {name: group.expression for name, group in zip(base.kept, base.groups, strict=True)}


def true_friction(robot: Robot, joint: int, speed: Array) -> Array:
    """Friction of the virtual arm at a joint, counted from 1, joint side [N m]."""
    truth = truth_of(robot)
    return truth.friction[joint - 1].torque(speed, truth.coefficients[joint - 1])


def swept_friction(
    robot: Robot,
    joint: int,
    law: str,
    *,
    hard: Hardness,
    rate_hz: float,
    seed: int,
    per_direction: bool | None = None,
    **sweep: Any,
) -> tuple[FrictionFit, str]:
    """Sweep one joint in a mounting and posture without gravity on it (see `friction_sweep`), and fit a law.

    Returns:
        The fit and the mounting in words.
    """
    posture = gravity_free(robot, joint)
    mounted = robot.with_gravity(posture.gravity)
    arm = StandRobot(mounted, hard, rate_hz=rate_hz, seed=seed)
    points = friction_points(friction_sweep(arm, mounted, joint, **sweep).log, mounted, joint)
    return fit_friction(points, law, per_direction=per_direction), posture.mounting


def known_friction(
    fits: Sequence[FrictionFit], loss: Array | None = None, weight: dict[str, float] | None = None
) -> KnownTorque:
    """Friction found in sweeps and loss in proportion to the load, to be subtracted (sequential identification)."""
    laws = tuple((Friction(fit.law, False, fit.per_direction), fit.coefficients) for fit in fits)
    return KnownTorque(laws, loss, weight)


def against_random(
    plan: Plan, robot: Robot, weights: Array, *, draws: int, seed: int, cost: Callable[[Array, int], Any] | None = None
) -> tuple[tuple[Conditioning, float], list[tuple[Conditioning, float]]]:
    """Conditioning and cost of a designed trajectory, and of random series inside the same limits."""
    sensitivity = Sensitivity(model_of(robot), plan.parameters, width=0.0)

    def judge(series: Any) -> tuple[Conditioning, float]:
        motion = series.sample(plan.rate_hz)[1]
        information = sensitivity.information(motion, weights)
        value = np.nan if cost is None else float(cost(information, len(motion.q))[0])
        return conditioning(information, len(motion.q)), value

    return judge(plan.trajectory), [judge(series) for series in random_like(plan, robot, draws=draws, seed=seed)]


@dataclass(frozen=True, eq=False)
class TorqueCheck:
    """Measured and predicted torque of a motion, (samples, joints), and the figures that papers print of them.

    Attributes:
        names: of the joints.
        time: [s].
        velocity: [rad/s].
        measured, predicted: [N m].
        noise: standard deviation of the measured torque's noise, per joint [N m].
        reversal: samples near a change of direction.
        raw_error: measured less predicted torque before any filter [N m].
    """

    names: tuple[str, ...]
    time: Array
    velocity: Array
    measured: Array
    predicted: Array
    noise: Array
    reversal: NDArray[np.bool_] | None = None
    raw_error: Array | None = None

    def rms(self, where: NDArray[np.bool_] | None = None) -> Array:
        """RMS error per joint over some samples, (samples, joints), or over all [N m]."""
        error = self.measured - self.predicted
        use = np.ones(error.shape, dtype=bool) if where is None else where
        result: Array = np.sqrt(np.sum(np.where(use, error, 0.0) ** 2, axis=0) / np.maximum(use.sum(axis=0), 1))
        return result

    def ratio(self, faster_than: float = -1.0) -> Array:
        """RMS error over noise per joint, of samples at which the joint is faster than a speed [rad/s]."""
        return self.rms(np.abs(self.velocity) > faster_than) / self.noise

    @property
    def peaks(self) -> Array:
        """RMS error near reversals over RMS error elsewhere, per joint."""
        assert self.reversal is not None
        return self.rms(self.reversal) / self.rms(~self.reversal)

    def nrms(self, raw: bool = False) -> Array:
        """RMS error over the standard deviation of the torque, per joint; `raw`: of the unfiltered torque."""
        error = self.raw_error if raw and self.raw_error is not None else self.measured - self.predicted
        result: Array = np.sqrt(np.mean(error**2, axis=0)) / np.std(self.measured, axis=0)
        return result

    def statistics(self) -> dict[str, list[float]]:
        """RMS [N m], MSE [N^2 m^2], correlation ER-16 (18) and RMS over noise of all samples, per joint."""
        each = [
            joint_metrics(name, self.measured[:, j], self.predicted[:, j], self.velocity[:, j], float(self.noise[j]))
            for j, name in enumerate(self.names)
        ]
        found = {key: [float(getattr(one, key)) for one in each] for key in FIGURES}
        # over all samples, as the papers do, not only over those at which the joint moves
        found["noise_ratio"] = [one.rms / level for one, level in zip(each, self.noise, strict=True)]
        return found

    def draw(self, bench: PaperBench, name: str, what: str, *, validation: bool = False) -> None:
        """Save the picture of both torques."""
        noise = None if np.isnan(self.noise).any() else self.noise
        figure = torque_figure(
            self.time, self.measured, self.predicted, self.names, what=what, validation=validation, noise=noise
        )
        bench.draw(figure, name)


def torque_check(fit: Fit, data: Dataset) -> TorqueCheck:
    """The torque of a data set by a fit, filtered alike."""
    found = compare(fit, data)
    noise = np.full(data.q.shape[1], np.nan) if found.noise is None else found.noise
    raw, full = found.raw_measured, found.raw_predicted
    return TorqueCheck(
        fit.robot.joint_names,
        found.time,
        found.velocity,
        found.measured,
        found.predicted,
        noise,
        found.reversal,
        None if raw is None or full is None else raw - full,
    )


def fit_statistics(fit: Fit) -> dict[str, Any]:
    """Values, sigma and relative sigma of the parameters, condition number, and how far from physically consistent."""
    judged = audit(fit)[0]
    found = {
        "parameters": list(fit.names),
        "values": fit.values,
        "sigma": fit.sigma,
        "relative_sigma": fit.sigma / np.maximum(np.abs(fit.values), 1e-12),
        "condition_number": float(fit.identifiability.condition),
        "possible": bool(judged.possible),
        "feasibility_distance": float(judged.distance_parameters),
    }
    return dict(plain(found))


def statistics_rows(
    bench: PaperBench, what: str, torque: dict[str, list[float]], fit: dict[str, Any] | None = None
) -> None:
    """Add the statistics that every reproduction prints as rows; the papers print none of them."""
    for key in FIGURES:
        bench.compare(key, torque[key], what=what)
    if fit is None:
        return
    sigma, relative = fit["sigma"], fit["relative_sigma"]
    worst = int(np.argmax(relative))
    spread = {"count": len(sigma), "largest": relative[worst], "name": fit["parameters"][worst], "sigma": sigma[worst]}
    bench.compare("relative_sigma", float(np.median(relative)), what=what, **spread)
    bench.compare("condition", fit["condition_number"], what=what)
    words = "possible as it is" if fit["possible"] else "plain least squares knows no physics"
    bench.compare("feasibility", fit["feasibility_distance"], what=what, words=words)
