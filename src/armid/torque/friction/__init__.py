"""Friction laws, one file each; importing this package registers armid's own."""

from armid.torque.friction import linear as linear  # isort: skip
from armid.torque.friction import stribeck as stribeck  # isort: skip
from armid.torque.friction import exponential as exponential  # isort: skip
from armid.torque.friction import hyperbolic as hyperbolic  # isort: skip
from armid.torque.friction import makkar as makkar  # isort: skip
from armid.torque.friction import smooth as smooth  # isort: skip
