"""Hashes that say what a result was made from."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from armid.errors import ArmidError


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
def code_hash() -> str:
    """SHA-256 of armid's own code and data: with another method an earlier result is another result."""
    digest = hashlib.sha256()
    root = Path(str(files("armid")))
    for path in sorted(path for kind in ("*.py", "*.yaml") for path in root.rglob(kind)):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
