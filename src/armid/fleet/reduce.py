"""From one arm's logs of one day to its arm-day, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from armid.arrays import Array, Mask
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import set_threads
from armid.errors import ArmidError
from armid.estimation.covariance import products_of
from armid.estimation.linear import residual_variance, solve
from armid.estimation.problem import Problem
from armid.files import file_hash, plain
from armid.fleet.day import ALL, ArmDay, DayFinding, DayProblem
from armid.fleet.description import Fleet
from armid.fleet.partitions import Partition, file_system, local_copy
from armid.fleet.recording import Reduction, Sums
from armid.fleet.type_model import RANK, TypeModel
from armid.logs.files import open_log
from armid.logs.log import Log, LogInfo, LogStream
from armid.signals.dataset import Dataset
from armid.signals.doctor import Examination, examine
from armid.signals.pipeline import check_robot

DOCTOR_ROWS = 60_000  # samples the log doctor looks at, per file
REVERSAL_S = 0.2  # how long after a change of direction residuals count as those of a reversal
LAGS = 60
#: Findings of the log doctor that make a day suspect until the fleet has judged it.
SUSPECT = ("sign-flipped", "swapped-joints")
EPOCH = 3e8  # times beyond this [s] are taken as seconds since 1970
#: Findings after which a recording means something else than it says, so that it is not used. Signs and exchanged
#: joints are judged later, in the light of the whole fleet, which is far surer than one log alone.
FATAL = (
    *("degrees", "time-unit", "rate-differs", "dead-channel", "mostly-zero"),
    *("position-missing", "effort-missing", "other-robot"),
)


def reduce_partition(fleet: Fleet, partition: Partition, key: str = "") -> ArmDay:
    """Check, process and reduce the logs of one arm on one day.

    A file that cannot be used is named in `ArmDay.problems` with the reason; the others count.
    """
    set_threads(1)  # processes share the machine's cores
    day = _Day(fleet, problems=list(partition.problems))
    system, _ = file_system(fleet)
    for file in partition.files:
        path, name = Path(file.path), Path(file.path).name
        try:
            with local_copy(system, file) as path:
                if day.is_new(name, file_hash(path)):
                    day.add(path, name, partition.date)
        except (ArmidError, OSError, np.linalg.LinAlgError) as error:
            day.problems.append(DayProblem(name, _reason(error, path)))
    try:
        return day.finished(partition, key)
    except np.linalg.LinAlgError as error:
        names = [Path(file.path).name for file in partition.files]
        day = _Day(fleet, findings=day.findings, problems=day.problems, hashes=day.hashes)
        day.problems.append(DayProblem(names[0] if len(names) == 1 else ALL, _reason(error)))
        return day.finished(partition, key)


@dataclass
class _Day:
    """What a day adds up to while its files are read."""

    fleet: Fleet
    recording: Reduction | None = None
    sums: Sums = field(default_factory=Sums)
    findings: list[DayFinding] = field(default_factory=list)
    problems: list[DayProblem] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    first: tuple[str, Log] | None = None  # file and first rows of the recording
    read: tuple[str, ...] = ()

    def is_new(self, name: str, digest: str) -> bool:
        """Note a file's hash; False, and a finding, for a copy of a file that was read."""
        same = next((other for other, known in self.hashes.items() if known == digest), None)
        if same is None:
            self.hashes[name] = digest
            return True
        self.findings.append(DayFinding("copied-file", "error", name, values={"original": same}))
        return False

    def add(self, path: Path, name: str, date: str) -> None:
        """Add one file; a file that turns out bad on the way leaves nothing behind."""
        fleet = self.fleet
        known = fleet.model.values is not None  # then torque is compared with the type's first, which costs little
        stream, first, _ = opened(fleet, path, name, date, self.findings, dynamics=not known)
        if self.recording is None or not self.recording.goes_on_in(first):
            self.close()
            self.recording = Reduction(fleet, payload=stream.info.payload)
            self.first = (name, first) if known else None
        self.recording = self.recording.grown(stream, name)

    def close(self) -> None:
        """Add the recording that has been read, one file or several that go on in one another, if it is any good."""
        recording, self.recording = self.recording, None
        if recording is None:
            return
        try:
            sums = recording.end()
            if self.first is not None and sums.factor is not None and not self.fleet.model.explains(sums.factor):
                found = _found(self.first[1], self.fleet, self.first[0], dynamics=True)[1]
                self.findings += [one for one in found if one not in self.findings]
            self.sums += sums
        except (ArmidError, np.linalg.LinAlgError) as error:
            self.problems += [DayProblem(name, _reason(error)) for name in recording.files]
            return
        self.read += recording.files

    def finished(self, partition: Partition, key: str) -> ArmDay:
        """The arm-day."""
        self.close()
        factor, n = self.sums.factor, self.fleet.robot.n_joints
        rms, inflation, reversal = np.full(n, np.nan), np.ones(n), np.full(n, np.nan)
        if factor is not None and not sum(factor.counts):
            floor = f"slow_floor ({self.fleet.slow_floor:g} rad/s)"
            reason = f"the arm does not move: no row of any joint is above {floor}"
            self.problems.append(DayProblem(self.read[0] if len(self.read) == 1 else ALL, reason))
            factor = None
        if factor is not None:
            rms, inflation, reversal = _residuals(self.fleet.model, factor, self.sums.looked_at)
        felt = np.broadcast_to(self.sums.felt, n)
        return ArmDay(
            robot=partition.robot,
            date=partition.date,
            rms=rms,
            inflation=inflation,
            temperature=np.where(felt > 0, self.sums.warmth / np.maximum(felt, 1), np.nan),
            reversal=reversal,
            samples=self.sums.samples,
            seconds=self.sums.seconds,
            findings=tuple(self.findings),
            problems=tuple(self.problems),
            key=key,
            files_sha256=self.hashes,
            factor=factor,
        )


def opened(
    fleet: Fleet, path: Path, name: str, date: str, findings: list[DayFinding] | None = None, *, dynamics: bool = True
) -> tuple[LogStream, Log, list[DayFinding]]:
    """A log of this fleet's arms, its first rows, and what the log doctor finds in them, added to `findings`.

    Raises:
        ArmidError: it is of another arm, or means something else than it says.
    """
    findings = [] if findings is None else findings
    stream = open_log(path, fleet.recipe, effort=fleet.effort)
    check_robot(stream.info, fleet.robot)
    _check_mounting(stream.info, fleet)
    first = next(iter(stream.blocks(DOCTOR_ROWS)))
    report, found = _found(first, fleet, name, dynamics=dynamics)
    findings += found
    off = _days_off(float(first.time[0]), date)
    if off:
        findings.append(DayFinding("clock-jump", "warning", name, values={"days_off": off}))
    fatal = [f for f in report.findings if f.code in FATAL and (f.severity == "error" or "missing" in f.code)]
    if fatal:
        raise ArmidError(fatal[0].what)
    return stream, first, findings


def _found(first: Log, fleet: Fleet, name: str, *, dynamics: bool) -> tuple[Examination, list[DayFinding]]:
    """What the log doctor finds in a file."""
    report = examine(first, fleet.robot, dynamics=dynamics)
    some = report.at_least("warning")
    return report, [DayFinding(one.code, one.severity, name, one.joint, plain(one.values)) for one in some]


def _days_off(start: float, date: str) -> int:
    """By how many days a clock is wrong, if a log's times are seconds since 1970; 0 if they are of the folder's day."""
    if not start > EPOCH:
        return 0
    said = datetime.fromtimestamp(start, UTC)
    off = (said - datetime.fromisoformat(date).replace(tzinfo=UTC)).total_seconds() / 86400.0
    return 0 if -1.0 <= off <= 2.0 else round(off)


def _check_mounting(info: LogInfo, fleet: Fleet) -> None:
    """Refuse a log of arms that are mounted otherwise, and say how the fleet file would say so."""
    said, known = info.gravity, fleet.robot.gravity
    if said is not None and not np.allclose(said, known, atol=0.02):
        raise ArmidError(
            f"was recorded with gravity [{_listed(said)}] m/s^2, but {fleet.source} says [{_listed(known)}]; "
            f"say there how the arms are mounted, robot_options: {{gravity: [{_listed(said)}]}}"
        )


def _residuals(
    model: TypeModel, factor: CompactFactor, looked_at: Iterable[tuple[Problem, Array]]
) -> tuple[Array, Array, Array]:
    """Rms, inflation of variances by correlation in time, and reversals against the rest, per joint.

    The friction curve is the day's own, in the light of the type's: what arms differ by is no noise.
    """
    known, rest = np.array(factor.counts) > 0, model.without_curve(factor, model.curve)
    first = solve(rest, np.ones(len(rest.matrices)), rank_tolerance=RANK)
    weights = np.where(known, 1.0 / residual_variance(rest, first.values), 1.0)
    whole = solve(model.with_prior(factor, weights), weights, rank_tolerance=RANK).values
    count = len(rest.names)
    rest = model.without_curve(factor, whole[count:])
    rms = np.where(known, np.sqrt(residual_variance(rest, whole[:count])), np.nan)
    n = len(rms)
    products, turning, steady = np.zeros((LAGS + 1, n)), np.zeros((2, n)), np.zeros((2, n))
    for problem, shift in looked_at:
        for block in problem.blocks():
            error, plain = block.residuals(whole + shift), block.errors(whole + shift)
            products += products_of(error, LAGS)
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


def _after_reversals(velocity: Array, seconds: float, data: Dataset, which: slice) -> Mask:
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


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{float(number):.6g}" for number in numbers)


def _reason(error: Exception, path: Path | None = None) -> str:
    """A problem in words; the file is named beside it."""
    if isinstance(error, np.linalg.LinAlgError):
        return f"cannot be estimated from ({error}); look at it with armid inspect"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return str(error) if path is None else str(error).removeprefix(f"{path}: ")
