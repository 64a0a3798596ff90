"""The robots that come with armid are complete, physically possible and say where their numbers come from."""

import numpy as np
import pytest

from armid import Model, library_names, load_robot, view
from armid.dynamics.views import view_names
from armid.robot.inertia import impossibility, pseudo_inertia

# joints in use and rows of the table
ROBOTS = {"er16": (3, 6), "ir361": (3, 6), "kr15": (6, 6), "pa10": (7, 7), "powerball": (6, 6), "rx60": (3, 6)}
LIMITS = ("position", "velocity", "acceleration", "torque")
every_robot = pytest.mark.parametrize("name", ROBOTS)


def truth(robot):
    """Model and values of the virtual arm."""
    model = Model(robot)
    count = len(robot.virtual.inertia)
    names = [
        f"{n}{i}"
        for i in range(1, count + 1)
        for n in ["m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]
    ]
    values = dict(zip(names, robot.virtual.inertia.ravel(), strict=True))
    rotors = {f"Im{i + 1}": value for i, value in enumerate(robot.virtual.rotor_inertia)}
    return model, {**values, **rotors}


def carried_rotors(robot, link):
    """Second moments of the rotors that link number `link` carries: thin rings have 1/2, 1/2, 1 times Im."""
    total = np.zeros((4, 4))
    for drive, inertia in zip(robot.drives, robot.virtual.rotor_inertia, strict=True):
        if drive.coupled and drive.carrier == link:
            total[:3, :3] += 0.5 * inertia * (np.eye(3) - np.outer(drive.axis, drive.axis))
    return total


def smallest_eigenvalue(name, postures):
    """Of the virtual arm's mass matrix over random postures within the limits."""
    robot = load_robot(name)
    model, values = truth(robot)
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.limits.lower, robot.limits.upper, (postures, robot.n_joints))
    matrices = model.mass_matrix(q, values)
    assert matrices == pytest.approx(matrices.transpose(0, 2, 1), abs=1e-12)
    return np.linalg.eigvalsh(matrices).min()


def test_library_holds_the_six_robots():
    """No robot is missing, none is untested."""
    assert library_names() == tuple(sorted(ROBOTS))


@every_robot
def test_lists_have_one_entry_per_joint(name):
    """Default and full table: every list is as long as the number of joints."""
    for links, count in zip((None, ROBOTS[name][1]), ROBOTS[name], strict=True):
        robot = load_robot(name, links=links)
        assert robot.name == name
        assert robot.title
        limits = robot.limits
        per_joint = (limits.lower, limits.upper, limits.velocity, limits.acceleration, limits.torque)
        assert {len(entries) for entries in (robot.joints, robot.drives, robot.friction, *per_joint)} == {count}
    short = load_robot(name)
    virtual = short.virtual
    per_link = (virtual.inertia, virtual.rotor_inertia, virtual.friction, virtual.coefficients, virtual.torque_noise)
    assert {len(entries) for entries in per_link} == {short.n_joints}


@every_robot
def test_all_limits_are_known(name):
    """Experiments can be designed for every joint of the table."""
    limits = load_robot(name, links=ROBOTS[name][1]).limits
    assert np.isfinite([limits.lower, limits.upper, limits.velocity, limits.acceleration, limits.torque]).all()
    assert (limits.lower < limits.upper).all()
    assert min(limits.velocity.min(), limits.acceleration.min(), limits.torque.min()) > 0


@every_robot
def test_provenance_covers_every_number(name):
    """Kinematics, gravity, each limit, drives, friction, published sets and the virtual arm have a source or a note."""
    robot = load_robot(name)
    status = {entry.field: entry.status for entry in robot.provenance}
    limits = {f"limits.{field}" for field in LIMITS}
    virtual = {f"virtual.{field}" for field in ("links", "rotor_inertia", "friction", "torque_noise")}
    assert {"kinematics", "gravity", "friction", "drives.gear_ratio", "drives.rotor_inertia"} | limits | virtual <= set(
        status
    )
    for key in robot.published:
        assert any(field.startswith(f"published.{key}") for field in status)
    assert ("virtual.payload" in status) == (robot.virtual.payload is not None)
    assert ("virtual.encoder_resolution" in status) == (robot.virtual.encoder_resolution > 0)


@every_robot
def test_assumed_limits_are_marked_twice_alike(name):
    """`limits.assumed` and the provenance name the same fields."""
    robot = load_robot(name)
    told = {entry.field[7:] for entry in robot.provenance if entry.field[:7] == "limits." and entry.status == "assumed"}
    assert told == robot.limits.assumed


@every_robot
def test_published_formulas_can_be_read(name):
    """Every published set with formulas is a view of the model, and every formula has an effect."""
    model = Model(load_robot(name, simplify="none"))
    sets = [key for key in view_names(model.robot) if key in model.robot.published]
    for key in sets:
        assert (np.abs(view(model, key).matrix).max(axis=1) > 0).all()
    assert bool(sets) == (name not in ("ir361", "kr15"))


@every_robot
def test_published_formulas_can_be_read_without_rotors(name):
    """Leaving the rotors out drops their terms; it does not make the formulas unreadable."""
    model = Model(load_robot(name, rotors=False))
    for key in view_names(model.robot):
        assert view(model, key).matrix.shape[1] == len(model.names)


@every_robot
def test_virtual_links_are_possible_with_and_without_their_rotors(name):
    """Every link and payload is a body, also after the rotors it carries are taken out."""
    robot = load_robot(name)
    for number, phi in enumerate(robot.virtual.inertia, start=1):
        assert impossibility(phi, tolerance=0.0) is None
        bare = pseudo_inertia(phi) - carried_rotors(robot, number)
        assert np.linalg.eigvalsh(bare).min() > 0.0, f"link {number}"
    assert (robot.virtual.rotor_inertia >= 0).all()
    if robot.virtual.payload is not None:
        assert impossibility(robot.virtual.payload, tolerance=0.0) is None


@every_robot
def test_virtual_friction_takes_energy(name):
    """Friction of the virtual arm opposes motion at every speed within the limits."""
    robot = load_robot(name)
    for joint, friction in enumerate(robot.virtual.friction):
        v = np.linspace(-1, 1, 401) * robot.limits.velocity[joint]
        assert (v * friction.torque(v, robot.virtual.coefficients[joint]) >= 0.0).all(), f"joint {joint + 1}"


@every_robot
def test_mass_matrix_is_positive_definite(name):
    """A few hundred postures of the virtual arm."""
    assert smallest_eigenvalue(name, 300) > 0.0


@pytest.mark.prove
@every_robot
def test_mass_matrix_is_positive_definite_everywhere(name):
    """Ten thousand postures of the virtual arm."""
    assert smallest_eigenvalue(name, 10_000) > 0.0
