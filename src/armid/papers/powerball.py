"""Memar, Esfahani: Modeling and Dynamic Parameter Identification of the SCHUNK Powerball Arm, by experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import signal

from armid.dynamics.base import random_motion
from armid.dynamics.sensitivity import Sensitivity
from armid.dynamics.views import published
from armid.estimation.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from armid.estimation.single_joint.curves import fit_curve
from armid.estimation.single_joint.friction_fit import FrictionFit, better_law, friction_from_data
from armid.estimation.single_joint.friction_points import friction_points
from armid.estimation.single_joint.pictures import friction_figure, warmup_figure
from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
from armid.excitation.criteria import ConditionAndSigma, conditioning
from armid.excitation.design import Fourier, design
from armid.excitation.fourier import FourierSeries
from armid.excitation.pictures import singular_value_figure
from armid.excitation.plan import load_plan
from armid.experiment.friction_runs import friction_sweep, powerball_speeds
from armid.experiment.settings import Thermal
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.experiment.warm_up import warm_up
from armid.logs.log import Log
from armid.papers import stand
from armid.papers.bench import PaperBench, paper_file, published_of, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import estimates_figure, motion_figure
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.pipeline import process
from armid.torque.model import model_of
from armid.validation.auditing import audit

STAND = stand_of("powerball")
HARD = stand.Hardness(**paper_file("powerball").stand["hardness"])
PRINTED = published_of("powerball")


def model(bench: PaperBench) -> dict[str, Any]:
    """II.A and II.B: frames (Fig. 2), base parameters (12) and (13), what Table 3 can mean (PB-1, PB-2, PB-16)."""
    robot = load_robot("powerball")
    bare = stand.without_friction(robot)
    bench.draw(frames_figure(robot), "frames.png")
    rank = len(model_of(bare).base.kept)
    told = published(model_of(bare), "table-3").identifiable_combinations()
    counts = {
        "equation (12), gear ratios 160 and 100": (rank, 23),
        "equation (12), no rotors": (len(model_of(bare.without_rotors()).base.kept), 19),
        "rank of the paper's 29 columns (gear ratio 1)": (rank_of_29(robot, bench.seed)[0], 19),
        "independent combinations told by Table 3": (told, 19),
        "no zeros, gear ratios 160 and 100": (len(model_of(bare.simplified("none")).base.kept), 40),
    }
    bench.compare("base", rank)
    for what, (count, exact) in counts.items():
        bench.compare("parameters", count, bar=exact, what=what)
    judged = audit(robot, name="table-3", seed=bench.seed)[0]
    why = judged.certificates[0] if judged.certificates else "possible"
    bench.compare("possible", judged.distance_torque or 0.0, why=why, parameters=judged.distance_parameters)
    return {"counts": {what: count for what, (count, _) in counts.items()}, "groups": stand.base_groups(bare)}


def rank_of_29(robot: Robot, seed: int, motion: Any = None) -> tuple[int, float]:
    """Rank of the regressor in the paper's 29 columns, with gear ratio 1, and its condition number as computed."""
    dynamics = published(model_of(stand.without_friction(robot)), "table-3").model
    states = random_motion(robot, 300, np.random.default_rng(seed)) if motion is None else motion
    columns = dynamics.regressor(states.q, states.qd, states.qdd, STAND.columns_29).reshape(-1, len(STAND.columns_29))
    singular = np.linalg.svd(columns, compute_uv=False)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    return rank, float(singular[0] / max(singular[-1], 1e-300))


def warming(bench: PaperBench, *, cycle_s: float, thermal: Thermal | None = None) -> dict[str, Any]:
    """II.C: a sinusoid on joint 4 until its mean torque changes no more (Fig. 3), and friction before and after.

    Args:
        bench: where to work.
        cycle_s: period of the sinusoid.
        thermal: how the grease warms; the stand's by default.
    """
    robot, grease = load_robot("powerball"), thermal or Thermal(**paper_file("powerball").stand["grease"])
    number = int(PRINTED.warm_up.joint)
    arm = stand.StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=bench.seed, thermal=grease)
    bench.say("friction of the cold arm")
    cold = _repeat_sweep(arm, robot, number)
    arm = stand.StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=bench.seed + 1, thermal=grease)
    bench.say("sinusoid until warm")
    run = warm_up(arm, robot, [number], cycle_s=cycle_s)
    fit = fit_warmup(robot.joint_names[number - 1], *cycle_means(run.log, robot, number))
    bench.draw(warmup_figure([fit], "Powerball"), "warm-up.png")
    bench.say("friction of the warm arm, twice")
    first, second = _repeat_sweep(arm, robot, number), _repeat_sweep(arm, robot, number)
    repeat = np.abs(first.torque - second.torque) / np.hypot(first.error, second.error)
    change = (np.abs(cold.torque) - np.abs(first.torque)) / np.abs(first.torque)
    bench.compare("drop", fit.drop, joint=number, sigma=fit.drop_sigma)
    bench.compare("ends", "yes" if run.warm else "no", after=run.log.duration, left=100 * run.left.max())
    bench.compare("time_constant", fit.time_constant, bar=grease.time_constant_s)
    bench.compare("repeat", repeat.max(), speeds=STAND.repeat_speeds)
    bench.compare("cold", 1.0 + change[np.argmax(np.abs(first.speed))])
    if bench.as_printed:  # PB-13: the mean torque of a complete period, literally
        rows, torque = round(cycle_s * STAND.rate_hz), run.log["effort"][:, number - 1]
        signed = torque[: len(torque) // rows * rows].reshape(-1, rows).mean(axis=1)
        bench.compare("signed_mean", np.abs(signed).max() / fit.means.min())
    return {**fit.to_data(), "warm": run.warm, "left": float(run.left.max()), "grease": grease}


def _repeat_sweep(arm: VirtualRobot, robot: Robot, joint: int) -> Any:
    run = friction_sweep(arm, robot, joint, speeds=STAND.repeat_speeds, seconds=STAND.repeat_s)
    return friction_points(run.log, robot, joint)


def friction(bench: PaperBench, *, joints: Sequence[int], seconds: float | None = None) -> dict[str, Any]:
    """II.C: friction of six joints at 18 speeds in both directions, free of gravity (Table 2, Fig. 4 to 6).

    Args:
        bench: where to work.
        joints: which to sweep, from 1 on.
        seconds: of steady motion per speed and direction; the stand's by default.
    """
    robot = load_robot("powerball")
    fits: list[FrictionFit] = []
    mountings = {}
    for joint in joints:
        bench.say(f"joint {joint}, 18 speeds in both directions")
        length = seconds or (STAND.seconds.joint_4 if joint == 4 else STAND.seconds.others)
        about = {"hard": HARD, "rate_hz": STAND.rate_hz, "seed": 1000 * bench.seed + joint}
        fit, mountings[joint] = stand.swept_friction(
            robot, joint, "hyperbolic", speeds=powerball_speeds(), seconds=length, **about
        )
        fits.append(fit)
    upright = ", ".join(str(joint) for joint in joints if mountings[joint] == "as mounted")
    wanted = ", ".join(str(joint) for joint in joints if joint in PRINTED.upright)
    bench.compare("upright", upright, published=wanted)
    compare_friction(bench, fits, robot)
    _compare_laws(bench, fits)
    for first in range(0, len(fits), 2):
        name = "-".join(map(str, joints[first : first + 2]))
        bench.draw(friction_figure(fits[first : first + 2], "the Powerball"), f"friction-{name}.png")
    return {
        "fits": [{"number": joint, **fit.to_data()} for joint, fit in zip(joints, fits, strict=True)],
        "mountings": {str(joint): words for joint, words in mountings.items()},
    }


def compare_friction(bench: PaperBench, fits: Sequence[FrictionFit], robot: Robot) -> None:
    """Table 2: gamma5, gamma1 + gamma3, and the curve, joint by joint; gamma2 and gamma4 count as curve only."""
    truth = truth_of(robot)
    cells: dict[str, list[Any]] = {"joint": [fit.joint for fit in fits]}
    for k in range(1, 6):
        stated = [truth.coefficients[robot.joint_names.index(fit.joint)][f"g{k}"] for fit in fits]
        cells |= {f"γ{k}": [fit.coefficients[f"g{k}"] for fit in fits], f"γ{k}, published": stated}
    bench.table("table-2", cells)
    for fit in fits:
        j = robot.joint_names.index(fit.joint)
        printed, found, speed = truth.coefficients[j], fit.coefficients, fit.points.speed
        curve = truth.friction[j].torque(speed, printed)
        apart = np.max(np.abs(fit.curve(speed) - curve) / fit.standard_error(speed))
        level, names = printed["g1"] + printed["g3"], [f"g{k}" for k in range(1, 6)]
        bench.compare("gamma5", found["g5"], published=printed["g5"], joint=j + 1, sigma=fit.sigma["g5"])
        erratum = "PB-15: the paper lists the steep term second" if j > 3 else ""
        bench.compare("level", found["g1"] + found["g3"], published=round(level, 6), joint=j + 1, erratum=erratum)
        ours, theirs = ([one[name] for name in names] for one in (found, printed))
        about = {"residual": np.sqrt(fit.chi2 / fit.dof), "gammas": ours, "printed": theirs}
        bench.compare("curve", apart, joint=j + 1, **about)


def _compare_laws(bench: PaperBench, fits: Sequence[FrictionFit]) -> None:
    """Two observations of the paper: no Stribeck effect, and Coulomb with viscous friction (15) is not enough."""
    rejected, falling = [], 0
    for fit in fits:
        p = fit.points
        simple = fit_curve("coulomb-viscous", p.speed, p.torque, p.error)
        if better_law(fit.up, simple, len(p)).better:
            rejected.append(fit.joint)
        up = p.part(1.0)
        order = np.argsort(up.speed)
        steps = np.diff(up.torque[order]) / np.hypot(up.error[order][1:], up.error[order][:-1])
        falling += bool(np.any(steps < -4.0))
    bench.compare("falling", falling)
    bench.compare("rejected", len(rejected), published=len(fits), joints=", ".join(rejected))


def excitation(bench: PaperBench, *, starts: int) -> dict[str, Any]:
    """III.B: the exciting trajectory (17) to (20), omega = 2 pi / 10, N = 4 (Fig. 7)."""
    robot, paper = load_robot("powerball"), PRINTED.excitation
    criterion = ConditionAndSigma(*paper_file("powerball").stand["lambda"])
    bare = stand.without_friction(robot)
    bench.say(f"{starts} starts")
    plan = design(
        bare,
        Fourier(paper.harmonics, paper.period_s),
        starts=starts,
        seed=bench.seed,
        rate_hz=STAND.rate_hz,
        criterion=criterion,
        parameters="inertial",
        checks=None,  # the paper's limits are those of the joints
        workers=1,
    )
    plan.save(bench.folder / "plan.json")
    times, motion = plan.trajectory.sample(STAND.rate_hz)
    bench.draw(motion_figure(times, motion, robot, what="Powerball, exciting trajectory"), "motion.png")
    bench.draw(singular_value_figure(plan, bare), "singular-values.png")
    weights, draws = np.ones(robot.n_joints), STAND.draws
    (own, cost), random = stand.against_random(plan, bare, weights, draws=draws, seed=bench.seed, cost=criterion.cost)
    others = {
        "condition_numbers": [one.condition_raw for one, _ in random],
        "sigma_min": [one.sigma_min for one, _ in random],
        "objective": [g for _, g in random],
    }
    bench.compare("cond", own.condition_raw, bar=min(others["condition_numbers"]), draws=draws)
    bench.compare("sigma_min", own.sigma_min, bar=max(others["sigma_min"]), draws=draws)
    bench.compare("objective", cost, bar=min(others["objective"]), draws=draws)
    bench.compare("limits_kept", "kept" if plan.certified else "broken", why="")
    motion = plan.trajectory.sample(plan.rate_hz)[1]
    everything = Sensitivity(model_of(bare), model_of(bare).base.kept, width=0.0).information(motion, weights)
    bench.compare("cond_all", conditioning(everything, len(motion.q)).condition)
    if bench.as_printed:
        rank, as_computed = rank_of_29(robot, bench.seed, motion)
        bench.compare("cond_29", as_computed, rank=rank)
    return {
        "condition_number": own.condition_raw,
        "sigma_min": own.sigma_min,
        "objective": cost,
        "random": others,
        "margins": {margin.quantity: margin.margin for margin in plan.certificate.margins},
        "seconds": plan.seconds,
        "parameters": list(plan.parameters),
    }


def identification(bench: PaperBench, *, periods: int) -> dict[str, Any]:
    """III.C and III.D: base parameters with friction subtracted, verification on a second sinusoid (Fig. 8)."""
    robot = load_robot("powerball")
    bare, plan = stand.without_friction(robot), load_plan(bench.folder_of("R14") / "plan.json")
    known = stand.known_friction([friction_from_data(entry) for entry in bench.earlier["R13"].data["fits"]])
    second = second_sinusoid(robot)
    bench.say(f"{periods} periods of the exciting trajectory")
    log = stand.StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=1000 * bench.seed + 1).run(plan, periods=periods)
    bench.say("second sinusoid")
    other = stand.StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=1000 * bench.seed + 2).run(second, periods=1)
    data, check_data = prepared(log, bare), prepared(other, bare)
    fit = OrdinaryLeastSquares(known_torque=known).fit(bare, data)
    weighted = WeightedLeastSquares(known_torque=known).fit(bare, data)
    fit.save(bench.folder / "fit.json")
    check, better = stand.torque_check(fit, check_data), stand.torque_check(weighted, check_data)
    truth = stand.true_values(bare)
    bench.by_joint("nrms", check.nrms(), raw=check.nrms(raw=True))
    bench.compare("identified", len(fit.names))
    inside = int(np.sum(np.abs(fit.values - truth) < 2.0 * fit.sigma))
    bench.compare("inside", f"{inside} of {len(truth)}")
    bench.compare("weighted", better.nrms())
    judged = stand.fit_statistics(fit)
    stand.statistics_rows(bench, "verification", check.statistics(), judged)
    if bench.as_printed:
        wrong = OrdinaryLeastSquares(known_torque=known).fit(bare, prepared_as_printed(log))
        bench.compare("filters_printed", stand.torque_check(wrong, prepared_as_printed(other)).nrms())
    check.draw(bench, "torque.png", "Powerball, verification", validation=True)
    shown = motion_figure(*second.sample(STAND.rate_hz), robot, what="Powerball, verification motion")
    bench.draw(shown, "motion.png")
    bench.table("table-3", {"": fit.names, "ours": fit.values, "sigma": fit.sigma, "truth": truth})
    what = "Powerball, base parameters"
    bench.draw(estimates_figure(fit.names, fit.values, fit.sigma, what=what, truth=truth), "estimates.png")
    row_s = float(np.median(np.diff(data.time[data.rows])))
    return {
        "nrms": check.nrms(),
        "nrms_unfiltered": check.nrms(raw=True),
        "nrms_weighted": better.nrms(),
        **check.statistics(),
        "statistics": judged,
        "truth": truth,
        "rows_per_second": 1.0 / row_s,
        "decimation": round(STAND.rate_hz * row_s),
    }


def second_sinusoid(robot: Robot) -> FourierSeries:
    """A sinusoid per joint, of 0.05 to 0.083 Hz."""
    one, limits = STAND.second_sinusoid, robot.limits
    base_hz = 1.0 / one.period_s
    reach = np.minimum(
        one.range_share * 0.5 * (limits.upper - limits.lower),
        one.speed_share * limits.velocity / (2.0 * np.pi * base_hz * np.array(one.harmonics)[one.which]),
    )
    phase, rows = np.array(one.phase), np.arange(robot.n_joints)
    sine, cosine = np.zeros((2, robot.n_joints, len(one.harmonics)))
    sine[rows, one.which], cosine[rows, one.which] = reach * np.cos(phase), reach * np.sin(phase)
    return FourierSeries(base_hz, tuple(one.harmonics), sine, cosine, 0.5 * (limits.lower + limits.upper))


def prepared(log: Log, robot: Robot) -> Dataset:
    """Decimated torque, Butterworth on the differentiated measured velocity, the same filter on both sides (PB-17)."""
    return process(log, LowPass(cutoff_hz=STAND.cutoff_hz, measured=True), robot=robot)


def prepared_as_printed(log: Log) -> Dataset:
    """A decimation filter on torque alone, a causal band-pass on acceleration alone: the sides differ (PB-17)."""
    rate_hz, cutoff_hz = STAND.rate_hz, STAND.cutoff_hz
    step = max(1, int(rate_hz / (2.5 * cutoff_hz)))
    torque = signal.decimate(log["effort"], step, axis=0, zero_phase=True)
    rate = np.gradient(log["velocity"], 1.0 / rate_hz, axis=0)
    band = signal.butter(2, [STAND.lowest_hz, cutoff_hz], btype="bandpass", fs=rate_hz, output="sos")
    acceleration = signal.sosfilt(band, rate, axis=0)
    kept = slice(round(2.0 / cutoff_hz * rate_hz) * step, None, step)  # without the filters' start
    q, qd, qdd = (np.ascontiguousarray(one[kept]) for one in (log["position"], log["velocity"], acceleration))
    return Dataset(
        joints=log.joints,
        time=log.time[kept],
        q=q,
        qd=qd,
        qdd=qdd,
        torque=np.ascontiguousarray(torque[len(torque) - len(q) :]),
        rows=np.arange(len(q)),
        gravity=log.info.gravity,
    )
