"""Random arms for the tests, and the same arms in Pinocchio."""

import numpy as np
import pinocchio as pin
from hypothesis import strategies as st

from armid.robot.geometry import placement
from armid.robot.inertia import from_com
from armid.robot.robot import Joint, Robot


def rotation(rng):
    """A random rotation matrix."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def random_placement(rng):
    return placement(rotation(rng), rng.uniform(-0.5, 0.5, 3))


def random_body(rng):
    """Ten parameters of a possible body: a cloud of point masses."""
    points = rng.normal(scale=0.3, size=(6, 3)) + rng.normal(scale=0.2, size=3)
    mass = rng.uniform(0.5, 3.0, 6)
    com = mass @ points / mass.sum()
    inertia = sum(m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(mass, points - com, strict=True))
    return from_com(mass.sum(), com, inertia)


def random_robot(seed, joints, tree, prismatic):
    """A random tree: any placements, axes and frames, any gravity.

    `tree` is "chain", "depth-first" (which Pinocchio's mass matrix needs) or "any" (parents before children only).
    """
    rng = np.random.default_rng(seed)
    described = []
    for i in range(joints):
        ancestors = [i]
        while tree == "depth-first" and ancestors[-1] > 0:
            ancestors.append(described[ancestors[-1] - 1].parent)
        parent = int(rng.integers(0, i + 1)) if tree == "any" else int(rng.choice(ancestors))
        slides = bool(prismatic and rng.random() < 0.4)
        described.append(Joint(f"j{i}", f"l{i}", parent, slides, random_placement(rng), random_placement(rng)))
    robot = Robot(name="random", source="test", joints=tuple(described), gravity=rng.normal(scale=6.0, size=3))
    return robot, np.array([random_body(rng) for _ in range(joints)])


def robots(*trees):
    """Strategy for (robot, inertial parameters)."""
    return st.builds(
        random_robot,
        seed=st.integers(0, 2**32 - 1),
        joints=st.integers(1, 8),
        tree=st.sampled_from(trees),
        prismatic=st.booleans(),
    )


def pinocchio_model(robot, inertia):
    """The same arm in Pinocchio: joints at their own frames, bodies given in link frames."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    for i, joint in enumerate(robot.joints):
        before = np.eye(4) if joint.parent == 0 else robot.joints[joint.parent - 1].link_frame
        kind = pin.JointModelPZ() if joint.prismatic else pin.JointModelRZ()
        number = model.addJoint(joint.parent, kind, pin.SE3(before @ joint.placement), joint.name)
        body = pin.Inertia.FromDynamicParameters(inertia[i])
        model.appendBodyToJoint(number, body, pin.SE3(joint.link_frame))
    return model, model.createData()


def values_of(model, inertia):
    """Parameter vector of a model from link inertias, everything else zero."""
    vector = np.zeros(len(model.names))
    vector[: inertia.size] = inertia.ravel()
    return vector
