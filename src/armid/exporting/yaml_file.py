"""A robot file with the identified values, which armid loads again: the fit's robot, its values as a published set."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.parameters import linear_friction
from armid.errors import ArmidWarning
from armid.escaping import file_name
from armid.exporting import arm as causes
from armid.exporting.arm import ExportError, IdentifiedArm, LinearFriction
from armid.exporting.exporter import CAUSES, TOLERANCE, Content, Exporter, Job, Proof, checked, exporters
from armid.exporting.programs import curves_of
from armid.exporting.urdf import Urdf, to_rpy, urdf_name
from armid.notes import Note, note
from armid.registry import friction_laws
from armid.robot.geometry import DHRow, dh_joints
from armid.robot.inertia import change_of_frame, to_com
from armid.robot.load import load_robot
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names
from armid.torque.friction.smooth import BEND, CURVE, EVEN, ODD, REST

EXACT = 1e-13  # [m, 1] to which a DH table must give back the placements


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
        urdf = urdf_name(job)
        beside: dict[str, Content] = {}
        notes: tuple[Note, ...] = ()
        if "urdf" not in job.formats:
            notes = (note("exporting.kinematics", file=urdf),)
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
        return {**beside, name: Content(text, notes, (urdf,))}

    def holds(self, arm: IdentifiedArm) -> str:
        """In words."""
        return "the description, all values as its published set `identified`, and the identified arm for simulation"

    def causes(self, arm: IdentifiedArm) -> tuple[str, ...]:
        """All but the loss in proportion to the load."""
        return tuple(cause for cause in CAUSES if cause != causes.LOAD_LOSS)

    def friction(self, job: Job) -> Array:
        """The description's own law, which may know two directions; beyond it viscous and Coulomb friction."""
        beyond = [job.arm.beyond_description(joint) for joint in range(job.arm.robot.n_joints)]
        return np.where(beyond, job.friction.torque(job.motion.qd), super().friction(job))

    def reads(self, robot: Robot) -> str:
        """The URDF, for kinematics that no DH table can give."""
        return "urdf" if dh_table(robot) is None else ""

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """By `armid.load_robot`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ArmidWarning)
            robot = load_robot(path)
        rows = robot.published["identified"]["parameters"]
        found = Model(robot).inverse_dynamics(*job.motion, {row["name"]: row["value"] for row in rows})
        pairs = {"torque": (found, torque)}
        return checked(path, "armid load_robot", pairs, TOLERANCE, "all parameters of the set", job.sizes)


def dh_table(robot: Robot) -> tuple[str, list[list[Any]]] | None:
    """Convention and rows of the DH table that a robot's joints are, or None."""
    for convention, read in (("modified-dh", _modified), ("standard-dh", _standard)):
        rows = [
            DHRow(*read(joint.placement if convention == "modified-dh" else joint.link_frame), joint.prismatic)
            for joint in robot.joints
        ]
        parents = [joint.parent for joint in robot.joints]
        joints = dh_joints(rows, modified=convention == "modified-dh", parents=parents, names=robot.joint_names)[0]
        pairs = list(zip(joints, robot.joints, strict=True))
        gaps = [np.abs(one.placement - two.placement).max() for one, two in pairs]
        gaps += [np.abs(one.link_frame - two.link_frame).max() for one, two in pairs]
        if max(gaps) <= EXACT:
            kinds = [["prismatic"] if row.prismatic else [] for row in rows]
            return convention, [[*map(float, row[:4]), *kind] for row, kind in zip(rows, kinds, strict=True)]
    return None


def _modified(place: Array) -> tuple[float, float, float, float]:
    alpha, theta = math.atan2(-place[1, 2], place[2, 2]), math.atan2(-place[0, 1], place[0, 0])
    return alpha, place[0, 3], float(place[:3, 3] @ place[:3, 2]), theta


def _standard(place: Array) -> tuple[float, float, float, float]:
    alpha, theta = math.atan2(place[2, 1], place[2, 2]), math.atan2(place[1, 0], place[0, 0])
    return alpha, float(place[:3, 3] @ place[:3, 0]), place[2, 3], theta


def robot_file(
    arm: IdentifiedArm, friction: LinearFriction, banner: list[str], urdf: str | None, *, in_joint_frames: bool
) -> bytes:
    """Text of the robot file.

    Args:
        arm: the arm.
        friction: what the simulated arm has, where its friction is more than the file's laws.
        banner: sentences for its first comment.
        urdf: name of the URDF beside it that holds the kinematics, for robots without a DH table.
        in_joint_frames: link frames of that URDF are joint frames.
    """
    robot = arm.robot
    frames = [joint.link_frame if in_joint_frames else np.eye(4) for joint in robot.joints]
    data: dict[str, Any] = {"armid": 1, "name": file_name(robot.name)}
    data["title"] = robot.title or f"{robot.name}, identified"
    data["kinematics"] = _kinematics(robot, urdf)
    data["gravity"] = robot.gravity.tolist() if robot.gravity.any() else "none"
    tool = frames[-1] @ robot.tool
    if np.any(tool != np.eye(4)):
        data["tool"] = {"xyz": tool[:3, 3].tolist(), "rpy": to_rpy(tool[:3, :3]).tolist()}
    data |= _limits(robot) | {"drives": _drives(arm, frames)}
    laws = [_law(arm, joint) for joint in range(robot.n_joints)]
    data["friction"] = {
        "law": [law.law for law in laws],
        "offset": [law.offset for law in laws],
        "per_direction": [law.per_direction for law in laws],
    }
    springs = [
        {"type": "gravity-compensation", "joint": s.joint, "a": s.a, "b": s.b, "phi": s.phi} for s in robot.springs
    ]
    springs += [
        {"type": "linear", "along": {robot.joint_names[j]: float(s.ratios[j]) for j in np.flatnonzero(s.ratios)}}
        for s in robot.linear_springs
    ]
    tables = [
        {"type": "table", "joint": t.joint, "position": t.position.tolist(), "torque": t.torque.tolist()}
        for t in robot.counterbalances
    ]
    if springs or tables:
        data["springs"] = [*springs, *tables]
    if not in_joint_frames:  # zeros and known values belong to the fit's own link frames
        data |= {"simplify": {"published": {"zero": sorted(robot.zero)}}} if robot.zero else {}
        data |= {"known": dict(robot.known)} if robot.known else {}
    units = {parameter.name: parameter.unit for parameter in arm.model.parameters}
    rows = [
        {"name": name, "value": value, "formula": name, **({"unit": units[name]} if name in units else {})}
        for name, value in _values(arm, friction, frames).items()
    ]
    data["published"] = {"identified": {"title": f"identified by armid, method {arm.fit.method}", "parameters": rows}}
    virtual = _virtual(arm, friction, frames)
    if virtual:
        data["virtual"] = virtual
    comment = "".join(f"# {line}".rstrip() + "\n" for line in banner)
    return (comment + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None)).encode()


def _kinematics(robot: Robot, urdf: str | None) -> dict[str, Any]:
    table = dh_table(robot)
    if table is None and urdf is None:
        raise ExportError(f"{robot.name}: has no DH table, so that its robot file needs a URDF beside it; add urdf")
    if table is None:
        return {"convention": "urdf", "file": urdf}
    parents = [joint.parent for joint in robot.joints]
    return {
        "convention": table[0],
        "rows": table[1],
        "joint_names": list(robot.joint_names),
        **({"parents": parents} if parents != list(range(len(parents))) else {}),
    }


def _limits(robot: Robot) -> dict[str, Any]:
    limits, result = robot.limits, dict[str, Any]()
    if not np.isnan(limits.lower + limits.upper).any():
        result["position"] = np.column_stack([limits.lower, limits.upper]).tolist()
    for name in ("velocity", "acceleration", "torque"):
        if not np.isnan(getattr(limits, name)).any():
            result[name] = getattr(limits, name).tolist()
    if limits.box is not None:
        result["box"] = limits.box.tolist()
    return {"limits": result} if result else {}


def _drives(arm: IdentifiedArm, frames: list[Array]) -> dict[str, Any]:
    robot, n = arm.robot, arm.robot.n_joints
    carriers = [drive.carrier if drive.carrier <= n else 0 for drive in robot.drives]
    turns = [np.eye(4), *frames]
    axes = [(turns[c][:3, :3] @ drive.axis).tolist() for c, drive in zip(carriers, robot.drives, strict=True)]
    known = [drive.rotor_inertia if robot.rotors else 0.0 for drive in robot.drives]
    result: dict[str, Any] = {
        "gear_ratio": [drive.gear_ratio for drive in robot.drives],
        "rotor_inertia": ["unknown" if value is None else value for value in known],
        "carrier": carriers,
        "axis": axes,
        "coupled": [drive.coupled and drive.carrier <= n for drive in robot.drives],
    }
    if robot.coupling is not None:
        result["coupling_matrix"] = robot.coupling.tolist()
    if robot.current_gain is not None:
        result["current_gain"] = [list(gain) for gain in robot.current_gain]
    return result


def _law(arm: IdentifiedArm, joint: int) -> Friction:
    """The description's own law; where there is friction beyond it, the nearest viscous and Coulomb friction."""
    if arm.beyond_description(joint):
        return Friction("coulomb-viscous", offset=True)
    return linear_friction(arm.robot.friction[joint])


def _values(arm: IdentifiedArm, friction: LinearFriction, frames: list[Array]) -> dict[str, float]:
    """All parameters, in the link frames of the file."""
    values = dict(arm.by_name)
    for joint in range(arm.robot.n_joints):
        if arm.beyond_description(joint):
            number = joint + 1
            for name in arm.robot.friction[joint].coefficient_names:
                values.pop(f"{name[:2]}{number}{name[2:]}", None)
            values |= {f"fv{number}": friction.damping[joint], f"fc{number}": friction.coulomb[joint]}
            values[f"fo{number}"] = arm.offset(joint)
    for number, (frame, phi) in enumerate(zip(frames, arm.links, strict=True), start=1):
        values |= dict(zip(inertial_names(number), (change_of_frame(frame) @ phi).tolist(), strict=True))
    return {name: float(value) + 0.0 for name, value in values.items()}


def _virtual(arm: IdentifiedArm, friction: LinearFriction, frames: list[Array]) -> dict[str, Any]:
    """The identified arm as the truth of a simulation; nothing where no such arm can be simulated."""
    n, springs = arm.robot.n_joints, []
    for number in range(1, len(arm.robot.springs) + len(arm.robot.linear_springs) + 1):
        stiffness = arm.by_name[f"ks{number}"]
        springs.append({"k": stiffness, "l0": arm.by_name[f"kl{number}"] / stiffness if stiffness > 0.0 else 0.0})
    if not arm.complete or (arm.links[:, 0] <= 0.0).any() or any(spring["k"] <= 0.0 for spring in springs):
        return {}
    links = []
    for frame, phi in zip(frames, arm.links, strict=True):
        mass, com, tensor = to_com(change_of_frame(frame) @ phi)
        keys = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
        inertia = {key: float(tensor[at]) for key, at in keys.items()}
        links.append({"mass": mass, "com": com.tolist(), "inertia": inertia})
    result: dict[str, Any] = {
        "note": "identified values, without friction by the load",
        "links": links,
        "rotor_inertia": [max(arm.by_name.get(f"Im{i + 1}", 0.0), 0.0) for i in range(n)],
        "friction": _true_friction(arm, friction),
    }
    if springs:
        result["springs"] = springs
    if arm.fit.noise is not None:
        result["torque_noise"] = arm.fit.noise.tolist()
    return result


def _true_friction(arm: IdentifiedArm, friction: LinearFriction) -> dict[str, Any]:
    """Law, directions and coefficients of each joint: its law where that is all its friction, else the nearest line."""
    laws, directions, values = [], [], []
    for joint in range(arm.robot.n_joints):
        linear = {name: float(x[joint]) for name, x in (("fv", friction.damping), ("fc", friction.coulomb))}
        law, up, down = _curve(arm, joint) or ("coulomb-viscous", linear, linear)
        laws.append(law)
        directions.append(up != down)
        ways = (("p", up), ("n", down)) if up != down else (("", up),)
        values.append(
            {f"{name}{way}": float(x) for way, c in ways for name, x in c.items()} | {"fo": arm.offset(joint)}
        )
    names = list(dict.fromkeys(name for one in values for name in one))
    coefficients = {name: [one.get(name, 0.0) for one in values] for name in names}
    return {"law": laws, "offset": True, "per_direction": directions, "coefficients": coefficients}


def _curve(arm: IdentifiedArm, joint: int) -> tuple[str, Mapping[str, float], Mapping[str, float]] | None:
    """Name and coefficients, upwards and downwards, of the law that is all of a joint's friction but that by load."""
    number, curves = joint + 1, [c for c in curves_of(arm) if c.joint == joint and not c.law.loaded]
    ways = [{name: arm.by_name.get(f"{name}{number}{way}", 0.0) for name in ("fv", "fc")} for way in ("", "p", "n")]
    linear = [{name: ways[0][name] + way[name] for name in way} for way in ways[1:]]
    if len(curves) == 1 and curves[0].law.name in friction_laws and not any(any(way.values()) for way in linear):
        _, law, up, down, _ = curves[0]
        own = [{name: c[name] for name in law.coefficients} for c in (up, down)]
        return law.name, own[0], own[1]
    smooth = {curve.law.name: curve.up for curve in curves if curve.law is not REST}
    if not smooth or not smooth.keys() <= {ODD.name, EVEN.name}:
        return None
    bend = next(iter(smooth.values()))["v0"]
    odd, even = (smooth.get(law.name, dict.fromkeys(law.columns, 0.0)) for law in (ODD, EVEN))
    found = []
    for sign, way in zip((1.0, -1.0), linear, strict=True):
        bells = {n: odd[n] + sign * even[e] for n, e in zip(ODD.columns, EVEN.columns, strict=False)}
        found.append(way | bells | {"fv": way["fv"] + sign * even["sev"] * BEND / bend, "v0": bend})
    return CURVE.name, found[0], found[1]
