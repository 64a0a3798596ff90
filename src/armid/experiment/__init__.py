"""Experiments: the drive protocol, the virtual robot, and the procedures of the papers."""

from armid.experiment.drive import State as State
from armid.experiment.drive import SteppedArm as SteppedArm
from armid.experiment.drive import Timing as Timing
from armid.experiment.excite import excite as excite
from armid.experiment.excite import point_to_point as point_to_point
from armid.experiment.record import record as record
from armid.experiment.settings import DriveLoop as DriveLoop
from armid.experiment.settings import Elasticity as Elasticity
from armid.experiment.settings import Presliding as Presliding
from armid.experiment.settings import Sensors as Sensors
from armid.experiment.settings import Thermal as Thermal
from armid.experiment.virtual import VirtualRobot as VirtualRobot
