"""Everything that can be chosen about a run; the command line's flags and the settings file are made from this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from armid.errors import ArmidError, DescriptionError, nearest

SETTINGS = "settings.yaml"  # in the folder of a run
_FILES = ("log", "validation", "recipe", "signals", "prior")  # settings that can name files
_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool}


def _choice(default: Any, help: str, metavar: str = "") -> Any:
    """A field with what a flag needs to know about it."""
    return field(default=default, metadata={"help": help, "metavar": metavar})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does. Names are those of the flags, with underscores.

    Lists are tuples; None means "as armid finds best" or "not wanted", as the help says.
    """

    robot: str
    links: int | None = _choice(None, "use only the first N links", "N")
    no_rotors: bool = _choice(False, "leave rotor inertias out")
    gravity: tuple[float, ...] | None = _choice(None, "gravity in the base frame, three numbers [m/s^2]", "G")
    simplify: str | None = _choice(None, "zeros by symmetry: published or none", "SET")
    joints: tuple[str, ...] = _choice((), "the arm's joints in a URDF or MJCF of more than the arm", "NAME")
    # Your own logs instead of the virtual robot.
    log: tuple[str, ...] = _choice((), "logs of your own arm to identify from; no virtual robot then", "LOG")
    validation: tuple[str, ...] = _choice(
        (), "other logs to validate with (without: the last part of each --log is kept for it)", "LOG"
    )
    train: str | None = _choice(None, "part of each --log to identify from, such as 0:60%% or 0:30 [s]", "FROM:TO")
    validate: str | None = _choice(None, "part of each --log to validate with, such as 60%%:100%%", "FROM:TO")
    recipe: str | None = _choice(None, "what the columns of the logs mean: a recipe or its name", "FILE")
    effort: str | None = _choice(None, "what was measured, for logs that do not say it", "KIND")
    accept: tuple[str, ...] = _choice((), "errors of the log doctor to go on in spite of, by code", "CODE")
    # Design and experiment on the virtual robot.
    criterion: str = _choice("d-optimal", "criterion of the design", "NAME")
    harmonics: int = _choice(5, "harmonics of the excitation", "N")
    period: float = _choice(10.0, "its period [s]", "S")
    starts: int = _choice(4, "random starts of the design", "N")
    rate: float = _choice(150.0, "sample rate [Hz]", "HZ")
    periods: int = _choice(10, "recorded periods", "M")
    design: bool = _choice(False, "design an excitation where logs are given, too")
    no_warmup: bool = _choice(False, "take the arm as warm")
    seed: int = _choice(0, "seed of everything random", "N")
    # Estimation.
    signals: str | None = _choice(None, "signal processing: a step's name or a YAML file", "FILE")
    method: str | None = _choice(None, "estimator, as in `armid identify`", "NAME")
    friction: str | None = _choice(None, "friction: auto, linear or a law", "LAW")
    prior: str | None = _choice(None, "prior, as FILE:STRENGTH", "FILE:STRENGTH")
    until: tuple[str, ...] = _choice(
        (), "accuracy to go on for, such as mx2R 2%% or torque 1%%: half of a 95 %% interval", "GOAL"
    )
    rounds: int = _choice(6, "experiments at most for --until", "N")
    # Use.
    to: tuple[str, ...] = _choice(("urdf", "mjcf", "c", "python", "yaml"), "export formats (none: no export)", "FORMAT")
    track: str | None = _choice(
        None, "path to follow with the identified model on the virtual robot (none: no tracking)", "PATH"
    )

    @property
    def virtual(self) -> bool:
        """Whether the virtual robot stands in for the arm."""
        return not self.log

    def to_data(self) -> dict[str, Any]:
        """As JSON or YAML."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in data.items()}


class Choice(NamedTuple):
    """A setting as a flag: its name, help, type, what people give, its default, and whether it takes several values."""

    name: str
    help: str
    kind: type | None
    metavar: str
    default: Any
    many: bool


#: Settings that are flags: all but the robot.
CHOICES = tuple(
    Choice(
        f.name,
        f.metadata["help"],
        next((kind for word, kind in _KINDS.items() if word in str(f.type)), None),
        f.metadata["metavar"],
        f.default,
        "tuple" in str(f.type),
    )
    for f in fields(Settings)
    if f.name != "robot"
)


def load_settings(path: str | Path, **over: Any) -> Settings:
    """Settings of a YAML file; what is given beside it counts more.

    Args:
        path: the file; file names in it are relative to its folder.
        over: values that replace those of the file; None for "not given".

    Raises:
        DescriptionError: a key is unknown or has a wrong kind of value.
    """
    from armid.files import checked, parse_yaml, read_text

    path = Path(path)
    values = parse_yaml(read_text(path), str(path))
    known = [f.name for f in fields(Settings)]
    for name in values:
        if name not in known:
            raise DescriptionError(str(path), name, f"is not a known key{nearest(name, known)}")
    for choice in CHOICES:
        if choice.many and choice.name in values and not isinstance(values[choice.name], list):
            values[choice.name] = [values[choice.name]]
    given = {name: value for name, value in over.items() if value is not None}
    if values.get("robot", given.get("robot")) is None:
        raise DescriptionError(str(path), "robot", "is missing; name the robot there or on the command line")
    settings = checked({"robot": given.get("robot"), **values}, Settings, str(path))
    beside = {"robot": _beside(path, settings.robot)}
    for name in _FILES:
        value = getattr(settings, name)
        beside[name] = (
            tuple(_beside(path, item) for item in value) if isinstance(value, tuple) else _beside(path, value)
        )
    return make_settings({**settings.to_data(), **beside, **given})


def save_settings(settings: Settings, path: Path) -> None:
    """Write settings that `load_settings` reads; files are named relative to the folder where they are in it."""
    import yaml

    from armid.files import is_file, write_text

    home = path.parent.resolve()

    def placed(name: str) -> str:
        file, colon, rest = (name, "", "") if is_file(Path(name)) else name.rpartition(":")  # FILE:STRENGTH of a prior
        if not file or not is_file(Path(file)):
            return name
        full = Path(file).resolve()
        return str(full.relative_to(home) if full.is_relative_to(home) else full) + colon + rest

    data = {name: value for name, value in settings.to_data().items() if value not in (None, [], False)}
    for name in ("robot", *_FILES):
        if name in data:
            given = data[name]
            data[name] = [placed(item) for item in given] if isinstance(given, list) else placed(given)
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    if not is_file(path) or path.read_text("utf-8") != text:
        write_text(path, text)


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Settings from values that may be None where nothing was said."""
    given: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in values.items() if v is not None
    }
    settings = Settings(**given)
    formats = tuple(part for item in settings.to for part in item.split(",") if part)  # both grammars: a,b and a b
    settings = replace(settings, to=formats)
    for name in settings.validation:
        if name in settings.log:
            raise ArmidError(
                f"{name}: is given for identification and for validation; give another log for one of them"
            )
    if settings.validation and not settings.log:
        raise ArmidError("validation logs are given without logs to identify from; give those with --log")
    if (settings.train is None) != (settings.validate is None) or (settings.train and settings.validation):
        raise ArmidError("parts of logs: give both, --train and --validate, and no --validation")
    if settings.gravity is not None and len(settings.gravity) != 3:
        raise ArmidError(f"gravity has {len(settings.gravity)} numbers; give three")
    for name in ("harmonics", "starts", "periods", "period", "rate", "rounds"):
        if not getattr(settings, name) > 0:
            raise ArmidError(f"{name} is {getattr(settings, name)}; it must be above zero")
    if settings.seed < 0:
        raise ArmidError(f"seed is {settings.seed}; it must be at least 0")
    return settings


def _beside(path: Path, name: Any) -> Any:
    """A file named relative to the settings file; other words stay as they are."""
    from armid.files import is_file

    if not name:
        return name
    file = path.parent / (name.rpartition(":")[0] if ":" in name else name)
    return str(path.parent / name) if is_file(file) else name
