"""Fourier series fitted by least squares, with analytic derivatives: for any timestamps and any length of period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.logs.log import Log
from armid.notes import note
from armid.signals.averaging import f_limit
from armid.signals.dataset import Dataset
from armid.signals.period import find_period
from armid.signals.problems import SignalError
from armid.signals.repair import second_difference_noise, with_increasing_time
from armid.signals.steps import Notes, Strategy, required_effort, required_position

if TYPE_CHECKING:
    from armid.excitation.fourier import FourierSeries

BLOCK = 4096  # samples per block of the fit, so that memory stays constant


@dataclass(frozen=True, eq=False)
class FittedSeries:
    """A Fourier series fitted to samples.

    Attributes:
        series: the trajectory, for t = 0 at `origin`; a coefficient is 0 where a joint's harmonic was not kept.
        origin: time at which the series' own time starts [s].
        residual: standard deviation of what the series leaves, (joints,).
    """

    series: FourierSeries
    origin: float
    residual: Array

    @property
    def harmonics(self) -> Array:
        """How many harmonics each joint has, (joints,)."""
        return np.asarray(((self.series.sine != 0.0) | (self.series.cosine != 0.0)).sum(axis=1))

    def motion(self, time: Array) -> Motion:
        """Value and first two derivatives, exact, at any times [s]; each (samples, joints)."""
        blocks = [self.series.at(time[start : start + BLOCK] - self.origin) for start in range(0, len(time), BLOCK)]
        return Motion(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def fit_fourier(
    time: Array,
    values: Array,
    *,
    frequency_hz: float,
    harmonics: int | Sequence[int] | str = "auto",
    refine: bool = False,
    false_alarm: float = 0.01,
    highest: int = 20,
) -> FittedSeries:
    """Fit a Fourier series to samples at any times (ER-16, section 3.3; there on averaged positions).

    Args:
        time: [s], (samples,).
        values: (samples, joints).
        frequency_hz: base frequency, or a start for it where `refine` is set.
        harmonics: a number N for 1 ... N, a list, or ``auto``: of 1 ... `highest`, those of each joint whose amplitude
            a² + b² exceeds what residual noise explains (F test, chance `false_alarm` per joint of any wrong one).
        refine: estimate the base frequency too, common to all joints, by Gauss-Newton on the separable problem.
        false_alarm: see `harmonics`.
        highest: see `harmonics`.
    """
    if not (np.isfinite(frequency_hz) and frequency_hz > 0.0):
        raise SignalError("Fourier fit", f"frequency_hz is {frequency_hz!r}; give a positive number")
    automatic = isinstance(harmonics, str)
    if automatic and harmonics != "auto":
        raise SignalError("Fourier fit", f"harmonics is {harmonics!r}; use 'auto', a number or a list")
    numbers = _numbers(highest if automatic else harmonics)  # type: ignore[arg-type]
    # 2 numbers + 1 unknowns need as many samples; the mean spacing sets the highest harmonic
    spacing = (time[-1] - time[0]) / max(len(time) - 1, 1)
    nyquist = 0.5 / spacing if spacing > 0.0 else 0.0
    if automatic:
        numbers = numbers[numbers * frequency_hz < 0.9 * nyquist]
    if not len(numbers) or numbers[-1] * frequency_hz >= nyquist or len(time) <= 2 * len(numbers) + 1:
        top = int(numbers[-1]) if len(numbers) else 1
        raise SignalError(
            "Fourier fit",
            f"harmonic {top} of {frequency_hz:g} Hz is above the Nyquist frequency {nyquist:g} Hz, or there are too "
            f"few samples ({len(time)}); use fewer harmonics",
        )
    origin = 0.5 * float(time[0] + time[-1])
    elapsed = time - origin
    if refine:
        frequency_hz = refine_frequency(elapsed, values, frequency_hz, numbers)
    triangle = _triangle(elapsed, values, frequency_hz, numbers)
    keep = np.ones((len(numbers), values.shape[1]), dtype=bool)
    solution, variance = _solve(triangle, keep, len(time))
    if automatic:
        columns = triangle[: len(solution), : len(solution)]
        keep = _significant(solution, columns, variance, len(time), false_alarm)
        solution, variance = _solve(triangle, keep, len(time))
    from armid.excitation.fourier import FourierSeries  # here: whoever fits no series need not wait for its package

    offset, cosine, sine = solution[0], solution[1 : len(numbers) + 1].T, solution[len(numbers) + 1 :].T
    series = FourierSeries(frequency_hz, tuple(map(int, numbers)), sine, cosine, offset)
    return FittedSeries(series, origin, np.sqrt(variance))


def refine_frequency(elapsed: Array, values: Array, frequency_hz: float, numbers: Array, iterations: int = 12) -> float:
    """Base frequency that leaves the smallest residual, all joints weighted by their own residual.

    One step: with residual r and sensitivity g = ∂(A c)/∂ω, both freed of what the columns A explain,
    δω = Σ gᵀr / Σ gᵀg.
    """
    span = float(elapsed[-1] - elapsed[0])
    omega = 2.0 * np.pi * frequency_hz
    for _ in range(iterations):
        design = _design(elapsed, omega / (2.0 * np.pi), numbers)
        basis = np.linalg.qr(design)[0]
        solution = np.linalg.lstsq(design, values, rcond=None)[0]
        count = len(numbers)
        turned = np.concatenate([-design[:, count + 1 :], design[:, 1 : count + 1]], axis=1)
        gradient = (turned * (np.concatenate([numbers, numbers]) * elapsed[:, None])) @ solution[1:]
        residual = values - design @ solution
        gradient -= basis @ (basis.T @ gradient)
        weight = 1.0 / np.maximum((residual**2).mean(axis=0), 1e-24 * np.maximum((values**2).mean(axis=0), 1e-300))
        power = float((weight * (gradient**2).sum(axis=0)).sum())
        if power <= 0.0:
            break
        step = float((weight * (gradient * residual).sum(axis=0)).sum()) / power
        limit = 0.5 / (span * numbers[-1])  # a quarter of a turn of the highest harmonic at the ends
        step = float(np.clip(step, -limit, limit))
        omega += step
        if abs(step) * span < 1e-12:
            break
    return omega / (2.0 * np.pi)


def _numbers(harmonics: int | Sequence[int]) -> Array:
    listed = range(1, harmonics + 1) if isinstance(harmonics, (int, np.integer)) else harmonics
    numbers = np.unique(np.array(list(listed)))
    if not len(numbers) or not np.issubdtype(numbers.dtype, np.integer) or numbers[0] < 1:
        raise SignalError("Fourier fit", f"harmonics are {harmonics!r}; use 'auto', a number or a list, all from 1")
    return numbers


def _design(elapsed: Array, frequency_hz: float, numbers: Array) -> Array:
    phase = np.outer(elapsed, 2.0 * np.pi * frequency_hz * numbers)
    return np.concatenate([np.ones((len(elapsed), 1)), np.cos(phase), np.sin(phase)], axis=1)


def _triangle(elapsed: Array, values: Array, frequency_hz: float, numbers: Array) -> Array:
    """R of the QR factors of [A | values], gathered block by block."""
    triangle: Array = np.zeros((0, 1 + 2 * len(numbers) + values.shape[1]))
    with one_blas_thread():
        for start in range(0, len(elapsed), BLOCK):
            rows = slice(start, start + BLOCK)
            block = np.concatenate([_design(elapsed[rows], frequency_hz, numbers), values[rows]], axis=1)
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    return triangle


def _solve(triangle: Array, keep: Array, samples: int) -> tuple[Array, Array]:
    """Coefficients and residual variance per joint with the kept harmonics, (harmonics, joints), of each."""
    columns = 1 + 2 * len(keep)
    solution, variance = np.zeros((columns, keep.shape[1])), np.zeros(keep.shape[1])
    for joint in range(keep.shape[1]):
        used = np.concatenate([[True], keep[:, joint], keep[:, joint]])
        right = triangle[:, columns + joint]
        solution[used, joint] = np.linalg.lstsq(triangle[:, :columns][:, used], right, rcond=1e-10)[0]
        left_over = right - triangle[:, :columns] @ solution[:, joint]
        variance[joint] = (left_over**2).sum() / (samples - used.sum())
    return solution, variance


def _significant(solution: Array, triangle: Array, variance: Array, samples: int, false_alarm: float) -> Array:
    """Harmonics whose pair (a, b) is more than noise: F test with 2 and N - p degrees of freedom."""
    count = (len(solution) - 1) // 2
    inverse = np.linalg.pinv(triangle, rcond=1e-10)
    covariance = inverse @ inverse.T
    statistic = np.zeros((count, solution.shape[1]))
    for k in range(count):
        pair = [1 + k, 1 + count + k]
        block = np.linalg.inv(covariance[np.ix_(pair, pair)])
        statistic[k] = np.einsum("ij,ik,kj->j", solution[pair], block, solution[pair]) / 2.0
    scale = (solution[1:] ** 2).max(axis=0)
    statistic /= np.maximum(variance, 1e-28 * scale + np.finfo(float).tiny)
    limit = f_limit(false_alarm / count, samples - len(solution))
    return np.asarray(statistic > limit)


@dataclass(frozen=True, kw_only=True)
class FourierFit(Strategy):
    """Fourier series fitted to the positions at their own times, differentiated analytically (ER-16, section 3.3).

    For irregular timestamps, for periods that are no whole number of samples, and for a single period. The torque is
    left as it is; its noise is taken from second differences, as if it were white.

    Attributes:
        frequency_hz: base frequency; None to find it.
        harmonics: ``auto``, a number N for 1 ... N, or a list.
        refine: estimate the base frequency from the data; it is always where `frequency_hz` is None.
        highest: with ``auto``, the largest harmonic to try.
    """

    frequency_hz: float | None = None
    harmonics: str | int | tuple[int, ...] = "auto"
    refine: bool = False
    highest: int = 20

    def dataset(self, log: Log) -> Dataset:
        """Fit and evaluate."""
        required_position(log)
        required_effort(log)
        log, _ = with_increasing_time(log)
        notes: Notes = ()
        frequency, refine = self.frequency_hz, self.refine
        if frequency is None:
            search = find_period(log)
            if search.period is None:
                raise SignalError("FourierFit", f"found no period ({search.reason}); give frequency_hz")
            frequency, refine = 1.0 / search.period.seconds, True
            log = log.between(search.period.start_s, search.period.stop_s)
            notes = (note("signals.periodic", reason=search.reason),)
        good = np.isfinite(log["position"]).all(axis=1)
        series = fit_fourier(
            log.time[good],
            log["position"][good],
            frequency_hz=frequency,
            harmonics=self.harmonics,
            refine=refine,
            highest=self.highest,
        )
        motion = series.motion(log.time)
        effort = log["effort"]
        use = np.isfinite(effort)
        kept = series.harmonics
        noise = second_difference_noise(np.where(use, effort, 0.0))
        frequency = series.series.base_frequency_hz
        said = note("signals.fourier", frequency_hz=frequency, samples=int(good.sum()), harmonics=kept.tolist())
        return self.made(
            log,
            motion,
            np.where(use, effort, 0.0),
            use=None if use.all() else use,
            torque_noise=noise if (noise > 0.0).all() else None,
            position_noise=series.residual * np.sqrt((1 + 2 * kept) / len(log)),
            notes=(*notes, said),
        )
