"""Recorded motion: the log, its readers and writers."""

from armid.logs.convert import to_joint_side as to_joint_side
from armid.logs.convert import torque_from_current as torque_from_current
from armid.logs.files import open_log as open_log
from armid.logs.files import read_log as read_log
from armid.logs.files import read_logs as read_logs
from armid.logs.files import write_log as write_log
from armid.logs.log import Log as Log
from armid.logs.log import LogError as LogError
from armid.logs.log import LogInfo as LogInfo
from armid.logs.recipe import Recipe as Recipe
from armid.logs.table import READERS as READERS
from armid.logs.table import Table as Table
