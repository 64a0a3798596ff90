"""The verdict: good, usable for something, or poor, with the reasons. The one place that judges a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from armid.arrays import Array
from armid.estimation.consistent.log_det import plausible_arm
from armid.estimation.fit import Fit
from armid.notes import Note, note
from armid.robot.inertia import pseudo_inertia
from armid.robot.robot import inertial_names
from armid.validation.comparison import friction_curve
from armid.validation.metrics import REACH, ratio
from armid.validation.residuals import ResidualAnalysis
from armid.validation.result import COVERAGE, Validation

POOR = 0.3  # error of all torque of an arm with failing joints from which it is of no use
LEFT_OUT = 2.0  # times the limits while moving that the error may be around changes of direction and at rest
GROWTH = 1.5  # largest friction towards rest over that of the slowest data
LINK = 6.0  # factor to a plausible mass (half for all of the nominal mass), and to the largest radius of gyration
BETTER = 0.95  # error of the nominal inertia, with friction of the same training data, over ours
FASTER, OUTSIDE = 2.0, 0.5  # speed over that of the training data; share of rows at positions that they do not have
TRAINED = 2.0  # residual of the training data over the error on other data
STRUCTURE = 0.5  # share of the squared error from which it has one cause
QUIET, SMALL = 1.5, 0.1  # times the noise, or the limit, up to which an error leaves nothing to be better at
LOUD = 3.0  # times the noise from which an error within the limits, but above half of them, must have no one cause
GAIN = 0.02  # difference of the torque's gain from which it contradicts the model
WEIGHT_GAIN = 0.15  # torque in proportion to the weight from which no loss in a gear explains it
SLOWEST, SPEEDS = 1e-3, 40  # of the speeds at which friction is looked at [rad/s or m/s]
NEAR_REST = 0.1  # speed that counts as slow where a fit does not say how slow its data were [rad/s or m/s]
TORQUE, ONE_WAY = "torque prediction", "motion without changes of direction"


@dataclass(frozen=True)
class Objection:
    """What speaks against a model: how many times a limit is exceeded, and what it is of use for all the same."""

    note: Note
    times: float
    use: str = ""  # empty for nothing


def judge(fit: Fit, check: Validation) -> Validation:
    """The validation with a verdict: everything that speaks against the model, and what it can be used for."""
    checks = (_errors, _left_out_rows, _coverage, _contradictions, _structure, _nominal, _friction, _range)
    against = [*implausible_links(fit), *(f for one in checks for f in one(fit, check))]
    found = sorted(against, key=lambda f: (f.use != "", -f.times))
    if not found:
        limits, largest = check.thresholds, max((check.joints[j].nrms_moving for j in check.moving), default=None)
        given = {"limit": limits.nrms_moving, "noise_ratio": limits.noise_ratio, "largest": largest}
        return replace(check, verdict="good", usable_for=(), reasons=(note("validation.good", **given),))
    uses = tuple(dict.fromkeys(f.use for f in found)) if found[0].use else ()
    verdict = "usable" if uses else "poor"
    return replace(check, verdict=verdict, usable_for=uses, reasons=tuple(f.note for f in found))


def _errors(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Error while moving, per joint and of the arm; joints that never moved; training data."""
    bad, limit, error = check.failing, check.thresholds.nrms_moving, check.relative_error_moving
    for j in bad:
        joint = check.joints[j]
        noise = joint.noise_ratio if np.isfinite(joint.noise_ratio) else None
        given = {"nrms_moving": joint.nrms_moving, "limit": limit, "noise_ratio": noise}
        said = note("validation.poor_joint", joint=joint.name, **given)
        yield Objection(said, joint.nrms_moving / limit, _left_to_use(check, bad))
    if bad and error > POOR:
        yield Objection(note("validation.poor_arm", relative_error=error), error / POOR)
    if check.same_as_training:
        yield Objection(note("validation.training_data"), 1.0, "the motion of the training data")
    still = [joint.name for j, joint in enumerate(check.joints) if j not in check.moving]
    if still:
        yield Objection(note("validation.unmoved", joints=still), 1.0, _names(check, check.moving))


def _left_to_use(check: Validation, bad: Sequence[int]) -> str:
    """What a model with an error in some joints is still good for: slow motion, gravity, the other joints."""
    looks, limit = [check.residuals[j] for j in bad], check.thresholds.nrms_moving
    slow = min(_slow_speed(look, limit * check.joints[j].spread) for j, look in zip(bad, looks, strict=True))
    if slow > 0.0:
        return f"slow motion up to {slow:.2g} rad/s"
    if all(look.velocity_share - look.bias_share >= STRUCTURE for look in looks):
        return "gravity compensation"
    fine = [j for j in check.moving if j not in bad]
    return _names(check, fine) if 2 * len(fine) >= len(check.moving) else ""


def _slow_speed(look: ResidualAnalysis, limit: float) -> float:
    """Speed up to which the error of all rows keeps a limit [rad/s]; 0 if none does."""
    order = np.argsort(np.abs(look.velocity))
    squares = np.cumsum(look.velocity_rms[order] ** 2) / np.arange(1, len(order) + 1)
    kept = np.cumprod(np.sqrt(squares) <= limit).astype(bool)
    return float(np.abs(look.velocity[order][kept]).max(initial=0.0))


def _names(check: Validation, joints: Sequence[int]) -> str:
    names = [check.joints[j].name for j in joints]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _left_out_rows(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Rows that a fit leaves out: around changes of direction, where presliding friction is granted, and at rest."""
    limits = check.thresholds
    for j in check.moving:
        joint = check.joints[j]
        noise = joint.noise if np.isfinite(joint.noise) else 0.0
        limit = LEFT_OUT * max(limits.nrms_moving * joint.spread, limits.noise_ratio * noise)
        presliding = abs(float(friction_curve(fit, j, _speeds(fit, check, j)[:1], mean=True)[0][0]))
        for name, rms, most, use in (
            ("reversals", joint.rms_reversals, max(limit, presliding), ONE_WAY),
            ("standstill", joint.rms_standstill, limit, "moving joints"),
        ):
            if rms > most:
                yield Objection(note(f"validation.at_{name}", joint=joint.name, rms=rms, limit=most), rms / most, use)


def _speeds(fit: Fit, check: Validation, j: int) -> Array:
    """Slowest and fastest speed of a joint in the training data [rad/s]; guessed where the fit does not say."""
    seen = fit.history.get("range")
    slowest, fastest = seen["speed"][j] if seen else (NEAR_REST, float(np.abs(check.series.velocity[:, j]).max()))
    return np.array([slowest, max(fastest, 2.0 * slowest)])


def _coverage(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Whether the stated interval of a sample holds the measured torque."""
    for joint in (check.joints[j] for j in check.uncovered):
        said = note("validation.coverage", joint=joint.name, coverage=joint.coverage, limit=COVERAGE)
        yield Objection(said, (1.0 - joint.coverage) / (1.0 - COVERAGE), "torque without its intervals")


def _contradictions(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Another payload or gain than in the training data, where the error is no chance; gains, references outside."""
    looks = {j: check.residuals[j] for j in check.bad}
    share = min((look.payload_share for look in looks.values()), default=0.0)
    gains = {j for j, look in looks.items() if look.gain_share >= STRUCTURE and abs(look.gain) >= GAIN}
    if share >= STRUCTURE and (len(looks) > 1 or not gains):
        mass, *_ = (look.payload_mass for look in looks.values())
        said = note("validation.other_payload", mass=mass if np.isfinite(mass) else None, share=share)
        yield Objection(said, 10.0, "" if check.failing else "the payload of the training data")
        gains = set()
    for j in gains:
        given = {"joint": looks[j].name, "gain": 1.0 + looks[j].gain, "share": looks[j].gain_share}
        yield Objection(note("validation.other_gain", **given), 5.0, "" if j in check.failing else TORQUE)
    for j in check.moving:
        joint, training, noise = check.joints[j], float(fit.residual_rms[j]), 0.0 if fit.noise is None else fit.noise[j]
        spread = joint.rms_moving / joint.nrms_moving if joint.nrms_moving > 0.0 else 0.0  # of the joint's torque
        if training > max(TRAINED * joint.rms_moving, TRAINED * noise, check.thresholds.nrms_moving * spread):
            said = note("validation.training_misfit", joint=joint.name, training=training, rms=joint.rms_moving)
            yield Objection(said, ratio(training, joint.rms_moving) / TRAINED, TORQUE)
    for term in (term for term in fit.terms if term.formula.weighted):
        k = fit.columns.index(term.names[0])
        value, half = float(fit.values[k]), REACH * float(fit.sigma[k])
        if abs(value) - half > WEIGHT_GAIN:
            said = note("validation.weight_gain", joint=check.joints[term.joint].name, gain=1.0 + value, half=half)
            yield Objection(said, abs(value) / WEIGHT_GAIN, TORQUE)
    reach = float(norm.ppf(1.0 - 0.025 / max(len(check.references), 1)))  # one of many may be outside by chance
    for row in check.references:
        away, half = abs(row.value - row.reference), reach * row.sigma
        if away > half:
            said = note("validation.reference", name=row.name, value=row.value, half=half, reference=row.reference)
            yield Objection(said, ratio(away, half))


def _structure(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Errors within the limits, but clearly above the noise, that repeat with the motion."""
    for j in (j for j in check.moving if j not in check.bad):
        joint, look = check.joints[j], check.residuals[j]
        size = joint.nrms_moving / (0.5 * check.thresholds.nrms_moving)
        shares = {
            "velocity": look.velocity_share - look.bias_share,
            "load": look.load_share,
            "torque": look.gain_share,
            "constant": look.bias_share,
        }
        cause = max(shares, key=shares.__getitem__)
        if joint.noise_ratio > LOUD and size > 1.0 and shares[cause] > STRUCTURE:
            given = {"nrms_moving": joint.nrms_moving, "share": shares[cause], "cause": cause}
            said = note("validation.structure", joint=joint.name, noise_ratio=joint.noise_ratio, **given)
            yield Objection(said, size, f"torque to {joint.nrms_moving:.0%} of its spread")


def _nominal(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Joints that the file's own inertia predicts better, unless noise or accuracy leaves nothing to be better at.

    What the model adds to its error, as independent errors add, must be worth telling.
    """
    small = SMALL * check.thresholds.nrms_moving
    loud = [j for j in check.moving if not check.joints[j].noise_ratio <= QUIET]
    errors = {j: (check.joints[j].nrms_moving, check.joints[j].nominal_nrms_moving) for j in loud}
    better = [j for j, (ours, theirs) in errors.items() if theirs < BETTER * ours and ours**2 - theirs**2 > small**2]
    if better:
        told = [(check.joints[j].name, *errors[j]) for j in better]
        others = _names(check, [j for j in check.moving if j not in better])
        yield Objection(note("validation.nominal", joints=told), max(ours / theirs for _, ours, theirs in told), others)


def _friction(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Friction takes energy at every speed, and towards rest it stays near what the slowest data show."""
    for j, joint in enumerate(check.joints):
        slowest, fastest = _speeds(fit, check, j)
        speeds = np.geomspace(SLOWEST, fastest, SPEEDS)
        torque, sigma = friction_curve(fit, j, speeds, mean=True)
        size = float(np.abs(torque).max())
        if np.any(low := torque < -REACH * sigma - 1e-9 * size):
            worst = int(np.argmin(np.where(low, torque, 0.0)))
            given = {"speed": float(speeds[worst]), "torque": float(torque[worst])}
            said = note("validation.friction_power", joint=joint.name, **given)
            yield Objection(said, 1.0 - float(torque[worst]) / size, TORQUE)
        there = float(np.abs(np.interp([slowest, 2.0 * slowest], speeds, torque)).max())
        near = speeds < slowest
        grown = float((np.abs(torque) - REACH * sigma)[near].max(initial=0.0))
        limit = max(GROWTH * there, float(fit.residual_rms[j]))
        if grown > limit:
            given = {"torque": float(np.abs(torque[near]).max()), "there": there, "slowest": float(slowest)}
            yield Objection(note("validation.friction_growth", joint=joint.name, **given), ratio(grown, limit), ONE_WAY)


def implausible_links(fit: Fit) -> Iterator[Objection]:
    """Mass, centre of mass and radius of gyration of each link beside those of a plausible arm; the mass of all."""
    values = fit.standard_parameters
    if values is None:
        return
    plausible = [_body(body) for body in plausible_arm(fit.robot)]
    most = LINK * max(radius for *_, radius in plausible)
    bodies, fixed = {}, {*fit.robot.known, *fit.robot.zero}
    for i in range(len(fit.robot.links)):
        names = inertial_names(i + 1)
        if not fixed.issuperset(names):
            bodies[i] = _body(pseudo_inertia([float(values.get(name, 0.0)) for name in names]))
    scale = float(np.median([bodies[i][0] / plausible[i][0] for i in bodies])) if bodies else 1.0
    for i, (mass, centre, radius) in bodies.items():
        usual, away = scale * plausible[i][0], float(np.linalg.norm(centre - plausible[i][1]))
        for what, value, expected, times in (
            ("mass", mass, usual, max(mass / usual, usual / max(mass, 1e-9 * usual)) / LINK),
            ("centre", away, most, away / most),
            ("radius", radius, most, radius / most),
        ):
            if times > 1.0:
                given = {"link": fit.robot.links[i].link_name, "value": value, "plausible": expected}
                yield Objection(note(f"validation.link_{what}", **given), times, TORQUE)
    if fit.robot.nominal_inertia is not None:
        total = sum(mass for mass, *_ in bodies.values())
        stated = sum(float(fit.robot.nominal_inertia[i, 0]) for i in bodies)
        times = 2.0 * max(ratio(total, stated), ratio(stated, total)) / LINK
        if times > 1.0:
            yield Objection(note("validation.total_mass", mass=total, nominal=stated), times, TORQUE)


def _body(moments: Array) -> tuple[float, Array, float]:
    """Mass [kg], centre of mass [m] and radius of gyration [m] of a pseudo-inertia; lengths are 0 without mass."""
    mass = float(moments[3, 3])
    if not mass > 0.0:
        return 0.0, np.zeros(3), 0.0
    centre = moments[:3, 3] / mass
    return mass, centre, float(np.sqrt(max(np.trace(moments[:3, :3]) / mass - centre @ centre, 0.0)))


def _range(fit: Fit, check: Validation) -> Iterator[Objection]:
    """Speeds beyond those of the training data; positions, where some joint is not predicted as it should be."""
    for j, joint in enumerate(check.joints if "range" in fit.history else ()):
        trained = float(_speeds(fit, check, j)[1])
        speed = float(np.quantile(np.abs(check.series.velocity[:, j]), 0.995))
        if speed > FASTER * trained:
            said = note("validation.faster", joint=joint.name, speed=speed, trained=trained)
            yield Objection(said, speed / trained, "motion no faster than the training data")
        if check.bad and joint.outside > OUTSIDE:
            said = note("validation.outside", joint=joint.name, share=joint.outside)
            yield Objection(said, joint.outside / OUTSIDE, "postures of the training data")
