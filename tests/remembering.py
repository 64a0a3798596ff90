"""Pages and examples in less time: what several ask for is computed once, and long recordings are shorter."""

import re
import sys

import pytest

import armid
from armid.estimation.estimator import fingerprint
from armid.robot.load import robot_digest
from armid.signals.dataset import Dataset

HOW = ("progress", "workers", "keep_on_interrupt")  # options that do not change a result
#: What makes an example long: numbers above these are replaced by them, except in the long proofs.
SHORT = {"periods": 3, "repetitions": 1, "points": 8, "robots": 3, "days": 2, "seconds": 1}


def shorter(code):
    """An example with a shorter experiment."""

    def less(found):
        return f"{found[1]}{found[2]}{min(float(found[3]), SHORT[found[1]]):g}"

    return re.sub(rf"\b({'|'.join(SHORT)})([ =])(\d+(?:\.\d+)?)", less, code)


@pytest.fixture(scope="module", autouse=True)
def remembered():
    """The same design, the same fit of the same data."""
    patch = pytest.MonkeyPatch()
    for function in (armid.design, armid.identify):
        kept = remembering(function)
        for module in [m for name, m in sys.modules.items() if name.partition(".")[0] == "armid"]:
            for name in [name for name, value in vars(module).items() if value is function]:
                patch.setattr(module, name, kept)
    yield
    patch.undo()


def remembering(function):
    """The function with its results kept by what it was given; what only tells of progress makes no difference."""
    results = {}

    def kept(robot, subject, **options):
        data = subject if isinstance(subject, list | tuple) else [subject]
        what = [fingerprint(one) if isinstance(one, Dataset) else repr(one) for one in data]
        given = [(name, repr(value)) for name, value in sorted(options.items()) if name not in HOW]
        key = (robot_digest(robot), *what, *given)
        if key not in results or " at 0x" in repr(key):
            results[key] = function(robot, subject, **options)
        return results[key]

    return kept
