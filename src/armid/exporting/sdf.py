"""SDF, the format of Gazebo and Drake: a new model of links and joints, made from the URDF that would be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, fromstring, indent, tostring

from armid.arrays import Array
from armid.exporting.arm import IdentifiedArm, LinearFriction
from armid.exporting.exporter import Content, Job, Proof, exporters
from armid.exporting.urdf import Urdf, comment, gravity_notes, new_urdf, unique_names
from armid.robot.robot import Robot

_HERE = "0 0 0 0 0 0"
# Of a link that the fit leaves without mass: SDF would give it 1 kg, and refuses zero.
_TINY = fromstring(
    '<inertial><origin xyz="0 0 0" rpy="0 0 0"/><mass value="1e-9"/>'
    '<inertia ixx="1e-12" ixy="0" ixz="0" iyy="1e-12" iyz="0" izz="1e-12"/></inertial>'
)


@exporters.add("sdf")
class Sdf(Urdf):
    """A new SDF, read back as a URDF by Pinocchio."""

    title = "SDF: a new model with identified inertia, damping and friction, for Gazebo and Drake"

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        content = new_sdf(job.arm, job.friction, job.banner)
        return {f"{job.arm.identifier}.sdf": Content(content, tuple(gravity_notes(job.arm.robot)))}

    def reads(self, robot: Robot) -> str:
        """None: the model is new."""
        return ""

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Links and `<dynamics>`, turned into a URDF."""
        turned = path.with_suffix(".proof")
        turned.write_text(_as_urdf(path.read_bytes()), "utf-8")
        return replace(super().prove(turned, job, torque), file=path.name)


def new_sdf(arm: IdentifiedArm, friction: LinearFriction, banner: list[str]) -> bytes:
    """A model fixed to the world, `banner` in its first comment; the frame of each link is that of its joint."""
    robot = fromstring(new_urdf(arm, friction)[0])
    links, joints = robot.findall("link"), robot.findall("joint")
    carried = {_end(joint, "child"): joint for joint in joints}
    root = Element("sdf", version="1.7")
    model = SubElement(root, "model", name=robot.attrib["name"])
    for link in links:
        name, joint = link.attrib["name"], carried.get(link.attrib["name"])
        if joint is not None and joint.attrib["type"] == "fixed":  # the tool is a frame
            _add(SubElement(model, "frame", name=name, attached_to=_end(joint, "parent")), "pose", _pose(joint))
            continue
        made = SubElement(model, "link", name=name)
        if joint is None:
            continue
        _add(made, "pose", _HERE, relative_to=joint.attrib["name"])
        for inertial in link.findall("inertial") or [_TINY]:
            part = SubElement(made, "inertial")
            _add(part, "pose", _pose(inertial))
            _add(part, "mass", inertial.findall("mass")[0].attrib["value"])
            _spelled(SubElement(part, "inertia"), inertial.findall("inertia")[0])
    world = unique_names(["world_joint"], {node.attrib["name"] for node in (*links, *joints)})[0]
    made = SubElement(model, "joint", name=world, type="fixed")
    _add(made, "parent", "world")
    _add(made, "child", "base")
    for joint in (joint for joint in joints if joint.attrib["type"] != "fixed"):
        made = SubElement(model, "joint", name=joint.attrib["name"], type=joint.attrib["type"])
        _add(made, "pose", _pose(joint), relative_to=_end(joint, "parent"))
        _add(made, "parent", _end(joint, "parent"))
        _add(made, "child", _end(joint, "child"))
        axis = SubElement(made, "axis")
        for tag in ("axis", "limit", "dynamics"):
            _spelled(axis if tag == "axis" else SubElement(axis, tag), joint.findall(tag)[0])
    indent(root)
    lines = ['<?xml version="1.0" encoding="utf-8"?>', *comment(banner), tostring(root, encoding="unicode")]
    return ("\n".join(lines) + "\n").encode()


def _add(parent: Element, tag: str, text: str, **attributes: str) -> None:
    SubElement(parent, tag, attributes).text = text


def _spelled(made: Element, node: Element) -> None:
    """Attributes of a node as elements, without limits that are not known."""
    for key, value in node.attrib.items():
        if not (key in ("effort", "velocity") and float(value) == 0.0):
            _add(made, key, value)


def _end(joint: Element, end: str) -> str:
    return joint.findall(end)[0].attrib["link"]


def _pose(node: Element) -> str:
    origin = node.findall("origin")[0].attrib
    return f"{origin['xyz']} {origin['rpy']}"


def _as_urdf(sdf: bytes) -> str:
    """The links and joints of an SDF of ours, as URDF text."""
    robot, model = Element("robot", name="arm"), fromstring(sdf).findall("model")[0]
    for link in model.findall("link"):
        made = SubElement(robot, "link", name=link.attrib["name"])
        for inertial in link.findall("inertial"):
            part = SubElement(made, "inertial")
            _origin(part, inertial)
            SubElement(part, "mass", value=inertial.findtext("mass", ""))
            SubElement(part, "inertia", _texts(inertial, "inertia"))
    for joint in (joint for joint in model.findall("joint") if joint.attrib["type"] != "fixed"):
        made = SubElement(robot, "joint", joint.attrib)
        _origin(made, joint)
        for end in ("parent", "child"):
            SubElement(made, end, link=joint.findtext(end, ""))
        SubElement(made, "axis", xyz=joint.findtext("axis/xyz", ""))
        SubElement(made, "limit", {"effort": "0", "velocity": "0"} | _texts(joint, "axis/limit"))
        SubElement(made, "dynamics", _texts(joint, "axis/dynamics"))
    return tostring(robot, encoding="unicode")


def _texts(node: Element, place: str) -> dict[str, str]:
    return {entry.tag: entry.text or "" for entry in node.findall(f"{place}/*")}


def _origin(parent: Element, node: Element) -> None:
    numbers = node.findtext("pose", "").split()
    SubElement(parent, "origin", xyz=" ".join(numbers[:3]), rpy=" ".join(numbers[3:]))
