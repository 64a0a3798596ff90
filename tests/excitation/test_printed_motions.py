"""Published trajectories against the numbers known of them."""

import numpy as np
import pytest

import armid
from armid.errors import UnknownNameError
from armid.excitation.profiles import Er16Reading, er16_beta_1, er16_beta_2, er16_readings, rx60_verification
from armid.files import plain
from tests.excitation.differences import assert_exact_derivatives


def test_rx60_verification():
    """(7)-(9) written out, with r going linearly from -1.2 to -0.85 in 20 s."""
    one = rx60_verification()
    assert one.duration == 20
    t = np.linspace(0, 20, 101)
    r, p = -1.2 + 0.35 * t / 20, np.pi * t / 4
    expected = np.stack([0.6 * r * np.sin(p), -0.6 * r * np.cos(p), np.cos(p)], axis=1)
    assert np.allclose(one.at(t).q, expected, atol=1e-14)
    assert_exact_derivatives(one)


def test_er16_beta_1_under_the_assumed_order():
    """Ranges and greatest speeds as worked out elsewhere (facts, T = 20 s), in whole degrees."""
    found = er16_beta_1().extrema()
    assert np.round(np.rad2deg(np.stack([found.lower, found.upper], 1))).tolist() == [[-87, 121], [-48, 50], [-96, 102]]
    assert np.round(np.rad2deg(found.velocity)).tolist() == [132, 48, 115]


@pytest.mark.parametrize(
    ("order", "condition"),
    [("q0,a,b", 63), ("a,b,q0", 144), ("q0,(a,b)", 91), ("(a,b),q0", 75), ("q0,b,a", 60), ("a,q0,b", 198)],
)
def test_condition_of_each_reading(order, condition):
    """The condition number of the 21 columns tells the orders apart; worked out elsewhere on another grid."""
    model = armid.Model(armid.load_robot("er16").without_rotors())
    for lost in ("q0", "first"):
        _, motion = er16_beta_1(Er16Reading(order, lost)).sample(20)
        columns = model.regressor(*motion, model.base.kept).reshape(-1, 21)
        assert np.linalg.cond(columns) == pytest.approx(condition, rel=0.05)


def test_readings_are_all_different_and_start_with_velocity():
    """ER-1, ER-2, ER-14: nine readings of the rows, two periods, none at rest at the start."""
    readings = er16_readings()
    assert readings[0] == Er16Reading()
    assert len({str(plain(er16_beta_1(reading))) for reading in readings}) == len(readings) == 18
    for reading in readings:
        for one in (er16_beta_1(reading), er16_beta_2(reading)):
            assert one.duration == pytest.approx(reading.period_s)
            assert np.abs(one.at([0.0]).qd).max() > 0.05
            assert one.joints == 3


def test_reading_of_single_numbers():
    """Where the first and last numbers of row 1 go in each order."""
    places = {
        "q0,a,b": (-0.3857, -0.1911, 0.3359),
        "a,b,q0": (0.0730, -0.3857, -0.5705),
        "q0,(a,b)": (-0.3857, -0.1911, -0.2842),
        "(a,b),q0": (0.0730, -0.3857, -0.1911),
        "q0,b,a": (-0.3857, 0.3359, -0.1911),
        "a,q0,b": (-0.5705, -0.3857, 0.3359),
    }
    for order, wanted in places.items():
        one = er16_beta_1(Er16Reading(order))
        assert (one.offset[0], one.sine[0, 0], one.cosine[0, 0]) == wanted
        assert one.offset[2] == 0.0
        assert np.all(one.sine[2] != 0.0)
    assert er16_beta_1(Er16Reading("a,b,q0", "first")).sine[2, 0] == 0.0
    assert er16_beta_2().harmonics == (1, 2, 3)
    assert er16_beta_2().cosine[0].tolist() == [-0.0423, 0.6066, -0.9719]


def test_unknown_readings():
    with pytest.raises(UnknownNameError, match="order 'b,a' is not known"):
        er16_beta_1(Er16Reading("b,a"))
    with pytest.raises(UnknownNameError, match="lost number"):
        er16_beta_1(Er16Reading(lost="last"))
