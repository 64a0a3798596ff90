"""Swevers, Verdonck, De Schutter: Dynamic Model Identification for Industrial Robots; payload of the KUKA KR 15."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import tool_frame
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.fit import Fit, load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.excitation.constraints import ToolBox
from armid.excitation.design import Fourier, design
from armid.excitation.plan import Plan, load_plan
from armid.experiment.settings import Sensors
from armid.figures import Block, Figure, Panel, band, bars, level
from armid.logs.log import Log
from armid.papers.bench import PaperBench, paper_file, published_of, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import motion_figure, tool_path_figure
from armid.papers.stand import Hardness, StandRobot, TorqueCheck, fit_statistics, torque_check
from armid.payload.body import QUANTITIES, undescribed
from armid.payload.estimate import PayloadEstimate
from armid.payload.identify import identify_payload
from armid.robot.inertia import impossibility, pseudo_inertia
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.pipeline import process
from armid.theme import Picture

STAND = stand_of("kr15")
PRINTED = published_of("kr15")
HARD = Hardness(**paper_file("kr15").stand["hardness"])
MOVING = [number - 1 for number in STAND.joints]


@dataclass(frozen=True, eq=False)
class TableThree:
    """Table 3, in the order of `QUANTITIES`: reference from CAD, mean and standard deviation of ten experiments."""

    reference: Array
    mean: Array
    sigma: Array


def table_3(robot: Robot) -> TableThree:
    """Table 3."""
    told, found = (
        {entry["name"]: entry for entry in robot.published[name]["parameters"]}
        for name in ("payload-reference", "payload-mean")
    )
    entries = ((told, "value"), (found, "value"), (found, "std"))
    return TableThree(*(np.array([float(one[name][key]) for name, _ in QUANTITIES]) for one, key in entries))


def virtual_arm(seed: int, *, loaded: bool, hour: int | None = None) -> StandRobot:
    """The arm with friction that Coulomb and viscous friction do not describe; with payload there is more of it."""
    robot = load_robot("kr15")
    return StandRobot(
        robot,
        HARD,
        friction=(STAND.more_coulomb, STAND.more_viscous) if loaded else (1.0, 1.0),
        hour=hour,
        rate_hz=1.0 / STAND.cycle_s,
        seed=seed,
        posture=STAND.posture,
        payload=undescribed(table_3(robot).reference) if loaded else np.zeros(10),
        sensors=Sensors(torque_noise=tuple(STAND.torque_noise), encoder_noise=STAND.encoder_noise),
    )


def arm(bench: PaperBench) -> dict[str, Any]:
    """What is known a priori: links and rotors of the arm without payload, identified like any arm."""
    robot, settings = load_robot("kr15"), STAND.arm
    bench.draw(frames_figure(robot), "frames.png")
    bench.say("trajectory for the arm")
    shape = Fourier(settings.harmonics, settings.period_s)
    plan = _designed(robot, shape, bench.seed, settings.iterations)
    bench.say("arm without payload")
    log = virtual_arm(1000 * bench.seed, loaded=False).run(plan, periods=settings.periods)
    fit = consistent_fit(WeightedLeastSquares().fit(robot, process(log, robot=robot)))
    fit.save(bench.folder / "fit.json")
    bench.compare("arm_error", np.max(fit.residual_rms / fit.noise) if fit.noise is not None else np.nan)
    return {"statistics": fit_statistics(fit)}


def _designed(robot: Robot, shape: Fourier, seed: int, iterations: int, **more: Any) -> Plan:
    about: dict[str, Any] = {"rate_hz": 1.0 / STAND.cycle_s, "noise": tuple(STAND.torque_noise), **more}
    about["checks"] = None  # the paper's limits are those of the joints, and a box for the flange
    return design(robot, shape, seed=seed, iterations=iterations, starts=1, workers=1, **about)


def payload_plan(robot: Robot, number: int, seed: int) -> Plan:
    """One of the plug-in's trajectories: joints 3 to 6, two frequencies, the flange in a small box."""
    flange = tool_frame(robot, np.array([STAND.posture]))[0, :3, 3]
    half = 0.5 * STAND.box_m
    shape = Fourier(tuple(STAND.harmonics[number % len(STAND.harmonics)]), STAND.period_s)
    box = ToolBox(robot, flange - half, flange + half)
    about = {"parameters": "payload", "joints": tuple(STAND.joints), "posture": STAND.posture, "constraints": (box,)}
    return _designed(robot, shape, seed + number, STAND.iterations, **about)


def excitation(bench: PaperBench, *, runs: int) -> dict[str, Any]:
    """Ten trajectories of joints 3 to 6: the fundamental 1/30 Hz and its 20th or 25th harmonic, in a small box."""
    robot = load_robot("kr15")
    plans, paths = [], {}
    for number in range(runs):
        bench.say(f"trajectory {number + 1} of {runs}")
        plan = payload_plan(robot, number, 1000 * bench.seed)
        plan.save(bench.folder / f"plan-{number + 1}.json")
        plans.append(plan)
        times, motion = plan.trajectory.sample(1.0 / STAND.cycle_s)
        if number < 2:
            paths[f"trajectory {number + 1}"] = tool_frame(robot, motion.q)[:, :3, 3]
        if number == 0:
            bench.draw(motion_figure(times, motion, robot, what="KR 15, first payload trajectory"), "motion.png")
    bench.draw(tool_path_figure(paths, what="KR 15, flange during payload trajectories"), "tool-path.png")
    conditions = [plan.conditioning.condition for plan in plans]
    kept = "all" if all(plan.certified for plan in plans) else "NOT ALL"
    bench.compare("parameters", len(plans[0].parameters))
    bench.compare("conditions", max(conditions), box=STAND.box_m, kept=kept)
    return {"condition_numbers": conditions}


def payload(bench: PaperBench, *, runs: int, periods: int) -> dict[str, Any]:
    """Ten experiments with the reference payload, each with its own trajectory: Table 3.

    Each trajectory is driven without the payload as well, in the same hour: errors of the arm's model that both runs
    share then drop out. The paper's own way, the arm's parameters alone, stands beside it.
    """
    robot, fit = load_robot("kr15"), load_fit(bench.folder_of("arm") / "fit.json")
    told = table_3(robot)
    found: list[PayloadEstimate] = []
    alone = []
    for number in range(runs):
        bench.say(f"experiment {number + 1} of {runs}, {periods} periods")
        plan = load_plan(bench.folder_of("design") / f"plan-{number + 1}.json")
        hour = 1000 * bench.seed + 100 + number
        log = virtual_arm(hour, loaded=True).run(plan, periods=periods)
        empty = virtual_arm(hour + 100, loaded=False, hour=hour).run(plan, periods=min(periods, STAND.empty_periods))
        about: dict[str, Any] = {"reference": undescribed(told.reference), "gain": HARD.gain_drift}
        one = identify_payload(fit, log, empty=empty, **about)
        alone.append([quantity.value for quantity in identify_payload(fit, log, **about).quantities])
        one.save(bench.folder / f"payload-{number + 1}.json")
        found.append(one)
    values = np.array([[quantity.value for quantity in one.quantities] for one in found])
    sigmas = np.array([[quantity.sigma for quantity in one.quantities] for one in found])
    bench.draw(table_figure(values, sigmas, told), "table-3.png")
    compare_table(bench, values, told)
    compare_claims(bench, values, told, np.array(alone))
    _compare_other_motion(bench, fit, found[0], log)
    bench.compare("own_intervals", np.mean(np.abs(values - told.reference) <= 1.96 * sigmas))
    return {
        "names": [name for name, _ in QUANTITIES],
        "values": values,
        "sigmas": sigmas,
        "arm_share": [one.arm_share for one in found],
        "rms_with": [[joint.rms_with for joint in one.joints if joint.moved] for one in found],
        "as_in_the_paper": alone,
        "alone": sum(impossibility(one.free) is None for one in found),
    }


def compare_table(bench: PaperBench, values: Array, told: TableThree) -> None:
    """Table 3: distance of the mean from the reference, and spread."""
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    about: dict[str, Any] = {"": [f"{name} [{unit}]" for name, unit in QUANTITIES], "reference": told.reference}
    about |= {"mean": mean, "σ": spread, "published mean": told.mean, "published σ": told.sigma}
    bench.table("table-3", about)
    for i, (name, unit) in enumerate(QUANTITIES):
        paper = float(abs(told.mean[i] - told.reference[i]))
        about = {"name": name, "unit": unit, "mean": mean[i], "paper": told.mean[i], "reference": told.reference[i]}
        error = spread[i] / np.sqrt(len(values))
        bench.compare("away", abs(mean[i] - told.reference[i]), published=paper, error=error, **about)
        bench.compare("spread", spread[i], published=told.sigma[i], name=name, unit=unit)


def compare_claims(bench: PaperBench, values: Array, told: TableThree, alone: Array) -> None:
    """How many reference values lie within 2 σ, as the paper counts and as a mean asks for; accuracy; a real body.

    Args:
        bench: where rows go.
        values: (experiments, quantities).
        told: Table 3.
        alone: the same as `values` with the arm's parameters alone, without empty runs.
    """
    away, spread = np.abs(values.mean(axis=0) - told.reference), values.std(axis=0, ddof=1)
    printed, count, largest = np.abs(told.mean - told.reference), len(values), float(np.max(away / spread))
    paper = PRINTED.largest_distance
    smaller = np.median(told.sigma / spread)
    bench.compare("within", np.sum(away <= 2.0 * spread), largest=largest, paper=paper.in_sigma, smaller=smaller)
    bench.compare(
        "within_mean",
        np.sum(away <= 2.0 * spread / np.sqrt(count)),
        published=np.sum(printed <= 2.0 * told.sigma / np.sqrt(PRINTED.runs)),
        count=count,
        largest=largest * np.sqrt(count),
        paper=paper.in_standard_errors,
    )
    bench.compare("within_published", np.sum(away <= 2.0 * told.sigma))
    other = np.abs(alone.mean(axis=0) - told.reference)
    about = {"published": printed[0] / told.reference[0], "alone": other[0] / told.reference[0]}
    bench.compare("mass", away[0] / told.reference[0], spread=alone[:, 0].std(ddof=1), **about)
    bench.compare("centre", away[1:4].max(), published=printed[1:4].max(), alone=other[1:4].max())
    bodies = [undescribed(one) for one in (values.mean(axis=0), told.mean)]
    ours, theirs = (float(np.linalg.eigvalsh(pseudo_inertia(body))[0]) for body in bodies)
    bench.compare("possible", ours, published=theirs, why=impossibility(bodies[0]) or "possible")


def _compare_other_motion(bench: PaperBench, fit: Fit, first: PayloadEstimate, log: Log) -> None:
    """Fig. 13: the first experiment's payload and friction predict the torque of the last experiment's trajectory."""
    data = process(log, robot=load_robot("kr15"))
    other, bare = torque_check(first.apply(fit), data), torque_check(fit, data)
    shown = TorqueCheck(
        tuple(other.names[j] for j in MOVING),
        other.time,
        other.velocity[:, MOVING],
        other.measured[:, MOVING],
        other.predicted[:, MOVING],
        other.noise[MOVING],
    )
    shown.draw(bench, "torque-validation.png", "KR 15 with payload, another trajectory", validation=True)
    for j in MOVING:
        bench.compare("other_motion", other.rms()[j], joint=j + 1, alone=bare.rms()[j])


def table_figure(values: Array, sigmas: Array, told: TableThree) -> Picture:
    """Each experiment's estimate with its 95 % interval, beside the reference and the published mean and spread.

    Args:
        values: (experiments, quantities).
        sigmas: the same.
        told: Table 3.
    """
    runs, blocks = np.arange(1, len(values) + 1), []
    spread = values.std(axis=0, ddof=1)
    for i, (name, unit) in enumerate(QUANTITIES):
        ends = [0.5, len(values) + 0.5]
        low, high = (np.full(2, told.mean[i] + side * 2.0 * told.sigma[i]) for side in (-1.0, 1.0))
        traces = [
            band("nominal", ends, low, high),
            level(told.reference[i], "nominal"),
            bars("predicted", runs, values[:, i], 1.96 * sigmas[:, i]),
        ]
        corner = f"σ {spread[i]:.2g}, published {told.sigma[i]:g}"
        panel = Panel(unit.replace("^2", "²"), traces, corner=corner, x_range=ends, x_title="experiment")
        blocks.append(Block(name, [[panel]], (120.0,)))
    away = np.abs(values.mean(axis=0) - told.reference) / spread
    return Figure("table-3", blocks, across=3).draw(
        f"KR 15, Table 3: {int(np.sum(away <= 2.0))} of 10 reference values (dashed) are within 2 σ of single "
        f"experiments, which spread {float(np.median(told.sigma / spread)):.2g} times less than the published ones "
        "(grey: mean ± 2 σ)."
    )
