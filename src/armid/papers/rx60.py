"""Karahan, Bingul: Modelling and Identification of STAUBLI RX-60 Robot, experiment by experiment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from armid.arrays import Array
from armid.dynamics.base import random_motion
from armid.dynamics.kinematics import tool_frame
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.estimation.fit import Fit, load_fit
from armid.estimation.least_squares import OrdinaryLeastSquares
from armid.estimation.mixed import MixedEffects
from armid.excitation import tool_path as tool_path_shapes
from armid.excitation.fourier import FourierSeries
from armid.excitation.profiles import rx60_verification
from armid.excitation.tool_path import ToolPath, harmonic_path
from armid.excitation.trajectory import Trajectory
from armid.experiment.settings import Sensors
from armid.experiment.virtual import truth_of
from armid.logs.log import Log
from armid.papers.bench import PaperBench, paper_file, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import estimates_figure, motion_figure, tool_path_figure
from armid.papers.rx60_equations import ERRATA, torque
from armid.papers.stand import Hardness, StandRobot, TorqueCheck, fit_statistics, statistics_rows, with_tool_of_link
from armid.robot.load import load_robot
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.pipeline import process
from armid.theme import Picture
from armid.torque.model import model_of

STAND = stand_of("rx60")
HARD = Hardness(**paper_file("rx60").stand["hardness"])
PRINTED = paper_file("rx60").published
SHEET = PRINTED["data_sheet"]
KNOWN = {"m2": SHEET["m2"], "m3": SHEET["m3"], "mx2": SHEET["m2"] * SHEET["a2c"], "my3": -SHEET["m3"] * SHEET["d4c"]}
PRINTED_ALPHA_15 = SHEET["g0"] * (SHEET["m2"] + SHEET["m3"]) * SHEET["a2c"]  # by Table II as printed (RX-6)
LEFT_IN = [*((one, (one,)) for one in ERRATA), ("RX-1 to RX-4", ERRATA)]  # errors of the printed equations
COMBINATIONS, INERTIAS = (
    {name: {int(number): float(factor) for number, factor in parts.items()} for name, parts in sums.items()}
    for sums in (paper_file("rx60").stand["combinations"], paper_file("rx60").stand["inertias"])
)  # sums of alphas, by the number of each
WELL_DETERMINED = tuple(COMBINATIONS)[: STAND.well_determined]
FREE = tuple(i for i in range(1, 17) if i not in STAND.known)


def model(bench: PaperBench, *, samples: int) -> None:
    """II: frames (Fig. 1), link parameters (Table I), torque equations; III: parameters (Table II)."""
    robot, whole = rx60_arm(), load_robot("rx60", links=6)
    bench.draw(frames_figure(whole), "frames.png")
    lengths = {length.name: length.value for length in whole.lengths}
    for name, value in PRINTED["link_parameters"].items():
        bench.compare("length", lengths[name], published=value, name=name)
    known, errata = known_parts(robot), PRINTED["constant_errata"]
    for name, value in PRINTED["constants"].items():
        about = {"unit": "N m" if name in ("alpha15", "alpha16") else "kg m²", "erratum": errata.get(name, "")}
        bench.compare("known_part", known[int(name[5:])], published=value, name=name, **about)
    motion = random_motion(robot, samples, np.random.default_rng(bench.seed))
    alpha, view = true_alpha(robot), published(model_of(robot), "alpha")
    inertia = dict(zip(view.model.names, truth_of(robot).inertia.ravel(), strict=True))
    exact = view.model.inverse_dynamics(*motion, inertia)

    def error(errata: Collection[str] = ()) -> Array:
        wrong = torque(*motion, alpha, errata) - exact
        result: Array = np.sqrt(np.mean(wrong**2, axis=0)) / np.sqrt(np.mean(exact**2, axis=0))
        return result

    bench.compare("equations", error().max())
    columns = np.stack([torque(*motion, one).ravel() for one in np.eye(16)], axis=1)
    rank = np.linalg.matrix_rank(columns / np.linalg.norm(columns, axis=0), tol=1e-9)
    bench.compare("columns", rank, base=len(model_of(robot).base.kept))
    if bench.as_printed:
        for words, left_in in LEFT_IN:
            bench.compare("equations_printed", error(left_in), errata=words)


def identification(bench: PaperBench, *, paths: Sequence[str], seconds: float) -> dict[str, Any]:
    """IV.A: six tool paths, thirteen alphas from each; Tables III, IV and V.

    The paper's least squares (6) knows no friction (RX-10); ours is the default estimator, whose friction is smooth.
    """
    robot, whole = rx60_arm(), with_friction()
    known, wanted = known_parts(robot), tool_paths()
    sets: dict[str, Dataset] = {}
    tools: dict[str, Array] = {}
    for number, name in enumerate(paths):
        bench.say(f"{name}, {number + 1} of {len(paths)}")
        motion = along(robot, wanted[name])
        sets[name] = prepared(drive(whole, motion, 1000 * bench.seed + 10 * number, seconds=seconds), whole)
        tools[name] = tool_frame(robot, motion.at(np.linspace(0.0, motion.duration, 400)).q)[:, :3, 3]
    estimates = {name: estimate_alpha(data, known) for name, data in sets.items()}
    plain = OrdinaryLeastSquares(slow_share=0.0, slow_floor=0.0)  # (6) counts slow samples as well
    arm = with_data_sheet(whole)
    for name, data in sets.items():
        MixedEffects().fit(arm, data).save(bench.folder / f"fit-{name}.json")
    alphas = np.array([_alpha_of_fit(load_fit(bench.folder / f"fit-{name}.json"), known) for name in sets])
    together = plain.fit(arm, list(sets.values()))

    _compare_spread(bench, alphas, robot)
    _compare_inertias(bench, alphas, robot)
    _compare_rank(bench, estimates, {name: plain.fit(arm, data) for name, data in sets.items()}, robot)
    judged = fit_statistics(together)
    statistics_rows(bench, "all six paths", _own_check(together, sets).statistics(), judged)
    if bench.as_printed:
        _printed_identification(bench, sets, known, robot)
    names, paper = [f"α{i}" for i in range(1, 17)], _table_3(robot)
    bench.table("table-3", {"": names, **dict(zip(sets, alphas, strict=True))})
    spreads = {"mean": alphas.mean(axis=0), "std": _spread(alphas)}
    printed = {"published mean": paper.mean(axis=0), "published std": _spread(paper)}
    bench.table("table-4", {"": names, **spreads, **printed, "truth": true_alpha(robot)})
    bench.draw(tool_path_figure(tools, what="RX-60, excitation"), "tool-paths.png")
    bench.draw(_combinations_figure(alphas, robot), "combinations.png")
    return {
        "table_3": dict(zip(sets, alphas, strict=True)),
        "table_4": spreads,
        "table_5": inertias(alphas.mean(axis=0), known),
        "combinations": {name: combinations(alpha) for name, alpha in zip(sets, alphas, strict=True)},
        "true_combinations": combinations(true_alpha(robot)),
        "condition_numbers": {name: one.condition for name, one in estimates.items()},
        "singular_values": {name: one.singular_values for name, one in estimates.items()},
        "statistics": {"together": judged},
    }


def _compare_spread(bench: PaperBench, alphas: Array, robot: Robot) -> None:
    """Tables III and IV in the eleven combinations: mean, spread, truth."""
    ours, theirs, truth = _of_each(alphas), _of_each(_table_3(robot)), combinations(true_alpha(robot))
    inside = 0
    for name, values in ours.items():
        about = {"name": name, "mean": values.mean(), "spread": _spread(values), "truth": truth[name]}
        about |= {"paper_mean": theirs[name].mean(), "paper_spread": _spread(theirs[name])}
        paper = about["paper_spread"] / abs(about["paper_mean"])
        bench.compare("variation", about["spread"] / abs(about["mean"]), published=paper, **about)
        inside += abs(values.mean() - truth[name]) <= 2.0 * _spread(values)
    bench.compare("combinations_inside", inside)


def _compare_inertias(bench: PaperBench, alphas: Array, robot: Robot) -> None:
    """Table V: inertias about the centres of mass, those that torques can tell."""
    known = known_parts(robot)
    truth, each = inertias(true_alpha(robot), known), [inertias(alpha, known) for alpha in alphas]
    paper = {row["name"]: row["value"] for row in robot.published["inertia"]["parameters"]}
    ours = inertias(alphas.mean(axis=0), known)
    beside = {"published": [paper[name] for name in ours], "truth": [truth[name] for name in ours]}
    bench.table("table-5", {"kg m²": list(ours), "ours": list(ours.values()), **beside})
    for name, value in ours.items():
        spread = _spread(np.array([one[name] for one in each]))
        about = {"published": paper[name], "name": name, "spread": spread}
        if name in STAND.told_by_torques:
            bench.compare("inertia", value, bar=truth[name], within=2.0 * spread, **about)
        else:
            bench.compare("inertia_free", value, truth=truth[name], **about)


def _compare_rank(bench: PaperBench, estimates: dict[str, AlphaEstimate], fits: dict[str, Fit], robot: Robot) -> None:
    """Why (6) cannot be computed as it stands, and how well the paths excite what can."""
    bench.compare("rank", "/".join(map(str, sorted({one.rank for one in estimates.values()}))))
    worst = max(estimates, key=lambda name: estimates[name].condition)
    conditions = [one.condition for one in estimates.values()]
    bench.compare("range_condition", conditions, paths=", ".join(estimates), worst=worst)
    size = max(abs(value) for value in combinations(true_alpha(robot)).values())
    other = {name: _combinations_of_fit(fit, known_parts(robot)) for name, fit in fits.items()}
    apart = [
        abs(other[name][key] - value) / size
        for name, one in estimates.items()
        for key, value in combinations(one.alpha).items()
    ]
    bench.compare("two_ways", max(apart))


def _combinations_of_fit(fit: Fit, known: Mapping[int, float]) -> dict[str, float]:
    """The combinations from armid's own base parameters, with what the data sheet adds."""
    v = dict(zip(fit.columns, fit.values, strict=True))
    # about the frames' origins; known parts of alpha1 and alpha7 hold Steiner's terms, which v holds already
    mass = PRINTED["link_parameters"]["a2"] ** 2 * SHEET["m3"]
    added = {"alpha1 - alpha2": mass, "alpha1 + alpha13": mass, "alpha2 + alpha7 + alpha8": known[8]}
    added |= {"alpha10": known[10], "alpha11": known[11]}
    return {
        name: added.get(name, 0.0) + sum(sign * v[one] for one, sign in parts.items())
        for name, parts in paper_file("rx60").stand["base_combinations"].items()
    }


def _alpha_of_fit(fit: Fit, known: Mapping[int, float]) -> Array:
    """Sixteen alphas with the combinations of a fit; of all solutions the smallest one."""
    matrix = np.array([[parts.get(i, 0.0) for i in range(1, 17)] for parts in COMBINATIONS.values()])
    values = np.array(list(_combinations_of_fit(fit, known).values()))
    alpha: Array = np.linalg.lstsq(matrix, values, rcond=None)[0]
    alpha[np.array(STAND.known) - 1] = [known[i] for i in STAND.known]
    return alpha


def _own_check(fit: Fit, sets: Mapping[str, Dataset]) -> TorqueCheck:
    """Torques of the fit's own data: all paths one after the other."""
    each = list(sets.values())
    predicted = [data.at_rows(fit.predict(data.motion, sigma=False).torque) for data in each]
    return TorqueCheck(
        fit.robot.joint_names,
        time=np.concatenate([data.time[data.rows] for data in each]),
        velocity=np.concatenate([data.qd[data.rows] for data in each]),
        measured=np.concatenate([data.torque for data in each]),
        predicted=np.concatenate(predicted),
        noise=np.mean([data.torque_noise for data in each if data.torque_noise is not None], axis=0),
    )


def _printed_identification(
    bench: PaperBench, sets: dict[str, Dataset], known: Mapping[int, float], robot: Robot
) -> None:
    """What (6) gives with the printed equations and tables."""
    truth = combinations(true_alpha(robot))
    for what, errata, changed in (
        ("torque equations as printed (RX-1 to RX-4)", ERRATA, {}),
        ("alpha15 by Table II as printed (RX-6)", (), {15: PRINTED_ALPHA_15}),
    ):
        alphas = np.array([estimate_alpha(data, {**known, **changed}, errata).alpha for data in sets.values()])
        ours = {name: values for name, values in _of_each(alphas).items() if name in WELL_DETERMINED}
        away = [(values.mean() - truth[name]) / abs(truth[name]) for name, values in ours.items()]
        spread = [_spread(values) / abs(values.mean()) for values in ours.values()]
        bench.compare("identification_printed", away, what=what, names=", ".join(ours), spread=spread)
    alpha = np.mean([estimate_alpha(data, known).alpha for data in sets.values()], axis=0)
    bench.compare("alpha8_printed", alpha[7] - known[7], other=alpha[6] + alpha[13] - known[7])


def _combinations_figure(alphas: Array, robot: Robot) -> Picture:
    """The combinations: ours, the truth, the paper's."""
    ours, theirs = (np.array(list(_of_each(one).values())).T for one in (alphas, _table_3(robot)))
    return estimates_figure(
        [name.replace("alpha", "α") for name in COMBINATIONS],
        ours.mean(axis=0),
        _spread(ours),
        what="RX-60, mean and spread over the paths of the identifiable combinations",
        truth=list(combinations(true_alpha(robot)).values()),
        published=theirs.mean(axis=0),
        published_errors=_spread(theirs),
        unit="kg m²",
    )


def _table_3(robot: Robot) -> Array:
    """Published alphas, (paths, 16)."""
    return np.array([row["experiments"] for row in robot.published["alpha"]["parameters"]]).T


def _of_each(alphas: Array) -> dict[str, Array]:
    """The combinations of several estimates."""
    return {name: np.array([combinations(alpha)[name] for alpha in alphas]) for name in COMBINATIONS}


def _spread(values: Array) -> Any:
    """Standard deviation over experiments, as in Table IV."""
    return np.std(values, axis=0, ddof=1)


def verification(bench: PaperBench, *, runs: int) -> dict[str, Any]:
    """IV.B: the motion (7)-(9), torques predicted with the mean alpha (Fig. 3 and 4), Table VI."""
    robot, printed = with_friction(), np.array(PRINTED["table_6"])
    alpha = np.array(bench.earlier["R1"].data["table_4"]["mean"])
    fits = [load_fit(path) for path in sorted(bench.folder_of("R1").glob("fit-*.json"))]
    up = rx60_verification()
    down = replace(up, gain_start=up.gain_end, gain_end=up.gain_start)
    steady = replace(up, gain_end=up.gain_start)
    found: list[dict[str, Any]] = []
    for number, motion in enumerate((up, down, steady)[:runs]):
        bench.say(f"verification run {number + 1} of {runs}")
        run, states = _checked_run(drive(robot, motion, 1000 * bench.seed + 100 + 10 * number), fits, robot)
        statistics = run.statistics()
        assert run.raw_error is not None
        unfiltered = np.mean(run.raw_error**2, axis=0)
        found.append({**statistics, "mse_unfiltered": unfiltered})
        about = {"published": printed[number], "run": number + 1, "unfiltered": unfiltered}
        bench.by_joint("run_error", statistics["mse"], **about)
        for key in ("rms", "correlation", "noise_ratio"):
            bench.compare(f"run_{key}", statistics[key], run=number + 1)
        if number == 0:
            bench.draw(motion_figure(run.time, states, robot, what="RX-60, verification motion"), "motion.png")
            run.draw(bench, "torque.png", "RX-60, verification", validation=True)
            if bench.as_printed:
                _printed_verification(bench, run, states, alpha)
    errors = np.array([one["mse"] for one in found])
    joints = {f"joint {j + 1}": errors[:, j] for j in range(3)}
    theirs = {f"joint {j + 1}, published": printed[: len(errors), j] for j in range(3)}
    bench.table("table-6", {"(N m)²": [f"run {k + 1}" for k in range(len(errors))], **joints, **theirs})
    bench.by_joint("largest_error", errors.max(axis=0), published=printed.max(axis=0))
    bench.compare("error_range", f"{errors.min():.3g} … {errors.max():.3g}")
    return {"runs": found, "cutoff_hz": STAND.cutoff_hz}


def _checked_run(log: Log, fits: Sequence[Fit], robot: Robot) -> tuple[TorqueCheck, Motion]:
    """Measured and predicted torque without the ends, both filtered as IV.B says, and their motion."""
    data, trim = prepared(log, robot, every=True), STAND.trimmed_s
    times = data.time[data.rows]
    data = data.part(np.flatnonzero((times > data.time[0] + trim) & (times < data.time[-1] - trim)))
    assert data.measured is not None
    assert data.torque_noise is not None
    # of the mean of the parameters, in which torque is linear
    predicted = np.mean([fit.predict(data.motion, sigma=False).torque for fit in fits], axis=0)
    motion = Motion(*(part[data.rows] for part in data.motion))
    check = TorqueCheck(
        robot.joint_names,
        data.time[data.rows] - data.time[0],
        motion.qd,
        data.torque,
        data.at_rows(predicted),
        data.torque_noise,
        raw_error=(data.measured - predicted)[data.rows],
    )
    return check, motion


def _printed_verification(bench: PaperBench, run: TorqueCheck, motion: Motion, alpha: Array) -> None:
    """Table VI, run 1, with errors of the paper left in the prediction."""
    swapped = np.array(alpha)
    swapped[14] = PRINTED_ALPHA_15
    cases = [(words, torque(*motion, alpha, left_in)) for words, left_in in LEFT_IN]
    for words, predicted in (*cases, ("RX-6", torque(*motion, swapped))):
        wrong = replace(run, predicted=run.predicted + predicted - torque(*motion, alpha))
        bench.compare("verification_printed", wrong.statistics()["mse"], errata=words)


class AlphaEstimate(NamedTuple):
    """The paper's (6), solved by the pseudo-inverse.

    Attributes:
        alpha: all sixteen; of all solutions the smallest one.
        singular_values: of the thirteen columns, scaled to unit length, largest first.
        rank: number of independent columns.
        condition: of the columns' range: the inverse in (6) itself does not exist (RX-7).
    """

    alpha: Array
    singular_values: Array
    rank: int
    condition: float


@cache
def rx60_arm() -> Robot:
    """Three links with the paper's symmetries, without rotors; the tool is the centre of the wrist."""
    return with_tool_of_link(load_robot("rx60", rotors=False, simplify="alpha"), "rx60", 4)


@cache
def with_friction() -> Robot:
    """The same arm with the stand's friction, whose Coulomb and viscous part is to be estimated."""
    robot, law = rx60_arm(), (Friction("coulomb-viscous"),) * 3
    sizes = tuple({"fc": fc, "fv": fv} for fc, fv in zip(STAND.coulomb, STAND.viscous, strict=True))
    return replace(robot, friction=law, virtual=replace(truth_of(robot), friction=law, coefficients=sizes))


def with_data_sheet(robot: Robot) -> Robot:
    """The robot with the maker's masses and centres of mass known: eleven base parameters are left."""
    return replace(robot, known={**robot.known, **KNOWN})


def known_parts(robot: Robot) -> dict[int, float]:
    """What the data sheet says about each alpha of Table II: the constants of section IV.A."""
    view = published(model_of(robot), "alpha")
    body = dict.fromkeys(view.model.names, 0.0) | KNOWN
    # inertias about the frame's origin of a mass in the centre of mass: what Steiner's theorem adds
    body |= dict.fromkeys(("Iyy2", "Izz2"), SHEET["m2"] * SHEET["a2c"] ** 2)
    body |= dict.fromkeys(("Ixx3", "Izz3"), SHEET["m3"] * SHEET["d4c"] ** 2)
    return {int(name[5:]): float(value) for name, value in zip(view.entries, view.values(body), strict=True)}


def true_alpha(robot: Robot) -> Array:
    """The sixteen alphas of the virtual robot; nothing but comparisons may use them."""
    names = [name for link in range(1, robot.n_joints + 1) for name in inertial_names(link)]
    values = dict(zip(names, truth_of(robot).inertia.ravel(), strict=True))
    return published(model_of(robot), "alpha").values({**values})


def combinations(alpha: Array) -> dict[str, float]:
    """The eleven identifiable combinations of sixteen alphas."""
    return {name: sum(c * float(alpha[i - 1]) for i, c in parts.items()) for name, parts in COMBINATIONS.items()}


def inertias(alpha: Array, known: Mapping[int, float]) -> dict[str, float]:
    """Table V from alpha: inertias about the centres of mass, D, E, F being positive products."""
    return {
        name: sum(sign * (float(alpha[i - 1]) - known[i]) for i, sign in parts.items())
        for name, parts in INERTIAS.items()
    }


def tool_paths() -> dict[str, ToolPath]:
    """The six paths of section IV.A."""
    sizes = {name: dict(size) for name, size in paper_file("rx60").stand["paths"].items()}
    free, frame = sizes.pop("free"), np.eye(4)
    frame[:3, 3] = STAND.centre
    found: dict[str, ToolPath] = {}
    for name, size in sizes.items():
        tilted = {} if name in ("ellipsoid", "helix") else {"plane": Rotation.from_euler("xy", STAND.tilt).as_matrix()}
        found[name] = getattr(tool_path_shapes, name)(size.pop("centre", STAND.centre), **size, **tilted)
    sine, cosine = np.random.default_rng(free["seed"]).normal(scale=free["size"], size=(2, 3, len(free["harmonics"])))
    series = FourierSeries(1.0 / free["period"], tuple(free["harmonics"]), sine, cosine, np.zeros(3))
    return {**found, "free": harmonic_path(frame, None, series)}


def along(robot: Robot, path: ToolPath) -> Trajectory:
    """Joint motion along a tool path."""
    return tool_path_shapes.joint_trajectory(robot, path, (0.0, 0.0, 0.3))


def drive(robot: Robot, motion: Trajectory, seed: int, *, seconds: float = 12.0) -> Log:
    """Drive a motion, laps of about `seconds` where it is periodic; all signals at 1 kHz."""
    start, sensors = motion.at(np.zeros(1)).q[0], Sensors(encoder_resolution=STAND.encoder_resolution)
    arm = StandRobot(robot, HARD, rate_hz=STAND.rate_hz, seed=seed, posture=start, sensors=sensors)
    return arm.run(motion, periods=max(1, round(seconds / motion.duration)))


def prepared(log: Log, robot: Robot, *, every: bool = False) -> Dataset:
    """Filter all signals alike; the ends, where the filter has no past or future, are cut off.

    Accelerations are those of the encoders: below the cutoff they have a thirtieth of the noise of the paper's cameras.
    """
    cutoff, step = STAND.cutoff_hz, 1 if every else "auto"
    strategy = LowPass(cutoff_hz=cutoff, motion_cutoff_hz=cutoff, rest_speed=0.0, decimate=step)
    return process(log, strategy, robot=robot)


def estimate_alpha(data: Dataset, known: Mapping[int, float], as_printed: Collection[str] = ()) -> AlphaEstimate:
    """Thirteen alphas by least squares (6) with the paper's torque equations, three known from the data sheet.

    Args:
        data: filtered motion and torque.
        known: the known alphas.
        as_printed: errata to leave in the torque equations.
    """
    columns = [torque(*data.motion, one, as_printed) for one in np.eye(16)]
    columns += list(np.moveaxis(_friction_columns(data.qd), 2, 0))
    matrix = np.stack([data.at_rows(column).ravel() for column in columns], axis=1)
    free = np.array(FREE) - 1
    found = np.zeros(len(columns))
    found[np.array(STAND.known) - 1] = [known[i] for i in STAND.known]
    target = data.torque.ravel() - matrix @ found
    unknown = np.append(free, np.arange(16, len(columns)))
    with one_blas_thread():
        found[unknown] = np.linalg.lstsq(matrix[:, unknown], target, rcond=1e-9)[0]
        scaled = matrix[:, free] / np.linalg.norm(matrix[:, free], axis=0)
        singular = np.linalg.svd(scaled, compute_uv=False)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    return AlphaEstimate(found[:16], singular, rank, float(singular[0] / singular[rank - 1]))


def _friction_columns(velocity: Array) -> Array:
    """Torque of unit Coulomb and unit viscous friction of each joint, (samples, joints, 2 joints)."""
    each = np.stack([np.sign(velocity), velocity], axis=2)[:, :, None, :] * np.eye(velocity.shape[1])[:, :, None]
    return each.reshape(*velocity.shape, -1)
