"""Where real robots and logs are found, and kernels as users have them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Each worker has a core of its own: threads of BLAS that wait for one another would take the other worker's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels elsewhere: code compiled in a process may round otherwise than the same code from the cache.

    Functions that were not inlined are there twice then, and the linker takes another one.
    """
    if not hasattr(session.config, "workerinput"):
        subprocess.run([sys.executable, "-m", "armid.run.warm"], check=True, capture_output=True)


@pytest.fixture
def data() -> Path:
    """Folder with real robots and logs; tests that need it are skipped where it is not named."""
    folder = os.environ.get("ARMID_DATA")
    if not folder:
        pytest.skip("needs real robots: set ARMID_DATA to the folder that holds them")
    return Path(folder)
