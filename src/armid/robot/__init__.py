"""What a robot is: descriptions, DH tables, URDF, MJCF, drives, springs, limits and the library."""

from armid.robot.load import library_names as library_names
from armid.robot.load import load_robot as load_robot
from armid.robot.robot import Drive as Drive
from armid.robot.robot import Joint as Joint
from armid.robot.robot import Limits as Limits
from armid.robot.robot import Robot as Robot
