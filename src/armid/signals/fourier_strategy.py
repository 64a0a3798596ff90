"""The strategy for any timestamps and any length of period: a Fourier series by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.logs.log import Log
from armid.signals.dataset import Dataset
from armid.signals.fourier_fit import fit_fourier
from armid.signals.period import find_period
from armid.signals.problems import SignalError
from armid.signals.repair import second_difference_noise, with_increasing_time
from armid.signals.steps import Notes, Strategy, required_effort, required_position


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
            notes = (f"The motion is periodic: {search.reason}.",)
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
        kept = ((series.cosine != 0.0) | (series.sine != 0.0)).sum(axis=0)
        noise = second_difference_noise(np.where(use, effort, 0.0))
        words = (
            f"Positions are a Fourier series of {series.frequency_hz:.6g} Hz fitted to {int(good.sum())} samples; "
            f"harmonics per joint: {', '.join(map(str, kept))}."
        )
        return Dataset(
            joints=log.joints,
            time=log.time,
            q=motion.q,
            qd=motion.qd,
            qdd=motion.qdd,
            torque=np.where(use, effort, 0.0),
            rows=np.arange(len(log)),
            use=None if use.all() else use,
            torque_noise=noise if (noise > 0.0).all() else None,
            position_noise=series.residual * np.sqrt((1 + 2 * kept) / len(log)),
            pipeline=(self.to_data(),),
            notes=(*notes, words),
            gravity=log.info.gravity,
            history=log.info.history,
        )
