"""The semidefinite solver and the log-det estimate against CVXPY."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.log_det import MASS, consistent_estimate, plausible_arm
from armid.estimation.consistent.semidefinite import Condition, minimise, upper_triangle
from armid.estimation.problem import EstimationError
from armid.robot.inertia import from_pseudo_inertia
from armid.robot.parts import Friction


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


def test_log_det_estimate_agrees_with_cvxpy():
    """The arm found minimises the cost as it is stated, for the strength and the mass factor that it reports."""
    cvxpy = pytest.importorskip("cvxpy")
    robot = armid.load_robot("rx60").without_rotors()
    robot = replace(robot, friction=(Friction("none"),) * 3)
    unknowns = Unknowns(Model(robot))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, len(unknowns.matrix)))
    truth = np.concatenate([from_pseudo_inertia(8.0 * body) for body in plausible_arm(robot)])
    torque = rows @ unknowns.matrix @ truth + 3.0 * rng.normal(size=80)
    found = consistent_estimate(unknowns, rows.T @ rows, rows.T @ torque, float(np.linalg.norm(torque)))
    x = cvxpy.Variable(len(unknowns.names))
    cost = 0.5 * cvxpy.sum_squares(rows @ unknowns.matrix @ x - torque)
    for number, body in enumerate(found.mass_factor * plausible_arm(robot), start=1):
        slopes = unknowns.link(number).slopes
        matrix = sum(x[j] * slopes[j] for j in range(len(slopes)) if slopes[j].any())
        cost += found.strength * (cvxpy.trace(np.linalg.inv(body) @ matrix) - cvxpy.log_det(matrix))
        mass = x[unknowns.names.index(f"m{number}")] / body[3, 3]
        cost += MASS * (mass - cvxpy.log(mass))
    cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver=cvxpy.CLARABEL)
    np.testing.assert_allclose(found.x, x.value, atol=1e-3 * np.abs(x.value).max())


def test_a_solver_that_gives_up_has_no_solution(monkeypatch):
    """A panic of the solver, which is no Exception, is one of its words; who asks for the audit is told so."""
    clarabel = pytest.importorskip("clarabel")

    class PanicException(BaseException):
        """As Rust's."""

    def panics(*_):
        raise PanicException("Eigval error")

    monkeypatch.setattr(clarabel, "DefaultSolver", panics)
    found = minimise(np.eye(2), np.ones(2), (), np.ones(2))
    assert not found.good
    assert "Eigval error" in found.status
    with pytest.raises(EstimationError, match=r"not found .*Eigval error"):
        armid.audit(armid.load_robot("pa10"))
