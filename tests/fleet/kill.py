"""A run of a fleet in a process of its own, to be killed by the tests."""

import sys
import time

from armid.fleet import engine
from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from armid.fleet.reduce import reduce_partition


def slow(fleet, item):
    """Reduce, and give the killer time."""
    time.sleep(0.3)
    return reduce_partition(fleet, item[1], item[0])


if __name__ == "__main__":
    engine._reduced = slow
    identify_fleet(load_fleet(sys.argv[1]), sys.argv[2], workers=int(sys.argv[3]))
