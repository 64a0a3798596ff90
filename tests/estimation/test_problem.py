"""The regression problem: filtered rows, masks, delays and known torque, against plain linear algebra."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.errors import DataShapeError
from armid.estimation.least_squares import OrdinaryLeastSquares, SingularValueSolution, WeightedLeastSquares
from armid.estimation.linear import GRAM_CONDITION, free_combinations
from armid.estimation.problem import EstimationError, Problem
from armid.excitation import FourierSeries
from armid.signals.dataset import Dataset
from armid.signals.filters import decimated_rows, filtered, low_pass_kernel
from armid.torque.friction.term import FrictionTerm
from tests.estimation.test_coverage import true_values


def motion_of(robot, seconds=20.0, rate=100.0, seed=0):
    rng = np.random.default_rng(seed)
    n = robot.n_joints
    series = FourierSeries(0.1, (1, 2, 3, 5), *rng.normal(scale=0.3, size=(2, n, 4)), rng.normal(scale=0.3, size=n))
    t = np.arange(0.0, seconds, 1.0 / rate)
    return t, series.at(t)


def dataset(robot, torque_of, *, kernel=None, step=1, noise=0.0, seed=0, **options):
    t, motion = motion_of(robot, **options)
    rng = np.random.default_rng(seed + 1)
    torque = torque_of(motion) + noise * rng.normal(size=motion.q.shape)
    rows = np.arange(len(t)) if kernel is None else decimated_rows(len(t), kernel, step)
    return Dataset(
        joints=robot.joint_names,
        time=t,
        q=motion.q,
        qd=motion.qd,
        qdd=motion.qdd,
        torque=filtered(torque, kernel, rows),
        rows=rows,
        kernel=kernel,
        measured=torque,
    )


@pytest.fixture(scope="module")
def arm():
    robot = armid.load_robot("ir361")
    model = Model(robot)
    return robot, model, model.base.matrix @ true_values(robot, model)


def linear_torque(model, values):
    return lambda motion: model.regressor(*motion, model.base.kept) @ values


@pytest.mark.parametrize("filtering", [False, True])
def test_factor_is_that_of_the_stacked_rows(arm, filtering):
    """The compact factor equals the Gram matrix of explicitly filtered, masked and stacked rows."""
    robot, model, values = arm
    kernel = low_pass_kernel(100.0, 8.0) if filtering else None
    data = dataset(robot, linear_torque(model, values), kernel=kernel, step=3)
    problem = Problem(robot, data)
    use = problem.used(data)
    assert 0.5 < use.mean() < 1.0
    full = filtered(model.regressor(*data.motion, model.base.kept), kernel, data.rows)
    stacked = np.concatenate([full[use[:, j], j] for j in range(3)])
    torque = np.concatenate([data.torque[use[:, j], j] for j in range(3)])
    matrix, vector, power = problem.factor().normal_equations()
    assert np.allclose(matrix, stacked.T @ stacked, rtol=1e-10)
    assert np.allclose(vector, stacked.T @ torque, rtol=1e-10)
    assert np.isclose(power, torque @ torque)
    triangular = problem.factor(triangular=True)
    assert np.allclose(triangular.normal_equations()[0], matrix, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    assert triangular.counts == problem.factor().counts == tuple(int(c) for c in use.sum(axis=0))


def test_slow_rows_are_left_out(arm):
    """No row of a joint below the stated limits counts."""
    robot, model, values = arm
    data = dataset(robot, linear_torque(model, values))
    problem = Problem(robot, data)
    speed = np.abs(data.qd)
    limit = np.maximum(0.05 * np.quantile(speed, 0.99, axis=0), 0.03)
    reach = 1  # sample of 10 ms
    near = np.array([(speed[max(i - reach, 0) : i + reach + 1] < limit).any(axis=0) for i in range(len(speed))])
    assert np.array_equal(problem.used(data), ~near)
    assert np.array_equal(problem.used(data, slice(500, 900)), ~near[500:900])
    everything = Problem(robot, data, slow_share=0.0, slow_floor=0.0)
    assert everything.used(data).all()


@pytest.mark.parametrize("filtering", [False, True])
@pytest.mark.parametrize(
    "estimator",
    [OrdinaryLeastSquares(), SingularValueSolution(), WeightedLeastSquares()],
    ids=lambda e: e.name,
)
def test_exact_data_give_exact_values(arm, estimator, filtering):
    robot, model, values = arm
    kernel = low_pass_kernel(100.0, 8.0) if filtering else None
    fit = estimator.fit(robot, dataset(robot, linear_torque(model, values), kernel=kernel, step=3))
    assert np.allclose(fit.values, values, rtol=1e-7)


def test_several_data_sets_at_once(arm):
    """Two data sets give what NumPy's least squares gives on their rows stacked."""
    robot, model, values = arm
    parts = [dataset(robot, linear_torque(model, values), noise=1.0, seed=s) for s in (0, 1)]
    together = OrdinaryLeastSquares().fit(robot, parts)
    rows, torques = [], []
    for part in parts:
        use = Problem(robot, part).used(part)
        regressor = model.regressor(*part.motion, model.base.kept)
        rows += [regressor[use[:, j], j] for j in range(3)]
        torques += [part.torque[use[:, j], j] for j in range(3)]
    expected = np.linalg.lstsq(np.concatenate(rows), np.concatenate(torques), rcond=None)[0]
    assert np.allclose(together.values, expected, rtol=1e-7)


def test_known_parameters_are_not_estimated(arm):
    robot, model, values = arm
    data = dataset(robot, linear_torque(model, values))
    fv1 = dict(zip(model.base.kept, values, strict=True))["fv1"]
    fit = OrdinaryLeastSquares(known={"fv1": fv1}).fit(robot, data)
    assert "fv1" not in fit.names
    left = [name != "fv1" for name in model.base.kept]
    assert np.allclose(fit.values, values[left], rtol=1e-7)
    assert np.allclose(fit.predict(data.motion).torque, data.torque)


TERMS = (FrictionTerm("load", 1), FrictionTerm("rest", 0, (0.2,)), FrictionTerm("gain", 2))


def richer_torque(robot, model, values):
    named = dict(zip(model.base.kept, values, strict=True))
    problem = Problem(robot, dataset(robot, linear_torque(model, values)), terms=TERMS, load_values=named)
    return named, lambda motion: problem.torque_model.regressor(motion) @ np.append(values, [0.1, 30.0, 0.2])


@pytest.mark.parametrize("filtering", [False, True])
def test_terms_are_recovered(arm, filtering):
    """Friction in proportion to the load, friction that fades with speed and a gain of the weight, planted."""
    robot, model, values = arm
    named, torque = richer_torque(robot, model, values)
    kernel = low_pass_kernel(100.0, 8.0) if filtering else None
    data = dataset(robot, torque, kernel=kernel, step=3)
    fit = OrdinaryLeastSquares(terms=TERMS, load_values=named).fit(robot, data)
    assert np.allclose(fit.values[-3:], [0.1, 30.0, 0.2], rtol=1e-6)
    assert np.allclose(fit.values[:-3], values, rtol=1e-6)


def test_delay_is_taken_back(arm):
    """Torque that was reported late fits as well as torque that was not, if its delay is known."""
    robot, model, values = arm
    kernel = low_pass_kernel(100.0, 8.0)
    plain = dataset(robot, linear_torque(model, values), kernel=kernel, step=3)
    late = np.column_stack([np.interp(plain.time - 0.02, plain.time, column) for column in plain.measured.T])
    data = replace(plain, measured=late, torque=filtered(late, kernel, plain.rows))
    wrong = OrdinaryLeastSquares().fit(robot, data)
    right = OrdinaryLeastSquares(delay_s=(0.02,) * 3).fit(robot, data)
    assert (right.residual_rms < 0.02 * wrong.residual_rms).all()


def test_badly_conditioned_data_use_the_triangular_factor(arm):
    """Nearly still joints: Gram matrices would lose the small columns, the triangular factor does not."""
    robot, model, values = arm
    t, motion = motion_of(robot)
    small = type(motion)(0.1 * motion.q, 0.1 * motion.qd, 0.1 * motion.qdd)
    torque = linear_torque(model, values)(small)
    data = Dataset(robot.joint_names, t, *small, torque, np.arange(len(t)))
    fit = OrdinaryLeastSquares(slow_floor=0.0, slow_share=0.0).fit(robot, data)
    assert fit.factor.triangular
    assert fit.identifiability.condition > GRAM_CONDITION
    assert fit.identifiability.poor
    assert "prior" in fit.identifiability.verdict


def test_free_combinations_are_named(arm):
    """One joint at rest relative to gravity: the error names parameters; singular values give an answer."""
    robot, model, values = arm
    t, motion = motion_of(robot)
    still = type(motion)(motion.q.copy(), motion.qd.copy(), motion.qdd.copy())
    for array in still:
        array[:, 0] = 0.0
    data = Dataset(robot.joint_names, t, *still, linear_torque(model, values)(still), np.arange(len(t)))
    with pytest.raises(EstimationError, match="joint joint1 never moves"):
        OrdinaryLeastSquares().fit(robot, data)
    with pytest.raises(EstimationError, match=r"combinations of parameters free: .*(Izz1|fv1)"):
        OrdinaryLeastSquares(slow_floor=-1.0, slow_share=0.0).fit(robot, data)
    fit = SingularValueSolution(slow_floor=-1.0, slow_share=0.0).fit(robot, data)
    assert "undetermined" in fit.identifiability.classes
    assert np.allclose(fit.predict(data.motion).torque, data.torque, atol=1e-6)


def test_words_for_directions():
    assert free_combinations(("a", "b", "c"), np.array([[0.7, -0.7, 0.01]])) == ["0.7 a - 0.7 b"]


def test_bad_input(arm):
    robot, model, values = arm
    data = dataset(robot, linear_torque(model, values))
    with pytest.raises(EstimationError, match="no data set"):
        OrdinaryLeastSquares().fit(robot, [])
    with pytest.raises(EstimationError, match="are of the joints a, b, c"):
        OrdinaryLeastSquares().fit(robot, replace(data, joints=("a", "b", "c")))
    with pytest.raises(DataShapeError, match="pa10 has 7"):
        OrdinaryLeastSquares().fit(armid.load_robot("pa10"), data)
    with pytest.raises(EstimationError, match="gravity"):
        OrdinaryLeastSquares().fit(robot, replace(data, gravity=(0.0, 9.81, 0.0)))
    short = replace(data, torque=data.torque[:4], rows=data.rows[:4])
    with pytest.raises(EstimationError, match="rows for"):
        OrdinaryLeastSquares(slow_floor=-1.0, slow_share=0.0).fit(robot, short)
    with pytest.raises(EstimationError, match="does not state its torque noise"):
        WeightedLeastSquares(noise="measured").fit(robot, data)
    with pytest.raises(armid.ArmidError, match="noise"):
        WeightedLeastSquares(noise="loud").fit(robot, data)
    with pytest.raises(EstimationError, match="finite"):
        OrdinaryLeastSquares(known={"fv1": float("nan")}).fit(robot, data)


def test_torque_equals_the_product_with_the_regressor(arm):
    """Without making the regressor: base parameters, every kind of term, filtered and decimated rows."""
    robot, model, values = arm
    named = dict(zip(model.base.kept, values, strict=True))
    terms = (
        FrictionTerm("smooth", 0, (0.05,)),
        FrictionTerm("rest", 1, (0.1,)),
        FrictionTerm("smooth-even", 2, (0.05,)),
    )
    terms += (FrictionTerm("load", 1), FrictionTerm("gain", 2))
    kernel = low_pass_kernel(100.0, 6.0)
    data = dataset(robot, linear_torque(model, values), kernel=kernel, step=4)
    problem = Problem(robot, data, terms=terms, load_values=named)
    x = np.concatenate([values, np.arange(10.0), [40.0], np.arange(11.0) - 5.0, [0.1, 0.2]])
    product = problem.torque_model.regressor(data.motion) @ x
    np.testing.assert_allclose(problem.torque_model.linear_torque(data.motion, x), product, rtol=1e-9, atol=1e-9)
    for block in problem.blocks():
        np.testing.assert_allclose(block.errors(x), block.torque - block.regressor @ x, rtol=1e-9, atol=1e-8)
