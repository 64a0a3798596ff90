"""Recipes: a short YAML file that says what the numbers in somebody's files mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, UnknownNameError
from armid.logs.columns import Columns
from armid.logs.csv_file import CsvStyle
from armid.logs.log import LogError, LogInfo
from armid.logs.table import checked_file, possible
from armid.logs.units import Unit
from armid.robot.schema import read_fields

FORMATS = ("csv", "rtde", "parquet", "mat", "ros")


@dataclass(frozen=True, eq=False)
class Recipe:
    """What the numbers in files mean, and how they become a log in SI units.

    Attributes:
        source: file of the recipe.
        info: what the recorded numbers are, before they are brought to the joint side.
        columns: where `time` and the channels are; empty if the format's own names are used.
        units: of `time` (one) and of the channels, per joint.
        files: the files; empty if they are given by the caller.
        join: ``time`` for files one after the other, ``columns`` for files side by side.
        format: of the files, one of `FORMATS`; empty to go by suffix and content.
        style: of text tables.
        samples_in_rows: of MATLAB fields; None to find out.
        topic: of joint states in a ROS bag; empty for the only one.
        ratio: R in q_motor = R q_joint, or None.
        current_gain: polynomial per joint from current [A] to joint torque [N m], lowest power first; or None.
        sign, offset: per joint, q_model = sign * q + offset [rad or m].
        rows: first and last row to keep, from 1, or None.
        seconds: start and end of the part to keep, from the first sample [s], or None.
    """

    source: str
    info: LogInfo
    columns: Mapping[str, Columns] = field(default_factory=dict)
    units: Mapping[str, tuple[Unit, ...]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    join: str = "time"
    format: str = ""
    style: CsvStyle = field(default_factory=CsvStyle)
    samples_in_rows: bool | None = None
    topic: str = ""
    ratio: Array | None = None
    current_gain: tuple[tuple[float, ...], ...] | None = None
    sign: Array = field(default_factory=lambda: np.ones(1))
    offset: Array = field(default_factory=lambda: np.zeros(1))
    rows: tuple[int, int | None] | None = None
    seconds: tuple[float, float | None] | None = None

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe file, or one of armid's own by its name without suffix.

        Raises:
            LogError: the recipe cannot be used.
        """
        path = possible(path)
        try:
            if path.is_dir() and path.name not in recipe_names():
                raise LogError(str(path), "", "is a folder; name the recipe itself, a .yaml file")
            if path.suffix == "" and path.parent == Path() and not path.is_file():
                text, folder = _library_text(path.name), Path()
            else:
                text, folder = checked_file(path).read_text(encoding="utf-8"), path.parent
        except UnicodeDecodeError:
            raise LogError(str(path), "", "is not a text file; a recipe is a .yaml file") from None
        return cls.parse(text, str(path), folder)

    @classmethod
    def parse(cls, text: str, source: str = "recipe", folder: Path | None = None) -> Recipe:
        """Read a recipe from its text; file names in it are relative to `folder`."""
        from armid.logs.recipe_fields import recipe_from_fields

        try:
            return recipe_from_fields(read_fields(text, source), folder or Path())
        except DescriptionError as error:
            problem = error.problem if error.field else "is not a recipe; it needs at least joints and effort"
            raise LogError(error.source, error.field, problem) from None


def recipe_names() -> tuple[str, ...]:
    """Names of armid's own recipes."""
    names = (item.name for item in _library().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def _library() -> Any:
    return resources.files("armid.logs") / "recipes"


def _library_text(name: str) -> str:
    if name not in recipe_names():
        raise UnknownNameError("recipe", name, recipe_names())
    return str((_library() / f"{name}.yaml").read_text("utf-8"))
