"""Criteria: values against NumPy's linear algebra, derivatives against central differences."""

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.excitation import AOptimal, ConditionAndSigma, ConditionNumber, DOptimal, EOptimal, criterion
from armid.excitation.criteria import conditioning

SAMPLES = 200


def regressor(seed=0, columns=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(SAMPLES, columns)) * rng.uniform(0.1, 10.0, columns)


CASES = {
    "d-optimal": (DOptimal(), lambda W: -np.linalg.slogdet(W.T @ W / SAMPLES)[1]),
    "a-optimal": (AOptimal(), lambda W: np.log(np.trace(np.linalg.inv(W.T @ W / SAMPLES)))),
    "e-optimal": (EOptimal(), lambda W: -np.log(np.linalg.eigvalsh(W.T @ W / SAMPLES)[0])),
    "condition": (ConditionNumber(), lambda W: np.log(np.linalg.cond(W / np.linalg.norm(W, axis=0)))),
    "condition-raw": (ConditionNumber(scaled=False), lambda W: np.log(np.linalg.cond(W))),
    "condition-and-sigma": (
        ConditionAndSigma(),
        lambda W: np.linalg.cond(W) + 100.0 / np.linalg.svd(W, compute_uv=False)[-1],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    """Each criterion is what its name says, computed another way."""
    W = regressor()
    assert criterion(name).cost(W.T @ W / SAMPLES, SAMPLES)[0] == pytest.approx(CASES[name][1](W))
    assert criterion(name) == CASES[name][0]


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    """The derivative with respect to the information matrix is that of central differences, to 1e-6."""
    W = regressor(1)
    G = W.T @ W / SAMPLES
    cost, bar = criterion(name).cost(G, SAMPLES)
    rng = np.random.default_rng(2)
    for _ in range(5):
        direction = rng.normal(size=G.shape) * np.sqrt(np.outer(np.diag(G), np.diag(G)))
        direction = direction + direction.T
        step = 1e-6
        ahead = criterion(name).cost(G + step * direction, SAMPLES)[0]
        behind = criterion(name).cost(G - step * direction, SAMPLES)[0]
        assert np.sum(bar * direction) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-8 * abs(cost))


@pytest.mark.parametrize("name", CASES)
def test_singular_information_is_not_a_number(name):
    """A direction without information costs nan, which solvers step back from."""
    W = regressor(3)
    W[:, 2] = 0.0
    assert np.isnan(criterion(name).cost(W.T @ W / SAMPLES, SAMPLES)[0])


def test_conditioning():
    """The reported figures are those of the regressor itself."""
    W = regressor(4)
    found = conditioning(W.T @ W / SAMPLES, SAMPLES)
    scaled = W / np.linalg.norm(W, axis=0) * np.sqrt(SAMPLES) / np.sqrt(SAMPLES)
    assert found.log_det == pytest.approx(np.linalg.slogdet(W.T @ W / SAMPLES)[1])
    assert found.condition == pytest.approx(np.linalg.cond(scaled))
    assert found.condition_raw == pytest.approx(np.linalg.cond(W))
    assert found.sigma_min == pytest.approx(np.linalg.svd(W, compute_uv=False)[-1])
    assert np.allclose(found.singular_values, np.linalg.svd(scaled, compute_uv=False))


def test_unknown_criterion_is_refused_with_a_suggestion():
    with pytest.raises(ArmidError, match="did you mean 'd-optimal'"):
        criterion("d-optimum")
