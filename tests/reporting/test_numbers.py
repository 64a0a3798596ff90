"""Numbers on the page: digits worked out by hand."""

import numpy as np
import pytest

from armid.figures import compact, significant
from armid.reporting.numbers import joined_time, percent, plus_minus, short, spaced


@pytest.mark.parametrize(
    ("value", "half", "wanted"),
    [
        (1.2345, 0.042, "1.23 ± 0.04"),
        (24.8116, 0.182, "24.81 ± 0.18"),
        (-0.15616, 0.101, "−0.16 ± 0.10"),
        (3988.1, 89.0, "3990 ± 90"),
        (0.00049399, 8.8e-6, "(4.94 ± 0.09) × 10⁻⁴"),
        (2.0, 0.0, "2.00"),
    ],
)
def test_a_value_keeps_the_digits_that_its_interval_leaves(value, half, wanted):
    """One digit of the interval, two where it starts with a one."""
    assert plus_minus(value, half) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(12.345, "12.3"), (0.00999999, "0.0100"), (-2.0, "−2.00"), (123456.0, "123000"), (1.5e-7, "1.50 × 10⁻⁷"),
     (0.0, "0"), (float("nan"), "–"), (None, "–")],
)  # fmt: skip
def test_three_digits(value, wanted):
    """Three significant digits, a dash for nothing, a power where zeros would be many."""
    assert short(value) == wanted


def test_percent():
    """Fractions become percent; what other parts write is spaced alike."""
    assert [percent(v) for v in (0.0526, 0.00123, 0.0, 1.5)] == ["5.3 %", "0.12 %", "0 %", "150 %"]
    assert spaced("at most 10% of 4.9%") == "at most 10 % of 4.9 %"


def test_series_are_rounded_not_changed():
    """A linear picture loses a ten-thousandth of its size at most, a logarithmic one of each value."""
    values = np.random.default_rng(0).normal(size=1000) * 37.0
    assert np.abs(np.array(compact(values)) - values).max() <= 1e-4 * np.abs(values).max()
    tiny = np.geomspace(1e-9, 1.0, 50)
    assert np.allclose(significant(tiny), tiny, rtol=1e-3, atol=0.0)
    assert compact([1.0, float("nan")]) == [1.0, None]


def test_records_stand_one_after_the_other():
    """The second record starts one step after the end of the first."""
    time = joined_time(np.array([0, 0, 0, 1, 1]), np.array([5.0, 5.1, 5.2, 0.0, 0.1]))
    assert np.allclose(time, [0.0, 0.1, 0.2, 0.3, 0.4])
