"""The regression problem: torque of one or several data sets as a linear function of base parameters and terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array, Indices
from armid.dynamics.factor import CompactFactor, compact_factor
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError, DataShapeError
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.dataset import PIECE, Dataset
from armid.signals.filters import filtered, row_blocks
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque
from armid.torque.model import Kept, TorqueModel

SLOW = (0.05, 0.03)  # share of a joint's own speed (its 99th percentile), and speed in any case [rad/s or m/s]
SLOW_MARGIN_S = 0.01  # around slow samples: reversals shake the arm for a moment
SLOW_FILTERED = (0.03, 0.02)  # the same where torque was filtered, which blends standstill with what is around it
SLOW_WEIGHT = 0.5  # share of a filtered row that slow samples may make up
BLOCK_SAMPLES = 8192
KEPT = 2 * BLOCK_SAMPLES  # samples of all data sets up to which parts and their columns are kept for the next pass
ENOUGH = 50_000  # samples of a long log that tell its usual speed


class EstimationError(ArmidError):
    """Parameters cannot be estimated from what was given."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of the regression, filtered as the data set's torque was.

    Attributes:
        torque_model: predicts the torque.
        part: of the data set, that the rows are.
        torque: (rows, joints), what is known subtracted.
        use: (rows, joints), False where a row does not count.
        dataset: index of the data set.
        which: slice into the data set's rows.
        kept: columns of the part that no parameter changes.
    """

    torque_model: TorqueModel
    part: Dataset
    torque: Array
    use: NDArray[np.bool_]
    dataset: int
    which: slice
    kept: Kept

    @property
    def motion(self) -> Motion:
        """The samples that the rows are made of."""
        return self.part.motion

    @property
    def velocity(self) -> Array:
        """Of the joints, (rows, joints)."""
        return np.asarray(self.part.qd[self.part.rows])

    @cached_property
    def regressor(self) -> Array:
        """(rows, joints, columns)."""
        with one_blas_thread():
            return self.torque_model.regressor(self.motion, self.part.at_rows, self.kept)

    def errors(self, values: Array) -> Array:
        """Torque less its prediction by parameter `values`, (rows, joints), of all rows; needs no regressor."""
        return np.asarray(self.torque - self.part.at_rows(self.linear_torque(values)))

    def linear_torque(self, values: Array) -> Array:
        """Torque of the samples (samples, joints) for parameter `values`, known torque not included."""
        return self.torque_model.linear_torque(self.motion, values, self.kept)

    def residuals(self, values: Array) -> Array:
        """The errors of the rows that count, 0 elsewhere."""
        return np.where(self.use, self.errors(values), 0.0)


Weigh = Callable[[Rows], Array]  # weights (rows, joints) of the squared residuals of a block


class Problem:
    """Regression of one or several data sets.

    Rows of a joint that hardly moves are left out: there, friction takes any value up to the breakaway torque, which no
    function of velocity describes. A joint counts as slow below 5 % of its own speed (99th percentile of each data
    set) and below 0.03 rad/s in any case, and 10 ms around that. Where torque was filtered it is 3 % and 0.02 rad/s,
    and a row is left out if slow samples make up half of it.

    Attributes:
        robot: the robot, with what is known.
        data: the data sets.
        torque_model: columns and known torque.
        delay_s: how much torque lags motion, per joint [s].
        slow_share, slow_floor: the limits of slowness; None for those above.
    """

    def __init__(
        self,
        robot: Robot,
        data: Dataset | Sequence[Dataset],
        *,
        known: Mapping[str, float] | None = None,
        terms: Sequence[FrictionTerm] = (),
        delay_s: Array | None = None,
        load_values: Mapping[str, float] | None = None,
        known_torque: KnownTorque | None = None,
        slow_share: float | None = None,
        slow_floor: float | None = None,
    ) -> None:
        """Check that data and robot belong together.

        Args:
            robot: the robot.
            data: one data set or several.
            known: values of parameters that are not to be estimated, beside the description's own.
            terms: friction terms beyond the model's own.
            delay_s: how much torque lags motion, per joint.
            load_values: values of the base parameters that make the load torque; needed for load terms.
            known_torque: torque that is known beforehand.
            slow_share: joints slower than this share of their own speed are left out; None for the rule above.
            slow_floor: joints slower than this [rad/s] are left out; None for the rule above.
        """
        self.data = (data,) if isinstance(data, Dataset) else tuple(data)
        if not self.data:
            raise EstimationError("there is no data set to estimate from")
        self.robot = _with_known(robot, known)
        self.torque_model = TorqueModel(self.robot, terms=terms, load_values=load_values, known_torque=known_torque)
        self.delay_s = np.zeros(robot.n_joints) if delay_s is None else np.asarray(delay_s, dtype=float)
        self.slow_share, self.slow_floor = slow_share, slow_floor
        self._parts: dict[int, list[tuple[slice, Dataset, Kept]]] = {}  # shared by problems that differ in terms alone
        for dataset in self.data:
            _check(self.robot, dataset)

    def with_terms(
        self,
        terms: Sequence[FrictionTerm],
        *,
        load_values: Mapping[str, float] | None = None,
        delay_s: Array | None = None,
    ) -> Problem:
        """The same data with other friction terms, load and delays (those of this problem where not given)."""
        old = self.torque_model
        result = copy(self)
        result.torque_model = TorqueModel(
            self.robot,
            terms=terms,
            load_values=old.load_values if load_values is None else load_values,
            known_torque=old.known,
            model=old.model,
        )
        result.delay_s = self.delay_s if delay_s is None else np.asarray(delay_s, dtype=float)
        return result

    @property
    def names(self) -> tuple[str, ...]:
        """Columns: base parameters, then terms."""
        return self.torque_model.names

    def used(self, dataset: Dataset, which: slice = slice(None)) -> NDArray[np.bool_]:
        """Which rows count, (rows, joints); of some rows only, if they are named."""
        for mine, use in zip(self.data, self._used, strict=True):
            if mine is dataset:
                return use[which]
        return self._used_of(dataset)[which]

    @cached_property
    def _used(self) -> tuple[NDArray[np.bool_], ...]:
        """Those of the problem's own data sets, found once."""
        return tuple(self._used_of(dataset) for dataset in self.data)

    def _used_of(self, dataset: Dataset) -> NDArray[np.bool_]:
        """Found piece by piece: a long log does not fit into memory."""
        limit = self.slow_limit(dataset)
        use = np.zeros((len(dataset), len(limit)), dtype=bool)
        for which, _ in row_blocks(dataset.rows, dataset.kernel, PIECE):
            if dataset.kernel is None:
                use[which] = ~_near_slow(dataset, dataset.rows[which], limit)
            else:
                part = dataset.part(which)
                use[which] = part.at_rows((np.abs(part.qd) < limit).astype(float)) < SLOW_WEIGHT
            if dataset.use is not None:
                use[which] &= np.asarray(dataset.use[which], dtype=bool)
        return use

    def slow_limit(self, dataset: Dataset) -> Array:
        """Speeds below which the joints of a data set count as slow [rad/s or m/s]."""
        for mine, limit in zip(self.data, self._slow_limits, strict=True):
            if mine is dataset:
                return limit
        return self._limit_of(dataset)

    @cached_property
    def _slow_limits(self) -> tuple[Array, ...]:
        """Those of the problem's own data sets, found once."""
        return tuple(self._limit_of(dataset) for dataset in self.data)

    def _limit_of(self, dataset: Dataset) -> Array:
        share, floor = self._slowness(dataset.kernel is not None)
        if share == 0.0:
            return np.full(self.robot.n_joints, floor)
        usual = [high_quantile(speed, 0.99) for speed in np.abs(self._some(dataset)).T.copy()]
        return np.maximum(share * np.array(usual), floor)

    def _some(self, dataset: Dataset) -> Array:
        """Velocities of some samples spread over a data set, enough to judge speeds."""
        return dataset.qd[:: max(1, len(dataset.qd) // ENOUGH)]

    def _slowness(self, filters: bool) -> tuple[float, float]:
        """Share of a joint's own speed and speed [rad/s] below which it is slow, where torque was filtered or not."""
        usual, own = SLOW_FILTERED if filters else SLOW, (self.slow_share, self.slow_floor)
        share, floor = (there if mine is None else mine for there, mine in zip(usual, own, strict=True))
        return share, floor

    def left_out(self, counts: Sequence[int]) -> Note | None:
        """Which rows do not count and why; None if all do."""
        share = 1.0 - sum(counts) / max(sum(len(dataset) for dataset in self.data) * len(counts), 1)
        if share <= 0.0:
            return None
        rules = []
        for filters in sorted({dataset.kernel is not None for dataset in self.data}):
            slow, floor = self._slowness(filters)
            rules.append({"share": slow, "floor": floor, "filtered": filters, "margin_ms": 1e3 * SLOW_MARGIN_S})
        marked = any(dataset.use is not None for dataset in self.data)
        return note("estimation.rows_left_out", share=share, rules=rules, marked=marked)

    def blocks(self, most_rows: int | None = None) -> Iterator[Rows]:
        """All rows in pieces of constant size, or pieces spread over the data with about `most_rows` in all."""
        skip = 1 if most_rows is None else max(1, sum(len(d) for d in self.data) // most_rows)
        for index, dataset in enumerate(self.data):
            torque = self.torque(dataset)
            for which, part, kept in self._parts_of(index, skip):
                yield Rows(
                    torque_model=self.torque_model,
                    part=part,
                    torque=torque[which],
                    use=self.used(dataset, which),
                    dataset=index,
                    which=which,
                    kept=kept,
                )

    def _parts_of(self, index: int, skip: int) -> Iterable[tuple[slice, Dataset, Kept]]:
        """One of `skip` parts of a data set; those of short ones are kept."""
        if index not in self._parts:
            dataset = self.data[index]
            places = [which for which, _ in row_blocks(dataset.rows, dataset.kernel, BLOCK_SAMPLES)]
            if sum(len(one.time) for one in self.data) > KEPT:
                return ((which, dataset.part(which), {}) for which in places[::skip])
            self._parts[index] = [(which, dataset.part(which), {}) for which in places]
        return self._parts[index][::skip]

    def torque(self, dataset: Dataset) -> Array:
        """Torque of a data set's rows less what is known, moved back by the delay, (rows, joints)."""
        torque = _earlier(dataset, self.delay_s) if np.any(self.delay_s) else dataset.torque
        known = self.torque_model.known_torque(dataset.motion)
        return torque if known is None else torque - dataset.at_rows(known)

    def factor(self, *, triangular: bool = False, weigh: Weigh | None = None, complete: bool = True) -> CompactFactor:
        """Compact factor of all rows that count, each squared residual multiplied by `weigh` of its block.

        Raises:
            EstimationError: a joint has no row, or there are fewer rows than parameters; not asked if the data are not
                `complete` but one of many parts.
        """
        total: CompactFactor | None = None
        plain = (
            weigh is None
            and type(self.torque_model) is TorqueModel
            and not self.torque_model.terms
            and all(d.kernel is None and len(d.rows) == len(d.q) for d in self.data)
        )
        for part in self._plain_factors(triangular) if plain else self._block_factors(triangular, weigh):
            total = part if total is None else total + part
        if total is None:
            raise EstimationError("the data sets have no rows")
        if complete:
            self._check_counts(total)
        return total

    def _plain_factors(self, triangular: bool) -> Iterator[CompactFactor]:
        model = self.torque_model.model
        for dataset in self.data:
            torque, use = self.torque(dataset), self.used(dataset)
            yield compact_factor(model, *dataset.motion, torque, self.names, use=use, triangular=triangular)

    def _block_factors(self, triangular: bool, weigh: Weigh | None) -> Iterator[CompactFactor]:
        seen = self.torque_model.joint_columns
        for block in self.blocks():
            root = None if weigh is None else np.sqrt(weigh(block))
            matrices, counts = [], []
            for joint, columns in enumerate(seen):
                use = block.use[:, joint]
                stacked = np.column_stack([block.regressor[use, joint][:, columns], block.torque[use, joint]])
                if root is not None:
                    stacked *= root[use, joint, None]
                counts.append(len(stacked))
                if triangular:
                    padded = np.vstack([stacked, np.zeros((stacked.shape[1], stacked.shape[1]))])
                    matrices.append(np.asarray(np.linalg.qr(padded, mode="r")))
                else:
                    matrices.append(stacked.T @ stacked)
            yield CompactFactor(self.names, seen, tuple(matrices), len(block.torque), triangular, tuple(counts))

    @cached_property
    def silent(self) -> NDArray[np.bool_]:
        """Joints whose effort no data set has: passive ones, and those that were not measured."""
        silent = np.ones(self.robot.n_joints, dtype=bool)
        for dataset in self.data:
            if dataset.use is None:
                return np.zeros_like(silent)
            silent &= ~dataset.use.any(axis=0)
            if not silent.any():
                break
            silent &= np.abs(self._some(dataset)).max(axis=0, initial=0.0) > self.slow_limit(dataset)
        return silent

    def _check_counts(self, factor: CompactFactor) -> None:
        still = np.flatnonzero((np.array(factor.counts) == 0) & ~self.silent)
        if len(still):
            joint = self.robot.joint_names[still[0]]
            raise EstimationError(
                f"joint {joint} never moves faster than the limit below which rows are left out; "
                "give data in which it moves, or lower slow_floor"
            )
        if sum(factor.counts) <= len(self.names):
            raise EstimationError(
                f"there are {sum(factor.counts)} rows for {len(self.names)} parameters; give more data"
            )


def high_quantile(values: Array, share: float) -> float:
    """`np.quantile` for a share near one, many times as fast: sought among the values above those of a rough one."""
    some = values[::20]
    rough = int((2.0 * share - 1.0) * (len(some) - 1))
    high, place = values[values >= np.partition(some, rough)[rough]], share * (len(values) - 1)
    if (above := place - (len(values) - len(high))) >= 0.0:
        values, place = high, above
    low = int(place)
    ends = np.partition(values, [low, min(low + 1, len(values) - 1)])[low : low + 2]
    return float(ends[0] + (place - low) * (ends[-1] - ends[0]))


def _near_slow(dataset: Dataset, rows: Indices, limit: Array) -> NDArray[np.bool_]:
    """Which of some rows lie within `SLOW_MARGIN_S` of a sample below the limit, per joint."""
    reach = round(SLOW_MARGIN_S * dataset.rate_hz)
    first, last = max(int(rows[0]) - reach, 0), min(int(rows[-1]) + reach + 1, len(dataset.qd))
    near = np.abs(dataset.qd[first:last]) < limit
    done = 0 if near.any() else reach
    while done < reach:  # each turn lets it reach further, as far as leaves no gap
        step = min(2 * done + 1, reach - done)
        wider = near.copy()
        wider[step:] |= near[:-step]
        wider[:-step] |= near[step:]
        near, done = wider, done + step
    whole = len(rows) == int(rows[-1]) - int(rows[0]) + 1
    return near[rows[0] - first : rows[-1] - first + 1] if whole else near[rows - first]


def _with_known(robot: Robot, known: Mapping[str, float] | None) -> Robot:
    if not known:
        return robot
    for name, value in known.items():
        if name in robot.known and not np.isclose(robot.known[name], value):
            raise EstimationError(
                f"{name} is fixed to {value:g}, but the description of {robot.name} says {robot.known[name]:g}; "
                "keep one of them"
            )
        if name in robot.zero and value != 0.0:
            raise EstimationError(
                f"{name} is fixed to {value:g}, but the simplification in use sets it to zero; use --simplify none"
            )
        if not np.isfinite(value):
            raise EstimationError(f"{name} is fixed to {value}; give a finite number")
    return replace(robot, known={**robot.known, **known})


def _earlier(dataset: Dataset, delay_s: Array) -> Array:
    """Torque as it was `delay_s` before it was reported: tau(t + delay), filtered again."""
    measured = dataset.torque if dataset.measured is None and dataset.kernel is None else dataset.measured
    if measured is None or len(measured) != len(dataset.time):
        raise EstimationError("a torque delay needs a data set that keeps its unfiltered torque")
    more = int(np.ceil(dataset.rate_hz * float(np.abs(delay_s).max()))) + 1
    result = np.empty((len(dataset), len(delay_s)))
    for which, span in row_blocks(dataset.rows, dataset.kernel):
        wide = slice(max(span.start - more, 0), span.stop + more)
        t, values, here = dataset.time[wide], measured[wide], dataset.time[span]
        shifted = np.column_stack([np.interp(here + d, t, column) for d, column in zip(delay_s, values.T, strict=True)])
        result[which] = filtered(shifted, dataset.kernel, dataset.rows[which] - span.start)
    return result


def _check(robot: Robot, dataset: Dataset) -> None:
    there = ", ".join(dataset.joints)
    if dataset.q.shape[1] != robot.n_joints:
        raise DataShapeError(f"the data have the joints {there}; {robot.name} has {robot.n_joints}")
    if tuple(dataset.joints) != robot.joint_names:
        raise EstimationError(f"the data are of the joints {there}; {robot.name} has {', '.join(robot.joint_names)}")
    if dataset.gravity is not None and not np.allclose(dataset.gravity, robot.gravity, atol=0.02):
        there, here = (" ".join(f"{x:.4g}" for x in vector) for vector in (dataset.gravity, robot.gravity))
        raise EstimationError(
            f"the data were recorded with gravity {there}, the description says {here}; "
            "give the robot the gravity of the experiment (--gravity)"
        )
