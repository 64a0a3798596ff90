"""Files: text read and written as a whole, YAML and XML read strictly, data checked against types, hashes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import reprlib
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import resources
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from xml.etree.ElementTree import Element, ParseError

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from armid._version import __version__
from armid.errors import ArmidError, DescriptionError, nearest
from armid.escaping import one_line

Kind = TypeVar("Kind")

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother = 2, 4, 4, 80, 80
_WORDS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "null"}
_WORDS |= {"array": "a list", "object": "a mapping of names to values"}
_AT = " - at "
_UNIONS = (Union, UnionType)
LARGEST = 1e100  # numbers beyond it are damage: their squares are not finite
LONGEST_TEXT = 1 << 28  # characters of a text file
LONGEST_YAML, LARGEST_YAML = 250_000, 200_000  # characters of a text, entries with all aliases written out


def read_text(path: str | Path) -> str:
    """Text of a file; a missing, unreadable, binary or endless file is a DescriptionError."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(LONGEST_TEXT + 1)
    except FileNotFoundError:
        raise DescriptionError(str(path), "", "there is no such file") from None
    except IsADirectoryError:
        raise DescriptionError(str(path), "", "is a folder; name a file") from None
    except UnicodeDecodeError:
        raise DescriptionError(str(path), "", "is not a text file, which is needed here") from None
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise DescriptionError(str(path), "", f"cannot be read ({reason})") from None
    if len(text) > LONGEST_TEXT:
        raise DescriptionError(str(path), "", f"has more than {LONGEST_TEXT >> 20} MB, too many for such a file")
    return text


def is_file(path: Path) -> bool:
    """Whether there is such a file; no for names that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def make_inside(folder: Path) -> Path:
    """Make a folder inside one that others may have written, where a link would lead elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        raise ArmidError(f"{folder}: is a link to another folder; remove the link")
    return folder


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` atomically: afterwards the file is complete, or as it was before."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))  # half a character, as in names of files


def write_csv(path: str | Path, columns: Mapping[str, NDArray[np.float64]]) -> None:
    """Write named columns of numbers as CSV."""
    text = io.StringIO()
    np.savetxt(text, np.column_stack(list(columns.values())), "%.10g", ",", header=",".join(columns), comments="")
    write_text(path, text.getvalue())


def write_bytes(path: str | Path, data: bytes) -> None:
    """The same with bytes."""
    try:
        with replacing(Path(path)) as made:
            made.write_bytes(data)
    except OSError as error:
        raise ArmidError(f"{path}: cannot be written ({error.strerror})") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place beside `path`, on the same disk, for its new content, which takes its place once it is complete."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "new"
        yield made
        with made.open("r+b") as file:
            os.fsync(file.fileno())
        made.replace(path)


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
        data = parse_json(text)
    except ValueError as error:
        raise ArmidError(f"{path}: is not JSON ({error}), so it is not {what}; write it with {command}") from None
    if not isinstance(data, dict) or data.get("format") != form:
        raise ArmidError(f'{path}: is not {what} with format "{form}"; write it with {command}')
    entries = {name: value for name, value in data.items() if name not in ("format", "armid")}
    try:
        return checked(entries, kind, str(path))
    except DescriptionError as error:
        raise ArmidError(f"{error}; write the file again with {command}") from None


def parse_json(text: str | bytes) -> Any:
    """What JSON text holds; ValueError where it is none, is nested too deeply, or has numbers beyond `LARGEST`."""
    try:
        return json.loads(text, parse_float=_in_range, parse_int=_in_range)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _in_range(text: str) -> float:
    value = float(text)
    if abs(value) > LARGEST:
        raise ValueError(f"{text[:20]} is larger than anything in mechanics")
    return int(text) if text.lstrip("-").isdigit() else value


def checked(data: Any, kind: type[Kind], source: str) -> Kind:
    """Plain data as an instance of `kind`; a wrong type is a DescriptionError that names the field.

    Lists become arrays where the type asks for them, null in them NaN; a type with a class method ``from_plain`` makes
    itself. Structures made with ``forbid_unknown_fields`` refuse unknown entries and name the nearest valid one.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_from_plain)
    except msgspec.ValidationError as error:
        raise DescriptionError(source, *_field_and_problem(str(error), data, kind)) from None
    except RecursionError:
        raise DescriptionError(source, "", "is nested too deeply") from None
    except UnicodeEncodeError:
        raise DescriptionError(source, "", "holds half of a character (a lone surrogate) in some text") from None


def convert(data: Any, kind: type[Kind]) -> Kind:
    """As `checked`, for the use of types that make themselves: a wrong type is a ValueError."""
    try:
        return msgspec.convert(data, kind, dec_hook=_from_plain)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None  # msgspec adds the path to a ValueError only


class FieldError(ValueError):
    """What is wrong with one field; raised while a structure is made, `checked` adds the path to the structure.

    Attributes:
        field: its path inside the structure, counted from 1: ``position[2]``.
        problem: what is wrong and what to do.
    """

    def __init__(self, field: str, problem: str) -> None:
        """Say what is wrong where."""
        self.field, self.problem = field, problem
        super().__init__(f"{problem}{_AT}`#.{field}`")


if TYPE_CHECKING:
    MaybeNaN = float
    Unbounded = float
else:

    class Unbounded(float):
        """A number of a result that may be infinite: JSON has no infinity, null stands for it."""

        @classmethod
        def from_plain(cls, value: object) -> Unbounded:
            """Read it."""
            return cls(np.inf if value is None else convert(value, float))

    class MaybeNaN(float):
        """A number of a result that is NaN where it has no meaning, for which null stands."""

        @classmethod
        def from_plain(cls, value: object) -> MaybeNaN:
            """Read it."""
            return cls(np.nan if value is None else convert(value, float))


def plain(value: Any) -> Any:
    """Data that JSON can hold: dataclasses as mappings, arrays and sets as lists, null for what is not finite."""
    if type(value) in (float, str, int, bool):  # most of all
        return None if type(value) is float and not isfinite(value) else value
    if hasattr(value, "to_plain"):
        return plain(value.to_plain())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return {shown: plain(getattr(value, name)) for name, shown in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        numbers = value.dtype.kind in "biuf" and bool(np.isfinite(value).all())
        return value.tolist() if numbers else plain(value.tolist())
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping that a YAML text holds: safe types only, no key twice, keys and dates as text, without nulls."""
    data = load_yaml(text, source)
    if not isinstance(data, dict):
        raise DescriptionError(source, "", "holds no fields; write each as `name: value`")
    return data


def load_yaml(text: str, source: str) -> Any:
    """What a YAML text holds, as `parse_yaml`; what would fill the memory or take for ever is refused unread."""
    if len(text) > LONGEST_YAML:
        raise DescriptionError(source, "", f"has {len(text)} characters; {LONGEST_YAML} are allowed for YAML")
    try:
        loader = _StrictLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded(node, {}) > LARGEST_YAML:
            raise DescriptionError(source, "", "has aliases that stand for millions of entries; write less")
        return _given(loader.construct_document(node), {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DescriptionError(source, where, f"is not valid YAML ({error.problem})") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else shown(str(error).splitlines()[0])
        raise DescriptionError(source, "", f"is not valid YAML ({words})") from None


def _expanded(node: yaml.Node, known: dict[int, float]) -> float:
    """How many entries a node has once its aliases are written out; without end where it holds itself."""
    if not isinstance(node, yaml.CollectionNode):
        return 1.0
    if id(node) not in known:
        known[id(node)] = np.inf
        parts = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
        known[id(node)] = 1.0 + sum(_expanded(part, known) for part in parts)
    return known[id(node)]


def _given(value: Any, done: dict[int, Any]) -> Any:
    """Mappings without entries that are null; shared parts stay shared, so that aliases cannot fill the memory."""
    if isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        raise ValueError("it holds half of a character")
    if not isinstance(value, dict | list):
        return value
    if id(value) not in done:
        if isinstance(value, list):
            done[id(value)] = [_given(entry, done) for entry in value]
        else:
            done[id(value)] = {str(key): _given(entry, done) for key, entry in value.items() if entry is not None}
    return done[id(value)]


def parse_xml(path: Path) -> Element:
    """Root element of an XML file: no entity expansion, no network."""
    import defusedxml.ElementTree
    from defusedxml.common import DefusedXmlException

    try:
        return defusedxml.ElementTree.fromstring(read_text(path).encode())
    except ParseError as error:
        line, column = error.position
        reason = str(error).split(":")[0]
        raise DescriptionError(str(path), f"line {line}, column {column}", f"is not valid XML ({reason})") from None
    except DefusedXmlException:
        raise DescriptionError(
            str(path), "", "declares XML entities, which are refused because they can exhaust memory; remove them"
        ) from None
    except (LookupError, ValueError) as error:
        raise DescriptionError(
            str(path), "", f"has an XML encoding that cannot be read ({error}); save as UTF-8"
        ) from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder and their names."""
    digest = hashlib.sha256()
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        for item in sorted(item for item in path.rglob("*") if item.is_file()):
            digest.update(item.relative_to(path).as_posix().encode())
            digest.update(item.read_bytes())
    except OSError as error:
        raise ArmidError(f"{path}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()


@cache
def code_hash(without: Collection[str] = ()) -> str:
    """SHA-256 of armid's own code and data, but some packages: with another method a result is another result."""
    digest = hashlib.sha256()
    root = Path(str(resources.files("armid")))
    for path in sorted(path for kind in ("*.py", "*.yaml") for path in root.rglob(kind)):
        if path.relative_to(root).parts[0] in without:
            continue
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def shown(value: object) -> str:
    """A value for an error message: short, on one line."""
    try:
        text = one_line(_SHORT.repr(value))
    except ValueError:  # Python does not print whole numbers of thousands of digits
        text = "a number with thousands of digits"
    return text if len(text) <= 100 else f"{text[:97]}..."


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice and leaves dates as text."""


def _mapping_without_duplicates(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float):
            raise yaml.constructor.ConstructorError(problem="a key is not a name", problem_mark=key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(problem=f"{key!r} is given twice", problem_mark=key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_duplicates)


def _from_plain(kind: Any, value: Any) -> Any:
    """Types that msgspec does not know: arrays from nested lists, and those that make themselves."""
    make = getattr(get_origin(kind) or kind, "from_plain", None)
    if make is not None:
        return make(value, *get_args(kind))
    if get_origin(kind) is not np.ndarray:
        raise NotImplementedError(f"{kind} has no plain form")
    dtype = get_args(get_args(kind)[1])[0]
    try:
        if np.asarray(value).dtype.kind not in "US":
            return np.array(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("must be a list of numbers, all rows of one length")


def _field_and_problem(message: str, data: Any, kind: Any) -> tuple[str, str]:
    """A message of msgspec as the path of the field, counted from 1, and what is wrong in words."""
    text, *paths = message.split(_AT)
    path = "".join(part.strip("`").removeprefix("$") for part in reversed(paths))
    before, mapping, _ = path.partition("[...]")
    if mapping:  # msgspec does not say which entry of a mapping it is: the first that cannot be converted
        entries, kinds = _reached(data, [kind], before)
        for name, value in entries.items() if isinstance(entries, Mapping) else ():
            try:
                convert(value, _union(_inner(kinds, name)))
            except ValueError as error:
                inner, problem = _field_and_problem(str(error), value, _union(_inner(kinds, name)))
                return _joined(before, name, inner), problem
    value, kinds = _reached(data, [kind], path)
    if match := re.fullmatch(r"Object (missing required|contains unknown) field `(.*)`", text, re.DOTALL):
        name, known = match.group(2), _fields(kinds)
        if match.group(1) == "missing required":
            return _joined(path, name), f"is missing{nearest(name, set(value) - set(known))}"
        hint = nearest(name, known) or f"; valid: {', '.join(sorted(known))}"
        return _joined(path, name), f"is not a known key{hint}"
    if match := re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)`", text):
        wanted = " or ".join(_WORDS.get(word.strip(), word.strip()) for word in match.group(1).split("|"))
        return _joined(path), f"must be {wanted}, not {shown(value)}"
    if match := re.match(r"Expected `array` of (?:at least )?length (\d+)", text):
        return _joined(path), f"must be a list of {match.group(1)} numbers"
    if re.match(r"Invalid (enum )?value", text):
        valid = [str(choice) for one in kinds if get_origin(one) is Literal for choice in get_args(one)]
        if not valid:  # a tag: it belongs to the structures around it
            around = _reached(data, [kind], path.rpartition(".")[0])[1]
            valid = [str(one.__struct_config__.tag) for one in around if hasattr(one, "__struct_config__")]
        hint = f"{nearest(str(value)[:80], valid)}; valid: {', '.join(valid)}"
        return _joined(path), f"is {shown(value)}{hint}"
    return _joined(path), text


def _joined(path: str, *more: str) -> str:
    """Path of a field for people: msgspec counts from 0, ours (after #) from 1 already."""
    first, _, ours = path.partition("#")
    counted = re.sub(r"\[(\d+)\]", lambda match: f"[{int(match.group(1)) + 1}]", first) + ours
    parts = [counted, *(name if name.isprintable() and len(name) < 80 else shown(name) for name in more)]
    return re.sub(r"\.(?=\[)", "", ".".join(part.strip(".") for part in parts if part))


def _reached(data: Any, kinds: list[Any], path: str) -> tuple[Any, list[Any]]:
    """What stands at a path of msgspec in the data, and the types that may be there."""
    kinds = _parts(kinds, data)
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path.partition("#")[0]):
        inside = _inner(kinds, name or int(index))
        try:
            data = data[name or int(index)]
        except (KeyError, IndexError, TypeError):
            data = None
        kinds = _parts(inside, data)
    return data, kinds


def _parts(kinds: Iterable[Any], data: Any) -> list[Any]:
    """Single types of unions; of structures with a tag the one that the data name, if they do."""
    flat: list[Any] = []
    for kind in kinds:
        flat += _parts(get_args(kind), data) if get_origin(kind) in _UNIONS else [kind]
    tags = {id(kind): kind.__struct_config__ for kind in flat if hasattr(kind, "__struct_config__")}
    named = [
        kind
        for kind in flat
        if id(kind) in tags and isinstance(data, Mapping) and data.get(tags[id(kind)].tag_field) == tags[id(kind)].tag
    ]
    return named or flat


def _union(kinds: list[Any]) -> Any:
    return Union[tuple(kinds)] if kinds else Any  # noqa: UP007 - the types are not known here


def _inner(kinds: list[Any], step: str | int) -> list[Any]:
    """Types inside types: of a field, of an entry of a mapping or of a list."""
    found: list[Any] = []
    for kind in kinds:
        own, args = _fields([kind]), [arg for arg in get_args(kind) if arg is not Ellipsis]
        if own:
            found += [own[step]] if step in own else []
        elif args:
            found.append(args[step] if isinstance(step, int) and step < len(args) else args[-1])
    return found


def _fields(kinds: list[Any]) -> dict[Any, Any]:
    """Names of the entries of structures, as files write them, and their types."""
    found: dict[Any, Any] = {}
    for kind in kinds:
        plain_kind = get_origin(kind) or kind  # of a generic structure
        if isinstance(plain_kind, type) and issubclass(plain_kind, msgspec.Struct):
            found |= {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
            tag = plain_kind.__struct_config__.tag_field
            found |= {tag: str} if tag else {}
        elif is_dataclass(kind):
            found |= get_type_hints(kind)
    return found
