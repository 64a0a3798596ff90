"""The fleet file: what all arms of a fleet share, said once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from armid._version import __version__
from armid.errors import ArmidError, DescriptionError
from armid.estimation.fit import Fit, load_fit
from armid.files import checked, code_hash, is_file, parse_yaml, plain, read_text, shown
from armid.fleet.type_model import TypeModel
from armid.logs.log import EFFORTS
from armid.logs.recipe import Recipe
from armid.robot import load_robot
from armid.robot.robot import Robot
from armid.signals.filtering import LowPass
from armid.signals.pipeline import Pipeline

FLEET_FILE = "fleet.yaml"
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
        friction: a fit that says what friction is like, ``linear`` for the description's alone, or None to learn it.
        type: the torque model of the type, once it is known.
        slow_floor: rows at which a joint is slower are left out [rad/s].
    """

    source: str
    robot: Robot
    logs: str
    storage: dict[str, Any] = field(default_factory=dict)
    recipe: Recipe | None = None
    effort: str | None = None
    pipeline: Pipeline = field(default_factory=lambda: Pipeline((LowPass(),)))
    friction: Fit | str | None = None
    slow_floor: float = SLOW_FLOOR
    type: TypeModel | None = None

    @property
    def model(self) -> TypeModel:
        """The torque model of the type; the description's where none is known."""
        return TypeModel.of(self.robot, None) if self.type is None else self.type

    @property
    def low_pass(self) -> LowPass:
        """The last step of the pipeline."""
        last = self.pipeline.steps[-1]
        assert isinstance(last, LowPass)
        return last

    def options(self) -> dict[str, Any]:
        """All that decides what an arm-day is, beside its data: what files say, not where they lie."""
        known = self.type
        robot = {key: value for key, value in plain(self.robot).items() if key != "source"}
        return {
            "armid": __version__,
            "code_sha256": code_hash(),
            "robot": robot,
            "recipe": None if self.recipe is None else repr(_placeless(self.recipe)),
            "effort": self.effort,
            "pipeline": self.pipeline.to_data(),
            "friction": None if known is None else [repr(known.terms), known.numbers_sha256],
            "load": None if known is None else known.load_values,
            "linear": self.friction == "linear",
            "slow_floor": self.slow_floor,
        }

    def key(self) -> str:
        """Hash of the options."""
        return hashlib.sha256(json.dumps(self.options(), sort_keys=True, default=str).encode()).hexdigest()


class RobotOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Choices of `load_robot`."""

    links: int | None = None
    rotors: bool = True
    gravity: tuple[float, float, float] | None = None
    simplify: str | None = None


class FleetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries of the fleet file, as docs/fleet.md explains them."""

    robot: str
    logs: str
    storage: dict[str, Any] = {}
    recipe: str | None = None
    effort: str | None = None
    signals: str | dict[str, Any] | list[str | dict[str, Any]] | None = None
    friction: str | None = None
    slow_floor: float = SLOW_FLOOR
    robot_options: RobotOptions = RobotOptions()


def load_fleet(path: str | Path) -> Fleet:
    """Read a fleet file, or the ``fleet.yaml`` in a folder.

    Raises:
        DescriptionError: a key is missing, unknown or wrong; the message says which and what to do.
    """
    path = Path(path) / FLEET_FILE if Path(path).is_dir() else Path(path)
    said = checked(parse_yaml(read_text(path), str(path)), FleetFile, str(path))
    options = said.robot_options

    def refuse(key: str, problem: str) -> NoReturn:
        raise DescriptionError(str(path), key, problem)

    if said.effort is not None and said.effort not in EFFORTS:
        refuse("effort", f"is {shown(said.effort)}; valid: {', '.join(EFFORTS)}")
    if not 0.0 < said.slow_floor <= MOST_SLOW:
        refuse("slow_floor", f"is {said.slow_floor:g}; give a speed above zero and up to {MOST_SLOW:g} rad/s")
    if options.links is not None and options.links < 1:
        refuse("robot_options.links", f"is {options.links}; use a number of links from 1")
    if options.gravity is not None and not any(options.gravity):
        refuse("robot_options.gravity", "has zero length; if that is meant, write `gravity: none` in the robot file")
    with _about(path, "robot"):
        robot = load_robot(_beside(path, said.robot), **msgspec.structs.asdict(options))
    with _about(path, "recipe"):
        recipe = None if said.recipe is None else Recipe.load(_beside(path, said.recipe))
    with _about(path, "friction"):
        linear = said.friction == "linear"
        friction = said.friction if linear or said.friction is None else load_fit(_beside(path, said.friction))
    with _about(path, "signals"):
        pipeline = Pipeline((LowPass(),)) if said.signals is None else Pipeline.of(said.signals)
    if not isinstance(pipeline.strategy, LowPass) or isinstance(pipeline.strategy.cutoff_hz, str):
        refuse("signals", "must end with a LowPass of a stated cutoff_hz, so that all logs are filtered alike")
    if "\0" in said.logs:
        refuse("logs", f"is {shown(said.logs)}, which no file can be called")
    logs = said.logs if "://" in said.logs else str((path.parent / said.logs).resolve())
    return Fleet(str(path), robot, logs, dict(said.storage), recipe, said.effort, pipeline, friction, said.slow_floor)


@contextmanager
def _about(path: Path, key: str) -> Iterator[None]:
    """Errors in what an entry names say which entry of which file it was."""
    try:
        yield
    except ArmidError as error:
        raise DescriptionError(str(path), key, str(error)) from None


def _beside(path: Path, name: str) -> str:
    """A file named relative to the fleet file, without detours; names of the library and of recipes stay."""
    candidate = path.parent / name
    if not is_file(candidate):
        return name
    short = Path(os.path.normpath(candidate))
    return str(short if short.is_file() and short.samefile(candidate) else candidate.resolve())


def _placeless(recipe: Recipe) -> Recipe:
    return replace(recipe, source="", info=replace(recipe.info, source=""))
