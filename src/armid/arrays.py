"""Types of arrays."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


def read_only(*arrays: Array) -> tuple[Array, ...]:
    """Views that cannot be written: compiled loops are compiled once more for arrays of another kind, as from files."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
