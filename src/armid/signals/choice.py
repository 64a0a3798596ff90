"""The steps for a log that nobody has given any, chosen from what the log doctor sees in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid.logs.log import Log, LogError
from armid.signals.filtering import LowPass
from armid.signals.period import Period, PeriodSearch, find_period
from armid.signals.periodic import PeriodicAverage
from armid.signals.preparations import Hampel, Repair, Resample, Trim, TrimRest
from armid.signals.repair import find_gaps, with_increasing_time
from armid.signals.resample import is_uniform
from armid.signals.steps import Notes, Step, required_position
from armid.signals.whole_periods import intact_periods, steady_periods

if TYPE_CHECKING:
    from armid.signals.doctor import Finding, Report

LEAST_PERIODS = 3  # repeated at least so often, a motion is averaged
LEAST_INTACT = 2  # of which so many must be without holes
MENDED = Hampel().channels  # spikes elsewhere do not reach the dataset
# What no step can mend, and what therefore is only told.
TOLD = (
    "dead-channel",
    "mostly-zero",
    "zero-dropouts",
    "saturated",
    "time-unit",
    "degrees",
    "sign-flipped",
    "swapped-joints",
)


def chosen_steps(log: Log) -> tuple[tuple[Step, ...], Notes]:
    """The steps for a log, the last of them a strategy, and why: each reason names the doctor's finding.

    A motion that repeats at least three times, with two periods or more without holes, is averaged and differentiated
    exactly; what has not settled at its start is cut off while three periods remain. Any other motion is low-passed,
    resampled first if its timestamps are irregular. Spikes are replaced; the step for that is there even if the doctor
    sees none, since a fit's pipeline is used on other logs too. A delay of the torque is left to the estimation, which
    fits it.
    """
    # The doctor's checks take a while to import, and so are imported by those alone who need them.
    from armid.signals.doctor.examine import examine

    required_position(log)
    ordered, _ = with_increasing_time(log)
    if len(ordered) < 8:
        raise LogError(log.info.source, "time", f"has {len(ordered)} samples in order; at least 8 are needed")
    report = examine(log)
    search = find_period(ordered)
    spikes = _spikes(report)
    told = tuple(f"Beware ({_code(finding)}): {finding.what}" for code in TOLD for finding in report.of(code))
    against, words = _why_not(ordered, search, report)
    if search.period is not None and not against:
        cut, settled = _settled(report, search.period, ordered)
        why = f"Chosen because the motion repeats ({words}): averaging over periods and exact differentiation."
        # Holes are not filled by lines: periods that have some are left out, or bridged by cubics.
        return (Repair(max_gap_s=0.0), Hampel(), *cut, PeriodicAverage()), (why, *spikes, *settled, *told)
    uneven, irregular = _uneven(report, ordered)
    why = f"Chosen because {against} ({words}): low-pass."
    return (Repair(), Hampel(), TrimRest(), *uneven, LowPass(cutoff_hz="auto")), (why, *spikes, *irregular, *told)


def _code(finding: Finding) -> str:
    """Where to read about a finding: docs/inspect.md lists the codes."""
    return f"finding {finding.code}"


def _why_not(log: Log, search: PeriodSearch, report: Report) -> tuple[str, str]:
    """Why the motion is not to be averaged, empty if it is, and what speaks for or against that."""
    period = search.period
    if period is None:
        return "the motion does not repeat", search.reason
    words = f"every {period.seconds:.6g} s, {period.count} times"
    words = f"finding periodic: {words}" if report.of("periodic") else words
    if period.count < LEAST_PERIODS:
        return "the motion does not repeat often enough", f"{words}, and {LEAST_PERIODS} are needed"
    if not _has_holes(log):
        return "", words
    whole, samples, _ = steady_periods(log, period)
    intact = intact_periods(whole, samples)
    if int(intact.sum()) < LEAST_INTACT:
        return (
            "the periods of the motion have holes",
            f"{words}, but {int(intact.sum())} of {len(intact)} have all samples and values, and {LEAST_INTACT} are "
            "needed",
        )
    return "", words


def _has_holes(log: Log) -> bool:
    """Whether any row, position or effort is missing."""
    if len(find_gaps(log.time, 1.5).rows):
        return True
    return not all(np.isfinite(log[name]).all() for name in ("position", "effort") if name in log)


def _spikes(report: Report) -> Notes:
    """What the doctor sees of spikes in what is used."""
    found = [finding for finding in report.of("spikes") if finding.values["channel"] in MENDED]
    if not found:
        return ()
    where = ", ".join(f"{f.values['channel']} {f.joint} {f.values['count']}" for f in found)
    return (f"Single samples stand out of the noise (finding spikes: {where}): replaced by Hampel's test.",)


def _settled(report: Report, period: Period, log: Log) -> tuple[tuple[Step, ...], Notes]:
    """Without the start of the first period where that has not settled, if three periods are left."""
    found = report.of("transient")
    if not found or found[0].where.stop_s is None:
        return (), ()
    settled = float(found[0].where.stop_s)
    if settled <= period.first_s:
        return (), ()
    length = settled - float(log.time[0])
    left = int(np.floor((period.stop_s - settled) / period.seconds + 0.5 / period.samples))
    words = f"The start of the motion has not settled (finding transient, until {settled:.4g} s)"
    if left < LEAST_PERIODS:
        return (), (f"{words}, but without it fewer than {LEAST_PERIODS} periods would be left: kept.",)
    return (Trim(start_s=length),), (f"{words}: the first {length:.4g} s are left out.",)


def _uneven(report: Report, log: Log) -> tuple[tuple[Step, ...], Notes]:
    """A uniform rate where there is none."""
    if is_uniform(log.time):
        return (), ()
    found = [finding for code in ("irregular-timestamps", "gaps") for finding in report.of(code)]
    if not found:
        return (Resample(),), ("Samples are not equidistant: resampled.",)
    return (Resample(),), (f"{found[0].what[:-1]} ({_code(found[0])}): resampled.",)
