"""URDF: the user's own file with new `<inertial>` and `<dynamics>`, or a new file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.escaping import xml_attribute
from armid.exporting.arm import ExportError, IdentifiedArm, LinearFriction, text_of
from armid.exporting.exporter import TOLERANCE, Content, Exporter, Job, Proof, ProofError, checked, exporters
from armid.exporting.own_file import Document, Node, changed, read_quietly, unchanged_links, without_round_off
from armid.notes import Note, note
from armid.robot.inertia import change_of_frame, to_com
from armid.robot.robot import Robot

FAR = 1000.0  # [m] range of a prismatic joint without limits, which the format demands


@exporters.add("urdf")
class Urdf(Exporter):
    """The robot's own URDF with the identified values, or a new one; read back by Pinocchio."""

    title = "URDF: the robot's own file with identified inertia, damping and friction, or a new one"
    links = linear = True

    def files(self, job: Job) -> dict[str, Content]:
        """One file, named like the robot's own."""
        content, notes = (
            new_urdf(job.arm, job.friction, job.banner)
            if job.urdf is None
            else patched(job.arm, job.friction, job.urdf)
        )
        return {urdf_name(job): Content(content, (*notes, *gravity_notes(job.arm.robot)))}

    def holds(self, arm: IdentifiedArm) -> str:
        """In words."""
        return "mass, centre of mass and inertia of the links; damping and friction of the joints"

    def causes(self, arm: IdentifiedArm) -> tuple[str, ...]:
        """None but links and friction."""
        return ()

    def reads(self, robot: Robot) -> str:
        """The robot's own, where there is one."""
        return "urdf"

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Links and `<dynamics>`, through Pinocchio, or armid's own reader where it is not installed."""
        note, against = "links, damping and Coulomb friction", "armid's own URDF reader"
        try:
            import pinocchio
        except ImportError:
            found = _by_own_reader(path, job.motion)
            note = "links, damping and friction; not proved by another program: install Pinocchio (pip install pin)"
        else:
            found, against = _by_pinocchio(path, job), f"Pinocchio {pinocchio.__version__}"
        return checked(path, against, {"torque": (found, torque)}, TOLERANCE, note, job.sizes)


def gravity_notes(robot: Robot) -> list[Note]:
    """Gravity that is not the usual, which the file cannot say."""
    usual = np.allclose(robot.gravity, (0.0, 0.0, -9.81), rtol=0.0, atol=1e-12)
    return [] if usual else [note("exporting.gravity", vector=robot.gravity.tolist())]


def urdf_name(job: Job) -> str:
    """Name of the URDF that an export writes: that of the robot's own, if there is one."""
    return f"{job.arm.identifier}.urdf" if job.urdf is None else job.urdf.name


def patched(arm: IdentifiedArm, friction: LinearFriction, path: Path) -> tuple[bytes, list[Note]]:
    """The user's file with the identified inertias and friction, and what was done to links that move with another.

    A moving link gets all of the identified inertia that turns with its joint; links fixed to it lose theirs, since it
    is counted already. Links fixed to the base keep what they say: no torque depends on them. What has not changed
    keeps its bytes: links whose inertia is the file's own, those fixed to them, and single numbers.
    """
    unchanged = unchanged_links(arm.links, path, "urdf")
    document = Document(path.read_bytes(), str(path))
    links, joints = document.root.named("link"), document.root.named("joint")
    moving = {joint.link_name: index for index, joint in enumerate(arm.robot.links)}
    emptied = []
    for name, node in links.items():
        carrier = name if name in moving else _carrier(name, joints, moving)
        if carrier is None or unchanged[moving[carrier]]:
            continue
        if name in moving:
            _set_inertial(document, node, arm.links[moving[name]])
        elif (old := node.find("inertial")) is not None:
            document.remove(old)
            emptied.append(name)
    followers = np.zeros(len(arm.robot.dependent))  # whose friction is counted with that of the joints they follow
    pairs = zip(np.append(friction.damping, followers), np.append(friction.coulomb, followers), strict=True)
    for joint, (damping, coulomb) in zip(arm.robot.links, pairs, strict=True):
        values = {"damping": text_of(damping), "friction": text_of(coulomb)}
        node = joints[joint.name]
        old = node.find("dynamics")
        if old is not None:
            document.set(old, changed(old, values))
        else:
            document.insert_last(node, "<dynamics " + " ".join(f'{k}="{v}"' for k, v in values.items()) + "/>")
    notes = [note("exporting.emptied", links=emptied)] if emptied else []
    if b'filename="' in document.content and any(
        not file.startswith((b"package://", b"file://", b"/", b"http")) for file in _files(document.content)
    ):
        notes.append(note("exporting.meshes"))
    return document.result(), notes


def _files(content: bytes) -> list[bytes]:
    return [part.split(b'"', 1)[0] for part in content.split(b'<mesh filename="')[1:]]


def _carrier(name: str, joints: dict[str, Node], moving: dict[str, int]) -> str | None:
    """The moving link that a link of the file is fixed to; None for the base."""
    parents: dict[str, str] = {}
    for node in joints.values():
        ends = [node.find(tag) for tag in ("child", "parent")]
        child, parent = ("" if end is None else end.attributes.get("link", "") for end in ends)
        parents[child] = parent
    while name in parents:
        name = parents[name]
        if name in moving:
            return name
    return None


def _inertial(phi: Array) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Attributes of <origin>, <mass>, <inertia>: at the centre of mass, along the link's axes, without round-off."""
    mass, com, about = to_com(phi)
    com, about = without_round_off(mass, com, about)
    keys = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    return (
        {"xyz": text_of(*com), "rpy": "0 0 0"},
        {"value": text_of(mass)},
        {key: text_of(about[at]) for key, at in keys.items()},
    )


def _set_inertial(document: Document, link: Node, phi: Array) -> None:
    origin, mass, inertia = _inertial(phi)
    node = link.find("inertial")
    if node is None:
        document.insert_last(link, _inertial_text(phi))
        return
    places = [node.find(tag) for tag in ("mass", "inertia", "origin")]
    if places[0] is None or places[1] is None:
        raise ExportError(f"{document.source}: link {link.attributes['name']!r} has <inertial> without mass or inertia")
    document.set(places[0], changed(places[0], mass))
    document.set(places[1], changed(places[1], inertia))
    if places[2] is not None:
        if "rpy" not in places[2].attributes:
            del origin["rpy"]
        document.set(places[2], changed(places[2], origin))
    else:
        document.insert_first(node, f'<origin xyz="{origin["xyz"]}" rpy="0 0 0"/>')


def _inertial_text(phi: Array) -> str:
    origin, mass, inertia = _inertial(phi)
    parts = (("origin", origin), ("mass", mass), ("inertia", inertia))
    lines = ["  <" + tag + "".join(f' {k}="{v}"' for k, v in values.items()) + "/>" for tag, values in parts]
    return "\n".join(["<inertial>", *lines, "</inertial>"])


def new_urdf(arm: IdentifiedArm, friction: LinearFriction, banner: Sequence[str] = ()) -> tuple[bytes, list[Note]]:
    """A new file, `banner` in its first comment; the frame of each link is that of its joint, with the axis along z."""
    robot = arm.robot
    names = unique_names([joint.link_name for joint in robot.joints], {"base", "tool"})
    lines = ['<?xml version="1.0" encoding="utf-8"?>', *comment(banner)]
    lines += [f"<robot name={xml_attribute(robot.name)}>", '  <link name="base"/>']
    for index, joint in enumerate(robot.joints):
        before = np.eye(4) if joint.parent == 0 else robot.joints[joint.parent - 1].link_frame
        parent = "base" if joint.parent == 0 else names[joint.parent - 1]
        phi = change_of_frame(joint.link_frame) @ arm.links[index]
        lines.append(f"  <link name={xml_attribute(names[index])}>")
        lines += [f"    {line}" for line in _inertial_text(phi).splitlines()] if phi.any() else []
        lines += ["  </link>", *_joint(arm, index, before @ joint.placement, parent, names[index], friction)]
    flange = robot.joints[-1].link_frame @ robot.tool
    if np.abs(flange - np.eye(4)).max() > 0.0:
        lines += ['  <link name="tool"/>', '  <joint name="tool_joint" type="fixed">', f"    {_origin(flange)}"]
        lines += [f"    <parent link={xml_attribute(names[-1])}/>", '    <child link="tool"/>', "  </joint>"]
    turned = any(np.abs(joint.link_frame - np.eye(4)).max() > 0.0 for joint in robot.joints)
    notes = [note("exporting.joint_frames")] if turned else []
    return ("\n".join([*lines, "</robot>"]) + "\n").encode(), notes


def _joint(
    arm: IdentifiedArm, index: int, place: Array, parent: str, child: str, friction: LinearFriction
) -> list[str]:
    joint, limits = arm.robot.joints[index], arm.robot.limits
    stated = (limits.lower, limits.upper, limits.velocity, limits.torque)
    lower, upper, velocity, effort = (float(values[index]) for values in stated)
    free = math.isnan(lower) or math.isnan(upper)
    if free and joint.prismatic:
        lower, upper = -FAR, FAR
    kind = "prismatic" if joint.prismatic else "continuous" if free else "revolute"
    ends = "" if free and not joint.prismatic else f' lower="{text_of(lower)}" upper="{text_of(upper)}"'
    top = " ".join(f'{k}="{text_of(np.nan_to_num(v))}"' for k, v in (("effort", effort), ("velocity", velocity)))
    values = f'damping="{text_of(friction.damping[index])}" friction="{text_of(friction.coulomb[index])}"'
    return [
        f'  <joint name={xml_attribute(joint.name)} type="{kind}">',
        f"    {_origin(place)}",
        f"    <parent link={xml_attribute(parent)}/>",
        f"    <child link={xml_attribute(child)}/>",
        '    <axis xyz="0 0 1"/>',
        f"    <limit{ends} {top}/>",
        f"    <dynamics {values}/>",
        "  </joint>",
    ]


def _origin(place: Array) -> str:
    return f'<origin xyz="{text_of(*place[:3, 3])}" rpy="{text_of(*to_rpy(place[:3, :3]))}"/>'


def to_rpy(rotation: Array) -> Array:
    """Roll, pitch, yaw [rad] of a rotation (3, 3): inverse of `armid.robot.geometry.from_rpy`."""
    flat = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], flat)
    if flat < 1e-12:  # roll and yaw turn about the same axis
        return np.array([0.0, pitch, math.atan2(-rotation[0, 1], rotation[1, 1])])
    roll = math.atan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, math.atan2(rotation[1, 0], rotation[0, 0])])


def comment(sentences: Sequence[str]) -> list[str]:
    """Lines of an XML comment."""
    return ["<!--", *(f"  {sentence}" for sentence in sentences), "-->"] if sentences else []


def unique_names(names: list[str], taken: set[str]) -> list[str]:
    """The names, with a number added to those that are there already."""
    result = []
    for name in names:
        fresh, count = name, 2
        while fresh in taken:
            fresh, count = f"{name}_{count}", count + 1
        taken = taken | {fresh}
        result.append(fresh)
    return result


def _by_pinocchio(path: Path, job: Job) -> Array:
    import pinocchio

    model = pinocchio.buildModelFromXML(path.read_text("utf-8"))
    model.gravity.linear = job.arm.robot.gravity
    data = model.createData()
    robot = job.arm.robot
    joints = [model.joints[model.getJointId(joint.name)] for joint in robot.links]
    damping, friction = (np.zeros(model.nv) + getattr(model, name) for name in ("damping", "friction"))
    found = np.empty_like(job.motion.q)
    moved = robot.all_positions(job.motion.q), job.motion.qd @ robot.ratios.T, job.motion.qdd @ robot.ratios.T
    for row, (q, v, a) in enumerate(zip(*moved, strict=True)):
        full_q, full_v, full_a = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for k, joint in enumerate(joints):
            turn = [np.cos(q[k]), np.sin(q[k])] if joint.nq == 2 else [q[k]]
            full_q[joint.idx_q : joint.idx_q + joint.nq] = turn
            full_v[joint.idx_v], full_a[joint.idx_v] = v[k], a[k]
        torque = pinocchio.rnea(model, data, full_q, full_v, full_a) + damping * full_v + friction * np.sign(full_v)
        found[row] = [torque[joint.idx_v] for joint in joints] @ robot.ratios
    return found


def _by_own_reader(path: Path, motion: Motion) -> Array:
    robot = read_quietly(path, "urdf")
    model = Model(robot)
    inertia, friction = robot.nominal_inertia, robot.nominal_friction
    values = np.zeros(len(model.names))
    if inertia is None or friction is None:
        raise ProofError(f"{path.name}: was not kept, because it states no inertia; please report this")
    values[: inertia.size] = inertia.ravel()
    return model.inverse_dynamics(*motion, values) + friction[:, 0] * motion.qd + friction[:, 1] * np.sign(motion.qd)
