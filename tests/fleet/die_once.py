"""Preloaded into workers by a test: the first that is started dies."""

import os
from pathlib import Path

try:
    Path(os.environ["ARMID_DIE_ONCE"]).touch(exist_ok=False)
except FileExistsError:
    pass
else:
    os._exit(9)
