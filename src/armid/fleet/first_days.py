"""Learning the torque model of a type of arm, once, from the fleet's first days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from armid.errors import ArmidError
from armid.estimation.consistent.feasible import ConsistentLeastSquares
from armid.estimation.fit import Fit, load_fit
from armid.estimation.mixed import MixedEffects
from armid.estimation.problem import EstimationError
from armid.fleet.description import Fleet
from armid.fleet.partitions import Partition, file_system, local_copy
from armid.fleet.recording import dataset_of, problem_of, without_jumps
from armid.fleet.reduce import SUSPECT, opened
from armid.fleet.type_model import TypeModel
from armid.progress import report_progress
from armid.signals.dataset import Dataset

FILE = "type.json"
RECORDINGS, TRIED = 8, 40  # that the type is learnt from, each of another arm if there are so many; looked at for that
SAMPLES = 16_384  # of each


def with_type(fleet: Fleet, partitions: Sequence[Partition], folder: Path) -> Fleet:
    """The fleet with the model of its type: the one that its file names, that of the last run, or learnt now.

    It is kept in the folder of the results: with another one every arm-day would have to be read again.
    """
    fit: Fit | None
    if isinstance(fleet.friction, Fit):
        fit = fleet.friction
    else:
        fit = last = _last(folder / FILE, fleet.key())
        if last is None:
            fit = learnt(fleet, partitions)
        if fit is not None and last is None:
            replace(fit, options={**fit.options, "fleet": fleet.key()}).save(folder / FILE)
    return replace(fleet, type=TypeModel.of(fleet.robot, fit))


def _last(path: Path, key: str) -> Fit | None:
    try:
        fit = load_fit(path)
    except ArmidError:
        return None
    return fit if fit.options.get("fleet") == key else None


def learnt(fleet: Fleet, partitions: Sequence[Partition]) -> Fit | None:
    """The type, from the first days of several arms; None where no recording is good enough for that.

    Where one type does not explain them all, the log doctor looks for mistakes in them, which takes long.
    """
    report_progress("learning the type of arm", 0.0)
    fit = None
    for dynamics in (False, True):
        data = list(islice(_datasets(fleet, partitions, dynamics=dynamics), RECORDINGS))
        if not data:
            return None
        try:
            kind = MixedEffects if fleet.friction is None else ConsistentLeastSquares
            fit = kind(slow_share=0.0, slow_floor=fleet.slow_floor).fit(fleet.robot, data)
        except (EstimationError, np.linalg.LinAlgError):  # a joint that never moves, or too few rows
            continue
        known = replace(fleet, type=TypeModel.of(fleet.robot, fit))
        if all(known.model.explains(problem_of(known, one).factor(triangular=True, complete=False)) for one in data):
            break
    return fit


def _datasets(fleet: Fleet, partitions: Sequence[Partition], *, dynamics: bool) -> Iterator[Dataset]:
    """Of recordings in which nothing is suspicious: first days first, of arms far apart in the list."""
    arms: dict[str, list[Partition]] = {}
    for one in partitions:
        if one.files:
            arms.setdefault(one.robot, []).append(one)
    names = sorted(arms)
    step = max(1, len(names) // RECORDINGS)
    spread = [name for start in range(step) for name in names[start::step]]
    days = (one for day in zip_longest(*(arms[name] for name in spread)) for one in day if one is not None)
    system, _ = file_system(fleet)
    for one in islice(days, TRIED):
        try:
            with local_copy(system, one.files[0]) as path:
                _, first, findings = opened(fleet, path, path.name, one.date, dynamics=dynamics)
                if first.info.payload is None and not any(found.code in SUSPECT for found in findings):
                    yield dataset_of(next(without_jumps(first))[0].rows(slice(0, SAMPLES)), fleet)
        except (ArmidError, OSError, np.linalg.LinAlgError):
            continue  # its own day says why
