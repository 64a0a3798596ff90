"""Default plans, replayed by MuJoCo at 1 kHz: no limit broken, no link in another or in the floor, the tool slow."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import armid
from armid.excitation import design, link_capsules
from armid.excitation.collision import SelfCollision
from armid.excitation.constraints import prior_values
from armid.excitation.design import with_default_limits
from tests.excitation.replay import mjcf
from tests.random_arms import random_arm

TENSOR = '<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/>'
BODY = f'<inertial><origin xyz="{{c}}"/><mass value="{{m}}"/>{TENSOR}</inertial>'
CHAIN = [  # offsets of the joints and their axes
    ((0, 0, 0.30), "0 0 1"),
    ((0.05, 0, 0.15), "0 1 0"),
    ((0, 0, 0.45), "0 1 0"),
    ((0.05, 0, 0.20), "0 0 1"),
    ((0, 0, 0.20), "0 1 0"),
    ((0, 0, 0.10), "0 0 1"),
]


def bent_tube(end, radius):
    """Triangles of a square tube that goes up and then sideways to `end`."""
    corner, triangles = np.array([0.0, 0.0, end[2]]), []
    for a, b in ((np.zeros(3), corner), (corner, np.array(end, dtype=float))):
        low, high = np.minimum(a, b) - radius, np.maximum(a, b) + radius
        box = np.array([[low, high][k][i] for k in (0, 1) for i in range(3)]).reshape(2, 3)
        p = [np.array([box[i, 0], box[j, 1], box[k, 2]]) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
        for face in ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)):
            triangles += [(p[face[0]], p[face[1]], p[face[2]]), (p[face[0]], p[face[2]], p[face[3]])]
    return np.array(triangles)


def write_stl(path, triangles):
    """A binary STL file."""
    rows = np.zeros((len(triangles), 50), dtype=np.uint8)
    rows[:, 12:48] = triangles.reshape(len(triangles), 9).astype("<f4").view(np.uint8).reshape(len(triangles), 36)
    path.write_bytes(bytes(80) + len(triangles).to_bytes(4, "little") + rows.tobytes())


def urdf(kind, folder):
    """An arm of six joints whose links are boxes, cylinders with a sphere at the end, or bent meshes."""
    parts = []
    for k in range(len(CHAIN) + 1):
        end = CHAIN[k][0] if k < len(CHAIN) else (0.0, 0.0, 0.12)
        radius, length = 0.06 - 0.006 * k, float(np.linalg.norm(end))
        middle = " ".join(str(0.5 * value) for value in end)
        if kind == "boxes":
            shape = f'<box size="{2 * radius} {2 * radius} {length}"/>'
            shapes = f'<collision><origin xyz="{middle}"/><geometry>{shape}</geometry></collision>'
        elif kind == "cylinders":
            shapes = (
                f'<collision><origin xyz="{middle}"/><geometry><cylinder radius="{radius}" length="{length}"/>'
                f'</geometry></collision><collision><origin xyz="{" ".join(map(str, end))}"/><geometry><sphere '
                f'radius="{radius}"/></geometry></collision>'
            )
        else:
            write_stl(folder / f"part{k}.stl", 1000.0 * bent_tube(end, 0.8 * radius))
            mesh = f'<mesh filename="package://{folder.name}/part{k}.stl" scale="0.001 0.001 0.001"/>'
            shapes = f"<collision><geometry>{mesh}</geometry></collision>"
        mass = 6.0 - 0.8 * k
        parts.append(f'<link name="l{k}">{BODY.format(c=middle, m=mass, i=0.02 * mass)}{shapes}</link>')
    for k, (offset, axis) in enumerate(CHAIN):
        limit = f'<limit lower="-2.6" upper="2.6" velocity="{2 + 0.3 * k}" effort="{250 / (1 + k)}"/>'
        ends = f'<parent link="l{k}"/><child link="l{k + 1}"/><origin xyz="{" ".join(map(str, offset))}"/>'
        parts.append(f'<joint name="j{k}" type="revolute">{ends}<axis xyz="{axis}"/>{limit}</joint>')
    path = folder / f"{kind}.urdf"
    path.write_text(f'<robot name="{kind}">{"".join(parts)}</robot>')
    return path


def listed(robot, capsules):
    """Pairs of links that need not keep apart: neighbours, links joined without length between, and named ones."""
    constraint = SelfCollision(robot, capsules)
    links = {tuple(sorted((capsules[i].link, capsules[j].link))) for i, j in constraint.pairs}
    every = {(a, b) for b in range(robot.n_joints + 1) for a in range(b)}
    named = set(constraint.touching)
    return (every - links) | named, named


def lowest(model, data, geom):
    """Height of the lowest point of a shape, exactly."""
    kind, size = model.geom_type[geom], model.geom_size[geom]
    centre, axes = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
        return float((points @ axes.T + centre)[:, 2].min())
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return float(centre[2] - np.abs(axes[2]) @ size)
    rise = min(abs(axes[2, 2]), 1.0)
    flat = kind == mujoco.mjtGeom.mjGEOM_CYLINDER
    long = kind != mujoco.mjtGeom.mjGEOM_SPHERE
    return float(centre[2] - (size[1] * rise if long else 0.0) - size[0] * (np.sqrt(1.0 - rise**2) if flat else 1.0))


def check_joints(robot, plan, motion):
    """Positions, velocities, accelerations; torques by MuJoCo for the links, by the model for drives and friction."""
    limits = robot.limits
    assert np.all((motion.q >= limits.lower) & (motion.q <= limits.upper))
    assert np.all(np.abs(motion.qd) <= limits.velocity)
    assert np.all(np.abs(motion.qdd) <= limits.acceleration)
    names = [margin.quantity for margin in plan.margins]
    assert np.isnan(limits.torque).any() == any(text.startswith("torque of") for text in plan.unchecked)
    if "torque" not in names:
        return
    model = armid.Model(robot)
    values = prior_values(model)
    bare = np.where([p.kind == "inertial" and not p.name.startswith("Im") for p in model.parameters], values, 0.0)
    other = model.inverse_dynamics(*motion, values) - model.inverse_dynamics(*motion, bare)
    plant = mujoco.MjModel.from_xml_string(mjcf(robot, values))
    data = mujoco.MjData(plant)
    for q, qd, qdd, rest in zip(*motion, other, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(plant, data)
        assert np.all(np.abs(data.qfrc_inverse + rest) <= np.nan_to_num(limits.torque, nan=np.inf))


def check_space(robot, plan, motion, plant, link_of_body, skipped, tool_speed, floor):
    """No link in another or below the floor, and the tool not too fast, in a scene of MuJoCo."""
    data = mujoco.MjData(plant)
    link = [link_of_body(plant.body(plant.geom_bodyid[g]).name) for g in range(plant.ngeom)]
    pairs = [
        (g, h)
        for h in range(plant.ngeom)
        for g in range(h)
        if link[g] != link[h] and tuple(sorted((link[g], link[h]))) not in skipped
    ]
    last = next(b for b in range(plant.nbody) if link_of_body(plant.body(b).name) == robot.n_joints)
    heights, jacobian = [], np.zeros((3, plant.nv))
    for q, qd in zip(motion.q, motion.qd, strict=True):
        data.qpos[:], data.qvel[:] = q, qd
        mujoco.mj_kinematics(plant, data)
        mujoco.mj_comPos(plant, data)
        assert all(mujoco.mj_geomDistance(plant, data, g, h, 0.5, None) > 0.0 for g, h in pairs)
        point = data.xpos[last] + data.xmat[last].reshape(3, 3) @ robot.tool[:3, 3]
        mujoco.mj_jac(plant, data, jacobian, None, point, last)
        assert np.linalg.norm(jacobian @ qd) <= tool_speed
        heights.append([lowest(plant, data, g) for g in range(plant.ngeom)])
    if floor is not None:
        moving = np.ptp(heights, axis=0) > 1e-6
        assert np.array(heights)[:, moving].min() > floor
        assert moving.any()
    return pairs


def check(robot, plan, path=None, rate_hz=1000.0):
    """Everything about a plan; `path` is a URDF whose own shapes MuJoCo then looks at."""
    assert plan.certified
    names = {margin.quantity for margin in plan.margins}
    for quantity in ("torque", "self-collision", "floor", "tool speed"):
        assert quantity in names or any(text.startswith(quantity) for text in plan.unchecked), quantity
    assert ("all limits" in plan.summary()) == (not plan.unchecked)
    _, motion = plan.trajectory.sample(rate_hz)
    check_joints(robot, plan, motion)
    capsules = link_capsules(robot)
    skipped, named = listed(robot, capsules)
    assert bool(named) == any(text.startswith("self-collision of ") for text in plan.unchecked)
    upright = -robot.gravity[2] / np.linalg.norm(robot.gravity) > 0.7
    assert upright == ("floor" in names)
    floor = (robot.limits.floor or 0.0) if upright else None
    shapes = mujoco.MjModel.from_xml_string(mjcf(robot, prior_values(armid.Model(robot)), capsules))
    numbers = {f"b{k + 1}": k + 1 for k in range(robot.n_joints)}
    check_space(robot, plan, motion, shapes, lambda name: numbers.get(name, 0), skipped, 2.0, floor)
    if path is not None:
        numbers = {joint.link_name: k for k, joint in enumerate(robot.joints, start=1)}
        plain = path.with_suffix(".plain.urdf")  # MuJoCo looks for meshes beside the file and knows no packages
        plain.write_text(path.read_text().replace(f"package://{path.parent.name}/", ""))
        plant = mujoco.MjModel.from_xml_path(str(plain))
        pairs = check_space(robot, plan, motion, plant, lambda name: numbers.get(name, 0), skipped, 2.0, floor)
        assert len(pairs) >= 6


@pytest.mark.parametrize("kind", ["meshes"])
def test_one_urdf(tmp_path, kind):
    """A quick one: bent meshes of a URDF."""
    path = urdf(kind, tmp_path)
    robot = armid.load_robot(path)
    robot = replace(robot, limits=with_default_limits(robot.limits)[0])
    assert not robot.unread_shapes
    check(robot, design(robot, starts=1, workers=1, iterations=40), path, 100.0)


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["boxes", "cylinders", "meshes"])
def test_every_urdf(tmp_path, kind):
    """Default plans of URDFs with collision shapes, against those shapes themselves."""
    path = urdf(kind, tmp_path)
    robot = armid.load_robot(path)
    robot = replace(robot, limits=with_default_limits(robot.limits)[0])
    plan = design(robot)
    print(plan.summary())
    check(robot, plan, path)


@pytest.mark.prove
@pytest.mark.parametrize("name", ["er16", "ir361", "kr15", "pa10", "powerball", "rx60"])
def test_every_library_arm(name):
    """Default plans of the library."""
    robot = armid.load_robot(name)
    plan = design(robot)
    print(plan.summary())
    check(robot, plan)


@pytest.mark.prove
@pytest.mark.parametrize("seed", [*range(8), *range(200, 212)])
def test_random_arms(tmp_path, seed):
    """Default plans of arms that nobody has tuned anything on; from 200 on with torque limits, some of them hanging."""
    robot = random_arm(seed, tmp_path).robot
    robot = robot if seed < 200 else mounted(robot, np.random.default_rng(seed))
    plan = design(robot)
    print(plan.summary())
    check(robot, plan)


def mounted(robot, rng):
    """An arm with a tool, torque limits near what a fast motion asks for, one of them unknown, and perhaps hanging."""
    if rng.random() < 0.3:
        robot = robot.with_gravity(-robot.gravity)
    model = armid.Model(robot)
    q, direction = rng.uniform(-2.5, 2.5, (200, robot.n_joints)), rng.choice([-0.5, 0.5], (200, robot.n_joints))
    fast = model.inverse_dynamics(q, direction * robot.limits.velocity, 0.0 * q, prior_values(model))
    torque = rng.uniform(1.5, 3.0) * np.abs(fast).max(axis=0)
    torque[int(rng.integers(robot.n_joints))] = np.nan if rng.random() < 0.5 else 1e3
    tool = np.eye(4)
    tool[:3, 3] = rng.normal(0.0, 0.1, 3)
    return replace(robot, limits=replace(robot.limits, torque=torque), tool=tool)
