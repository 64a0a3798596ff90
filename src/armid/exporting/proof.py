"""Proof of a written file: another program reads it, and its torque is compared with the fit's on random states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.exporting.arm import ExportError

TOLERANCE, TIGHT = 1e-9, 1e-10  # of the range of torque; the second for programs
ROUND_OFF = 2e-14  # of the sum of absolute terms that cancel: 90 times the precision of a double
_SMALLEST = 1e-3  # ranges of torque below this share of the largest count as that much


class ProofError(ExportError):
    """A written file does not give the fit's torque; nothing was kept of it."""


@dataclass(frozen=True)
class Proof:
    """The comparison of one file with the fit.

    Attributes:
        file: name of the file.
        against: program that read it; None if there was none.
        error: largest difference of torque over the range of that joint's torque; None if not proved.
        states: how many random states.
        tolerance: what would have been too much there: fixed, or more where large terms cancel (see `checked`).
        note: what was compared, or why not.
    """

    file: str
    against: str | None
    error: float | None
    states: int
    tolerance: float
    note: str


def relative_error(found: Array, wanted: Array) -> float:
    """Largest difference over the range of each column; ranges below 1e-3 of the largest count as that much."""
    return float(_column_errors(found, wanted).max())


def _column_errors(found: Array, wanted: Array) -> Array:
    return np.where(np.isfinite(found).all(), np.abs(found - wanted).max(axis=0) / _ranges(wanted), np.inf)


def _ranges(wanted: Array) -> Array:
    span = np.ptp(wanted, axis=0)
    return np.maximum(span, max(_SMALLEST * float(span.max(initial=0.0)), 1e-12))


def checked(
    path: Path,
    against: str,
    pairs: dict[str, tuple[Array, Array]],
    tolerance: float,
    note: str,
    terms: Mapping[str, Array] | None = None,
) -> Proof:
    """A proof from what was found and wanted, by name; raises if it fails.

    A double holds 16 digits of each term of a sum. Where terms are much larger than what is left of them, as with
    parameters that the data hardly determine, two right programs differ by more: up to `ROUND_OFF` of the sum of the
    terms' sizes, which is allowed where it exceeds the tolerance.

    Args:
        path: the file.
        against: who read it.
        pairs: found and wanted (states, columns), by name.
        tolerance: largest difference, as a share of each column's range.
        note: what was compared.
        terms: by the same names, largest sum (columns,) of the absolute terms that make up each column.
    """
    largest, allowed = -1.0, tolerance
    for name, (found, wanted) in pairs.items():
        errors, limits = _column_errors(found, wanted), np.full(wanted.shape[1], tolerance)
        if terms is not None and name in terms:
            limits = np.maximum(limits, ROUND_OFF * terms[name] / _ranges(wanted))
        worst = int(np.argmax(errors / limits))
        if not errors[worst] <= limits[worst]:
            raise ProofError(
                f"{path.name}: was not kept, because {against} finds another {name} in it than the fit has (by "
                f"{errors[worst]:.2g} of its range, {limits[worst]:.2g} allowed); please report this"
            )
        at = int(np.argmax(errors))
        if errors[at] > largest:
            largest, allowed = float(errors[at]), float(limits[at])
    return Proof(path.name, against, largest, len(next(iter(pairs.values()))[0]), allowed, note)
