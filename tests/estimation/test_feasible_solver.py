"""The semidefinite solver against CVXPY, and the divergence that settles what data leave free."""

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation.consistent.conditions import Unknowns, reference_bodies
from armid.estimation.consistent.regularisation import VAGUE, most_plausible
from armid.estimation.consistent.semidefinite import Condition, minimise, upper_triangle


def test_matrices_as_vectors_keep_their_inner_product():
    rng = np.random.default_rng(0)
    a, b = (m + m.T for m in rng.normal(size=(2, 4, 4)))
    assert upper_triangle(a) @ upper_triangle(b) == pytest.approx(np.sum(a * b))


def test_agrees_with_cvxpy():
    """A random problem with matrix conditions, inequalities and equations has the same solution."""
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    n = 8
    matrix, target = rng.normal(size=(20, n)), rng.normal(size=20)
    conditions = []
    for size in (3, 4, 1, 1):
        slopes = rng.normal(size=(n, size, size))
        conditions.append(Condition("c", 0.4 * np.eye(size), 0.5 * (slopes + slopes.transpose(0, 2, 1))))
    equal = rng.normal(size=(2, n)), 0.1 * rng.normal(size=2)
    scale = np.geomspace(0.2, 5.0, n)
    found = minimise(matrix, target, conditions, scale, equal=equal)
    x = cvxpy.Variable(n)
    limits = [equal[0] @ x == equal[1]]
    for condition in conditions:
        size = len(condition.constant)
        value = condition.constant + sum(x[j] * condition.slopes[j] for j in range(n))
        limits.append(value >> 0 if size > 1 else value >= 0)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(matrix @ x - target)), limits)
    problem.solve(solver=cvxpy.CLARABEL)
    assert found.good
    np.testing.assert_allclose(found.x, x.value, atol=1e-4 * np.abs(x.value).max())


def test_margin_keeps_inside():
    """A distance from the edge is kept, as a share of the condition's size."""
    condition = Condition("c", np.zeros((1, 1)), np.ones((1, 1, 1)))
    found = minimise(np.eye(1), np.array([-1.0]), (condition,), np.array([10.0]), margin=0.01)
    assert found.x[0] == pytest.approx(0.1, rel=1e-5)


def test_says_when_nothing_is_possible():
    conditions = (
        Condition("a", np.array([[-1.0]]), np.ones((1, 1, 1))),
        Condition("b", np.array([[-1.0]]), -np.ones((1, 1, 1))),
    )
    found = minimise(np.eye(1), np.zeros(1), conditions, np.ones(1))
    assert not found.good
    assert "Infeasible" in found.status


def test_most_plausible_arm_is_the_reference_where_nothing_is_known():
    """From any possible arm the divergence leads along the null space only, and nearer to the reference."""
    robot = armid.load_robot("rx60").without_rotors()
    unknowns = Unknowns(Model(robot))
    bodies = 10.0 * reference_bodies(robot)
    phi = np.concatenate([armid.robot.inertia.from_pseudo_inertia(body) for body in bodies])
    far = np.concatenate([armid.robot.inertia.from_pseudo_inertia(5.0 * body) for body in bodies])
    rng = np.random.default_rng(0)
    none = np.zeros((0, len(phi))), np.zeros(0)
    weight = 1.0 / VAGUE**2
    moved = most_plausible(unknowns, far, np.abs(phi).max() * np.ones(len(phi)), bodies, [weight] * 3, weight, none)
    np.testing.assert_allclose(unknowns.matrix @ moved, unknowns.matrix @ far, rtol=1e-9, atol=1e-9)
    assert moved[unknowns.names.index("m1")] == pytest.approx(phi[unknowns.names.index("m1")], rel=1e-3)

    def divergence(x):
        parts = [unknowns.link(i + 1).matrix(x) for i in range(3)]
        return sum(
            np.trace(np.linalg.solve(b, p)) - np.linalg.slogdet(p)[1] for b, p in zip(bodies, parts, strict=True)
        )

    assert divergence(moved) < divergence(far)
    _, _, null = np.linalg.svd(unknowns.matrix)
    for direction in null[len(unknowns.matrix) :] * rng.choice([-1.0, 1.0]):
        assert divergence(moved) <= divergence(moved + 1e-3 * direction) + 1e-9
