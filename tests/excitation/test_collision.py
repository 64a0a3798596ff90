"""Capsules: distances against MuJoCo, gradients against differences, plans against MuJoCo's contact check."""

from dataclasses import replace
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.excitation import Floor, SelfCollision, design, link_capsules
from armid.excitation.collision import _distances
from armid.robot.robot import Capsule


def enclosed(points, capsules):
    """Whether each point lies within one of the capsules."""
    gaps = []
    for capsule in capsules:
        way = capsule.end - capsule.start
        share = np.clip((points - capsule.start) @ way / max(way @ way, 1e-300), 0.0, 1.0)
        gaps.append(np.linalg.norm(points - capsule.start - share[:, None] * way, axis=1) - capsule.radius)
    return np.min(gaps, axis=0).max() < 1e-9


def scene(robot, capsules):
    """The robot's capsules as mocap bodies of a MuJoCo model, one per capsule."""

    def text(numbers):
        return " ".join(repr(float(value)) for value in numbers)

    bodies = ""
    for i, capsule in enumerate(capsules):
        ends = f"{text(capsule.start)} {text(capsule.end)}"
        geom = f'<geom name="g{i}" type="capsule" fromto="{ends}" size="{capsule.radius}"/>'
        bodies += f'<body name="b{i}" mocap="true">{geom}</body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    return model, mujoco.MjData(model)


def distances(robot, capsules, pairs, q):
    """Distances of pairs, by MuJoCo's own geometry."""
    model, data = scene(robot, capsules)
    frames = armid.link_frames(robot, q)
    result = np.empty((len(q), len(pairs)))
    for k in range(len(q)):
        for i, capsule in enumerate(capsules):
            frame = np.eye(4) if capsule.link == 0 else frames[k, capsule.link - 1]
            data.mocap_pos[i] = frame[:3, 3]
            mujoco.mju_mat2Quat(data.mocap_quat[i], np.ascontiguousarray(frame[:3, :3]).ravel())
        mujoco.mj_forward(model, data)
        for p, (i, j) in enumerate(pairs):
            result[k, p] = mujoco.mj_geomDistance(model, data, i, j, 10.0, None)
    return result


@pytest.mark.parametrize("name", ["pa10", "kr15"])
def test_distances_equal_mujoco(name):
    """Every pair's distance on random postures is MuJoCo's."""
    robot = armid.load_robot(name)
    constraint = SelfCollision(robot, link_capsules(robot))
    assert constraint.pairs
    motion = random_motion(robot, 40, np.random.default_rng(0))
    found = constraint.values(motion)
    expected = distances(robot, constraint.capsules, constraint.pairs, motion.q)
    apart = expected > 0.01  # MuJoCo's penetration depth is another quantity than ours
    assert apart.mean() > 0.3
    assert np.abs(found - expected)[apart].max() < 1e-5
    assert np.all(found[~apart] < 0.011)


def test_neighbours_and_built_in_contacts_are_left_out():
    """Pairs are never neighbours; links that overlap by construction are not asked to part."""
    robot = armid.load_robot("pa10")
    constraint = SelfCollision(robot, link_capsules(robot))
    for i, j in constraint.pairs:
        a, b = constraint.capsules[i].link, constraint.capsules[j].link
        assert a != b
        assert robot.joints[b - 1].parent != a


@pytest.mark.parametrize("kind", [SelfCollision, Floor])
def test_gradients(kind):
    """Distances and heights against central differences, to 1e-6."""
    robot = armid.load_robot("kr15")
    constraint = kind(robot, link_capsules(robot))
    rng = np.random.default_rng(1)
    q = 0.6 * rng.normal(size=(30, robot.n_joints))
    still = np.zeros_like(q)
    direction = rng.normal(size=q.shape)
    step = 1e-6
    ahead, behind = (constraint.values(Motion(q + sign * step * direction, still, still)) for sign in (1, -1))
    change = (ahead - behind) / (2 * step)
    bar = rng.normal(size=change.shape)
    expected = np.einsum("kj,kj->k", constraint.pull_back(Motion(q, still, still), bar).q, direction)
    change = np.einsum("km,km->k", bar, change)
    near_switch = np.abs(change - expected) > 1e-5  # where the closest point jumps from one end to the other
    assert near_switch.mean() < 0.04
    assert np.abs(change - expected)[~near_switch].max() < 1e-5


def test_closest_points_of_special_segments():
    """Parallel, crossing, point-like and end-to-end segments."""
    x, y, z = np.eye(3)
    cases = [
        ((0 * x, x, y, x + y), 1.0),
        ((-x, x, -y + z, y + z), 1.0),
        ((0 * x, 0 * x, z, z), 1.0),
        ((0 * x, x, 3 * x, 4 * x), 2.0),
        ((0 * x, x, 0.5 * x, 2 * x), 0.0),
    ]
    for points, expected in cases:
        found = _distances(SimpleNamespace(points=np.array([points])), [(0, 1)])
        assert found[0][0, 0] == pytest.approx(expected)


def test_plan_keeps_off_itself_and_the_floor():
    """A PA-10 plan with self-collision and floor active is feasible, and MuJoCo finds no contact along it."""
    robot = armid.load_robot("pa10", gravity=(0, 0, -9.81))
    capsules = link_capsules(robot, 0.08)
    limits = (SelfCollision(robot, capsules), Floor(robot, capsules))
    plan = design(robot, starts=1, workers=1, constraints=limits, iterations=120)
    assert plan.certified
    _, motion = plan.trajectory.sample(40.0)
    gaps = distances(robot, capsules, limits[0].pairs, motion.q)
    assert gaps.min() > 0.0
    frames = armid.link_frames(robot, motion.q)
    for capsule in capsules:
        if capsule.link > 1:
            for end in (capsule.start, capsule.end):
                assert (frames[:, capsule.link - 1] @ np.append(end, 1.0))[:, 2].min() > capsule.radius


def test_shapes_of_a_urdf(tmp_path):
    """Boxes, cylinders and spheres of a URDF become capsules that enclose them; a mesh that is gone is named."""
    shapes = {
        "box": '<box size="0.2 0.1 0.6"/>',
        "cylinder": '<cylinder radius="0.05" length="0.4"/>',
        "sphere": '<sphere radius="0.07"/>',
        "mesh": '<mesh filename="gone.stl"/>',
    }
    collisions = "".join(
        f'<collision><origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/><geometry>{s}</geometry></collision>'
        for s in shapes.values()
    )
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="r"><link name="a"/><link name="b">{collisions}</link>{joint}</robot>')
    robot = armid.load_robot(path)
    box, cylinder, sphere = robot.capsules
    assert [(shape.link, shape.name) for shape in robot.unread_shapes] == [(1, "gone.stl")]
    corners = np.array(np.meshgrid([-0.3, 0.3], [-0.05, 0.05], [0.9, 1.1])).reshape(3, -1).T
    assert enclosed(corners, [box])
    assert box.radius == pytest.approx(np.hypot(0.1, 0.05), rel=1e-6)
    assert np.allclose([cylinder.start, cylinder.end], [[-0.2, 0, 1], [0.2, 0, 1]])
    assert (cylinder.radius, sphere.radius) == (0.05, 0.07)
    assert np.allclose(sphere.start, sphere.end)


def test_links_that_always_touch_are_told():
    """Links 3 and 5 of a KR 15 meet where link 4 has no length, as neighbours do; thick ones that touch are named."""
    robot = armid.load_robot("kr15")
    usual = SelfCollision(robot, link_capsules(robot))
    assert usual.touching == ()
    assert any(0 in (usual.capsules[i].link, usual.capsules[j].link) for i, j in usual.pairs)
    assert not any((usual.capsules[i].link, usual.capsules[j].link) == (3, 5) for i, j in usual.pairs)
    thick = SelfCollision(robot, link_capsules(robot, 5.0))
    assert thick.pairs == ()
    assert (0, 2) in thick.touching
    assert (3, 5) not in thick.touching


def test_floor_without_links_above_it():
    """Nothing of a link that turns about the vertical moves up or down: it may stand on the floor."""
    robot = armid.load_robot("ir361", links=1)
    floor = Floor(robot, (Capsule(1, np.zeros(3), np.ones(3), 0.1),))
    still = Motion(*np.zeros((3, 5, 1)))
    assert floor.values(still).shape == (5, 0)
    assert floor.pull_back(still, np.zeros((5, 0))).q.shape == (5, 1)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_radius(radius):
    with pytest.raises(ArmidError, match="must be positive"):
        link_capsules(armid.load_robot("kr15"), radius)


def test_an_arm_without_lengths_needs_capsules():
    robot = armid.load_robot("rx60", links=1)
    with pytest.raises(ArmidError, match="capsules"):
        link_capsules(replace(robot, tool=np.eye(4), capsules=()))
