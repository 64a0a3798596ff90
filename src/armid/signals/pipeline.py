"""From a log to a dataset: pipelines, and what is done where none is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from armid.arrays import Mask
from armid.errors import DescriptionError, UnknownNameError
from armid.files import load_yaml, plain, read_text
from armid.logs.log import Log, LogError, LogInfo, LogStream, without_garbage
from armid.notes import Note, note
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset, joined, pieces, whole_or_stream
from armid.signals.filtering import LowPass
from armid.signals.period import Period, PeriodSearch, find_period, intact_periods, steady_periods
from armid.signals.periodic import PeriodicAverage
from armid.signals.preparations import CurrentToTorque, Hampel, Repair, Resample, ToJointSide, Trim, TrimRest
from armid.signals.problems import SignalError
from armid.signals.repair import contradicts, find_gaps, usual_steps, without_passive
from armid.signals.resample import is_uniform
from armid.signals.steps import Notes, Preparation, Step, Strategy, required_position, step_from_data

if TYPE_CHECKING:
    from armid.signals.doctor import Examination

PipelineLike = Step | str | Mapping[str, Any] | Sequence[Any]

ENOUGH_STEPS = 20  # samples from which timestamps tell a rate
LEAST_PERIODS = 3  # repeated at least so often, a motion is averaged
LEAST_INTACT = 2  # of which so many must be without holes
MENDED = Hampel().channels  # spikes elsewhere do not reach the dataset
_MADE: WeakKeyDictionary[Log, dict[str, Dataset]] = WeakKeyDictionary()
# What no step can mend, and what therefore is only told.
TOLD = (
    "dead-channel",
    "mostly-zero",
    "zero-dropouts",
    "saturated",
    "time-unit",
    "degrees",
    "sign-flipped",
    "swapped-joints",
)


@dataclass(frozen=True)
class Pipeline:
    """Preparations, then at most one strategy; without a strategy one is chosen from the log.

    Attributes:
        steps: in the order they are applied.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a strategy that is not the last step."""
        for step in self.steps[:-1]:
            if isinstance(step, Strategy):
                raise SignalError(
                    "pipeline", f"{type(step).__name__} makes the dataset, so no step can follow it; put it last"
                )

    @classmethod
    def of(cls, what: Pipeline | PipelineLike | None) -> Pipeline:
        """A pipeline from a step, a name, data, or a sequence of these; None is the empty pipeline."""
        if isinstance(what, Pipeline):
            return what
        if what is None:
            return cls()
        if isinstance(what, (Step, str, Mapping)):
            return cls((step_from_data(what),))
        return cls(tuple(step_from_data(item) for item in what))

    def to_data(self) -> list[dict[str, Any]]:
        """The steps as data."""
        return [step.to_data() for step in self.steps]

    @classmethod
    def from_data(cls, data: Iterable[Mapping[str, Any]]) -> Pipeline:
        """The pipeline that `to_data` wrote."""
        return cls.of(list(data))

    @property
    def strategy(self) -> Strategy | None:
        """The last step, if it makes a dataset."""
        last = self.steps[-1] if self.steps else None
        return last if isinstance(last, Strategy) else None


def load_pipeline(text: str | None) -> Pipeline | None:
    """The pipeline that a YAML file, YAML text such as ``{step: LowPass}`` or the name of a step says.

    None, or ``auto``: the pipeline is chosen from the log.

    Raises:
        DescriptionError: it is not YAML, or names no steps that are known, with options that they have.
    """
    if text is None or text == "auto":
        return None
    inline = text.lstrip().startswith(("{", "["))
    if not inline and Path(text).suffix not in (".yaml", ".yml", ".json"):
        return Pipeline.of(text)
    data = load_yaml(text if inline else read_text(text), text)
    if not isinstance(data, dict | list | str):
        raise DescriptionError(text, "", "names no steps; write a list such as [{step: LowPass, cutoff_hz: 5}]")
    try:
        return Pipeline.of(data)
    except (SignalError, UnknownNameError) as error:
        raise DescriptionError(text, "", str(error)) from None


def process_logs(
    logs: Sequence[Log | LogStream], pipeline: Pipeline | PipelineLike | None, robot: Robot
) -> list[Dataset]:
    """Several logs of one robot, processed alike: all by the pipeline of the first where none is given.

    Notes name their log where there are several; the history of each names its source.
    """
    sets: list[Dataset] = []
    for number, log in enumerate(logs):
        name = Path(log.info.source).name
        report_progress(f"processing {name}", number / len(logs))
        data = process(log, pipeline, robot=robot)
        data = replace(data, history={**data.history, "source": log.info.source})
        pipeline = list(data.pipeline) if pipeline is None else pipeline
        notes = data.notes if len(logs) == 1 or not name else tuple(said.about(name) for said in data.notes)
        sets.append(replace(data, notes=notes))
    return sets


def process(
    log: Log | LogStream, pipeline: Pipeline | PipelineLike | None = None, *, robot: Robot | None = None
) -> Dataset:
    """Turn a log into a dataset.

    With a robot, columns are picked by joint name, currents become torques by its gains, and the motor side becomes the
    joint side by its coupling matrix or gear ratios, unless the pipeline says how. A data set is kept as long as its
    log: asked for again, for a validation or a report, it is not computed twice.

    Args:
        log: a log, or a stream: one that is too long for memory is averaged block by block or filtered piece by
            piece, and the samples of its data set stay in a temporary file.
        pipeline: a step such as ``LowPass(cutoff_hz=8.0)``, a sequence of steps, their data, or None. Where it names no
            strategy, one is chosen from what the log doctor sees: averaging for a motion that repeats at least three
            times, else a low-pass.
            `Dataset.notes` says what was chosen and why, `Dataset.pipeline` holds the steps.
        robot: the robot that was measured.

    Raises:
        LogError: the log lacks what is needed, or is of another robot; the message says what to give.
        SignalError: a step cannot work with its options.
    """
    steps = Pipeline.of(pipeline)
    if robot is not None:
        check_robot(log.info, robot)
    if isinstance(log, LogStream):
        return _process_stream(log, steps, robot)
    made, key = _MADE.setdefault(log, {}), _key(steps, robot)
    if key not in made:
        made[key] = data = _processed(log, steps, robot)
        made[_key(Pipeline.from_data(data.pipeline), robot)] = data
    return made[key]


def _key(steps: Pipeline, robot: Robot | None) -> str:
    """What decides about the data set of a log: the steps, and what they use of a robot."""
    used = None if robot is None else (robot.joint_names, robot.drives, robot.coupling, robot.passive)
    return json.dumps([steps.to_data(), plain(used)])


def _processed(log: Log, steps: Pipeline, robot: Robot | None) -> Dataset:
    _check_rate(log)
    log, notes = for_robot(without_garbage(log), steps, robot)
    log = without_passive(log, robot)
    applied: list[Step] = []
    for step in steps.steps:
        if isinstance(step, Preparation):
            log, said = step.apply(log, robot)
            notes += said
            applied.append(step)
    strategy = steps.strategy
    if strategy is None:
        preparations, strategy, why = _chosen(log, next((one for one in applied if isinstance(one, Repair)), None))
        notes += why
        for step in preparations:
            log, said = step.apply(log, robot)
            notes += said
            applied.append(step)
    log, silent = _without_silent(log)
    try:
        data = strategy.dataset(log)
    except SignalError as error:
        if not log.info.source or log.info.source in error.problem:
            raise
        raise SignalError(error.step, f"{log.info.source}: {error.problem}") from None
    recorded = (*(step.to_data() for step in applied), *data.pipeline)
    return _rows_without(silent, replace(data, pipeline=recorded, notes=notes + data.notes))


def _rows_without(silent: Mask, data: Dataset) -> Dataset:
    """The data set without the rows of some joints."""
    if not silent.any():
        return data
    use = ~silent if data.use is None else data.use & ~silent
    said = note("signals.silent_joints", joints=[data.joints[j] for j in np.flatnonzero(silent)])
    return replace(data, use=np.broadcast_to(use, data.torque.shape).copy(), notes=(*data.notes, said))


def _without_silent(log: Log) -> tuple[Log, Mask]:
    """The log with zeros for the effort of joints that have none, and which these are: passive or not measured.

    A log without any effort is left as it is: strategies say what is missing.
    """
    silent: Mask = np.zeros(len(log.joints), dtype=bool)
    if "effort" not in log or not np.isfinite(log["effort"]).any():
        return log, silent
    silent |= ~np.isfinite(log["effort"]).any(axis=0)
    return (log.with_channels({"effort": np.where(silent, 0.0, log["effort"])}) if silent.any() else log), silent


def check_robot(info: LogInfo, robot: Robot) -> None:
    """Refuse a log that names another robot; one name may be part of the other, as in staubli_tx40."""
    one, other = info.robot.lower(), robot.name.lower()
    if one and one not in other and other not in one:
        problem = f"is {info.robot!r}, not {robot.name!r}; give the robot it was recorded on, or correct its recipe"
        raise LogError(info.source, "robot", problem)


def _check_rate(log: Log) -> None:
    """Refuse a log whose timestamps contradict its stated rate."""
    stated = log.info.rate_hz
    if stated is not None and len(log) >= ENOUGH_STEPS and contradicts(stated, steps := np.diff(log.time)):
        raise LogError(
            log.info.source,
            "rate",
            f"is stated as {stated:.5g} Hz, but the timestamps say {1.0 / usual_steps(steps)[1]:.5g} Hz; correct the "
            "rate or the unit of time in the recipe, or leave the rate out",
        )


def for_robot(log: Log, steps: Pipeline, robot: Robot | None) -> tuple[Log, Notes]:
    """The log with the robot's joints, and on its joint side unless the pipeline takes care of that."""
    if robot is None:
        return log, ()
    log = log.for_joints(robot.joint_names)
    notes: Notes = ()
    for kind in (CurrentToTorque, ToJointSide):
        if not any(isinstance(step, kind) for step in steps.steps):
            log, said = kind().apply(log, robot)
            notes += said
    return log, notes


def _process_stream(stream: LogStream, steps: Pipeline, robot: Robot | None) -> Dataset:
    """A log that may be too long for memory: averaged block by block, or filtered piece by piece.

    What is to be done is chosen from its first piece. Rest at the ends is left in: rows at rest do not count anyway.
    """
    if not isinstance(steps.strategy, PeriodicAverage):
        log = whole_or_stream(stream)
        if isinstance(log, Log):
            return process(log, steps, robot=robot)
    asked = steps.strategy is not None
    if not asked:
        head = _processed(next(pieces(stream)), steps, robot)
        chosen = Pipeline.from_data(head.pipeline)
        rate = head.rate_hz
        steps = Pipeline(tuple(replace(s, rate_hz=rate) if isinstance(s, Resample) else s for s in chosen.steps))
    if isinstance(steps.strategy, PeriodicAverage):
        try:
            return _averaged(stream, steps, robot)
        except SignalError:  # periods of no whole number of samples, or holes
            if asked:
                raise
            steps = Pipeline((*steps.steps[:-1], LowPass(cutoff_hz="auto")))
    kept = Pipeline(tuple(step for step in steps.steps if not isinstance(step, TrimRest | Trim)))
    return joined(stream, lambda piece: _processed(piece, kept, robot))


def _averaged(stream: LogStream, steps: Pipeline, robot: Robot | None) -> Dataset:
    strategy = steps.strategy
    assert isinstance(strategy, PeriodicAverage)
    notes: Notes = ()
    silent: Mask | None = None  # as the first block tells

    def blocks() -> Iterator[Log]:
        nonlocal notes, silent
        for block in stream.blocks():
            _check_rate(block)
            log, notes = for_robot(without_garbage(block), steps, robot)
            log = without_passive(log, robot)
            for step in steps.steps[:-1]:
                if isinstance(step, Preparation):
                    log, _ = step.apply(log, robot) if not isinstance(step, Trim) else (log, ())
            silent = _without_silent(log)[1] if silent is None else silent
            yield log.with_channels({"effort": np.where(silent, 0.0, log["effort"])}) if silent.any() else log

    data = strategy.dataset_from_blocks(blocks())
    recorded = (*(step.to_data() for step in steps.steps[:-1]), *data.pipeline)
    made = replace(data, pipeline=recorded, notes=notes + data.notes)
    return made if silent is None else _rows_without(silent, made)


def choose(log: Log) -> tuple[Pipeline, Notes]:
    """The pipeline for a log, and why: what `process` does where it is given no strategy.

    A motion that repeats at least three times, with two periods or more without holes, is averaged and differentiated
    exactly; what has not settled at its start is cut off while three periods remain. Any other motion is low-passed,
    resampled first if its timestamps are irregular. Spikes are replaced; the step for that is there even if the doctor
    sees none, since a fit's pipeline is used on other logs too. A delay of the torque is left to the estimation, which
    fits it.
    """
    preparations, strategy, notes = _chosen(log)
    return Pipeline((*preparations, strategy)), notes


def _chosen(log: Log, repair: Repair | None = None) -> tuple[tuple[Preparation, ...], Strategy, Notes]:
    """Preparations and strategy, and why: each reason names the doctor's finding; none mends what `repair` has."""
    # The doctor's checks take a while to import, and so are imported by those alone who need them.
    from armid.signals.doctor.examine import examine

    required_position(log)
    ordered = _without_silent(replace(repair or Repair(), max_gap_s=0.0).apply(log, None)[0])[0]
    if len(ordered) < 8:
        raise LogError(log.info.source, "time", f"has {len(ordered)} samples in order; at least 8 are needed")
    report = examine(log)
    search = find_period(ordered)
    spikes = _spikes(report)
    told = tuple(note("signals.beware", finding=finding.note) for code in TOLD for finding in report.of(code))
    why = _why(ordered, search, report)
    if search.period is not None and why.code == "signals.chosen_average":
        cut, settled = _settled(report, search.period, ordered)
        # Holes are not filled by lines: periods that have some are left out, or bridged by cubics.
        mended = () if repair else (Repair(max_gap_s=0.0),)
        return (*mended, Hampel(), *cut), PeriodicAverage(), (why, *spikes, *settled, *told)
    uneven, irregular = _uneven(report, ordered)
    mended = () if repair else (Repair(),)
    return (*mended, Hampel(), TrimRest(), *uneven), LowPass(cutoff_hz="auto"), (why, *spikes, *irregular, *told)


def _why(log: Log, search: PeriodSearch, report: Examination) -> Note:
    """Why the motion is averaged, or why not."""
    period = search.period
    if period is None:
        return note("signals.chosen_low_pass", because="no period", reason=search.reason)
    found = {"period_s": period.seconds, "periods": period.count, "seen": bool(report.of("periodic"))}
    if period.count < LEAST_PERIODS:
        return note("signals.chosen_low_pass", because="few periods", **found, needed=LEAST_PERIODS)
    if _has_holes(log):
        whole, samples, _ = steady_periods(log, period)
        intact = intact_periods(whole, samples)
        if int(intact.sum()) < LEAST_INTACT:
            counts = {"intact": int(intact.sum()), "of": len(intact), "needed": LEAST_INTACT}
            return note("signals.chosen_low_pass", because="holes", **found, **counts)
    return note("signals.chosen_average", **found)


def _has_holes(log: Log) -> bool:
    """Whether any row, position or effort is missing."""
    if len(find_gaps(log.time, 1.5)[0]):
        return True
    return not all(np.isfinite(log[name]).all() for name in ("position", "effort") if name in log)


def _spikes(report: Examination) -> Notes:
    """What the doctor sees of spikes in what is used."""
    found = [finding for finding in report.of("spikes") if finding.values["channel"] in MENDED]
    if not found:
        return ()
    where = [f"{f.values['channel']} {f.joint} {f.values['count']}" for f in found]
    return (note("signals.spikes_seen", where=where),)


def _settled(report: Examination, period: Period, log: Log) -> tuple[tuple[Preparation, ...], Notes]:
    """Without the start of the first period where that has not settled, if three periods are left."""
    found = report.of("transient")
    if not found or found[0].where.stop_s is None:
        return (), ()
    settled = float(found[0].where.stop_s)
    if settled <= period.first_s:
        return (), ()
    length = settled - float(log.time[0])
    left = int(np.floor((period.stop_s - settled) / period.seconds + 0.5 / period.samples))
    few = left < LEAST_PERIODS
    said = note("signals.unsettled", until_s=settled, cut_s=0.0 if few else length, needed=LEAST_PERIODS)
    return () if few else (Trim(start_s=length),), (said,)


def _uneven(report: Examination, log: Log) -> tuple[tuple[Preparation, ...], Notes]:
    """A uniform rate where there is none."""
    if is_uniform(log.time):
        return (), ()
    found = [finding for code in ("irregular-timestamps", "gaps") for finding in report.of(code)]
    longest = max(Repair().max_gap_s, 3.0 * float(np.median(np.diff(log.time))))
    return (Resample(max_gap_s=longest),), (note("signals.uneven", finding=found[0].note if found else None),)
