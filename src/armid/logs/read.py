"""Reading logs: which file is in which format, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from armid.logs.apply import named_places, plain_stream, recipe_stream
from armid.logs.csv_file import CsvTable, is_rtde, rtde_columns, rtde_info
from armid.logs.log import EFFORTS, Log, LogError, LogInfo
from armid.logs.mat_file import MatTable
from armid.logs.naming import split_names
from armid.logs.parquet_file import ParquetTable
from armid.logs.recipe import Recipe
from armid.logs.ros_bag import open_bag
from armid.logs.stream import LogStream, one_after_the_other
from armid.logs.table import Table, checked_file, possible
from armid.progress import report_progress

Paths = str | Path | Sequence[str | Path]
_SUFFIXES = {".parquet": "parquet", ".mcap": "ros", ".db3": "ros", ".mat": "mat"}
_STARTS = {
    b"PAR1": "parquet",
    b"\x89MCAP": "ros",
    b"SQLite format 3": "ros",
    b"MATLAB 5.0": "mat",
    b"MATLAB 7.3": "mat",
    b"\x89HDF": "mat",
}


def read_log(path: Paths, recipe: str | Path | Recipe | None = None, *, effort: str | None = None) -> Log:
    """Read a whole log.

    Args:
        path: a file in one of armid's own formats (.parquet, .csv, .mcap), a UR RTDE recording, a ROS 2 bag, or a
            recipe (.yaml) that names its files. With `recipe` also any CSV, Parquet or MATLAB file, or several.
        recipe: what the numbers mean: a recipe, its file, or the name of one of armid's own.
        effort: what was measured as effort, for a file that does not say it (a ROS bag): ``joint torque``,
            ``motor torque``, ``current`` or ``none``.

    Returns:
        The log in SI units.

    Raises:
        LogError: a file cannot be used; the message says where and what to do.
        MissingExtraError: Parquet needs the extra ``parquet``, ROS bags and MCAP need ``ros``.
    """
    return open_log(path, recipe, effort=effort).read()


def read_logs(
    paths: Sequence[str | Path], recipe: str | Path | Recipe | None = None, *, effort: str | None = None
) -> list[Log]:
    """One log for each file, or one for all of them where the recipe puts files side by side; as `read_log` else."""
    recipe = Recipe.load(recipe) if isinstance(recipe, str | Path) else recipe
    logs = []
    for number, group in enumerate(log_groups(paths, recipe)):
        report_progress(f"reading {group[0]}", number / len(paths))
        logs.append(read_log(group if recipe is not None else group[0], recipe, effort=effort))
    return logs


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


def _format(path: Path) -> str:
    """The format by content, or by suffix where the content does not tell."""
    if path.is_dir():
        if (path / "metadata.yaml").exists():
            return "ros"
        raise LogError(str(path), "", "is a folder without metadata.yaml, so not a ROS 2 bag; give a log file")
    with checked_file(path).open("rb") as file:
        start = file.read(16)
    found = next((name for magic, name in _STARTS.items() if start.startswith(magic)), None)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if found is None and (text.startswith((b"<", b"{")) or (path.suffix.lower() == ".json" and text.startswith(b"["))):
        what = "XML, such as a robot description," if text.startswith(b"<") else "JSON, such as a plan or a fit,"
        raise LogError(str(path), "", f"is {what} not a log; give a .parquet, .csv, .mcap or .mat file, or a recipe")
    return found or _SUFFIXES.get(path.suffix.lower(), "csv")


def _with_recipe(path: Path, recipe: Recipe) -> Table:
    layout = recipe.format or _format(path)
    if layout == "parquet":
        return ParquetTable(path)
    if layout == "mat":
        return MatTable(path, recipe.samples_in_rows)
    if layout == "ros":
        _format(path)
        return open_bag(path, recipe.topic, recipe.info.joints, own=False)
    table = CsvTable(path, recipe.style)
    if layout == "rtde" and not is_rtde(table):
        table.fail_missing("timestamp" if "timestamp" not in table.names else "actual_q_0", "format")
    return table


def _without_recipe(path: Path, effort: str | None) -> LogStream:
    layout = _format(path)
    if layout == "mat":
        there = ", ".join(MatTable(path).names[:40]) or "none that is numeric"
        raise LogError(str(path), "", f"needs a recipe that says which field is what; its fields are: {there}")
    openers: dict[str, Callable[[Path], Table]] = {"ros": open_bag, "parquet": ParquetTable, "csv": CsvTable}
    table = openers[layout](path)
    if table.info is not None:
        return _own(table, table.info, effort)
    if is_rtde(table):
        return _rtde(table, effort)
    return _named(table, effort)


def _own(table: Table, info: LogInfo, effort: str | None) -> LogStream:
    """A file that armid wrote."""
    if effort is not None and effort != info.effort:
        raise LogError(table.source, "effort", f"is {info.effort!r} in the file, but {effort!r} is asked for")
    return plain_stream(table, named_places(table, info.joints), info)


def _rtde(table: Table, effort: str | None) -> LogStream:
    info = rtde_info(table)
    if effort is not None and effort != info.effort:
        raise LogError(table.source, "effort", f"is {info.effort!r} in RTDE recordings; use a recipe for other columns")
    names = rtde_columns(table)
    places = {key: [index for name in value for index in table.find(name, key)] for key, value in names.items()}
    return plain_stream(table, {key: list(value) for key, value in places.items()}, info)


def _named(table: Table, effort: str | None) -> LogStream:
    """A table with columns named as ours are, or joint states of a ROS bag: all is known but the effort."""
    joints, channels = split_names(table.names)
    if not joints or "time" not in table.names:
        there = ", ".join(table.names[:40])
        raise LogError(table.source, "", f"needs a recipe that says which column is what; its columns are: {there}")
    if effort is None and "effort" in channels:
        problem = (
            f"is not explained in the file; say what was measured, in a recipe or as `effort`: {', '.join(EFFORTS)}"
        )
        raise LogError(table.source, "effort", problem)
    places = named_places(table, joints)
    effort = effort or ("current" if "current" in channels else "none")
    if effort == "current" and "current" not in places and "effort" in places:
        places["current"] = places["effort"]
    if effort in ("current", "none"):
        places.pop("effort", None)
    if not set(places) - {"time"}:
        raise LogError(table.source, "", "holds no channel that can be used")
    return plain_stream(table, places, LogInfo(joints, effort, source=table.source, history=dict(table.history)))
