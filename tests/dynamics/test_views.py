"""The papers' own parameters."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import view_names
from armid.dynamics.base import random_motion
from armid.dynamics.views import FormulaError, linear_terms
from armid.errors import ArmidError
from armid.robot.geometry import DHRow, dh_joints
from armid.robot.robot import Robot


def torque_from(view, motion, values):
    """Torque computed from the view's entries alone: parameters recovered through the pseudo-inverse."""
    recovered = np.linalg.pinv(view.matrix) @ view.values(values)
    return view.model.inverse_dynamics(*motion, recovered)


@pytest.mark.parametrize("name", ["barycentric", "modified-newton-euler"])
@pytest.mark.parametrize("robot", ["rx60", "powerball", "kr15"])
def test_general_views_carry_the_dynamics(robot, name):
    """The ten entries per link determine the links' torque: the map is invertible."""
    model = armid.Model(armid.load_robot(robot, rotors=False, simplify="none"))
    rng = np.random.default_rng(0)
    values = np.zeros(len(model.names))
    values[: 10 * model.robot.n_joints] = rng.normal(size=10 * model.robot.n_joints)
    motion = random_motion(model.robot, 20, rng)
    view = armid.view(model, name)
    assert np.linalg.matrix_rank(view.matrix) == len(view.entries) == 10 * model.robot.n_joints
    expected = model.inverse_dynamics(*motion, values)
    assert np.allclose(torque_from(view, motion, values), expected, atol=1e-9 * np.abs(expected).max())


def test_barycentric_mass_is_the_mass_of_all_descendants():
    """Swevers et al.: the barycentric mass of a link is its own mass plus that of all descendants."""
    model = armid.Model(armid.load_robot("kr15"))
    view = armid.view(model, "barycentric")
    row = dict(zip(model.names, view.matrix[view.entries.index("m3")], strict=True))
    assert {name: value for name, value in row.items() if value} == {"m3": 1, "m4": 1, "m5": 1, "m6": 1}
    first = dict(zip(model.names, view.matrix[view.entries.index("mx2")], strict=True))
    assert {n: pytest.approx(v) for n, v in first.items() if v} == {
        "mx2": 1,
        "m3": 0.65,
        "m4": 0.65,
        "m5": 0.65,
        "m6": 0.65,
    }


def test_modified_newton_euler_moves_to_the_joint():
    """With standard DH the moments move from the far end of the link to its joint axis."""
    model = armid.Model(armid.load_robot("powerball", simplify="none"))
    view = armid.view(model, "modified-newton-euler")
    values = {"m2": 2.0, "mx2": 2.0 * -0.35}  # a point mass at the joint's axis: 0.35 m back along x2
    assert view.values(values)[[view.entries.index(f"{n}2") for n in ("m", "mx", "my", "mz", "Izz")]] == pytest.approx(
        [2.0, 0.0, 0.0, 0.0, -2.0 * 0.35**2], abs=1e-12
    )


def test_rx60_alpha_ranks():
    """The 16 columns have rank 13 under the paper's symmetry, alpha4 being alpha16 times a constant (erratum RX-7)."""
    view = armid.view(armid.Model(armid.load_robot("rx60")), "alpha")
    assert len(view.entries) == 16
    assert view.identifiable_combinations() == view.model.base.count == 13
    known = {"alpha4", "alpha15", "alpha16"}
    rest = [i for i, entry in enumerate(view.entries) if entry not in known]
    reduced = replace(view, entries=tuple(view.entries[i] for i in rest), matrix=view.matrix[rest])
    assert len(rest) == 13
    assert reduced.identifiable_combinations() == 11


def test_powerball_list_is_redundant():
    """The 29 published entries hold 19 identifiable combinations at k_r = 1, six of them single (PB-1, PB-2)."""
    view = armid.view(armid.Model(armid.load_robot("powerball")), "table-3")
    assert len(view.entries) == 29
    assert view.identifiable_combinations() == view.model.base.count == 19
    assert view.classes().count("alone") == 6


def test_er16_regrouping_is_ours():
    """Table 2's 15 link parameters, regrouped, are our base parameters."""
    model = armid.Model(armid.load_robot("er16", rotors=False))
    view = armid.view(model, "table-2")
    links = [i for i, entry in enumerate(view.entries) if not entry.startswith("f")]
    assert len(links) == 15
    assert set(view.classes()) == {"alone"}
    reduced = replace(view, entries=tuple(view.entries[i] for i in links), matrix=view.matrix[links])
    assert reduced.identifiable_combinations() == 15


def test_views_without_rotors_and_unknown_views():
    """Formulas that name rotors stay readable without them; unknown views are refused with the valid ones."""
    model = armid.Model(armid.load_robot("pa10", rotors=False))
    assert len(armid.view(model, "appendix").entries) == 21
    assert view_names(model.robot) == ("barycentric", "modified-newton-euler", "appendix")
    with pytest.raises(ArmidError, match="did you mean 'appendix'"):
        armid.view(model, "apendix")


def test_barycentric_is_for_revolute_joints():
    joints, lengths = dh_joints([DHRow(0, 0, 0, 0, True)], modified=True, parents=[0], names=["x"])
    with pytest.raises(ArmidError, match="revolute"):
        armid.view(armid.Model(Robot(name="slide", source="test", joints=joints, lengths=lengths)), "barycentric")


def test_formulas():
    """Sums, products, powers and brackets; anything else is refused."""
    terms = linear_terms("-Ixx1 + 2*a*(m1 - m2) + a**2*m1", {"a": 0.5})
    assert terms == {"Ixx1": -1.0, "m1": 1.25, "m2": -1.0}
    for bad in ("m1*m2", "m1 + 1", "sin(m1)", "m1 +", "b*m1", "m1**2", "__import__('os')"):
        with pytest.raises(FormulaError):
            linear_terms(bad, {"a": 1.0})
