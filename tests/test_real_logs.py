"""Bars on logs of real robots, with defaults only; the definitions are those of docs/datasets.md.

NRMS is RMS(error) / std(measured torque), *moving* over samples faster than 0.02 rad/s, `rel` = |error| / |torque|.
"""

import csv
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armid
from armid.estimation import identify
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.mixed import MixedEffects
from armid.logs import read_log
from armid.logs.public import public_log
from armid.reporting import Evidence
from armid.reporting.sections.torque import errors
from armid.reporting.sections.verdict import verdict as section_of_verdict
from armid.robot.inertia import impossibility
from armid.robot.robot import inertial_names
from armid.signals import Trim, process
from armid.validation import compare, validate

UR10E_TRAIN = "ur-20_02_10-30sec_12harm.csv"
UR10E_OTHER = {"ptp": "ur-20_01_17-ptp_10_points.csv", "50sec": "ur-20_02_12-50sec_12harm.csv"}
UR10E_BARS = {"ptp": [8.0, 3.6, 3.7, 4.8, 6.4, 5.8], "50sec": [7.0, 4.0, 4.2, 5.5, 6.0, 4.1]}  # percent
TX40_SLOW = 0.01  # joints below this share of their own speed are left out: 0.05 to 0.12 rad/s on this log


@cache
def recorded(data, name, file):
    """A log of a robot and the data it gives, made once."""
    log = read_log(data / name / file, public_log(name).recipe)
    return log, process(log, robot=armid.load_robot(public_log(name).robot_path(data)))


@cache
def trained(data, name, friction, file=None):
    """A robot, its training data and the fit made of them once: by least squares, or as `identify` does by itself."""
    entry = public_log(name)
    robot = armid.load_robot(entry.robot_path(data))
    files = entry.of_use("train")
    if name == "tx40":
        sets = process(read_log([data / name / one for one in files], entry.recipe), robot=robot)
    else:
        _, sets = recorded(data, name, file or files[0])
    return robot, sets, identify(robot, sets) if friction == "auto" else WeightedLeastSquares().fit(robot, sets)


@cache
def possible(data, name, friction):
    """The physically consistent fit."""
    fit = trained(data, name, friction)[2]
    return consistent_fit(fit) if friction == "linear" else fit


def nrms(fit, data, which):
    """NRMS moving [%] of a UR10e log against torque low-passed at 5 Hz."""
    log, _ = recorded(data, "ur10e", UR10E_OTHER[which])
    check = validate(fit, log, low_pass_hz=5.0, nominal=False)
    return 100.0 * np.array([joint.nrms_moving for joint in check.joints])


def links_are_possible(fit):
    """Whether every link of a fit can exist."""
    links = [[fit.standard_parameters[name] for name in inertial_names(n)] for n in range(1, fit.robot.n_joints + 1)]
    return all(impossibility(np.array(link)) is None for link in links)


@pytest.mark.parametrize("which", ["ptp", "50sec"])
def test_ur10e_with_linear_friction(data, which):
    """40 base parameters, 58 with friction; each joint below its bar on motion the fit has not seen."""
    fit = trained(data, "ur10e", "linear")[2]
    kinds = {p.name: p.kind for p in fit.torque_model.model.parameters}
    assert len(fit.names) == 58
    assert sum(kinds[name] in ("inertial", "rotor") for name in fit.columns) == 40
    assert np.all(nrms(fit, data, which) <= UR10E_BARS[which])


@pytest.mark.parametrize("which", ["ptp", "50sec"])
def test_ur10e_with_smooth_friction(data, which):
    """Mean over joints within the bar and below that of linear friction; no joint worse by more than two percent.

    Joint 6 of ptp is 1.2 % worse, 0.06 points; over twelve blocks of that log the difference of its squared errors is
    2.5 % with a standard error of 13 %.
    """
    chosen, linear = (nrms(trained(data, "ur10e", kind)[2], data, which) for kind in ("auto", "linear"))
    assert chosen.mean() <= {"ptp": 3.7, "50sec": 3.0}[which]
    assert np.all(chosen <= 1.02 * linear)
    assert chosen.mean() < 0.85 * linear.mean()


OTHER_WAY = [  # robot, training file, what it is judged by, cutoff of the low-pass [Hz]
    ("ur10e", UR10E_TRAIN, list(UR10E_OTHER.values()), 5.0),
    ("ur10e", UR10E_OTHER["50sec"], [UR10E_TRAIN, UR10E_OTHER["ptp"]], 5.0),
    ("ur10e", UR10E_OTHER["ptp"], [UR10E_TRAIN, UR10E_OTHER["50sec"]], 5.0),
    ("xmate7p", "traj1.csv", ["traj2.csv"], 4.0),
    ("xmate7p", "traj2.csv", ["traj1.csv"], 4.0),
]


@pytest.mark.parametrize(("name", "train", "others", "low_pass_hz"), OTHER_WAY)
def test_smooth_friction_is_not_worse_on_other_motion(data, name, train, others, low_pass_hz):
    """Whichever log of an arm is trained on, all others are predicted at least as well as with linear friction.

    Judged by the relative error of all joints together, against least squares and against the physically consistent
    arm with linear friction. Slow training (ptp) and fast others show what friction does beyond the speeds of its data:
    all joints together are better there too, but a single joint may be worse, so that joints are judged one by one only
    where they are not faster than in training.
    """
    given = None if train == public_log(name).of_use("train")[0] else train
    (_, sets, plain), (_, _, smooth) = (trained(data, name, kind, given) for kind in ("linear", "auto"))
    consistent = consistent_fit(plain)
    for other in others:
        log, others_data = recorded(data, name, other)
        speeds = (np.quantile(np.abs(one.qd), 0.99, axis=0) for one in (others_data, sets))
        inside = np.divide(*speeds) < 1.2
        ours = validate(smooth, log, low_pass_hz=low_pass_hz, nominal=False)
        for linear, bar in ((plain, 1.001), (consistent, 1.0)):
            theirs = validate(linear, log, low_pass_hz=low_pass_hz, nominal=False)
            assert ours.relative_error <= bar * theirs.relative_error
            joints = np.array([a.nrms_moving / b.nrms_moving for a, b in zip(ours.joints, theirs.joints, strict=True)])
            assert np.all(joints[inside] < 1.1)


@pytest.mark.parametrize("friction", ["linear", "auto"])
def test_ur10e_physically_possible(data, friction):
    """All links can exist, and the prediction of all joints together is within 2 % of the unconstrained fit's."""
    fit = possible(data, "ur10e", friction)
    assert links_are_possible(fit)
    for which in UR10E_OTHER:
        ours, free = (nrms(f, data, which).mean() for f in (fit, trained(data, "ur10e", friction)[2]))
        assert ours <= 1.02 * free


def test_ur10e_default_of_the_command(data):
    """`armid identify` without options: smooth friction, a consistent arm, all linear bars kept."""
    fit = trained(data, "ur10e", "auto")[2]
    assert fit.method == "mixed"
    assert links_are_possible(fit)
    for which, bar in UR10E_BARS.items():
        assert np.all(nrms(fit, data, which) <= bar)


def tx40_motion(data):
    """The log cut to its motion, from 0.1 to 7.5 s, so that held-out blocks hold no standstill."""
    robot, sets, _ = trained(data, "tx40", "linear")
    log = read_log([data / "tx40" / name for name in public_log("tx40").of_use("train")], "tx40")
    steps = [step for step in sets.pipeline if step["step"] != "TrimRest"]
    return process(log, [Trim(start_s=0.1, stop_s=7.5), *steps], robot=robot)


def tx40_parts(fit, sets):
    """Error and torque of the rows that count, by the limit of slowness."""
    found = compare(fit, sets)
    fast = np.abs(found.velocity) > TX40_SLOW * np.quantile(np.abs(sets.qd), 0.99, axis=0)
    return np.where(fast, found.error, 0.0), np.where(fast, found.measured, 0.0)


def relative(error, torque):
    """|error| / |torque|."""
    return np.linalg.norm(error) / np.linalg.norm(torque)


def tx40_held_out(sets, robot, estimator, folds=4):
    """Pooled relative error of blocks that were held out; rows that share samples with a block are not trained on."""
    half = len(sets.kernel) // 2
    errors, torques = [], []
    for block in np.array_split(np.arange(len(sets)), folds):
        near = (sets.rows >= sets.rows[block[0]] - half) & (sets.rows <= sets.rows[block[-1]] + half)
        use = ~near[:, None] & (True if sets.use is None else sets.use)
        fit = estimator.fit(robot, replace(sets, use=use))
        error, torque = tx40_parts(fit, sets)
        errors.append(error[block])
        torques.append(torque[block])
    return relative(np.concatenate(errors), np.concatenate(torques))


def test_tx40(data):
    """61 parameters at 50 Hz; in-sample and held-out errors within their bars."""
    robot, sets, fit = trained(data, "tx40", "linear")
    assert len(fit.names) == 61
    assert sets.rate_hz / np.diff(sets.rows)[0] == pytest.approx(50.0)
    assert relative(*tx40_parts(fit, sets)) <= 0.052
    motion = tx40_motion(data)
    assert tx40_held_out(motion, robot, WeightedLeastSquares()) <= 0.059


def published(data):
    """WLS values of the origin by our names, those it knows to 5 % or better."""
    words = (("Iam", "Imc"), ("fvm", "fvc"), ("fsm", "fcc"), ("off", "fo"), ("fs", "fc"), ("Ia", "Im"))
    result = {}
    for row in csv.reader((data / "tx40" / "published_base_parameters.csv").read_text().splitlines()):
        name, value, percent = row[0].split()[0], float(row[3]), float(row[4])
        for old, new in words:
            if name.startswith(old):
                name = name.replace(old, new, 1)
                break
        if percent <= 5.0:
            result[name] = value
    return result


def test_tx40_agrees_with_the_origin(data):
    """The 19 published parameters with a standard deviation up to 5 % are within 3 % of ours.

    Friction is not linear at low speed, so that its coefficients depend on which slow samples are left out: with up to
    1 % of each joint's speed all 19 agree, with the default of 3 % six friction coefficients are 3 to 7 % off.

    The origin lets motor 6 act crosswise (its velocity on joint 5, joint 5's on joint 6), so that its fv5 and fv6 hold
    what the coupled motor adds.
    """
    robot, sets, _ = trained(data, "tx40", "linear")
    fit = WeightedLeastSquares(slow_share=TX40_SLOW).fit(robot, sets)
    values = dict(zip(fit.columns, fit.values, strict=True))
    values["fv5"] += values["fvc6"]
    values["fv6"] += values["fvc6"]
    reference = published(data)
    assert len(reference) == 19
    wrong = {name: values[name] / value - 1.0 for name, value in reference.items()}
    assert max(map(abs, wrong.values())) <= 0.03, wrong


def test_tx40_needs_its_coupling(data):
    """Without the coupled motor's parameters joints 5 and 6 fail visibly, and only they."""
    robot, sets, fit = trained(data, "tx40", "linear")
    bare = WeightedLeastSquares().fit(replace(robot, coupling=None), sets)
    with_it, without = (
        np.array([j.nrms_moving for j in validate(f, sets, allow_training=True).joints]) for f in (fit, bare)
    )
    assert np.all(without[4:] > 2.5 * with_it[4:])
    np.testing.assert_allclose(without[:4], with_it[:4], rtol=0.05)


@pytest.mark.prove
def test_tx40_with_smooth_friction(data):
    """Smooth friction predicts held-out blocks clearly better than linear friction."""
    robot = trained(data, "tx40", "linear")[0]
    assert tx40_held_out(tx40_motion(data), robot, MixedEffects()) <= 0.047


@pytest.mark.parametrize(("friction", "bar"), [("linear", 0.025), ("auto", 0.0246)])
def test_xmate7p(data, friction, bar):
    """69 parameters with linear friction; traj2 against torque low-passed at 4 Hz, and unfiltered."""
    fit = trained(data, "xmate7p", friction)[2]
    check = validate(fit, recorded(data, "xmate7p", "traj2.csv")[0], low_pass_hz=4.0)
    if friction == "linear":
        assert len(fit.names) == 69
    assert check.relative_error <= bar
    assert check.relative_error_raw <= 0.042  # vibration that no rigid arm has


def test_xmate7p_default_of_the_command(data):
    """Smooth friction and a consistent arm keep the bar, and predict better than that of linear friction."""
    other, _ = recorded(data, "xmate7p", "traj2.csv")
    fit = trained(data, "xmate7p", "auto")[2]
    assert links_are_possible(fit)
    check, linear = (validate(f, other, low_pass_hz=4.0) for f in (fit, possible(data, "xmate7p", "linear")))
    assert check.relative_error <= 0.025
    assert check.relative_error < linear.relative_error


def test_names_of_the_bars_are_those_of_the_registry(data):
    """The logs of these tests are those that `armid datasets` calls train and validate."""
    entry = public_log("ur10e")
    assert entry.of_use("train") == (UR10E_TRAIN,)
    assert set(entry.of_use("validate")) == set(UR10E_OTHER.values())
    assert re.fullmatch(r"[0-9a-f]{7,40}", entry.commit)


def test_the_page_names_joints_that_the_nominal_model_predicts_better(data):
    """UR10e: the errors' section names each of them, the verdict those better by 5 %; with a spoilt link it is all."""
    fit = trained(data, "ur10e", "auto")[2]
    log, _ = recorded(data, "ur10e", UR10E_OTHER["50sec"])
    wrong = np.where([name.startswith("Izz1") for name in fit.names], 3.0 * fit.values, fit.values)
    for model in (fit, replace(fit, values=wrong)):
        check = validate(model, log)
        better = [joint.name for joint in check.joints if joint.nominal_nrms_moving < joint.nrms_moving]
        told = [name for r in check.reasons if r.code == "validation.nominal" for name, *_ in r.values["joints"]]
        assert set(told) <= set(better)
        page = errors(Evidence(fit=model, check=check)).body
        assert all(name in page.partition("The nominal model predicts")[2] for name in better)
    assert "shoulder_pan_joint" in told
    assert "shoulder_pan_joint" in section_of_verdict(Evidence(fit=model, check=check)).body
