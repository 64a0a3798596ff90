"""From a dataset to parameters: estimators, friction, physical consistency, uncertainty."""

from armid.estimation.box_search import BeeColony as BeeColony
from armid.estimation.box_search import DifferentialEvolution as DifferentialEvolution
from armid.estimation.consistent.conditions import Bounds as Bounds
from armid.estimation.consistent.feasible import ConsistentLeastSquares as ConsistentLeastSquares
from armid.estimation.consistent.feasible import consistent_fit as consistent_fit
from armid.estimation.consistent.prior import Prior as Prior
from armid.estimation.consistent.prior import parse_prior as parse_prior
from armid.estimation.consistent.prior import read_prior as read_prior
from armid.estimation.errors_in_variables import MaximumLikelihood as MaximumLikelihood
from armid.estimation.errors_in_variables import TotalLeastSquares as TotalLeastSquares
from armid.estimation.estimator import Estimator as Estimator
from armid.estimation.estimator import estimators as estimators
from armid.estimation.fit import Fit as Fit
from armid.estimation.fit import Prediction as Prediction
from armid.estimation.fit import load_fit as load_fit
from armid.estimation.identifiability import Identifiability as Identifiability
from armid.estimation.identifying import identify as identify
from armid.estimation.instruments import InstrumentalVariables as InstrumentalVariables
from armid.estimation.instruments import commanded_motion as commanded_motion
from armid.estimation.least_squares import OrdinaryLeastSquares as OrdinaryLeastSquares
from armid.estimation.least_squares import PriorLeastSquares as PriorLeastSquares
from armid.estimation.least_squares import SingularValueSolution as SingularValueSolution
from armid.estimation.least_squares import WeightedLeastSquares as WeightedLeastSquares
from armid.estimation.mixed import MixedEffects as MixedEffects
from armid.estimation.problem import EstimationError as EstimationError
from armid.estimation.problem import Problem as Problem
from armid.estimation.robust import RobustLeastSquares as RobustLeastSquares
from armid.torque.friction.term import FrictionTerm as FrictionTerm
from armid.torque.known import KnownTorque as KnownTorque

for _kind in (
    *(MixedEffects, ConsistentLeastSquares, WeightedLeastSquares, OrdinaryLeastSquares, SingularValueSolution),
    *(MaximumLikelihood, RobustLeastSquares, TotalLeastSquares, InstrumentalVariables),
    *(BeeColony, DifferentialEvolution),
):
    estimators.add(_kind.name)(_kind)
