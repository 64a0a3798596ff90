"""What is kept of one arm's recordings of one day: some tens of kilobytes, and no raw data."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.errors import ArmidError

FORMAT = "armid arm-day 1"
#: What reading a damaged archive may raise, beside the usual.
DAMAGED = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


@dataclass(frozen=True, eq=False)
class ArmDay:
    """One arm on one day, reduced.

    Attributes:
        robot: which arm, by the name of its partition (``robot=…``).
        date: ISO date, ``2026-11-15``.
        factor: compact factor of all usable recordings of the day; None if there were none.
        rms: of the residuals of the day's own least-squares fit, per joint [N m]; NaN where it could not be made.
        inflation: factor by which residuals that are correlated in time enlarge the variance of estimates, per joint,
            at least 1.
        temperature: mean over the day, per joint [°C]; NaN without a sensor.
        reversal: rms of the residuals shortly after changes of direction over the rms elsewhere, per joint; NaN where
            there were too few.
        samples: rows that were read.
        seconds: time that was recorded.
        findings: of the log doctor, each with ``code``, ``severity``, ``joint`` and ``what``.
        problems: recordings that could not be used, each with ``file`` and ``reason``.
        key: hash of the data and the options it was made from.
    """

    robot: str
    date: str
    factor: CompactFactor | None
    rms: Array
    inflation: Array
    temperature: Array
    reversal: Array
    samples: int
    seconds: float
    findings: tuple[dict[str, Any], ...] = ()
    problems: tuple[dict[str, Any], ...] = ()
    key: str = ""
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether there is anything to estimate from."""
        return self.factor is not None

    def to_bytes(self) -> bytes:
        """A NumPy archive without pickles."""
        arrays: dict[str, Any] = {
            "rms": self.rms,
            "inflation": self.inflation,
            "temperature": self.temperature,
            "reversal": self.reversal,
        }
        about: dict[str, Any] = {
            "format": FORMAT,
            "robot": self.robot,
            "date": self.date,
            "samples": self.samples,
            "seconds": self.seconds,
            "findings": list(self.findings),
            "problems": list(self.problems),
            "key": self.key,
            "about": self.about,
        }
        if self.factor is not None:
            about["factor"] = {
                "names": list(self.factor.names),
                "samples": self.factor.samples,
                "counts": list(self.factor.counts),
                "triangular": self.factor.triangular,
            }
            for joint, (columns, matrix) in enumerate(zip(self.factor.columns, self.factor.matrices, strict=True)):
                arrays[f"columns{joint}"], arrays[f"matrix{joint}"] = columns, matrix
        buffer = io.BytesIO()
        np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "arm-day") -> ArmDay:
        """Read what `to_bytes` wrote.

        Raises:
            ArmidError: it is something else, or damaged.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                about = json.loads(archive["about"].tobytes())
                if about.pop("format") != FORMAT:
                    raise ArmidError(f"{source}: was written by another version of armid; remove it")
                stated = about.pop("factor", None)
                factor = None
                if stated is not None:
                    joints = range(len(stated["counts"]))
                    factor = CompactFactor(
                        tuple(stated["names"]),
                        tuple(archive[f"columns{j}"] for j in joints),
                        tuple(archive[f"matrix{j}"] for j in joints),
                        stated["samples"],
                        stated["triangular"],
                        tuple(stated["counts"]),
                    )
                arrays = {name: archive[name] for name in ("rms", "inflation", "temperature", "reversal")}
            about["findings"], about["problems"] = tuple(about["findings"]), tuple(about["problems"])
            return cls(factor=factor, **arrays, **about)
        except (KeyError, ValueError, TypeError, OSError, EOFError, *DAMAGED) as error:
            raise ArmidError(f"{source}: is damaged or not an arm-day of armid ({error}); remove it") from None

    def save(self, path: Path) -> None:
        """Write it; the file is either complete or not there."""
        write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> ArmDay:
        """Read a file that `save` wrote."""
        return cls.from_bytes(path.read_bytes(), str(path))


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArmidError(f"{path}: cannot be written ({error.strerror})") from None
