"""Reading and writing logs: which file is in which format, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from armid.errors import MissingExtraError, nearest
from armid.files import replacing
from armid.logs import csv_file, mat_file, parquet_file, ros  # noqa: F401  these enter their readers
from armid.logs.convert import plain_stream, recipe_stream, without_effort
from armid.logs.csv_file import write_csv
from armid.logs.log import EFFORTS, Log, LogError, LogInfo, LogStream, one_after_the_other
from armid.logs.parquet_file import write_parquet
from armid.logs.recipe import Recipe
from armid.logs.ros import write_mcap
from armid.logs.table import READERS, Table, checked_file, formats, ordered, possible, split_names
from armid.progress import report_progress

Paths = str | Path | Sequence[str | Path]


def read_log(path: Paths, recipe: str | Path | Recipe | None = None, *, effort: str | None = None) -> Log:
    """Read a whole log.

    Args:
        path: a file in one of armid's own formats (.parquet, .csv, .mcap), a UR RTDE recording, a ROS 2 bag, or a
            recipe (.yaml) that names its files. With `recipe` also any CSV, Parquet or MATLAB file, or several.
        recipe: what the numbers mean: a recipe, its file, or the name of one of armid's own.
        effort: what was measured as effort, for a file that does not say it: ``joint torque``, ``motor torque``,
            ``current`` or ``none``. In a ROS bag it is joint torque unless something else is given.

    Returns:
        The log in SI units.

    Raises:
        LogError: a file cannot be used; the message says where and what to do.
        MissingExtraError: Parquet needs the extra ``parquet``, ROS bags and MCAP need ``ros``.
    """
    return open_log(path, recipe, effort=effort).read()


def read_copy(path: str | Path) -> Log:
    """Read a log that armid has written into a folder of its own, under the name of the file it was made from."""
    log = read_log(path)
    return log.with_channels({}, source=str(log.info.history.get("origin", log.info.source)))


def read_logs(
    paths: Sequence[str | Path], recipe: str | Path | Recipe | None = None, *, effort: str | None = None
) -> list[Log]:
    """One log for each file, or one for all of them where the recipe puts files side by side; as `read_log` else."""
    logs = []
    for number, stream in enumerate(open_logs(paths, recipe, effort=effort)):
        report_progress(f"reading {stream.info.source}", number / len(paths))
        logs.append(stream.read())
    return logs


def open_logs(
    paths: Sequence[str | Path], recipe: str | Path | Recipe | None = None, *, effort: str | None = None
) -> list[LogStream]:
    """The same as `read_logs`, each opened to be read block by block."""
    recipe = Recipe.load(recipe) if isinstance(recipe, str | Path) else recipe
    groups = log_groups(paths, recipe)
    return [open_log(group if recipe is not None else group[0], recipe, effort=effort) for group in groups]


def log_groups(paths: Sequence[str | Path], recipe: Recipe | None) -> list[list[str | Path]]:
    """Files that make one log each."""
    beside = recipe is not None and recipe.join == "columns"
    return [list(paths)] if beside and paths else [[path] for path in paths]


def open_log(path: Paths, recipe: str | Path | Recipe | None = None, *, effort: str | None = None) -> LogStream:
    """Open a log to read it block by block; arguments and errors are those of `read_log`."""
    paths = [possible(item) for item in ([path] if isinstance(path, str | Path) else path)]
    if not paths:
        raise LogError("", "", "there is no file to read")
    if recipe is None and len(paths) == 1 and paths[0].suffix.lower() in (".yaml", ".yml"):
        recipe = Recipe.load(paths[0])
        if not recipe.files:
            raise LogError(recipe.source, "files", "is missing; name the files there, or give them beside the recipe")
        paths = [possible(item) for item in recipe.files]
    if recipe is not None:
        recipe = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        if effort is not None and effort != recipe.info.effort:
            raise LogError(recipe.source, "effort", f"is {recipe.info.effort!r} there, but {effort!r} is asked for")
        tables = [_with_recipe(item, recipe) for item in paths]
        return recipe_stream([tables] if recipe.join == "columns" else [[table] for table in tables], recipe)
    if effort is not None and effort not in EFFORTS:
        raise LogError(str(paths[0]), "effort", f"is {effort!r}; use one of: {', '.join(EFFORTS)}")
    return one_after_the_other([_without_recipe(item, effort) for item in paths], [str(item) for item in paths])


def column_names(path: str | Path) -> tuple[str, ...]:
    """Names of the columns of a file, for which no recipe is needed; numbers from 1 where it has no names."""
    return _reader(possible(path)).open(possible(path), None).names


def _reader(path: Path) -> type[Table]:
    """The reader by content, or by suffix where the content does not tell."""
    if path.is_dir():
        if (path / "metadata.yaml").exists():
            return READERS["ros"]
        raise LogError(str(path), "", "is a folder without metadata.yaml, so not a ROS 2 bag; give a log file")
    with checked_file(path).open("rb") as file:
        start = file.read(16)
    suffix = path.suffix.lower()
    readers = READERS.values()
    found = next((reader for reader in readers if start.startswith(reader.starts or b"\0none")), None)
    found = found or next((reader for reader in readers if suffix in reader.suffixes and suffix != ".csv"), None)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if found is None and (text.startswith((b"<", b"{")) or (suffix == ".json" and text.startswith(b"["))):
        what = "XML, such as a robot description," if text.startswith(b"<") else "JSON, such as a plan or a fit,"
        raise LogError(str(path), "", f"is {what} not a log; give a log ({formats()}) or a recipe")
    return found or READERS["csv"]


def table_of(path: Path) -> Table:
    """The table in a file, as it is without a recipe."""
    return _reader(path).open(path, None)


def _with_recipe(path: Path, recipe: Recipe) -> Table:
    by_content = _reader(path) if path.is_dir() or not recipe.format else None
    reader = READERS[recipe.format] if recipe.format else by_content
    assert reader is not None
    return reader.open(path, recipe)


def _without_recipe(path: Path, effort: str | None) -> LogStream:
    table = table_of(path)
    info = table.info
    if info is None:
        return _named(table, effort)
    if effort is not None and effort != info.effort:
        raise LogError(table.source, "effort", f"is {info.effort!r} in the file, but {effort!r} is asked for")
    return plain_stream(table, table.places(info.joints), info)


def _named(table: Table, effort: str | None) -> LogStream:
    """A table with columns named as ours are, or joint states of a ROS bag: all is known but perhaps the effort."""
    joints, channels = split_names(table.names)
    if not joints or "time" not in table.names:
        there = ", ".join(name[:80] for name in table.names[:40]) or "none that is numeric"
        problem = f"needs a recipe that says which {table.part} is what; its {table.part}s are: {there}"
        raise LogError(table.source, "", problem)
    if "effort" in channels:
        effort = effort or table.stated_effort or None
    if effort is None and "effort" in channels:
        problem = (
            f"is not explained in the file; say what was measured, in a recipe or as `effort`: {', '.join(EFFORTS)}"
        )
        raise LogError(table.source, "effort", problem)
    effort = effort or ("current" if "current" in channels else "none")
    places = without_effort(table.places(joints), effort)
    if not set(places) - {"time"}:
        raise LogError(table.source, "", "holds no channel that can be used")
    return plain_stream(table, places, LogInfo(joints, effort, source=table.source, history=dict(table.history)))


_WRITERS = {".parquet": write_parquet, ".csv": write_csv, ".mcap": write_mcap}
_EXTRAS = {".parquet": ("pyarrow", "parquet"), ".mcap": ("rosbags", "ros")}  # a module and the extra that brings it


def write_log(log: Log | LogStream, path: str | Path) -> None:
    """Write a log as Parquet, CSV or MCAP, by the suffix of `path`; it reads back exactly, named after the file.

    A stream is written block by block. An existing file is replaced once the new one is complete.

    Raises:
        LogError: the suffix is unknown, the log is empty, or the file cannot be written.
        MissingExtraError: Parquet needs the extra ``parquet``, MCAP the extra ``ros``.
    """
    path = check_target(path)
    stream = log if isinstance(log, LogStream) else _as_stream(log)
    channels = ordered(stream.channels)
    try:
        with replacing(path) as made:
            _WRITERS[path.suffix.lower()](stream, channels, made)
    except OSError as error:
        raise LogError(str(path), "", f"cannot be written ({error.strerror or error})") from None


def check_target(path: str | Path) -> Path:
    """The path, if `write_log` can write there: refused are unknown suffixes and missing folders and extras."""
    path = possible(path)
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        hint = nearest(suffix, _WRITERS)
        raise LogError(str(path), "", f"has the suffix {suffix!r}{hint or ';'} use one of: {', '.join(_WRITERS)}")
    if suffix in _EXTRAS and find_spec(_EXTRAS[suffix][0]) is None:
        raise MissingExtraError(f"writing {suffix[1:].upper()}", _EXTRAS[suffix][1])
    if not path.absolute().parent.is_dir():
        raise LogError(str(path), "", "cannot be written (there is no such folder)")
    return path


def _as_stream(log: Log) -> LogStream:
    def blocks(size: int) -> Iterator[Log]:
        for start in range(0, len(log), size):
            yield log.rows(slice(start, start + size))

    return LogStream(log.info, tuple(log.channels), blocks)
