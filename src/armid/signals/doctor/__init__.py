"""The log doctor: what is in a log, what is wrong with it, and what to do."""

from armid.signals.doctor.examine import examine as examine
from armid.signals.doctor.finding import Examination as Examination
from armid.signals.doctor.finding import Facts as Facts
from armid.signals.doctor.finding import Finding as Finding
from armid.signals.doctor.finding import JointFacts as JointFacts
from armid.signals.doctor.finding import Where as Where
