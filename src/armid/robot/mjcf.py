"""MJCF through MuJoCo's own compiler (extra `sim`)."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np

from armid.arrays import Array
from armid.errors import (
    ArmidWarning,
    DescriptionError,
    ImpossibleInertiaWarning,
    MissingExtraError,
    RoundedAngleWarning,
)
from armid.files import FieldError, is_file, parse_xml, read_text
from armid.robot.chain import WHOLE, Chain, Follows, with_dependent
from armid.robot.geometry import about_z, along, inverse, placement
from armid.robot.inertia import change_of_frame, from_com, impossibility
from armid.robot.robot import Capsule, Joint, Length, Limits, LinearSpring, Mesh, Robot, UnreadShape
from armid.robot.shapes import around_box, around_mesh, own_meshes

_COUNTS = {"count", "cellcount", "nrow", "ncol", "nuserdata", "nkey", "nsample", "dim", "params"}
_LARGEST, _DEEPEST = 1e7, 20  # numbers that a file may unfold to, files that include each other
_DECLARED = re.compile(r"<!DOCTYPE[^\[>]*(\[.*?\])?\s*>", re.DOTALL)
_SNAP = 2e-5  # rotations this near to a right angle were meant as one (four printed decimals)


def read_mjcf(path: Path, chain: Chain = WHOLE) -> Robot:
    """Read an MJCF file: hinge and slide joints, gravity, ranges, damping, frictionloss, inertia.

    Bodies behind joints outside `chain` are merged with those they hang on.
    """
    root = parse_xml(path)  # refuses malformed files and entity bombs before MuJoCo sees them
    if root.tag != "mujoco":
        raise DescriptionError(str(path), f"<{root.tag}>", "is not an MJCF; its first element must be <mujoco>")
    try:
        return _build(path, *compile_mjcf(path), chain)
    except FieldError as error:
        raise DescriptionError(str(path), error.field, error.problem) from None


def compile_mjcf(path: Path, home: Path | None = None) -> tuple[Any, bool]:
    """The model, and whether it has all its meshes, which lie relative to `home` (default: the file's folder)."""
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("reading MJCF", "sim") from None
    mujoco.set_mju_user_warning(lambda text: None)  # MuJoCo's own writes MUJOCO_LOG.TXT where the program was started
    if _unfolded(parse_xml(path), path.parent, (path,)) > _LARGEST:
        raise DescriptionError(str(path), "", "unfolds to far more than an arm has; lower its counts and sizes")
    try:
        is_xml = path.suffix.lower() == ".xml"  # MuJoCo takes the format from the name's ending
        spec = mujoco.MjSpec.from_file(str(path)) if is_xml else mujoco.MjSpec.from_string(path.read_text("utf-8"))
        spec.modelfiledir = str(home or path.parent)
        _drop_textures(spec)
        _take_meshes_beside(spec)
        try:
            return spec.compile(), True
        except ValueError:
            if not _drop_meshes(spec):
                raise
            return spec.compile(), False
    except (ValueError, RuntimeError, MemoryError) as error:
        raise DescriptionError(str(path), "", f"MuJoCo cannot compile it ({' '.join(str(error).split())})") from None


def _unfolded(node: Element, folder: Path, files: tuple[Path, ...]) -> float:
    """How many numbers MuJoCo makes of an element and the files that it includes, roughly: before it does."""
    counts = [text for name, text in node.attrib.items() if name in _COUNTS or name.startswith("nuser_")]
    counts += [node.get("size", "")] if node.tag == "numeric" else []
    size = math.prod(_count(word) for text in counts for word in text.split())
    size = size if node.tag == "hfield" else size**2  # numbers of a map; all else becomes elements, or numbers of each
    inside = list(node)
    if node.tag in ("include", "model"):
        places = [place / node.get("file", "") for place in (folder, files[-1].parent)]
        file = next((place for place in places if is_file(place)), None)
        if file is not None and len(files) > _DEEPEST:
            return math.inf
        if file is not None:
            inside, files = [*inside, _included(file)], (*files, file)
    parts = sum(_unfolded(part, folder, files) for part in inside)
    return size * max(parts, 1.0) if node.tag == "replicate" else size + parts


def _included(path: Path) -> Element:
    """Root of an included file without its declarations, which MuJoCo passes over."""
    import defusedxml.ElementTree

    try:
        return defusedxml.ElementTree.fromstring(_DECLARED.sub("", read_text(path), count=1))
    except (ParseError, ValueError) as error:
        raise DescriptionError(str(path), "", f"is not valid XML ({error})") from None


def _count(word: str) -> float:
    try:
        return max(abs(float(word)), 1.0)
    except ValueError:
        return math.inf


def _drop_textures(spec: Any) -> None:
    """Remove textures, which only a picture needs: a small file can hold a huge one."""
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for texture in list(spec.textures):
        spec.delete(texture)


def _take_meshes_beside(spec: Any) -> None:
    """Take meshes from beside the description where they are not in the folders that it names."""
    home = Path(spec.modelfiledir)
    for mesh in spec.meshes:
        if not is_file(home / spec.meshdir / mesh.file) and (near := own_meshes([mesh.file], home)):
            mesh.file = str(near[0])


def _drop_meshes(spec: Any) -> bool:
    """Remove meshes, which dynamics does not need where bodies state their inertia; whether there were any."""
    import mujoco

    geoms = [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_MESH]
    if not geoms or not all(geom.parent.explicitinertial for geom in geoms):
        return False
    for geom in geoms:
        spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    return True


def _build(path: Path, model: Any, meshes: bool, chain: Chain) -> Robot:
    import mujoco

    source = str(path)
    for field in (
        "body_pos",
        "body_quat",
        "body_ipos",
        "body_iquat",
        "body_inertia",
        "jnt_pos",
        "jnt_axis",
        "jnt_range",
    ):
        if not np.isfinite(getattr(model, field)).all():
            raise FieldError(field, "holds values that are not finite")
    hinge, slide = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
    places: dict[int, tuple[int, Array]] = {0: (0, np.eye(4))}
    chosen = _chosen(source, model, chain)
    follows, chosen = _equalities(model, chosen)
    joints: list[Joint] = []
    lengths: list[Length] = []
    rows: list[list[float]] = []
    inertia: list[Array] = []
    capsules: list[Capsule] = []
    surfaces: list[Mesh] = []
    for body in range(1, model.nbody):
        link, frame = places[int(model.body_parentid[body])]
        frame = frame @ placement(_rotation(model.body_quat[body]), model.body_pos[body])
        for index in range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]):
            name = _joint_name(model, index)
            if name not in chosen:
                continue
            kind = int(model.jnt_type[index])
            if kind not in (hinge, slide):
                raise FieldError(
                    f"joint {name!r}",
                    "is free or ball; hinge and slide are supported; name those of the arm alone (--joints NAME...)",
                )
            axis = placement(along(model.jnt_axis[index]), model.jnt_pos[index])
            near = frame @ axis @ _displacement(-float(model.qpos0[model.jnt_qposadr[index]]), kind == slide)
            joints.append(
                Joint(name, model.body(body).name or f"link{len(joints) + 1}", link, kind == slide, near, inverse(axis))
            )
            for letter, value, direction in zip("xyz", near[:3, 3], np.eye(3), strict=True):
                if abs(value) > 1e-9:
                    lengths.append(Length(f"{letter}{len(joints)}", float(value), len(joints) - 1, False, direction))
            rows.append(_joint_data(model, index))
            inertia.append(np.zeros(10))
            link, frame = len(joints), np.eye(4)
        places[body] = link, frame
        capsules += _capsules(model, body, link, frame)
        surfaces += _surfaces(model, path.parent, body, link, frame)
        if link:
            inertia[link - 1] += change_of_frame(frame) @ _body_inertia(source, model, body)
    if not joints:
        raise FieldError("<joint>", "none can move, so there are no links to identify")
    _warn_of_the_rest(source, model)
    weightless = bool(model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    lower, upper, effort, damping, loss, armature = np.array(rows).T
    unknown = np.full(len(joints), np.nan)
    meant = tuple(
        Joint(j.name, j.link_name, j.parent, j.prismatic, _snapped(j.placement), _snapped(j.link_frame)) for j in joints
    )
    rounded = max(float(np.abs(a.placement - b.placement).max()) for a, b in zip(joints, meant, strict=True))
    if rounded > 1e-9:
        text = (
            f"{source}: angles look rounded (by up to {rounded:.1e} rad); base parameters are those of the exact angles"
        )
        warnings.warn(RoundedAngleWarning(f"{text}, torques use the file's"), stacklevel=2)
    robot = Robot(
        name=_name(model, path),
        source=source,
        joints=tuple(joints),
        gravity=np.zeros(3) if weightless else np.array(model.opt.gravity),
        lengths=tuple(lengths),
        limits=Limits(lower, upper, unknown, unknown.copy(), effort),
        capsules=tuple(capsules),
        meshes=tuple(surfaces),
        linear_springs=tuple(_springs(model, [joint.name for joint in joints])),
        unread_shapes=(*_surroundings(model), *(() if meshes else (UnreadShape(len(joints), "meshes"),))),
        nominal_inertia=np.array(inertia),
        nominal_friction=np.column_stack([damping, loss]),
        nominal_rotors=armature,
        nominal_joints=meant,
    )
    return with_dependent(robot, follows)


def _equalities(model: Any, chosen: set[str]) -> tuple[dict[str, Follows], set[str]]:
    """Joints that follow another by a linear equality, and those that move: followers do as what they follow."""
    follows: dict[str, Follows] = {}
    for index in range(model.neq):
        if not _is_linear(model, index):
            continue
        one, other, (offset, ratio) = int(model.eq_obj1id[index]), int(model.eq_obj2id[index]), model.eq_data[index, :2]
        at = [float(model.qpos0[model.jnt_qposadr[joint]]) for joint in (one, other)]
        name, leader = _joint_name(model, one), _joint_name(model, other)
        if leader in chosen and ratio:
            chosen = chosen | {name}
            follows[name] = Follows({leader: float(ratio)}, at[0] + float(offset) - float(ratio) * at[1])
        elif name in chosen:
            chosen = chosen - {name}
    return follows, chosen


def _springs(model: Any, names: list[str]) -> Iterator[LinearSpring]:
    """Springs of joints and of fixed tendons over joints that move; a tendon with a dead band is none."""
    for index in np.flatnonzero(model.jnt_stiffness).tolist():
        if (name := _joint_name(model, index)) in names:
            rest = float(model.qpos_spring[model.jnt_qposadr[index]])
            unit = np.array([float(name == other) for other in names])
            yield LinearSpring(unit, float(np.ravel(model.jnt_stiffness[index])[0]), rest)
    for index in range(model.ntendon):
        if (coefficients := _sprung(model, index)) is not None:
            ratios = np.array([coefficients.get(name, 0.0) for name in names])
            if ratios.any():
                stiffness = float(np.ravel(model.tendon_stiffness[index])[0])
                yield LinearSpring(ratios, stiffness, float(model.tendon_lengthspring[index, 0]))


def _sprung(model: Any, index: int) -> dict[str, float] | None:
    """Coefficients by joint of a fixed tendon that is a spring; None for other tendons."""
    import mujoco

    first = int(model.tendon_adr[index])
    parts = range(first, first + int(model.tendon_num[index]))
    fixed = all(int(model.wrap_type[k]) == int(mujoco.mjtWrap.mjWRAP_JOINT) for k in parts)
    least, most = model.tendon_lengthspring[index]
    if not fixed or least != most or not np.any(model.tendon_stiffness[index]):
        return None
    return {_joint_name(model, int(model.wrap_objid[k])): float(model.wrap_prm[k]) for k in parts}


def _is_linear(model: Any, index: int) -> bool:
    """Whether an equality constraint makes a joint a linear function of another."""
    import mujoco

    joint = int(model.eq_type[index]) == int(mujoco.mjtEq.mjEQ_JOINT) and bool(model.eq_active0[index])
    return joint and int(model.eq_obj2id[index]) >= 0 and not np.any(model.eq_data[index, 2:5])


def _chosen(source: str, model: Any, chain: Chain) -> set[str]:
    bodies = [model.body(body).name or f"body{body}" for body in range(model.nbody)]
    joints: dict[str, tuple[str, ...]] = {}
    for index, body in enumerate(model.jnt_bodyid):
        joints[bodies[body]] = (*joints.get(bodies[body], ()), _joint_name(model, index))
    parents = {name: bodies[parent] for name, parent in zip(bodies[1:], model.body_parentid[1:], strict=True)}
    return chain.chosen(source, joints, parents)


def _joint_name(model: Any, index: int) -> str:
    return model.joint(index).name or f"joint{index + 1}"


def _name(model: Any, path: Path) -> str:
    given = model.names[: model.names.index(b"\0")].decode()
    return re.sub(r"\W+", "_", path.stem if given in ("", "MuJoCo Model") else given)


def _warn_of_the_rest(source: str, model: Any) -> None:
    """Say what armid leaves out."""
    ignored = {
        "equality constraints other than linear ones between joints": sum(
            not _is_linear(model, index) for index in range(model.neq)
        ),
        "tendons other than linear springs": sum(_sprung(model, index) is None for index in range(model.ntendon)),
        "gravity compensation (gravcomp)": np.any(model.body_gravcomp),
    }
    names = [name for name, present in ignored.items() if present]
    if names:
        warnings.warn(
            ArmidWarning(f"{source}: {', '.join(names)} are ignored; armid models the tree alone"), stacklevel=3
        )


def _rotation(quaternion: Array) -> Array:
    """Rotation (3, 3) of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _displacement(q: float, prismatic: bool) -> Array:
    return placement(None, [0.0, 0.0, q]) if prismatic else placement(about_z(q))


def _snapped(matrix: Array) -> Array:
    """The placement with its rotation replaced by a signed permutation if it is one up to rounding."""
    nearest = np.rint(matrix[:3, :3])
    exact = np.abs(matrix[:3, :3] - nearest).max() < _SNAP and np.array_equal(nearest @ nearest.T, np.eye(3))
    return placement(nearest, matrix[:3, 3]) if exact else matrix


def _capsules(model: Any, body: int, link: int, frame: Array) -> list[Capsule]:
    """Capsules around the shapes of a body that can collide."""
    from mujoco import mjtGeom as kinds

    result = []
    for geom in _colliding(model, body):
        kind, size = int(model.geom_type[geom]), model.geom_size[geom]
        half = np.array([0.0, 0.0, size[1] if kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER) else 0.0])
        shapes = [(-half, half, float(size[0]))]
        if kind in (kinds.mjGEOM_BOX, kinds.mjGEOM_ELLIPSOID):
            shapes = [around_box(2.0 * size)]
        elif kind in (kinds.mjGEOM_MESH, kinds.mjGEOM_SDF):
            mesh = int(model.geom_dataid[geom])
            first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_facenum[mesh])
            faces = model.mesh_face[model.mesh_faceadr[mesh] : model.mesh_faceadr[mesh] + count]
            shapes = around_mesh(np.asarray(model.mesh_vert[first + faces], dtype=float))
        place = frame @ _geom_frame(model, geom)
        result += [Capsule(link, *shape).moved(place, link) for shape in shapes]
    return result


def _geom_frame(model: Any, geom: int) -> Array:
    return placement(_rotation(model.geom_quat[geom]), model.geom_pos[geom])


def _surfaces(model: Any, folder: Path, body: int, link: int, frame: Array) -> list[Mesh]:
    """Meshes for the eye, or else those that collide, where a body has nothing but files at hand."""
    colliding, first = set(_colliding(model, body)), int(model.body_geomadr[body])
    geoms = range(first, first + int(model.body_geomnum[body]))
    for group in ([geom for geom in geoms if geom not in colliding], sorted(colliding)):
        files = own_meshes((_mesh_file(model, int(model.geom_dataid[geom])) for geom in group), folder)
        if files:
            places = (frame @ _geom_frame(model, geom) @ _file_frame(model, geom) for geom in group)
            return [Mesh(link, str(file), place) for file, place in zip(files, places, strict=True)]
    return []


def _mesh_file(model: Any, mesh: int) -> str:
    path: bytes = model.paths[model.mesh_pathadr[mesh] :].partition(b"\0")[0] if mesh >= 0 else b""
    return path.decode("utf-8", "replace")


def _file_frame(model: Any, geom: int) -> Array:
    """From a mesh's file to the frame of its shape: MuJoCo scales it and moves it into its principal frame."""
    mesh = int(model.geom_dataid[geom])
    principal = placement(_rotation(model.mesh_quat[mesh]), model.mesh_pos[mesh])
    return np.asarray(inverse(principal) @ np.diag([*model.mesh_scale[mesh], 1.0]))


def _colliding(model: Any, body: int) -> list[int]:
    """Shapes of a body that can collide, but for planes, which have no end."""
    import mujoco

    endless = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
    geoms = range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])
    collides = model.geom_contype | model.geom_conaffinity
    return [geom for geom in geoms if collides[geom] and int(model.geom_type[geom]) not in endless]


def _surroundings(model: Any) -> list[UnreadShape]:
    """What stands in the world but is no part of the arm."""
    return [UnreadShape(0, model.geom(geom).name or f"geom {geom} of the world") for geom in _colliding(model, 0)]


def _joint_data(model: Any, index: int) -> list[float]:
    """Lower, upper, effort, damping, frictionloss, armature of a joint; NaN for unknown limits."""
    dof = model.jnt_dofadr[index]
    limited = bool(model.jnt_limited[index])
    lower, upper = model.jnt_range[index] if limited else (math.nan, math.nan)
    effort = float(np.abs(model.jnt_actfrcrange[index]).max()) if model.jnt_actfrclimited[index] else math.nan
    damping = float(np.ravel(model.dof_damping[dof])[0])
    loss, armature = float(model.dof_frictionloss[dof]), float(model.dof_armature[dof])
    return [float(lower), float(upper), effort, damping, loss, armature]


def _body_inertia(source: str, model: Any, body: int) -> Array:
    rotation = _rotation(model.body_iquat[body])
    tensor = rotation @ np.diag(model.body_inertia[body]) @ rotation.T
    phi = from_com(float(model.body_mass[body]), model.body_ipos[body], tensor)
    reason = impossibility(phi)
    if reason is not None:
        name = model.body(body).name
        warnings.warn(ImpossibleInertiaWarning(f"{source}: body {name!r} is impossible: {reason}"), stacklevel=3)
    return phi
