"""The search behind a design: many starts, hops from the best of them, several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.dynamics.threads import available_threads
from armid.excitation.certificate import nonlinear_margin
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import DOptimal, conditioning
from armid.excitation.pool import workers
from armid.excitation.problem import FEASIBLE, DesignProblem, solve

_ROUNDS, _ROUND_ITERATIONS = 3, 100  # searches with more room, where bounds do not hold between the points
_HOPPING = 5  # how many of the best solutions are searched around
_STARTS_PER_HOP = 5
_SHRINKINGS = 10
_FIRST_WAYS = 4
_WAY_BACK = (1.0, 0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.0)
_POSTURES, _ROOMY = 200, 0.02  # tried to start from where the middle has less room than this share of a range
_DIGITS = 6  # of a cost that count: what is better by less is as good, on any processor
_UNSEEN = 1e-8  # singular values of unit columns below this are round-off


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What one search has found.

    Attributes:
        x: the solution, None if nothing feasible was found.
        cost, condition, log_det: of the solution, with the true sign of velocity.
        violation: 0 for a solution; otherwise the smallest that was seen of the largest violation of a constraint, as
            a share of its range.
    """

    x: Array | None
    cost: float = np.inf
    condition: float = np.inf
    log_det: float = -np.inf
    violation: float = 0.0

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better: feasible ones first, by their cost without its last digits."""
        return self.violation, round(self.cost, _DIGITS)


@dataclass(frozen=True)
class Standing:
    """How far a search is, after every start.

    Attributes:
        done, total: searches that have ended, and how many there are.
        cost: of the best so far; infinite while nothing feasible was found.
        condition, log_det: of the best so far, as `Plan.conditioning` gives them.
        violation: of the best so far: 0 if it keeps all limits, otherwise the largest violation as a share of a range.
    """

    done: int
    total: int
    cost: float
    condition: float
    log_det: float
    violation: float


#: Called after every start.
Progress = Callable[[Standing], None]


def random_start(problem: DesignProblem, seed: int) -> Array:
    """Random coefficients that use between a third and all of what the limits allow.

    They are about the posture, or about a better one where nonlinear constraints leave it no room; then the amplitudes
    shrink until those constraints are kept.
    """
    rng = np.random.default_rng(seed)
    variables = problem.variables
    moving = list(variables.moving)
    x = rng.normal(size=(len(moving), variables.per_joint))
    x[:, 0] = 0.0
    use = rng.uniform(0.33, 1.0, len(moving))
    centre = _roomy_posture(problem, rng)[moving] if problem.constraints else variables.posture[moving]
    rows, low, high = problem.linear
    x = _resting(problem, x)
    values = np.abs(x @ rows.T)
    about = centre[:, None] * rows[:, 0]
    half = np.where(rows[:, 0] != 0.0, np.minimum(high - about, about - low), 0.5 * (high - low))
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.nanmin(np.where(values > 1e-9, half / values, np.inf), axis=1, where=half > 0.0, initial=np.inf)
    x *= (fits * use)[:, None]
    x[:, 0] = centre
    return _calmed(problem, x, 0.6, problem.kept)


def _resting(problem: DesignProblem, table: Array) -> Array:
    """Variables (joints, coefficients) without what moves at the start, where it has to be at rest."""
    if not problem.at_rest:
        return table
    still = problem.linear[0][-2:]  # velocity and acceleration at the start
    return np.asarray(table - table @ np.linalg.pinv(still) @ still)


def _calmed(problem: DesignProblem, table: Array, factor: float, holds: Callable[[Array], bool]) -> Array:
    """Variables (joints, coefficients) with amplitudes that shrink until nonlinear constraints are kept, if any do."""
    table = table.copy()
    for _ in range(_SHRINKINGS if problem.constraints else 0):
        if holds(table.ravel()):
            break
        table[:, 1:] *= factor
    return table.ravel()


def _roomy_posture(problem: DesignProblem, rng: np.random.Generator) -> Array:
    """The posture of the problem if an arm at rest there keeps well off nonlinear bounds, else the best of many."""
    q = _postures(problem, rng)
    room = _room_at_rest(problem.constraints, q)
    result: Array = q[0] if room[0] >= _ROOMY else q[int(room.argmax())]
    return result


def _postures(problem: DesignProblem, rng: np.random.Generator) -> Array:
    """The posture of the problem, then random ones around the middle of the limits."""
    moving = list(problem.variables.moving)
    q = np.tile(problem.variables.posture, (_POSTURES, 1))
    lower, upper = problem.limits.lower[moving], problem.limits.upper[moving]
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    q[1:, moving] = middle + 0.7 * half * rng.uniform(-1.0, 1.0, (_POSTURES - 1, len(moving)))
    return q


def _room_at_rest(constraints: Sequence[MotionConstraint], q: Array) -> Array:
    """Least room to all bounds in each posture."""
    still = Motion(q, np.zeros_like(q), np.zeros_like(q))
    rooms = [constraint.room(still)[0].min(axis=1, initial=np.inf) for constraint in constraints]
    return np.asarray(np.min([np.full(len(q), np.inf), *rooms], axis=0))


def _from_random(problem: DesignProblem, seed: int, iterations: int, seconds: float) -> SearchResult:
    """One search from a random start."""
    return _searched(problem, random_start(problem, seed), iterations, time.monotonic() + seconds)


def _by_hops(
    problem: DesignProblem, seed: int, iterations: int, start: Array, hops: int, seconds: float
) -> SearchResult:
    """Searches around a solution, each from the best so far."""
    deadline, rng = time.monotonic() + seconds, np.random.default_rng(seed)
    best = _described(problem, start)
    for _ in range(hops):
        if time.monotonic() > deadline:
            break
        assert best.x is not None
        hop = _searched(problem, _perturbed(problem, best.x, rng), iterations, deadline, best.x)
        best = min(best, hop, key=lambda found: found.rank)
    return best


def _searched(
    problem: DesignProblem, start: Array, iterations: int, deadline: float, safe: Array | None = None
) -> SearchResult:
    """Solve from one start; `safe` is a trajectory that keeps all limits, if one is known."""
    x: Array | None = start
    if problem.criterion.from_d_optimal:
        x, violation = solve(replace(problem, criterion=DOptimal()), start, iterations=iterations, deadline=deadline)
    if x is not None:
        x, violation = solve(problem, x, iterations=iterations, deadline=deadline)
    if x is not None and problem.constraints:
        x, violation = _certain(problem, x, start, safe, iterations, deadline)
    return SearchResult(None, violation=violation) if x is None else _described(problem, x)


def _described(problem: DesignProblem, x: Array) -> SearchResult:
    figures = conditioning(problem.sharp_information(x), 1)
    return SearchResult(x, problem.value(x), figures.condition, figures.log_det)


def _perturbed(problem: DesignProblem, x: Array, rng: np.random.Generator) -> Array:
    """A point at some distance from a solution: local minima are many, and better ones are often near.

    Its amplitudes shrink until nonlinear constraints are kept, for the solver gets stuck outside.
    """
    table = x.reshape(len(problem.variables.moving), -1)
    size = np.std(table[:, 1:], axis=1, keepdims=True) * rng.uniform(0.2, 0.6)
    change = rng.normal(size=table.shape) * size
    change[:, 0] *= 0.3
    return _calmed(problem, table + _resting(problem, change), 0.8, problem.kept)


def _certain(
    problem: DesignProblem, x: Array, start: Array, safe: Array | None, iterations: int, deadline: float
) -> tuple[Array | None, float]:
    """A solution whose nonlinear bounds hold at all times, not only at the points where they are enforced.

    Where they do not, a little of the way back to the `safe` trajectory is taken; then more room is kept in another
    search; at last the whole way back is tried. Without success the second value is the violation left.
    """
    if _least_margin(problem, x) >= 0.0:
        return x, 0.0
    if safe is None:  # the same motion with amplitudes so small that the bounds hold at all times, if any do
        table = start.reshape(len(problem.variables.moving), -1)
        safe = _calmed(problem, table, 0.6, lambda smaller: _least_margin(problem, smaller) >= 0.0)
    for rounds in range(_ROUNDS):
        way, _ = _way_back(problem, x, safe, _WAY_BACK[:_FIRST_WAYS])
        if way is not None:
            return way, 0.0
        further = replace(problem, backoff=(rounds + 2) * problem.backoff)
        ways = (safe + share * (x - safe) for share in _WAY_BACK)
        nearest = next((way for way in ways if further.kept(way)), x)
        closer, _ = solve(further, nearest, iterations=min(iterations, _ROUND_ITERATIONS), deadline=deadline)
        if closer is None:
            break
        x = closer
    return _way_back(problem, x, safe, _WAY_BACK)


def _way_back(problem: DesignProblem, x: Array, safe: Array, shares: Sequence[float]) -> tuple[Array | None, float]:
    """The first of some trajectories between a safe one and `x` that keeps all limits, else the least violation."""
    violation = np.inf
    for share in shares:
        way = safe + share * (x - safe)
        broken = max(-_least_margin(problem, way), 0.0)
        if broken == 0.0 and problem.linear_violation(way) < FEASIBLE:
            return way, 0.0
        violation = min(violation, max(broken, problem.linear_violation(way)))
    return None, violation


def _least_margin(problem: DesignProblem, x: Array) -> float:
    """Smallest margin to a nonlinear bound over continuous time."""
    series = problem.variables.series(x)
    extrema = series.extrema()
    return min(nonlinear_margin(series, constraint, extrema).margin for constraint in problem.constraints)


def best_of(
    problem: DesignProblem,
    seeds: Sequence[int],
    iterations: int,
    deadline: float,
    count: int | None,
    progress: Progress | None,
    keep_on_interrupt: bool,
) -> tuple[Array | None, str]:
    """Best solution of all starts and of hops from the best of them; an interruption keeps it, if that is wanted.

    Returns:
        The solution, None if nothing feasible was found; and in words when somebody stopped the search, or nothing.

    Raises:
        KeyboardInterrupt: it is not wanted, or no start has ended, or none has found anything.
    """
    results: dict[int, SearchResult] = {}
    cut: set[int] = set()  # ended by an interruption
    hops, total = len(seeds) // _STARTS_PER_HOP, searches(len(seeds))
    stopped = ""

    def take(index: int, result: SearchResult, cut_short: bool) -> None:
        results[index] = result
        if cut_short:
            cut.add(index)
        elif progress is not None:
            best = min(results.values(), key=lambda found: found.rank)
            progress(Standing(len(results), total, best.cost, best.condition, best.log_det, best.violation))

    try:
        with workers(min(count or available_threads(), len(seeds)), lambda: _call_all(problem)) as run_all:
            run_all([partial(_from_random, problem, seed, iterations) for seed in seeds], 0, deadline, take)
            solved = [(index, result.x) for index, result in results.items() if result.x is not None]
            solved.sort(key=lambda pair: (results[pair[0]].rank, pair[0]))
            chosen = solved[:_HOPPING] if hops else []
            jobs = [partial(_by_hops, problem, seeds[index] + 1, iterations, x, hops) for index, x in chosen]
            run_all(jobs, len(seeds), deadline, take)
    except KeyboardInterrupt:
        stopped = f"after {len(results) - len(cut)} of {total} starts"
        found = any(result.x is not None for result in results.values())
        if not keep_on_interrupt or not found or len(results) == len(cut):
            raise
    best = min(results, key=lambda index: (results[index].rank, index), default=None)
    return None if best is None else results[best].x, stopped


def searches(starts: int) -> int:
    """How many searches there are for a number of random starts: these, and those around the best of them."""
    return starts + (_HOPPING if starts // _STARTS_PER_HOP else 0)


def _call_all(problem: DesignProblem) -> None:
    """Call everything that a search calls, so that it is compiled."""
    x = random_start(problem, 0)
    problem.cost_and_gradient(x)
    if problem.constraints:
        problem.nonlinear_jacobian(x)


def in_the_way(problem: DesignProblem) -> str:
    """Name the limit that an arm at rest cannot keep in any posture, else those that motion breaks most."""
    postures = _postures(problem, np.random.default_rng(0))
    rooms = {constraint.name: _room_at_rest([constraint], postures) for constraint in problem.constraints}
    never = [name for name, room in rooms.items() if room.max() < 0.0]
    if never:
        return f"in none of {_POSTURES} postures does an arm at rest keep the limit of {never[0]}; widen it"
    together = _room_at_rest(problem.constraints, postures)
    if together.max() < 0.0:
        return f"in none of {_POSTURES} postures are {', '.join(rooms)} kept together; widen one of them"
    best = random_start(problem, 0)
    series = problem.variables.series(best)
    margins = [nonlinear_margin(series, constraint) for constraint in problem.constraints]
    least = min(margins, key=lambda found: found.margin, default=None)
    if least is None or least.margin >= 0.0:
        return "give the search more starts or a longer budget"
    whose = f" of {problem.model.robot.joint_names[least.joint - 1]}" if least.joint else ""
    return f"{least.quantity}{whose} stands in the way even of a small motion; widen it, or give the search more starts"


def unseen(problem: DesignProblem, seed: int) -> list[str]:
    """Parameters that no motion of the moving joints tells, alone or from each other: those of a singular direction."""
    x = random_start(replace(problem, constraints=()), seed)
    information = problem.information(x)
    size = np.sqrt(np.diag(information))
    hidden = size <= 1e-13 * size.max()
    if not hidden.any():
        values, vectors = np.linalg.eigh(information / np.outer(size, size))
        hidden = np.any(np.abs(vectors[:, values <= _UNSEEN**2 * values[-1]]) > 0.1, axis=1)
    return [name for name, is_hidden in zip(problem.parameters, hidden, strict=True) if is_hidden]
