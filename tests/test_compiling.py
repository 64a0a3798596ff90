"""What is remembered of kernels does not change what they compute."""

import os
import platform
import subprocess
import sys

import pytest
from numba.extending import overload

from armid.compiling import njit


def _near(x):
    """The number itself where sums may be put in another order, else what rounding leaves of it."""
    return (x + 1e16) - 1e16


@overload(_near)
def _compiled_near(x):
    return _near


def test_code_of_other_options_is_not_taken():
    found = []
    for fast in (True, False, True, False):

        @njit(fastmath=fast)
        def call(x):
            return _near(x)

        found.append(call(0.3))
    assert found == [0.3, 0.0, 0.3, 0.0]


def test_cached_code_is_made_anew_when_what_it_takes_from_other_files_changes(tmp_path):
    kernel, part, number = (tmp_path / f"{name}.py" for name in ("kernel", "part", "number"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def found() -> str:
        """The kernel's result in a process of its own, and how often its code was found in the cache."""
        call = "from kernel import kernel; print(kernel(3), len(kernel.stats.cache_hits))"
        command = [sys.executable, "-B", "-c", call]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    kernel.write_text(
        "from armid.compiling import njit\nfrom part import times\nfrom number import ONE\n"
        "@njit(cache=True)\ndef kernel(x):\n    return times(x) + ONE\n"
    )
    part.write_text("from armid.compiling import njit_within\n@njit_within()\ndef times(x):\n    return 2 * x\n")
    number.write_text("ONE = 1\n")
    assert [found(), found()] == ["7 0", "7 1"]
    part.write_text(part.read_text().replace("2", "20"))
    assert [found(), found()] == ["61 0", "61 1"]
    number.write_text("ONE = 2\n")
    assert [found(), found()] == ["62 0", "62 1"]


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="LLVM on this machine makes no code for Intel's processors"
)
def test_vectors_are_as_wide_as_those_of_the_processor():
    """512 bits, where the processor's code is taken to be better with half of that; nothing of it is run here."""
    program = (
        "import sys; from armid.compiling import njit\n"
        "@njit()\ndef kernel(x, y):\n    for i in range(len(x)):\n        y[i] += 2.0 * x[i]\n"
        "kernel.compile('void(float64[::1], float64[::1])')\n"
        "print('zmm' in next(iter(kernel.inspect_asm().values())))"
    )
    processor = {"NUMBA_CPU_NAME": "icelake-server", "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx512f,+avx512vl,+avx512dq"}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, env=os.environ | processor, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
