"""MJCF, written by ourselves: MuJoCo's own writer keeps six digits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.dynamics.parameters import Local
from armid.escaping import xml_attribute
from armid.exporting import arm as causes
from armid.exporting.arm import ExportError, IdentifiedArm, LinearFriction, text_of
from armid.exporting.exporter import TOLERANCE, Content, Exporter, Job, Proof, ProofError, checked, exporters
from armid.exporting.own_mjcf import LEAST, compiled, completed, inertial, other_changes
from armid.exporting.urdf import comment, unique_names
from armid.notes import Note, note
from armid.robot.geometry import inverse
from armid.robot.robot import GravitySpring, Joint, Robot

TIMESTEP = 0.001  # [s]
SLIDING = 1e-9  # share of frictionloss by which a sliding joint's friction may differ from it


@exporters.add("mjcf")
class Mjcf(Exporter):
    """A model for MuJoCo, read back by MuJoCo."""

    title = "MJCF: a model for MuJoCo with armature, damping, frictionloss, tendons and motors"
    links = linear = True

    def files(self, job: Job) -> dict[str, Content]:
        """The robot's own files with new numbers, or one new file where there are none or none to complete."""
        own, notes = _own(job)
        if own is None:
            content, more = mjcf(job.arm, job.friction, job.banner)
            return {f"{job.arm.identifier}.xml": Content(content, (*notes, *more))}
        main, *included = own
        files = {path.relative_to(main.parent).as_posix(): Content(own[path], proved=False) for path in included}
        return {main.name: Content(own[main], notes, tuple(files)), **files}

    def holds(self, arm: IdentifiedArm) -> str:
        """In words."""
        there = arm.robot.springs or arm.robot.linear_springs
        springs = "; springs as tendons" if there and springs_held(arm) else ""
        return f"inertia of the links; armature, damping and frictionloss of the joints{springs}"

    def causes(self, arm: IdentifiedArm) -> tuple[str, ...]:
        """Rotors, coupled motors, and springs where MuJoCo takes them."""
        springs = (causes.SPRINGS,) if springs_held(arm) else ()
        return (causes.ROTORS, causes.MOTOR_INERTIA, causes.MOTOR_FRICTION, *springs)

    def reads(self, robot: Robot) -> str:
        """The robot's own, where there is one."""
        return "mjcf"

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Inverse dynamics of the written file; of the robot's own also that nothing else has changed.

        `frictionloss` is a soft constraint: MuJoCo's friction equals it while a joint slides, and is less where the
        joint is slow enough to count as sticking. Torque is compared twice: with friction written out, on all states;
        and as `mj_inverse` gives it, constraints included, on the states where every frictional joint slides.
        """
        try:
            import mujoco
        except ImportError:
            note = "not proved: install MuJoCo (pip install 'armid[sim]') and export again"
            return Proof(path.name, None, None, 0, TOLERANCE, note)
        if (own := _own(job)[0]) is not None:
            return _prove_own(mujoco, path, job, own, torque)
        model = mujoco.MjModel.from_xml_path(str(path))
        smooth, loss = _inverse(mujoco, model, job.arm, job.motion, constraints=False)
        pairs = {"torque": (smooth + loss, torque)}
        whole, found = _inverse(mujoco, model, job.arm, job.motion, constraints=True)
        size = np.maximum(np.abs(loss).max(axis=0), 1e-12)
        sliding = (np.abs(found - loss) <= SLIDING * size).all(axis=1)
        note = "links, armature, damping, tendons, frictionloss"
        if sliding.any():
            # Ranges are those of all states, so that few sliding ones do not make the test milder or harder.
            whole[~sliding], good = torque[~sliding], int(sliding.sum())
            pairs["torque of mj_inverse"] = (whole, torque)
            note += f"; mj_inverse with its own friction on the {good} of {len(sliding)} states where all joints slide"
        sizes = dict.fromkeys(pairs, job.sizes["torque"])
        return checked(path, f"MuJoCo {mujoco.__version__}", pairs, TOLERANCE, note, sizes)


@lru_cache(maxsize=2)
def _own(job: Job) -> tuple[dict[Path, bytes] | None, tuple[Note, ...]]:
    """The robot's own files, completed, its main one first; None where there is none, or why it cannot be completed."""
    if job.mjcf is None:
        return None, ()
    try:
        files, notes = completed(job.arm, job.friction, job.mjcf)
        outside = [path for path in files if not path.is_relative_to(next(iter(files)).parent)]
        if outside:
            raise ExportError(f"{job.mjcf}: includes {outside[0]}, which is not in its folder")
    except ExportError as error:
        return None, (note("exporting.new_file", reason=str(error)),)
    return files, tuple(notes)


def _prove_own(mujoco: Any, path: Path, job: Job, own: Mapping[Path, bytes], torque: Array) -> Proof:
    """The tree's torque with friction written out, and MuJoCo's model compared with that of the untouched file."""
    home = next(iter(own)).parent
    before = compiled({file: file.read_bytes() for file in own})
    after = compiled({file: (path.parent / file.relative_to(home)).read_bytes() for file in own})
    if others := other_changes(before, after):
        raise ProofError(
            f"{path.name}: was not kept, because with the new inertia and friction MuJoCo also finds other "
            f"{', '.join(others[:3])} in it; `springdamper` of joints does that"
        )
    after.opt.gravity = job.arm.robot.gravity
    after.opt.density = after.opt.viscosity = 0.0
    after.body_gravcomp[:], after.jnt_stiffness[:], after.tendon_stiffness[:] = 0.0, 0.0, 0.0
    after.tendon_damping[:], after.tendon_frictionloss[:], after.tendon_armature[:] = 0.0, 0.0, 0.0
    smooth, loss = _inverse(mujoco, after, job.arm, job.motion, constraints=False)
    words = "links, armature, damping, frictionloss; every other field of MuJoCo's model is that of the untouched file"
    pairs = {"torque": (smooth + loss, torque)}
    return checked(path, f"MuJoCo {mujoco.__version__}", pairs, TOLERANCE, words, job.sizes)


def mjcf(arm: IdentifiedArm, friction: LinearFriction, banner: Sequence[str] = ()) -> tuple[bytes, list[Note]]:
    """The file and notes; `banner` are sentences for its first comment.

    Body frames are the fit's link frames. Friction is `damping` and `frictionloss`, rotors are `armature`; motors that
    move several joints are fixed tendons with armature, damping and frictionloss; gravity springs are spatial tendons
    with stiffness, which is their exact law (`GravitySpring`).
    """
    robot = arm.robot
    notes: list[Note] = []
    names = unique_names([joint.link_name for joint in robot.joints], {"world"})
    solref = f"{2.0 * TIMESTEP:g} 1"
    lines = [
        *comment(banner),
        f"<mujoco model={xml_attribute(robot.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>',
        f'  <option timestep="{TIMESTEP:g}" gravity="{text_of(*robot.gravity)}" integrator="implicitfast"/>',
        "  <default>",
        f'    <joint solreffriction="{solref}"/>',
        f'    <tendon solreffriction="{solref}"/>',
        '    <geom type="capsule" contype="0" conaffinity="0" rgba="0.55 0.6 0.65 1"/>',
        "  </default>",
        "  <worldbody>",
        *_sites(robot.springs, robot.joints, 0, "    "),
        *(
            line
            for i, joint in enumerate(robot.joints)
            if joint.parent == 0
            for line in _body(arm, friction, names, i, 2)
        ),
        "  </worldbody>",
        *_tendons(arm, notes),
        "  <actuator>",
        *(_motor(arm, index) for index in range(robot.n_joints)),
        "  </actuator>",
        "</mujoco>",
    ]
    small = [names[i] for i, phi in enumerate(arm.links) if phi[0] < LEAST]
    if small:
        notes.append(note("exporting.massless", links=small, least_kg=LEAST))
    return ("\n".join(lines) + "\n").encode(), notes


def _body(arm: IdentifiedArm, friction: LinearFriction, names: list[str], index: int, depth: int) -> list[str]:
    robot, pad = arm.robot, "  " * depth
    joint = robot.joints[index]
    place = joint.placement @ joint.link_frame
    inertia = " ".join(f'{name}="{value}"' for name, value in inertial(arm.links[index]).items())
    pose = f'pos="{text_of(*place[:3, 3])}" quat="{text_of(*quaternion(place[:3, :3]))}"'
    lines = [f"{pad}<body name={xml_attribute(names[index])} {pose}>", f"{pad}  <inertial {inertia}/>"]
    lines.append(f"{pad}  {_joint(arm, friction, index)}")
    ends = [other.placement[:3, 3] for other in robot.joints if other.parent == index + 1]
    if index + 1 == robot.n_joints:
        ends.append(robot.tool[:3, 3])
    start = inverse(joint.link_frame)[:3, 3]
    for end in ends:
        length = float(np.linalg.norm(end - start))
        if length > 0.02:
            radius = min(0.04, 0.2 * length)
            lines.append(f'{pad}  <geom fromto="{_short(start)} {_short(end)}" size="{radius:.3g}"/>')
    lines += _sites(robot.springs, robot.joints, index + 1, pad + "  ")
    for child, other in enumerate(robot.joints):
        if other.parent == index + 1:
            lines += _body(arm, friction, names, child, depth + 1)
    return [*lines, f"{pad}</body>"]


def _joint(arm: IdentifiedArm, friction: LinearFriction, index: int) -> str:
    joint, limits = arm.robot.joints[index], arm.robot.limits
    back = inverse(joint.link_frame)
    parts = [f"name={xml_attribute(joint.name)}", f'type="{"slide" if joint.prismatic else "hinge"}"']
    if np.any(back[:3, 3]):
        parts.append(f'pos="{text_of(*back[:3, 3])}"')
    parts.append(f'axis="{text_of(*back[:3, 2])}"')
    if not math.isnan(limits.lower[index] + limits.upper[index]):
        parts.append(f'range="{text_of(limits.lower[index])} {text_of(limits.upper[index])}"')
    parts += [
        f'armature="{text_of(arm.reflected[index])}"',
        f'damping="{text_of(friction.damping[index])}"',
        f'frictionloss="{text_of(friction.coulomb[index])}"',
    ]
    return f"<joint {' '.join(parts)}/>"


def _motor(arm: IdentifiedArm, index: int) -> str:
    name, limit = xml_attribute(arm.robot.joints[index].name), float(arm.robot.limits.torque[index])
    reach = "" if math.isnan(limit) else f' ctrlrange="{text_of(-limit)} {text_of(limit)}"'
    return f"    <motor name={name} joint={name}{reach}/>"


def _sites(springs: tuple[GravitySpring, ...], joints: tuple[Joint, ...], link: int, pad: str) -> list[str]:
    """Ends of springs that sit on a link: on the parent at distance b and angle phi, on the moved link at a."""
    lines = []
    for number, spring in enumerate(springs, start=1):
        joint = joints[spring.joint - 1]
        if joint.parent == link:
            c, s = math.cos(spring.phi), math.sin(spring.phi)
            point = joint.placement @ np.array([spring.b * c, spring.b * s, 0.0, 1.0])
            lines.append(f'{pad}<site name="spring{number}_near" pos="{text_of(*point[:3])}"/>')
        if spring.joint == link:
            point = inverse(joint.link_frame) @ np.array([spring.a, 0.0, 0.0, 1.0])
            lines.append(f'{pad}<site name="spring{number}_far" pos="{text_of(*point[:3])}"/>')
    return lines


def _tendons(arm: IdentifiedArm, notes: list[Note]) -> list[str]:
    lines = []
    attributes = {"Imc": "armature", "fvc": "damping", "fcc": "frictionloss"}
    motors: dict[int, tuple[Array, dict[str, float]]] = {}
    for parameter in arm.model.parameters:
        name, column = parameter.name, parameter.column
        if isinstance(column, Local) and name[:3] in attributes:
            value = arm.by_name[name] * column.constants[0]
            if value < 0.0:
                raise ExportError(f"{name} of the fit is {value:.4g}, which MuJoCo refuses; make the fit with feasible")
            motors.setdefault(parameter.number, (column.weight, {}))[1][attributes[name[:3]]] = value
    for number, (weight, values) in motors.items():
        lines.append(
            f'    <fixed name="motor{number}" ' + " ".join(f'{k}="{text_of(v)}"' for k, v in values.items()) + ">"
        )
        pairs = zip(arm.robot.joint_names, weight, strict=True)
        lines += [f'      <joint joint={xml_attribute(name)} coef="{text_of(w)}"/>' for name, w in pairs if w != 0.0]
        lines.append("    </fixed>")
    for number in range(1, len(arm.robot.springs) + 1):
        stiffness, force = arm.by_name[f"ks{number}"], arm.by_name[f"kl{number}"]
        length = force / stiffness if stiffness > 0.0 else -1.0
        if length < 0.0:
            notes.append(note("exporting.lost_spring", number=number, stiffness=stiffness, length=length))
            continue
        values_text = f'stiffness="{text_of(stiffness)}" springlength="{text_of(length)}"'
        lines += [
            f'    <spatial name="spring{number}" {values_text}>',
            f'      <site site="spring{number}_near"/>',
            f'      <site site="spring{number}_far"/>',
            "    </spatial>",
        ]
    linear_springs = arm.robot.linear_springs if springs_held(arm) else ()
    for number, linear in enumerate(linear_springs, start=len(arm.robot.springs) + 1):
        stiffness, force = arm.by_name[f"ks{number}"], arm.by_name[f"kl{number}"]
        rest, sign = abs(force) / stiffness if stiffness > 0.0 else 0.0, -1.0 if force < 0.0 else 1.0  # no length < 0
        values_text = f'stiffness="{text_of(stiffness)}" springlength="{text_of(rest)}"'
        lines.append(f'    <fixed name="spring{number}" {values_text}>')
        pairs = zip(arm.robot.joint_names, sign * linear.ratios, strict=True)
        lines += [f'      <joint joint={xml_attribute(name)} coef="{text_of(w)}"/>' for name, w in pairs if w != 0.0]
        lines.append("    </fixed>")
    return ["  <tendon>", *lines, "  </tendon>"] if lines else []


def springs_held(arm: IdentifiedArm) -> bool:
    """Whether every spring has a stiffness and free length that MuJoCo takes; those of an MJCF stay as they are."""
    if arm.robot.linear_springs and arm.robot.nominal_rotors is not None:
        return False
    count = len(arm.robot.springs)
    numbers = range(1, count + len(arm.robot.linear_springs) + 1)
    return all(arm.by_name[f"ks{n}"] > 0.0 and (arm.by_name[f"kl{n}"] >= 0.0 or n > count) for n in numbers)


def quaternion(rotation: Array) -> Array:
    """Unit quaternion (w, x, y, z) of a rotation (3, 3)."""
    return np.roll(Rotation.from_matrix(rotation).as_quat(canonical=True), 1)


def _short(values: Array) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _inverse(mujoco: Any, model: Any, arm: IdentifiedArm, motion: Motion, *, constraints: bool) -> tuple[Array, Array]:
    """Torque by mj_inverse and friction (samples, joints): MuJoCo's own, or frictionloss times direction."""
    flags = mujoco.mjtDisableBit
    model.opt.disableflags = flags.mjDSBL_LIMIT if constraints else flags.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    found = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in arm.robot.joint_names]
    joints = [index if joint < 0 else joint for index, joint in enumerate(found)]  # those without a name, in order
    dofs, places = model.jnt_dofadr[joints], model.jnt_qposadr[joints]
    torque, friction = np.empty_like(motion.q), np.empty_like(motion.q)
    tendons: Any = np.flatnonzero(model.tendon_frictionloss) if model.ntendon else []
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(model, data)
        torque[row] = data.qfrc_inverse[dofs]
        if constraints:
            friction[row] = -data.qfrc_constraint[dofs]
            continue
        full = model.dof_frictionloss * np.sign(data.qvel)
        for tendon in tendons:
            weight = _weight(mujoco, model, int(tendon))
            full = full + model.tendon_frictionloss[tendon] * weight * np.sign(weight @ data.qvel)
        friction[row] = full[dofs]
    return torque, friction


def _weight(mujoco: Any, model: Any, tendon: int) -> Array:
    """Direction of a fixed tendon in joint space."""
    result = np.zeros(model.nv)
    first = int(model.tendon_adr[tendon])
    for wrap in range(first, first + int(model.tendon_num[tendon])):
        result[model.jnt_dofadr[model.wrap_objid[wrap]]] = model.wrap_prm[wrap]
    return result
