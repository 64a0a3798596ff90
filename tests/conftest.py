"""Where real robots and logs are found."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data() -> Path:
    """Folder with real robots and logs; tests that need it are skipped where it is not named."""
    folder = os.environ.get("ARMID_DATA")
    if not folder:
        pytest.skip("needs real robots: set ARMID_DATA to the folder that holds them")
    return Path(folder)
