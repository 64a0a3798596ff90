"""Evidence that a fit is right: figures on other data, the look of the error, predictions."""

from armid.validation.auditing import Audit as Audit
from armid.validation.auditing import audit as audit
from armid.validation.comparison import Comparison as Comparison
from armid.validation.comparison import compare as compare
from armid.validation.metrics import JointMetrics as JointMetrics
from armid.validation.metrics import joint_metrics as joint_metrics
from armid.validation.metrics import percentage_accuracy as percentage_accuracy
from armid.validation.prediction import TorquePrediction as TorquePrediction
from armid.validation.prediction import predict as predict
from armid.validation.residuals import ResidualAnalysis as ResidualAnalysis
from armid.validation.result import ReferenceRow as ReferenceRow
from armid.validation.result import Thresholds as Thresholds
from armid.validation.result import Validation as Validation
from armid.validation.result import load_validation as load_validation
from armid.validation.validating import TrainingDataError as TrainingDataError
from armid.validation.validating import against_reference as against_reference
from armid.validation.validating import nominal_values as nominal_values
from armid.validation.validating import own_pipeline as own_pipeline
from armid.validation.validating import validate as validate
