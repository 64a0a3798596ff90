"""Payload from logs: the arm is known from its fit, friction is found anew, the payload is what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from armid._version import __version__
from armid.arrays import Array
from armid.errors import ArmidError
from armid.estimation.estimator import fingerprint
from armid.estimation.fit import Fit
from armid.logs.log import Log
from armid.notes import Note, note
from armid.payload.attach import attached, base_map
from armid.payload.body import QUANTITIES, compared, consistent_body, described, spread
from armid.payload.estimate import FrictionChange, JointLoad, PayloadEstimate, PayloadSeries, Quantity, Requirement
from armid.payload.joint import JointSolution, LoadedProblem, solve_jointly
from armid.progress import report_progress
from armid.robot.inertia import INERTIAL_NAMES, INERTIAL_UNITS, impossibility, to_com
from armid.signals.dataset import Dataset
from armid.validation.comparison import Comparison, compare
from armid.validation.metrics import MOVING, REACH, root_mean_square
from armid.validation.validating import processed

LOAD_ROUNDS = 3  # of load-dependent friction with the payload so far
DETERMINED = 0.3  # standard deviation of a quantity, as a share of its kind's size, up to which data determine it
SEEN = 2.0  # standard deviations the mass must be above zero
WORSE = 1.5  # times the error without payload from which on a body on the last link explains a joint worse
ABOVE_NOISE = 3.0  # times the noise that an error is before it is called the model's
ARM_LIMITS = 0.5  # share of the mass's variance above which the arm's fit is what limits
GAINS_LIMIT = 0.5  # share of the mass's variance from which on the drives' gains limit what is known
MOST_ROWS = 4000  # of the series

Data = Log | Dataset
Pairs = Sequence[tuple[Comparison, Comparison]]  # with the payload and without


def identify_payload(
    fit: Fit,
    logs: Data | Sequence[Data],
    *,
    empty: Data | Sequence[Data] = (),
    reference: Mapping[str, float] | ArrayLike | None = None,
    requirement: Requirement | None = None,
    gain: float | None = None,
) -> PayloadEstimate:
    """Mass, centre of mass and inertia of what an arm carries, Swevers (12) and (13).

    Links, rotors and springs are known from the arm's fit, to its covariance; friction changes with the load and is
    found anew for the joints that move, with the fit's own laws and terms. Joints at rest take no part.

    Args:
        fit: of the arm without the payload.
        logs: with the payload, processed as the fit's own data were; or data sets.
        empty: the same motion without the payload, where there is one: what both runs share then drops out.
        reference: a known payload to compare with: values by the names of `QUANTITIES`, or ten parameters.
        requirement: what counts as good.
        gain: standard deviation of each joint's drive gain, the same for arm and payload, as a share; None for what
            logs and fit state. Mass and inertia are in proportion to gains, whose common scale no residual shows; what
            residuals of the fit show of gains that contradict each other is corrected.

    Raises:
        ArmidError: logs of another arm, or those that the fit was made from.
    """
    if gain is not None and not 0.0 <= gain < 1.0:
        raise ArmidError(f"the torque's scale is said to be uncertain by {gain:g}; give a share such as 0.01, or 0")
    given, bare = _listed(logs), _listed(empty)
    if not given:
        raise ArmidError("there is no log with the payload; give at least one")
    report_progress("processing the logs", 0.1)
    data, without = _processed(fit, given), _processed(fit, bare, own=True)
    report_progress("estimating", 0.5)
    solution = _solved(fit, data, without)
    marginal = np.linalg.inv(np.linalg.inv(solution.information)[:10, :10])
    body = consistent_body(solution.payload, 0.5 * (marginal + marginal.T))
    values, covariance = _loaded(fit, solution, body)
    made = attached(fit, body, values, covariance)
    report_progress("comparing torques", 0.8)
    pairs = [(compare(made, item), compare(fit, item)) for item in data]
    gains = _gains(fit, data) if gain is None else np.full(fit.robot.n_joints, gain)
    errors, of_gain = fit.gain_errors(gains), solution.of_gain[:10]
    total = errors.unexplained * solution.covariance[:10, :10] + of_gain @ errors.covariance @ of_gain.T
    free = solution.payload - of_gain @ errors.mean
    parameters = consistent_body(free, 0.5 * (marginal + marginal.T)) if errors.mean.any() else body
    quantities = _quantities(free, parameters, total)
    row = (
        () if reference is None else compared(described(parameters), np.array([q.sigma for q in quantities]), reference)
    )
    asked = Requirement() if requirement is None else requirement
    arm = solution.of_fit[0] @ fit.covariance @ solution.of_fit[0]
    draft = PayloadEstimate(
        robot=fit.robot.name,
        parameters=parameters,
        free=free,
        covariance=total,
        quantities=quantities,
        about_frame=_about_frame(free, parameters, total),
        friction=_friction(fit, solution, values),
        joints=_joints(fit, solution, pairs),
        arm_share=float(arm / max(total[0, 0], 1e-300)),
        gain=float(gains.max()),
        gain_effects=of_gain,
        in_drive_units=body,
        loaded_values=values,
        loaded_covariance=covariance,
        fit_sha256=tuple(fit.history.get("data_sha256", ())),
        data_sha256=tuple(fingerprint(item) for item in data),
        reference=row,
        requirement=asked,
        good=False,
        reasons=(),
        notes=(),
        advice=(),
        series=_series(pairs, solution),
        pipeline=tuple(dict(step) for step in data[0].pipeline),
        history={"armid": __version__, "empty_sha256": [fingerprint(item) for item in without]},
    )
    reasons = tuple(_reasons(draft))
    said = [one for item in data for one in item.notes]
    draft = replace(draft, reasons=reasons, good=not reasons, notes=(*said, *_notes(draft, solution, fit)))
    return replace(draft, advice=tuple(_advice(draft, had_empty=bool(without))))


def _gains(fit: Fit, data: Sequence[Dataset]) -> Array:
    """Standard deviation of each joint's drive gain as a share: the largest that fit or logs state."""
    stated = [np.array(d.gain_uncertainty) for d in data if d.gain_uncertainty]
    known = np.zeros(fit.robot.n_joints) if fit.gain_uncertainty is None else fit.gain_uncertainty
    return np.asarray(np.max([known, *stated], axis=0))


def _listed(items: Data | Sequence[Data]) -> list[Data]:
    return [items] if isinstance(items, Log | Dataset) else list(items)


def _processed(fit: Fit, items: Sequence[Data], *, own: bool = False) -> list[Dataset]:
    """Logs through the fit's own pipeline; those of another arm are refused, and the fit's own unless allowed."""
    sets = []
    for item in items:
        dataset = processed(fit, item) if isinstance(item, Log) else item
        if not own and fingerprint(dataset) in fit.history.get("data_sha256", ()):
            raise ArmidError(
                "the arm was identified from this very log, so that no payload can be seen in it; give a log with the "
                "payload, and a fit of the arm without it"
            )
        sets.append(dataset)
    return sets


def _solved(fit: Fit, data: Sequence[Dataset], without: Sequence[Dataset]) -> JointSolution:
    """The joint problem; load-dependent friction and losses need the payload, so that it is solved again with it."""
    bare = LoadedProblem(fit, without, loaded=False) if without else None
    carried = None
    for _ in range(LOAD_ROUNDS if any(term.loaded or term.formula.weighted for term in fit.terms) else 1):
        solution = solve_jointly(fit, LoadedProblem(fit, data, carried=carried), bare)
        carried = solution.payload
    return solution


def _loaded(fit: Fit, solution: JointSolution, parameters: Array) -> tuple[Array, Array]:
    """The fit's values with payload and new friction, and their covariance.

    Friction goes along with the payload where physical limits have moved it. The error of what is attached is made up
    of that of the fit, which payload and friction share, and their own.
    """
    count = len(fit.names)
    shift = base_map(fit)
    both = np.linalg.inv(solution.information)
    friction = solution.friction + both[10:, :10] @ np.linalg.solve(both[:10, :10], parameters - solution.payload)
    values = fit.values + shift @ parameters
    values[solution.columns] = friction
    own = np.zeros((count, 10 + len(solution.columns)))
    own[:, :10] = shift
    own[solution.columns, :10] = 0.0
    own[solution.columns, 10:] = np.eye(len(solution.columns))
    through = own @ solution.of_fit + np.diag(~np.isin(np.arange(count), solution.columns)).astype(float)
    covariance = through @ fit.covariance @ through.T + own @ solution.own @ own.T
    return values, 0.5 * (covariance + covariance.T)


def _reasons(payload: PayloadEstimate) -> list[Note]:
    """Why the verdict is poor; empty for a good one."""
    mass, free = payload.quantities[0], float(payload.free[0])
    sigma = float(np.sqrt(payload.covariance[0, 0]))
    if free <= 2.0 * sigma:
        return [note(f"payload.{'negative' if free < -2.0 * sigma else 'none'}", mass=free, half=2.0 * sigma)]
    asked, reasons = payload.requirement, []
    if mass.half > asked.mass * mass.value:
        reasons.append(note("payload.mass", half=mass.half / mass.value, asked=asked.mass))
    for quantity in payload.quantities[1:4]:
        if quantity.half > asked.com_m:
            reasons.append(note("payload.com", name=quantity.name, half_m=quantity.half, asked_m=asked.com_m))
    for joint in payload.joints:
        if joint.moved and joint.rms_with > max(WORSE * joint.rms_without, ABOVE_NOISE * joint.noise):
            worse = {"without": joint.rms_without, "with_payload": joint.rms_with}
            reasons.append(note("payload.worse", joint=joint.name, **worse))
    reach = float(norm.ppf(1.0 - 0.025 / max(len(payload.reference), 1)))  # one of many may be outside by chance
    for row in payload.reference:
        if row.sigmas > reach:
            told = {"name": row.name, "sigmas": row.sigmas, "reference": row.reference, "unit": row.unit}
            reasons.append(note("payload.reference", **told))
    return reasons


def _notes(payload: PayloadEstimate, solution: JointSolution, fit: Fit) -> list[Note]:
    """What was found."""
    notes = [note("payload.nearest")] if impossibility(payload.free) is not None else []
    if left := payload.undetermined:
        notes.append(note("payload.undetermined", names=left))
    notes.append(note("payload.rows", rows=int(solution.counts.sum()), lag=solution.lag))
    own = float(solution.covariance[0, 0] / max(float(payload.covariance[0, 0]), 1e-300))
    notes.append(note("payload.shares", arm_share=payload.arm_share, gain=payload.gain, gain_share=1.0 - own))
    loud = [j for j in payload.joints if j.moved and j.noise > 0.0 and j.rms_with > ABOVE_NOISE * j.noise]
    if loud:
        worst = max(loud, key=lambda joint: joint.rms_with / joint.noise)
        notes.append(note("payload.above_noise", joint=worst.name, ratio=worst.rms_with / worst.noise))
    # parameters that the arm's own data leave free, whose covariance says nothing
    pairs = zip(fit.names, fit.identifiability.classes, strict=True)
    if free := [name for name, kind in pairs if kind == "undetermined"]:
        notes.append(note("payload.arm_open", names=free[:5]))
    return notes


def _advice(payload: PayloadEstimate, *, had_empty: bool) -> list[Note]:
    """What would help, where something is missing; what a verdict fails by comes first."""
    advice, left = [], payload.undetermined
    shares = next((one.values for one in payload.notes if one.code == "payload.shares"), {})
    wide = any(one.code in ("payload.mass", "payload.com") for one in payload.reasons)
    if wide and shares.get("gain_share", 0.0) > GAINS_LIMIT:
        advice.append(note("payload.gains"))
    if any(name.startswith("I") for name in left):
        advice.append(note("payload.faster", robot=payload.robot))
    if any(name.startswith("c_") or name == "m" for name in left):
        advice.append(note("payload.postures", robot=payload.robot))
    if payload.reasons and not had_empty and payload.arm_share > ARM_LIMITS:
        advice.append(note("payload.empty"))
    elif payload.reasons and not left and not advice:
        advice.append(note("payload.longer"))
    return advice


def _quantities(free: Array, parameters: Array, covariance: Array) -> tuple[Quantity, ...]:
    """Mass, centre of mass, inertia about it; intervals are those of the estimate without physical limits.

    They know of the limits in so far as they end where these do, and hold the physically consistent body.
    """
    values = described(parameters)
    if free[0] > SEEN * np.sqrt(covariance[0, 0]):
        middle, uncertain = spread(free, covariance)
        sigmas = np.sqrt(np.maximum(np.diag(uncertain), 0.0))
    else:  # centre and inertia of next to nothing
        middle, sigmas = np.append(free[:1], values[1:]), np.append(np.sqrt(covariance[0, 0]), np.full(9, np.inf))
    sizes = _sizes(parameters)
    largest = 4 + int(np.argmax(values[4:7]))
    if sigmas[largest] > DETERMINED * sizes[largest]:
        sizes[4:] = 0.0  # smaller moments cannot be compared with one that is unknown itself
    names, units = zip(*QUANTITIES, strict=True)
    least = [0.0 if name in ("m", "Ixx", "Iyy", "Izz") else -np.inf for name in names]
    return _told(names, units, values, sigmas, middle, sizes, least)


def _about_frame(free: Array, parameters: Array, covariance: Array) -> tuple[Quantity, ...]:
    """The ten parameters about the tool frame's origin."""
    mass, moment = parameters[0], parameters[[4, 6, 9]].max()
    sizes = [mass, *[mass * _sizes(parameters)[1]] * 3, *[moment] * 6]
    sigmas, least = np.sqrt(np.diag(covariance)), [-np.inf] * 10
    return _told(INERTIAL_NAMES, INERTIAL_UNITS, parameters, sigmas, free, sizes, least)


def _told(
    names: Sequence[str], units: Sequence[str], values: Array, sigmas: Array, middle: Array, *bounds: ArrayLike
) -> tuple[Quantity, ...]:
    """Values with intervals about `middle` that hold them; `bounds` are the sizes of their kinds and least values."""
    result = []
    for name, unit, *numbers in zip(names, units, values, sigmas, middle, *map(np.asarray, bounds), strict=True):
        value, sigma, centre, size, least = map(float, numbers)
        interval = min(max(centre - REACH * sigma, least), value), max(centre + REACH * sigma, value)
        result.append(Quantity(name, value, sigma, interval, bool(sigma <= DETERMINED * size), unit))
    return tuple(result)


def _friction(fit: Fit, solution: JointSolution, values: Array) -> tuple[FrictionChange, ...]:
    """Coefficients with payload beside the arm's own."""
    sigma, units = np.sqrt(np.diag(solution.covariance)[10:]), fit.torque_model.units
    return tuple(
        FrictionChange(fit.names[c], units[c], float(values[c]), float(s), float(fit.values[c]))
        for c, s in zip(solution.columns, sigma, strict=True)
    )


def _joints(fit: Fit, solution: JointSolution, pairs: Pairs) -> tuple[JointLoad, ...]:
    """Torque errors while moving, without and with payload, and its own torque."""
    result = []
    for j, name in enumerate(fit.robot.joint_names):
        moved, found = bool(solution.moving[j]), np.zeros((0, 3))
        if moved:
            rows = [(np.abs(w.velocity[:, j]) > MOVING) & w.use[:, j] for w, _ in pairs]
            looks = [np.stack([o.error, w.error, w.load - o.load], axis=2)[:, j] for w, o in pairs]
            found = np.concatenate([look[use] for look, use in zip(looks, rows, strict=True)])
        before, after, own = (root_mean_square(column) for column in found.T)
        noises = [w.noise[j] for w, _ in pairs if w.noise is not None]
        noise = root_mean_square(np.array(noises)) if len(noises) == len(pairs) else float("nan")
        result.append(JointLoad(name, moved, before, after, noise, own))
    return tuple(result)


def _sizes(parameters: Array) -> Array:
    """What each quantity is to be compared with: the mass, the body's extent, its largest moment of inertia."""
    mass, centre, inertia = to_com(parameters)
    extent = np.sqrt(0.5 * np.trace(inertia) / mass + centre @ centre)
    return np.array([mass, *[float(extent)] * 3, *[float(np.diag(inertia).max())] * 6])


def _series(pairs: Pairs, solution: JointSolution) -> PayloadSeries:
    step = max(1, -(-sum(len(w.time) for w, _ in pairs) // MOST_ROWS))
    series = zip(*((w.time, w.measured, w.predicted, o.predicted) for w, o in pairs), strict=True)
    time, measured, loaded, bare = (np.concatenate([part[::step] for part in parts]) for parts in series)
    return PayloadSeries(time, measured, loaded, bare, tuple(solution.moving.tolist()))
