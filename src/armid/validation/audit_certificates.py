"""Why no arm can have given parameters, in words that can be checked by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, nnls

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.semidefinite import minimise
from armid.validation.audit_claims import Claim, typical_sizes

EXACT = 1e-8  # relative residual below which a combination counts as stated
PRINTED = " (as printed; torque does not show it)"
SLACK = 1e-6  # share of the largest value by which a limit must be passed


@dataclass(frozen=True, eq=False)
class Limit:
    """A combination of parameters that is not negative for any arm.

    Attributes:
        row: its coefficients over the unknowns.
        words: why it cannot be negative.
    """

    row: Array
    words: str


def simple_limits(unknowns: Unknowns) -> list[Limit]:
    """Limits that concern one link, rotor or friction coefficient."""
    result = []
    for condition in unknowns.conditions:
        if condition.constant.shape == (1, 1):
            result.append(Limit(condition.slopes[:, 0, 0], f"{condition.name} cannot be negative"))
    for number in range(1, unknowns.model.robot.n_joints + 1):
        whole = unknowns.pseudo_inertia(number)
        if not whole.slopes.any() or whole.constant.any():
            continue
        second = [whole.slopes[:, axis, axis] for axis in range(3)]
        for axis, name in enumerate("xyz"):
            one, two = (a for a in range(3) if a != axis)
            label = f"I{name}{name}{number}"
            result.append(Limit(second[one] + second[two], f"the moment of inertia {label} cannot be negative"))
        for axis, name in enumerate("xyz"):
            first, other = (f"I{a}{a}{number}" for a in "xyz" if a != name)
            words = f"I{name}{name}{number} cannot exceed {first} + {other} (triangle inequality)"
            result.append(Limit(2.0 * second[axis], words))
        result.append(Limit(whole.slopes[:, 3, 3], f"the mass m{number} cannot be negative"))
    return [limit for limit in result if limit.row.any()]


def certificates(claim: Claim, base: Array) -> list[str]:
    """Violated limits in words, the simplest first.

    Args:
        claim: what is stated.
        base: (groups, unknowns) the combinations that show in torque; a limit outside of them concerns what is printed
            only.
    """
    with one_blas_thread():
        size = float(np.abs(claim.values).max())
        worst: dict[str, tuple[float, str, Array]] = {}
        for limit in simple_limits(claim.unknowns):
            weights = _combination(claim.matrix, limit.row)
            value = 0.0 if weights is None else float(weights @ claim.values)
            if weights is not None and value < min(-SLACK * size, worst.get(limit.words, (0.0,))[0]):
                worst[limit.words] = value, _sentence(claim, weights, value, limit, base), weights
        found = [(words, weights) for _, words, weights in worst.values()]
        found += list(_signs(claim, base, size, [weights for _, weights in found]))
    used = np.any([weights != 0.0 for _, weights in found], axis=0) if found else np.zeros(len(claim.values), bool)
    sentences = sorted(dict.fromkeys(words for words, _ in found), key=lambda words: PRINTED in words)
    return [*sentences, *_products(claim, used)]


def _combination(matrix: Array, row: Array) -> Array | None:
    """Sparse weights of the entries that make up `row`; None if they cannot."""
    weights = np.linalg.lstsq(matrix.T, row, rcond=None)[0]
    if np.abs(matrix.T @ weights - row).max() > EXACT * np.abs(row).max():
        return None
    count = len(matrix)
    sparse = linprog(np.ones(2 * count), A_eq=np.hstack([matrix.T, -matrix.T]), b_eq=row, method="highs")
    if sparse.status == 0:
        weights = sparse.x[:count] - sparse.x[count:]
    weights[np.abs(weights) < 1e-9 * np.abs(weights).max()] = 0.0
    return np.asarray(weights)


def _signs(claim: Claim, base: Array, size: float, known: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    """Entries that are sums of things that cannot be negative, but are stated negative (or the reverse)."""
    generators = np.array([limit.row for limit in simple_limits(claim.unknowns)])
    length = np.linalg.norm(generators, axis=1)
    for index, row in enumerate(claim.matrix):
        for sign in (1.0, -1.0):
            value = sign * float(claim.values[index])
            if value > -SLACK * size or any(np.count_nonzero(w) == 1 and w[index] != 0.0 for w in known):
                continue
            try:
                share, left = nnls((generators / length[:, None]).T, sign * row)
            except RuntimeError:
                continue
            if left <= EXACT * np.abs(row).max() and share.any():
                weights = np.zeros(len(claim.values))
                weights[index] = sign
                side = "negative" if sign > 0.0 else "positive"
                limit = Limit(sign * row, f"{_sum(claim.unknowns.names, row)} cannot be {side}")
                yield _sentence(claim, weights, value, limit, base), weights


def _sentence(claim: Claim, weights: Array, value: float, limit: Limit, base: Array) -> str:
    """Such as ``I4xxR - I4zzR = 0.2155 must be <= 0: Ixx4 cannot exceed Iyy4 + Izz4 (triangle inequality)``."""
    lead = np.flatnonzero(weights)
    unit = float(np.abs(weights[lead]).min())
    # Written with a positive leading term where there are several.
    flip = len(lead) > 1 and weights[lead[0]] < 0.0
    signed = (-weights if flip else weights) / unit
    text = _sum(claim.entries, signed)
    shown = (-value if flip else value) / unit
    if len(lead) == 1 and signed[lead[0]] < 0.0:
        text, shown, flip = claim.entries[lead[0]], -shown, True
    bound = "must be ≤ 0" if flip else "must be ≥ 0"
    where = "" if _combination(base, limit.row) is not None else PRINTED
    return f"{text} = {shown:.4g}, but {bound}: {limit.words}{where}"


def _sum(names: Sequence[str], factors: Array) -> str:
    """A sum as people write it."""
    text = ""
    for index in np.flatnonzero(factors).tolist():
        size = abs(float(factors[index]))
        number = "" if np.isclose(size, 1.0) else f"{size:.6g} "
        sign = " - " if factors[index] < 0.0 else " + " if text else ""
        text += f"{sign}{number}{names[index]}"
    return text.strip()


def _products(claim: Claim, used: Array) -> list[str]:
    """Products of inertia that are too large for the other values, apart from those already found impossible."""
    result = []
    scale = typical_sizes(claim)
    for index, row in enumerate(claim.matrix):
        columns = np.flatnonzero(row)
        name = claim.unknowns.names[columns[0]] if len(columns) == 1 else ""
        if name[:3] not in ("Ixy", "Ixz", "Iyz") or used[index]:
            continue
        others = np.array([i != index and not used[i] for i in range(len(claim.values))])
        rows, values = claim.matrix[others], claim.values[others]
        upwards = -np.sign(claim.values[index]) * row
        tiny = 1e-3 * np.diag(1.0 / scale)
        found = minimise(
            tiny, np.zeros(len(scale)), claim.unknowns.conditions, scale, linear=upwards, equal=(rows, values)
        )
        most = abs(float(row @ found.x))
        if found.good and most < 0.99 * abs(claim.values[index]):
            result.append(
                f"|{claim.entries[index]}| = {abs(claim.values[index]):.4g}, but can be at most {most:.3g} with the "
                f"other values: a product of inertia is bounded by the second moments of link {name[3:]}"
            )
    return result
