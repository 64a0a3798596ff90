"""The search behind a design: many starts, hops from the best of them, several processes."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from armid.dynamics.threads import available_threads, set_threads
from armid.excitation.certificate import sampled_margin
from armid.excitation.criteria import DOptimal, conditioning
from armid.excitation.fourier import FourierSeries
from armid.excitation.fourier_variables import FourierVariables
from armid.excitation.problem import DesignProblem
from armid.excitation.solve import solve
from armid.robot.inertia import Array

#: Called after every start: number done, number of starts, best cost, condition number of the best.
Progress = Callable[[int, int, float, float], None]
_BACKOFF_ROUNDS = 5
_HOPPING = 5  # how many of the best solutions are searched around
_STARTS_PER_HOP = 5
_SHRINKINGS = 10
#: Solution of one start (None if nothing feasible was found), its cost, its condition number.
Outcome = tuple[Array | None, float, float]


def series_of(variables: FourierVariables, x: Array) -> FourierSeries:
    """The trajectory that a vector of variables stands for."""
    sine, cosine, offset = variables.coefficients(x)
    return FourierSeries(variables.base_frequency_hz, variables.harmonics, sine, cosine, offset)


def random_start(problem: DesignProblem, seed: int) -> Array:
    """Random coefficients about the posture that use between a third and all of what the limits allow.

    Where there are nonlinear constraints the amplitudes shrink until those are nearly kept.
    """
    rng = np.random.default_rng(seed)
    variables = problem.variables
    moving = list(variables.moving)
    x = rng.normal(size=(len(moving), variables.per_joint))
    x[:, 0] = 0.0
    rows, low, high = problem.linear
    values = np.abs(x @ rows.T)
    half = 0.5 * (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.nanmin(np.where(values > 0.0, half / values, np.inf), axis=1, where=half > 0.0, initial=np.inf)
    x *= (fits * rng.uniform(0.33, 1.0, len(moving)))[:, None]
    x[:, 0] = variables.posture[moving]
    for _ in range(_SHRINKINGS if problem.constraints else 0):
        if problem.violation(x.ravel()) < 0.1:
            break
        x[:, 1:] *= 0.6
    return x.ravel()


@dataclass(frozen=True, eq=False)
class _Task:
    """One search: from a random start, or in hops from a solution."""

    seed: int
    iterations: int
    start: Array | None = None
    hops: int = 0

    def run(self, problem: DesignProblem, deadline: float) -> Outcome:
        """Search until the deadline at most."""
        if self.start is None:
            return _searched(problem, random_start(problem, self.seed), self.iterations, deadline)
        rng = np.random.default_rng(self.seed)
        best = _described(problem, self.start)
        for _ in range(self.hops):
            if time.monotonic() > deadline:
                break
            assert best[0] is not None
            hop = _searched(problem, _perturbed(problem, best[0], rng), self.iterations, deadline)
            best = min(best, hop, key=lambda outcome: outcome[1])
        return best

    def run_within(self, problem: DesignProblem, seconds: float) -> Outcome:
        """Search for so many seconds at most: processes share no clock."""
        return self.run(problem, time.monotonic() + seconds)


def _searched(problem: DesignProblem, start: Array, iterations: int, deadline: float) -> Outcome:
    """Solve from one start: solution, cost, condition number."""
    x: Array | None = start
    if problem.criterion.from_d_optimal:
        x, _ = solve(problem.changed(criterion=DOptimal()), start, iterations=iterations, deadline=deadline)
    if x is not None:
        x, _ = solve(problem, x, iterations=iterations, deadline=deadline)
    if x is not None and problem.constraints:
        x = _backed_off(problem, x, iterations, deadline)
    return (None, np.inf, np.inf) if x is None else _described(problem, x)


def _described(problem: DesignProblem, x: Array) -> Outcome:
    return x, problem.cost(x), conditioning(problem.information(x), 1).condition


def _perturbed(problem: DesignProblem, x: Array, rng: np.random.Generator) -> Array:
    """A point at some distance from a solution: local minima are many, and better ones are often near."""
    table = x.reshape(len(problem.variables.moving), -1)
    size = np.std(table[:, 1:], axis=1, keepdims=True) * rng.uniform(0.2, 0.6)
    change = rng.normal(size=table.shape) * size
    change[:, 0] *= 0.3
    return (table + change).ravel()


def _backed_off(problem: DesignProblem, x: Array, iterations: int, deadline: float) -> Array | None:
    """Solve again, further from nonlinear bounds, until they also hold between the points where they are enforced.

    Where that finds nothing, the amplitudes are made smaller.
    """
    away = np.zeros(len(problem.constraints))
    for _ in range(_BACKOFF_ROUNDS):
        margins = _nonlinear_margins(problem, x)
        if np.all(margins >= 0.0):
            return x
        away += np.where(margins < 0.0, 0.005 - margins, 0.0)
        closer, _ = solve(problem.changed(backoff=away.tolist()), x, iterations=iterations, deadline=deadline)
        if closer is None:
            break
        x = closer
    table = x.reshape(len(problem.variables.moving), -1)
    for factor in (1.0, 0.98, 0.95, 0.9, 0.8, 0.6):
        smaller = np.hstack([table[:, :1], factor * table[:, 1:]]).ravel()
        if np.all(_nonlinear_margins(problem, smaller) >= 0.0):
            return smaller
    return None


def _nonlinear_margins(problem: DesignProblem, x: Array) -> Array:
    series = series_of(problem.variables, x)
    return np.array([sampled_margin(series, constraint).margin for constraint in problem.constraints])


def best_of(
    problem: DesignProblem,
    seeds: Sequence[int],
    iterations: int,
    deadline: float,
    workers: int | None,
    progress: Progress | None,
) -> Array | None:
    """Best solution of all starts and of hops from the best of them; an interruption keeps what is there."""
    outcomes: dict[int, Outcome] = {}
    hops = len(seeds) // _STARTS_PER_HOP
    total = len(seeds) + (_HOPPING if hops else 0)

    def note(index: int, outcome: Outcome) -> None:
        outcomes[index] = outcome
        best = min(outcomes.values(), key=lambda found: found[1])
        if progress is not None:
            progress(len(outcomes), total, best[1], best[2])

    try:
        with _workers(problem, min(workers or available_threads(), len(seeds))) as run_all:
            run_all([_Task(seed, iterations) for seed in seeds], 0, deadline, note)
            ranked = sorted((i for i in outcomes if outcomes[i][0] is not None), key=lambda i: (outcomes[i][1], i))
            chosen = ranked[:_HOPPING] if hops else []
            tasks = [_Task(seeds[i] + 1, iterations, outcomes[i][0], hops) for i in chosen]
            run_all(tasks, len(seeds), deadline, note)
    except KeyboardInterrupt:
        if not any(outcome[0] is not None for outcome in outcomes.values()):
            raise
    if not outcomes:
        return None
    return outcomes[min(outcomes, key=lambda index: (outcomes[index][1], index))][0]


#: Runs tasks, numbered from `first`, and notes each outcome.
RunAll = Callable[[Sequence[_Task], int, float, Callable[[int, Outcome], None]], None]


@contextmanager
def _workers(problem: DesignProblem, count: int) -> Iterator[RunAll]:
    """Where tasks run: here, or in `count` processes."""
    if count <= 1:
        yield partial(_run_here, problem)
        return
    _compile(problem)  # once here, so that the children find it in the cache
    context = multiprocessing.get_context("spawn")
    with _main_module_hidden():
        pool = ProcessPoolExecutor(count, context, initializer=set_threads, initargs=(1,))
        for _ in range(count):
            pool.submit(int)  # starts the processes while the main module is hidden
    try:
        yield partial(_run_in_pool, problem, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_here(
    problem: DesignProblem,
    tasks: Sequence[_Task],
    first: int,
    deadline: float,
    note: Callable[[int, Outcome], None],
) -> None:
    for index, task in enumerate(tasks, start=first):
        if index > 0 and time.monotonic() > deadline:
            break
        note(index, task.run(problem, deadline))


def _run_in_pool(
    problem: DesignProblem,
    pool: ProcessPoolExecutor,
    tasks: Sequence[_Task],
    first: int,
    deadline: float,
    note: Callable[[int, Outcome], None],
) -> None:
    left = deadline - time.monotonic()
    pending: dict[Future[Outcome], int] = {
        pool.submit(task.run_within, problem, left): index for index, task in enumerate(tasks, start=first)
    }
    while pending:
        done, _ = wait(pending, return_when=FIRST_COMPLETED)
        for future in done:
            note(pending.pop(future), future.result())
        if time.monotonic() > deadline:
            for future in [future for future in pending if future.cancel()]:
                del pending[future]


def _compile(problem: DesignProblem) -> None:
    """Call everything that a search calls."""
    x = random_start(problem, 0)
    problem.cost_and_gradient(x)
    if problem.constraints:
        problem.nonlinear_jacobian(x)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keep new processes from running the user's script again: our workers need nothing of it."""
    main = sys.modules["__main__"]
    names: tuple[str, ...] = ("__file__", "__spec__")
    hidden = {name: main.__dict__.pop(name) for name in names if name in main.__dict__}
    main.__dict__["__spec__"] = None
    try:
        yield
    finally:
        main.__dict__.pop("__spec__", None)
        main.__dict__.update(hidden)


def binding_constraint(problem: DesignProblem, seed: int) -> str:
    """Name the constraint that a random start breaks most: where to give way."""
    x = random_start(problem, seed)
    times = np.linspace(0.0, 1.0 / problem.variables.base_frequency_hz, 200)
    motion = problem.variables.motion(x, problem.variables.bases(times))
    margins = {constraint.name: constraint.margin(motion) for constraint in problem.constraints}
    name = min(margins, key=lambda key: margins[key], default="")
    if not name or margins[name] >= 0.0:
        return "give the search more starts, or less margin"
    return f"the binding constraint is {name} (broken by {-100 * margins[name]:.0f} % at a random start); widen it"
