"""Comparison with what others say: nominal (CAD, URDF) inertia, data sheets, published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.errors import ArmidError, UnknownNameError
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.robot.robot import inertial_names
from armid.signals.dataset import Dataset
from armid.validation.metrics import percentage_accuracy, plain


@dataclass(frozen=True)
class ReferenceRow:
    """One parameter beside its reference.

    Attributes:
        name: of the parameter.
        value, sigma: estimate and its standard deviation.
        reference: what others say.
        accuracy: 100 (1 - |difference| / |reference|) [%], PA-10; NaN for a reference of zero.
        within_2_sigma: whether the reference lies within two standard deviations.
    """

    name: str
    value: float
    sigma: float
    reference: float
    accuracy: float
    within_2_sigma: bool

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {name: plain(value) for name, value in vars(self).items()}


def against_reference(fit: Fit, reference: Mapping[str, float]) -> tuple[ReferenceRow, ...]:
    """Estimates beside reference values.

    Args:
        fit: the estimates.
        reference: values by the names of the fit's parameters (``Izz1R``, or the column ``Izz1``); or of all inertial
            parameters, from which the groups are made.
    """
    base = fit.torque_model.model.base
    columns = dict(zip(fit.names, fit.columns, strict=True))
    values = {columns.get(name, name): value for name, value in reference.items()}
    if not set(values) <= set(fit.columns):
        unknown = set(values) - set(fit.torque_model.model.names) - set(fit.columns)
        if unknown:
            raise UnknownNameError("parameter", sorted(unknown)[0], fit.names)
        values = {
            kept: sum(coefficient * reference[name] for name, coefficient in group.terms)
            for kept, group in zip(base.kept, base.groups, strict=True)
            if all(name in reference for name, _ in group.terms)
        }
    rows = []
    for index, (name, column) in enumerate(columns.items()):
        if column in values:
            value, sigma, told = float(fit.values[index]), float(fit.sigma[index]), float(values[column])
            accuracy = float(percentage_accuracy(np.array([value]), np.array([told]))[0])
            rows.append(ReferenceRow(name, value, sigma, told, accuracy, abs(value - told) <= 2.0 * sigma))
    return tuple(rows)


def nominal_values(fit: Fit) -> dict[str, float] | None:
    """Inertial parameters that the robot's own file states; None if it states none."""
    if fit.robot.nominal_inertia is None:
        return None
    values: dict[str, float] = {}
    for link, inertia in enumerate(fit.robot.nominal_inertia, start=1):
        values |= dict(zip(inertial_names(link), inertia.tolist(), strict=True))
    return values


def nominal_fit(fit: Fit, data: Sequence[Dataset]) -> Fit | None:
    """The nominal inertia with the rotors and the friction that suit it best on these very data; None without one.

    That is more than the nominal model could know, so that it is no straw man.
    """
    values = nominal_values(fit)
    if values is None:
        return None
    inertia = {name: value for name, value in values.items() if name not in fit.robot.zero}
    known = {name: value for name, value in fit.robot.known.items() if name not in inertia}
    terms = tuple(term for term in fit.terms if not term.loaded)
    estimator = WeightedLeastSquares(
        known=inertia, terms=terms, delay_s=tuple(fit.delay_s), known_torque=fit.known_torque
    )
    try:
        return estimator.fit(replace(fit.robot, known=known), data)
    except ArmidError:
        return None
