"""Bodies: the nearest one that can exist, and words of a CAD program."""

import numpy as np
import pytest

from armid.papers.kr15 import table_3
from armid.payload.body import consistent_body, described, spread, undescribed
from armid.robot.inertia import from_com, impossibility, pseudo_inertia
from armid.robot.load import load_robot


def random_body(rng):
    """Mass points make a body."""
    points, masses = rng.normal(scale=0.2, size=(6, 3)), rng.uniform(0.1, 1.0, 6)
    moment = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    centre = masses @ points / masses.sum()
    about = moment - masses.sum() * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    return from_com(masses.sum(), centre, about), (masses.sum(), centre, about)


@pytest.mark.parametrize("seed", range(5))
def test_words_and_parameters(seed):
    """Mass, centre and inertia about it come out as the mass points give them, and lead back."""
    phi, (mass, centre, about) = random_body(np.random.default_rng(seed))
    values = described(phi)
    np.testing.assert_allclose(values[:4], [mass, *centre], rtol=1e-12)
    np.testing.assert_allclose(values[4:], about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-12)
    np.testing.assert_allclose(undescribed(values), phi, atol=1e-12)


def test_published_mean_becomes_possible():
    """The published mean of the KR 15 breaks the triangle inequality (SW-7); its nearest body does not."""
    table = table_3(load_robot("kr15"))
    theirs = undescribed(table.mean)
    assert "triangle" in impossibility(theirs)
    information = np.diag(1.0 / np.maximum(np.abs(theirs), 0.01) ** 2 * 1e4)
    ours = consistent_body(theirs, information)
    assert impossibility(ours) is None
    assert np.linalg.eigvalsh(pseudo_inertia(ours))[0] > 0.0
    assert np.linalg.norm(ours - theirs) < 0.05 * np.linalg.norm(theirs)


def test_nearest_as_a_semidefinite_program_finds_it():
    """An impossible estimate moves as far as CVXPY says it must, and hardly farther."""
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(3)
    root = rng.normal(size=(10, 10))
    information = 1e4 * (root @ root.T + np.eye(10))
    wrong = from_com(4.0, [0.05, 0.0, 0.1], np.diag([0.05, 0.06, 0.2]))
    x = cvxpy.Variable(10)
    basis = [pseudo_inertia(unit) for unit in np.eye(10)]
    body = sum(x[i] * basis[i] for i in range(10))
    cost = cvxpy.quad_form(x - wrong, cvxpy.psd_wrap(information))
    cvxpy.Problem(cvxpy.Minimize(cost), [body >> 0]).solve(solver="CLARABEL")
    least = float((x.value - wrong) @ information @ (x.value - wrong))
    ours = consistent_body(wrong, information)
    away = float((ours - wrong) @ information @ (ours - wrong))
    assert least > 1.0
    assert least * (1.0 - 1e-6) <= away <= 1.01 * least + 0.05


def test_a_possible_estimate_stays():
    """Where the data say something, the body moves by less than a thousandth of a standard deviation."""
    phi, _ = random_body(np.random.default_rng(0))
    sigma = 0.003 * np.abs(phi) + 1e-4
    moved = consistent_body(phi, np.diag(sigma**-2.0)) - phi
    assert np.max(np.abs(moved) / sigma) < 0.05


def test_what_data_leave_open_is_a_plausible_body():
    """Only the mass is known: the rest is that of a body of this mass and of ordinary size."""
    information = np.diag([1e6, *[1e-6] * 9])
    body = consistent_body(np.array([3.0, 0.0, 0.0, 0.0, -50.0, 0.0, 80.0, 0.0, 0.0, 7.0]), information)
    mass, *centre = described(body)[:4]
    assert mass == pytest.approx(3.0, rel=1e-3)
    assert np.linalg.norm(centre) < 0.5
    assert impossibility(body) is None


def test_spread_is_that_of_draws():
    """First-order covariances of centre and inertia agree with those of random draws."""
    phi, _ = random_body(np.random.default_rng(1))
    rng = np.random.default_rng(2)
    root = 1e-3 * rng.normal(size=(10, 10))
    _, covariance = spread(phi, root @ root.T)
    draws = np.array([described(phi + root @ rng.normal(size=10)) for _ in range(4000)])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), draws.std(axis=0), rtol=0.06)
