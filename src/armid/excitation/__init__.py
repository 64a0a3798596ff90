"""Trajectories that make the parameters visible, and their design."""

from armid.excitation.certificate import Certificate as Certificate
from armid.excitation.checks import Checks as Checks
from armid.excitation.collision import Floor as Floor
from armid.excitation.collision import SelfCollision as SelfCollision
from armid.excitation.collision import ToolSpeed as ToolSpeed
from armid.excitation.collision import link_capsules as link_capsules
from armid.excitation.constraints import KeepOutBox as KeepOutBox
from armid.excitation.constraints import ToolBox as ToolBox
from armid.excitation.constraints import TorqueLimit as TorqueLimit
from armid.excitation.criteria import AOptimal as AOptimal
from armid.excitation.criteria import ConditionAndSigma as ConditionAndSigma
from armid.excitation.criteria import ConditionNumber as ConditionNumber
from armid.excitation.criteria import Criterion as Criterion
from armid.excitation.criteria import DOptimal as DOptimal
from armid.excitation.criteria import EOptimal as EOptimal
from armid.excitation.criteria import criterion as criterion
from armid.excitation.design import Fourier as Fourier
from armid.excitation.design import design as design
from armid.excitation.fourier import FourierSeries as FourierSeries
from armid.excitation.plan import Plan as Plan
from armid.excitation.plan import load_plan as load_plan
from armid.excitation.sequence import programme as programme
from armid.excitation.trajectory import Trajectory as Trajectory
