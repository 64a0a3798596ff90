"""Karahan, Bingul: Modelling and Identification of STAUBLI RX-60 Robot, experiment by experiment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from armid.arrays import Array
from armid.dynamics.base import random_motion
from armid.dynamics.kinematics import tool_frame
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.estimation.fit import Fit
from armid.estimation.least_squares import OrdinaryLeastSquares
from armid.excitation import tool_path as tool_path_shapes
from armid.excitation.fourier import FourierSeries
from armid.excitation.profiles import rx60_verification
from armid.excitation.tool_path import HarmonicPath, ToolPath
from armid.excitation.trajectory import Trajectory
from armid.experiment.drive import Recording
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.logs.log import Log, LogInfo
from armid.papers.bench import NOT, PaperBench, paper_file, stand_of
from armid.papers.frames import frames_figure
from armid.papers.pictures import estimates_figure, motion_figure, tool_path_figure
from armid.papers.rx60_equations import ERRATA, torque
from armid.papers.stand import TorqueCheck, fit_statistics, statistics_rows, with_tool_of_link
from armid.robot.load import load_robot
from armid.robot.robot import Robot, inertial_names
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.pipeline import process
from armid.signals.resample import fuse, interpolate
from armid.torque.model import model_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAND = stand_of("rx60")
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
        # rounded to four digits, as is the data sheet: m2, m3 and the centres of mass are known to 5e-4 only
        within = 1e-3 * abs(value) + 5e-5
        about = {"name": name, "erratum": errata.get(name, "")}
        unit = "N m" if name in ("alpha15", "alpha16") else "kg m²"
        bench.compare("known_part", known[int(name[5:])], published=value, within=within, unit=unit, **about)
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
    """IV.A: six tool paths, least squares (6) for thirteen alphas; Tables III, IV and V."""
    robot = rx60_arm()
    known, wanted = known_parts(robot), tool_paths()
    sets: dict[str, Dataset] = {}
    tools: dict[str, Array] = {}
    for number, name in enumerate(paths):
        bench.say(f"{name}, {number + 1} of {len(paths)}")
        motion = along(robot, wanted[name])
        sets[name] = prepared(drive(robot, motion, 1000 * bench.seed + 10 * number, seconds=seconds), robot)
        tools[name] = tool_frame(robot, motion.at(np.linspace(0.0, motion.duration, 400)).q)[:, :3, 3]
    estimates = {name: estimate_alpha(data, known) for name, data in sets.items()}
    plain = OrdinaryLeastSquares(slow_share=0.0, slow_floor=0.0)  # without friction, slow samples count as well
    fits = {name: plain.fit(with_data_sheet(robot), data) for name, data in sets.items()}
    alphas = np.array([one.alpha for one in estimates.values()])
    together = plain.fit(with_data_sheet(robot), list(sets.values()))

    _compare_spread(bench, alphas, robot)
    _compare_inertias(bench, alphas, robot)
    _compare_rank(bench, estimates, fits, robot)
    judged = fit_statistics(together)
    statistics_rows(bench, "all six paths", _own_check(together, sets).statistics(), judged)
    if bench.as_printed:
        _printed_identification(bench, sets, known, robot)
    bench.draw(tool_path_figure(tools, what="RX-60, excitation"), "tool-paths.png")
    bench.draw(_combinations_figure(alphas, robot), "combinations.png")
    together.save(bench.folder / "fit.json")
    return {
        "table_3": {name: one.alpha for name, one in estimates.items()},
        "table_4": {"mean": alphas.mean(axis=0), "std": _spread(alphas)},
        "table_5": inertias(alphas.mean(axis=0), known),
        "combinations": {name: combinations(one.alpha) for name, one in estimates.items()},
        "true_combinations": combinations(true_alpha(robot)),
        "condition_numbers": {name: one.condition for name, one in estimates.items()},
        "singular_values": {name: one.singular_values for name, one in estimates.items()},
        "statistics": {"together": judged, **{name: fit_statistics(fit) for name, fit in fits.items()}},
    }


def _compare_spread(bench: PaperBench, alphas: Array, robot: Robot) -> None:
    """Tables III and IV in the eleven combinations: mean, spread, truth."""
    ours, theirs, truth = _of_each(alphas), _of_each(_table_3(robot)), combinations(true_alpha(robot))
    inside = 0
    for name, values in ours.items():
        about = {"name": name, "mean": values.mean(), "spread": _spread(values), "truth": truth[name]}
        about |= {"paper_mean": theirs[name].mean(), "paper_spread": _spread(theirs[name])}
        key = "variation" if name in WELL_DETERMINED else "variation_small"
        paper = about["paper_spread"] / abs(about["paper_mean"])
        bench.compare(key, about["spread"] / abs(about["mean"]), published=paper, **about)
        inside += abs(values.mean() - truth[name]) <= 2.0 * _spread(values)
    bench.compare("combinations_inside", inside)


def _compare_inertias(bench: PaperBench, alphas: Array, robot: Robot) -> None:
    """Table V: inertias about the centres of mass, those that torques can tell."""
    known = known_parts(robot)
    truth, each = inertias(true_alpha(robot), known), [inertias(alpha, known) for alpha in alphas]
    paper = {row["name"]: row["value"] for row in robot.published["inertia"]["parameters"]}
    for name, value in inertias(alphas.mean(axis=0), known).items():
        spread = _spread(np.array([one[name] for one in each]))
        about = {"published": paper[name], "name": name, "truth": truth[name], "spread": spread}
        if name in STAND.told_by_torques:
            verdict = "match" if abs(value - truth[name]) <= 2.0 * spread else "worse"
            bench.compare("inertia", value, verdict=verdict, **about)
        else:
            bench.compare("inertia_free", value, **about)


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


def _combinations_figure(alphas: Array, robot: Robot) -> Figure:
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
    robot, printed = rx60_arm(), np.array(PRINTED["table_6"])
    alpha = np.array(bench.earlier["R1"].data["table_4"]["mean"])
    up = rx60_verification()
    down = replace(up, gain_start=up.gain_end, gain_end=up.gain_start)
    steady = replace(up, gain_end=up.gain_start)
    found: list[dict[str, Any]] = []
    for number, motion in enumerate((up, down, steady)[:runs]):
        bench.say(f"verification run {number + 1} of {runs}")
        data = prepared(drive(robot, motion, 1000 * bench.seed + 100 + 10 * number), robot, every=True)
        run, states, mse_filtered = _checked_run(data, alpha, robot)
        statistics = run.statistics()
        found.append({**statistics, "mse_filtered": mse_filtered})
        for j, (ours, theirs) in enumerate(zip(statistics["mse"], printed[number], strict=True)):
            floor = float(run.noise[j] ** 2)
            about = {"run": number + 1, "joint": j + 1, "floor": floor, "filtered": mse_filtered[j], "remark": ""}
            if theirs < floor:
                about |= {"rule": NOT, "remark": "; the paper's sensor must have had less noise than ours"}
            bench.compare("run_error", ours, published=theirs, **about)
        for key in ("rms", "correlation", "noise_ratio"):
            bench.compare(f"run_{key}", statistics[key], run=number + 1)
        if number == 0:
            inside = slice(data.rows[0], data.rows[-1] + 1)
            shown = Motion(*(part[inside] for part in data.motion))
            figure = motion_figure(data.time[inside] - data.time[0], shown, robot, what="RX-60, verification motion")
            bench.draw(figure, "motion.png")
            run.draw(bench, "torque.png", "RX-60, verification", validation=True)
            if bench.as_printed:
                _printed_verification(bench, run, states, alpha)
    errors = np.array([one["mse"] for one in found])
    bench.by_joint("largest_error", errors.max(axis=0), published=printed.max(axis=0))
    bench.compare("error_range", f"{errors.min():.3g} … {errors.max():.3g}")
    return {"runs": found}


def _checked_run(data: Dataset, alpha: Array, robot: Robot) -> tuple[TorqueCheck, Motion, Array]:
    """Measured and predicted torque without the ends, their motion, and the squared error after the filter."""
    assert data.measured is not None
    trim = STAND.trimmed_s
    cut = (data.time > data.time[0] + trim) & (data.time < data.time[-1] - trim)
    motion = Motion(*(np.ascontiguousarray(part[cut]) for part in data.motion))
    times, noise = data.time[cut] - data.time[0], truth_of(robot).torque_noise
    check = TorqueCheck(robot.joint_names, times, motion.qd, data.measured[cut], torque(*motion, alpha), noise)
    kept = cut[data.rows]
    smooth = torque(data.q[data.rows][kept], data.qd[data.rows][kept], data.qdd[data.rows][kept], alpha)
    return check, motion, np.mean((data.torque[kept] - smooth) ** 2, axis=0)


def _printed_verification(bench: PaperBench, run: TorqueCheck, motion: Motion, alpha: Array) -> None:
    """Table VI, run 1, with errors of the paper left in the prediction."""
    swapped = np.array(alpha)
    swapped[14] = PRINTED_ALPHA_15
    cases = [(words, torque(*motion, alpha, left_in)) for words, left_in in LEFT_IN]
    for words, predicted in (*cases, ("RX-6", torque(*motion, swapped))):
        bench.compare("verification_printed", replace(run, predicted=predicted).statistics()["mse"], errata=words)


class WatchedRobot(VirtualRobot):
    """The virtual robot under cameras, which see accelerations.

    Attributes:
        seen: time [s] and accelerations of all that was driven.
    """

    seen: tuple[Array, Array] | None = None

    def stream(self, commands: ArrayLike) -> Recording:
        """Drive, and watch."""
        recording = super().stream(commands)
        assert self.truth is not None
        before = self.seen or (np.zeros(0), np.zeros((0, self.robot.n_joints)))
        self.seen = (np.concatenate([before[0], self.truth.time]), np.concatenate([before[1], self.truth.qdd]))
        return recording

    def camera_log(self, start: float, stop: float, seed: int) -> Log:
        """Accelerations between two times [s] at the cameras' rate, with noise."""
        assert self.seen is not None
        rate_hz = STAND.camera_hz
        times = start + np.arange(int(np.floor((stop - start) * rate_hz + 1e-9)) + 1) / rate_hz
        values = interpolate(*self.seen, times)
        values = values + STAND.camera_noise * np.random.default_rng(seed).normal(size=values.shape)
        info = LogInfo(self.robot.joint_names, "none", rate_hz=rate_hz, source="cameras")
        return Log(times, {"acceleration": values}, info)


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
    return {**found, "free": HarmonicPath(frame, None, series)}


def along(robot: Robot, path: ToolPath) -> Trajectory:
    """Joint motion along a tool path."""
    return tool_path_shapes.joint_trajectory(robot, path, (0.0, 0.0, 0.3))


def drive(robot: Robot, motion: Trajectory, seed: int, *, seconds: float = 12.0) -> Log:
    """Drive a motion, laps of about `seconds` where it is periodic; encoders at 1 kHz, cameras at 300 Hz, fused."""
    start, rate_hz = motion.at(np.zeros(1)).q[0], STAND.rate_hz
    sensors = Sensors(encoder_resolution=STAND.encoder_resolution)
    arm = WatchedRobot(robot, rate_hz=rate_hz, seed=seed, posture=start, sensors=sensors)
    log = arm.run(motion, periods=max(1, round(seconds / motion.duration)))
    return fuse([log, arm.camera_log(float(log.time[0]), float(log.time[-1]), seed + 1)], rate_hz)


def prepared(log: Log, robot: Robot, *, every: bool = False) -> Dataset:
    """Filter all signals alike; the ends, where the filter has no past or future, are cut off."""
    cutoff, step = STAND.cutoff_hz, 1 if every else "auto"
    strategy = LowPass(cutoff_hz=cutoff, motion_cutoff_hz=cutoff, measured=True, rest_speed=0.0, decimate=step)
    return process(log, strategy, robot=robot)


def estimate_alpha(data: Dataset, known: Mapping[int, float], as_printed: Collection[str] = ()) -> AlphaEstimate:
    """Thirteen alphas by least squares (6) with the paper's torque equations, three known from the data sheet.

    Args:
        data: filtered motion and torque.
        known: the known alphas.
        as_printed: errata to leave in the torque equations.
    """
    columns = [data.at_rows(torque(*data.motion, one, as_printed)).ravel() for one in np.eye(16)]
    matrix = np.stack(columns, axis=1)
    free = np.array(FREE) - 1
    alpha = np.zeros(16)
    alpha[np.array(STAND.known) - 1] = [known[i] for i in STAND.known]
    target = data.torque.ravel() - matrix @ alpha
    with one_blas_thread():
        alpha[free] = np.linalg.lstsq(matrix[:, free], target, rcond=1e-9)[0]
        scaled = matrix[:, free] / np.linalg.norm(matrix[:, free], axis=0)
        singular = np.linalg.svd(scaled, compute_uv=False)
    rank = int(np.sum(singular > 1e-9 * singular[0]))
    return AlphaEstimate(alpha, singular, rank, float(singular[0] / singular[rank - 1]))
