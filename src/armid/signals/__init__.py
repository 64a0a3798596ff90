"""From a log to a dataset one can regress, and the doctor that looks at logs first."""

from typing import TYPE_CHECKING, Any

from armid.signals.averaging import Averaged as Averaged
from armid.signals.averaging import PeriodAccumulator as PeriodAccumulator
from armid.signals.averaging import average_periods as average_periods
from armid.signals.averaging import differentiate as differentiate
from armid.signals.averaging import select_harmonics as select_harmonics
from armid.signals.dataset import Dataset as Dataset
from armid.signals.filtering import LowPass as LowPass
from armid.signals.filtering import Smoothed as Smoothed
from armid.signals.filters import filtered as filtered
from armid.signals.filters import low_pass_kernel as low_pass_kernel
from armid.signals.filters import row_blocks as row_blocks
from armid.signals.filters import smooth as smooth
from armid.signals.fourier import FourierFit as FourierFit
from armid.signals.fourier import fit_fourier as fit_fourier
from armid.signals.period import Period as Period
from armid.signals.period import PeriodSearch as PeriodSearch
from armid.signals.period import find_period as find_period
from armid.signals.period import leading_transient as leading_transient
from armid.signals.period import whole_periods as whole_periods
from armid.signals.periodic import PeriodicAverage as PeriodicAverage
from armid.signals.pipeline import Pipeline as Pipeline
from armid.signals.pipeline import choose as choose
from armid.signals.pipeline import load_pipeline as load_pipeline
from armid.signals.pipeline import process as process
from armid.signals.pipeline import process_logs as process_logs
from armid.signals.preparations import CurrentToTorque as CurrentToTorque
from armid.signals.preparations import Hampel as Hampel
from armid.signals.preparations import Repair as Repair
from armid.signals.preparations import Resample as Resample
from armid.signals.preparations import Shift as Shift
from armid.signals.preparations import ToJointSide as ToJointSide
from armid.signals.preparations import Trim as Trim
from armid.signals.preparations import TrimRest as TrimRest
from armid.signals.problems import SignalError as SignalError
from armid.signals.resample import fuse as fuse
from armid.signals.resample import resample as resample
from armid.signals.resample import shifted as shifted
from armid.signals.steps import Preparation as Preparation
from armid.signals.steps import Step as Step
from armid.signals.steps import Strategy as Strategy
from armid.signals.steps import step_from_data as step_from_data

if TYPE_CHECKING:
    from armid.signals.doctor import Examination as Examination
    from armid.signals.doctor import Finding as Finding
    from armid.signals.doctor import examine as examine

_DOCTOR = ("Examination", "Finding", "examine")


def __getattr__(name: str) -> Any:
    """The doctor, which takes a while to import, for those who ask."""
    if name in _DOCTOR:
        from armid.signals import doctor

        return getattr(doctor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those of the doctor included."""
    return sorted([*globals(), *_DOCTOR])
