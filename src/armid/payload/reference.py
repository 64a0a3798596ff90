"""What a payload is said to be, by CAD or a data sheet, beside what was estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.files import plain, read_text
from armid.payload.body import QUANTITIES, described, undescribed
from armid.robot.inertia import impossibility
from armid.robot.schema import Fields, read_fields

_TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")


@dataclass(frozen=True)
class ReferenceValue:
    """One quantity beside its reference.

    Attributes:
        name, unit: as in `QUANTITIES`.
        value, sigma: estimate and its standard deviation.
        reference: what was said.
        sigmas: difference in standard deviations.
        within_2_sigma: the test of Swevers et al., Table 3.
    """

    name: str
    unit: str
    value: float
    sigma: float
    reference: float
    sigmas: float
    within_2_sigma: bool

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {name: plain(value) for name, value in vars(self).items()}


def load_reference(path: str | Path) -> dict[str, float]:
    """Read a known payload: mass, and where known com and inertia about it, in the tool frame.

    A YAML or JSON file such as ``{mass: 9.579, com: [0.024, 0.09, -0.202], inertia: {xx: 0.612, yy: 0.063, …}}``, or
    what `armid payload -o` wrote.

    Returns:
        Values by the names of `QUANTITIES`, those that are known.
    """
    fields = read_fields(read_text(Path(path)), str(path))
    if fields.take("format") is not None:
        return _written(fields)
    values = {"m": fields.number("mass")}
    if values["m"] <= 0.0:
        fields.fail("mass", f"is {values['m']:g}; it must be above zero")
    if "com" in fields:
        values |= dict(zip(("c_x", "c_y", "c_z"), fields.vector("com", 3).tolist(), strict=True))
    if "inertia" in fields:
        section = fields.section("inertia")
        values |= {f"I{axes}": section.number(axes, 0.0 if axes[0] != axes[1] else None) for axes in _TENSOR}
        section.finish()
    fields.finish()
    if len(values) == len(QUANTITIES):
        reason = impossibility(undescribed(np.array([values[name] for name, _ in QUANTITIES])))
        if reason is not None:
            fields.fail("inertia", f"no body can have it, since {reason}; it must be about the centre of mass")
    return values


def _written(fields: Fields) -> dict[str, float]:
    """The values of a result that armid wrote."""
    if not str(fields.take("format")).startswith("armid payload"):
        fields.fail("format", "is not that of a payload; give mass, com and inertia, or what armid payload -o wrote")
    parameters = fields.checked_vector("parameters", fields.require("parameters"), 10)
    return dict(zip((name for name, _ in QUANTITIES), described(parameters).tolist(), strict=True))


def compared(values: Array, sigmas: Array, reference: Mapping[str, float] | ArrayLike) -> tuple[ReferenceValue, ...]:
    """Estimates (in the order of `QUANTITIES`) beside those reference values that are known."""
    told = reference if isinstance(reference, Mapping) else _named(reference)
    rows = []
    for (name, unit), value, sigma in zip(QUANTITIES, values.tolist(), sigmas.tolist(), strict=True):
        if name in told:
            known = float(told[name])
            away = abs(value - known) / sigma if sigma > 0.0 else float("inf")
            rows.append(ReferenceValue(name, unit, value, sigma, known, away, away <= 2.0))
    return tuple(rows)


def _named(parameters: ArrayLike) -> dict[str, float]:
    """Ten parameters in the tool frame, as quantities."""
    return dict(zip((name for name, _ in QUANTITIES), described(np.asarray(parameters, dtype=float)), strict=True))
