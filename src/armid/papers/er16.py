"""Ding, Wu, Yao, Yang: Dynamic Model Identification for 6-DOF Industrial Robots (ER-16), experiment by experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import tool_frame
from armid.dynamics.model import Model
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.estimation.box_search import BeeColony, BoxSearch, DifferentialEvolution, Objective, published_box
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.mixed import MixedEffects
from armid.excitation.constraints import ToolBox, TorqueLimit, prior_values
from armid.excitation.criteria import AOptimal, Conditioning, conditioning
from armid.excitation.design import Fourier, design
from armid.excitation.fourier import FourierSeries
from armid.excitation.plan import Plan
from armid.excitation.profiles import Er16Reading, er16_beta_1, er16_beta_2, er16_readings
from armid.excitation.trajectory import Trajectory
from armid.experiment.settings import Sensors, Thermal
from armid.logs.log import Log
from armid.papers import stand
from armid.papers.bench import PaperBench, paper_file, published_of, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import evolution_figure, flow_figure, motion_figure, tool_path_figure
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals import FourierFit
from armid.signals.dataset import Dataset
from armid.signals.filters import smooth, smoothing_kernel
from armid.signals.pipeline import process
from armid.signals.preparations import Hampel
from armid.torque.model import model_of
from armid.validation.auditing import audit
from armid.validation.metrics import correlation

STAND = stand_of("er16")
HARD = stand.Hardness(**paper_file("er16").stand["hardness"])
PRINTED = published_of("er16")
Box = Mapping[str, tuple[float, float]]


@cache
def er16_arm() -> Robot:
    """Three links without rotors, whose inertias the paper compensates beforehand; the tool is frame 4's origin."""
    return stand.with_tool_of_link(load_robot("er16", rotors=False), "er16", 4)


def model(bench: PaperBench) -> dict[str, Any]:
    """2 and 4.1: link frames (Fig. 3, Table 1), minimal parameters, and whether Table 2 can be."""
    robot = er16_arm()
    bench.draw(frames_figure(load_robot("er16", links=6)), "frames.png")
    kept = model_of(robot).base.kept
    friction = sum(name.startswith(("fc", "fv")) for name in kept)
    claim = audit(robot, name="table-2")[0]
    bench.compare("base", len(kept) - friction)
    bench.compare("friction", friction)
    bench.compare("identifiable", published(model_of(robot), "table-2").identifiable_combinations())
    bench.compare("possible", claim.distance_parameters, indefinite=100 * (claim.indefinite or 0))
    bench.notes.extend(str(certificate) for certificate in claim.certificates)
    return {"groups": stand.base_groups(robot)}


def excitation(bench: PaperBench, *, starts: int, constrained: bool) -> dict[str, Any]:
    """3.2: the optimal trajectory (15) against the published beta_1 (Fig. 4 and 5).

    Args:
        bench: where to work.
        starts: of the search.
        constrained: keep the tool inside the space and the torques inside the peaks that beta_1 uses, too.
    """
    robot = er16_arm()
    best = {order: er16_beta_1(Er16Reading(order)) for order in ("q0,a,b", "q0,b,a")}
    theirs = {order: condition_of(robot, series) for order, series in best.items()}
    bench.say("designing a trajectory inside the limits that beta_1 uses")
    plan = _better_than(robot, best["q0,a,b"], starts, constrained, bench)
    plan.save(bench.folder / "plan.json")
    ours = condition_of(robot, plan.trajectory)
    bench.compare("raw", ours.condition_raw, published=min(one.condition_raw for one in theirs.values()))
    bench.compare("scaled", ours.condition, published=min(one.condition for one in theirs.values()))
    bench.compare("kept", plan.certified, margin=min(m.margin for m in plan.certificate.margins))
    bench.compare("sigma_min", ours.sigma_min, published=theirs["q0,a,b"].sigma_min)
    if bench.as_printed:
        _compare_readings(bench, robot)
    times = np.linspace(0.0, plan.trajectory.duration, 1000)
    shown = {"β1 as published": best["q0,a,b"], "ours": plan.trajectory}
    for file, what, series in (
        ("motion-beta-1.png", "ER-16, published excitation β1", best["q0,a,b"]),
        ("motion-optimal.png", "ER-16, new excitation", plan.trajectory),
    ):
        bench.draw(motion_figure(times, series.at(times), robot, what=what), file)
    tools = {name: tool_frame(robot, series.at(times).q)[:, :3, 3] for name, series in shown.items()}
    bench.draw(tool_path_figure(tools, what="ER-16, excitation"), "tool-path.png")
    return {"optimal": ours, "beta_1": theirs, "certified": plan.certified}


def condition_of(robot: Robot, series: Trajectory) -> Conditioning:
    """Conditioning of all 21 columns along one period."""
    names, samples = model_of(robot).base.kept, STAND.design_samples
    motion = series.at(np.arange(samples) * series.duration / samples)
    columns = Model(robot).regressor(*motion, names).reshape(-1, len(names))
    return conditioning(columns.T @ columns / samples, samples)


def _better_than(robot: Robot, series: FourierSeries, starts: int, constrained: bool, bench: PaperBench) -> Plan:
    """An A-optimal trajectory inside everything that `series` uses."""
    used, (_, motion) = series.extrema(), series.sample(150.0)
    bounds = {name: getattr(used, name) for name in ("lower", "upper", "velocity", "acceleration")}
    dynamics = Model(robot)
    values = prior_values(dynamics)
    peak = np.abs(dynamics.inverse_dynamics(*motion, values)).max(axis=0)
    tool = tool_frame(robot, motion.q)[:, :3, 3]
    space = ToolBox(robot, tool.min(axis=0), tool.max(axis=0))
    return design(
        robot,
        Fourier(STAND.harmonics, series.duration),
        criterion=AOptimal(),
        limits=replace(robot.limits, **bounds),
        margin=0.99,
        starts=starts,
        seed=bench.seed,
        progress=lambda now: bench.say(f"start {now.done} of {now.total}, condition number {now.condition:.3g}"),
        checks=None,  # the paper knows no other limits
        constraints=(TorqueLimit(dynamics, values, peak, share=1.0), space) if constrained else (),
    )


def _compare_readings(bench: PaperBench, robot: Robot) -> None:
    """beta_1 is printed with a number missing and without an order: what each reading would be worth."""
    readings = [one for one in er16_readings() if one.period_s == 20.0]
    found = {f"{one.order} ({one.lost} lost)": condition_of(robot, er16_beta_1(one)) for one in readings}
    raw = {name: one.condition_raw for name, one in found.items()}
    least, most = min(raw, key=lambda name: raw[name]), max(raw, key=lambda name: raw[name])
    text = f"{raw[least]:.0f} … {raw[most]:.0f}"
    bench.compare("readings", text, count=len(readings), best=least, worst=most)
    slow = condition_of(robot, er16_beta_1(Er16Reading(period_s=25.0)))
    bench.compare("slow", [slow.condition_raw, slow.condition])


def identification(
    bench: PaperBench, *, seeds: int, long_seeds: int, long_iterations: int, evolve: bool
) -> dict[str, Any]:
    """3.1, 3.3 and 4: 25 s of beta_1, smoothing, Fourier derivatives, bee colony; validation on beta_2.

    Args:
        bench: where to work.
        seeds: starts of the colony with the paper's settings, of which the one of least objective counts.
        long_seeds: of the colony with more iterations.
        long_iterations: their number.
        evolve: run differential evolution beside the colony.
    """
    robot = er16_arm()
    bench.say("driving beta_1 and beta_2")
    paths = {"identification": er16_beta_1(), "validation": er16_beta_2()}
    noise = noise_of(robot, paths["identification"])
    logs = {name: record(robot, path, noise, 10 * bench.seed + k) for k, (name, path) in enumerate(paths.items())}
    sets = {name: prepare(log, robot, paths[name], noise) for name, log in logs.items()}
    data = sets["identification"]
    least = WeightedLeastSquares().fit(robot, data)
    least.save(bench.folder / "fit.json")
    searches = _searches(bench, robot, sets, seeds, long_seeds, long_iterations, evolve)

    for name, one in sets.items():
        paper = getattr(PRINTED.correlation, name)
        bench.by_joint("least_squares", correlations(least, one), published=paper, data=name)
    _compare_searches(bench, searches, long_iterations)
    _compare_parameters(bench, least, searches["as published"].best, robot)
    smooth = MixedEffects().fit(robot, data)
    known = dict(zip(smooth.columns, zip(*smooth.interval(0.95), strict=True), strict=True))
    truth = _truth_of_the_day(robot, logs["identification"])
    held = [low <= true <= high for name, true in truth.items() for low, high in [known[name]]]
    bench.compare("intervals", sum(held))
    judged = stand.fit_statistics(least)
    found = {name: _check(least, one).statistics() for name, one in sets.items()}
    stand.statistics_rows(bench, "least squares", found["identification"], judged)
    _compare_smoothing(bench, logs["identification"], robot, paths["identification"], noise)
    if bench.as_printed:
        _compare_printed(bench, robot, sets, searches["as published"], seeds)
    _draw(bench, robot, least, sets, searches)
    box = box_of_table_3(robot)
    truth = _truth(robot)
    told = ("objective", "identification", "validation")
    outside = [name for name, value in truth.items() if not box[name][0] <= round(value, 6) <= box[name][1]]
    return {
        "torque_noise": noise,
        "least_squares": {"torque": found, **judged},
        "searches": {name: {key: getattr(one, key) for key in told} for name, one in searches.items()},
        "outside_published_box": outside,
        "outside": ", ".join(outside),
    }


def _truth(robot: Robot) -> dict[str, float]:
    return dict(zip(model_of(robot).base.kept, stand.true_values(robot).tolist(), strict=True))


def _truth_of_the_day(robot: Robot, log: Log) -> dict[str, float]:
    """The same with the viscous friction that the grease had during a recording."""
    grease = Thermal(excess=HARD.warming)
    cold = 1.0 - (float(np.mean(log["temperature"])) - grease.ambient) / grease.rise
    viscous = 1.0 + grease.excess * cold
    return {name: value * (viscous if name.startswith("fv") else 1.0) for name, value in _truth(robot).items()}


def noise_of(robot: Robot, path: Trajectory) -> Array:
    """Five per cent of each joint's torque along a trajectory [N m], by a run without noise."""
    start = path.at(np.zeros(1)).q[0]
    log = stand.StandRobot(robot, HARD, rate_hz=200.0, posture=start, sensors=Sensors.perfect()).run(path, settle=0)
    return np.asarray(STAND.noise_share * np.std(log["effort"], axis=0))


def record(robot: Robot, path: Trajectory, noise: Array, seed: int) -> Log:
    """Drive a trajectory with run-in, which it needs (ER-14), and record the 25 s that the paper states."""
    sensors = Sensors(torque_noise=tuple(float(level) for level in noise))
    start, seconds, rate_hz = path.at(np.zeros(1)).q[0], PRINTED.measured_s, PRINTED.rate_hz
    arm = stand.StandRobot(robot, HARD, rate_hz=rate_hz, seed=seed, posture=start, sensors=sensors)
    return arm.run(path, periods=int(np.ceil(seconds / path.duration))).rows(slice(0, round(seconds * rate_hz)))


def prepare(log: Log, robot: Robot, path: Any, noise: Array, passes: int | None = None) -> Dataset:
    """Section 3.3: outliers, smoothing (17) of position and torque, Fourier series by least squares for derivatives."""
    times = STAND.smoothing_passes if passes is None else passes
    mended, _ = Hampel().apply(log, robot)
    smoothed = mended.with_channels({name: smooth(mended[name], times) for name in ("position", "effort")})
    strategy = FourierFit(frequency_hz=path.base_frequency_hz, harmonics=len(path.harmonics))
    left = float(np.sqrt(np.sum(smoothing_kernel(times) ** 2)))
    return replace(process(smoothed, strategy, robot=robot), torque_noise=noise * left)


def _check(fit: Fit, data: Dataset) -> stand.TorqueCheck:
    assert data.torque_noise is not None
    predicted = fit.predict(data.motion, sigma=False).torque[data.rows]
    times = data.time[data.rows] - data.time[0]
    return stand.TorqueCheck(tuple(data.joints), times, data.qd[data.rows], data.torque, predicted, data.torque_noise)


def correlations(fit: Fit, data: Dataset) -> list[float]:
    """(18) per joint; tau_m there is the predicted torque (ER-9)."""
    with one_blas_thread():
        check = _check(fit, data)
        return [correlation(*pair) for pair in zip(check.measured.T, check.predicted.T, strict=True)]


def box_of_table_3(robot: Robot, *, swapped: bool = False) -> dict[str, tuple[float, float]]:
    """The published search range; `swapped` exchanges its rows fc2 and fv2, as they probably were meant (ER-3)."""
    box = published_box(robot, "table-2")
    return {**box, "fc2": box["fv2"], "fv2": box["fc2"]} if swapped else box


@dataclass(frozen=True, eq=False)
class Searches:
    """Several runs of one search that differ in their seed.

    Attributes:
        objective: (9) of each.
        identification: (18) on the identification data, (runs, joints).
        validation: (18) on other data, (runs, joints).
        evolution: best objective after each iteration, (runs, iterations + 1).
        best: the fit with the smallest objective.
    """

    objective: Array
    identification: Array
    validation: Array
    evolution: Array
    best: Fit


def search(
    robot: Robot, sets: Mapping[str, Dataset], kind: Callable[[int], BoxSearch], seeds: Sequence[int]
) -> Searches:
    """Run a search with each seed; the best is fitted."""
    data, one = sets["identification"], kind(seeds[0])
    problem = one.problem(robot, data)
    goal, (low, high) = Objective(problem, one.rows), one.box(problem)
    with one_blas_thread():
        values, curves, _ = zip(*(kind(seed).search(goal, low, high) for seed in seeds), strict=True)
    objective = np.array([curve[-1] for curve in curves])
    best = kind(seeds[int(objective.argmin())]).fit(robot, data)
    longest = max(len(curve) for curve in curves)
    return Searches(
        objective=objective,
        identification=_correlations_of(robot, best.columns, values, sets["identification"]),
        validation=_correlations_of(robot, best.columns, values, sets["validation"]),
        evolution=np.array([np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]),
        best=best,
    )


def _correlations_of(robot: Robot, names: Sequence[str], vectors: Sequence[Array], data: Dataset) -> Array:
    """(18) for each of many parameter vectors, (vectors, joints)."""
    columns = Model(robot).regressor(*data.motion, names)[data.rows]
    with one_blas_thread():
        pairs = (zip(data.torque.T, (columns @ vector).T, strict=True) for vector in vectors)
        return np.array([[correlation(*pair) for pair in each] for each in pairs])


def colony(box: Box, iterations: int | None = None) -> Callable[[int], BoxSearch]:
    """The bee colony with the paper's settings, for a number of iterations (the paper's by default)."""
    paper = PRINTED.colony
    rounds = paper.iterations if iterations is None else iterations
    return lambda seed: BeeColony(bounds=box, seed=seed, colony=paper.bees, limit=paper.limit, iterations=rounds)


def _searches(
    bench: PaperBench,
    robot: Robot,
    sets: Mapping[str, Dataset],
    seeds: int,
    long_seeds: int,
    long_iterations: int,
    evolve: bool,
) -> dict[str, Searches]:
    box, first = box_of_table_3(robot), 1000 * bench.seed
    few = range(first, first + long_seeds)
    plans: dict[str, tuple[Callable[[int], BoxSearch], range]] = {
        "as published": (colony(box), range(first, first + seeds)),
        "long": (colony(box, long_iterations), few),
    }
    if evolve:
        plans["differential evolution"] = (lambda seed: DifferentialEvolution(bounds=box, seed=seed), few)
    found = {}
    for name, (kind, runs) in plans.items():
        bench.say(f"{name}, {len(runs)} seeds")
        found[name] = search(robot, sets, kind, runs)
    return found


def _compare_searches(bench: PaperBench, searches: Mapping[str, Searches], long_iterations: int) -> None:
    """Correlations and objective of the colony with the paper's 50 iterations, beside those of more."""
    paper, longer, short = vars(PRINTED.correlation), searches["long"], searches["as published"]
    chosen = int(short.objective.argmin())  # as anybody would, without a look at other data
    starts, seeds = len(short.objective), len(longer.objective)
    about: dict[str, Any] = {"iterations": long_iterations, "seeds": seeds, "starts": starts}
    for name, theirs in paper.items():
        found = getattr(short, name)
        beside = {"longer": getattr(longer, name).min(axis=0), "low": found.min(axis=0), "high": found.max(axis=0)}
        beside |= {"published": theirs, "share": np.mean(found >= np.array(theirs), axis=0)}
        bench.by_joint("colony", found[chosen], data=name, **beside, **about)
    found = short.objective
    about |= {"longer": longer.objective.max(), "middle": np.median(found), "high": found.max()}
    bench.compare("colony_objective", found[chosen], **about)
    if "differential evolution" in searches:
        evolved = searches["differential evolution"]
        worst = {name: getattr(evolved, name).min(axis=0) for name in paper}
        bench.compare("evolution", evolved.objective.max(), seeds=len(evolved.objective), **worst)


def _compare_parameters(bench: PaperBench, least: Fit, paper: Fit, robot: Robot) -> None:
    """Table 2: our least squares with its uncertainty, the truth, the colony's values, the published ones."""
    columns = (least.values, least.sigma, stand.true_values(robot))
    values, sigma, truth = (dict(zip(least.columns, one, strict=True)) for one in columns)
    bees, names = dict(zip(paper.columns, paper.values, strict=True)), _base_names(robot)
    for row in robot.published["table-2"]["parameters"]:
        own, unit = names[str(row["name"])], str(row.get("unit", "")).replace("^2", "²")
        about = {"name": row["name"], "sigma": sigma[own], "truth": truth[own], "colony": bees[own]}
        about |= {"relative": sigma[own] / max(abs(values[own]), 1e-9)}
        about |= {"erratum": f"; {row['errata']}" if row.get("errata") else ""}
        bench.compare("parameter", values[own], published=row["value"], unit=unit, **about)


def _compare_smoothing(bench: PaperBench, log: Log, robot: Robot, path: Trajectory, noise: Array) -> None:
    """(17) many times: smoother, and at some point wrong, as section 3.3 says."""
    truth, errors = stand.true_values(robot), []
    for passes in STAND.most_passes:
        fit = WeightedLeastSquares().fit(robot, prepare(log, robot, path, noise, passes))
        errors.append(float(np.linalg.norm(fit.values - truth) / np.linalg.norm(truth)))
    spoilt = errors[-1] > 1.5 * errors[0]
    seen = "seen here as well" if spoilt else "not seen here: over five samples at 1 kHz this motion is a cubic"
    bench.compare("smoothing", errors, passes=STAND.most_passes, seen=seen)


def _compare_printed(bench: PaperBench, robot: Robot, sets: Mapping[str, Dataset], plain: Searches, seeds: int) -> None:
    """What Tables 2 and 3 give as printed."""
    swapped = search(robot, sets, colony(box_of_table_3(robot, swapped=True)), range(seeds))
    bench.compare("exchanged", np.median(swapped.objective), plain=np.median(plain.objective))
    names, data = _base_names(robot), sets["identification"]
    values = {names[str(row["name"])]: float(row["value"]) for row in robot.published["table-2"]["parameters"]}
    theirs = replace(plain.best, values=np.array([values[name] for name in plain.best.columns]))
    spread = {"theirs": _check(theirs, data).predicted.std(axis=0), "own": data.torque.std(axis=0)}
    bench.compare("table_2_printed", correlations(theirs, data), **spread)
    left = np.abs(data.torque - _check(plain.best, data).predicted).mean(axis=0)
    bench.compare("not_normalised", left.mean(), normalised=plain.objective.min())


def _base_names(robot: Robot) -> dict[str, str]:
    """For each name of Table 2 the base parameter that it is."""
    view = published(model_of(robot), "table-2")
    base = view.model.base
    columns = [view.model.names.index(name) for name in base.names]
    return {
        entry: base.kept[int(np.argmin(np.abs(base.matrix - row).max(axis=1)))]
        for entry, row in zip(view.entries, view.matrix[:, columns], strict=True)
    }


def _draw(
    bench: PaperBench, robot: Robot, least: Fit, sets: Mapping[str, Dataset], searches: Mapping[str, Searches]
) -> None:
    """Fig. 1 and 6 to 9; a generation of differential evolution takes more trials than an iteration of the colony."""
    for name, data in sets.items():
        for fit, who, file in (
            (searches["as published"].best, "bee colony as published", "colony"),
            (least, "least squares", "least-squares"),
        ):
            what = f"ER-16, {name}, {who}"
            _check(fit, data).draw(bench, f"torque-{name}-{file}.png", what, validation=name == "validation")
    other = sets["validation"]
    times = other.time - other.time[0]
    bench.draw(motion_figure(times, other.motion, robot, what="ER-16, validation motion β2"), "motion-beta-2.png")
    names = {
        "as published": f"bees ({PRINTED.colony.bees} trials per iteration)",
        "long": "bees, longer",
        "differential evolution": "differential evolution (84 trials)",
    }
    curves = {words: searches[name].evolution for name, words in names.items() if name in searches}
    figure = evolution_figure(curves, what="ER-16, objective (9)", published=PRINTED.objective)
    bench.draw(figure, "evolution.png")
    bench.draw(flow_figure(paper_file("er16").stand["colony_steps"], what="ER-16, bee colony (Fig. 1)"), "colony.png")
