"""Small arms, data and fits for the tests of export; torque without simulation."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

import armid
from armid.dynamics.model import Motion
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.robot.inertia import from_com
from armid.robot.parts import Friction
from armid.robot.robot import Counterbalance, GravitySpring
from armid.signals import Dataset
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque

# Everything that a patcher can trip over: comments, CDATA, namespaces, quotes, empty elements, odd spacing, other tags.
URDF = """\
<?xml version="1.0" encoding="utf-8"?>
<!-- <inertial> in a comment, with a stray > and "quotes" -->
<robot name="small" xmlns:drake="http://drake.mit.edu" xmlns:xacro="http://ros.org/wiki/xacro">
  <gazebo reference="upper"><material>Gazebo/Grün</material><note><![CDATA[ <link name="fake"><inertial/></link> ]]></note></gazebo>
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="world"/>
  <link name="base"><inertial><mass value="9"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="stand" type="fixed"><parent link="world"/><child link="base"/><origin xyz="0 0 0.4"/></joint>
  <link name="shoulder">
    <visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>
    <inertial>
      <!-- from CAD, version 3 -->
      <origin rpy="0.3 -0.2 0.1" xyz='0.01 0.02  0.05'/>
      <mass   value = "3.0" />
      <inertia izz="0.03" ixx="0.02" ixy="0.001" ixz="0" iyy="0.025" iyz="0"/>
    </inertial>
  </link>
  <joint name="pan" type="revolute">
    <parent link="base"/><child link="shoulder"/>
    <origin xyz="0 0 0.2" rpy="0 0 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" effort="150" velocity="3"/>
    <dynamics friction='0.5' damping="0.1" drake:extra="7"/>
  </joint>
  <link name="upper">
\t<inertial><mass value="2.0"/><origin xyz="0.2 0 0"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.04"/></inertial>
  </link>
  <joint name="lift" type="revolute">
    <parent link="shoulder"/>
    <child link="upper"/>
    <origin xyz="0.05 0 0.1" rpy="1.5707963267948966 0.2 0"/>
    <axis xyz="0 0.6 0.8"/>
    <limit lower="-1.5" upper="1.5" effort="120" velocity="2.5"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="upper"/><child link="ram"/>
    <origin xyz="0.4 0 0"/><axis xyz="-1 0 0"/>
    <limit lower="-0.2" upper="0.2" effort="300" velocity="0.6"/>
  </joint>
  <link name="ram"/>
  <link
     name="hand"
  >
    <inertial>
      <mass value="0.8"/>
      <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.001"/>
    </inertial>
  </link>
  <joint name="roll" type="continuous"><parent link="ram"/><child link="hand"/><origin xyz="0.1 0.02 0" rpy="0 1.2 0.4"/><axis xyz="1 0 0"/><dynamics damping="0"/></joint>
  <link name="flange">
    <inertial>
      <origin xyz="0 0 0.03" rpy="0 0.5 0"/>
      <mass value="0.3"/>
      <inertia ixx="0.0004" ixy="0" ixz="0" iyy="0.0003" iyz="0" izz="0.0002"/>
    </inertial>
    <visual><geometry><sphere radius="0.02"/></geometry></visual>
  </link>
  <joint name="mount" type="fixed"><parent link="hand"/><child link="flange"/><origin xyz="0.05 0 0" rpy="0.1 0.2 0.3"/></joint>
  <transmission name="t"><joint name="pan"><dynamics damping="not ours"/></joint></transmission>
</robot>
"""  # noqa: E501


def written(folder, text=URDF, name="small.urdf") -> Path:
    path = Path(folder) / name
    path.write_bytes(text.encode())
    return path


def truth(robot, seed=0):
    """An arm that can exist, with every parameter of the model."""
    rng = np.random.default_rng(seed)
    values = {}
    for number in range(1, len(robot.links) + 1):
        mass, com, size = rng.uniform(1.0, 4.0), rng.normal(0.0, 0.08, 3), rng.normal(size=(3, 3))
        second = mass * 0.004 * (size @ size.T + np.eye(3))
        phi = from_com(mass, com, np.trace(second) * np.eye(3) - second)
        names = armid.robot.robot.inertial_names(number)
        values |= dict(zip(names, phi.tolist(), strict=True))
    sizes = {"Im": 0.02, "fv": 1.5, "fc": 2.0, "fo": 0.3, "ks": 800.0, "kl": 200.0}
    for name in armid.Model(robot).names:
        if name not in values:
            values[name] = sizes[name[:2]] * rng.uniform(0.7, 1.3) * (0.01 if name == "fo1" else 1.0)
    return values


def states(robot, samples, seed):
    rng = np.random.default_rng(seed)
    reach = np.where([joint.prismatic for joint in robot.joints], 0.2, 2.0)
    shape = (samples, robot.n_joints)
    signs = rng.choice([-1.0, 1.0], shape)
    return Motion(reach * rng.uniform(-1, 1, shape), signs * rng.uniform(0.1, 2.0, shape), rng.uniform(-4, 4, shape))


def fitted(robot, seed=0, noise=0.02, possible=True):
    """A fit to torque of random states with a little noise."""
    motion = states(robot, 600, seed)
    torque = armid.Model(robot).inverse_dynamics(*motion, truth(robot, seed))
    torque += noise * np.random.default_rng(seed + 1).normal(size=torque.shape)
    data = Dataset(robot.joint_names, 0.01 * np.arange(600), *motion, torque, np.arange(600))
    fit = WeightedLeastSquares().fit(robot, data)
    return consistent_fit(fit) if possible else fit


@cache
def small_fit(folder, possible=True):
    """The small arm from its URDF, without rotors and offsets: a URDF can hold all of its torque."""
    robot = armid.load_robot(written(folder), rotors=False)
    return fitted(replace(robot, friction=(Friction("coulomb-viscous"),) * robot.n_joints), possible=possible)


@cache
def library_fit(name, **options):
    """A library arm with a made-up truth."""
    robot = armid.load_robot(name, **options)
    return fitted(robot.first_links(len(robot.virtual.inertia)))


@cache
def rich_fit():
    """An arm with everything the model knows; what a fit can hold beside it is added by hand.

    Coupled rotors, motors that move two joints, springs, a counterbalance, offsets, friction by direction, friction
    terms of all kinds, laws known beforehand, load-proportional loss, delays.
    """
    robot = armid.load_robot("kr15")
    coupling = np.diag([drive.gear_ratio for drive in robot.drives])
    coupling[5, 4], coupling[4, 3] = 0.3 * coupling[5, 5], -0.2 * coupling[4, 4]
    plain = Friction("coulomb-viscous", offset=True)
    robot = replace(
        robot,
        coupling=coupling,
        zero=frozenset(),
        friction=(plain, replace(plain, per_direction=True), Friction(), plain, plain, plain),
        springs=(GravitySpring(2, 0.2, 0.6, 0.3),),
        counterbalances=(Counterbalance(3, np.array([-1.0, 0.2, 0.9]), np.array([-20.0, 5.0, 12.0])),),
    )
    fit = fitted(robot)
    terms = (
        FrictionTerm("smooth", 0, (0.05,)),
        FrictionTerm("rest", 0, (0.2,)),
        FrictionTerm("smooth-even", 3, (0.05,)),
        FrictionTerm("load", 4),
    )
    inertial = [
        name
        for name in fit.torque_model.model.base.kept
        if name in fit.standard_parameters and name[:2] not in ("Im", "fv")
    ]
    laws = {
        "double-exponential": {"f1": 3.0, "f2": 8.0, "f3": 2.0, "f4": 0.3, "f5": 1.0, "f6": 4.0},
        "hyperbolic": {"g1": 3.0, "g2": 20.0, "g3": 2.0, "g4": 3.0, "g5": 1.5},
        "stribeck": {"fv": 2.0, "fc": 3.0, "fs": 5.0, "vs": 0.4},
    }
    two = {
        f"{name}{way}": (1.0 if way == "p" else 1.2) * v
        for name, v in laws["double-exponential"].items()
        for way in "pn"
    }
    known = KnownTorque(
        friction=(
            None,
            (Friction("hyperbolic"), laws["hyperbolic"]),
            (Friction("double-exponential", offset=True, per_direction=True), two | {"fo": 0.7}),
            (Friction("stribeck", offset=True), laws["stribeck"] | {"fo": -0.2}),
            (Friction("coulomb-viscous"), {"fv": 0.5, "fc": 0.25}),
            None,
        ),
        load_loss=np.column_stack([np.full(6, 0.03), np.linspace(-0.2, 0.2, 6)]),
        weight={name: fit.standard_parameters[name] for name in ("m2", "mx2", "my2", "mx3", "m4")},
    )
    values = dict(zip(fit.columns, fit.values, strict=True))
    bells = np.linspace(1.1, 0.2, 10)
    coefficients = np.concatenate([bells, [2.2], 0.1 * bells, [0.3], [0.05]])
    extra = np.zeros((len(fit.names) + len(coefficients),) * 2)
    extra[: len(fit.names), : len(fit.names)] = fit.covariance
    return replace(
        fit,
        columns=(*fit.columns, *(name for term in terms for name in term.names)),
        values=np.concatenate([fit.values, coefficients]),
        covariance=extra,
        identifiability=replace(
            fit.identifiability, classes=(*fit.identifiability.classes, *["curve"] * len(coefficients))
        ),
        terms=terms,
        load_values={name: values[name] for name in fit.torque_model.model.base.kept} if inertial else None,
        known_torque=known,
        delay_s=np.array([0.0, 0.002, 0.0, 0.001, 0.0, 0.0]),
        friction_lag_s=np.array([0.004, 0.003, 0.0, 0.0, 0.0, 0.0]),
    )


def range_error(found, wanted):
    """Largest difference over the range of each joint's torque."""
    return float((np.abs(found - wanted) / np.ptp(wanted, axis=0)).max())


def virtual_description(folder) -> Path:
    """A robot file whose URDF is wrong about masses and friction: what stands under `virtual` is the truth."""
    ram = '<mass value="1.2"/><inertia ixx="0.002" ixy="0" ixz="0" iyy="0.006" iyz="0" izz="0.006"/>'
    written(folder, URDF.replace('<link name="ram"/>', f'<link name="ram"><inertial>{ram}</inertial></link>'))
    import yaml

    from armid.robot.inertia import to_com

    robot = armid.load_robot(Path(folder) / "small.urdf", rotors=False)
    links = []
    for phi in robot.nominal_inertia:
        mass, com, tensor = to_com(phi)
        mass, com, tensor = 1.3 * mass, 1.15 * com + 0.01, 1.2 * tensor
        keys = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
        links.append(
            {"mass": mass, "com": com.tolist(), "inertia": {key: float(tensor[at]) for key, at in keys.items()}}
        )
    data = {
        "name": "small",
        "kinematics": {"convention": "urdf", "file": "small.urdf"},
        "limits": {"acceleration": [8.0, 8.0, 4.0, 10.0]},
        "virtual": {
            "links": links,
            "friction": {
                "law": "coulomb-viscous",
                "coefficients": {"fv": [3.0, 3.0, 20.0, 0.4], "fc": [2.0, 3, 4, 0.5]},
            },
            "torque_noise": [0.5, 0.5, 0.5, 0.1],
        },
    }
    path = Path(folder) / "small.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def swing(robot, seed, period=8.0):
    """A random Fourier series inside the limits of the small arm."""
    from armid.excitation import FourierSeries

    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, robot.n_joints, 4))
    reach = np.array([1.2, 0.8, 0.12, 1.5])
    size = (np.abs(sine) + np.abs(cosine)).sum(axis=1)
    scale = (reach / size)[:, None]
    return FourierSeries(1.0 / period, (1, 2, 3, 4), scale * sine, scale * cosine, np.zeros(robot.n_joints))
