"""The whole fleet at once: what is usual, which days do not count, what has changed, and what arms have in common.

Days that are not what they say are judged by the fleet's knowledge of the arm, which one log alone does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add

import numpy as np
from scipy.stats import norm

from armid.arrays import Array, Mask
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.fleet.changes import ArmChanges, Change, reversal_search
from armid.fleet.day import HELD, Days
from armid.fleet.hierarchy import (
    MOST_ARMS,
    SPARE_ROWS,
    FleetEstimate,
    History,
    Information,
    history_of,
    learn,
    median_over_days,
    told_noise,
)
from armid.fleet.promise import Null, Promise, chance_of, limit, most_misfit, null_of, nulls_of, promise_of
from armid.fleet.recording import payload_map
from armid.fleet.type_model import TypeModel
from armid.fleet.usual import (
    PAYLOAD,
    Deviations,
    Usual,
    Watched,
    as_usual,
    deviations,
    directions,
    learn_usual,
    own_deviations,
    scales,
    scatter_of,
    watched_of,
)
from armid.fleet.wrong_days import ExcludedDay, misfits, odd_day, odd_days, suspect, worst_days, wrong_channels
from armid.progress import report_progress

LOUD_ARM = 10.0  # times the noise of the median arm, above which no model fits the arm, or its sensors are bad
CURVE_ARMS = 60  # that show how much friction curves differ
PASSES = 4  # at most; the last finds no more arms that have changed
LEAST_SOUND = 3  # arms without a change from which on what is usual is learnt without the others
LEAST_SHARE, LEAST_NOISE = 0.05, 0.5  # changes that are not worth telling: of the value; of the residuals' rms
UNKNOWN_SHARE = 0.2  # relative error of the value before a change from which on its size is no share of that value
NINE_IN_TEN = 1.28  # standard deviations that a score lies above, nine times in ten
LEAST_GROWTH = 0.2  # the same of the logarithm of residuals at reversals


@dataclass
class ArmSurvey:
    """What the survey found about one arm.

    Attributes:
        name: of the arm.
        dates: of its usable days.
        used: which of them count.
        excluded: the others, and why.
        series: deviations of the days that count, temperature taken off.
        changes: of watched quantities.
        reversals: of residuals at reversals.
        unfit: joint and size of the worst misfit where half of the days or more do not fit; they count all the same.
        loud: joint whose noise exceeds that of the other arms most, and how many times, where that is too much.
        noise: usual rms of the residuals per joint [N m]; NaN for one that never moves.
        temperature: mean over joints of each day that counts [°C].
        scatter: by how much the arm's days scatter more than they should.
        scale: what a deviation of 1 meant while changes were looked for, per watched quantity.
        curve: how much of each mode makes the arm's friction curve, beside its changes.
    """

    name: str
    dates: tuple[str, ...]
    used: Mask
    excluded: list[ExcludedDay] = field(default_factory=list)
    series: Deviations | None = None
    changes: list[Change] = field(default_factory=list)
    reversals: list[Change] = field(default_factory=list)
    unfit: tuple[int, float] | None = None
    loud: tuple[int, float] | None = None
    noise: Array = field(default_factory=lambda: np.zeros(0))
    temperature: Array = field(default_factory=lambda: np.zeros(0))
    scatter: float = 1.0
    scale: Array = field(default_factory=lambda: np.ones(0))
    curve: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Survey:
    """What the survey found.

    Attributes:
        watched: quantities that are followed.
        usual: their usual changes.
        estimate: of the type and of each arm, before any change.
        arms: by name.
        promise: about false alarms.
        least: step of each watched quantity that is found nine times in ten in the median arm; NaN where none is.
    """

    watched: tuple[Watched, ...]
    usual: Usual
    estimate: FleetEstimate
    arms: Mapping[str, ArmSurvey]
    promise: Promise
    least: Array


class Surveyor:
    """Goes over the fleet several times, arm by arm.

    Args:
        type_model: torque model of the type of arm.
        names: arms with usable days.
        days: gives the arm-days of an arm.
        rate: false alarms per arm and day that are asked for.
    """

    def __init__(self, type_model: TypeModel, names: Sequence[str], days: Days, rate: float) -> None:
        self.type, self.model, self.rate = type_model, type_model.followed, rate
        self.watched, self._joints = watched_of(self.model), self.model.robot.joint_names
        self._days = days
        self._kept: dict[str, History] = {}
        self._room = HELD
        self._payload = payload_map(self.model)
        self._quiet: dict[str, Mask] = {}  # days that tell an arm's noise
        self._right: dict[str, tuple[Mask, list[ExcludedDay]]] = {}  # days whose channels are right; the others
        self._noises: list[Array] = []
        self._rows = np.zeros(self.model.robot.n_joints, dtype=np.int64)  # of the day that has most, per joint
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
        self._noises.append(median_over_days(told_noise(days, self.type)))
        for day in days:
            assert day.factor is not None
            self._rows = np.maximum(self._rows, day.factor.counts)
        return ArmSurvey(name, tuple(day.date for day in days), used)

    def _widen(self) -> None:
        """Learn how much friction curves differ from arm to arm."""
        names = [name for name, arm in self.arms.items() if arm.used.any()]
        arms = []
        for name in names[:: max(1, len(names) // CURVE_ARMS)]:
            history, used = self._history(name), self.arms[name].used
            days = [day.factor for day, yes in zip(history.days, used, strict=True) if yes and day.factor is not None]
            arms.append((reduce(add, days), 1.0 / (history.noise**2 * history.inflation)))
        if arms:
            self.type = self.type.widened(arms)
            self._forget(*self.arms)

    def _check_rows(self) -> None:
        """Refuse a fleet in which no day of any arm tells the noise of any joint."""
        needed = np.array([len(columns) for columns in self.model.joint_columns]) + SPARE_ROWS
        if np.all(self._rows < needed):
            joint = int(np.argmin(needed - self._rows))
            raise ArmidError(
                f"the recordings are too short: {needed[joint]} rows a day are needed for "
                f"{self._joints[joint]} to tell parameters from noise, and no day of any arm has more "
                f"than {self._rows[joint]}; give longer recordings, more of them a day, or faster motion"
            )

    def _history(self, name: str) -> History:
        if name in self._kept:
            return self._kept[name]
        history = history_of(name, self._days(name), self.type, self._quiet[name], self._typical)
        if self._days.held(name) and history.nbytes <= self._room:
            self._room -= history.nbytes
            self._kept[name] = history
        return history

    def _forget(self, *names: str) -> None:
        """Histories that are no longer what they were."""
        for history in (self._kept.pop(name) for name in names if name in self._kept):
            self._room += history.nbytes

    def used(self, name: str) -> History:
        """The days of an arm that count."""
        arm = self.arms[name]
        return self._history(name).only(arm.used).scaled(arm.scatter)

    def survey(self) -> Survey:
        """Do it all; the promise is looked at before any change is."""
        with one_blas_thread():
            report_progress("learning what arms have in common", 0.0)
            first = self._judged(self._learnt())
            self._widen()
            sound, promise = list(self.arms), None
            for _ in range(PASSES):  # what is usual is learnt again without the arms that have changed
                usual = self._usual(first, sound)
                nulls, limits, found, finest = self._null(first, usual, sound)
                promise = found if promise is None else promise
                judge = nulls if promise.holds else None
                healthy = {}
                for done, name in enumerate(self.arms):
                    report_progress(f"looking for changes ({name})", done / len(self.arms))
                    healthy[name] = self._changes(name, first, usual, judge, limits)
                left = [name for name, arm in self.arms.items() if not arm.changes]
                if left == sound or len(left) < LEAST_SOUND:
                    break
                sound = left
            known = {name: one for name, one in healthy.items() if one is not None}
            estimate = learn(self.model.labels, known)
            for name in self.arms:
                self._note_noise(name)
                self._series(name, estimate, usual)
                self._sizes(name, estimate)
        assert promise is not None
        if promise.holds:
            self._reversals()
        return Survey(self.watched, usual, estimate, self.arms, promise, self._findable(nulls[0], promise, finest))

    def _findable(self, null: Null, promise: Promise, finest: Array) -> Array:
        """Steps that exceed the threshold nine times in ten, and are worth telling; NaN where nothing is promised."""
        least = np.full(len(self.watched), np.nan)
        if promise.threshold is not None:
            chance = 2.0 * float(norm.sf(promise.threshold))
            least = finest * (promise.threshold * null.spread(chance) + NINE_IN_TEN * np.maximum(null.scale, 1.0))
        return np.where([one.relative for one in self.watched], np.maximum(least, LEAST_SHARE), least)

    def _null(
        self, first: FleetEstimate, usual: Usual, sound: Sequence[str]
    ) -> tuple[tuple[Null, Null], Array, Promise, Array]:
        """Scores without changes, of sound arms, how well a day may fit, per joint, what can be promised, finest steps.

        The last are standard deviations of the step, in each quantity, that the median arm's days tell best.
        """
        scores, worth, single, tests, fits, finest = [], [], [], 1, [], []
        for name, arm in self.arms.items():
            if not arm.used.any():
                continue
            searcher = self._searcher(name, first, usual)
            fits.append(self._misfits(searcher))
            if arm.used.sum() > 1 and name in set(sound):
                scan = searcher.scan()
                scores.append(scan.score)
                step = np.array([one == "step" for one in searcher.shapes.names])[:, None] & (scan.score != 0.0)
                finest.append(np.where(step, scan.sigma, np.inf).min(axis=0))
                worth.append(int(arm.used.sum()) - 1)
                single.append(searcher.shapes.single)
                tests = max(tests, self._tests(len(scores[-1])))
        days = max(worth, default=0) + 1
        none = np.zeros((0, len(self.watched))), np.zeros(0, dtype=bool)
        nulls = nulls_of(scores or [none[0]], worth or [0], single or [none[1]])
        limits = most_misfit(fits, chance_of(self.rate, 1, len(self._joints)))
        middle = np.median(finest or [np.full(len(self.watched), np.inf)], axis=0)
        middle = np.where(np.isfinite(middle), middle, np.nan)
        return nulls, limits, promise_of(nulls[0], self.rate, days, tests), middle

    def _tests(self, candidates: int) -> int:
        """Tests of one arm: so many courses of each quantity, and of the residuals at reversals of each joint."""
        return candidates * (len(self.watched) + self.model.robot.n_joints)

    def _learnt(self) -> FleetEstimate:
        found = {name: self.used(name).known_curve.total for name, arm in self.arms.items() if arm.used.any()}
        if not found:
            raise ArmidError("no arm-day is usable, so nothing can be estimated; see the problems of each")
        return learn(self.model.labels, found, compare=False)

    def _judged(self, first: FleetEstimate) -> FleetEstimate:
        """Leave out days whose channels are wrong, and take in those that the log doctor suspected without reason."""
        changed, mean = False, self.type.change(len(first.mean)) @ np.concatenate([first.mean, self.type.curve])
        for name, arm in self.arms.items():
            days = self._history(name).days
            about = mean, self._typical, self._joints, self._payload
            arm.excluded = [one for day in days for one in wrong_channels(day, *about)]
            wrong = {one.date for one in arm.excluded}
            used = np.array([date not in wrong for date in arm.dates])
            changed |= bool((used != arm.used).any())
            arm.used, self._right[name] = used, (used, arm.excluded)
            if (used != self._quiet[name]).any():
                self._quiet[name] = used.copy()
                self._forget(name)
            self._note_noise(name)
            times = np.nan_to_num(arm.noise / self._typical)
            if used.any() and times.max() > LOUD_ARM:
                arm.loud = int(np.argmax(times)), float(times.max())
        return self._learnt() if changed else first

    def _note_noise(self, name: str) -> None:
        history = self._history(name)
        rows = np.sum([day.factor.counts for day in history.days if day.factor is not None], axis=0)
        self.arms[name].noise = np.where(rows > 0, history.noise, np.nan)

    def _usual(self, first: FleetEstimate, sound: Sequence[str]) -> Usual:
        """What is usual, from arms that are sound; and how much each arm scatters beyond that."""
        names = [name for name, arm in self.arms.items() if arm.used.sum() > 1]
        shown = [name for name in names if name in set(sound)]
        if not shown:
            none = np.full(len(self.watched), np.nan)
            return Usual(none, none, none, np.zeros(len(self.watched)))

        def plain(name: str) -> History:
            return self._history(name).only(self.arms[name].used)

        some = shown[:: -(-len(shown) // MOST_ARMS)]
        usual = learn_usual(lambda: map(plain, some), self.watched, first)
        for name in names:
            self.arms[name].scatter = scatter_of(own_deviations(plain(name), self.watched, usual, first)[0], usual)
        return usual

    def _searcher(self, name: str, first: FleetEstimate, usual: Usual) -> ArmChanges:
        history = self.used(name)
        found, prior = own_deviations(history, self.watched, usual, first)
        corrected, shift = as_usual(history, self.watched, usual, found)
        return ArmChanges(corrected, self.watched, found.scale, prior, self._payload, shift)

    def _searched(self, name: str, first: FleetEstimate, usual: Usual, nulls: tuple[Null, Null] | None) -> ArmChanges:
        """The days of an arm that count, with the changes found in them; none without nulls to judge them by."""
        searcher = self._searcher(name, first, usual)
        if nulls is not None and len(searcher.shapes.names):
            tests = self._tests(len(searcher.shapes.names))
            chance = chance_of(self.rate, int(self.arms[name].used.sum()), tests)
            many, one = (null.spread(chance) for null in nulls)
            spread = np.where(searcher.shapes.single[:, None], one, many)
            searcher.search(limit(chance), spread, self._least(name))
        return searcher

    def _changes(
        self, name: str, first: FleetEstimate, usual: Usual, nulls: tuple[Null, Null] | None, limits: Array
    ) -> Information | None:
        """Find an arm's changes, none without nulls to judge them by, and days that fit nothing, the worst first.

        Returns:
            What its data say about it before the changes; None without any day that counts.
        """
        arm = self.arms[name]
        if not arm.used.any():
            return None
        used, arm.excluded = self._right[name][0], list(self._right[name][1])
        if (used != arm.used).any():  # days that did not fit in the last pass
            self._use(arm, used)
        search = partial(self._searched, name, first, usual, nulls)
        arm.changes, arm.unfit, searcher = [], None, search()
        times, found = self._misfits(searcher), []
        unfit = self._fits_no_model(arm, search, times, limits)
        while not unfit and (odd := odd_days(searcher, self.type, self._typical, limits)).any():
            bad, days = worst_days(odd), searcher.history.days
            found += [odd_day(days[k], odd[k] * limits, self._joints) for k in np.flatnonzero(bad)]
            unfit = 2 * len(found) >= used.sum()
            if not unfit:
                self._leave_out(arm, bad)
                searcher = search()
        if unfit:
            worst = np.unravel_index(np.argmax(times / limits), times.shape)
            arm.unfit = int(worst[1]), float(times[worst])
            if (used != arm.used).any():  # none is better than the others
                self._use(arm, used)
                searcher = search()
        else:
            arm.excluded += found
        days, arm.scale, arm.curve = searcher.history.days, searcher.scale, searcher.curve
        gain = self.type.weight_gain(self._payload[:, 0])
        payloads = {k: one.weighed(*gain) for k, one in searcher.payloads().items()}
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

    def _misfits(self, searcher: ArmChanges) -> Array:
        return misfits(searcher, self.type, self._typical)

    def _fits_no_model(self, arm: ArmSurvey, search: Callable[[], ArmChanges], times: Array, limits: Array) -> bool:
        """Whether half of the days would have to go before the others fit.

        Of two days that disagree neither is the odd one. Changes explain none of them yet: an arm that is another one
        every day has changes, too.
        """
        whole, odd = arm.used, times / limits * (times > limits)
        if 2 * odd.any(axis=1).sum() < len(odd):
            return False
        while odd.any() and 2 * arm.used.sum() > whole.sum():
            self._leave_out(arm, worst_days(odd))
            if arm.used.any():
                left = self._misfits(search())
                odd = left / limits * (left > limits)
        found = bool(2 * arm.used.sum() <= whole.sum())
        self._use(arm, whole)
        return found

    def _use(self, arm: ArmSurvey, used: Mask) -> None:
        """From now on these days count; noise and the arm's friction curve are learnt from them, too."""
        arm.used, self._quiet[arm.name] = used, used.copy()
        self._forget(arm.name)

    def _leave_out(self, arm: ArmSurvey, bad: Mask) -> None:
        """Days, of those that count, that no longer do."""
        used = arm.used.copy()
        used[np.flatnonzero(used)[bad]] = False
        self._use(arm, used)

    def _series(self, name: str, estimate: FleetEstimate, usual: Usual) -> None:
        arm = self.arms[name]
        if not arm.used.any():
            return
        own = estimate.arms[name]
        history = replace(self.used(name), found=arm.curve).known_curve
        arm.temperature = np.array([day.temperature.mean() for day in history.days])
        first = min((one.since for one in arm.changes), default="")
        watched = self._watched_on(arm)
        scale = scales(watched, own.values, estimate.mean)
        found = deviations(history, watched, own.values, own.covariance, scale, first)
        arm.series = Deviations(found.values - usual.expected(found.warmth), found.variance, found.warmth, found.scale)

    def _watched_on(self, arm: ArmSurvey) -> tuple[Watched, ...]:
        """What is watched; the mass in the hand with the centre of what the arm was found to carry."""
        loads = [one.carried for one in arm.changes if one.carried is not None]
        most = max(loads, key=lambda one: abs(one.mass), default=None)
        if most is None or not abs(most.mass) > most.sigma:
            return self.watched
        direction = self._payload[:, 0] + self._payload[:, 1:4] @ (most.moment / most.mass)
        return tuple(replace(one, direction=direction) if one.name == PAYLOAD else one for one in self.watched)

    def _sizes(self, name: str, estimate: FleetEstimate) -> None:
        """Tell changes as a share of the arm's value before them, which is known only now, or in their unit.

        Where friction curves hide how large the value is, the change is known far better than its share.
        """
        arm = self.arms[name]
        if arm.series is None:
            return
        own, least, changes = estimate.arms[name], self._least(name), []
        for one in arm.changes:
            watched = self.watched[one.watched]
            scale, before = float(arm.scale[one.watched]), float(arm.series.scale[one.watched])
            if abs(one.size) * one.days * scale < least[one.watched] * before:
                continue
            error = float(np.abs(watched.direction) @ own.sigma) / before if watched.relative else 0.0
            in_unit = error > UNKNOWN_SHARE
            ratio = scale if in_unit else scale / before
            size, sigma = ratio * one.size, ratio * one.sigma
            sigma = sigma if in_unit else float(np.hypot(sigma, error * size))
            changes.append(replace(one, size=size, sigma=sigma, in_unit=in_unit))
        arm.changes = changes

    def _reversals(self) -> None:
        """Find joints whose residuals at reversals have grown."""
        found = {name: reversal_search(self.used(name).days) for name, arm in self.arms.items() if arm.used.sum() > 1}
        scores = [one.scan().score for one in found.values()]
        if not scores:
            return
        null = null_of(scores, [len(one.history.days) - 1 for one in found.values()])
        for name, one in found.items():
            days = one.history.days
            chance = 2.0 * chance_of(self.rate, len(days), self._tests(len(one.shapes.names)))
            one.search(limit(chance), null.spread(chance, 0.0), np.full(len(one.watched), LEAST_GROWTH))
            for c in (change for change in one.changes if change.size > 0.0):
                growth = float(np.expm1(c.size))
                told = replace(c, size=growth, sigma=(1.0 + growth) * c.sigma, since=days[c.onset].date)
                self.arms[name].reversals.append(told)

    def day_to_day(self, name: str, survey: Survey) -> Array:
        """Covariance of an arm's parameters from day to day, (parameters, parameters)."""
        scale = scales(self.watched, survey.estimate.arms[name].values, survey.estimate.mean)
        D = directions(self.watched) * (scale * survey.usual.day_to_day)
        return np.asarray(D @ D.T)
