"""armid finds out how a robot arm really moves: from a description and recorded motion to a dynamic model.

Public names are imported when they are first used, so that ``import armid`` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armid._version import __version__ as __version__
from armid.errors import ArmidError as ArmidError

if TYPE_CHECKING:
    from armid.dynamics import BaseParameters as BaseParameters
    from armid.dynamics import CompactFactor as CompactFactor
    from armid.dynamics import Group as Group
    from armid.dynamics import Model as Model
    from armid.dynamics import accumulate as accumulate
    from armid.dynamics import compact_factor as compact_factor
    from armid.dynamics import jacobian as jacobian
    from armid.dynamics import link_frames as link_frames
    from armid.dynamics import set_threads as set_threads
    from armid.dynamics import tool_frame as tool_frame
    from armid.dynamics import view as view
    from armid.estimation import Fit as Fit
    from armid.estimation import FrictionSearch as FrictionSearch
    from armid.estimation import OrdinaryLeastSquares as OrdinaryLeastSquares
    from armid.estimation import WeightedLeastSquares as WeightedLeastSquares
    from armid.estimation import identify as identify
    from armid.estimation import load_fit as load_fit
    from armid.excitation import DOptimal as DOptimal
    from armid.excitation import Fourier as Fourier
    from armid.excitation import Plan as Plan
    from armid.excitation import design as design
    from armid.excitation import load_plan as load_plan
    from armid.experiment import VirtualRobot as VirtualRobot
    from armid.exporting import export as export
    from armid.logs import Log as Log
    from armid.logs import open_log as open_log
    from armid.logs import read_log as read_log
    from armid.logs import write_log as write_log
    from armid.payload import PayloadEstimate as PayloadEstimate
    from armid.payload import identify_payload as identify_payload
    from armid.payload import load_payload as load_payload
    from armid.progress import watch_progress as watch_progress
    from armid.reporting import report as report
    from armid.robot import Robot as Robot
    from armid.robot import library_names as library_names
    from armid.robot import load_robot as load_robot
    from armid.signals import Dataset as Dataset
    from armid.signals import LowPass as LowPass
    from armid.signals import PeriodicAverage as PeriodicAverage
    from armid.signals import process as process
    from armid.validation import Validation as Validation
    from armid.validation import audit as audit
    from armid.validation import predict as predict
    from armid.validation import validate as validate

_HOMES = {
    "armid.robot": ("Robot", "library_names", "load_robot"),
    "armid.dynamics": (
        "BaseParameters",
        "CompactFactor",
        "Group",
        "Model",
        "accumulate",
        "compact_factor",
        "jacobian",
        "link_frames",
        "set_threads",
        "tool_frame",
        "view",
    ),
    "armid.excitation": ("DOptimal", "Fourier", "Plan", "design", "load_plan"),
    "armid.logs": ("Log", "open_log", "read_log", "write_log"),
    "armid.signals": ("Dataset", "LowPass", "PeriodicAverage", "process"),
    "armid.experiment": ("VirtualRobot",),
    "armid.estimation": (
        "Fit",
        "FrictionSearch",
        "OrdinaryLeastSquares",
        "WeightedLeastSquares",
        "identify",
        "load_fit",
    ),
    "armid.validation": ("Validation", "audit", "predict", "validate"),
    "armid.payload": ("PayloadEstimate", "identify_payload", "load_payload"),
    "armid.progress": ("watch_progress",),
    "armid.exporting": ("export",),
    "armid.reporting": ("report",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["ArmidError", "__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'armid' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
