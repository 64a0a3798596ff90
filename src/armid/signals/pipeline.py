"""From a log to a dataset: pipelines, and what is done where none is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from armid.errors import DescriptionError
from armid.files import read_text
from armid.logs.log import RATE_TOLERANCE, Log, LogError
from armid.logs.stream import LogStream
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.choice import chosen_steps
from armid.signals.dataset import Dataset
from armid.signals.periodic import PeriodicAverage
from armid.signals.preparations import CurrentToTorque, ToJointSide
from armid.signals.problems import SignalError
from armid.signals.steps import Notes, Preparation, Step, Strategy, step_from_data

PipelineLike = Step | str | Mapping[str, Any] | Sequence[Any]

ENOUGH_STEPS = 20  # samples from which timestamps tell a rate


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
        DescriptionError: it is not YAML, or names no steps.
        SignalError: a step or one of its options is not known.
    """
    if text is None or text == "auto":
        return None
    inline = text.lstrip().startswith(("{", "["))
    if not inline and Path(text).suffix not in (".yaml", ".yml", ".json"):
        return Pipeline.of(text)
    try:
        data = yaml.safe_load(text if inline else read_text(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DescriptionError(text, "", f"is not YAML ({(str(error) or 'no text').splitlines()[0]})") from None
    if not isinstance(data, dict | list | str):
        raise DescriptionError(text, "", "names no steps; write a list such as [{step: LowPass, cutoff_hz: 5}]")
    return Pipeline.of(data)


def process_logs(logs: Sequence[Log], pipeline: Pipeline | PipelineLike | None, robot: Robot) -> list[Dataset]:
    """Several logs of one robot, processed alike: all by the pipeline of the first where none is given.

    Notes name their log where there are several; the history of each names its source.
    """
    sets: list[Dataset] = []
    for number, log in enumerate(logs):
        name = Path(log.info.source).name
        report_progress(f"processing {name}", number / len(logs))
        data = process(log, pipeline, robot=robot)
        pipeline = list(data.pipeline) if pipeline is None else pipeline
        notes = data.notes if len(logs) == 1 or not name else tuple(f"{name}: {note}" for note in data.notes)
        sets.append(replace(data, notes=notes, history={**data.history, "source": log.info.source}))
    return sets


def process(
    log: Log | LogStream, pipeline: Pipeline | PipelineLike | None = None, *, robot: Robot | None = None
) -> Dataset:
    """Turn a log into a dataset.

    With a robot, columns are picked by joint name, currents become torques by its gains, and the motor side becomes the
    joint side by its coupling matrix or gear ratios, unless the pipeline says how.

    Args:
        log: a log; a stream is averaged in constant memory with `PeriodicAverage`, else read as a whole.
        pipeline: a step such as ``LowPass(cutoff_hz=8.0)``, a sequence of steps, their data, or None. Where it names no
            strategy, one is chosen from what the log doctor sees: averaging for a motion that repeats at least three
            times, else a low-pass.
            `Dataset.notes` says what was chosen and why, `Dataset.pipeline` holds the steps.
        robot: the robot that was measured.

    Raises:
        LogError: the log is of another robot, or lacks what is needed; the message says what to give.
        SignalError: a step cannot work with its options.
    """
    steps = Pipeline.of(pipeline)
    if isinstance(log, LogStream):
        return _process_stream(log, steps, robot)
    _check_rate(log)
    log, notes = _for_robot(log, steps, robot)
    applied: list[Step] = []
    for step in steps.steps:
        if isinstance(step, Preparation):
            log, said = step.apply(log, robot)
            notes += said
            applied.append(step)
    strategy = steps.strategy
    if strategy is None:
        automatic, why = choose(log)
        notes += why
        for step in automatic.steps[:-1]:
            assert isinstance(step, Preparation)
            log, said = step.apply(log, robot)
            notes += said
            applied.append(step)
        strategy = automatic.strategy
        assert strategy is not None
    try:
        data = strategy.dataset(log)
    except SignalError as error:
        if not log.info.source or log.info.source in error.problem:
            raise
        raise SignalError(error.step, f"{log.info.source}: {error.problem}") from None
    recorded = (*(step.to_data() for step in applied), *data.pipeline)
    return replace(data, pipeline=recorded, notes=notes + data.notes)


def _check_robot(log: Log, robot: Robot) -> None:
    """Refuse a log that names another robot; one name may be part of the other, as in staubli_tx40."""
    one, other = log.info.robot.lower(), robot.name.lower()
    if one and one not in other and other not in one:
        raise LogError(
            log.info.source,
            "robot",
            f"is {log.info.robot!r}, not {robot.name!r}; give the robot it was recorded on, or correct its recipe",
        )


def _check_rate(log: Log) -> None:
    """Refuse a log whose timestamps contradict its stated rate, by the usual step and by the mean of most steps.

    Lost samples change the mean only, timestamps that alternate the usual step only: neither is a contradiction.
    """
    stated = log.info.rate_hz
    if stated is None or len(log) < ENOUGH_STEPS:
        return
    steps = np.diff(log.time)
    low, high = np.percentile(steps, [5.0, 95.0])
    found = (float(np.median(steps)), float(steps[(steps >= low) & (steps <= high)].mean()))
    if all(step > 0.0 and abs(stated * step - 1.0) > RATE_TOLERANCE for step in found):
        raise LogError(
            log.info.source,
            "rate",
            f"is stated as {stated:.5g} Hz, but the timestamps say {1.0 / found[1]:.5g} Hz; correct the rate or the "
            "unit of time in the recipe, or leave the rate out",
        )


def choose(log: Log) -> tuple[Pipeline, Notes]:
    """The pipeline for a log, and why: what `process` does where it is given no strategy."""
    steps, notes = chosen_steps(log)
    return Pipeline(steps), notes


def _for_robot(log: Log, steps: Pipeline, robot: Robot | None) -> tuple[Log, Notes]:
    """The log with the robot's joints, and on its joint side unless the pipeline takes care of that."""
    if robot is None:
        return log, ()
    _check_robot(log, robot)
    log = log.for_joints(robot.joint_names)
    notes: Notes = ()
    for kind in (CurrentToTorque, ToJointSide):
        if not any(isinstance(step, kind) for step in steps.steps):
            log, said = kind().apply(log, robot)
            notes += said
    return log, notes


def _process_stream(stream: LogStream, steps: Pipeline, robot: Robot | None) -> Dataset:
    strategy = steps.strategy
    if not isinstance(strategy, PeriodicAverage) or len(steps.steps) > 1:
        return process(stream.read(), steps, robot=robot)
    notes: Notes = ()

    def blocks() -> Iterable[Log]:
        nonlocal notes
        for block in stream.blocks():
            _check_rate(block)
            converted, notes = _for_robot(block, steps, robot)
            yield converted

    data = strategy.dataset_from_blocks(blocks())
    return replace(data, notes=notes + data.notes)
