"""The fleet file: what all arms of a fleet share, said once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from armid._version import __version__
from armid.errors import ArmidError, DescriptionError
from armid.estimation.fit import Fit, load_fit
from armid.files import read_text, shown
from armid.logs.log import EFFORTS
from armid.logs.recipe import Recipe
from armid.robot import load_robot
from armid.robot.robot import Robot
from armid.robot.schema import Fields, read_fields
from armid.signals.filtering import LowPass
from armid.signals.pipeline import Pipeline

#: Parts of armid that decide what an arm-day is: with other code an arm-day is another one.
CODE = (
    *("robot", "dynamics", "logs", "signals", "estimation/problem.py", "estimation/torque_model.py"),
    *("estimation/terms.py", "estimation/linear.py", "fleet/reduce.py", "fleet/recording.py"),
    *("fleet/pieces.py", "fleet/day.py"),
)
SLOW_FLOOR = 0.03  # [rad/s] rows slower than this are left out, the same for every piece of a log
MOST_SLOW = 1.0  # [rad/s] what slow_floor may be at most: arms that work are hardly faster


@dataclass(frozen=True, eq=False)
class Fleet:
    """A fleet: where its logs lie and how they are treated.

    Attributes:
        source: the fleet file.
        robot: description of the type of arm.
        logs: folder or fsspec address that holds ``robot=NAME/date=YYYY-MM-DD/…``.
        storage: options of that file system, such as ``endpoint_url`` and ``anon`` of S3.
        recipe: what the columns mean, for logs that do not say it; None for armid's own files.
        effort: what was measured, for logs that do not say it.
        pipeline: preparations and a low-pass; the same for every log, else their factors could not be added.
        fit: friction terms, delays and the load's parameters are taken from it; None for the description's friction.
        slow_floor: rows at which a joint is slower are left out [rad/s].
    """

    source: str
    robot: Robot
    logs: str
    storage: dict[str, Any] = field(default_factory=dict)
    recipe: Recipe | None = None
    effort: str | None = None
    pipeline: Pipeline = field(default_factory=lambda: Pipeline((LowPass(),)))
    fit: Fit | None = None
    slow_floor: float = SLOW_FLOOR

    def options(self) -> dict[str, Any]:
        """All that decides what an arm-day is, beside its data: what files say, not where they lie."""
        from armid.files import plain

        fit = self.fit
        robot = {key: value for key, value in plain(self.robot).items() if key != "source"}
        return {
            "armid": __version__,
            "code_sha256": _code_hash(),
            "robot": robot,
            "recipe": None if self.recipe is None else repr(_placeless(self.recipe)),
            "effort": self.effort,
            "pipeline": self.pipeline.to_data(),
            "friction": None if fit is None else {"terms": repr(fit.terms), "delay_s": fit.delay_s.tolist()},
            "load": None if fit is None or fit.load_values is None else dict(fit.load_values),
            "slow_floor": self.slow_floor,
        }

    def key(self) -> str:
        """Hash of the options."""
        return hashlib.sha256(json.dumps(self.options(), sort_keys=True, default=str).encode()).hexdigest()


def load_fleet(path: str | Path) -> Fleet:
    """Read a fleet file.

    Raises:
        DescriptionError: a key is missing, unknown or wrong; the message says which and what to do.
    """
    path = Path(path)
    entries = read_fields(read_text(path), str(path))
    robot_name, logs = (_text(entries, key, entries.require(key)) for key in ("robot", "logs"))
    storage = dict(entries.section("storage")._data)
    entries.take("storage")
    recipe, fit = (_text(entries, key, entries.take(key)) for key in ("recipe", "friction"))
    effort, signals, floor = entries.take("effort"), entries.take("signals"), entries.take("slow_floor", SLOW_FLOOR)
    options = _robot_options(entries.section("robot_options"))
    entries.finish()
    if effort is not None:
        entries.checked_choice("effort", effort, EFFORTS)
    floor = entries.checked_number("slow_floor", floor)
    if not 0.0 < floor <= MOST_SLOW:
        entries.fail("slow_floor", f"is {floor:g}; give a speed above zero and up to {MOST_SLOW:g} rad/s")
    with _about(entries, "robot"):
        robot = load_robot(_beside(path, robot_name), **options)
    with _about(entries, "recipe"):
        known_columns = None if recipe is None else Recipe.load(_beside(path, recipe))
    with _about(entries, "friction"):
        known = None if fit is None or fit == "linear" else load_fit(_beside(path, fit))
    return Fleet(
        source=str(path),
        robot=robot,
        logs=logs if "://" in logs else str((path.parent / logs).resolve()),
        storage=storage,
        recipe=known_columns,
        effort=effort,
        pipeline=_pipeline(path, signals),
        fit=known,
        slow_floor=floor,
    )


def _text(entries: Fields, key: str, value: Any) -> Any:
    if value is not None and (not isinstance(value, str) or not value):
        entries.fail(key, f"must be a text, not {shown(value)}")
    return value


def _robot_options(options: Fields) -> dict[str, Any]:
    """Choices of `load_robot`."""
    links, gravity, simplify = options.take("links"), options.take("gravity"), options.take("simplify")
    rotors = options.checked_flag("rotors", options.take("rotors", True))
    if links is not None and options.checked_integer("links", links) < 1:
        options.fail("links", f"is {links}; use a number of links from 1")
    if gravity is not None:
        gravity = options.checked_vector("gravity", gravity, 3).tolist()
        if not any(gravity):
            options.fail("gravity", "has zero length; if that is meant, write `gravity: none` in the robot file")
    options.finish()
    return {"links": links, "rotors": rotors, "gravity": gravity, "simplify": _text(options, "simplify", simplify)}


@contextmanager
def _about(entries: Fields, key: str) -> Iterator[None]:
    """Errors in what an entry names say which entry of which file it was."""
    try:
        yield
    except ArmidError as error:
        raise DescriptionError(entries.source, key, str(error)) from None


@cache
def _code_hash() -> str:
    digest = hashlib.sha256()
    root = Path(str(files("armid")))
    for part in CODE:
        for path in sorted((root / part).rglob("*.py")) if (root / part).is_dir() else [root / part]:
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _pipeline(path: Path, signals: Any) -> Pipeline:
    """Steps that end with a low-pass of a stated cut-off: one that every log gets alike."""
    if signals is None:
        return Pipeline((LowPass(),))
    steps = signals if isinstance(signals, list) else [signals]
    if not all(isinstance(step, str | dict) for step in steps):
        raise DescriptionError(str(path), "signals", f"must be a step or a list of steps, not {shown(signals)}")
    try:
        made = Pipeline.of(signals)
    except ArmidError as error:
        raise DescriptionError(str(path), "signals", str(error)) from None
    if not isinstance(made.strategy, LowPass) or isinstance(made.strategy.cutoff_hz, str):
        raise DescriptionError(
            str(path), "signals", "must end with a LowPass of a stated cutoff_hz, so that all logs are filtered alike"
        )
    return made


def _beside(path: Path, name: str) -> str:
    """A file named relative to the fleet file, without detours; names of the library and of recipes stay."""
    candidate = path.parent / name
    if not candidate.is_file():
        return name
    short = Path(os.path.normpath(candidate))
    return str(short if short.is_file() and short.samefile(candidate) else candidate.resolve())


def _placeless(recipe: Recipe) -> Recipe:
    return replace(recipe, source="", info=replace(recipe.info, source=""))
