"""The compact factor against the materialised regressor."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armid
from armid.dynamics.base import random_motion
from armid.errors import ArmidError
from tests.dynamics.arms import robots


def data(robot, samples, seed=0):
    rng = np.random.default_rng(seed)
    motion = random_motion(robot, samples, rng)
    return (*motion, rng.normal(size=motion.q.shape))


@settings(max_examples=25, deadline=None)
@given(robots("chain", "depth-first", "any"), st.sampled_from([1, 127, 128, 300, 5000]), st.booleans())
def test_normal_equations_equal_those_of_the_regressor(arm, samples, triangular):
    """Both forms of the factor give W'W, W'tau and tau'tau of the stacked regressor, weights included."""
    robot, _ = arm
    model = armid.Model(robot)
    q, qd, qdd, tau = data(robot, samples)
    weight = np.arange(1.0, robot.n_joints + 1)
    factor = armid.compact_factor(model, q, qd, qdd, tau, triangular=triangular)
    matrix, vector, power = factor.normal_equations(weight)
    W = model.regressor(q, qd, qdd, model.unknown)
    scale = np.abs(W).max() ** 2 * samples
    assert np.allclose(matrix, np.einsum("kja,j,kjb->ab", W, weight, W), atol=1e-12 * scale)
    assert np.allclose(vector, np.einsum("kja,j,kj->a", W, weight, tau), atol=1e-12 * scale)
    assert power == pytest.approx(np.einsum("j,kj->", weight, tau**2))


@settings(max_examples=25, deadline=None)
@given(robots("chain", "depth-first", "any"), st.sampled_from([0.0, 0.05, 0.5, 0.95]), st.booleans())
def test_samples_that_do_not_count_are_left_out(arm, share, triangular):
    """Few, half and most samples of each joint, and a whole block; a torque that does not count may be NaN."""
    robot, _ = arm
    model = armid.Model(robot)
    q, qd, qdd, tau = data(robot, 700)
    use = np.random.default_rng(1).random(tau.shape) < share
    use[:5], use[256:384, 0] = True, False
    factor = armid.compact_factor(model, q, qd, qdd, np.where(use, tau, np.nan), use=use, triangular=triangular)
    W = model.regressor(q, qd, qdd, model.unknown)
    assert factor.counts == tuple(use.sum(axis=0))
    for joint, columns in enumerate(factor.columns):
        rows = np.column_stack([W[:, joint, columns], tau[:, joint]])[use[:, joint]]
        assert np.allclose(factor.gram(joint), rows.T @ rows, atol=1e-12 * np.abs(rows).max() ** 2 * len(rows))


@pytest.mark.parametrize("triangular", [False, True])
def test_blocks_and_order_do_not_matter(triangular):
    """Factors of pieces, added in any order, are the factor of the whole."""
    model = armid.Model(armid.load_robot("pa10"))
    q, qd, qdd, tau = data(model.robot, 3000)
    whole = armid.compact_factor(model, q, qd, qdd, tau, triangular=triangular)
    pieces = [(q[k], qd[k], qdd[k], tau[k]) for k in (slice(2000, 3000), slice(0, 17), slice(17, 2000))]
    summed = armid.accumulate(model, iter(pieces), triangular=triangular)
    assert summed.samples == whole.samples == 3000
    for mine, theirs in zip(summed.normal_equations(), whole.normal_equations(), strict=True):
        assert np.allclose(mine, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


def test_factor_identifies_what_made_the_torque():
    """Solving the normal equations of the base columns returns the base parameters behind a torque."""
    model = armid.Model(armid.load_robot("er16"))
    base = model.base
    rng = np.random.default_rng(3)
    truth = rng.normal(size=len(base.names))
    motion = random_motion(model.robot, 500, rng)
    tau = model.regressor(*motion, base.names) @ truth
    matrix, vector, _ = armid.compact_factor(model, *motion, tau, base.kept).normal_equations()
    scale = 1.0 / np.sqrt(np.diag(matrix))
    found = scale * np.linalg.solve(matrix * np.outer(scale, scale), scale * vector)
    assert np.allclose(found, base.matrix @ truth, rtol=1e-8, atol=1e-8)


def test_joints_keep_only_what_they_see():
    """The matrix of the last joint of a chain holds one link's columns, its rotor, its friction and its torque."""
    model = armid.Model(armid.load_robot("kr15"))
    factor = armid.compact_factor(model, *data(model.robot, 200))
    last = [factor.names[c] for c in factor.columns[-1]]
    assert set(last) == {name for name in factor.names if name.endswith("6")}
    assert factor.matrices[-1].shape == (len(last) + 1, len(last) + 1)


def test_bad_data_are_refused():
    model = armid.Model(armid.load_robot("rx60"))
    q, qd, qdd, tau = data(model.robot, 10)
    with pytest.raises(ArmidError, match="torque has shape"):
        armid.compact_factor(model, q, qd, qdd, tau[:5])
    with pytest.raises(ArmidError, match="empty"):
        armid.accumulate(model, [])
    gram = armid.compact_factor(model, q, qd, qdd, tau)
    with pytest.raises(ArmidError, match="cannot be added"):
        gram + armid.compact_factor(model, q, qd, qdd, tau, triangular=True)
    with pytest.raises(ArmidError, match="one for each of 3 joints"):
        gram.normal_equations([1.0, 2.0])
    coupled = armid.Model(armid.load_robot("rx60"))
    other = replace(coupled.robot, drives=tuple(replace(drive, coupled=False) for drive in coupled.robot.drives))
    with pytest.raises(ArmidError, match="cannot be added"):
        gram + armid.compact_factor(armid.Model(other), q, qd, qdd, tau)
    tau[4, 1] = np.nan
    with pytest.raises(ArmidError, match="sample 4"):
        armid.compact_factor(model, q, qd, qdd, tau)
