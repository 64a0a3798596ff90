"""The numeric core: kinematics, regressor, dynamics, compact factor, base parameters."""

from armid.dynamics.base import BaseParameters as BaseParameters
from armid.dynamics.expressions import Group as Group
from armid.dynamics.factor import CompactFactor as CompactFactor
from armid.dynamics.factor import accumulate as accumulate
from armid.dynamics.factor import compact_factor as compact_factor
from armid.dynamics.kinematics import jacobian as jacobian
from armid.dynamics.kinematics import link_frames as link_frames
from armid.dynamics.kinematics import tool_frame as tool_frame
from armid.dynamics.model import Model as Model
from armid.dynamics.parameters import Parameter as Parameter
from armid.dynamics.threads import set_threads as set_threads
from armid.dynamics.views import View as View
from armid.dynamics.views import view as view
from armid.dynamics.views import view_names as view_names
