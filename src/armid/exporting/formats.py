"""armid's own formats: URDF, MJCF, C, Python, and a robot file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.exporting import arm as causes
from armid.exporting.arm import Arm, ExportError
from armid.exporting.c_source import c_header
from armid.exporting.exporter import CAUSES, Content, Exporter, Job, exporters
from armid.exporting.mjcf import mjcf, springs_held
from armid.exporting.mujoco_proof import prove_mjcf
from armid.exporting.proof import Proof, prove_c, prove_python, prove_urdf, prove_yaml
from armid.exporting.python_source import python_module
from armid.exporting.urdf import new_urdf, patched
from armid.exporting.yaml_file import dh_table, robot_file
from armid.robot.robot import Robot


@exporters.add("urdf")
class Urdf(Exporter):
    """The robot's own URDF with the identified values, or a new one."""

    title = "URDF: the robot's own file with identified inertia, damping and friction, or a new one"
    links = True

    def files(self, job: Job) -> dict[str, Content]:
        """One file, named like the robot's own."""
        content, notes = (
            new_urdf(job.arm, job.friction, job.banner)
            if job.urdf is None
            else patched(job.arm, job.friction, job.urdf)
        )
        if not np.allclose(job.arm.robot.gravity, (0.0, 0.0, -9.81), rtol=0.0, atol=1e-12):
            vector = " ".join(f"{value:.6g}" for value in job.arm.robot.gravity)
            notes.append(f"A URDF does not say where down is: this arm's gravity is {vector} m/s^2 in the base frame.")
        return {_urdf_name(job): Content(content, tuple(notes))}

    def holds(self, arm: Arm) -> str:
        """In words."""
        return "mass, centre of mass and inertia of the links; damping and friction of the joints"

    def causes(self, arm: Arm) -> tuple[str, ...]:
        """None but links and friction."""
        return ()

    def friction_held(self, job: Job) -> Array:
        """Viscous and Coulomb friction."""
        return job.friction.torque(job.motion.qd)

    def reads_urdf(self, robot: Robot) -> bool:
        """Always, where there is one."""
        return True

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """By Pinocchio."""
        return prove_urdf(path, job.arm, job.motion, torque, job.sizes)


@exporters.add("mjcf")
class Mjcf(Exporter):
    """A model for MuJoCo."""

    title = "MJCF: a model for MuJoCo with armature, damping, frictionloss, tendons and motors"
    links = True

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        content, notes = mjcf(job.arm, job.friction, job.banner)
        return {f"{job.arm.identifier}.xml": Content(content, tuple(notes))}

    def holds(self, arm: Arm) -> str:
        """In words."""
        springs = "springs as tendons, " if arm.robot.springs and springs_held(arm) else ""
        return f"links, joints with ranges, gravity, armature, damping, frictionloss, {springs}motors"

    def causes(self, arm: Arm) -> tuple[str, ...]:
        """Rotors, coupled motors, and springs where MuJoCo takes them."""
        springs = (causes.SPRINGS,) if springs_held(arm) else ()
        return (causes.ROTORS, causes.MOTOR_INERTIA, causes.MOTOR_FRICTION, *springs)

    def friction_held(self, job: Job) -> Array:
        """Viscous and Coulomb friction."""
        return job.friction.torque(job.motion.qd)

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """By MuJoCo."""
        return prove_mjcf(path, job.arm, job.motion, torque, job.sizes)


class _Program(Exporter):
    """What C and Python have in common: they hold everything but delays."""

    def holds(self, arm: Arm) -> str:
        """In words."""
        springs = ", springs" if arm.robot.springs or arm.robot.counterbalances else ""
        delays = ", everything but delays" if np.any(arm.fit.delay_s) else ""
        return f"inverse dynamics, gravity, friction{springs} and mass matrix{delays}"


@exporters.add("c")
class C(_Program):
    """A header for C and C++."""

    title = "C99: one header without allocation, for controllers"

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        return {f"{job.arm.identifier}_dynamics.h": Content(c_header(job.arm, job.banner))}

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Compiled and run."""
        return prove_c(path, job.arm, job.motion, job.quantities(torque), job.sizes)


@exporters.add("python")
class Python(_Program):
    """A module that needs NumPy alone."""

    title = "Python: one module that needs NumPy alone, vectorised over samples"

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        return {f"{job.arm.identifier}_dynamics.py": Content(python_module(job.arm, job.banner))}

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Run here."""
        return prove_python(path, job.motion, job.quantities(torque), job.sizes)


@exporters.add("yaml")
class RobotFile(Exporter):
    """A robot file that armid loads again."""

    title = "YAML: a robot file with the identified values, which armid loads again"

    def files(self, job: Job) -> dict[str, Content]:
        """The robot file, and the URDF that it names where the robot has no DH table."""
        arm, name = job.arm, f"{job.arm.identifier}.yaml"
        if dh_table(arm.robot) is not None:
            text = robot_file(arm, job.friction, job.banner, None, in_joint_frames=False)
            return {name: Content(text)}
        urdf = _urdf_name(job)
        beside: dict[str, Content] = {}
        notes: tuple[str, ...] = ()
        if "urdf" not in job.formats:
            notes = (f"Its kinematics are those of {urdf}, which goes with it.",)
            if arm.complete:
                beside = {urdf: Content(Urdf().files(job)[urdf].content, proved=False)}
            elif job.urdf is not None:
                beside = {urdf: Content(job.urdf.read_bytes(), proved=False)}
            else:
                raise ExportError(
                    f"{arm.robot.name}: has neither a DH table nor a URDF that its robot file could name; make the fit "
                    "with `armid identify --method feasible`, so that a URDF can be written"
                )
        text = robot_file(arm, job.friction, job.banner, urdf, in_joint_frames=job.urdf is None)
        return {**beside, name: Content(text, notes, urdf)}

    def holds(self, arm: Arm) -> str:
        """In words."""
        return "the description, all values as its published set `identified`, and the identified arm for simulation"

    def causes(self, arm: Arm) -> tuple[str, ...]:
        """All but the loss in proportion to the load."""
        return tuple(cause for cause in CAUSES if cause != causes.LOAD_LOSS)

    def friction_held(self, job: Job) -> Array:
        """The description's own law, which may know two directions; beyond it viscous and Coulomb friction."""
        whole = job.parts.get(causes.JOINT_FRICTION, np.zeros_like(job.motion.q))
        beyond = [job.arm.beyond_description(joint) for joint in range(job.arm.robot.n_joints)]
        return np.where(beyond, job.friction.torque(job.motion.qd), whole)

    def reads_urdf(self, robot: Robot) -> bool:
        """For kinematics that no DH table can give."""
        return dh_table(robot) is None

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """By `armid.load_robot`."""
        return prove_yaml(path, job.motion, torque, job.sizes)


def _urdf_name(job: Job) -> str:
    return f"{job.arm.identifier}.urdf" if job.urdf is None else job.urdf.name
