"""Design of exciting trajectories: from a robot and wishes to one certified plan."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError, ArmidWarning, UnknownNameError
from armid.excitation.certificate import binding_limits, certify
from armid.excitation.checks import Checks, known_limits
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import CRITERIA, Criterion, DOptimal, conditioning
from armid.excitation.fourier import FourierVariables
from armid.excitation.plan import MOST_SAMPLES, Plan
from armid.excitation.problem import DesignProblem
from armid.excitation.search import Progress, best_of, in_the_way, unseen
from armid.excitation.trajectory import SamplingError
from armid.files import plain
from armid.robot.robot import Limits, Robot, inertial_names

_NAMED = 8  # parameters that a message names at most
_MOST_STARTS, _MOST_HARMONICS = 100_000, 1000
_MANY_JOINTS = 14  # more take minutes


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
    keep_on_interrupt: bool = False,
    **options: Any,
) -> Plan:
    """Design a trajectory that makes the parameters visible, inside every limit that is known.

    Args:
        robot: the robot.
        shape: kind of trajectory.
        starts: number of random starts.
        iterations: of the solver, per start and criterion.
        budget: seconds after which the best plan so far is returned.
        seed: of the random starts.
        workers: processes (default: one per processor).
        progress: called after every start.
        keep_on_interrupt: return the best plan so far when Ctrl-C ends the search, and say so in its options; without
            it, and before a start has ended, the KeyboardInterrupt is the caller's.
        options: criterion, parameters, limits and the rest, as in `design_problem`.

    Returns:
        The plan. It is the caller's duty not to run one whose certificate does not hold.
    """
    began = time.monotonic()
    if seed < 0:
        raise ArmidError(f"seed is {seed}; it must be at least 0")
    if not 1 <= starts <= _MOST_STARTS:
        raise ArmidError(f"starts is {starts}; it must be at least 1 and at most {_MOST_STARTS}")
    if budget is not None and not budget > 0.0:
        raise ArmidError(f"budget is {budget} s; it must be positive")
    joints = robot.n_joints if options.get("joints") is None else len(options["joints"])
    if joints > _MANY_JOINTS:
        advice = f"{robot.name}: {joints} joints move, for which design takes many minutes; choose some by --joints"
        warnings.warn(ArmidWarning(advice), stacklevel=2)
    problem = design_problem(robot, shape, **options)
    seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(starts)]
    if hidden := unseen(problem, seeds[0]):
        raise ArmidError(
            f"{robot.name}: the motion cannot tell {', '.join(hidden[:_NAMED])}{' …' if hidden[_NAMED:] else ''}; "
            "choose other parameters (`armid model` shows which there are) or let more joints move"
        )
    deadline = began + (np.inf if budget is None else budget)
    found, stopped = best_of(problem, seeds, iterations, deadline, workers, progress, keep_on_interrupt)
    if found is None:
        raise ArmidError(f"{robot.name}: no trajectory keeps all limits; {in_the_way(problem)}")
    x = _shrunk(problem, found, options.get("limits") or robot.limits)
    trajectory = problem.variables.series(x)
    used = _with_defaults(options)
    criterion, rate_hz = problem.criterion, used["rate_hz"]
    search: dict[str, Any] = {"starts": starts, "iterations": iterations, "budget": budget, "seed": seed}
    if stopped:
        search["stopped"] = stopped
    information, samples = problem.sharp_information(x), problem.samples
    return Plan(
        robot=robot.name,
        joint_names=robot.joint_names,
        trajectory=trajectory,
        rate_hz=rate_hz,
        criterion=next((name for name, known in CRITERIA.items() if known == criterion), type(criterion).__name__),
        value=problem.value(x),
        parameters=problem.parameters,
        conditioning=conditioning(information, samples),
        margins=certify(trajectory, options.get("limits") or robot.limits, problem.constraints).margins,
        seconds=time.monotonic() - began,
        options=plain({"harmonics": list(shape.orders), "period": shape.period, **search, **_recorded(used, problem)}),
        notes=problem.notes,
        binding=binding_limits(problem, x),
    )


def _shrunk(problem: DesignProblem, x: Array, limits: Limits) -> Array:
    """Smaller amplitudes where the true extremes, between the points of the search, leave the limits by a little."""
    series = problem.variables.series(x)
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


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `design_problem`, defaults filled in."""
    known = inspect.signature(design_problem).parameters.values()
    return {**{p.name: p.default for p in known if p.kind == p.KEYWORD_ONLY}, **options}


def _recorded(options: Mapping[str, Any], problem: DesignProblem) -> dict[str, Any]:
    """Options in a form that a JSON file can hold, with all constraints that they led to."""
    recorded: dict[str, Any] = {}
    for name, value in options.items():
        if name == "constraints":
            recorded[name] = [constraint.described() for constraint in problem.constraints]
        elif name == "checks":
            recorded[name] = None if value is None else vars(value)
        elif name == "limits" and value is not None:
            recorded[name] = {key: number for key, number in vars(value).items() if isinstance(number, np.ndarray)}
        elif name == "given" and value is not None:
            recorded[name] = "as given"
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
    checks: Checks | None = Checks(),  # noqa: B008 - immutable
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
        posture: (n,) position of resting joints, about which the search for the others starts (default: middle of the
            limits).
        rate_hz: rate of the experiment; the period must be a whole number of samples.
        margin: share of the limits of position, velocity and acceleration to use. It is kept at twelve points of the
            fastest wave; between them a little more may be used, but never more than the limits.
        limits: instead of the robot's own.
        noise: (n,) standard deviation of each joint's torque [N m or N] (default: 1 for all).
        given: information matrix known already, same parameters.
        checks: how the limits are checked that nobody has to ask for: torque, self-collision, floor, tool speed and the
            box of the description; None checks none of them.
        constraints: nonlinear limits besides; one replaces the check of the same name.
        at_rest: start and end with zero velocity and acceleration.
        resonance_hz: no harmonic may reach this frequency.
    """
    robot.refuse_undriven("no motion of this arm can be designed")
    _check_frequencies(shape, rate_hz, resonance_hz)
    if not 0.0 < margin <= 1.0:
        raise ArmidError(f"margin is {margin}; it is a share of the limits, above 0 and at most 1")
    moving = tuple(range(robot.n_joints)) if joints is None else tuple(number - 1 for number in joints)
    if not moving or not all(0 <= j < robot.n_joints for j in moving) or len(set(moving)) < len(moving):
        raise ArmidError(f"joints must be different numbers from 1 to {robot.n_joints}, not {joints}")
    allowed = _allowed(robot, limits or robot.limits, moving, margin)
    rest = np.nan_to_num(0.5 * (allowed.lower + allowed.upper)) if posture is None else np.array(posture, dtype=float)
    _check_posture(robot, rest, limits or robot.limits)
    model = Model(robot)
    names = _columns(model, parameters, moving)
    weights = torque_weights(robot, noise, joints)
    known, notes = known_limits(model, limits or robot.limits, checks, [constraint.name for constraint in constraints])
    return DesignProblem(
        model=model,
        parameters=names,
        variables=FourierVariables(1.0 / shape.period, shape.orders, moving, rest),
        limits=allowed,
        criterion=criterion,
        weights=weights,
        given=np.zeros((len(names), len(names))) if given is None else given,
        constraints=(*known, *constraints),
        notes=tuple(notes),
        at_rest=at_rest,
        samples=round(shape.period * rate_hz),
    )


def gathered_information(plan: Plan, robot: Robot, shape: Fourier, **options: Any) -> Array:
    """What one period of an earlier plan tells about the same parameters, for `given`; options as in `design_problem`.

    Information matrices are means over samples: the earlier plan counts with its own samples and measured joints, per
    sample of the plan to come.
    """
    if plan.robot != robot.name or plan.joint_names != robot.joint_names:
        raise ArmidError(f"the plan is for {plan.robot} ({len(plan.joint_names)} joints), not for {robot.name}")
    problem = design_problem(robot, shape, **options)
    _, motion = plan.trajectory.sample(plan.rate_hz)
    used = _with_defaults(options)
    weights = torque_weights(robot, used["noise"], plan.options.get("joints"))
    weights *= len(motion.q) / (shape.period * used["rate_hz"])
    return Sensitivity(problem.model, problem.parameters, width=0.0).information(motion, weights)


def torque_weights(robot: Robot, noise: ArrayLike | None, joints: Sequence[int] | None) -> Array:
    """Inverse variance of each joint's torque, 0 for those that are not measured: other ones than these numbers."""
    deviation = np.ones(robot.n_joints) if noise is None else np.asarray(noise, dtype=float)
    if deviation.shape != (robot.n_joints,):
        raise ArmidError(f"noise has {deviation.size} numbers; {robot.n_joints} are needed, one per joint")
    if not np.all((deviation > 0.0) & np.isfinite(deviation)):
        raise ArmidError(f"noise is {deviation.tolist()}; standard deviations of torque must be positive and finite")
    measured = np.ones(robot.n_joints) if joints is None else np.isin(np.arange(1, robot.n_joints + 1), joints)
    return np.asarray(measured / np.square(deviation))


def _check_frequencies(shape: Fourier, rate_hz: float, resonance_hz: float | None) -> None:
    if isinstance(shape.harmonics, int) and shape.harmonics > _MOST_HARMONICS:
        raise ArmidError(f"harmonics is {shape.harmonics}; give at most {_MOST_HARMONICS}, or the numbers of some")
    if not shape.orders or min(shape.orders) < 1 or len(set(shape.orders)) < len(shape.orders):
        raise ArmidError(f"harmonics {shape.harmonics} must be positive and different")
    for name, value in (("period", shape.period), ("rate_hz", rate_hz)):
        if not 0.0 < value < np.inf:
            raise ArmidError(f"{name} is {value}; it must be positive and finite")
    if abs(shape.period * rate_hz - round(shape.period * rate_hz)) > 1e-9 * max(1.0, shape.period * rate_hz):
        raise SamplingError(shape.period, rate_hz)
    if not 1.0 <= shape.period * rate_hz <= MOST_SAMPLES:
        raise ArmidError(f"a period of {shape.period:g} s at {rate_hz:g} Hz must have 1 to {MOST_SAMPLES} samples")
    highest = max(shape.orders) / shape.period
    if highest >= 0.5 * rate_hz:
        raise ArmidError(
            f"harmonic {max(shape.orders)} is {highest:g} Hz, not below half the rate of {rate_hz:g} Hz; "
            "use fewer harmonics, a longer period or a higher rate"
        )
    if resonance_hz is not None and not resonance_hz > 0.0:
        raise ArmidError(f"resonance_hz is {resonance_hz}; it must be positive")
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
    filled, assumed = [], set(limits.assumed)
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
            assumed.add("position" if name in ("lower", "upper") else name)
    return replace(limits, **values, assumed=frozenset(assumed)), filled


def _check_posture(robot: Robot, posture: Array, limits: Limits) -> None:
    if posture.shape != (robot.n_joints,):
        raise ArmidError(f"posture has {posture.size} numbers; {robot.n_joints} are needed, one per joint")
    outside = np.flatnonzero(~np.isfinite(posture) | (posture < limits.lower) | (posture > limits.upper))
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
        if names.count(name) > 1:
            raise ArmidError(f"parameter {name} is wanted twice; name each once")
    return names
