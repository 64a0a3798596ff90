"""The fit: estimated parameters with their covariance, and everything needed to use them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from armid._version import __version__
from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.dynamics.model import Motion
from armid.estimation.identifiability import Identifiability
from armid.files import write_text
from armid.robot.robot import Robot
from armid.robot.schema import read_result
from armid.robot.serial import robot_from_data, robot_to_data
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque
from armid.torque.model import TorqueModel

FORMAT = "armid fit 1"


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted torque.

    Attributes:
        torque: (samples, joints) [N m].
        sigma: standard deviation of the prediction that follows from the parameters' covariance, (samples, joints).
    """

    torque: Array
    sigma: Array


@dataclass(frozen=True, eq=False)
class Fit:
    """What an estimator returns.

    Attributes:
        robot: the robot, with the parameters that were known.
        columns: regressor columns of the estimated parameters: base parameters (by the parameter that names the group),
            then friction terms. `names` are those for people and files.
        values: estimates.
        covariance: of the estimates; what it accounts for is said in `notes`.
        terms: friction terms beyond the model's own.
        load_values: base parameters that make the load torque of load terms; None without such terms.
        known_torque: torque that was known beforehand; None if there was none.
        delay_s: how much torque lags motion, per joint.
        residual_rms: per joint, over the rows that counted [N m].
        noise: standard deviation of the torque's measured noise per joint [N m]; None if it was not measured.
        standard_parameters: a full, physically consistent parameter set with the same meaning as `values`, by name;
            None if the method does not give one.
        factor: compact factor of the data: a prior, physical consistency or more data need nothing else.
        weights: 1 / variance per joint that the estimate used.
        identifiability: what the data determine.
        method: name of the estimator.
        options: its options, and those of the command.
        pipeline: the signal processing, as data; validation uses the same.
        notes: what was chosen and found, in sentences.
        history: armid's version, hashes and origins of the data.
    """

    robot: Robot
    columns: tuple[str, ...]
    values: Array
    covariance: Array
    terms: tuple[FrictionTerm, ...]
    load_values: Mapping[str, float] | None
    known_torque: KnownTorque | None
    delay_s: Array
    residual_rms: Array
    noise: Array | None
    standard_parameters: Mapping[str, float] | None
    factor: CompactFactor
    weights: Array
    identifiability: Identifiability
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    pipeline: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def torque_model(self) -> TorqueModel:
        """The model whose parameters these are."""
        return TorqueModel(self.robot, terms=self.terms, load_values=self.load_values, known_torque=self.known_torque)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Estimated parameters; one that stands for a group carries an R: ``Izz1R``."""
        return self.torque_model.labels

    @property
    def sigma(self) -> Array:
        """Standard deviations of the estimates."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlation(self) -> Array:
        """Correlation matrix of the estimates."""
        sigma = np.where(self.sigma > 0.0, self.sigma, 1.0)
        return np.asarray(self.covariance / np.outer(sigma, sigma))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the confidence intervals."""
        reach = float(norm.ppf(0.5 + 0.5 * level)) * self.sigma
        return self.values - reach, self.values + reach

    def predict(self, motion: Motion, *, sigma: bool = True) -> Prediction:
        """Torque of a motion, what was known beforehand included, not delayed."""
        torque = self.torque_model.total_torque(motion, self.values)
        spread = np.zeros_like(motion.q)
        for first in range(0, len(motion.q) if sigma else 0, 4096):
            part = slice(first, first + 4096)
            regressor = self.torque_model.regressor(Motion(*(array[part] for array in motion)))
            variance = np.einsum("tjp,pq,tjq->tj", regressor, self.covariance, regressor, optimize=True)
            spread[part] = np.sqrt(np.maximum(variance, 0.0))
        return Prediction(torque, spread)

    def expression(self, name: str) -> str:
        """A parameter (by `names` or `columns`) in words: the group it stands for, or its own name."""
        return self._expressions.get(name, name)

    @cached_property
    def _expressions(self) -> dict[str, str]:
        base = self.torque_model.model.base
        words = {group.name: group.expression for group in base.groups}
        return {**words, **dict(zip(base.kept, words.values(), strict=True))}

    def summary(self) -> str:
        """A table for people."""
        lines = [f"{self.robot.name}: {len(self.names)} parameters, {self.method}", self.identifiability.verdict]
        lower, upper = self.interval()
        width = max(len(name) for name in self.names)
        units = self.torque_model.units
        for i, name in enumerate(self.names):
            mark = "" if self.identifiability.classes[i] == "determined" else f"  {self.identifiability.classes[i]}"
            half = 0.5 * (upper[i] - lower[i])
            lines.append(f"  {name:<{width}} {self.values[i]:>12.5g} ± {half:<9.2g} {units[i]}{mark}")
        noise = "" if self.noise is None else f"; noise {_list(self.noise)}"
        lines.append(f"residual rms per joint [N m]: {_list(self.residual_rms)}{noise}")
        if np.any(self.delay_s):
            lines.append(f"torque lags motion by {_list(1e3 * self.delay_s)} ms")
        return "\n".join([*lines, *self.notes])

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_text(Path(path), json.dumps(self.to_data(), indent=1, ensure_ascii=False) + "\n")

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        lower, upper = self.interval()
        classes, units = self.identifiability.classes, self.torque_model.units
        parameters = [
            {
                "name": name,
                "expression": self.expression(name),
                "value": float(self.values[i]),
                "sigma": float(self.sigma[i]),
                "interval_95": [float(lower[i]), float(upper[i])],
                "class": classes[i],
                "unit": units[i],
            }
            for i, name in enumerate(self.names)
        ]
        return {
            "format": FORMAT,
            "armid": __version__,
            "method": self.method,
            "parameters": parameters,
            "residual_rms": self.residual_rms.tolist(),
            "noise": None if self.noise is None else self.noise.tolist(),
            "standard_parameters": None if self.standard_parameters is None else dict(self.standard_parameters),
            "terms": [asdict(term) for term in self.terms],
            "load_values": None if self.load_values is None else dict(self.load_values),
            "known_torque": None if self.known_torque is None else self.known_torque.to_data(),
            "delay_s": self.delay_s.tolist(),
            "condition_number": self.identifiability.condition,
            "identifiability": {
                "singular_values": self.identifiability.singular_values.tolist(),
                "combinations": list(self.identifiability.combinations),
                "poor": self.identifiability.poor,
                "verdict": self.identifiability.verdict,
            },
            "weights": self.weights.tolist(),
            "covariance": self.covariance.tolist(),
            "factor": _factor_to_data(self.factor),
            "options": dict(self.options),
            "pipeline": [dict(step) for step in self.pipeline],
            "notes": list(self.notes),
            "history": dict(self.history),
            "robot": robot_to_data(self.robot),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Fit:
        """Inverse of `to_data`."""
        parameters = data["parameters"]
        judged = data["identifiability"]
        load, extra, noise = data["load_values"], data["known_torque"], data["noise"]
        return cls(
            robot=robot_from_data(data["robot"]),
            columns=tuple(data["factor"]["names"]),
            values=np.array([p["value"] for p in parameters]),
            covariance=np.array(data["covariance"]),
            terms=tuple(FrictionTerm(t["law"], int(t["joint"]), tuple(t["shapes"])) for t in data["terms"]),
            load_values=load,
            known_torque=None if extra is None else KnownTorque.from_data(extra),
            delay_s=np.array(data["delay_s"]),
            residual_rms=np.array(data["residual_rms"]),
            noise=None if noise is None else np.array(noise),
            standard_parameters=data["standard_parameters"],
            factor=_factor_from_data(data["factor"]),
            weights=np.array(data["weights"]),
            identifiability=Identifiability(
                singular_values=np.array(judged["singular_values"]),
                condition=float(data["condition_number"]),
                classes=tuple(p["class"] for p in parameters),
                combinations=tuple(judged["combinations"]),
                poor=bool(judged["poor"]),
                verdict=judged["verdict"],
            ),
            method=data["method"],
            options=data["options"],
            pipeline=tuple(data["pipeline"]),
            notes=tuple(data["notes"]),
            history=data["history"],
        )

    def with_notes(self, *notes: str) -> Fit:
        """The fit with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def load_fit(path: str | Path) -> Fit:
    """Read a fit that `Fit.save` wrote."""
    return read_result(path, "a fit", FORMAT, "armid identify", Fit.from_data)


def _factor_to_data(factor: CompactFactor) -> dict[str, Any]:
    return {
        "names": list(factor.names),
        "columns": [columns.tolist() for columns in factor.columns],
        "matrices": [matrix.tolist() for matrix in factor.matrices],
        "samples": factor.samples,
        "triangular": factor.triangular,
        "counts": list(factor.counts),
    }


def _factor_from_data(data: Mapping[str, Any]) -> CompactFactor:
    return CompactFactor(
        names=tuple(data["names"]),
        columns=tuple(np.array(columns, dtype=np.int64) for columns in data["columns"]),
        matrices=tuple(np.array(matrix, dtype=float) for matrix in data["matrices"]),
        samples=int(data["samples"]),
        triangular=bool(data["triangular"]),
        counts=tuple(data["counts"]),
    )


def _list(values: Array) -> str:
    return " ".join(f"{value:.3g}" for value in values)
