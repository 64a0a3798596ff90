"""Writing logs. A file is either complete or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from armid.errors import MissingExtraError, nearest
from armid.logs.csv_file import write_csv
from armid.logs.log import Log, LogError, LogStream
from armid.logs.naming import ordered
from armid.logs.parquet_file import write_parquet
from armid.logs.ros import write_mcap
from armid.logs.table import possible

_WRITERS = {".parquet": write_parquet, ".csv": write_csv, ".mcap": write_mcap}
_EXTRAS = {".parquet": ("pyarrow", "parquet"), ".mcap": ("rosbags", "ros")}  # a module and the extra that brings it


def write_log(log: Log | LogStream, path: str | Path) -> None:
    """Write a log as Parquet, CSV or MCAP, by the suffix of `path`; it reads back exactly.

    A stream is written block by block. An existing file is replaced once the new one is complete.

    Raises:
        LogError: the suffix is unknown, the log is empty, or the file cannot be written.
        MissingExtraError: Parquet needs the extra ``parquet``, MCAP the extra ``ros``.
    """
    path = check_target(path)
    suffix = path.suffix.lower()
    stream = log if isinstance(log, LogStream) else _as_stream(log)
    channels = ordered(stream.channels)
    try:
        with _temporary_folder(path) as folder:
            made = folder / "log"
            if suffix == ".mcap":
                made = write_mcap(stream, channels, made)
            else:
                _WRITERS[suffix](stream, channels, made)
            _put_in_place(made, path)
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


@contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path`, on the same disk, so that the finished file only has to be renamed."""
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(made: Path, path: Path) -> None:
    with made.open("r+b") as file:
        os.fsync(file.fileno())
    umask = os.umask(0)
    os.umask(umask)
    made.chmod(0o666 & ~umask)
    made.replace(path)
