"""Other seconds of a file are other data."""

from types import SimpleNamespace

import pytest

from armid.validation.validating import _apart


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"seconds": [0, 30]}, {"seconds": [30, None]}, True),
        ({"seconds": [0, 30]}, {"seconds": [29, 60]}, False),
        ({"rows": [1, 500]}, {"rows": [501, 900]}, True),
        ({"rows": [1, 500]}, {}, False),
        ({"rows": [1, 500]}, {"seconds": [30, 60]}, False),
        ({}, {}, False),
    ],
)
def test_apart(one, other, apart):
    """Only where both recipes say which rows or seconds they take, and these do not meet."""
    assert _apart(SimpleNamespace(history={"data": [one]}), SimpleNamespace(history=other)) is apart
