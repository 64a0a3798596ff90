"""Tracking with PID, feed-forward and computed torque, on the identified model."""

from armid.control.control_model import ControlError as ControlError
from armid.control.control_model import ControlModel as ControlModel
from armid.control.control_model import fit_model as fit_model
from armid.control.control_model import nominal_model as nominal_model
from armid.control.controllers import PID as PID
from armid.control.controllers import ComputedTorque as ComputedTorque
from armid.control.controllers import Controller as Controller
from armid.control.controllers import FeedForward as FeedForward
from armid.control.controllers import Gains as Gains
from armid.control.controllers import choose_gains as choose_gains
from armid.control.reference import Reference as Reference
from armid.control.reference import ToolPoses as ToolPoses
from armid.control.reference import path_reference as path_reference
from armid.control.reference import read_tool_poses as read_tool_poses
from armid.control.reference import tool_path as tool_path
from armid.control.track import NoisyDrives as NoisyDrives
from armid.control.track import compare_controllers as compare_controllers
from armid.control.track import track as track
from armid.control.tracking import Tracking as Tracking
from armid.control.tracking import TrackingComparison as TrackingComparison
