"""Priors: what they say, what they refuse, and a real arm whose data are too poor without one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.errors import DescriptionError
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.feasible import ConsistentLeastSquares, consistent_fit
from armid.estimation.consistent.prior import (
    Prior,
    base_precision,
    fit_prior,
    nominal_prior,
    parse_prior,
    read_prior,
)
from armid.estimation.least_squares import OrdinaryLeastSquares, PriorLeastSquares, WeightedLeastSquares
from armid.estimation.problem import EstimationError, Problem
from armid.logs import read_log
from armid.robot.inertia import from_com, impossibility
from armid.robot.robot import inertial_names
from armid.signals import process
from armid.torque.model import TorqueModel
from tests.estimation.feasible_arms import library_arm, made, phi, truth

ROBOTS = Path(armid.__file__).parent / "logs" / "robots"
FILE = """
source: drawing
strength: 0.1
rotor_inertia: [1.0e-4, 1.0e-4, 1.0e-4]
links:
  - {mass: 5, com: [0, 0, 0.1], inertia: {xx: 0.1, xy: 0, xz: 0, yy: 0.1, yz: 0, zz: 0.05}}
  - {link: 3, strength: 0.5, mass: 2, com: [0.1, 0, 0], inertia: {xx: 0.01, xy: 0, xz: 0, yy: 0.02, yz: 0, zz: 0.02}}
"""


def drawing(robot, strength=0.05, factor=1.0):
    """The virtual arm's own links as a prior."""
    values = {}
    for number, row in enumerate(robot.virtual.inertia, start=1):
        values |= dict(zip(inertial_names(number), (factor * row).tolist(), strict=True))
    return Prior(values, strength, "drawing")


def relative_error(fit, data):
    """Size of the residual over that of the torque, all joints and rows."""
    predicted, measured = [], []
    for block in Problem(fit.robot, data).blocks():
        measured.append(data.torque[block.which])
        predicted.append(measured[-1] - block.torque + block.regressor @ fit.values)
    return np.linalg.norm(np.vstack(predicted) - np.vstack(measured)) / np.linalg.norm(np.vstack(measured))


def test_file(tmp_path):
    """Masses, centres and inertias become parameters; links may be left out and have their own strength."""
    path = tmp_path / "cad.yaml"
    path.write_text(FILE, encoding="utf-8")
    robot = library_arm("rx60")
    prior = read_prior(path, robot)
    assert (prior.links, prior.strength, prior.source) == ((1, 3), 0.1, "drawing")
    assert (prior.of_link(1), prior.of_link(2), prior.of_link(3)) == (0.1, None, 0.5)
    np.testing.assert_allclose(prior.link(3), from_com(2.0, [0.1, 0, 0], np.diag([0.01, 0.02, 0.02])))
    assert prior.values["Im2"] == 1e-4
    assert parse_prior(f"{path}:0.02", robot).strength == 0.02
    assert parse_prior(f"{path}:2%", robot).strength == 0.02
    assert parse_prior(str(path), robot).strength == 0.1
    assert "links 1, 3, strength 10 %, link 3 50 %" in str(prior.note())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("zz: 0.05", "zz: 0.5"), "link 1 of the prior is impossible.*triangle"),
        (("mass: 5", "mass: -5"), "link 1 of the prior is impossible: its mass is negative"),
        (("strength: 0.1", "strength: 0"), "strength of a prior is 0"),
        (("link: 3", "link: 4"), "links 1 to 3"),
        (("link: 3", "lnk: 3"), "did you mean 'link'"),
        (("mass: 5", "mass: five"), "is not a number"),
        (("links:", "bodies:"), "is not a known key"),
    ],
)
def test_refuses(tmp_path, change, words):
    """What is wrong with a prior is said with the link and the reason."""
    path = tmp_path / "cad.yaml"
    path.write_text(FILE.replace(*change, 1), encoding="utf-8")
    with pytest.raises((EstimationError, DescriptionError), match=words):
        read_prior(path, library_arm("rx60"))


def test_refuses_the_wrong_robot():
    robot = library_arm("rx60")
    with pytest.raises(EstimationError, match="states no inertias"):
        nominal_prior(robot)
    with pytest.raises(EstimationError, match="lacks mx1"):
        _ = Prior({"m1": 1.0}, 0.1)
    with pytest.raises(EstimationError, match="link 4; rx60 has 3 links"):
        drawing(library_arm("kr15")).link_rows(Unknowns(armid.dynamics.Model(robot)))
    with pytest.raises(EstimationError, match="no link parameters"):
        fit_prior(WeightedLeastSquares().fit(robot, made(robot, noise=0.1)))
    with pytest.raises(EstimationError, match="no prior is given"):
        PriorLeastSquares().fit(robot, made(robot, noise=0.1))


def test_strength_is_the_relative_deviation_of_the_mass():
    """The mass alone has the stated standard deviation."""
    robot = library_arm("rx60")
    unknowns = Unknowns(armid.dynamics.Model(robot))
    rows, target = drawing(robot, 0.05).link_rows(unknowns)
    own = [unknowns.names.index(name) for name in inertial_names(2)]
    covariance = np.linalg.inv((rows.T @ rows)[np.ix_(own, own)])
    assert np.sqrt(covariance[0, 0]) / robot.virtual.inertia[1, 0] == pytest.approx(0.05, rel=1e-6)
    values = truth(robot)
    x = np.array([values.get(name, 0.0) for name in unknowns.names])
    np.testing.assert_allclose(rows @ x, target, atol=1e-9)


def test_base_precision_is_that_of_samples():
    """Full sets drawn from the prior have base parameters with the stated mean and covariance."""
    robot = library_arm("rx60").without_rotors()
    model = TorqueModel(robot)
    prior = drawing(robot, 0.05)
    rows, target = prior.link_rows(Unknowns(model.model))
    covariance = np.linalg.inv(rows.T @ rows)
    precision, mean = base_precision(model, prior)
    base = model.model.base.matrix
    np.testing.assert_allclose(mean, base @ (covariance @ rows.T @ target), rtol=1e-5, atol=1e-5)
    expected = base @ covariance @ base.T
    found = np.linalg.inv(precision)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("estimator", [PriorLeastSquares, ConsistentLeastSquares])
def test_prior_counts_by_its_strength(estimator):
    """A wrong prior decides when it is firm or data are noisy, and is overruled when it is vague."""
    robot = library_arm("rx60")
    data = made(robot, noise=0.5, samples=200)
    model = armid.dynamics.Model(robot)
    values = truth(robot)
    base = model.base.matrix @ np.array([values[name] for name in model.base.names])
    wrong = {}
    for strength in (1e-4, 100.0):
        fit = estimator(prior=drawing(robot, strength, factor=1.5)).fit(robot, data)
        wrong[strength] = fit.values - base
        assert any(note.values.get("source") == "drawing" for note in fit.notes)
    first = model.base.kept.index("mx2")
    assert wrong[1e-4][first] == pytest.approx(0.5 * base[first], rel=0.02)
    assert abs(wrong[100.0][first]) < 0.02 * abs(base[first])


def test_firm_prior_leaves_the_links_where_they_are():
    """Links out are the prior's where data agree, and a fit can be the next one's prior."""
    robot = library_arm("kr15")
    data = made(robot, noise=1.0)
    fit = ConsistentLeastSquares(prior=drawing(robot, 0.01)).fit(robot, data)
    for number in range(1, 7):
        np.testing.assert_allclose(phi(fit, number)[0], robot.virtual.inertia[number - 1, 0], rtol=0.03)
    again = consistent_fit(fit, prior=fit_prior(fit, 0.01))
    assert again.standard_parameters["m3"] == pytest.approx(fit.standard_parameters["m3"], rel=0.02)
    free = WeightedLeastSquares().fit(robot, data)
    assert np.all(fit.sigma <= 1.05 * free.sigma)


def test_a_log_does_not_count_twice():
    """A fit is no prior for the data that it was made from, which would narrow intervals; for others it is."""
    robot = library_arm("rx60")
    data, other = made(robot, noise=0.1), made(robot, noise=0.2)
    prior = fit_prior(ConsistentLeastSquares().fit(robot, data))
    with pytest.raises(EstimationError, match="identified from this very log"):
        armid.identify(robot, [other, data], method="feasible", prior=prior)
    assert armid.identify(robot, other, method="feasible", prior=prior).method == "feasible"


def test_thin_bodies_can_be_priors():
    """A point mass, as some CAD exports have it, is a prior too."""
    robot = library_arm("rx60")
    values = dict(zip(inertial_names(2), from_com(5.0, [0.1, 0, 0], np.zeros((3, 3))).tolist(), strict=True))
    fit = ConsistentLeastSquares(prior=Prior(values, 0.5)).fit(robot, made(robot, noise=0.2))
    assert impossibility(phi(fit, 2)) is None


@pytest.fixture(scope="module")
def kr300():
    """The arm and the two logs of the KR300."""
    import os

    folder = os.environ.get("ARMID_DATA")
    if not folder or not (Path(folder) / "kr300" / "A.mat").exists():
        pytest.skip("needs real logs: set ARMID_DATA to the folder that holds them")
    robot = armid.load_robot(ROBOTS / "kr300.yaml")
    logs = [read_log(Path(folder) / "kr300" / name, recipe="kr300") for name in ("A.mat", "B.mat")]
    return robot, *(process(log, robot=robot) for log in logs)


def test_kr300_is_flagged_before_any_validation(kr300):
    """Plain least squares on poor data says so itself; the motion it was not trained on shows why."""
    robot, train, other = kr300
    fit = OrdinaryLeastSquares().fit(robot, train)
    assert fit.identifiability.poor
    assert "Do not trust" in fit.identifiability.verdict
    assert relative_error(fit, train) < 0.12
    assert relative_error(fit, other) > 0.2


@pytest.mark.parametrize("estimator", [PriorLeastSquares, ConsistentLeastSquares])
def test_kr300_with_its_cad_prior(kr300, estimator):
    """Trained on A with a 5 % prior, the relative error on B is below 13 %; in fact about 10 %."""
    robot, train, other = kr300
    prior = read_prior(ROBOTS / "kr300-cad.yaml", robot)
    fit = estimator(prior=prior).fit(robot, train)
    assert relative_error(fit, other) < 0.11
    if fit.standard_parameters is not None:
        assert all(impossibility(phi(fit, number)) is None for number in range(1, 7))
        assert 120.0 < fit.standard_parameters["m6"] < 260.0  # flange and a payload of about 150 kg


def test_kr300_needs_no_prior_to_be_possible(kr300):
    """Physical consistency alone makes the poor data usable."""
    robot, train, other = kr300
    fit = ConsistentLeastSquares().fit(robot, train)
    assert relative_error(fit, other) < 0.13


def test_prior_from_a_urdf(data):
    """The inertias of a URDF are a prior for the same arm."""
    path = data / "ur10e" / "ur10e.urdf"
    robot = armid.load_robot(path)
    prior = parse_prior("nominal:0.2", robot)
    assert prior.links == (1, 2, 3, 4, 5, 6)
    assert read_prior(path, robot, 0.1).values == prior.values
    with pytest.raises(EstimationError, match="6 joints; rx60 has 3"):
        read_prior(path, library_arm("rx60"))
    assert replace(prior, strength=0.3).strength == 0.3
