"""The fleet file: what all arms of a fleet share, said once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from armid._version import __version__
from armid.errors import ArmidError, DescriptionError
from armid.estimation.fit import Fit, load_fit
from armid.logs.recipe import Recipe
from armid.robot import load_robot
from armid.robot.robot import Robot
from armid.robot.schema import parse_yaml, read_text
from armid.signals.filtering import LowPass
from armid.signals.pipeline import Pipeline

#: Parts of armid that decide what an arm-day is: with other code an arm-day is another one.
CODE = (
    *("robot", "dynamics", "logs", "signals", "estimation/problem.py", "estimation/torque_model.py"),
    *("estimation/terms.py", "estimation/linear.py", "fleet/reduce.py", "fleet/pieces.py", "fleet/day.py"),
)
SLOW_FLOOR = 0.03  # [rad/s] rows slower than this are left out, the same for every piece of a log


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
        """All that decides what an arm-day is, beside its data."""
        from armid.robot.serial import robot_to_data

        fit = self.fit
        return {
            "armid": __version__,
            "code_sha256": _code_hash(),
            "robot": robot_to_data(self.robot),
            "recipe": None if self.recipe is None else repr(self.recipe),
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
    entries = parse_yaml(read_text(path), str(path))
    robot_name = entries.require("robot")
    logs = entries.require("logs")
    if not isinstance(robot_name, str) or not isinstance(logs, str):
        entries.fail("robot" if not isinstance(robot_name, str) else "logs", "must be a text")
    storage = dict(entries.section("storage")._data)
    entries.take("storage")
    recipe, effort = entries.take("recipe"), entries.take("effort")
    signals, fit, floor = entries.take("signals"), entries.take("friction"), entries.take("slow_floor", SLOW_FLOOR)
    options = entries.section("robot_options")
    links, rotors = options.take("links"), options.take("rotors", True)
    options.finish()
    entries.finish()
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not floor > 0.0:
        raise DescriptionError(str(path), "slow_floor", f"is {floor!r}; give a speed above zero in rad/s")
    known = fit is not None and fit != "linear"
    return Fleet(
        source=str(path),
        robot=load_robot(_beside(path, robot_name), links=links, rotors=bool(rotors)),
        logs=logs if "://" in logs else str((path.parent / logs).resolve()),
        storage=storage,
        recipe=None if recipe is None else Recipe.load(_beside(path, str(recipe))),
        effort=effort,
        pipeline=_pipeline(path, signals),
        fit=load_fit(_beside(path, str(fit))) if known else None,
        slow_floor=float(floor),
    )


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
    """A file named relative to the fleet file; names of the library and of recipes stay as they are."""
    candidate = path.parent / name
    return str(candidate) if candidate.is_file() else name
