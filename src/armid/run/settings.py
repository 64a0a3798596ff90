"""Everything that can be chosen about a run; the command line's flags and the settings file are made from this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError, DescriptionError

if TYPE_CHECKING:
    from armid.robot.schema import Fields


def _choice(default: Any, help: str, *, kind: type = str, many: bool = False, metavar: str | None = None) -> Any:
    """A field with what a flag and a settings file need to know about it."""
    return field(default=default, metadata={"help": help, "kind": kind, "many": many, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does. Names are those of the flags, with underscores.

    Lists are tuples; None means "as armid finds best" or "not wanted", as the help says.
    """

    robot: str
    links: int | None = _choice(None, "use only the first N links", kind=int, metavar="N")
    no_rotors: bool = _choice(False, "leave rotor inertias out", kind=bool)
    gravity: tuple[float, ...] | None = _choice(
        None, "gravity in the base frame, three numbers [m/s^2]", kind=float, many=True, metavar="G"
    )
    simplify: str | None = _choice(None, "zeros by symmetry: published or none", metavar="SET")
    # Your own logs instead of the virtual robot.
    log: tuple[str, ...] = _choice((), "logs of your own arm to identify from; no virtual robot then", many=True)
    validation: tuple[str, ...] = _choice(
        (),
        "other logs to validate with (without: the last part of each --log is kept for it)",
        many=True,
        metavar="LOG",
    )
    recipe: str | None = _choice(None, "what the columns of the logs mean: a recipe or its name", metavar="FILE")
    effort: str | None = _choice(None, "what was measured, for logs that do not say it", metavar="KIND")
    # Design and experiment on the virtual robot.
    criterion: str = _choice("d-optimal", "criterion of the design", metavar="NAME")
    harmonics: int = _choice(5, "harmonics of the excitation", kind=int, metavar="N")
    period: float = _choice(10.0, "its period [s]", kind=float, metavar="S")
    starts: int = _choice(4, "random starts of the design", kind=int, metavar="N")
    rate: float = _choice(150.0, "sample rate [Hz]", kind=float, metavar="HZ")
    periods: int = _choice(10, "recorded periods", kind=int, metavar="M")
    no_warmup: bool = _choice(False, "take the arm as warm", kind=bool)
    seed: int = _choice(0, "seed of everything random", kind=int)
    # Estimation.
    signals: str | None = _choice(None, "signal processing: a step's name or a YAML file", metavar="STEPS")
    method: str | None = _choice(None, "estimator, as in `armid identify`", metavar="NAME")
    friction: str = _choice("auto", "friction: auto, linear, or kinds of terms", metavar="LAW")
    prior: str | None = _choice(None, "prior, as FILE:STRENGTH", metavar="FILE:STRENGTH")
    # Use.
    to: tuple[str, ...] = _choice(
        ("urdf", "mjcf", "c", "python", "yaml"), "export formats (none: no export)", many=True, metavar="FORMAT"
    )
    track: str | None = _choice(
        None, "path to follow with the identified model on the virtual robot (none: no tracking)", metavar="PATH"
    )

    @property
    def virtual(self) -> bool:
        """Whether the virtual robot stands in for the arm."""
        return not self.log

    def to_data(self) -> dict[str, Any]:
        """As JSON or YAML."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


#: Fields that are flags: all but the robot.
CHOICES = tuple(f for f in fields(Settings) if f.name != "robot")


def load_settings(path: str | Path, **over: Any) -> Settings:
    """Settings of a YAML file; what is given beside it counts more.

    Args:
        path: the file; file names in it are relative to its folder.
        over: values that replace those of the file; None for "not given".

    Raises:
        DescriptionError: a key is unknown or has a wrong kind of value.
    """
    from armid.files import read_text
    from armid.robot.schema import read_fields

    path = Path(path)
    entries = read_fields(read_text(path), str(path))
    values: dict[str, Any] = {}
    if "robot" in entries:
        values["robot"] = _beside(path, str(entries.take("robot")))
    for choice in CHOICES:
        if choice.name in entries:
            values[choice.name] = _checked(entries, choice, path)
    entries.take("robot")
    for choice in CHOICES:
        entries.take(choice.name)
    entries.finish()
    values |= {name: value for name, value in over.items() if value is not None}
    if "robot" not in values:
        raise DescriptionError(str(path), "robot", "is missing; name the robot there or on the command line")
    return make_settings(values)


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Settings from values that may be None where nothing was said."""
    settings = Settings(**{name: value for name, value in values.items() if value is not None})
    formats = tuple(part for item in settings.to for part in item.split(",") if part)  # both grammars: a,b and a b
    settings = replace(settings, to=formats)
    for name in settings.validation:
        if name in settings.log:
            raise ArmidError(
                f"{name}: is given for identification and for validation; give another log for one of them"
            )
    if settings.validation and not settings.log:
        raise ArmidError("validation logs are given without logs to identify from; give those with --log")
    if settings.gravity is not None and len(settings.gravity) != 3:
        raise ArmidError(f"gravity has {len(settings.gravity)} numbers; give three")
    for name in ("harmonics", "starts", "periods", "period", "rate"):
        if not getattr(settings, name) > 0:
            raise ArmidError(f"{name} is {getattr(settings, name)}; it must be above zero")
    if settings.seed < 0:
        raise ArmidError(f"seed is {settings.seed}; it must be at least 0")
    return settings


def _checked(entries: Fields, choice: Any, path: Path) -> Any:
    """The value of one entry, of the right kind."""
    value, kind = entries.take(choice.name), choice.metadata["kind"]
    items = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not choice.metadata["many"]:
        entries.fail(choice.name, "must be one value, not a list")
    valid: Any = {float: (int, float)}.get(kind, kind)
    for item in items:
        if not isinstance(item, valid) or (isinstance(item, bool) and kind is not bool):
            words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
            entries.fail(choice.name, f"is {item!r}; it must be {words[kind]}")
    items = [kind(item) for item in items]
    if choice.name in ("log", "validation", "recipe", "signals", "prior"):
        items = [_beside(path, item) for item in items]
    return tuple(items) if choice.metadata["many"] else items[0]


def _beside(path: Path, name: str) -> str:
    """A file named relative to the settings file; other words stay as they are."""
    candidate = path.parent / name
    file = path.parent / name.rpartition(":")[0] if ":" in name else candidate
    return str(candidate) if name and file.is_file() else name


def default_of(choice: Any) -> Any:
    """Default value of a field."""
    return None if choice.default is MISSING else choice.default


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
