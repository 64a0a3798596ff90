"""Motions by formula: velocity and acceleration profiles, and the trajectories that papers print."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import UnknownNameError
from armid.excitation.fourier import FourierSeries
from armid.excitation.polynomial import PiecewisePolynomial, from_velocity
from armid.excitation.trajectory import Trajectory, TrajectoryError, number, numbers, per_joint, whole


def sinusoidal_velocity(
    start: ArrayLike, peak_velocity: ArrayLike, base_frequency_hz: float, multiples: ArrayLike = 1
) -> FourierSeries:
    """Sinusoidal velocities qd_j = v_j sin(n_j w t) that begin with zero velocity in the posture `start` (PA-10 III.B).

    Args:
        start: posture at t = 0; the joint moves to one side of it, as far as 2 v / (n w).
        peak_velocity: v per joint [rad/s or m/s].
        base_frequency_hz: w / (2 pi) [Hz].
        multiples: n per joint, positive whole numbers, so that joints need not move together.
    """
    first = numbers("start", start, 1)
    peak, orders = (
        per_joint(n, v, len(first)) for n, v in (("peak_velocity", peak_velocity), ("multiples", multiples))
    )
    if not len(first) or np.any(orders < 1) or np.any(orders != np.round(orders)):
        raise TrajectoryError("multiples", "must be positive whole numbers, one for each joint")
    harmonics = tuple(sorted({int(order) for order in orders}))
    width = 2.0 * np.pi * number("base_frequency_hz", base_frequency_hz, above=0.0) * orders
    cosine = np.where(np.asarray(harmonics) == orders[:, None], -(peak / width)[:, None], 0.0)
    return FourierSeries(base_frequency_hz, harmonics, np.zeros_like(cosine), cosine, first + peak / width)


def polynomial_velocity(
    start: ArrayLike, peak_velocity: ArrayLike, stroke_s: float, strokes: int = 2
) -> PiecewisePolynomial:
    """Bell-shaped polynomial velocities v 16 s^2 (1 - s)^2, s = t / stroke, there and back again (PA-10 III.B).

    Velocity and acceleration are zero at the end of each stroke; a stroke covers 8/15 v stroke_s.
    """
    first = numbers("start", start, 1)
    peak = per_joint("peak_velocity", peak_velocity, len(first))
    T, count = number("stroke_s", stroke_s, above=0.0), whole("strokes", strokes, 1)
    bell = 16.0 * np.array([0.0, 0.0, 1.0, -2.0, 1.0]) / T ** np.arange(5)
    sign = np.where(np.arange(count) % 2, -1.0, 1.0)
    return from_velocity(first, np.full(count, T), sign[:, None, None] * bell[:, None] * peak)


# ER-16, appendix A.1, as printed: rows of 11, 11 and 10 numbers. Row 3 lost one, and the first cell is empty (ER-1).
_BETA_1 = (
    (-0.3857, -0.1911, -0.2842, -0.2289, -0.2455, -0.5705, 0.3359, 0.4129, 0.5744, 0.4842, 0.0730),
    (0.0011, 0.3597, -0.0179, -0.0117, 0.0443, 0.4355, 0.2551, 0.0386, 0.0411, 0.0057, -0.0065),
    (-0.1638, 0.5347, -0.1448, 0.1029, 0.0826, 0.4426, 0.3359, 0.6126, -0.6714, -0.5792),
)
# Appendix A.2: three terms, seven numbers per joint.
_BETA_2 = (
    (0.3016, 0.4006, 0.6921, -0.4210, -0.0423, 0.6066, -0.9719),
    (-0.5026, -0.0051, 0.0492, 0.8074, 0.4578, -0.2521, 0.6288),
    (-0.1276, -0.0624, 0.3805, 0.4006, 0.3016, 0.3531, 0.1524),
)
ER16_ORDERS = ("q0,a,b", "a,b,q0", "q0,(a,b)", "(a,b),q0", "q0,b,a", "a,q0,b")
ER16_LOST = ("q0", "first")
ER16_PERIODS_S = (20.0, 25.0)


@dataclass(frozen=True, eq=False)
class RampedSinusoid(Trajectory, type_name="ramped-sinusoid"):
    """q(t) = r(t) (a sin w t + b cos w t), with r going linearly from `gain_start` to `gain_end` per joint.

    Attributes:
        frequency_hz: w / (2 pi) [Hz].
        length: duration [s].
        sine, cosine: a and b [rad or m], (joints,).
        gain_start, gain_end: r at the start and at the end, (joints,).
    """

    frequency_hz: float
    length: float
    sine: Array
    cosine: Array
    gain_start: Array
    gain_end: Array

    def __post_init__(self) -> None:
        """Check and freeze the fields."""
        times = {name: number(name, getattr(self, name), above=0.0) for name in ("frequency_hz", "length")}
        joints = len(numbers("sine", self.sine, 1))
        if not joints:
            raise TrajectoryError("sine", "is empty; give one number per joint")
        lists = ("sine", "cosine", "gain_start", "gain_end")
        arrays = {name: numbers(name, getattr(self, name), 1, (joints,)) for name in lists}
        self._freeze(joints, times["length"], **times, **arrays)

    def _motion(self, times: Array) -> Motion:
        w, t = 2.0 * np.pi * self.frequency_hz, times[:, None]
        sin, cos = np.sin(w * t), np.cos(w * t)
        wave, slope = self.sine * sin + self.cosine * cos, w * (self.sine * cos - self.cosine * sin)
        rate = (self.gain_end - self.gain_start) / self.length
        gain = self.gain_start + rate * t
        return Motion(gain * wave, gain * slope + rate * wave, -(w**2) * gain * wave + 2.0 * rate * slope)


def rx60_verification() -> RampedSinusoid:
    """The verification motion (7)-(9) of the RX-60, 20 s.

    theta1 = c r sin(pi t / 4), theta2 = -c r cos(pi t / 4), theta3 = cos(pi t / 4) with c = 0.6; r "changes
    between" -1.2 and -0.85 by a law that is not printed: linear here (erratum RX-13).
    """
    ramp_start, ramp_end = np.array([-1.2, -1.2, 1.0]), np.array([-0.85, -0.85, 1.0])
    return RampedSinusoid(0.125, 20.0, np.array([0.6, 0.0, 0.0]), np.array([0.0, -0.6, 1.0]), ramp_start, ramp_end)


@dataclass(frozen=True)
class Er16Reading:
    """One way to read the printed coefficients.

    Attributes:
        order: of the numbers in a row: q0 the offset, a the sines, b the cosines, (a,b) interleaved.
        lost: which number of row 3 is missing and taken as 0: "q0", or the "first" of the row, where the text has an
            empty cell. The same thing in orders that begin with q0.
        period_s: 0.05 Hz is 20 s, but the text also says 25 s (erratum ER-2).
    """

    order: str = "q0,a,b"
    lost: str = "q0"
    period_s: float = 20.0


def er16_readings() -> tuple[Er16Reading, ...]:
    """All admissible readings of beta_1 (errata ER-1, ER-2), the most likely first, each different from the others."""
    return tuple(
        Er16Reading(order, lost, period)
        for period in ER16_PERIODS_S
        for lost in ER16_LOST
        for order in ER16_ORDERS
        if lost == "q0" or not order.startswith("q0")
    )


def er16_beta_1(reading: Er16Reading | None = None) -> FourierSeries:
    """The ER-16 excitation beta_1 (appendix A.1): five harmonics, three joints; it does not start at rest (ER-14)."""
    chosen = Er16Reading() if reading is None else reading
    offset, _, _ = _places(chosen.order, 5)
    if chosen.lost not in ER16_LOST:
        raise UnknownNameError("lost number", chosen.lost, ER16_LOST)
    place = offset if chosen.lost == "q0" else 0
    short = _BETA_1[2]
    return _series(np.array([*_BETA_1[:2], (*short[:place], 0.0, *short[place:])]), chosen)


def er16_beta_2(reading: Er16Reading | None = None) -> FourierSeries:
    """The ER-16 validation trajectory beta_2 (appendix A.2): three harmonics; `lost` of the reading does not matter."""
    return _series(np.array(_BETA_2), Er16Reading() if reading is None else reading)


def _series(rows: Array, reading: Er16Reading) -> FourierSeries:
    terms = rows.shape[1] // 2
    offset, sine, cosine = _places(reading.order, terms)
    frequency = 1.0 / number("period_s", reading.period_s, above=0.0)
    return FourierSeries(frequency, tuple(range(1, terms + 1)), rows[:, sine], rows[:, cosine], rows[:, offset])


def _places(order: str, terms: int) -> tuple[int, list[int], list[int]]:
    """Columns of the offset, the sines and the cosines in a row."""
    if order not in ER16_ORDERS:
        raise UnknownNameError("order", order, ER16_ORDERS)
    pairs = [part for _ in range(terms) for part in ("a", "b")]
    blocks = {"q0": ["q0"], "a": ["a"] * terms, "b": ["b"] * terms, "(a,b)": pairs}
    names = [name for part in order.replace("(a,b)", "(a;b)").split(",") for name in blocks[part.replace(";", ",")]]
    found = {kind: [i for i, name in enumerate(names) if name == kind] for kind in ("q0", "a", "b")}
    return found["q0"][0], found["a"], found["b"]
