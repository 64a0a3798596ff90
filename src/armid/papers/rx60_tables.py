"""Tables II to V of the RX-60 paper: ours beside theirs, in what torques can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.estimation.fit import Fit
from armid.papers import rx60_bench as stand
from armid.papers.experiment import Bench, Row, table
from armid.papers.pictures import estimates_figure
from armid.papers.rx60_equations import ERRATA, torque
from armid.papers.statistics import listed, torque_statistics
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.model import model_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ALONE = ("Czz2", "D2", "E2", "F2", "Czz3", "D3", "E3", "F3")  # inertias of Table V that torques determine


def rank_row(bench: Bench, motion: Motion, robot: Robot) -> Row:
    """How many of the sixteen columns are independent."""
    columns = np.stack([torque(*motion, one).ravel() for one in np.eye(16)], axis=1)
    rank = int(np.linalg.matrix_rank(columns / np.linalg.norm(columns, axis=0), tol=1e-9))
    base = len(model_of(robot).base.kept)
    return bench.row(
        "Table II: independent columns among the 16",
        ours=rank,
        published=16,
        verdict="not comparable",
        note=f"RX-7: (6) needs 16; {base} once alpha4 is tied to alpha16",
    )


def spread_rows(bench: Bench, alphas: Array, robot: Robot) -> list[Row]:
    """Tables III and IV in the eleven combinations: mean, spread, truth."""
    paper = np.array([row["experiments"] for row in robot.published["alpha"]["parameters"]]).T
    ours = {name: np.array([stand.combinations(a)[name] for a in alphas]) for name in stand.COMBINATIONS}
    theirs = {name: np.array([stand.combinations(a)[name] for a in paper]) for name in stand.COMBINATIONS}
    truth, rows = stand.combinations(stand.true_alpha(robot)), []
    for name, values in ours.items():
        other = theirs[name]
        spread, printed = spread_of(values) / abs(values.mean()), spread_of(other) / abs(other.mean())
        words = f"Tables III and IV: coefficient of variation of {name}"
        told = f"mean {values.mean():.4g} ± {spread_of(values):.2g}, truth {truth[name]:.4g}; published mean "
        told += f"{other.mean():.4g} ± {spread_of(other):.2g}, of another arm"
        if name in stand.WELL_DETERMINED:
            rows.append(bench.at_most(words, float(spread), published=float(printed), bar=0.1, note=told))
        else:
            told, apart = f"small; {told}", "not comparable"
            rows.append(bench.row(words, ours=float(spread), published=float(printed), verdict=apart, note=told))
    reach = {name: 2.0 * spread_of(values) for name, values in ours.items()}
    inside = sum(abs(values.mean() - truth[name]) <= reach[name] for name, values in ours.items())
    rows.append(
        bench.at_least(
            "Table IV: combinations whose truth lies within two standard deviations of the mean",
            float(inside),
            published=None,
            bar=11.0,
            note="of 11; the paper has no truth to compare with",
        )
    )
    return rows


def inertia_rows(bench: Bench, alphas: Array, robot: Robot) -> list[Row]:
    """Table V: inertias about the centres of mass, those that torques can tell."""
    known = stand.known_parts(robot)
    found, truth = (inertias(values, known) for values in (alphas.mean(axis=0), stand.true_alpha(robot)))
    spread = {name: spread_of(np.array([inertias(a, known)[name] for a in alphas])) for name in found}
    rows = []
    paper = {row["name"]: row["value"] for row in robot.published["inertia"]["parameters"]}
    for name, value in found.items():
        told = f"truth {truth[name]:.4g}, spread over the paths {spread[name]:.2g}"
        if name in _ALONE:
            sound = abs(value - truth[name]) <= 2.0 * spread[name]
            verdict = "match" if sound else "worse"
            note = f"{told}; the verdict is about the truth of the virtual robot, not about the other arm's value"
        else:
            verdict, note = "not comparable", f"{told}; moves along a free direction (RX-7)"
        rows.append(
            bench.row(
                f"Table V: {name}", ours=value, published=float(paper[name]), unit="kg m²", verdict=verdict, note=note
            )
        )
    return rows


def inertias(alpha: Array, known: dict[int, float]) -> dict[str, float]:
    """Table V from alpha: inertias about the centres of mass, D, E, F being positive products."""
    a = {i: float(alpha[i - 1]) - known[i] for i in stand.FREE}
    return {
        "Czz1": a[8],
        "Axx2": a[2],
        "Byy2": a[1],
        "Czz2": a[13] + a[1],
        "D2": a[9],
        "E2": a[10],
        "F2": -a[5],
        "Axx3": a[7],
        "Byy3": a[3],
        "Czz3": a[14] + a[7],
        "D3": a[11],
        "E3": a[12],
        "F3": -a[6],
    }


def rank_and_condition_rows(
    bench: Bench, estimates: dict[str, stand.AlphaEstimate], fits: dict[str, Fit], robot: Robot
) -> list[Row]:
    """Why (6) cannot be computed as it stands, and how well the paths excite what can."""
    ranks = sorted({one.rank for one in estimates.values()})
    worst = max(estimates, key=lambda name: estimates[name].condition)
    truth = stand.combinations(stand.true_alpha(robot))
    size = max(abs(value) for value in truth.values())
    other = {name: _combination_of_fit(fit, stand.known_parts(robot)) for name, fit in fits.items()}
    apart = max(
        abs(other[name][key] - value) / size
        for name, one in estimates.items()
        for key, value in stand.combinations(one.alpha).items()
    )
    return [
        bench.row(
            "rank of the thirteen estimated columns",
            ours="/".join(map(str, ranks)),
            published=13,
            verdict="not comparable",
            note="RX-7: the inverse in (6) does not exist",
        ),
        bench.row(
            "condition number of the columns' range, by path",
            ours=listed([one.condition for one in estimates.values()], 3),
            verdict="not comparable",
            note=f"{', '.join(estimates)}; worst {worst}; RX-12: the condition number of the pseudo-inverse is Y's",
        ),
        bench.at_most(
            "pseudo-inverse of the paper's columns against least squares for base parameters: largest difference",
            float(apart),
            published=None,
            bar=1e-6,
            note="of the largest combination; two separate ways to the same eleven numbers",
        ),
    ]


def _combination_of_fit(fit: Fit, known: dict[int, float]) -> dict[str, float]:
    """The combinations from armid's own base parameters, with what the data sheet adds."""
    v = dict(zip(fit.columns, fit.values, strict=True))
    # about the frames' origins; known parts of alpha1 and alpha7 hold Steiner's terms, which v holds already
    a2, sheet = table("rx60")["link_parameters"]["a2"], table("rx60")["data_sheet"]
    mass = a2**2 * sheet["m3"]
    return {
        "alpha1 - alpha2": mass - v["Ixx2"],
        "alpha1 + alpha13": mass + v["Izz2"],
        "alpha3 - alpha7": -v["Ixx3"],
        "alpha7 + alpha14": v["Izz3"],
        "alpha2 + alpha7 + alpha8": v["Izz1"] + v["Ixx2"] + v["Ixx3"] + known[8],
        "alpha5": v["Ixy2"],
        "alpha6": v["Ixy3"],
        "alpha9": -v["Iyz2"],
        "alpha10": known[10] - v["Ixz2"],
        "alpha11": known[11] - v["Iyz3"],
        "alpha12": -v["Ixz3"],
    }


def printed_identification_rows(
    bench: Bench, sets: dict[str, Dataset], known: dict[int, float], robot: Robot
) -> list[Row]:
    """What (6) gives with the printed equations and tables."""
    rows = []
    for words, errata, changed in (
        ("torque equations as printed (RX-1 to RX-4)", ERRATA, {}),
        ("alpha15 by Table II as printed (RX-6)", (), {15: printed_alpha_15()}),
    ):
        each = [stand.estimate_alpha(data, {**known, **changed}, errata) for data in sets.values()]
        alphas = np.array([one.alpha for one in each])
        ours = [np.array([stand.combinations(a)[name] for a in alphas]) for name in stand.WELL_DETERMINED]
        truth = stand.combinations(stand.true_alpha(robot))
        away = [
            (v.mean() - truth[name]) / abs(truth[name]) for v, name in zip(ours, stand.WELL_DETERMINED, strict=True)
        ]
        rows.append(
            bench.row(
                f"{words}: relative error of {', '.join(stand.WELL_DETERMINED)}",
                ours=listed(away, 3),
                verdict="not comparable",
                note=f"coefficients of variation {listed([spread_of(v) / abs(v.mean()) for v in ours], 2)}",
            )
        )
    alpha = np.mean([stand.estimate_alpha(data, known).alpha for data in sets.values()], axis=0)
    rows.append(
        bench.row(
            "alpha8 by Table II as printed (RX-5): Czz3",
            ours=float(alpha[7] - known[7]),
            verdict="not comparable",
            unit="kg m²",
            note=f"alpha7 + alpha14 says {alpha[6] + alpha[13] - known[7]:.4g}: the table contradicts itself",
        )
    )
    return rows


def printed_alpha_15() -> float:
    """alpha15 by the formula of Table II as printed (RX-6)."""
    sheet = table("rx60")["data_sheet"]
    return float(sheet["g0"] * (sheet["m2"] + sheet["m3"]) * sheet["a2c"])


def combinations_figure(alphas: Array, robot: Robot) -> Figure:
    """The combinations: ours, the truth, the paper's."""
    names = list(stand.COMBINATIONS)
    ours = np.array([[stand.combinations(a)[name] for name in names] for a in alphas])
    paper = np.array([row["experiments"] for row in robot.published["alpha"]["parameters"]]).T
    theirs = np.array([[stand.combinations(a)[name] for name in names] for a in paper])
    truth = stand.combinations(stand.true_alpha(robot))
    return estimates_figure(
        [name.replace("alpha", "α") for name in names],
        ours.mean(axis=0),
        spread_of(ours),
        what="RX-60, mean and spread over the paths of the identifiable combinations",
        truth=[truth[name] for name in names],
        published=theirs.mean(axis=0),
        published_errors=spread_of(theirs),
        unit="kg m²",
    )


def own_torque_statistics(fit: Fit, sets: dict[str, Dataset]) -> dict[str, list[float]]:
    """Statistics of the fit's own data: all paths one after the other."""
    predicted = [data.at_rows(fit.predict(data.motion, sigma=False).torque) for data in sets.values()]
    measured = np.concatenate([data.torque for data in sets.values()])
    speed = np.concatenate([data.qd[data.rows] for data in sets.values()])
    noise = np.mean([data.torque_noise for data in sets.values() if data.torque_noise is not None], axis=0)
    return torque_statistics(measured, np.concatenate(predicted), speed, noise, fit.robot.joint_names)


def true_inertia(robot: Robot) -> Array:
    """All inertial parameters of the virtual robot, in standard order."""
    assert robot.virtual is not None
    return np.asarray(robot.virtual.inertia.ravel())


def torque_noise(robot: Robot) -> Array:
    """Standard deviation of the torque noise per joint [N m]."""
    assert robot.virtual is not None
    return np.asarray(robot.virtual.torque_noise)


def spread_of(values: Array) -> Any:
    """Standard deviation over experiments, as in Table IV."""
    return np.std(values, axis=0, ddof=1)
