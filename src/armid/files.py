"""Files: text read and written as a whole, YAML read strictly, data checked against types."""

from __future__ import annotations

import json
import os
import re
import reprlib
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
import yaml

from armid._version import __version__
from armid.errors import ArmidError, DescriptionError, nearest

Kind = TypeVar("Kind")

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother = 2, 4, 4, 80, 80
_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "null"}
_WORDS |= {"array": "a list", "object": "a mapping of names to values"}


def read_text(path: str | Path) -> str:
    """Text of a file; a missing, unreadable or binary file is a DescriptionError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DescriptionError(str(path), "", "there is no such file") from None
    except IsADirectoryError:
        raise DescriptionError(str(path), "", "is a folder; name a file") from None
    except UnicodeDecodeError:
        raise DescriptionError(str(path), "", "is not a text file, which is needed here") from None
    except OSError as error:
        raise DescriptionError(str(path), "", f"cannot be read ({error.strerror})") from None


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically: afterwards the file is complete, or as it was before."""
    path = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArmidError(f"{path}: cannot be written ({error.strerror})") from None


def write_result(path: str | Path, form: str, data: Mapping[str, Any]) -> None:
    """Write a result as JSON, with its `format` and armid's version first."""
    content = {"format": form, "armid": __version__, **data}
    write_text(path, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_result(path: str | Path, kind: type[Kind], what: str, form: str, command: str) -> Kind:
    """Read what `write_result` wrote, checked against the type `kind`.

    Args:
        path: the file.
        kind: dataclass or msgspec structure that the file's entries make.
        what: what it holds, for messages: a fit.
        form: its entry ``format``.
        command: what writes such files: armid identify.
    """
    text = read_text(path)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ArmidError(f"{path}: is not JSON ({reason}); write it with {command}") from None
    if not isinstance(data, dict) or data.get("format") != form:
        raise ArmidError(f'{path}: is not {what} with format "{form}"; write it with {command}')
    entries = {name: value for name, value in data.items() if name not in ("format", "armid")}
    try:
        return checked(entries, kind, str(path))
    except DescriptionError as error:
        raise ArmidError(f"{error}; write the file again with {command}") from None


def checked(data: Any, kind: type[Kind], source: str) -> Kind:
    """Plain data as an instance of `kind`; a wrong type is a DescriptionError that names the field.

    Lists become arrays where the type asks for them, null in them NaN. Structures made with
    ``forbid_unknown_fields`` refuse unknown entries and name the nearest valid one.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_from_plain)
    except msgspec.ValidationError as error:
        raise DescriptionError(source, *_field_and_problem(str(error), kind)) from None
    except RecursionError:
        raise DescriptionError(source, "", "is nested too deeply") from None


def plain(value: Any) -> Any:
    """Data that JSON can hold: dataclasses as mappings, arrays and sets as lists, null for what is not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not np.isfinite(value) else value


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping that a YAML text holds: safe types only, no key twice, dates as text."""
    try:
        data = _StrictLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DescriptionError(source, where, f"is not valid YAML ({error.problem})") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error).splitlines()[0])
        raise DescriptionError(source, "", f"is not valid YAML ({words})") from None
    if not isinstance(data, dict):
        raise DescriptionError(source, "", "holds no fields; write each as `name: value`")
    return {str(key): value for key, value in data.items()}


def shown(value: object) -> str:
    """A value for an error message: short, on one line."""
    text = _SHORT.repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice and leaves dates as text."""


def _mapping_without_duplicates(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for (key_node, _), key in reversed(list(zip(node.value, keys, strict=True))):
        if not isinstance(key, str | int | float):
            raise yaml.constructor.ConstructorError(problem="a key is not a name", problem_mark=key_node.start_mark)
        if keys.count(key) > 1:
            raise yaml.constructor.ConstructorError(problem=f"{key!r} is given twice", problem_mark=key_node.start_mark)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_duplicates)


def _from_plain(kind: Any, value: Any) -> Any:
    """Arrays from nested lists, for msgspec."""
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} has no plain form")
    dtype = get_args(get_args(kind)[1])[0]
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("Expected a list of numbers, all rows of one length") from None


def _field_and_problem(message: str, kind: Any) -> tuple[str, str]:
    """A message of msgspec as the path of the field, counted from 1, and what is wrong in words."""
    text, _, path = message.partition(" - at ")
    field = re.sub(r"\[(\d+)\]", lambda m: f"[{int(m.group(1)) + 1}]", path.strip("`").removeprefix("$").lstrip("."))
    if match := re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", text):
        wanted = " or ".join(_WORDS.get(word.strip(), word.strip()) for word in match.group(1).split("|"))
        return field, f"must be {wanted}, not {_WORDS.get(match.group(2), match.group(2))}"
    if match := re.fullmatch(r"Object missing required field `([^`]+)`", text):
        return ".".join(filter(None, (field, match.group(1)))), "is missing"
    if match := re.fullmatch(r"Object contains unknown field `([^`]+)`", text):
        name = match.group(1)
        return ".".join(filter(None, (field, name))), f"is not a known entry{nearest(name, _names(kind))}"
    return field, text[:1].lower() + text[1:].replace("`", "'")


def _names(kind: Any, seen: frozenset[Any] = frozenset()) -> set[str]:
    """Names of all fields in a tree of types, for hints."""
    if kind in seen:
        return set()
    found: set[str] = set()
    try:
        own = {field.name: field.type for field in msgspec.structs.fields(kind)}
    except TypeError:
        own = {}
    for name, inner in own.items():
        found |= {name} | _names(inner, seen | {kind})
    for inner in get_args(kind):
        found |= _names(inner, seen | {kind}) if not isinstance(inner, str) else set()
    return found
