"""Bompos, Artemiadis, Oikonomopoulos, Kyriakopoulos: the Mitsubishi PA-10 robot arm, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.control.control_model import ControlModel, fit_model, nominal_model
from armid.control.controllers import PID, ComputedTorque, Controller, FeedForward, Gains, choose_gains
from armid.control.reference import Reference, path_reference
from armid.control.track import NoisyDrives, track
from armid.control.tracking import Tracking, TrackingComparison, error_figure, path_figure, torque_figure
from armid.dynamics.model import Model, Motion
from armid.dynamics.views import published
from armid.estimation.fit import Fit, load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.single_joint.curves import FitError, fit_curve
from armid.estimation.single_joint.friction_fit import FrictionFit, better_law, fit_friction, friction_from_data
from armid.estimation.single_joint.load_friction import fit_load_friction
from armid.estimation.single_joint.pictures import friction_figure, load_friction_figure
from armid.excitation.profiles import polynomial_velocity, sinusoidal_velocity
from armid.excitation.tool_path import pa10_figure
from armid.excitation.trajectory import Trajectory
from armid.experiment.drive import Recording, move_to, to_log
from armid.experiment.friction_runs import load_friction_run, pa10_speeds
from armid.experiment.gravity_free import foreseen_values
from armid.experiment.settings import Sensors
from armid.experiment.virtual import truth_of
from armid.logs.log import Log
from armid.papers import stand
from armid.papers.bench import PaperBench, paper_file, published_of, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import estimates_figure, motion_figure
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import process
from armid.torque.friction.law import friction_law

STAND = stand_of("pa10")
HARD = stand.Hardness(**paper_file("pa10").stand["hardness"])
ERRATA = published_of("pa10").friction_errata


def model(bench: PaperBench) -> None:
    """II.A: frames (Fig. 2, Table I), base parameters (16) and the appendix."""
    robot = load_robot("pa10")
    bench.draw(frames_figure(robot), "frames.png")
    bench.compare("standard", len(_rigid(Model(robot).names)))
    bench.compare("base", len(_rigid(Model(robot).base.kept)))
    view = published(Model(robot), "appendix")
    bench.compare("appendix_alone", sum(kind == "alone" for kind in view.classes()))
    bench.compare("appendix_rank", view.identifiable_combinations())
    zeros = frozenset(name for name in robot.zero if not name.endswith("7") or name == "Im7")
    arms = {"with link 7": replace(robot, zero=zeros), "without (13), (14)": robot.simplified("none")}
    for what, arm in arms.items():
        bench.compare("base_of", len(_rigid(Model(arm).base.kept)), what=what)


def _rigid(names: Sequence[str]) -> list[str]:
    return [name for name in names if name[0] in "mI"]


def friction(
    bench: PaperBench, *, joints: Sequence[int], speeds: int, seconds: float, warm_up_s: float
) -> dict[str, Any]:
    """II.B: 14 friction curves with law (18), 0.001 rad/s to 60 % of the speed (Fig. 3 to 5, Table II)."""
    robot = load_robot("pa10")
    fits = []
    for joint in joints:
        bench.say(f"friction sweep of joint {joint}")
        grid = pa10_speeds(float(robot.limits.velocity[joint - 1]), speeds)
        sweep: dict[str, Any] = {"speeds": grid, "seconds": seconds, "warm_up_s": warm_up_s, "per_direction": True}
        sweep |= {"hard": HARD, "rate_hz": STAND.rate_hz, "seed": 100 * bench.seed + joint}
        fit, _ = stand.swept_friction(robot, joint, "double-exponential", **sweep)
        fits.append(fit)
        for sign in (1.0, -1.0):
            _compare_curve(bench, robot, joint, fit, sign)
    for joint, fit in zip(joints, fits, strict=True):
        _compare_laws(bench, joint, fit)
    _coefficient_table(bench, robot, joints, fits)
    together = [fit_friction(fit.points, "double-exponential", per_direction=False) for fit in fits]
    differ = sum(better_law(fit, one, len(fit.points)).better for fit, one in zip(fits, together, strict=True))
    bench.compare("asymmetry", differ, published=len(fits))
    if bench.as_printed:
        _printed_friction(bench, robot)
    ratios = [abs(robot.drives[joint - 1].gear_ratio) for joint in joints]
    bench.draw(friction_figure(fits, "the PA-10", gear_ratios=ratios), "friction.png")
    return {"joints": [fit.to_data() for fit in fits]}


def _compare_curve(bench: PaperBench, robot: Robot, joint: int, fit: FrictionFit, sign: float) -> None:
    """Distance of one of the 14 curves from the truth, at all speeds of the sweep."""
    v = fit.points.part(sign).speed
    true = stand.true_friction(robot, joint, v) + truth_of(robot).load_loss[joint - 1, 1]
    off = np.abs(fit.curve(v) - true)
    bench.compare(
        "curve",
        np.max(off / fit.standard_error(v)),
        joint=joint,
        direction="positive" if sign > 0.0 else "negative",
        off=1e3 * off.max() / abs(robot.drives[joint - 1].gear_ratio),
        share=100 * np.max(off / abs(true)),
        erratum=_erratum(f"{joint}{'+' if sign > 0.0 else '-'}"),
    )


def _coefficient_table(bench: PaperBench, robot: Robot, joints: Sequence[int], fits: Sequence[FrictionFit]) -> None:
    """Table II, motor axis: ours and the published one; f1 to f6 trade with each other, so that curves are compared."""
    stated = robot.published["appendix"]["friction"]["coefficients"]
    columns: dict[str, list[Any]] = {"joint": [f"{j}{sign}" for j in joints for sign in "+-"]}
    for k in range(1, 7):
        ratio = [1.0 if k in (4, 6) else 1.0 / abs(robot.drives[j - 1].gear_ratio) for j in joints]
        sides = [(fit.up.coefficients[f"f{k}"], fit.down.coefficients[f"f{k}"]) for fit in fits]
        columns[f"f{k}"] = [r * value for r, pair in zip(ratio, sides, strict=True) for value in pair]
        columns[f"f{k}, published"] = [float(stated[f"f{k}{side}"][j - 1]) for j in joints for side in "pn"]
    bench.table("table-2", columns)


def _erratum(place: str) -> str:
    return f"; {ERRATA[place]}" if place in ERRATA else ""


def _compare_laws(bench: PaperBench, joint: int, fit: FrictionFit) -> None:
    """Law (18) against Stribeck's in the paper's form, (18) without its second exponential; F-test.

    The virtual arm has Table II, whose f5 and f6 are zero at joint 6: there, (18) is Stribeck's law (PA-9).
    """
    compared = []
    for sign in (1.0, -1.0):
        part = fit.points.part(sign)
        laws = ("double-exponential", "single-exponential")
        full, stribeck = (fit_curve(name, part.speed, part.torque, part.error) for name in laws)
        compared.append(better_law(full, stribeck, len(part)))
    words = "yes" if all(one.better for one in compared) else "no"
    about = {"f": [one.statistic for one in compared], "p": [one.p_value for one in compared]}
    wanted = "no" if str(joint) in ERRATA else "yes"
    bench.compare("law", words, bar=wanted, joint=joint, erratum=_erratum(str(joint)), **about)


def _printed_friction(bench: PaperBench, robot: Robot) -> None:
    """F(-0.001 rad/s) of joint 4 with the printed sign of f6."""
    stated = robot.published["appendix"]["friction"]
    one = {name: float(stated["coefficients"][f"{name}n"][3]) for name in ("f1", "f2", "f3", "f4", "f5", "f6")}
    law, slow = friction_law("double-exponential"), np.array([-0.001])
    wrong = abs(float(law.torque(slow, {**one, "f6": float(stated["printed"]["f6n"][3])})[0]))
    bench.compare("friction_printed", abs(float(law.torque(slow, one)[0])), published=wrong)


def stiffness(bench: PaperBench, *, joints: Sequence[int], seconds: float) -> dict[str, Any]:
    """II.C: torque lost in proportion to the load (Fig. 6, (19)); friction from R6, gravity from the maker's data."""
    robot = load_robot("pa10")
    curves = {fit.joint: fit for fit in map(friction_from_data, bench.earlier["R6"].data["joints"])}
    paper = robot.published["appendix"]["load_loss"]
    values = foreseen_values(Model(robot))  # as the maker states them: those of the virtual arm
    fits = []
    loss = np.zeros((robot.n_joints, 2))
    for joint in joints:
        bench.say(f"loaded strokes of joint {joint}")
        arm = stand.StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=100 * bench.seed + 20 + joint)
        log = load_friction_run(arm, robot, joint, seconds=seconds).log
        curve = curves[robot.joint_names[joint - 1]]

        def table_two(speed: Array, joint: int = joint) -> Array:
            return stand.true_friction(robot, joint, speed)

        try:
            errors = curve.standard_error
            own = fit_load_friction(log, robot, joint, values=values, friction=curve.curve, friction_error=errors)
            known = fit_load_friction(log, robot, joint, values=values, friction=table_two)
        except FitError as error:
            bench.compare("no_load", "no load", joint=joint, error=str(error))
            continue
        fits.append(own)
        a, b = float(paper["slope"][joint - 1]), float(paper["offset"][joint - 1])
        about = {"joint": joint, "sigma": own.slope_sigma}
        if a == 0.0:
            bench.compare("no_slope", abs(own.slope), slope=own.slope, **about)
        else:
            bench.compare("slope", own.slope, published=a, **about)
            about = {"joint": joint, "sigma": known.offset_sigma, "own": own.offset, "own_sigma": own.offset_sigma}
            bench.compare("offset", known.offset, published=b, within=4.0 * known.offset_sigma, **about)
        if own.present:
            loss[joint - 1] = own.slope, own.offset * own.gear_ratio
    bench.draw(load_friction_figure(fits, "PA-10"), "stiffness.png")
    return {"loss": loss.tolist()}


def base_parameters(bench: PaperBench) -> dict[str, Any]:
    """III.B: sinusoidal and polynomial velocity profiles, friction and loss subtracted, 21 base parameters."""
    robot = load_robot("pa10")
    curves = [friction_from_data(entry) for entry in bench.earlier["R6"].data["joints"]]
    motions = [sinusoids(robot, one) for one in STAND.multiples]
    motions += [polynomials(robot, one) for one in STAND.signs]
    sets = []
    for number, motion in enumerate(motions):
        bench.say(f"velocity profile {number + 1} of {len(motions)}")
        log = velocity_run(robot, motion, 100 * bench.seed + 40 + number)
        sets.append(processed(log, stand.without_friction(robot)))
    fit = identified(robot, sets, curves, np.array(bench.earlier["R7"].data["loss"]))
    fit.save(bench.folder / "fit.json")
    bench.compare("base_fitted", len(fit.names))
    for name, true in first_moments(robot).items():
        paper = getattr(published_of("pa10").accuracy, name)
        value, sigma = (float(array[fit.columns.index(name)]) for array in (fit.values, fit.sigma))
        about = {"name": paper.name, "value": value, "sigma": sigma, "true": true}
        bench.compare("moment", 1.0 - abs(value / true - 1.0), published=paper.share, **about)
    names, ours, sigmas, printed = _beside(robot, fit)
    bench.table("appendix", {"": names, "ours": ours, "sigma": sigmas, "published": printed})
    bench.compare("appendix_distance", np.linalg.norm(ours - printed) / np.linalg.norm(printed))
    _verification(bench, robot, fit)
    for motion, words in ((motions[0], "sinusoidal"), (motions[2], "polynomial")):
        t = np.linspace(0.0, motion.duration, 1000)
        bench.draw(motion_figure(t, motion.at(t), robot, what=f"PA-10, {words} velocities"), f"{words}.png")
    about = {"what": "PA-10, appendix", "unit": "kg m, kg m²; rotors g m²"}
    bench.draw(estimates_figure(names, ours, sigmas, published=printed, **about), "base-parameters.png")
    return {"values": dict(zip(fit.names, fit.values.tolist(), strict=True))}


def _verification(bench: PaperBench, robot: Robot, fit: Fit) -> None:
    """Torque of a sinusoid that was not used."""
    bench.say("verification")
    motion = sinusoids(robot, STAND.verification)
    data = processed(velocity_run(robot, motion, 100 * bench.seed + 50), stand.without_friction(robot))
    noise = truth_of(robot).torque_noise / np.sqrt(STAND.periods)
    check = replace(stand.torque_check(fit, data), noise=noise)
    bench.compare("verification", check.ratio(STAND.moving), moving=STAND.moving)
    stand.statistics_rows(bench, "another sinusoid", check.statistics(), stand.fit_statistics(fit))
    check.draw(bench, "verification.png", "PA-10, another sinusoid", validation=True)


def _beside(robot: Robot, fit: Fit) -> tuple[tuple[str, ...], Array, Array, Array]:
    """Names, our values, their sigma and the printed values, in the order of the appendix; rotors in g m^2."""
    view = published(Model(robot), "appendix")
    matrix = view.matrix[:, [view.model.names.index(name) for name in fit.columns]]
    paper = np.array([float(row["value"]) for row in robot.published["appendix"]["parameters"]])
    size = np.array([1e3 if name.startswith("Im") else 1.0 for name in view.entries])
    sigma = np.sqrt(np.diag(matrix @ fit.covariance @ matrix.T))
    return view.entries, size * (matrix @ fit.values), size * sigma, size * paper


def first_moments(robot: Robot) -> dict[str, float]:
    """pi2, pi10 and pi18 of the virtual arm, link 7 included [kg m]."""
    truth = truth_of(robot)
    mass, my, mz = truth.inertia[:, 0], truth.inertia[:, 2], truth.inertia[:, 3]
    d = {length.name: length.value for length in robot.lengths}
    return {f"my{i}": float(my[i - 1] - mz[i] - d[f"d{i + 1}"] * mass[i:].sum()) for i in (2, 4, 6)}


def sinusoids(robot: Robot, multiples: Sequence[int]) -> Trajectory:
    """III.B: sinusoidal velocities about the middle of the ranges, at different multiples of 0.1 Hz."""
    limits, width = robot.limits, 2.0 * np.pi * STAND.base_hz * np.array(multiples, dtype=float)
    reach = STAND.range_share * (limits.upper - limits.lower)
    peak = np.minimum(STAND.speed_share * limits.velocity, 0.5 * reach * width)
    peak = np.minimum(peak, STAND.bend_share * limits.acceleration / width)
    return sinusoidal_velocity(0.5 * (limits.lower + limits.upper) - peak / width, peak, STAND.base_hz, multiples)


def polynomials(robot: Robot, signs: Sequence[int]) -> Trajectory:
    """III.B: bell-shaped polynomial velocities, there and back about the middle of the ranges."""
    limits, stroke_s = robot.limits, STAND.stroke_s
    most = STAND.range_share * (limits.upper - limits.lower) * 15.0 / 8.0 / stroke_s
    peak = np.array(signs) * np.minimum(STAND.speed_share * limits.velocity, most)
    middle = 0.5 * (limits.lower + limits.upper)
    return polynomial_velocity(middle - peak * stroke_s * 4.0 / 15.0, peak, stroke_s, STAND.strokes)


def velocity_run(robot: Robot, motion: Trajectory, seed: int, *, periods: int | None = None) -> Log:
    """Drive velocities in velocity mode, commands and log at 400 Hz.

    The drives go linearly from one command to the next in steps of 0.5 ms. A command that jumps at every cycle would
    show in the torque, which is read at the same instants, as a quarter more inertia than there is.
    """
    rate_hz, steps, resolution = STAND.rate_hz, STAND.interpolated, STAND.encoder_resolution
    sensors = Sensors(encoder_resolution=resolution, velocity_noise=0.1 * resolution * rate_hz)
    arm = stand.StandRobot(robot, HARD, rate_hz=steps * rate_hz, seed=seed, sensors=sensors)
    move_to(arm, motion.at([0.0]).q[0], robot.limits)
    arm.set_mode("velocity")
    one = motion.sample(rate_hz)[1].qd
    commands = np.tile(one, ((periods or STAND.periods) + 1, 1)) if motion.periodic else one
    fine = np.arange(steps * (len(commands) - 1) + 1) / steps
    coarse = np.arange(len(commands))
    recording = arm.stream(np.column_stack([np.interp(fine, coarse, column) for column in commands.T]))
    first = len(one) if motion.periodic else 0  # one period passes until the transient has died out
    kept = slice(steps * first, None, steps)
    thinned = Recording(*(getattr(recording, field.name)[kept] for field in fields(Recording)))
    about = {"period_s": motion.duration} if motion.periodic else {}
    return to_log(arm, thinned, "velocity", {"procedure": "velocity profile"}, rate_hz=rate_hz, **about)


def processed(log: Log, robot: Robot) -> Dataset:
    """Averaged over periods where there are any, else low-passed."""
    return process(log, LowPass() if log.info.period_s is None else PeriodicAverage(), robot=robot)


def identified(robot: Robot, sets: Sequence[Dataset], friction: Sequence[FrictionFit], loss: Array) -> Fit:
    """III.B: base parameters, with friction and load loss known beforehand.

    The load torque of the loss is that of the identified parameters: starting without loss, the estimate is repeated
    until it agrees with the load it was made with.

    Args:
        robot: the arm.
        sets: data.
        friction: of each joint.
        loss: slope and offset [N m] of each joint, joint side (joints, 2).
    """
    weight: dict[str, float] = {}
    for _ in range(STAND.rounds):
        known = stand.known_friction(friction, loss, weight)
        fit = WeightedLeastSquares(known_torque=known).fit(stand.without_friction(robot), sets)
        weight = dict(zip(fit.columns, fit.values.tolist(), strict=True))
    return fit


def tracking(bench: PaperBench, *, runs: int) -> dict[str, Any]:
    """III.C: the tool along (20) with the inverse-dynamics controller (21), against others (Fig. 7 and 8)."""
    robot = load_robot("pa10")
    model = fit_model(load_fit(bench.folder_of("R8") / "fit.json"))
    bench.say("inverse kinematics along (20)")
    reference = path_reference(robot, pa10_figure(), cycle_s=STAND.cycle_s, name="figure (20)")
    gains = choose_gains(model, reference.motion, STAND.cycle_s, noise=truth_of(robot).torque_noise)
    others: list[Controller] = [PID(), FeedForward(model=model), ComputedTorque(model=nominal_model(robot))]
    ours = [tracked(bench, robot, reference, ComputedTorque(model=model), gains, k) for k in range(runs)]
    first = [tracked(bench, robot, reference, controller, gains, 0) for controller in others]
    worst = max(ours, key=lambda run: run.max_joint_error)
    comparison = TrackingComparison(robot.name, "figure (20)", STAND.cycle_s, gains, (*first, worst))
    comparison.save(bench.folder / "tracking.json")
    _compare_claims(bench, ours)
    _compare_controllers(bench, ours, first)
    if bench.as_printed:
        _printed_control(bench, robot, reference, model, gains)
    bench.draw(path_figure(comparison), "path.png")
    bench.draw(error_figure(comparison), "joint-errors.png")
    bench.draw(torque_figure(worst), "torques.png")
    return {
        "runs": [run.figures() for run in (*first, *ours)],
        "gains": gains.to_data(),
        "bandwidth_hz": gains.bandwidth_hz,
        "rule": gains.rule,
    }


def tracked(
    bench: PaperBench, robot: Robot, reference: Reference, controller: Controller, gains: Gains, number: int
) -> Tracking:
    """One run of a controller, with noise on drives and encoders."""
    bench.say(controller.title)
    seed = 100 * bench.seed + 60 + number
    sensors = Sensors(encoder_resolution=STAND.encoder_resolution)
    virtual = stand.StandRobot(robot, HARD, rate_hz=1.0 / STAND.cycle_s, seed=seed, sensors=sensors)
    arm = NoisyDrives(virtual, truth_of(robot).torque_noise, seed=seed + 20)
    return track(arm, robot, reference, controller, gains)


def _compare_claims(bench: PaperBench, runs: Sequence[Tracking]) -> None:
    """What the paper claims, each for the worst of our runs."""
    joints = np.degrees(np.max([run.joint_error for run in runs], axis=0))
    mean = 1e3 * max(run.mean_tool_error for run in runs)
    bench.compare("joint_error", joints.max(), joints=joints, runs=len(runs))
    bench.compare("tool_error", mean)
    bench.compare("tool_literature", mean)
    shares = np.max([run.feedback_rms / run.torque_rms for run in runs], axis=0)
    bench.compare("feedback", max(run.feedback_share for run in runs), shares=shares)
    mean_us = 1e6 * np.mean([run.computing.mean_s for run in runs])
    bench.compare("in_time", min(run.computing.within for run in runs), mean_us=mean_us)


def _compare_controllers(bench: PaperBench, ours: Sequence[Tracking], others: Sequence[Tracking]) -> None:
    """Other controllers over the worst of our runs; one that was broken off counts as a thousand times worse."""
    joint, tool = max(run.max_joint_error for run in ours), max(run.mean_tool_error for run in ours)
    for run in others:
        bar = 5.0 if run.controller == "pid" else None
        note = f"{np.degrees(run.max_joint_error):.2g}°, {1e3 * run.mean_tool_error:.3g} mm"
        if not run.completed:
            note = f"broken off after {run.time[-1]:.2g} s"
        for key, one, other in (("over_tool", run.mean_tool_error, tool), ("over_joint", run.max_joint_error, joint)):
            bench.compare(key, one / other if np.isfinite(one) else 1000.0, bar=bar, title=run.title, note=note)


def _printed_control(bench: PaperBench, robot: Robot, reference: Reference, model: ControlModel, gains: Gains) -> None:
    """Equation (21) as it is printed: a matrix C among vectors, F and S at the motor's axis."""

    def row_sums(motion: Motion) -> Array:
        matrix = model.model.coriolis_matrix(motion.q, motion.qd, model.values)
        result: Array = model.rest(motion) + matrix.sum(axis=2) - np.einsum("tij,tj->ti", matrix, motion.qd)
        return result

    ratio = np.abs([drive.gear_ratio for drive in robot.drives])
    cases = {
        "C(q, qd) without qd, its rows added up; PA-7": replace(model, rest=row_sums),
        "F and S at the motor's axis, not times the gear ratio; PA-11": replace(
            model, rest=lambda motion: model.rest(motion) / ratio
        ),
    }
    for note, wrong in cases.items():
        run = tracked(bench, robot, reference, ComputedTorque(model=wrong), gains, 0)
        bench.compare("control_printed", 1e3 * run.mean_tool_error if run.completed else "broken off", note=note)
