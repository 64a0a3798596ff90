"""Design of exciting trajectories: many starts, several processes, one certified plan."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.dynamics.model import Model
from armid.dynamics.threads import available_threads, set_threads
from armid.errors import ArmidError, UnknownNameError
from armid.excitation.certificate import certify, sampled_margin
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import CRITERIA, Criterion, DOptimal, conditioning
from armid.excitation.fourier import FourierSeries
from armid.excitation.fourier_variables import FourierVariables
from armid.excitation.plan import Plan
from armid.excitation.problem import DesignProblem
from armid.excitation.solve import solve
from armid.excitation.trajectory import SamplingError
from armid.robot.inertia import Array
from armid.robot.robot import Limits, Robot, inertial_names

#: Called after every start: number done, number of starts, best cost, condition number of the best.
Progress = Callable[[int, int, float, float], None]
_BACKOFF_ROUNDS = 5
_HOPPING = 5  # how many of the best solutions are searched around
_STARTS_PER_HOP = 5
#: Solution of one start (None if nothing feasible was found), its cost, its condition number.
Outcome = tuple[Array | None, float, float]


@dataclass(frozen=True)
class Fourier:
    """The kind of trajectory to design: a finite Fourier series.

    Attributes:
        harmonics: how many, or which (such as (1, 20) for a payload).
        period: of the fundamental [s].
    """

    harmonics: int | tuple[int, ...] = 5
    period: float = 10.0

    @property
    def orders(self) -> tuple[int, ...]:
        """The harmonics that are used."""
        return tuple(range(1, self.harmonics + 1)) if isinstance(self.harmonics, int) else tuple(self.harmonics)


def design(
    robot: Robot,
    shape: Fourier = Fourier(),  # noqa: B008 - immutable
    *,
    starts: int = 10,
    iterations: int = 300,
    budget: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Design a trajectory that makes the parameters visible, inside every limit.

    Args:
        robot: the robot.
        shape: kind of trajectory.
        starts: number of random starts.
        iterations: of the solver, per start and criterion.
        budget: seconds after which the best plan so far is returned.
        seed: of the random starts.
        workers: processes (default: one per processor).
        progress: called after every start.
        options: criterion, parameters, limits and the rest, as in `design_problem`.

    Returns:
        The plan. It is the caller's duty not to run one whose certificate does not hold.
    """
    began = time.monotonic()
    problem = design_problem(robot, shape, **options)
    seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(starts)]
    x = _best_of(problem, seeds, iterations, began + (np.inf if budget is None else budget), workers, progress)
    if x is None:
        raise ArmidError(f"{robot.name}: no trajectory keeps all limits; {_binding(problem, seeds[0])}")
    x = _shrunk(problem, x, options.get("limits") or robot.limits)
    trajectory = _series(problem.variables, x)
    criterion, rate_hz = problem.criterion, options.get("rate_hz", 150.0)
    search = {"starts": starts, "iterations": iterations, "budget": budget, "seed": seed}
    return Plan(
        robot=robot.name,
        joint_names=robot.joint_names,
        trajectory=trajectory,
        rate_hz=rate_hz,
        criterion=next((name for name, known in CRITERIA.items() if known == criterion), type(criterion).__name__),
        value=problem.cost(x),
        parameters=problem.parameters,
        conditioning=conditioning(problem.information(x), round(shape.period * rate_hz)),
        certificate=certify(trajectory, options.get("limits") or robot.limits, problem.constraints),
        seconds=time.monotonic() - began,
        options={"harmonics": list(shape.orders), "period": shape.period, **search, **_recorded(options)},
    )


def _shrunk(problem: DesignProblem, x: Array, limits: Limits) -> Array:
    """Smaller amplitudes where the true extremes, between the points of the search, leave the limits by a little."""
    series = _series(problem.variables, x)
    extrema = series.extrema()
    centre = series.offset
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.fmin(
            (limits.upper - centre) / (extrema.upper - centre), (limits.lower - centre) / (extrema.lower - centre)
        )
        factor = np.fmin(np.fmin(room, limits.velocity / extrema.velocity), limits.acceleration / extrema.acceleration)
    factor = np.clip(np.nan_to_num(factor, nan=1.0, posinf=1.0), 0.0, 1.0)[list(problem.variables.moving)]
    table = x.reshape(len(factor), -1).copy()
    table[:, 1:] *= np.where(factor < 1.0, (1.0 - 1e-9) * factor, 1.0)[:, None]
    return table.ravel()


def _recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in a form that a JSON file can hold."""
    recorded: dict[str, Any] = {}
    for name, value in options.items():
        if name == "constraints":
            recorded[name] = [constraint.name for constraint in value]
        elif name in ("limits", "given"):
            recorded[name] = "as given" if value is not None else None
        elif name != "criterion":
            recorded[name] = value if isinstance(value, str) or np.isscalar(value) or value is None else list(value)
    return recorded


def design_problem(
    robot: Robot,
    shape: Fourier = Fourier(),  # noqa: B008 - immutable
    *,
    criterion: Criterion = DOptimal(),  # noqa: B008 - immutable
    parameters: str | Sequence[str] = "all",
    joints: Sequence[int] | None = None,
    posture: ArrayLike | None = None,
    rate_hz: float = 150.0,
    margin: float = 0.95,
    limits: Limits | None = None,
    noise: ArrayLike | None = None,
    given: Array | None = None,
    constraints: Sequence[MotionConstraint] = (),
    at_rest: bool = False,
    resonance_hz: float | None = None,
) -> DesignProblem:
    """The optimisation problem that `design` solves, to look at or to solve in another way.

    Args:
        robot: the robot.
        shape: kind of trajectory.
        criterion: what to minimise.
        parameters: ``all``, ``inertial``, ``payload``, or names of base parameters (see `Model.base`).
        joints: numbers of the joints that move (default: all); the others keep `posture` and are not measured.
        posture: (n,) position of resting joints (default: middle of the limits).
        rate_hz: rate of the experiment; the period must be a whole number of samples.
        margin: share of the limits of position, velocity and acceleration that may be used.
        limits: instead of the robot's own.
        noise: (n,) standard deviation of each joint's torque (default: the same for all).
        given: information matrix known already, same parameters.
        constraints: nonlinear limits.
        at_rest: start and end with zero velocity and acceleration.
        resonance_hz: no harmonic may reach this frequency.
    """
    _check_frequencies(shape, rate_hz, resonance_hz)
    moving = tuple(range(robot.n_joints)) if joints is None else tuple(number - 1 for number in joints)
    if not moving or not all(0 <= j < robot.n_joints for j in moving) or len(set(moving)) < len(moving):
        raise ArmidError(f"joints must be different numbers from 1 to {robot.n_joints}, not {joints}")
    allowed = _allowed(robot, limits or robot.limits, moving, margin)
    rest = np.nan_to_num(0.5 * (allowed.lower + allowed.upper)) if posture is None else np.array(posture, dtype=float)
    _check_posture(robot, rest, limits or robot.limits)
    model = Model(robot)
    names = _columns(model, parameters, moving)
    weights = np.zeros(robot.n_joints)
    weights[list(moving)] = 1.0 if noise is None else 1.0 / np.square(np.asarray(noise, dtype=float)[list(moving)])
    return DesignProblem(
        model=model,
        parameters=names,
        variables=FourierVariables(1.0 / shape.period, shape.orders, moving, rest),
        limits=allowed,
        criterion=criterion,
        weights=weights,
        given=np.zeros((len(names), len(names))) if given is None else given,
        constraints=tuple(constraints),
        at_rest=at_rest,
    )


def _check_frequencies(shape: Fourier, rate_hz: float, resonance_hz: float | None) -> None:
    if not shape.orders or min(shape.orders) < 1 or shape.period <= 0.0:
        raise ArmidError(f"harmonics {shape.harmonics} and period {shape.period} must be positive")
    if abs(shape.period * rate_hz - round(shape.period * rate_hz)) > 1e-9 * max(1.0, shape.period * rate_hz):
        raise SamplingError(shape.period, rate_hz)
    highest = max(shape.orders) / shape.period
    if highest >= 0.5 * rate_hz:
        raise ArmidError(
            f"harmonic {max(shape.orders)} is {highest:g} Hz, not below half the rate of {rate_hz:g} Hz; "
            "use fewer harmonics, a longer period or a higher rate"
        )
    if resonance_hz is not None and highest >= resonance_hz:
        raise ArmidError(
            f"harmonic {max(shape.orders)} is {highest:g} Hz, not below the resonance of {resonance_hz:g} Hz; "
            "use fewer harmonics or a longer period"
        )


def _allowed(robot: Robot, limits: Limits, moving: Sequence[int], margin: float) -> Limits:
    """Limits reduced to the share that may be used; all must be known for the moving joints."""
    for name in ("lower", "upper", "velocity", "acceleration"):
        values = getattr(limits, name)
        unknown = [robot.joints[j].name for j in moving if not np.isfinite(values[j])]
        if unknown:
            field = "position" if name in ("lower", "upper") else name
            raise ArmidError(
                f"{robot.source}: limits.{field} of {', '.join(unknown)} is not known; give it in a robot file "
                "(`armid new` writes one) or accept stand-ins with --default-limits"
            )
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * margin * (limits.upper - limits.lower)
    return replace(
        limits,
        lower=middle - half,
        upper=middle + half,
        velocity=margin * limits.velocity,
        acceleration=margin * limits.acceleration,
    )


def with_default_limits(limits: Limits) -> tuple[Limits, list[str]]:
    """Limits with stand-ins where none are known, and what was filled in.

    Stand-ins: ±180 degrees, 1 rad/s, and five times the speed per second.
    """
    filled = []
    stand_ins = {"lower": np.full_like(limits.lower, -np.pi), "upper": np.full_like(limits.upper, np.pi)}
    stand_ins["velocity"] = np.ones_like(limits.velocity)
    stand_ins["acceleration"] = 5.0 * np.where(np.isnan(limits.velocity), 1.0, limits.velocity)
    values: dict[str, Any] = {}
    for name, stand_in in stand_ins.items():
        known = getattr(limits, name)
        values[name] = np.where(np.isnan(known), stand_in, known)
        missing = [str(j + 1) for j in np.flatnonzero(np.isnan(known))]
        if missing:
            filled.append(f"{name} of joint {', '.join(missing)}")
    return replace(limits, **values), filled


def _check_posture(robot: Robot, posture: Array, limits: Limits) -> None:
    if posture.shape != (robot.n_joints,):
        raise ArmidError(f"posture has {posture.size} numbers; {robot.n_joints} are needed, one per joint")
    outside = np.flatnonzero((posture < limits.lower) | (posture > limits.upper))
    if len(outside):
        j = int(outside[0])
        span = f"{limits.lower[j]:.4g} to {limits.upper[j]:.4g}"
        raise ArmidError(f"posture of joint {j + 1} is {posture[j]:.4g}, outside its limits {span}")


def _columns(model: Model, parameters: str | Sequence[str], moving: Sequence[int]) -> tuple[str, ...]:
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    if parameters == "all":
        return model.base.kept
    if parameters == "inertial":
        return tuple(name for name in model.base.kept if kinds[name] == "inertial")
    if parameters == "payload":
        friction = [p.name for p in model.parameters if p.kind == "friction" and p.number - 1 in moving]
        return (*inertial_names(model.robot.n_joints), *friction)
    names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    for name in names:
        if name not in kinds:
            raise UnknownNameError("parameter", name, ("all", "inertial", "payload", *model.base.kept))
    return names


def _series(variables: FourierVariables, x: Array) -> FourierSeries:
    sine, cosine, offset = variables.coefficients(x)
    return FourierSeries(variables.base_frequency_hz, variables.harmonics, sine, cosine, offset)


def _random_start(problem: DesignProblem, seed: int) -> Array:
    """Random coefficients that use between a third and all of what the limits allow."""
    rng = np.random.default_rng(seed)
    variables, limits = problem.variables, problem.limits
    moving = list(variables.moving)
    x = rng.normal(size=(len(moving), variables.per_joint))
    x[:, 0] = 0.0
    rows, low, high = problem.linear
    values = np.abs(x @ rows.T)
    half = 0.5 * (high - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.nanmin(np.where(values > 0.0, half / values, np.inf), axis=1, where=half > 0.0, initial=np.inf)
    x *= (fits * rng.uniform(0.33, 1.0, len(moving)))[:, None]
    x[:, 0] = 0.5 * (limits.lower[moving] + limits.upper[moving])
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
            return _searched(problem, _random_start(problem, self.seed), self.iterations, deadline)
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
    """Solve again, further from nonlinear bounds, until they also hold between the points where they are enforced."""
    away = np.zeros(len(problem.constraints))
    for _ in range(_BACKOFF_ROUNDS):
        series = _series(problem.variables, x)
        margins = np.array([sampled_margin(series, constraint).margin for constraint in problem.constraints])
        if np.all(margins >= 0.0):
            return x
        away += np.where(margins < 0.0, 0.005 - margins, 0.0)
        closer, _ = solve(problem.changed(backoff=away.tolist()), x, iterations=iterations, deadline=deadline)
        if closer is None:
            return None
        x = closer
    return x


def _best_of(
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
    x = _random_start(problem, 0)
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


def _binding(problem: DesignProblem, seed: int) -> str:
    """Name the constraint that a random start breaks most: where to give way."""
    x = _random_start(problem, seed)
    worst, name = problem.violation(x), "limits of position, velocity and acceleration"
    motion = problem.variables.motion(x, problem.variables.bases(np.linspace(0.0, 1.0, 200)))
    for constraint in problem.constraints:
        margin = constraint.margin(motion)
        if margin < 0.0:
            name = constraint.name
    return (
        f"the binding constraint is {name} (violated by {100 * worst:.0f} % at a random start); widen it or move less"
    )
