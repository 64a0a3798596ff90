"""From one arm's logs of one day to its arm-day, in constant memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import set_threads
from armid.errors import ArmidError
from armid.estimation.linear import residual_variance, solve
from armid.estimation.problem import Problem
from armid.fleet.day import ArmDay
from armid.fleet.description import Fleet
from armid.fleet.partitions import Partition, file_system, local_copy
from armid.logs.log import Log, concatenate
from armid.logs.read import open_log
from armid.logs.stream import LogStream
from armid.robot.inertia import Array
from armid.signals.dataset import Dataset
from armid.signals.doctor import examine
from armid.signals.filtering import ROWS_PER_CUTOFF, LowPass
from armid.signals.kernels import low_pass_kernel
from armid.signals.pipeline import Pipeline, process
from armid.signals.problems import SignalError

CHUNK = 16_384  # samples reduced at a time
DOCTOR_ROWS = 60_000  # samples the log doctor looks at, per file
LOOKED_AT = 4  # chunks per day whose residuals are looked at
JUMP_S = 1.0  # a step of time longer than this, or backwards, begins a new stretch
REVERSAL_S = 0.2  # how long after a change of direction residuals count as those of a reversal
LAGS = 60
#: Findings after which a recording means something else than it says, so that it is not used.
FATAL = (
    *("degrees", "dead-channel", "mostly-zero", "swapped-joints", "sign-flipped"),
    *("position-missing", "effort-missing", "other-robot"),
)


def reduce_partition(fleet: Fleet, partition: Partition, key: str = "") -> ArmDay:
    """Check, process and reduce the logs of one arm on one day.

    A file that cannot be used is named in `ArmDay.problems` with the reason; the others count.
    """
    set_threads(1)  # processes share the machine's cores
    day = _Day(fleet)
    system, _ = file_system(fleet)
    for file in partition.files:
        name = Path(file.path).name
        try:
            with local_copy(system, file) as path:
                day.hashes[name] = _sha256(path)
                day.add(path, name)
        except (ArmidError, OSError) as error:
            day.problems.append({"file": name, "reason": str(error)})
    return day.finished(partition, key)


@dataclass
class _Day:
    """What a day adds up to while its files are read."""

    fleet: Fleet
    factor: CompactFactor | None = None
    looked_at: list[Problem] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    samples: int = 0
    seconds: float = 0.0
    warmth: Array | None = None
    felt: Array | None = None

    def add(self, path: Path, name: str) -> None:
        """Add one file; a file that turns out bad on the way leaves nothing behind."""
        fleet = self.fleet
        stream = open_log(path, fleet.recipe, effort=fleet.effort)
        _check_type(stream, fleet)
        self._examine(stream, name)
        part = _Day(fleet)
        for stretch in _stretches(stream, fleet, part):
            part._reduce(stretch)
        if part.factor is None:
            raise ArmidError("too short: no stretch is longer than the filter needs")
        self.factor = part.factor if self.factor is None else self.factor + part.factor
        self.looked_at = (self.looked_at + part.looked_at)[:LOOKED_AT]
        self.samples, self.seconds = self.samples + part.samples, self.seconds + part.seconds
        if part.warmth is not None and part.felt is not None:
            self.warmth = part.warmth if self.warmth is None else self.warmth + part.warmth
            self.felt = part.felt if self.felt is None else self.felt + part.felt

    def _examine(self, stream: LogStream, name: str) -> None:
        first = next(iter(stream.blocks(DOCTOR_ROWS)))
        report = examine(first, self.fleet.robot)
        for finding in report.at_least("warning"):
            data = finding.as_data()
            kept = {key: data.get(key) for key in ("code", "severity", "joint", "what")}
            self.findings.append({**kept, "file": name})
        fatal = [finding for finding in report.findings if finding.code in FATAL]
        if fatal:
            raise ArmidError(f"{fatal[0].code}: {fatal[0].what}")

    def _reduce(self, log: Log) -> None:
        fleet, fit = self.fleet, self.fleet.fit
        data = _dataset(log, fleet)
        problem = Problem(
            fleet.robot,
            data,
            terms=() if fit is None else fit.terms,
            delay_s=None if fit is None else fit.delay_s,
            load_values=None if fit is None else fit.load_values,
            slow_share=0.0,
            slow_floor=fleet.slow_floor,
        )
        factor = problem.factor(triangular=True, complete=False)
        self.factor = factor if self.factor is None else self.factor + factor
        if len(self.looked_at) < LOOKED_AT:
            self.looked_at.append(problem)

    def finished(self, partition: Partition, key: str) -> ArmDay:
        """The arm-day."""
        n = self.fleet.robot.n_joints
        unknown = np.full(n, np.nan)
        rms, inflation, reversal = unknown, np.ones(n), unknown
        if self.factor is not None:
            rms, inflation, reversal = _residuals(self.factor, self.looked_at)
        temperature = unknown
        if self.warmth is not None and self.felt is not None:
            temperature = np.where(self.felt > 0, self.warmth / np.maximum(self.felt, 1), np.nan)
        return ArmDay(
            robot=partition.robot,
            date=partition.date,
            factor=self.factor,
            rms=rms,
            inflation=inflation,
            temperature=temperature,
            reversal=reversal,
            samples=self.samples,
            seconds=self.seconds,
            findings=tuple(self.findings),
            problems=tuple(self.problems),
            key=key,
            about={"files_sha256": self.hashes},
        )


def _check_type(stream: LogStream, fleet: Fleet) -> None:
    """Refuse a log of another type of arm."""
    one, other = stream.info.robot.lower(), fleet.robot.name.lower()
    if one and one not in other and other not in one:
        raise ArmidError(f"was recorded on {stream.info.robot!r}, not on {fleet.robot.name!r}")
    missing = [name for name in fleet.robot.joint_names if name not in stream.info.joints]
    if missing:
        raise ArmidError(f"lacks the joints {', '.join(missing)}, so it is of another type of arm")


def _stretches(stream: LogStream, fleet: Fleet, day: _Day) -> Iterator[Log]:
    """Overlapping pieces of constant length, cut where time jumps; counts and temperatures are added on the way."""
    plan: _Pieces | None = None
    kept: Log | None = None
    for block in stream.blocks(CHUNK):
        _count(block, fleet, day)
        for part in _without_jumps(block, kept):
            log, fresh = part
            if fresh and kept is not None and plan is not None:
                yield from plan.rest(kept)
                kept = None
            kept = log if kept is None or fresh else concatenate([kept, log])
            plan = plan or _Pieces.of(kept, fleet)
            while len(kept) >= plan.length:
                yield kept.rows(slice(0, plan.length))
                kept = kept.rows(slice(plan.core, None))
    if kept is not None and plan is not None:
        yield from plan.rest(kept)


@dataclass(frozen=True)
class _Pieces:
    """Lengths in samples: of a piece, of its part that is new, and of what the filters need at each end."""

    core: int
    margin: int
    half: int
    step: int

    @property
    def length(self) -> int:
        return self.core - self.step + 2 * (self.half + self.margin) + 1

    @classmethod
    def of(cls, log: Log, fleet: Fleet) -> _Pieces:
        strategy = fleet.pipeline.strategy
        assert isinstance(strategy, LowPass)
        low_pass = settled(strategy, log.rate_hz)
        kernel = low_pass_kernel(log.rate_hz, float(low_pass.cutoff_hz), low_pass.order, tail=low_pass.tail)
        step = int(low_pass.decimate)
        wide = low_pass_kernel(log.rate_hz, float(low_pass.motion_cutoff_hz or 0.0), low_pass.order, tail=1e-12)
        margin = -(-(len(wide) // 2 + 8) // step) * step
        core = max(1, CHUNK // step) * step
        return cls(core, margin, len(kernel) // 2, step)

    def rest(self, log: Log) -> Iterator[Log]:
        """The last piece of a stretch, shortened so that its rows go on where those before it ended."""
        rows = (len(log) - 1 - 2 * (self.half + self.margin)) // self.step + 1
        if rows >= 1:
            yield log.rows(slice(0, replace(self, core=rows * self.step).length))


def settled(strategy: LowPass, rate_hz: float) -> LowPass:
    """The low-pass with everything decided that it would decide from a log."""
    cutoff = float(strategy.cutoff_hz)
    if strategy.decimate != "auto" and not isinstance(strategy.decimate, int):
        raise SignalError("LowPass", f"decimate is {strategy.decimate!r}; use a whole number from 1")
    step = max(1, int(rate_hz / (ROWS_PER_CUTOFF * cutoff))) if strategy.decimate == "auto" else int(strategy.decimate)
    wide = min(2.0 * cutoff, 0.45 * rate_hz) if strategy.motion_cutoff_hz is None else strategy.motion_cutoff_hz
    return replace(strategy, decimate=step, motion_cutoff_hz=float(wide))


def _dataset(log: Log, fleet: Fleet) -> Dataset:
    """A piece processed; rows that feel its ends are left to its neighbours."""
    pieces = _Pieces.of(log, fleet)
    strategy = fleet.pipeline.strategy
    assert isinstance(strategy, LowPass)
    steps = Pipeline((*fleet.pipeline.steps[:-1], settled(strategy, log.rate_hz)))
    data = process(log, steps, robot=fleet.robot)
    inner = (data.rows >= pieces.half + pieces.margin) & (data.rows < len(data.q) - pieces.half - pieces.margin)
    use = None if data.use is None else data.use[inner]
    return replace(data, rows=data.rows[inner], torque=data.torque[inner], use=use)


def _without_jumps(block: Log, before: Log | None) -> Iterator[tuple[Log, bool]]:
    """Parts of a block in which time goes on, and whether each begins a new stretch."""
    last = block.time[0] if before is None or not len(before) else before.time[-1]
    steps = np.diff(np.concatenate([[last], block.time]))
    cuts = np.flatnonzero((steps > JUMP_S) | (steps < -JUMP_S))
    edges = [0, *(int(cut) for cut in cuts if cut > 0), len(block)]
    for index, (begin, end) in enumerate(pairwise(edges)):
        yield block.rows(slice(begin, end)), index > 0 or 0 in cuts


def _count(block: Log, fleet: Fleet, day: _Day) -> None:
    day.samples += len(block)
    day.seconds += len(block) / block.rate_hz if len(block) > 1 or block.info.rate_hz else 0.0
    if "temperature" in block:
        values = block.for_joints(fleet.robot.joint_names)["temperature"]
        good = np.isfinite(values)
        total, count = np.where(good, values, 0.0).sum(axis=0), good.sum(axis=0)
        day.warmth = total if day.warmth is None else day.warmth + total
        day.felt = count if day.felt is None else day.felt + count


def _residuals(factor: CompactFactor, looked_at: list[Problem]) -> tuple[Array, Array, Array]:
    """Rms, inflation of variances by correlation in time, and reversals against the rest, per joint."""
    weights = 1.0 / residual_variance(factor, solve(factor, np.ones(len(factor.matrices)), rank_tolerance=1e-9).values)
    values = solve(factor, weights, rank_tolerance=1e-9).values
    rms = np.sqrt(residual_variance(factor, values))
    n = len(rms)
    products, turning, steady = np.zeros((LAGS + 1, n)), np.zeros((2, n)), np.zeros((2, n))
    for problem in looked_at:
        for block in problem.blocks():
            error, plain = block.residuals(values), block.errors(values)
            for lag in range(min(LAGS + 1, len(error))):
                products[lag] += np.sum(error[lag:] * error[: len(error) - lag], axis=0)
            near = _after_reversals(block.velocity, REVERSAL_S, problem.data[0], block.which)
            for where, total in ((near, turning), (block.use & ~near, steady)):
                total += np.array([np.sum(np.where(where, plain**2, 0.0), axis=0), where.sum(axis=0)])
    shares = products / np.where(products[0] > 0.0, products[0], 1.0)
    inflation = np.maximum(1.0, 1.0 + 2.0 * np.array([_summed(shares[1:, j]) for j in range(n)]))
    with np.errstate(divide="ignore", invalid="ignore"):
        reversal = np.sqrt((turning[0] / turning[1]) / (steady[0] / steady[1]))
    return rms, inflation, np.where((turning[1] >= 20) & (steady[1] >= 20), reversal, np.nan)


def _summed(correlation: Array) -> float:
    """Sum of an autocorrelation until it is lost in its noise."""
    small = np.flatnonzero(correlation < 0.05)
    return float(correlation[: int(small[0]) if len(small) else len(correlation)].sum())


def _after_reversals(velocity: Array, seconds: float, data: Dataset, which: slice) -> NDArray[np.bool_]:
    """Rows that follow a change of direction within some time, (rows, joints)."""
    rows = data.rows[which]
    if len(rows) < 2:
        return np.zeros(velocity.shape, dtype=bool)
    per_row = float(np.median(np.diff(rows))) / data.rate_hz
    reach = max(1, round(seconds / per_row))
    change = np.zeros(velocity.shape, dtype=bool)
    change[1:] = np.signbit(velocity[1:]) != np.signbit(velocity[:-1])
    near = change.copy()
    for shift in range(1, reach):
        near[shift:] |= change[:-shift]
    return near


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
