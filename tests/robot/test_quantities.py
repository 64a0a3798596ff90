"""Numbers as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armid.robot.quantities import number
from armid.robot.urdf import rounded_angle


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (3, 3.0),
        (0.3, 0.3),
        ("0.3", 0.3),
        ("-1e-3", -0.001),
        ("pi", math.pi),
        ("-pi/2", -math.pi / 2),
        ("+pi/4", math.pi / 4),
        ("3*pi/4", 3 * math.pi / 4),
        ("-3*pi/4", -3 * math.pi / 4),
        ("2pi", 2 * math.pi),
        ("0.5 * pi", 0.5 * math.pi),
        ("90 deg", math.pi / 2),
        ("-12.5deg", math.radians(-12.5)),
        ("1e1 deg", math.radians(10)),
    ],
)
def test_reads_what_people_write(written, value):
    """Numbers, multiples of pi and degrees are exact to the last bit."""
    assert number(written) == value


@pytest.mark.parametrize(
    "written",
    [True, None, [], {}, "", "pie", "pi/", "pi/0", "90 degrees", "0x10", "__import__('os')", "1,5", "two"],
)
def test_refuses_what_is_no_number(written):
    """Everything else is a ValueError, never another exception: callers turn it into an error about the field."""
    with pytest.raises(ValueError, match="is not"):
        number(written)


@pytest.mark.parametrize(
    "written", [math.nan, math.inf, "nan", "-inf", "1e999", "1e999 deg", pytest.param(10**400, id="huge")]
)
def test_refuses_what_is_not_finite(written):
    """Not-a-number, infinities and numbers too large for float64 are refused."""
    with pytest.raises(ValueError, match="is not finite"):
        number(written)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1.57", math.pi / 2),
        ("1.571", math.pi / 2),
        ("1.5708", math.pi / 2),
        ("1.5707", math.pi / 2),  # truncated
        ("-1.570796", -math.pi / 2),
        ("3.14", math.pi),
        ("3.1416", math.pi),
        ("0.7854", math.pi / 4),
        ("-0.5236", -math.pi / 6),
        ("2.0944", 2 * math.pi / 3),
    ],
)
def test_rounded_angle_is_recognised(text, meant):
    """Right angles to two decimals and multiples of 15 degrees to four stand for the exact angle."""
    assert rounded_angle(text) == pytest.approx(meant, abs=1e-15)


@pytest.mark.parametrize(
    "text", ["0", "0.0", "0.0000", "1", "1.5", "1.6", "0.785", "0.52", "1.58", "0.7853981633974483"]
)
def test_other_angles_are_left_alone(text):
    """Zero, round numbers, exact angles and angles to too few digits are nobody's rounding."""
    assert rounded_angle(text) is None


@given(st.integers(-24, 24).filter(bool), st.integers(4, 14))
def test_every_rounding_of_a_multiple_of_15_degrees_is_recognised(multiple, digits):
    """Rounding to four or more digits is undone, and what comes back is nearer than the rounding was."""
    exact = multiple * math.pi / 12
    text = f"{exact:.{digits}f}"
    found = rounded_angle(text)
    if found is None:  # only possible if the text states the exact value
        assert float(text) == pytest.approx(exact, abs=1e-14)
    else:
        assert found == pytest.approx(exact, abs=1e-14)
