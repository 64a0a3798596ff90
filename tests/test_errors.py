"""Errors of armid travel from the processes they were raised in."""

import pickle

import pytest

from armid.errors import DescriptionError, MissingExtraError, UnknownNameError
from armid.excitation.trajectory import SamplingError


@pytest.mark.parametrize(
    "error",
    [
        DescriptionError("arm.yaml", "limits", "is missing"),
        UnknownNameError("check", "flor", ("floor", "torque")),
        MissingExtraError("several workers", "fleet"),
        SamplingError(10.0, 150.03),
    ],
)
def test_errors_can_be_sent(error):
    """Message and attributes arrive, whatever the constructor takes; otherwise the receiving process would fail."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
