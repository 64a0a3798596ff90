"""Folders that last for the whole run, so that fits are made once."""

import pytest


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Where small.urdf lies, from which the small arm is read."""
    return tmp_path_factory.mktemp("small")
