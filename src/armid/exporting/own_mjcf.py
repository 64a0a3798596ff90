"""The user's own MJCF with identified inertia, armature, damping and frictionloss; everything else keeps its bytes.

What a joint has by default classes is asked of MuJoCo, which compiles the file; the text is edited where bodies and
joints stand, in the file itself or in those it includes.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from armid.arrays import Array
from armid.exporting.arm import ExportError, IdentifiedArm, LinearFriction, text_of
from armid.exporting.own_file import NOISE, Document, Node, changed, unchanged_links, without_round_off
from armid.files import is_file
from armid.notes import Note, note
from armid.robot.inertia import to_com
from armid.robot.mjcf import compile_mjcf

LEAST = 1e-12  # [kg, kg m^2] MuJoCo wants some inertia on every moving body
MANY = ("replicate", "attach", "composite", "flexcomp")  # elements that stand for bodies which are not in the text
SHAPE = {"fullinertia", "diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler"}  # not all go together
#: Fields of an mjModel that follow from inertia, armature, damping and frictionloss: only these may change.
_FOLLOWING = {
    "body": "mass inertia ipos iquat subtreemass invweight0 sameframe simple",
    "dof": "armature damping dampingpoly frictionloss M0 invweight0 simplenum length",
    "geom": "sameframe",
    "site": "sameframe",
    "tendon": "invweight0",
    "flexedge": "invweight0",
    "actuator": "acc0",
    "cam": "pos0 poscom0 mat0",
    "light": "pos0 poscom0 dir0",
    "bvh": "aabb child nodeid depth",
    "efm0": "L",
}
FOLLOWS = {f"{kind}_{name}" for kind, names in _FOLLOWING.items() for name in names.split()}
FOLLOWS |= {"stat", "signature"}


class XmlPlace(NamedTuple):
    """An element and the document that it stands in."""

    document: Document
    node: Node


@dataclass(eq=False)
class MjcfBody:
    """A body as the text has it, with what stands inside frames and includes.

    Attributes:
        place: its element.
        parent: the body around it.
        joints: its own.
        inertial: its own.
        turned: whether `inertial` stands inside a frame.
        shaped: whether it has shapes, which may give it mass.
    """

    place: XmlPlace
    parent: MjcfBody | None
    joints: list[XmlPlace] = field(default_factory=list)
    inertial: XmlPlace | None = None
    turned: bool = False
    shaped: bool = False

    @property
    def carrier(self) -> MjcfBody | None:
        """The body with joints that it is, or moves with; None for what is fixed to the world."""
        body: MjcfBody | None = self
        while body is not None and not body.joints:
            body = body.parent
        return body

    @property
    def name(self) -> str:
        """Its name, if it has one."""
        return self.place.node.attributes.get("name", "")


class Sources:
    """An MJCF file with all that it includes.

    Attributes:
        main: the file.
        documents: it and the included files, by path.
        bodies: in MuJoCo's order.
        compiler: attributes of `<compiler>`.
    """

    def __init__(self, main: Path) -> None:
        """Read them."""
        self.main = Path(os.path.normpath(main.absolute()))
        self.documents: dict[Path, Document] = {}
        self.bodies: list[MjcfBody] = []
        self.compiler: dict[str, str] = {}
        self._walk(self._open(self.main), None, inside=False)

    def contents(self) -> dict[Path, bytes]:
        """The bytes of each file with all edits made."""
        return {path: document.result() for path, document in self.documents.items()}

    def _open(self, path: Path) -> XmlPlace:
        if path in self.documents:
            raise ExportError(f"{path}: is included twice")
        document = self.documents[path] = Document(path.read_bytes(), str(path))
        return XmlPlace(document, document.root)

    def _included(self, place: XmlPlace) -> XmlPlace:
        """The file of an `<include>`: MuJoCo looks beside the main file first, then beside the including one."""
        name = place.node.attributes.get("file", "")
        for folder in (self.main.parent, Path(place.document.source).parent):
            path = Path(os.path.normpath(folder / name))
            if is_file(path):
                return self._open(path)
        raise ExportError(f"{place.document.source}: includes {name!r}, which is not there")

    def _walk(self, place: XmlPlace, body: MjcfBody | None, *, inside: bool, turned: bool = False) -> None:
        """Collect what stands in an element: at the top of a file, or `inside` the world or a body."""
        for node in place.node.children:
            here = XmlPlace(place.document, node)
            if node.tag == "include":
                self._walk(self._included(here), body, inside=inside, turned=turned)
            elif not inside:
                self.compiler |= node.attributes if node.tag == "compiler" else {}
                if node.tag == "worldbody":
                    self._walk(here, None, inside=True)
            elif node.tag == "body":
                self.bodies.append(MjcfBody(here, body))
                self._walk(here, self.bodies[-1], inside=True)
            elif node.tag == "frame":
                self._walk(here, body, inside=True, turned=True)
            elif node.tag in MANY:
                raise ExportError(f"{place.document.source}: has <{node.tag}>, whose bodies are not in its text")
            elif body is not None:
                body.joints += [here] * (node.tag == "joint")
                body.shaped |= node.tag == "geom"
                if node.tag == "inertial":
                    body.inertial, body.turned = here, turned


def completed(arm: IdentifiedArm, friction: LinearFriction, path: Path) -> tuple[dict[Path, bytes], list[Note]]:
    """The files of the user's model with the identified values, by path, and what was done to bodies without joints.

    A body with joints gets all of the identified inertia that moves with it; bodies fixed to it get none, since it is
    counted already. Numbers that the file or its classes say already are not written.

    Raises:
        ExportError: the file has what cannot be completed in place.
    """
    sources = Sources(path)
    model = compiled(sources.contents())
    joints = [(body, joint) for body in sources.bodies for joint in body.joints]
    _check(arm, sources, joints, model)
    unchanged = unchanged_links(arm.links, path, "mjcf")
    last = {id(body): index for index, (body, _) in enumerate(joints)}
    emptied = []
    for body in sources.bodies:
        carrier = body.carrier
        if carrier is None or unchanged[last[id(carrier)]]:
            continue
        if body is carrier:
            _set_inertial(body, inertial(arm.links[last[id(body)]]))
        elif body.inertial is not None or body.shaped:
            _set_inertial(body, {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"})
            emptied.append(body.name or "an unnamed body")
    for index, (_, place) in enumerate(joints):
        place.document.set(place.node, _joint_values(arm, friction, model, index))
    notes = [note("exporting.emptied", links=emptied)] if emptied else []
    if model.nmesh or model.ntex or model.nhfield:
        notes.append(note("exporting.meshes"))
    if not np.allclose(model.opt.gravity, arm.robot.gravity, rtol=0.0, atol=1e-12):
        notes.append(note("exporting.other_gravity", file=model.opt.gravity.tolist(), fit=arm.robot.gravity.tolist()))
    return sources.contents(), notes


def _check(arm: IdentifiedArm, sources: Sources, joints: list[tuple[MjcfBody, XmlPlace]], model: Any) -> None:
    """Refuse what the text cannot say."""
    robot, main = arm.robot, sources.main
    found = [place.node.attributes.get("name", joint.name) for (_, place), joint in zip(joints, robot.joints)]  # noqa: B905
    if len(joints) != robot.n_joints or found != list(robot.joint_names):
        raise ExportError(f"{main}: has other joints in its text ({', '.join(found)}) than MuJoCo makes of it")
    if robot.springs or any(name.startswith("Imc") for name in arm.model.names):
        raise ExportError(f"{main}: the fit has springs or coupled motors, which need tendons that the file has not")
    for index in range(1, len(joints)):
        if joints[index][0] is joints[index - 1][0] and np.any(arm.links[index - 1]):
            name = robot.joints[index - 1].name
            raise ExportError(
                f"{main}: body {joints[index][0].name!r} cannot hold the inertia between {name!r} and the "
                "next joint, which the fit has"
            )
    if sources.compiler.get("inertiafromgeom") == "true" or float(sources.compiler.get("settotalmass", -1.0)) > 0.0:
        raise ExportError(f"{main}: inertiafromgeom or settotalmass of <compiler> overrules the inertia of bodies")
    if any(np.any(getattr(model, name, 0.0)) for name in ("actuator_armature", "actuator_damping")):
        raise ExportError(f"{main}: actuators have armature or damping of their own, which would count twice")


def inertial(phi: Array) -> dict[str, str]:
    """Attributes of `<inertial>`: at the centre of mass, along the body's axes, without round-off."""
    mass, com, about = to_com(phi)
    if mass < LEAST:
        mass, about = LEAST, LEAST * np.eye(3)
    com, about = without_round_off(mass, com, about)
    values = [about[at] for at in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return {"pos": text_of(*com), "mass": text_of(mass), "fullinertia": text_of(*values)}


def _set_inertial(body: MjcfBody, values: dict[str, str]) -> None:
    old = body.inertial
    if old is not None and not body.turned:
        old.document.drop(old.node, SHAPE - values.keys())
        old.document.set(old.node, changed(old.node, values))
        return
    if old is not None:
        old.document.remove(old.node)
    text = " ".join(f'{name}="{value}"' for name, value in values.items())
    body.place.document.insert_first(body.place.node, f"<inertial {text}/>")


def _joint_values(arm: IdentifiedArm, friction: LinearFriction, model: Any, index: int) -> dict[str, str]:
    """Attributes of a joint that differ from what MuJoCo finds in the file, classes included."""
    dof = int(model.jnt_dofadr[index])
    wanted = {"armature": arm.reflected, "damping": friction.damping, "frictionloss": friction.coulomb}
    now = {name: float(np.ravel(getattr(model, f"dof_{name}")[dof])[0]) for name in wanted}
    same = {name: math.isclose(now[name], wanted[name][index], rel_tol=NOISE) for name in wanted}
    result = {name: text_of(values[index]) for name, values in wanted.items() if not same[name]}
    if np.any(getattr(model, "dof_dampingpoly", np.zeros((dof + 1, 1)))[dof]):
        result["damping"] = f"{text_of(friction.damping[index])} 0 0"  # a curve of the class would stay otherwise
    return result


def compiled(files: Mapping[Path, bytes]) -> Any:
    """MuJoCo's model of a file and then those it includes, whose bytes are given; meshes lie where the first does."""
    main = next(iter(files))
    root = os.path.commonpath([path.parent for path in files])
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            place = folder / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return compile_mjcf(folder / main.relative_to(root), main.parent)[0]


def other_changes(before: Any, after: Any) -> list[str]:
    """Fields of two mjModels, or parts of them, that differ though inertia and friction do not reach them."""
    result = []
    for name in dir(before):
        one, two = getattr(before, name), getattr(after, name)
        if name.startswith("_") or name in FOLLOWS or callable(one):
            continue
        if not isinstance(one, np.ndarray | int | float | str | bytes):
            result += [f"{name}.{inner}" for inner in other_changes(one, two)]
        elif not np.array_equal(one, two, equal_nan=np.asarray(one).dtype.kind == "f"):
            result.append(name)
    return result
