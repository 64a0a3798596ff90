"""The fit: estimated parameters with their covariance, and everything needed to use them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import numpy as np
from scipy.stats import norm

from armid.arrays import Array, Mask
from armid.display import html_table, short
from armid.dynamics.factor import CompactFactor
from armid.dynamics.model import Motion
from armid.dynamics.parameters import FRICTION
from armid.errors import ArmidError
from armid.estimation.gains import GainErrors, gain_errors
from armid.estimation.identifiability import Identifiability
from armid.files import plain, read_result, write_result
from armid.notes import Note
from armid.robot.robot import Robot
from armid.torque.friction.smooth import REST
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque
from armid.torque.model import TorqueModel

FORMAT = "armid fit 1"
INDEFINITE = 1e-3  # of a correlation, by which round-off may make a covariance indefinite
STANDSTILL = 0.1  # share of the speed below which the data say nothing, up to which a joint stands still
SLOW = 0.05  # [rad/s], that speed where the fit does not know it: of the simpler methods and friction laws


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted torque.

    Attributes:
        torque: (samples, joints) [N m].
        sigma: standard deviation of the model's torque that follows from the parameters' covariance, (samples, joints).
        recording: standard deviation of friction between recordings and of misfit, beside that, (samples, joints).
    """

    torque: Array
    sigma: Array
    recording: Array


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """What an estimator returns.

    Attributes:
        robot: the robot, with the parameters that were known.
        columns: regressor columns of the estimated parameters: base parameters (by the parameter that names the group),
            then friction terms. `names` are those for people and files.
        values: estimates.
        covariance: of the estimates in units of the drives that measured; what it accounts for is said in `notes`. The
            uncertainty of drive gains comes on top, see `total_covariance`.
        terms: friction terms beyond the model's own.
        load_values: base parameters that make the load torque of load terms; None without such terms.
        known_torque: torque that was known beforehand; None if there was none.
        delay_s: how much torque lags motion, per joint.
        friction_lag_s: how much later than the motion friction changes sides, per joint; None for no later.
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
        notes: what was chosen and found.
        history: armid's version, hashes and origins of the data.
        recording: standard deviation between recordings of Coulomb friction [N m], viscous friction [N m s/rad] and
            offset [N m], (joints, 3); None if the method does not tell.
        misfit: root mean square per joint [N m] by which parts of the data, predicted from the others, are off beyond
            what noise and covariance foretell; None if the method does not tell.
        gain_uncertainty: standard deviation of each joint's drive gain as a share; None for none.
        gain_effects: change of the values per relative change of each joint's gain, (values, joints); None for none.
    """

    robot: Robot
    columns: tuple[str, ...] = field(repr=False)  # the file has the table `parameters` instead of these two
    values: Array = field(repr=False)
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
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)
    recording: Array | None = None
    gain_uncertainty: Array | None = None
    gain_effects: Array | None = None
    friction_lag_s: Array | None = None
    misfit: Array | None = None

    @cached_property
    def torque_model(self) -> TorqueModel:
        """The model whose parameters these are."""
        model = TorqueModel(self.robot, terms=self.terms, load_values=self.load_values, known_torque=self.known_torque)
        if model.names != self.columns:
            raise ArmidError(f"the fit's columns are not those of {self.robot.name}; identify it again")
        return model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Estimated parameters; one that stands for a group carries an R: ``Izz1R``."""
        return self.torque_model.labels

    @property
    def determined(self) -> frozenset[str]:
        """Those of `names` that the data determine; a link's own parameter is among them only if it shows alone."""
        pairs = zip(self.names, self.identifiability.classes, strict=True)
        return frozenset(name for name, kind in pairs if kind == "determined")

    @property
    def verdict(self) -> str:
        """What the data determine, in a sentence."""
        return self.identifiability.in_words(had_prior=bool(self.options.get("prior")))

    @cached_property
    def total_covariance(self) -> Array:
        """Covariance of the estimates in true units: that of the noise, and that of the drive gains."""
        if self.gain_uncertainty is None or self.gain_effects is None:
            return self.covariance
        errors = self.gain_errors(self.gain_uncertainty)
        own = self.gain_effects @ errors.second_moment @ self.gain_effects.T
        return np.asarray(errors.unexplained * self.covariance + own)

    def gain_errors(self, stated: Array) -> GainErrors:
        """What the fit's data tell of drive gains that are known beforehand to the shares `stated`, per joint."""
        if self.gain_effects is None:
            return GainErrors(np.zeros(len(stated)), np.diag(stated**2))
        return gain_errors(self.factor, self.weights, self.values, self.gain_effects, stated)

    @cached_property
    def sigma(self) -> Array:
        """Standard deviations of the estimates, that of the drive gains included."""
        return np.sqrt(np.maximum(np.diag(self.total_covariance), 0.0))

    @property
    def correlation(self) -> Array:
        """Correlation matrix of the estimates."""
        sigma = np.where(self.sigma > 0.0, self.sigma, 1.0)
        return np.asarray(self.total_covariance / np.outer(sigma, sigma))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the confidence intervals."""
        reach = float(norm.ppf(0.5 + 0.5 * level)) * self.sigma
        return self.values - reach, self.values + reach

    def predict(self, motion: Motion, *, sigma: bool = True) -> Prediction:
        """Torque of a motion as the same drives report it, what was known beforehand included, not delayed."""
        torque = self.torque_model.total_torque(motion, self.values)
        spread = np.zeros_like(motion.q)
        for first in range(0, len(motion.q) if sigma else 0, 4096):
            part = slice(first, first + 4096)
            regressor = self.torque_model.regressor(Motion(*(array[part] for array in motion)))
            spread[part] = self.torque_sigma(regressor)
        return Prediction(torque, spread, self.recording_sigma(motion.qd))

    def torque_sigma(self, regressor: Array) -> Array:
        """Standard deviation of the model's torque (...) for rows of a regressor (..., columns) [N m]."""
        variance = np.einsum("...p,pq,...q->...", regressor, self.covariance, regressor, optimize=True)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def predict_at_rest(self, motion: Motion, *, sigma: bool = True) -> Prediction:
        """`predict`, but with a band where a joint stands still: friction there is anything up to its level.

        A joint stands still below a tenth of the speed below which the data say nothing of its friction. Its friction
        counts as zero with the standard deviation of a uniform distribution.
        """
        limit, level = self.standstill
        still = np.abs(motion.qd) < limit
        found = self.predict(Motion(motion.q, np.where(still, 0.0, motion.qd), motion.qdd), sigma=sigma)
        return replace(found, sigma=np.where(still, np.hypot(found.sigma, level / np.sqrt(3.0)), found.sigma))

    @cached_property
    def standstill(self) -> tuple[Array, Array]:
        """Speed below which a joint stands still [rad/s], and the level of its friction at the slowest data [N m]."""
        slow = np.full(self.robot.n_joints, SLOW)
        for term in self.terms:
            if term.law == REST.name:
                slow[term.joint] = term.shapes[0]
        velocity = np.vstack([slow, -slow])
        motion = Motion(np.zeros_like(velocity), velocity, np.zeros_like(velocity))
        both = self.torque_model.linear_torque(motion, np.where(self.friction_columns(load=False), self.values, 0.0))
        return STANDSTILL * slow, np.abs(0.5 * (both[0] - both[1]))

    def friction_columns(self, *, load: bool = True) -> Mask:
        """Which columns are friction; without those in proportion to the load, if `load` is not wanted."""
        kinds = {parameter.name: parameter.kind for parameter in self.torque_model.model.parameters}
        others = {n for t in self.terms if t.formula.weighted or (t.loaded and not load) for n in t.names}
        return np.array([kinds.get(name, FRICTION) == FRICTION and name not in others for name in self.columns])

    def recording_sigma(self, velocity: Array) -> Array:
        """Standard deviation of a recording's own friction, and misfit, at velocities (samples, joints) [N m].

        Coulomb and viscous friction change together, as by heat or by the load of the bearings.
        """
        other = np.zeros_like(velocity) if self.misfit is None else np.broadcast_to(self.misfit, velocity.shape)
        if self.recording is None:
            return other
        coulomb, viscous, offset = self.recording.T
        friction = np.where(velocity == 0.0, 0.0, coulomb + viscous * np.abs(velocity))
        return np.asarray(np.sqrt(friction**2 + offset**2 + other**2))

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
        count = self.identifiability.counts[1]
        lines = [f"{self.robot.name}: {count} parameters, {self.method}", self.verdict]
        width = max(len(name) for name in self.names)
        for name, _, value, half, unit, kind in self._rows():
            mark = "" if kind == "determined" else f"  {kind}"
            lines.append(f"  {name:<{width}} {value:>12.5g} ± {half:<9.2g} {unit}{mark}")
        noise = "" if self.noise is None else f"; noise {_list(self.noise)}"
        lines.append(f"residual rms per joint [N m]: {_list(self.residual_rms)}{noise}")
        if np.any(self.delay_s):
            lines.append(f"torque lags motion by {_list(1e3 * self.delay_s)} ms")
        if self.friction_lag_s is not None:
            lines.append(f"friction changes sides {_list(1e3 * self.friction_lag_s)} ms after the motion")
        return "\n".join([*lines, *map(str, self.notes)])

    def _rows(self) -> Iterator[tuple[str, str, float, float, str, str]]:
        """Name, meaning, value, half of its 95 % interval, unit and class of each parameter that means something."""
        half, units = 0.5 * np.subtract(*reversed(self.interval())), self.torque_model.units
        for row in zip(self.names, self.values, half, units, self.identifiability.classes, strict=True):
            if row[-1] != "curve":
                yield row[0], self.expression(row[0]), *row[1:]

    def __repr__(self) -> str:
        """One line."""
        rms = f"residual rms {_list(self.residual_rms)} N m"
        return short(self, self.robot.name, self.method, f"{len(self.columns)} parameters", rms)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = (
            (name, words, f"{value:.5g}", f"± {half:.2g}", *rest) for name, words, value, half, *rest in self._rows()
        )
        header = ("parameter", "meaning", "value", "95 %", "unit", "")
        return html_table(f"{self.robot.name}, {self.method}", header, rows, [self.verdict])

    def plot(self) -> Any:
        """Estimates with their 95 % intervals, in units of the estimates' size; a matplotlib figure."""
        from armid.theme import NOMINAL, PREDICTED, new_figure, style

        figure = new_figure(0.8 + 0.16 * len(self.names))
        axes = figure.add_subplot()
        style(axes)
        size = np.maximum(np.abs(self.values), 1e-300)
        rows = np.arange(len(self.names))
        axes.errorbar(np.sign(self.values), rows, xerr=1.96 * self.sigma / size, fmt="o", ms=3, color=PREDICTED)
        axes.axvline(0.0, color=NOMINAL, lw=0.8)
        axes.set(yticks=rows, yticklabels=self.names, xlim=(-2.5, 2.5), xlabel="estimate, 95 % interval / |estimate|")
        axes.invert_yaxis()
        return figure

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, FORMAT, self.to_data())

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        keys = ("name", "expression", "value", "sigma", "interval_95", "class", "unit")
        words, intervals = map(self.expression, self.names), zip(*self.interval(), strict=True)
        columns = (self.values, self.sigma, intervals, self.identifiability.classes, self.torque_model.units)
        rows = zip(self.names, words, *columns, strict=True)
        parameters = [dict(zip(keys, row, strict=True)) for row in rows]
        judged = {**plain(self.identifiability), "verdict": self.verdict}
        more = {"parameters": parameters, "condition_number": self.identifiability.condition, "identifiability": judged}
        return {**plain(self), **plain(more)}

    def with_notes(self, *notes: Note) -> Fit:
        """The fit with more notes."""
        return replace(self, notes=(*self.notes, *notes))


class _Parameter(msgspec.Struct, frozen=True):
    """A row of the file's table; what else it holds follows from the rest of the file."""

    value: float


#: Entries of a fit's file, beside those that follow from them.
_FitFile: Any = msgspec.defstruct(
    "_FitFile",
    [
        *(
            (name, kind) if (default := getattr(Fit, name, MISSING)) is MISSING else (name, kind, default)
            for name, kind in get_type_hints(Fit).items()
            if name not in ("columns", "values")
        ),
        ("parameters", list[_Parameter]),
    ],
    frozen=True,
    kw_only=True,
)


def load_fit(path: str | Path) -> Fit:
    """Read a fit that `Fit.save` wrote."""
    file = read_result(path, _FitFile, "a fit", FORMAT, "armid identify")
    entries = {name: getattr(file, name) for name in file.__struct_fields__ if name != "parameters"}
    entries["values"] = np.array([row.value for row in file.parameters])
    fit = Fit(columns=file.factor.names, **entries)
    problem = _contradiction(fit)
    if problem:
        raise ArmidError(f"{path}: {problem}; write the file again with armid identify")
    return fit


def _contradiction(fit: Fit) -> str:
    """Which entry of a file does not fit the others; empty where all do."""
    count, joints = len(fit.columns), fit.robot.n_joints
    shapes = {"values": (count,), "covariance": (count, count), "weights": (joints,), "delay_s": (joints,)}
    shapes |= {"residual_rms": (joints,)} | ({} if fit.noise is None else {"noise": (joints,)})
    optional = {"recording": (joints, 3), "gain_uncertainty": (joints,), "gain_effects": (count, joints)}
    optional |= {"friction_lag_s": (joints,), "misfit": (joints,)}
    shapes |= {name: shape for name, shape in optional.items() if getattr(fit, name) is not None}
    for name, shape in shapes.items():
        array = getattr(fit, name)
        if array.shape != shape:
            return f"{name} has the shape {array.shape}; {count} parameters of {joints} joints need {shape}"
        if name != "noise" and not np.isfinite(array).all():
            return f"{name} holds values that are not finite"
        if (
            name in ("weights", "residual_rms", "noise", "recording", "friction_lag_s", "misfit")
            and (array < 0.0).any()
        ):
            return f"{name} holds negative values"
    sizes = np.sqrt(np.abs(np.diag(fit.covariance)))
    scale = np.where(sizes > 0.0, sizes, 1.0)
    if np.linalg.eigvalsh(fit.covariance / np.outer(scale, scale)).min(initial=0.0) < -INDEFINITE:
        return "covariance has negative variances, which no estimate has"
    if problem := _other_arm(fit):
        return f"standard_parameters {problem}"
    shown = fit.identifiability.singular_values
    if len(fit.identifiability.classes) != count or shown.ndim != 1 or not len(shown):
        return f"identifiability has {len(fit.identifiability.classes)} classes for {count} parameters"
    factor = fit.factor
    if not len(factor.columns) == len(factor.matrices) == len(factor.counts) == joints:
        return f"factor must have columns, matrices and counts for each of the {joints} joints"
    for columns, matrix in zip(factor.columns, factor.matrices, strict=True):
        inside = columns.ndim == 1 and np.all((columns >= 0) & (columns < count))
        shaped = matrix.ndim == 2 and matrix.shape[1] == columns.size + 1 and np.isfinite(matrix).all()
        if not inside or not shaped or (not factor.triangular and len(matrix) != len(columns) + 1):
            return "a matrix of factor does not belong to its columns"
    try:
        finite = bool(np.isfinite(fit.total_covariance).all())
    except np.linalg.LinAlgError:
        finite = False
    return "" if finite else "factor, values and gain_effects do not belong together"


def _other_arm(fit: Fit) -> str:
    """What keeps the standard parameters from being those of the estimates; empty where nothing does."""
    links, model = fit.standard_parameters, fit.torque_model.model
    if links is None:
        return ""
    if missing := set(model.names) - set(links):
        return f"lacks {min(missing)}"
    parts = model.base.matrix * [links[name] for name in model.base.names]
    size = np.abs(parts).sum(axis=1)
    for name, value, round_off in zip(model.base.kept, parts.sum(axis=1), 1e-6 * size, strict=True):
        if name in fit.columns and not abs(value - fit.values[fit.columns.index(name)]) <= round_off:
            return f"makes the group of {name} {value:.4g}, against {fit.values[fit.columns.index(name)]:.4g} estimated"
    return ""


def _list(values: Array) -> str:
    return " ".join(f"{value:.3g}" for value in values)
