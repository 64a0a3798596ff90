"""From a log to a dataset one can regress, and the doctor that looks at logs first."""

from armid.signals.dataset import Dataset as Dataset
from armid.signals.filtering import LowPass as LowPass
from armid.signals.filtering import Smoothed as Smoothed
from armid.signals.fourier import FourierFit as FourierFit
from armid.signals.period import find_period as find_period
from armid.signals.period import whole_periods as whole_periods
from armid.signals.periodic import PeriodicAverage as PeriodicAverage
from armid.signals.pipeline import Pipeline as Pipeline
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
from armid.signals.resample import fuse as fuse
