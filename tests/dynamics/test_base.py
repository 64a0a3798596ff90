"""Base parameters: against an independent solver's tables, the papers' formulas and the closed form."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import armid
from armid.robot.geometry import DHRow, dh_joints
from armid.robot.robot import Robot, inertial_names
from tests.dynamics.closed_form import closed_form_grouping

TABLES = yaml.safe_load(Path(__file__).with_name("base_groupings.yaml").read_text())


def with_link_7(robot):
    return replace(robot, zero=robot.zero - set(inertial_names(7)))


CASES = {
    "rx60_3links": lambda: armid.load_robot("rx60", rotors=False),
    "rx60_3links_rotors_kr50": lambda: armid.load_robot("rx60"),
    "rx60_6links": lambda: armid.load_robot("rx60", links=6, rotors=False),
    "er16_3links": lambda: armid.load_robot("er16", rotors=False),
    "er16_6links_rotors_kr100": lambda: armid.load_robot("er16", links=6),
    "pa10_21_simplified_nolink7_kr50": lambda: armid.load_robot("pa10"),
    "pa10_28_simplified_withlink7_kr50": lambda: with_link_7(armid.load_robot("pa10")),
    "pa10_50_full_horizontal_kr50": lambda: armid.load_robot("pa10", simplify="none"),
    "pa10_48_full_vertical_kr50": lambda: armid.load_robot("pa10", simplify="none", gravity=(0, 0, -9.81)),
    "powerball_23_simplified_kr160": lambda: armid.load_robot("powerball"),
}


def groups_of(robot):
    """Inertial and rotor groups as mappings from parameter to coefficient."""
    base = armid.Model(robot).base
    return base, [dict(group.terms) for group in base.groups_of("inertial", "rotor")]


@pytest.mark.parametrize("name", TABLES)
def test_groups_equal_the_independent_tables(name):
    """Same groups, same coefficients, same parameters without effect, for every robot of the tables."""
    base, groups = groups_of(CASES[name]())
    expected = TABLES[name]["groups"]
    assert base.count == len(groups) == len(expected)
    ours = {frozenset(group): group for group in groups}
    for table in expected:
        found = ours[frozenset(table)]
        for parameter, coefficient in table.items():
            assert found[parameter] == pytest.approx(coefficient, rel=1e-8), (table, parameter)
    if "no_effect" in TABLES[name]:
        assert set(base.no_effect) == set(TABLES[name]["no_effect"])


def test_pa10_groups_are_the_appendix():
    """All 21 groups are the appendix's formulas, term by term; products of inertia have the tensor's sign."""
    model = armid.Model(armid.load_robot("pa10"))
    _, groups = groups_of(model.robot)
    appendix = armid.view(model, "appendix")
    formulas = [
        {model.names[c]: row[c] for c in np.flatnonzero(row) if model.names[c] not in model.robot.zero}
        for row in appendix.matrix
    ]
    assert len(formulas) == len(groups) == 21
    for formula in formulas:
        match = next(group for group in groups if set(group) == set(formula))
        sign = -1.0 if set(formula) in ({"Iyz2"}, {"Iyz4"}) else 1.0
        assert match == pytest.approx({name: sign * value for name, value in formula.items()}, rel=1e-9)


PRINTED = {
    "Izz1R": "Izz1 + Iyy2 + kr² Im1",
    "my2R": "my2 − mz3 − d3 (m3 + m4 + m5 + m6)",
    "Ixx2R": "Ixx2 + Iyy3 + 2 d3 mz3 + d3² (m3 + m4 + m5 + m6) − Iyy2",
    "Iyz2": "Iyz2",
    "Izz2R": "Izz2 + Iyy3 + 2 d3 mz3 + d3² (m3 + m4 + m5 + m6) + kr² Im2",
    "Im3": "Im3",
    "Ixx3R": "Ixx3 + Iyy4 − Iyy3",
    "Izz3R": "Izz3 + Iyy4",
    "Im4": "Im4",
    "my4R": "my4 − mz5 − d5 (m5 + m6)",
    "Ixx4R": "Ixx4 + Iyy5 + 2 d5 mz5 + d5² (m5 + m6) − Iyy4",
    "Iyz4": "Iyz4",
    "Izz4R": "Izz4 + Iyy5 + 2 d5 mz5 + d5² (m5 + m6)",
    "Im5": "Im5",
    "Ixx5R": "Ixx5 + Iyy6 − Iyy5",
    "Izz5R": "Izz5 + Iyy6",
    "Im6": "Im6",
    "my6": "my6",
    "Ixx6R": "Ixx6 − Iyy6",
    "Izz6": "Izz6",
    "Im7": "Im7",
}


def test_pa10_groups_read_like_the_appendix():
    """The expressions are the appendix's, symbols and all."""
    base = armid.Model(armid.load_robot("pa10")).base
    assert {group.name: group.expression for group in base.groups_of("inertial", "rotor")} == PRINTED


def test_expressions_of_other_arms():
    """Sums of squares, products of constants, standard DH, several gear ratios and URDF offsets are recognised."""
    er16 = {g.name: g.expression for g in armid.Model(armid.load_robot("er16", links=6)).base.groups}
    expected = "Izz1 + Iyy2 + Iyy3 + a1² m2 + (a1² + a2²) m3 + (a1² + a2² + a3²) (m4 + m5 + m6) + kr² Im1"
    assert er16["Izz1R"] == expected
    assert er16["Ixx3R"] == "Ixx3 + Iyy4 + 2 d4 mz4 + (d4² − a3²) (m4 + m5 + m6) − Iyy3"
    assert er16["Ixy3R"] == "Ixy3 + a3 mz4 + a3 d4 (m4 + m5 + m6)"
    powerball = {g.name: g.expression for g in armid.Model(armid.load_robot("powerball")).base.groups}
    assert powerball["Izz2R"] == "Izz2 + kr2² Im2 − a2² (m2 + m3 + m4 + m5 + m6)"


def test_odd_angles_are_printed_as_numbers():
    """A coefficient that is no simple polynomial of the constants stays a number, and is right."""
    rows = [DHRow(0, 0, 0.3, 0), DHRow(0.7, 0.2, 0.1, 0), DHRow(-1.1, 0.3, 0.25, 0)]
    joints, lengths = dh_joints(rows, modified=True, parents=range(3), names="abc")
    base = armid.Model(Robot(name="odd", source="test", joints=joints, lengths=lengths)).base
    assert base.disagreement() < 1e-12
    group = next(group for group in base.groups if group.name == "Iyz2R")
    coefficient = dict(group.terms)["Iyy3"]
    assert coefficient == pytest.approx(np.cos(-1.1) * np.sin(-1.1))
    assert f"{-coefficient:.9g} Iyy3" in group.expression


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7))
def test_closed_form_agrees_with_the_rank_decision(seed, joints):
    """On random chains the recursion of PA-10 (15), corrected, gives the groups found numerically."""
    rng = np.random.default_rng(seed)
    rows = [
        DHRow(float(rng.choice([-1, 1]) * rng.uniform(0.4, 2.7)), *map(float, rng.uniform(-0.5, 0.5, 3)))
        for _ in range(joints)
    ]
    described, lengths = dh_joints(rows, modified=True, parents=range(joints), names=[f"j{i}" for i in range(joints)])
    robot = Robot(
        name="random", source="test", joints=described, lengths=lengths, gravity=rng.normal(scale=5.0, size=3)
    )
    base = armid.Model(robot).base
    names, matrix = closed_form_grouping(robot)
    assert base.names == names
    assert base.count == 7 * (joints - 1) + 3
    rows_of = [names.index(name) for name in base.kept]
    alive = [names.index(name) for name in names if name not in base.no_effect]
    assert np.allclose(matrix[np.ix_(rows_of, alive)], base.matrix[:, alive], atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 3))
def test_rules_for_each_kind_of_joint_name_the_base_parameters(seed, joints, parallel):
    """Gautier and Khalil, case by case: what is left of a link follows from how its axis lies.

    Axes parallel to the first: Izz, and mx and my unless it is the first and along gravity; others lose m, mz, Iyy.
    """
    rng = np.random.default_rng(seed)
    parallel = min(parallel, joints)
    alpha = [0.0] * parallel + [0.5 * np.pi * float(rng.choice([-1, 1])) for _ in range(joints - parallel)]
    rows = [DHRow(one, *map(float, rng.uniform(0.1, 0.5, 3))) for one in alpha]
    described, lengths = dh_joints(rows, modified=True, parents=range(joints), names=[f"j{i}" for i in range(joints)])
    upright = bool(rng.integers(2))
    gravity = np.array([0.0, 0.0, -9.81]) if upright else rng.normal(scale=5.0, size=3)
    base = armid.Model(Robot(name="r", source="test", joints=described, lengths=lengths, gravity=gravity)).base
    expected = set()
    for j in range(1, joints + 1):
        keys = ["Izz", *(["mx", "my"] if j > 1 or not upright else [])]
        if j > parallel:
            keys = ["Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my"]
        expected |= {f"{key}{j}" for key in keys}
    assert set(base.kept) == expected


def test_the_printed_recursion_needs_tensor_signs():
    """With products read as +∫xy dm, as the paper's (7) says, recursion (15) would be wrong (erratum PA-4)."""
    rows = [DHRow(0, 0, 0.3, 0), DHRow(0.7, 0.2, 0.1, 0), DHRow(-1.1, 0.3, 0.25, 0)]
    joints, lengths = dh_joints(rows, modified=True, parents=range(3), names="abc")
    robot = Robot(name="odd", source="test", joints=joints, lengths=lengths, gravity=np.array([3.0, 4.0, -8.0]))
    base = armid.Model(robot).base
    names, matrix = closed_form_grouping(robot)
    flip = np.diag([-1.0 if name[1:3] in ("xy", "xz", "yz") else 1.0 for name in names])
    kept = [names.index(name) for name in base.kept]
    right, wrong = matrix[kept], (flip @ matrix @ flip)[kept]
    assert np.abs(right - base.matrix).max() < 1e-9
    assert np.abs(wrong - base.matrix).max() > 0.1


def test_three_classes():
    """Every unknown is identifiable alone, in combination, or not at all; the classes follow from the tables."""
    base, groups = groups_of(armid.load_robot("pa10", simplify="none"))
    assert sorted((*base.alone, *base.combined, *base.no_effect)) == sorted(base.names)
    single = {next(iter(group)) for group in groups if len(group) == 1}
    shared = {name for group in groups if len(group) > 1 for name in group}
    assert set(base.alone) >= single - shared
    assert not set(base.alone) & shared
    assert {"m2", "m1", "Ixx1"} <= set(base.no_effect)


def test_grouped_and_full_model_agree():
    """On motion the grouping was not made from, every library robot's torque is the same."""
    for name in armid.library_names():
        for links in (2, None):
            assert armid.Model(armid.load_robot(name, links=links)).base.disagreement(seed=11) < 1e-11


def test_unit_gear_ratio_hides_rotors():
    """With k_r = 1 the rotors vanish into the links: PA-10 17 instead of 21, Powerball 19 instead of 23."""
    for name, count in (("pa10", 17), ("powerball", 19)):
        robot = armid.load_robot(name)
        drives = tuple(replace(drive, gear_ratio=1.0) for drive in robot.drives)
        assert armid.Model(replace(robot, drives=drives)).base.count == count


def test_known_parameters_are_not_unknown():
    """Known values leave the unknowns and act in the torque."""
    robot = replace(armid.load_robot("er16"), known={"Im3": 1e-4, "fv1": 3.0})
    model = armid.Model(robot)
    assert model.base.count == 15
    assert not {"Im3", "fv1"} & set(model.unknown)
    still = np.zeros((1, 3))
    assert model.inverse_dynamics(still, np.ones((1, 3)), still, {})[0, 0] == pytest.approx(3.0, abs=1e-9)


def test_spring_hidden_by_gravity_is_said():
    """With a1 = 0 the spring's stiffness cannot be told from link-2 gravity (erratum SW-10): 23 instead of 24."""
    robot = armid.load_robot("ir361")
    assert len(armid.Model(robot).base.kept) == 24
    base = armid.Model(robot.with_lengths({"a1": 0.0})).base
    assert len(base.kept) == 23
    assert "ks1" in base.combined


def test_prismatic_arm():
    """A Cartesian gantry shows its three masses, each on its own, and nothing else."""
    rows = [DHRow(0, 0, 0, 0, True), DHRow(np.pi / 2, 0, 0, np.pi / 2, True), DHRow(np.pi / 2, 0, 0, 0, True)]
    joints, lengths = dh_joints(rows, modified=True, parents=range(3), names="xyz")
    _, groups = groups_of(Robot(name="gantry", source="test", joints=joints, lengths=lengths))
    assert groups == [{"m1": 1.0}, {"m2": 1.0}, {"m3": 1.0}]


def test_rounded_angles_do_not_raise_the_rank(tmp_path):
    """A URDF with 1.5708 has the base of exact right angles, is said to be rounded, and keeps the file's torque."""
    links = "".join(f'<link name="l{i}"/>' for i in range(5))
    joint = (
        '<joint name="j{0}" type="revolute"><parent link="l{0}"/><child link="l{1}"/>'
        '<origin xyz="0 {2} 0.2" rpy="{3}"/><axis xyz="0 0 1"/></joint>'
    )
    angles = ["0 0 0", "1.5708 0 3.1416", "-1.5708 0 0", "1.5708 0 0"]
    text = "".join(joint.format(i, i + 1, 0.1 * i, angle) for i, angle in enumerate(angles))
    path = tmp_path / "rounded.urdf"
    path.write_text(f'<robot name="r">{links}{text}</robot>')
    with pytest.warns(armid.errors.RoundedAngleWarning, match="rounded"):
        robot = armid.load_robot(path)
    exact = armid.Model(robot).base
    raw = armid.Model(replace(robot, nominal_joints=None)).base
    assert exact.count < raw.count
    assert raw.weakest_kept < 1e-4
    assert exact.weakest_kept > 1e-2
    assert 1e-9 < exact.disagreement() < 1e-4


def test_real_arms(data):
    """UR10e 40 (58 with friction and offsets), xMate7p 48 (69), TX40 with its coupled wrist 61 (40 + 18 + 3)."""
    ur10e = armid.Model(armid.load_robot(data / "ur10e" / "ur10e.urdf")).base
    assert (ur10e.count, len(ur10e.kept)) == (40, 58)
    with pytest.warns(armid.errors.RoundedAngleWarning):
        xmate = armid.Model(armid.load_robot(data / "xmate7p" / "xmate7p.urdf")).base
    assert (xmate.count, len(xmate.kept)) == (48, 69)
    tx40 = armid.load_robot(data / "tx40" / "tx40.urdf")
    assert len(armid.Model(tx40).base.kept) == 58
    coupling = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    coupling[5, 4] = 32.0
    assert len(armid.Model(replace(tx40, coupling=coupling)).base.kept) == 61
