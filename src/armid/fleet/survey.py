"""The whole fleet at once: what is usual, which days do not count, what has changed, and what arms have in common.

Days that are not what they say are judged by the fleet's knowledge of the arm, which one log alone does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import Array, Mask
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.estimation.linear import residual_squares
from armid.fleet.changes import ArmChanges, Change, reversal_changes, reversal_scatter, threshold_for
from armid.fleet.day import HELD, ArmDay
from armid.fleet.hierarchy import (
    SPARE_ROWS,
    FleetEstimate,
    History,
    Information,
    history_of,
    learn,
    median_over_days,
    told_noise,
)
from armid.fleet.recording import payload_map
from armid.fleet.usual import (
    PAYLOAD,
    Deviations,
    Usual,
    Watched,
    as_usual,
    deviations,
    directions,
    learn_usual,
    scales,
    scatter_of,
    watched_of,
)
from armid.torque.model import TorqueModel

WIDE = 3.0  # the fleet's spread counts this many times wider when an arm's own changes are looked for
MISFIT = 3.0  # times the noise that residuals may be before a day is said not to fit
LEAST_SOUND = 3  # arms without a change from which on what is usual is learnt without the others
SCATTER_ARMS = 8  # arms from which the scatter of scores is taken from the fleet
REVERSED = 0.25  # squared residual with the torque's sign changed over that without, below which the sign is wrong
SILENT = 0.1  # squared torque over that of the arm's type, below which a torque channel is dead
LEAST_ROWS = 20
ENOUGH_ROWS = 50  # with fewer, a single reversal decides how well a day fits
#: Findings of the log doctor that make a day suspect until the fleet has judged it.
SUSPECT = ("sign-flipped", "swapped-joints")
UNRELATED = 0.5  # squared residual over the squares of measured and expected torque: 1 if they have nothing in common
LEAST_SHARE, LEAST_NOISE = 0.05, 0.5  # changes that are not worth telling: of the value; of the residuals' rms

DaysOf = Callable[[str], Sequence[ArmDay]]


@dataclass
class ArmSurvey:
    """What the survey found about one arm.

    Attributes:
        name: of the arm.
        dates: of its usable days.
        used: which of them count.
        wrong: dates on which a torque has the wrong sign or is dead, by kind and joint.
        exchanged: dates on which torques are one another's, by joints.
        series: deviations of the days that count, temperature taken off.
        changes: of watched quantities.
        reversals: of residuals at reversals.
        misfits: joint and size of days that nothing explains and that do not count, by date.
        unfit: joint and size of the worst misfit where more than half of the days do not fit; they count all the same.
        noise: usual rms of the residuals per joint [N m].
        temperature: mean over joints of each day that counts [°C].
        scatter: by how much the arm's days scatter more than they should.
        scale: what a deviation of 1 meant while changes were looked for, per watched quantity.
    """

    name: str
    dates: tuple[str, ...]
    used: Mask
    wrong: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    exchanged: dict[tuple[int, ...], list[str]] = field(default_factory=dict)
    series: Deviations | None = None
    changes: list[Change] = field(default_factory=list)
    reversals: list[Change] = field(default_factory=list)
    misfits: dict[str, tuple[int, float]] = field(default_factory=dict)
    unfit: tuple[int, float] | None = None
    noise: Array = field(default_factory=lambda: np.zeros(0))
    temperature: Array = field(default_factory=lambda: np.zeros(0))
    scatter: float = 1.0
    scale: Array = field(default_factory=lambda: np.ones(0))


@dataclass(frozen=True, eq=False)
class Survey:
    """What the survey found.

    Attributes:
        watched: quantities that are followed.
        usual: their usual changes.
        estimate: of the type and of each arm, before any change.
        arms: by name.
        threshold: score above which a change is told, for the longest history.
        scatter: of scores, per watched quantity; 1 is as it should be.
    """

    watched: tuple[Watched, ...]
    usual: Usual
    estimate: FleetEstimate
    arms: Mapping[str, ArmSurvey]
    threshold: float
    scatter: Array


class Surveyor:
    """Goes over the fleet several times, arm by arm.

    Args:
        model: of the type of arm.
        names: arms with usable days.
        days: gives the arm-days of an arm.
        total: number of arm-days.
        false_alarms: promised rate per arm and day.
    """

    def __init__(self, model: TorqueModel, names: Sequence[str], days: DaysOf, total: int, false_alarms: float) -> None:
        self.model, self.watched, self.false_alarms = model, watched_of(model), false_alarms
        self._days, self._keep = days, total <= HELD
        self._kept: dict[str, History] = {}
        self._payload = payload_map(model)
        self._quiet: dict[str, Mask] = {}  # days that tell an arm's noise
        self._noises: list[Array] = []
        self._rows = np.zeros(model.robot.n_joints, dtype=np.int64)  # of the day that has most, per joint
        self.arms = {name: self._start(name) for name in sorted(names)}
        self._typical = median_over_days(np.array(self._noises))
        self._check_rows()
        if not any(arm.used.any() for arm in self.arms.values()):
            for arm in self.arms.values():
                arm.used = np.ones(len(arm.dates), dtype=bool)

    def _start(self, name: str) -> ArmSurvey:
        days = sorted((day for day in self._days(name) if day.usable), key=lambda day: day.date)
        used = np.array([not suspect(day) for day in days])
        self._quiet[name] = used
        self._noises.append(median_over_days(told_noise(days)))
        for day in days:
            assert day.factor is not None
            self._rows = np.maximum(self._rows, day.factor.counts)
        return ArmSurvey(name, tuple(day.date for day in days), used)

    def _check_rows(self) -> None:
        """Refuse a fleet in which no day of any arm tells the noise of any joint."""
        needed = np.array([len(columns) for columns in self.model.joint_columns]) + SPARE_ROWS
        if np.all(self._rows < needed):
            joint = int(np.argmin(needed - self._rows))
            raise ArmidError(
                f"the recordings are too short: {needed[joint]} rows a day are needed for "
                f"{self.model.robot.joint_names[joint]} to tell parameters from noise, and no day of any arm has more "
                f"than {self._rows[joint]}; give longer recordings, more of them a day, or faster motion"
            )

    def _history(self, name: str) -> History:
        if name not in self._kept:
            history = history_of(name, self._days(name), self._quiet[name], self._typical)
            if not self._keep:
                return history
            self._kept[name] = history
        return self._kept[name]

    def used(self, name: str) -> History:
        """The days of an arm that count."""
        arm = self.arms[name]
        return self._history(name).only(arm.used).scaled(arm.scatter)

    def survey(self) -> Survey:
        """Do it all."""
        with one_blas_thread():
            first = self._judged(self._learnt())
            sound = list(self.arms)
            for _ in range(2):  # what is usual is learnt again without the arms that have changed
                usual = self._usual(first, sound)
                scatter = self._scatter(first, usual)
                healthy = {name: self._changes(name, first, usual, scatter) for name in self.arms}
                left = [name for name, arm in self.arms.items() if not arm.changes]
                if len(left) == len(sound) or len(left) < LEAST_SOUND:
                    break
                sound = left
            estimate = learn(self.model.labels, {name: one for name, one in healthy.items() if one is not None})
            for name in self.arms:
                self._series(name, estimate, usual)
                self._sizes(name)
        self._reversals()
        longest = max(len(arm.dates) for arm in self.arms.values())
        limit = threshold_for(longest, self._tests, self.false_alarms)
        return Survey(self.watched, usual, estimate, self.arms, limit, scatter)

    @property
    def _tests(self) -> int:
        """Quantities that are tested on one arm."""
        return len(self.watched) + self.model.robot.n_joints

    def _learnt(self) -> FleetEstimate:
        found = {name: self.used(name).total for name, arm in self.arms.items() if arm.used.any()}
        if not found:
            raise ArmidError("no arm-day is usable, so nothing can be estimated; see the problems of each")
        return learn(self.model.labels, found, compare=False)

    def _judged(self, first: FleetEstimate) -> FleetEstimate:
        """Leave out days whose torques are wrong, and take in those that the log doctor suspected without reason."""
        changed = False
        for name, arm in self.arms.items():
            history = self._history(name)
            used = np.ones(len(arm.dates), dtype=bool)
            for index, day in enumerate(history.days):
                exchanged = exchanged_torques(day, first.mean, self.model.robot.joint_names)
                if exchanged:
                    used[index] = False
                    arm.exchanged.setdefault(exchanged, []).append(day.date)
                for kind, joint in wrong_torques(day, first.mean):
                    if joint not in exchanged:
                        used[index] = False
                        arm.wrong.setdefault((kind, joint), []).append(day.date)
            changed |= bool((used != arm.used).any())
            arm.used = used
            if (used != self._quiet[name]).any():
                self._quiet[name] = used.copy()  # misfits are left out of arm.used later
                self._kept.pop(name, None)
            arm.noise = self._history(name).noise
        return self._learnt() if changed else first

    def _usual(self, first: FleetEstimate, sound: Sequence[str]) -> Usual:
        """What is usual, from arms that are sound; and how much each arm scatters beyond that."""
        parts = {}
        for name, arm in self.arms.items():
            if arm.used.sum() > 1:
                history = self._history(name).only(arm.used)
                values, covariance = first.posterior(history.total, WIDE)
                parts[name] = deviations(history, self.watched, values, covariance, first.mean)
        if not set(sound) & set(parts):
            none = np.full(len(self.watched), np.nan)
            return Usual(none, none, none, np.zeros(len(self.watched)))
        usual = learn_usual([part for name, part in parts.items() if name in set(sound)], self.watched)
        for name, part in parts.items():
            self.arms[name].scatter = scatter_of(part, usual)
        return usual

    def _searcher(self, name: str, first: FleetEstimate, usual: Usual) -> ArmChanges:
        history = self.used(name)
        values, covariance = first.posterior(history.total, WIDE)
        found = deviations(history, self.watched, values, covariance, first.mean)
        corrected, shift = as_usual(history, self.watched, usual, found)
        return ArmChanges(corrected, self.watched, found.scale, first.as_prior(WIDE), self._payload, shift)

    def _scatter(self, first: FleetEstimate, usual: Usual) -> Array:
        """By how much scores scatter more than they should, from the median over the fleet: model errors show here."""
        scores = [
            self._searcher(name, first, usual).scan().score for name, arm in self.arms.items() if arm.used.sum() > 2
        ]
        if len(scores) < SCATTER_ARMS:
            return np.ones(len(self.watched))
        pooled = np.concatenate(scores)
        return np.array([max(1.0, _robust(column[column != 0.0])) for column in pooled.T])

    def _changes(self, name: str, first: FleetEstimate, usual: Usual, scatter: Array) -> Information | None:
        """Find an arm's changes; what its data say about it before them, None without any day that counts."""
        arm = self.arms[name]
        if not arm.used.any():
            return None
        arm.changes = []
        for more in (True, True, False):
            searcher = self._searcher(name, first, usual)
            limit = threshold_for(int(arm.used.sum()), self._tests, self.false_alarms)
            searcher.search(limit, scatter, self._least(name))
            if not more or not self._leave_out_misfits(arm, searcher):
                break
        days, arm.scale = searcher.history.days, searcher.scale
        payloads = searcher.payloads()
        arm.changes = [
            replace(one, since=days[one.onset].date, carried=payloads.get(k)) for k, one in enumerate(searcher.changes)
        ]
        return searcher.healthy()

    def _least(self, name: str) -> Array:
        """Changes that are not worth telling."""
        noise = self._history(name).noise
        least = [
            LEAST_SHARE if one.relative else 0.0 if one.joint is None else LEAST_NOISE * float(noise[one.joint])
            for one in self.watched
        ]
        return np.array(least)

    def _leave_out_misfits(self, arm: ArmSurvey, searcher: ArmChanges) -> bool:
        """Single days that nothing explains no longer count; True if there were some."""
        index = np.flatnonzero(arm.used)
        values = searcher.fitted() + searcher.shift
        bad = {}
        for k, day in enumerate(searcher.history.days):
            times = misfit(day, values[k], searcher.history.noise)
            joint = int(np.argmax(times))
            if times[joint] > MISFIT:
                bad[k] = joint, float(times[joint])
        many = len(bad) > len(index) // 2
        arm.unfit = max(bad.values(), key=lambda one: one[1]) if many else None
        if not bad or many:
            return False
        arm.used[index[list(bad)]] = False
        arm.misfits |= {searcher.history.days[k].date: one for k, one in bad.items()}
        return True

    def _series(self, name: str, estimate: FleetEstimate, usual: Usual) -> None:
        arm = self.arms[name]
        if not arm.used.any():
            return
        own = estimate.arms[name]
        history = self.used(name)
        arm.temperature = np.array([day.temperature.mean() for day in history.days])
        found = deviations(history, self._watched_on(arm), own.values, own.covariance, estimate.mean)
        arm.series = Deviations(found.values - usual.expected(found.warmth), found.variance, found.warmth, found.scale)

    def _watched_on(self, arm: ArmSurvey) -> tuple[Watched, ...]:
        """What is watched; the mass in the hand with the centre of what the arm was found to carry."""
        loads = [one.carried for one in arm.changes if one.carried is not None]
        most = max(loads, key=lambda one: abs(one.mass), default=None)
        if most is None or not abs(most.mass) > most.sigma:
            return self.watched
        direction = self._payload[:, 0] + self._payload[:, 1:4] @ (most.moment / most.mass)
        return tuple(replace(one, direction=direction) if one.name == PAYLOAD else one for one in self.watched)

    def _sizes(self, name: str) -> None:
        """Tell changes as a share of the arm's value before them, which is known only now."""
        arm = self.arms[name]
        if arm.series is None:
            return
        for k, one in enumerate(arm.changes):
            ratio = float(arm.scale[one.watched] / arm.series.scale[one.watched])
            arm.changes[k] = replace(one, size=ratio * one.size, sigma=ratio * one.sigma)

    def _reversals(self) -> None:
        days = {name: self.used(name).days for name, arm in self.arms.items() if arm.used.any()}
        scatter = reversal_scatter(days)
        for name in days:
            limit = threshold_for(len(days[name]), self._tests, self.false_alarms)
            self.arms[name].reversals = reversal_changes(days[name], scatter, limit)

    def day_to_day(self, name: str, survey: Survey) -> Array:
        """Covariance of an arm's parameters from day to day, (parameters, parameters)."""
        scale = scales(self.watched, survey.estimate.arms[name].values, survey.estimate.mean)
        D = directions(self.watched) * (scale * survey.usual.day_to_day)
        return np.asarray(D @ D.T)


def _robust(scores: Array) -> float:
    return float(np.median(np.abs(scores)) / 0.6745) if len(scores) else 1.0


def suspect(day: ArmDay) -> bool:
    """Whether the log doctor saw something that would spoil an arm's sums."""
    return any(one.code in SUSPECT and one.severity == "error" for one in day.findings)


def wrong_torques(day: ArmDay, values: Array) -> list[tuple[str, int]]:
    """Joints whose torque has the wrong sign or is dead on a day, seen from the parameters of the type.

    The factor holds all that is needed: the squares of tau - W x, tau + W x, W x and tau itself.
    """
    assert day.factor is not None
    found = []
    for joint, columns in enumerate(day.factor.columns):
        if day.factor.counts[joint] < LEAST_ROWS:
            continue
        expected, cross, power = _squares(day.factor, joint, values[columns])
        if power < SILENT * expected:
            found.append(("dead", joint))
        elif expected + 2.0 * cross + power < REVERSED * (expected - 2.0 * cross + power):
            found.append(("sign", joint))
    return found


def _squares(factor: CompactFactor, joint: int, x: Array) -> tuple[float, float, float]:
    """Of the expected torque, its product with the measured one, and of the measured one."""
    gram = factor.gram(joint)
    return float(x @ gram[:-1, :-1] @ x), float(gram[:-1, -1] @ x), float(gram[-1, -1])


def said_exchanged(day: ArmDay, joints: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torques the log doctor takes for one another's; empty if there are none."""
    said = {
        one.joint
        for one in day.findings
        if one.code == "swapped-joints" and one.severity == "error" and one.values.get("of") == "effort"
    }
    return tuple(index for index, joint in enumerate(joints) if joint in said)


def exchanged_torques(day: ArmDay, values: Array, joints: Sequence[str]) -> tuple[int, ...]:
    """The same if the parameters of the type agree: none of these torques is anything like what it should be."""
    assert day.factor is not None
    said = said_exchanged(day, joints)
    for joint in said:
        expected, cross, power = _squares(day.factor, joint, values[day.factor.columns[joint]])
        few = day.factor.counts[joint] < LEAST_ROWS
        if few or expected - 2.0 * cross + power < UNRELATED * (expected + power):
            return ()
    return said


def misfit(day: ArmDay, values: Array, noise: Array) -> Array:
    """Rms of a day's residuals at given values over the usual noise, per joint; 0 where the day has few rows."""
    assert day.factor is not None
    counts = np.array(day.factor.counts)
    rms = np.sqrt(residual_squares(day.factor, values) / np.maximum(counts, 1))
    return np.where(counts >= ENOUGH_ROWS, rms / noise, 0.0)
