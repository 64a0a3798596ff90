"""Bompos, Artemiadis, Oikonomopoulos, Kyriakopoulos: the Mitsubishi PA-10 robot arm, section by section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.views import published
from armid.estimation.fit import Fit
from armid.estimation.single_joint.compare import better_law
from armid.estimation.single_joint.curves import FitError, fit_curve
from armid.estimation.single_joint.friction_fit import FrictionFit, fit_friction, friction_from_data
from armid.estimation.single_joint.pictures import friction_figure, stiffness_figure
from armid.estimation.single_joint.stiffness import StiffnessFit, fit_stiffness
from armid.experiment.truth import truth_of
from armid.papers import pa10_bench as stand
from armid.papers.experiment import Bench, Experiment, Outcome, Row
from armid.papers.frames import frames_figure
from armid.papers.pa10_tracking import tracking
from armid.papers.pictures import estimates_figure, motion_figure, torque_figure
from armid.papers.statistics import fit_statistics, listed, statistics_rows, torque_statistics
from armid.robot.robot import Robot
from armid.torque.friction.law import friction_law

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPEEDS, SECONDS, WARM_UP_S, LOADED_S = 18, 3.0, 10.0, 20.0
WITHIN = 4.0  # standard errors that no curve may be off at any of its speeds
SLOPE_SHARE = 0.02
MOVING = 0.05  # [rad/s] below which a joint may stick
NO_LOSS = 0.03  # slope that counts as not considerable
ACCURACY = {"my2": ("π2", 0.993), "my4": ("π10", 0.982), "my6": ("π18", 0.97)}
NOT = "not comparable"


def model(bench: Bench) -> Outcome:
    """II.A: frames (Fig. 2, Table I), base parameters (16) and the appendix."""
    robot = stand.pa10_arm()
    bench.draw(frames_figure(robot), "frames.png")
    counts = {
        "standard parameters (11)": (len(_rigid(Model(robot).names)), 77, ""),
        "base parameters (16)": (len(_rigid(Model(robot).base.kept)), 21, "PA-1: link 7 is left out unsaid"),
    }
    rows = [
        bench.near(what, float(ours), published=float(paper), within=0.0, note=note)
        for what, (ours, paper, note) in counts.items()
    ]
    view = published(Model(robot), "appendix")
    alone = sum(kind == "alone" for kind in view.classes())
    rows.append(bench.near("formulas of the appendix that are identifiable", float(alone), published=21.0, within=0.0))
    sufficient = view.identifiable_combinations()
    rows.append(bench.near("rank of the appendix's list", float(sufficient), published=21.0, within=0.0, note="PA-2"))
    for what, arm in (("with link 7", _with_link_7(robot)), ("without (13), (14)", robot.simplified("none"))):
        found = len(_rigid(Model(arm).base.kept))
        rows.append(bench.row(f"base parameters {what}", ours=float(found), verdict=NOT, note="PA-1"))
    return Outcome(tuple(rows), settings={"gear_ratio": 50.0, "gravity": robot.gravity.tolist()})


def friction(
    bench: Bench, *, joints: Sequence[int] = range(1, 8), speeds: int = SPEEDS, seconds: float = SECONDS
) -> Outcome:
    """II.B: 14 friction curves with law (18) (Fig. 3 to 5, Table II)."""
    robot = stand.pa10_arm()
    fits, rows = [], []
    for joint in joints:
        bench.say(f"friction sweep of joint {joint}")
        fit = stand.swept_friction(
            robot, joint, 100 * bench.seed + joint, speeds=speeds, seconds=seconds, warm_up_s=WARM_UP_S
        )
        fits.append(fit)
        rows += [_curve_row(bench, robot, joint, fit, sign) for sign in (1.0, -1.0)]
    rows += [_law_row(bench, joint, fit) for joint, fit in zip(joints, fits, strict=True)]
    rows.append(_asymmetry_row(bench, fits))
    if bench.as_printed:
        rows.append(_printed_friction_row(bench, robot))
    bench.draw(friction_figure(fits, "the PA-10"), "friction.png")
    settings = {"rate_hz": stand.RATE_HZ, "speeds": speeds, "seconds_per_speed": seconds, "warm_up_s": WARM_UP_S}
    note = (
        f"The virtual arm is warm: the paper's minute of motion before each sweep is shortened to {WARM_UP_S:g} s. "
        "Curves are compared, not f1 to f6, which trade off against each other."
    )
    return Outcome(tuple(rows), settings, {"joints": [fit.to_data() for fit in fits]}, (note,))


def stiffness(bench: Bench, *, joints: Sequence[int] = range(1, 8), seconds: float = LOADED_S) -> Outcome:
    """II.C: torque lost in proportion to the load (Fig. 6, (19)); friction from R6, gravity from the maker's data."""
    robot = stand.pa10_arm()
    curves = {fit.joint: fit for fit in map(friction_from_data, bench.earlier["R6"].data["joints"])}
    paper = robot.published["appendix"]["load_loss"]
    fits, rows = [], []
    loss = np.zeros((robot.n_joints, 2))
    for joint in joints:
        bench.say(f"loaded strokes of joint {joint}")
        log = stand.loaded_run(robot, joint, 100 * bench.seed + 20 + joint, seconds=seconds)
        curve = curves[robot.joint_names[joint - 1]]
        values = stand.maker_values(robot)
        try:
            own = fit_stiffness(
                log, robot, joint, values=values, friction=curve.curve, friction_error=curve.standard_error
            )
            known = fit_stiffness(log, robot, joint, values=values, friction=_table_two(robot, joint))
        except FitError as error:
            rows.append(bench.row(f"joint {joint}: slope a of (19)", ours="no load", verdict=NOT, note=str(error)))
            continue
        fits.append(own)
        a, b = float(paper["slope"][joint - 1]), float(paper["offset"][joint - 1])
        rows += _loss_rows(bench, joint, own, known, a, b)
        if own.present:
            loss[joint - 1] = own.slope, own.offset * own.gear_ratio
    bench.draw(stiffness_figure(fits, "PA-10"), "stiffness.png")
    notes = (
        "S is proportional to the load, without any deflection: a loss, not a stiffness (PA-12).",
        "A friction curve swept without load holds the offset b already. Offsets are therefore those beyond Table II; "
        "beyond our own curves they are zero within their errors, and that is what R8 goes on with.",
    )
    return Outcome(tuple(rows), {"seconds": seconds, "rate_hz": stand.RATE_HZ}, {"loss": loss.tolist()}, notes)


def base_parameters(bench: Bench) -> Outcome:
    """III.B: sinusoidal and polynomial velocity profiles, friction and loss subtracted, 21 base parameters."""
    robot = stand.pa10_arm()
    bare = stand.without_friction(robot)
    curves = [friction_from_data(entry) for entry in bench.earlier["R6"].data["joints"]]
    motions = [stand.sinusoids(robot, one) for one in stand.MULTIPLES]
    motions += [stand.polynomials(robot, one) for one in stand.SIGNS]
    sets = []
    for number, motion in enumerate(motions):
        bench.say(f"velocity profile {number + 1} of {len(motions)}")
        log = stand.velocity_run(robot, motion, 100 * bench.seed + 40 + number)
        sets.append(stand.processed(log, bare))
    fit = stand.identified(robot, sets, curves, np.array(bench.earlier["R7"].data["loss"]))
    fit.save(bench.folder / "fit.json")
    rows = [bench.near("base parameters", float(len(fit.names)), published=21.0, within=0.0, note="PA-1")]
    rows += [_moment_row(bench, fit, name, true) for name, true in stand.first_moments(robot).items()]
    rows += [_appendix_row(bench, robot, fit), *_verification(bench, robot, fit)]
    for motion, words in ((motions[0], "sinusoidal"), (motions[2], "polynomial")):
        t = np.linspace(0.0, motion.duration, 1000)
        figure = motion_figure(t, motion.at(t), robot, what=f"PA-10, {words} velocities")
        bench.draw(figure, f"{words}.png")
    bench.draw(_estimates(robot, fit), "base-parameters.png")
    settings = {
        "rate_hz": stand.RATE_HZ,
        "encoder_resolution": stand.ENCODER,
        "sinusoids": [list(one) for one in stand.MULTIPLES],
        "base_hz": stand.BASE_HZ,
        "periods": stand.PERIODS,
        "stroke_s": stand.STROKE_S,
    }
    notes = (
        "The load torque in S is that of the identified parameters, found by repeating the estimate; only the slopes "
        "of R7 rest on the maker's data.",
    )
    return Outcome(tuple(rows), settings, {"values": dict(zip(fit.names, fit.values.tolist(), strict=True))}, notes)


def _moment_row(bench: Bench, fit: Fit, name: str, true: float) -> Row:
    """Share of a first moment that is found."""
    words, accuracy = ACCURACY[name]
    value, sigma = (float(array[fit.columns.index(name)]) for array in (fit.values, fit.sigma))
    return bench.at_least(
        f"{words}: share of the maker's value that is found, 1 − |error|",
        1.0 - abs(value / true - 1.0),
        published=accuracy,
        note=f"{value:.5g} ± {sigma:.2g} kg m, true {true:.5g} (link 7 included); PA-18",
    )


def _verification(bench: Bench, robot: Robot, fit: Fit) -> list[Row]:
    """Torque of a sinusoid that was not used."""
    bench.say("verification")
    motion = stand.sinusoids(robot, stand.VERIFICATION)
    data = stand.processed(stand.velocity_run(robot, motion, 100 * bench.seed + 50), stand.without_friction(robot))
    predicted = fit.predict(data.motion, sigma=False).torque
    noise = truth_of(robot).torque_noise / np.sqrt(stand.PERIODS)
    moving = np.where(np.abs(data.qd) > MOVING, data.torque - predicted, np.nan)
    ratio = np.sqrt(np.nanmean(moving**2, axis=0)) / noise
    found = torque_statistics(data.torque, predicted, data.qd, noise, robot.joint_names)
    times, words = np.arange(len(predicted)) / stand.RATE_HZ, "PA-10, another sinusoid"
    figure = torque_figure(times, data.torque, predicted, robot.joint_names, what=words, validation=True, noise=noise)
    bench.draw(figure, "verification.png")
    return [
        bench.row(
            f"another sinusoid: RMS of the torque error over noise, |qd| > {MOVING:g} rad/s, by joint",
            ours=listed(ratio, 3),
            verdict=NOT,
        ),
        *statistics_rows(bench, "another sinusoid", found, fit_statistics(fit)),
    ]


def _rigid(names: Sequence[str]) -> list[str]:
    return [name for name in names if name[0] in "mI"]


def _with_link_7(robot: Robot) -> Robot:
    """The zeros of (13) and (14) without those of link 7."""
    return replace(robot, zero=frozenset(name for name in robot.zero if not name.endswith("7") or name == "Im7"))


def _table_two(robot: Robot, joint: int) -> Callable[[Array], Array]:
    return lambda speed: stand.true_friction(robot, joint, speed)


def _curve_row(bench: Bench, robot: Robot, joint: int, fit: FrictionFit, sign: float) -> Row:
    """Distance of one of the 14 curves from the truth, at all speeds of the sweep."""
    v = fit.points.part(sign).speed
    true = stand.true_friction(robot, joint, v) + truth_of(robot).load_loss[joint - 1, 1]
    off = np.abs(fit.curve(v) - true)
    ratio = abs(robot.drives[joint - 1].gear_ratio)
    word = "positive" if sign > 0.0 else "negative"
    errata = {(4, -1.0): "; PA-8", (6, 1.0): "; PA-9", (6, -1.0): "; PA-9"}.get((joint, sign), "")
    return bench.at_most(
        f"joint {joint}, {word} velocities: largest distance of the curve from the truth",
        float(np.max(off / fit.standard_error(v))),
        published=None,
        bar=WITHIN,
        unit="standard errors",
        note=f"at most {1e3 * off.max() / ratio:.2g} mN m at the motor, {100 * np.max(off / abs(true)):.2g} %{errata}",
    )


def _law_row(bench: Bench, joint: int, fit: FrictionFit) -> Row:
    """Law (18) against Stribeck's, both directions; F-test."""
    values, better = [], []
    for sign in (1.0, -1.0):
        part = fit.points.part(sign)
        full, gauss = (
            fit_curve(name, part.speed, part.torque, part.error) for name in ("double-exponential", "stribeck")
        )
        compared = better_law(full, gauss, len(part))
        values.append(compared.statistic)
        better.append(compared.better)
    return bench.row(
        f"joint {joint}: is (18) better than Stribeck's law?",
        ours="yes" if all(better) else "no",
        published="yes",
        verdict="match" if all(better) else "worse",
        note=f"F = {values[0]:.3g} and {values[1]:.3g} (positive, negative)" + ("; PA-9" if joint == 6 else ""),
    )


def _asymmetry_row(bench: Bench, fits: Sequence[FrictionFit]) -> Row:
    """Joints whose two directions differ, by an F-test of one curve against two."""
    differ = 0
    for fit in fits:
        together = fit_friction(fit.points, "double-exponential", per_direction=False)
        differ += better_law(fit, together, len(fit.points)).better
    return bench.near(
        "joints whose friction differs by direction", float(differ), published=float(len(fits)), within=0.0
    )


def _printed_friction_row(bench: Bench, robot: Robot) -> Row:
    """F(-0.001 rad/s) of joint 4 with the printed sign of f6."""
    stated = robot.published["appendix"]["friction"]
    names = ("f1", "f2", "f3", "f4", "f5", "f6")
    one = {name: float(stated["coefficients"][f"{name}n"][3]) for name in names}
    law, slow = friction_law("double-exponential"), np.array([-0.001])
    right = abs(float(law.torque(slow, one)[0]))
    wrong = abs(float(law.torque(slow, {**one, "f6": float(stated["printed"]["f6n"][3])})[0]))
    return bench.row(
        "as printed: friction of joint 4 at −0.001 rad/s, motor axis",
        published=wrong,
        ours=right,
        unit="N m",
        verdict=NOT,
        note="PA-8: f6 = −101.92 makes exp(−1/(f6 |v|)) explode; with +101.92 the curve is sane",
    )


def _loss_rows(bench: Bench, joint: int, own: StiffnessFit, known: StiffnessFit, a: float, b: float) -> list[Row]:
    if a == 0.0:
        return [
            bench.at_most(
                f"joint {joint}: slope |a| of (19)",
                abs(own.slope),
                published=None,
                bar=NO_LOSS,
                note=f"{own.slope:.2g} ± {own.slope_sigma:.2g}; not considerably affected, says the paper",
            )
        ]
    return [
        bench.near(
            f"joint {joint}: slope a of (19)",
            own.slope,
            published=a,
            within=SLOPE_SHARE * a,
            note=f"± {own.slope_sigma:.2g}; PA-12",
        ),
        bench.near(
            f"joint {joint}: offset b of (19), motor axis",
            known.offset,
            published=b,
            within=4.0 * known.offset_sigma,
            unit="N m",
            note=f"± {known.offset_sigma:.2g}; beyond our own friction curve {own.offset:.2g} ± {own.offset_sigma:.2g}",
        ),
    ]


def _appendix_row(bench: Bench, robot: Robot, fit: Fit) -> Row:
    """Our 21 values beside the printed ones."""
    _, ours, _, paper = _beside(robot, fit)
    return bench.row(
        "21 base parameters: relative distance from the appendix",
        ours=float(np.linalg.norm(ours - paper) / np.linalg.norm(paper)),
        verdict=NOT,
        note="PA-16: no arm has the printed values; the virtual arm is the nearest that exists",
    )


def _beside(robot: Robot, fit: Fit) -> tuple[tuple[str, ...], Array, Array, Array]:
    """Names, our values, their sigma and the printed values, in the order of the appendix; rotors in g m^2."""
    view = published(Model(robot), "appendix")
    matrix = view.matrix[:, [view.model.names.index(name) for name in fit.columns]]
    paper = np.array([float(row["value"]) for row in robot.published["appendix"]["parameters"]])
    size = np.array([1e3 if name.startswith("Im") else 1.0 for name in view.entries])
    sigma = np.sqrt(np.diag(matrix @ fit.covariance @ matrix.T))
    return view.entries, size * (matrix @ fit.values), size * sigma, size * paper


def _estimates(robot: Robot, fit: Fit) -> Figure:
    entries, ours, sigma, paper = _beside(robot, fit)
    unit = "kg m, kg m²; rotors g m²"
    return estimates_figure(entries, ours, sigma, what="PA-10, appendix", published=paper, unit=unit)


EXPERIMENTS = (
    Experiment("model", "pa10", "Frames and base parameters (Fig. 2, Table I, appendix)", model, seconds=5.0),
    Experiment("R6", "pa10", "Friction of seven joints (Table II, Fig. 3 to 5)", friction, seconds=60.0),
    Experiment("R7", "pa10", "Torque lost in proportion to the load ((19), Fig. 6)", stiffness, ("R6",), 20.0),
    Experiment("R8", "pa10", "21 base parameters (appendix)", base_parameters, ("R6", "R7"), 30.0),
    Experiment("R9", "pa10", "Tracking with the inverse-dynamics controller (Fig. 7, 8)", tracking, ("R8",), 30.0),
)
