"""`--until`: how far a fit is from an accuracy that is wanted, and how much more motion would bring it there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError, UnknownNameError
from armid.estimation.fit import STANDSTILL, Fit
from armid.excitation import Fourier
from armid.excitation.design import design_problem
from armid.files import Unbounded, plain
from armid.robot import Robot
from armid.signals import Dataset
from armid.validation.metrics import REACH

TORQUE = "torque"
LONGEST_S = 3600.0  # [s] of more motion beyond which a goal is out of reach
STATES = 1000  # of the validation's motion at which torque is judged
_GOAL = re.compile(r"\s*([^\s:]+)[\s:]+(\d+(?:\.\d*)?|\.\d+)\s*%\s*")


@dataclass(frozen=True)
class Goal:
    """A wanted accuracy: half of the 95 % interval of a parameter, or of the torque, is this share of its size."""

    what: str
    share: float

    @classmethod
    def parse(cls, words: Sequence[str]) -> Goal:
        """From words such as ``mx2R 2%`` or ``torque 1%``."""
        found = _GOAL.fullmatch(" ".join(words))
        if found is None or not float(found[2]) > 0.0:
            raise ArmidError(
                f'--until {" ".join(words)}: is no goal; write a parameter or torque and a share: "mx2R 2%"'
            )
        return cls(found[1], 0.01 * float(found[2]))

    def check(self, robot: Robot) -> None:
        """Refuse a parameter that is no base parameter of the robot."""
        base = Model(robot).base
        if self.what not in (TORQUE, *base.labels, *base.kept):
            raise UnknownNameError("--until", self.what, (TORQUE, *base.labels))


@dataclass(frozen=True)
class GoalStanding:
    """How far a fit is from a goal.

    Attributes:
        goal: what is wanted, in words.
        target: the share that is wanted.
        share: half of the 95 % interval over the size of the parameter, or of the torque of the worst joint.
        reached: whether it is there.
        mostly: what makes more than half of the interval's variance and stays, since it is no parameter of the arm.
        seconds: of motion so far.
        seconds_more: how much more of the next motion would do; None if more than an hour.
        outlook: the share after some more seconds of it, as pairs.
    """

    goal: str
    target: float
    share: Unbounded
    reached: bool
    seconds: float
    seconds_more: float | None
    outlook: tuple[tuple[float, Unbounded], ...]
    mostly: str = ""

    def to_data(self) -> dict[str, Any]:
        """For JSON, with the sentence as `text`."""
        return {**plain(self), "text": self.sentence()}

    def sentence(self) -> str:
        """In words."""
        now = f"{self.goal}: ±{100 * self.share:.2g} % after {self.seconds:.0f} s of motion"
        if self.reached:
            return f"{now}, which is enough"
        later = ", ".join(f"±{100 * share:.2g} % after {more:.0f} s" for more, share in self.outlook)
        need = "more than an hour" if self.seconds_more is None else f"about {self.seconds_more:.0f} s"
        why = f"; most of it is friction that the data hardly show ({self.mostly})" if self.mostly else ""
        return f"{now}{why}; it takes {need} more of the next motion (with it: {later})"


class Outlook:
    """A goal seen from a fit and the data it was made of.

    The variance of what is wanted follows from the fit's covariance. With more motion it falls as that of independent
    samples would, from where it is now: what makes the fit less certain than that (correlated residuals, free friction)
    is taken to stay in proportion. Friction that the data hardly show, where it makes most of the variance, stays.
    """

    def __init__(self, goal: Goal, fit: Fit, data: Sequence[Dataset], check: Motion) -> None:
        """Look from `fit`, made of `data`; torque is judged on the motion `check`."""
        self.goal, self.fit, self.data = goal, fit, data
        # what was driven: a mean of M periods says as much as all of them
        self._driven = [max(part.periods, 1) * float(np.ptp(part.time)) if len(part.time) else 0.0 for part in data]
        self.seconds = sum(self._driven)
        self._rows, self._sizes = self._wanted(check)

    def _wanted(self, check: Motion) -> tuple[list[Array], Array]:
        """Rows (states, columns) whose variance is wanted, and the size it is compared with; one pair per joint.

        Torque counts where the joint moves: near rest, friction is anything up to its level, whatever was recorded.
        """
        fit = self.fit
        if self.goal.what == TORQUE:
            few = Motion(*(array[:: max(1, len(array) // STATES)] for array in check))
            regressor, torque = fit.torque_model.regressor(few), fit.predict(few, sigma=False).torque
            moving = np.abs(few.qd) >= fit.standstill[0] / STANDSTILL
            moving |= ~moving.any(axis=0)
            size = np.sqrt(np.mean(torque**2, axis=0, where=moving))
            return [regressor[moving[:, joint], joint] for joint in range(regressor.shape[1])], size
        known = {**dict(zip(fit.columns, fit.columns, strict=True)), **dict(zip(fit.names, fit.columns, strict=True))}
        place = fit.columns.index(known[self.goal.what])
        return [np.eye(len(fit.columns))[[place]]], np.abs(fit.values[[place]])

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Parameters of the model that the fit estimates."""
        kept = self.fit.torque_model.model.base.kept
        return tuple(name for name in self.fit.columns if name in kept)

    def _information(self, motion: Motion) -> Array:
        """Mean information of a sample about them."""
        model = self.fit.torque_model.model
        return Sensitivity(model, self._names, width=0.0).information(motion, self.fit.weights)

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return bool(self._shares(self.fit.covariance).max() <= self.goal.share)

    def standing(self, following: Motion | None) -> GoalStanding:
        """Where the fit is, and what more of the motion `following` would bring; none where the goal is reached."""
        now, index = self._shares(self.fit.covariance), [self.fit.columns.index(name) for name in self._names]
        target, share = self.goal.share, float(now.max())
        words = f"{self.goal.what} {100 * target:g} %"
        if following is None:
            return GoalStanding(words, target, share, True, self.seconds, 0.0, ())
        had, coming = np.zeros((len(index), len(index))), self._information(following)
        for driven, part in zip(self._driven, self.data, strict=True):
            had += driven * self._information(Motion(part.q, part.qd, part.qdd))
        free = self._shares(_inverse(had), index)

        names, lasting = self._lasting()

        def later(more: float) -> float:
            less = self._shares(_inverse(had + more * coming), index) / free
            return float(np.max(now * np.sqrt(lasting + (1.0 - lasting) * less**2)))

        more = None
        if later(LONGEST_S) <= target < later(0.0):
            more = float(brentq(lambda seconds: later(seconds) - target, 0.0, LONGEST_S, xtol=0.1))
        outlook = tuple((times * self.seconds, later(times * self.seconds)) for times in (1.0, 3.0, 9.0))
        return GoalStanding(words, target, share, False, self.seconds, more, outlook, names[int(now.argmax())])

    def _lasting(self) -> tuple[list[str], Array]:
        """Columns beyond the arm's own parameters that make most of a joint's variance, and their part of it."""
        names, parts = [], []
        for rows in self._rows:
            own = np.mean(rows**2, axis=0) * np.diag(self.fit.covariance)
            whole = np.einsum("tp,pq,tq->", rows, self.fit.covariance, rows) / len(rows)
            name = self.fit.columns[int(own.argmax())]
            lasting = name not in self._names and own.max() > 0.5 * whole
            names.append(name if lasting else "")
            parts.append(min(own.max() / whole, 1.0) if lasting else 0.0)
        return names, np.array(parts)

    def _shares(self, covariance: Array, index: Sequence[int] | None = None) -> Array:
        """Half of the 95 % interval over the size, per joint, for a covariance of all columns or of some."""
        rows = self._rows if index is None else [part[:, index] for part in self._rows]
        mean = np.array([np.einsum("tp,pq,tq->", part, covariance, part) / len(part) for part in rows])
        return np.asarray(REACH * np.sqrt(np.maximum(mean, 1e-300)) / np.maximum(self._sizes, 1e-12))


def fit_information(fit: Fit, robot: Robot, shape: Fourier, **options: Any) -> tuple[Array, list[float]]:
    """What a fit knows, as `given` for `design`, and the torque noise it is measured in.

    A fit counts with the inverse of its covariance; its joints' residuals are the noise, unless noise is given.
    """
    if fit.robot.name != robot.name or fit.robot.joint_names != robot.joint_names:
        raise ArmidError(f"is a fit of {fit.robot.name!r}, not of {robot.name!r}; give one of the same robot")
    noise = options.get("noise") or [float(sigma) for sigma in 1.0 / np.sqrt(fit.weights)]
    names = design_problem(robot, shape, **{**options, "noise": noise}).parameters
    missing = [name for name in names if name not in fit.columns]
    if missing:
        raise ArmidError(
            f"does not estimate {', '.join(missing[:5])}; fit and design must use the same --links, --simplify "
            "and --parameters"
        )
    index = [fit.columns.index(name) for name in names]
    return _inverse(fit.covariance[np.ix_(index, index)]) / (shape.period * options["rate_hz"]), noise


def _inverse(matrix: Array) -> Array:
    """Inverse of a covariance or information matrix, scaled to a unit diagonal first."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return np.asarray(np.linalg.pinv(matrix / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale))
