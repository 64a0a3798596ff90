"""Finished arm-days on disk, each under the hash of its data and options."""

from __future__ import annotations

import zipfile
from pathlib import Path

from armid.errors import ArmidError
from armid.fleet.day import DAMAGED, ArmDay


class Store:
    """A folder of arm-days; what is in it need not be computed again.

    Attributes:
        folder: where they lie.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder, and find out now whether it can be written."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / ".writable"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise ArmidError(f"{folder}: cannot be written ({error.strerror}); choose another folder with -o") from None

    def has(self, key: str) -> bool:
        """Whether the arm-day of a key is there, and undamaged by its check sums."""
        path = self._path(key)
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() is None
        except (OSError, EOFError, ValueError, *DAMAGED):
            return False

    def get(self, key: str) -> ArmDay:
        """The arm-day of a key.

        Raises:
            ArmidError: it is not there, or damaged.
        """
        try:
            return ArmDay.load(self._path(key))
        except OSError as error:
            raise ArmidError(f"{self._path(key)}: cannot be read ({error.strerror})") from None

    def put(self, day: ArmDay) -> None:
        """Keep an arm-day; complete or not at all."""
        day.save(self._path(day.key))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"
