"""What is remembered while kernels are compiled does not change what they compute."""

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
