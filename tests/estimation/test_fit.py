"""A fit can be saved, read, used and understood."""

import json

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.estimation import FrictionTerm, OrdinaryLeastSquares, WeightedLeastSquares, load_fit
from armid.estimation.mixed import MixedEffects
from armid.excitation import FourierSeries
from armid.experiment.virtual import VirtualRobot
from armid.robot import load_robot
from armid.signals import process
from tests.estimation.test_problem import arm, dataset, linear_torque  # noqa: F401
from tests.exporting.arms import fitted
from tests.random_arms import random_arm


@pytest.fixture(scope="module")
def fit(arm):  # noqa: F811
    robot, model, values = arm
    data = dataset(robot, linear_torque(model, values), noise=2.0)
    named = dict(zip(model.base.kept, values, strict=True))
    terms = (FrictionTerm("load", 1), FrictionTerm("rest", 0, (0.2,)))
    return WeightedLeastSquares(terms=terms, load_values=named, delay_s=(0.0, 0.01, 0.0)).fit(robot, data), data


def test_round_trip_through_json(fit, tmp_path):
    """A fit that was read predicts to the last digit what the saved one predicts."""
    original, data = fit
    original.save(tmp_path / "fit.json")
    again = load_fit(tmp_path / "fit.json")
    one, two = original.predict(data.motion), again.predict(data.motion)
    assert np.array_equal(one.torque, two.torque)
    assert np.array_equal(one.sigma, two.sigma)
    assert again.names == original.names
    assert again.terms == original.terms
    assert np.array_equal(again.delay_s, original.delay_s)
    assert again.summary() == original.summary()
    assert (again.factor + original.factor).samples == 2 * original.factor.samples


def test_summary_says_value_interval_and_unit(fit):
    text = fit[0].summary()
    assert "Izz1" in text
    assert "±" in text
    assert "kg m^2" in text
    assert "condition number" in text


def test_prediction_interval_is_that_of_the_covariance(fit):
    original, data = fit
    motion = type(data.motion)(*(array[:3] for array in data.motion))
    regressor = original.torque_model.regressor(motion)
    sigma = np.sqrt(np.einsum("tjp,pq,tjq->tj", regressor, original.covariance, regressor))
    assert np.allclose(original.predict(motion).sigma, sigma)


def test_expression_of_a_group(fit):
    assert "Izz1" in fit[0].expression("Izz1")
    assert len(fit[0].expression("Izz1")) > len("Izz1")
    assert fit[0].expression("fl2") == "fl2"


def test_data_of_the_fit_are_on_record(fit):
    history = fit[0].history
    assert len(history["data_sha256"][0]) == 64
    assert history["armid"]


def test_sigma_falls_with_more_data(arm):  # noqa: F811
    """Twice the data, 1 / sqrt(2) of the standard deviation."""
    robot, model, values = arm
    data = [dataset(robot, linear_torque(model, values), noise=2.0, seed=s) for s in range(4)]
    one, four = OrdinaryLeastSquares().fit(robot, data[0]), OrdinaryLeastSquares().fit(robot, data)
    assert np.allclose(four.sigma / one.sigma, 0.5, atol=0.06)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not JSON"),
        ("[]", "is not a fit"),
        ('{"format": "armid plan 1"}', "is not a fit"),
        ('{"format": "armid fit 1"}', "robot: is missing"),
    ],
)
def test_files_that_are_no_fit(tmp_path, content, words):
    path = tmp_path / "fit.json"
    path.write_text(content)
    with pytest.raises(ArmidError, match=words):
        load_fit(path)


def test_damaged_fit(fit, tmp_path):
    path = tmp_path / "fit.json"
    fit[0].save(path)
    content = json.loads(path.read_text())
    content["robot"] = {"type": "Robot"}
    path.write_text(json.dumps(content))
    with pytest.raises(ArmidError, match=r"robot\.name: is missing"):
        load_fit(path)


def test_coefficients_of_a_friction_curve_are_no_parameters(tmp_path):
    """Counts, lists and classes leave them out, alike; what a fit calls determined has at most 30 % of deviation."""
    unseen = random_arm(5, tmp_path)
    rng = np.random.default_rng(0)
    n = unseen.robot.n_joints
    series = FourierSeries(0.2, (1, 2, 3), *rng.normal(scale=0.2, size=(2, n, 3)), np.zeros(n))
    data = process(VirtualRobot(unseen.robot, rate_hz=100.0, seed=1).run(series, periods=1), robot=unseen.robot)
    fit = MixedEffects().fit(unseen.robot, data)
    curve = [name for term in fit.terms if term.law.startswith(("smooth", "rest")) for name in term.names]
    assert curve
    count, total = fit.identifiability.counts
    assert (count, total) == (len(fit.determined), len(fit.names) - len(curve))
    assert not fit.determined & set(curve)
    pairs = zip(fit.names, fit.sigma, np.abs(fit.values), strict=True)
    assert all(sigma <= 0.3 * value for name, sigma, value in pairs if name in fit.determined)
    assert f"{count} of {total} parameters are determined" in fit.summary()
    speeds = np.array(fit.history["range"]["speed"])
    assert np.all(speeds[:, 0] < speeds[:, 1])
    assert np.all(speeds[:, 1] <= np.abs(data.qd).max(axis=0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.update(covariance=(-np.array(data["covariance"])).tolist()), "negative variances"),
        (lambda data: data["covariance"][0].__setitem__(0, -1.0), "negative variances"),
        (lambda data: data.update(weights=(-np.array(data["weights"])).tolist()), "weights holds negative values"),
        (lambda data: data["parameters"][0].update(value=1e300), "larger than anything in mechanics"),
        (lambda data: data["robot"].update(name="a\ud800"), "invisible characters"),
        (lambda data: data["robot"]["joints"][0].update(name="a\nb"), "invisible characters"),
    ],
)
def test_nonsense_in_a_file_is_refused(tmp_path, change, words):
    """What no estimate has: negative variances and weights, sizes beyond mechanics, names that nobody can read."""
    fit = fitted(load_robot("ir361"), possible=False)
    fit.save(tmp_path / "fit.json")
    data = json.loads((tmp_path / "fit.json").read_text())
    change(data)
    (tmp_path / "fit.json").write_text(json.dumps(data))
    with pytest.raises(ArmidError, match=words):
        load_fit(tmp_path / "fit.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda data: data["standard_parameters"].update(Izz2=1e20),
            r"standard_parameters makes the group of \w+ 1e\+20",
        ),
        (lambda data: data["standard_parameters"].pop("Izz2"), "standard_parameters lacks Izz2"),
        (
            lambda data: data.update(recording=[[-0.1, 0.0, 0.0]] * len(data["delay_s"])),
            "recording holds negative values",
        ),
    ],
)
def test_entries_that_contradict_each_other_are_refused(tmp_path, change, words):
    """Links of another arm than the estimates', and spreads that are none."""
    fit = fitted(load_robot("ir361"))
    fit.save(tmp_path / "fit.json")
    load_fit(tmp_path / "fit.json")
    data = json.loads((tmp_path / "fit.json").read_text())
    change(data)
    (tmp_path / "fit.json").write_text(json.dumps(data))
    with pytest.raises(ArmidError, match=words):
        load_fit(tmp_path / "fit.json")
