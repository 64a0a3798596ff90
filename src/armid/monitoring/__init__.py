"""The model at work: external torque, contacts, and a fit that stays right."""

from armid.monitoring.detector import ContactLimits as ContactLimits
from armid.monitoring.detector import Detected as Detected
from armid.monitoring.detector import Detector as Detector
from armid.monitoring.detector import calibrate as calibrate
from armid.monitoring.detector import load_limits as load_limits
from armid.monitoring.observation import Alarm as Alarm
from armid.monitoring.observation import Observation as Observation
from armid.monitoring.observation import observe as observe
from armid.monitoring.observer import Observed as Observed
from armid.monitoring.observer import Observer as Observer
from armid.monitoring.online import Online as Online
from armid.monitoring.online import ParameterChange as ParameterChange
from armid.monitoring.online import Update as Update
from armid.monitoring.online import update as update
from armid.monitoring.recordings import stretches as stretches
