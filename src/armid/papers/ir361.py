"""Swevers, Verdonck, De Schutter: Dynamic Model Identification for Industrial Robots; KUKA IR 361, by experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from armid.arrays import Array
from armid.dynamics.kinematics import link_frames, tool_frame
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.estimation.fit import Fit, load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.linear import solve
from armid.excitation.constraints import ToolBox
from armid.excitation.design import Fourier, design
from armid.excitation.fourier import FourierSeries
from armid.excitation.pictures import singular_value_figure
from armid.excitation.plan import Plan, load_plan
from armid.excitation.polynomial import random_points
from armid.experiment.excite import point_to_point
from armid.experiment.settings import Sensors
from armid.experiment.virtual import truth_of
from armid.figures import Block, Figure, Panel, line
from armid.logs.log import Log
from armid.papers import stand
from armid.papers.bench import PaperBench, paper_file, published_of, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import estimates_figure, motion_figure, spectrum_figure, tool_path_figure
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.averaging import average_periods, differentiate, given_harmonics
from armid.signals.dataset import Dataset
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import process
from armid.theme import Picture
from armid.torque.model import model_of

STAND = stand_of("ir361")
PRINTED = published_of("ir361")
LEVEL = {"simple": 1.2, "rich": 1.9}  # bars of RMS over noise on moving samples, with drive loops of 8 Hz
DISTANCES, FINER = np.geomspace(1e-7, 1e-3, 33), 10  # presliding distances tried [rad]; instants between two samples


FRICTION: dict[str, str] = paper_file("ir361").stand["friction"]  # in words, by case
CASES = {name: stand.Hardness(**settings) for name, settings in paper_file("ir361").stand["hardness"].items()}


def virtual_arm(hard: stand.Hardness, seed: int, *, perfect: bool = False) -> stand.StandRobot:
    """The arm, with the paper's sample rate and the noise of Table 1."""
    sensors = Sensors.perfect() if perfect else Sensors(encoder_noise=STAND.encoder_noise)
    return stand.StandRobot(ir361_arm(), hard, rate_hz=STAND.rate_hz, seed=seed, sensors=sensors)


def one_clean_period(hard: stand.Hardness, plan: Plan) -> Log:
    """A period without sensors' noise; the sensors are not in the loop, so that the motion is the same with it."""
    return virtual_arm(hard, 0, perfect=True).run(plan, periods=1)


@cache
def ir361_arm() -> Robot:
    """The first three links, with Coulomb and viscous friction; the locked wrist carries the tool."""
    robot, whole = load_robot("ir361"), load_robot("ir361", links=6)
    straight = np.zeros((1, 6))
    wrist = np.linalg.inv(link_frames(whole, straight)[0, 2]) @ tool_frame(whole, straight)[0]
    return replace(robot, tool=wrist)


def model(bench: PaperBench) -> dict[str, Any]:
    """Modelling: 24 parameters of links, rotor, friction and spring, and what a1 = 0 does to them."""
    robot = ir361_arm()
    bench.draw(frames_figure(load_robot("ir361", links=6)), "frames.png")
    dynamics = model_of(robot)
    kinds = {parameter.name: parameter.kind for parameter in dynamics.parameters}
    kept = [kinds[name] for name in dynamics.base.kept]
    for what, kind, printed in (
        ("link parameters", "inertial", PRINTED.parameters.links),
        ("rotor inertias", "rotor", PRINTED.parameters.rotor),
        ("friction parameters", "friction", PRINTED.parameters.friction),
        ("spring parameters", "spring", PRINTED.parameters.springs),
    ):
        bench.compare("count", kept.count(kind), published=printed, what=what)
    bench.compare("count", len(kept), published=PRINTED.parameters.total, what="parameters in all")
    bench.compare("crossing", len(model_of(_without_offset(robot)).base.kept))
    return {"groups": stand.base_groups(robot)}


def _without_offset(robot: Robot) -> Robot:
    """The arm with axes 1 and 2 crossing: a1 = 0 (erratum SW-10)."""
    second = robot.joints[1]
    placement = second.placement.copy()
    placement[0, 3] = 0.0
    joints = (robot.joints[0], replace(second, placement=placement), *robot.joints[2:])
    return replace(robot, joints=joints, lengths=tuple(one for one in robot.lengths if one.name != "a1"))


def excitation(bench: PaperBench, *, starts: int) -> dict[str, Any]:
    """Experiment design: a five-term Fourier series of 0.1 Hz, d-optimal (Fig. 5 and 6)."""
    robot, noise = ir361_arm(), PRINTED.table_1.noise
    bench.say(f"{starts} starts")
    space = ToolBox(robot, np.array([-2.0, -2.0, STAND.floor]), np.array([2.0, 2.0, 3.0]), name="workspace")
    plan = design(
        robot,
        Fourier(PRINTED.harmonics, 1.0 / PRINTED.base_frequency_hz),
        starts=starts,
        seed=bench.seed,
        rate_hz=STAND.rate_hz,
        noise=noise,
        checks=None,  # the paper's limits are those of the joints, and the space for the tool
        constraints=[space],
        workers=1,
    )
    plan.save(bench.folder / "plan.json")
    times, motion = plan.trajectory.sample(STAND.rate_hz)
    bench.draw(motion_figure(times, motion, robot, what="IR 361, optimised excitation"), "motion.png")
    path = tool_frame(robot, motion.q)[:, :3, 3]
    bench.draw(tool_path_figure({"one period": path}, what="IR 361, optimised excitation"), "tool-path.png")
    bench.draw(singular_value_figure(plan, robot), "singular-values.png")
    weights = 1.0 / np.square(np.asarray(noise, dtype=float))
    _, random = stand.against_random(plan, robot, weights, draws=STAND.draws, seed=bench.seed)
    own, others = plan.conditioning, [one.log_det for one, _ in random]
    bench.compare("log_det", own.log_det, bar=max(others), draws=STAND.draws)
    bench.compare("design_condition", own.condition)
    bench.compare("limits_kept", "kept" if plan.certified else "broken", why="limits are assumed (SW-9)")
    return {
        "log_det": own.log_det,
        "log_det_random": others,
        "condition_number": own.condition,
        "sigma_min": own.sigma_min,
        "margins": {margin.quantity: margin.margin for margin in plan.certificate.margins},
        "seconds": plan.seconds,
    }


def identification(bench: PaperBench, *, periods: int, beside: bool) -> dict[str, Any]:
    """Excitation, signal processing and estimation: Table 1, Fig. 3, 7 and 8; `beside`: also `STAND.beside`."""
    robot, plan = ir361_arm(), load_plan(bench.folder_of("design") / "plan.json")
    found: dict[str, stand.TorqueCheck] = {}  # without presliding, which the paper's model does not have
    data: dict[str, Any] = {}
    for number, (name, case) in enumerate(CASES.items()):
        bench.say(f"{periods} periods, {FRICTION[name]}")
        log = virtual_arm(case, 1000 * bench.seed + 10 * number).run(plan, periods=periods)
        processed = prepared(log, robot)
        fit = estimated(processed, robot)
        fit.save(bench.folder / f"fit-{name}.json")
        found[name] = stand.torque_check(fit, processed)
        distance = presliding(fit, processed)
        check, five = checked(fit, processed, distance), _as_the_paper(log, robot)
        _compare_table_1(bench, name, check, five)
        judged = stand.fit_statistics(fit)
        data[name] = {
            **check.statistics(),
            "noise_ratio_moving": check.ratio(STAND.moving),
            "noise_ratio_five_harmonics": five.ratio(),
            "noise": check.noise,
            "presliding": distance,
            "reversal_over_elsewhere": found[name].peaks,
            "statistics": judged,
        }
        stand.statistics_rows(bench, FRICTION[name], check.statistics(), judged)
        check.draw(bench, f"torque-{name}.png", f"IR 361, excitation, {FRICTION[name]}")
        if name == "simple":
            _compare_noise(bench, log, one_clean_period(case, plan), plan)
            _draw_spectrum(bench, log, plan)
            figure = estimates_figure(
                fit.names, fit.values, fit.sigma, what="IR 361, excitation", truth=stand.true_values(robot)
            )
            bench.draw(figure, "estimates.png")
    _compare_reversals(bench, found)
    _compare_differentiation(bench)
    if beside:
        bench.say("softer drive loops and other presliding")
        data["beside"] = _compare_beside(bench, plan, periods)
    return data


def _as_the_paper(log: Log, robot: Robot) -> stand.TorqueCheck:
    """Five harmonics, and all samples in the estimate."""
    five = prepared(log, robot, harmonics=PRINTED.harmonics)
    return stand.torque_check(estimated(five, robot, every_sample=True), five)


def _compare_table_1(bench: PaperBench, name: str, check: stand.TorqueCheck, five: stand.TorqueCheck) -> None:
    """RMS over all samples as in Table 1, beside what the paper's five harmonics leave; and over noise while moving."""
    friction = FRICTION[name]
    bench.by_joint("table_1", check.rms(), friction=friction, noise=check.noise, five=five.rms())
    bench.by_joint("moving", check.ratio(STAND.moving), bar=LEVEL[name], friction=friction, speed=STAND.moving)


def _compare_noise(bench: PaperBench, log: Log, clean: Log, plan: Plan) -> None:
    """Noise of the averaged torque, (5) corrected and, if wanted, as printed; what averaging gains."""
    torque = average_periods(log["effort"], round(plan.trajectory.duration * STAND.rate_hz))
    level, root = PRINTED.table_1.noise, float(np.sqrt(torque.periods))
    # fewer periods than the paper's 16 leave more noise
    bench.by_joint("noise", np.sqrt(torque.variance_of_mean), published=np.array(level) * 4.0 / root)
    if bench.as_printed:
        printed = np.sqrt(torque.variance_as_printed)
        expected = np.sqrt(1.0 - 1.0 / torque.periods)
        bench.compare("noise_divisor", printed / np.sqrt(torque.variance), expected=expected)
        bench.compare("noise_printed", printed)
    each = log["effort"] - np.tile(clean["effort"], (torque.periods, 1))
    gain = np.std(each, axis=0) / np.std(torque.mean - clean["effort"], axis=0)
    bench.compare("averaging", gain.mean(), bar=root, periods=torque.periods, gain=gain)


def _compare_reversals(bench: PaperBench, found: Mapping[str, stand.TorqueCheck]) -> None:
    """Peaks at reversals: RMS error within a tenth of a second of them over RMS error elsewhere."""
    bench.compare("peaks", found["rich"].peaks.min(), peaks=found["rich"].peaks)
    bench.compare("peaks_simple", found["simple"].peaks)


def differentiation_demo(seed: int) -> tuple[Array, Array, Array, Array, Array]:
    """Fig. 3: one noisy sinusoid; time, position, exact velocity, central differences, true velocity."""
    rng, rate, one = np.random.default_rng(seed), STAND.rate_hz, STAND.sinusoid
    omega = 2.0 * np.pi * one.frequency_hz
    time = np.arange(round(rate / one.frequency_hz)) / rate
    position = one.size * np.sin(omega * time) + one.noise * rng.normal(size=len(time))
    true = one.size * omega * np.cos(omega * time)
    window = given_harmonics((1,), len(time), 1)
    exact = differentiate(position[:, None], 1.0 / one.frequency_hz, window).qd[:, 0]
    differences = (np.roll(position, -1) - np.roll(position, 1)) * 0.5 * rate
    return time, position, exact, differences, true


def _compare_differentiation(bench: PaperBench) -> None:
    """How much exact differentiation gains on one noisy sinusoid."""
    time, position, exact, differences, true = differentiation_demo(bench.seed)
    by_dft, by_hand = (float(np.sqrt(np.mean((one - true) ** 2))) for one in (exact, differences))
    # what noise on one of K samples leaves in one line: sigma omega sqrt(2 / K)
    floor = STAND.sinusoid.noise * 2.0 * np.pi * STAND.sinusoid.frequency_hz * np.sqrt(2.0 / len(position))
    bench.compare("exact", by_dft, bar=3.0 * floor, floor=floor, differences=by_hand)
    bench.draw(_differentiation_figure(time, position, exact, differences, true, by_dft, by_hand), "exact.png")


def _differentiation_figure(
    time: Array, position: Array, exact: Array, differences: Array, true: Array, by_dft: float, by_hand: float
) -> Picture:
    """A noisy sinusoid, its spectrum with the window, and its velocity in two ways (Fig. 3)."""
    amplitude = 2.0 / len(position) * np.abs(np.fft.rfft(position))
    lines = np.arange(len(amplitude)) / (time[1] - time[0]) / len(time)
    shown, kept = (lines > 0.0) & (lines <= 10.0), int(np.argmin(np.abs(lines - STAND.sinusoid.frequency_hz)))
    thin = {"linewidth": 0.5, "linestyle": "-"}
    spectrum = [
        line("measured", lines[shown], amplitude[shown]),
        line("predicted", lines[[kept]], amplitude[[kept]], mode="markers", size=10.0),
    ]
    velocity = [line("nominal", time, differences, style=thin), line("predicted", time, exact)]
    panels = {
        "position over time": Panel("rad", [line("measured", time, position)]),
        "its spectrum up to 10 Hz": Panel("rad", spectrum, corner="dot: kept, times jω", log="y"),
        "velocity": Panel("rad/s", velocity, corner="grey: central differences; blue: exact", x_title="time [s]"),
        "error of the exact one": Panel(
            "rad/s", [line("residual", time, exact - true)], corner=f"RMS {by_dft:.2g} rad/s", x_title="time [s]"
        ),
    }
    blocks = [Block(name, [[panel]], (190.0,)) for name, panel in panels.items()]
    return Figure("differentiation", blocks, across=2).draw(
        f"Exact differentiation: noise outside the one line that holds motion is cut off, so that the velocity's error "
        f"is {by_dft:.2g} rad/s instead of {by_hand:.2g} rad/s by central differences."
    )


def _draw_spectrum(bench: PaperBench, log: Log, plan: Plan) -> None:
    """Fig. 7: amplitudes of one measured period."""
    assert isinstance(plan.trajectory, FourierSeries)
    samples = round(plan.trajectory.duration * STAND.rate_hz)
    amplitude = 2.0 / samples * np.abs(np.fft.rfft(log["position"][:samples], axis=0))
    lines = np.arange(len(amplitude)) / plan.trajectory.duration
    shown = slice(1, int(5.0 * plan.trajectory.duration) + 1)
    excited = [k / plan.trajectory.duration for k in plan.trajectory.harmonics]
    what = "IR 361, one measured period"
    figure = spectrum_figure(lines[shown], amplitude[shown], plan.joint_names, what=what, lines_hz=excited)
    bench.draw(figure, "spectrum.png")


def _compare_beside(bench: PaperBench, plan: Plan, periods: int) -> list[dict[str, Any]]:
    """RMS over noise with softer drive loops and with other presliding."""
    robot, result = ir361_arm(), []
    for number, (words, changed) in enumerate(paper_file("ir361").stand["beside"].items()):
        log = one_clean_period(stand.Hardness(**changed), plan)
        log = repeated(log, periods, robot, np.random.default_rng([bench.seed, number]))
        data = prepared(log, robot)
        check, five = stand.torque_check(estimated(data, robot), data), _as_the_paper(log, robot)
        about = {"words": words, "all_samples": check.ratio(), "five": five.ratio()}
        bench.compare("beside", check.ratio(STAND.moving), **about)
        result.append({**about, "moving": check.ratio(STAND.moving), "moving_five": five.ratio(STAND.moving)})
    return result


def covariance(bench: PaperBench, *, draws: int, periods: int) -> dict[str, Any]:
    """Parameter accuracy: does the covariance (11) cover the truth, in repeated experiments?"""
    robot, plan = ir361_arm(), load_plan(bench.folder_of("design") / "plan.json")
    clean, truth = one_clean_period(CASES["simple"], plan), stand.true_values(robot)
    rng = np.random.default_rng(1000 * bench.seed + 90)
    by_11, own = [], []
    for draw in range(draws):
        if draw % 20 == 0:
            bench.say(f"experiment {draw + 1} of {draws}")
        fit = estimated(prepared(repeated(clean, periods, robot, rng), robot), robot)
        # (11): the inverse of F' Sigma^-1 F, with the measured noise of the averaged torque
        by_11.append((fit.values - truth) / np.sqrt(np.diag(solve(fit.factor, fit.weights).inverse)))
        own.append((fit.values - truth) / fit.sigma)
    distance = np.array(by_11)
    bias = np.abs(distance.mean(axis=0))
    bench.compare("coverage", np.mean(np.abs(distance) < 2.0), draws=draws)
    bench.compare("coverage_own", np.mean(np.abs(own) < 2.0))
    bench.compare("bias", bias.max(), name=fit.names[int(np.argmax(bias))], error=1.0 / np.sqrt(draws))
    if bench.as_printed:
        times = np.sqrt(periods)
        bench.compare("coverage_printed", np.mean(np.abs(distance) < 2.0 * times), times=times)
    return {
        "parameters": list(fit.names),
        "truth": truth,
        "bias_over_sigma": distance.mean(axis=0),
        "spread_over_sigma": distance.std(axis=0, ddof=1),
    }


def validation(bench: PaperBench, *, points: int, repetitions: int) -> dict[str, Any]:
    """Model validation: point-to-point motion with trapezoidal velocity, Table 2, Fig. 9 and 10."""
    robot = ir361_arm()
    postures = random_round(robot, points, 1000 * bench.seed + 10)
    data: dict[str, Any] = {"postures": postures}
    found: dict[str, stand.TorqueCheck] = {}
    for number, (name, case) in enumerate(CASES.items()):
        bench.say(f"{points} points, {repetitions} rounds, {FRICTION[name]}")
        fit = load_fit(bench.folder_of("R3") / f"fit-{name}.json")
        arm = virtual_arm(case, 1000 * bench.seed + 200 + 10 * number)
        share = STAND.share_of_limits
        log = point_to_point(arm, robot, points=postures, repetitions=repetitions + 1, share=share)
        processed = prepared(log, robot, discard=1)
        found[name] = stand.torque_check(fit, processed)
        check = checked(fit, processed, np.array(bench.earlier["R3"].data[name]["presliding"]))
        bench.by_joint("table_2", check.rms(), friction=FRICTION[name], noise=check.noise)
        stand.statistics_rows(bench, f"validation, {FRICTION[name]}", check.statistics())
        data[name] = {
            **check.statistics(),
            "noise": check.noise,
            "reversal_over_elsewhere": found[name].peaks,
            "torque_rms": np.sqrt(np.mean(check.measured**2, axis=0)),
        }
        check.draw(bench, f"torque-{name}.png", f"IR 361, validation, {FRICTION[name]}", validation=True)
        if name == "simple":
            shown = Motion(processed.q, processed.qd, processed.qdd)
            bench.draw(motion_figure(processed.time, shown, robot, what="IR 361, validation"), "motion.png")
            data["round_s"] = log.info.period_s
    _compare_reversals(bench, found)
    return data


def random_round(robot: Robot, count: int, seed: int) -> Array:
    """Random postures, (count, joints), with the tool above the floor on the straight way from each to the next."""
    candidates = random_points(robot, 50 * count, seed, margin=0.05)
    chosen: list[Array] = []
    share = np.linspace(0.0, 1.0, 25)[:, None]

    def free(start: Array, end: Array) -> bool:
        return bool(np.all(tool_frame(robot, start + share * (end - start))[:, 2, 3] > STAND.floor))

    for posture in candidates:
        last = len(chosen) == count - 1
        if free(chosen[-1] if chosen else posture, posture) and (not last or free(posture, chosen[0])):
            chosen.append(posture)
        if len(chosen) == count:
            return np.array(chosen)
    raise ArmidError(f"no {count} random postures with the tool above {STAND.floor:g} m were found; use another seed")


def prepared(log: Log, robot: Robot, *, harmonics: str | int = "auto", discard: int = 0) -> Dataset:
    """Average over periods, differentiate exactly on selected harmonics."""
    steps = PeriodicAverage(period_s=log.info.period_s, harmonics=harmonics, discard_periods=discard)
    return process(log, steps, robot=robot)


def estimated(data: Dataset, robot: Robot, *, every_sample: bool = False) -> Fit:
    """Weighted least squares (7) to (10), weighted with the noise of the averaged torque.

    Args:
        data: of the excitation.
        robot: the arm.
        every_sample: as in the paper; otherwise a joint's samples at reversals are left out.
    """
    slow = 0.0 if every_sample else None
    return WeightedLeastSquares(noise="measured", slow_share=slow, slow_floor=slow).fit(robot, data)


def presliding(fit: Fit, data: Dataset) -> Array:
    """Distance over which each joint's friction changes sides that leaves the least error [rad]."""
    each = [checked(fit, data, np.full(data.q.shape[1], distance)).rms() for distance in DISTANCES]
    return np.asarray(DISTANCES[np.argmin(each, axis=0)])


def checked(fit: Fit, data: Dataset, distance: Array) -> stand.TorqueCheck:
    """The torque of an averaged period by a fit whose friction changes sides over a distance, as in Dahl's model.

    The side s, from -1 to 1, follows ds/dx = 1 - s sign(dx) over the way x in units of the distance; friction is that
    of both directions at the joint's speed, shared by s.

    Args:
        fit: with friction that jumps at reversals.
        data: one period.
        distance: presliding distance of each joint [rad].
    """
    check, speed = stand.torque_check(fit, data), np.abs(data.qd)
    values = np.where(fit.friction_columns(), fit.values, 0.0)
    forth, back, now = (
        fit.torque_model.linear_torque(Motion(data.q, qd, data.qdd), values) for qd in (speed, -speed, data.qd)
    )
    side = np.column_stack([_side(*each) for each in zip(data.q.T, data.qd.T, distance, strict=True)])
    return replace(check, predicted=check.predicted - now + 0.5 * ((1.0 + side) * forth + (1.0 - side) * back))


def _side(q: Array, qd: Array, distance: float) -> Array:
    """Side of a joint's friction over one period of samples, which goes on into itself."""
    count = len(q)
    curve = CubicHermiteSpline(np.arange(count + 1), np.append(q, q[0]), np.append(qd, qd[0]) / STAND.rate_hz)
    # twice round, as the first time starts from nowhere
    way = np.tile(np.diff(curve(np.arange(count * FINER + 1) / FINER)), 2) / distance
    steps = zip(np.sign(way).tolist(), np.exp(-np.abs(way)).tolist(), strict=True)
    side = list(accumulate(steps, lambda s, step: step[0] + (s - step[0]) * step[1], initial=0.0))
    return np.array(side[count * FINER : -1 : FINER])


def repeated(clean: Log, periods: int, robot: Robot, rng: np.random.Generator) -> Log:
    """A clean period repeated, with fresh noise on torque and encoders: another run of the same experiment."""
    truth = truth_of(robot)
    position = np.tile(clean["position"], (periods, 1))
    position = position + STAND.encoder_noise * rng.normal(size=position.shape)
    position = truth.encoder_resolution * np.round(position / truth.encoder_resolution)
    effort = np.tile(clean["effort"], (periods, 1)) + np.array(truth.torque_noise) * rng.normal(size=position.shape)
    return Log(np.arange(len(position)) / STAND.rate_hz, {"position": position, "effort": effort}, clean.info)
