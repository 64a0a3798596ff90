"""Programs are checked before they are compiled or run, and a C program has no rights but its pipes."""

import subprocess
from importlib import resources

import numpy as np
import pytest

from armid.exporting import export
from armid.exporting.arm import arm_of
from armid.exporting.c import c_header, compile_c, compiler
from armid.exporting.exporter import ProofError
from armid.exporting.programs import check_c, check_python, run_limited
from armid.exporting.python import python_module
from tests.exporting.arms import rich_fit, small_fit

ASSETS = resources.files("armid.exporting") / "assets"
HEADER, MODULE = ((ASSETS / name).read_text("utf-8") for name in ("dynamics.h", "dynamics.py.txt"))
needs_cc = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def texts():
    """Header and module of an arm with everything."""
    arm = arm_of(rich_fit(), complete=True)
    return c_header(arm, ["banner"]).decode(), python_module(arm, ["banner"]).decode()


def test_our_own_texts_pass(texts):
    """An arm with friction laws, springs, tables, rotors and losses is let through."""
    check_c("arm.h", texts[0], HEADER, "kr15")
    check_python("arm.py", texts[1], MODULE)


@pytest.mark.parametrize(
    "more",
    [
        "static int x = (int)(long)system;",
        '#include "/etc/passwd"',
        "#define double int",
        "__attribute__((constructor)) static void go(void) {}",
        "/* a\\\n*/",
        "/* ??/ */",
        "static double kr15_a = nan;",
        "char kr15_b = 'x';",
        "/* \u202e */ int kr15_c @ 1;",
    ],
)
def test_c_with_anything_else_is_refused(texts, more):
    """Words, directives and signs that the template has not; line continuations even in comments."""
    with pytest.raises(ProofError, match="not kept and not run"):
        check_c("arm.h", texts[0] + more + "\n", HEADER, "kr15")


@pytest.mark.parametrize(
    "more",
    [
        "import os",
        "X = __import__('os')",
        "X = np.load('x', allow_pickle=True)",
        "X = [().__class__ for _ in 'a']",
        "X = (lambda v, load: v.real)",
        "print(1)",
        "def more():\n    pass",
    ],
)
def test_python_with_anything_else_is_refused(texts, more):
    """Before the functions, or after them."""
    first = texts[1].replace("import numpy as np\n", f"import numpy as np\n{more}\n", 1)
    for text in (first, f"{texts[1]}\n{more}\n", f"{more}\n{texts[1]}"):
        with pytest.raises(ProofError, match="not kept and not run"):
            check_python("arm.py", text, MODULE)


def test_a_text_that_fails_the_check_is_never_run(home, tmp_path, monkeypatch):
    """Code that comes into the texts in whatever way leaves no trace on the disk."""
    mark = tmp_path / "mark"
    c = f'\n#include <stdlib.h>\n__attribute__((constructor)) static void go(void) {{ system("touch {mark}"); }}\n'
    python = f"\nopen({str(mark)!r}, 'w')\n"
    for module, name, more in (("c", "c_header", c), ("python", "python_module", python)):
        true = {"c_header": c_header, "python_module": python_module}[name]
        monkeypatch.setattr(f"armid.exporting.{module}.{name}", lambda *a, t=true, m=more: t(*a) + m.encode())
        with pytest.raises(ProofError, match="not kept and not run"):
            export(small_fit(home), [module], tmp_path / module)
    assert not mark.exists()


@needs_cc
@pytest.mark.skipif(not hasattr(__import__("os"), "sched_getaffinity"), reason="only Linux has such a cage")
def test_the_compiled_header_can_open_nothing(tmp_path, monkeypatch, home):
    """Even a header that was let through ends its process when it asks for a file."""
    arm = arm_of(small_fit(home), complete=True)
    header = tmp_path / "bad.h"
    text = c_header(arm, ["banner"]).decode().replace("#include <math.h>", "#include <math.h>\n#include <unistd.h>")
    bad = text.replace("tau)\n{\n", f'tau)\n{{\n    if (access("{tmp_path}", 0) == 0) tau[0] = 0.0;\n')
    assert bad != text
    monkeypatch.setattr("armid.exporting.c.check_c", lambda *_: None)
    states = np.zeros((2, 12)).tobytes()
    for content, code in ((text, 0), (bad, -9)):
        header.write_text(content)
        binary = compile_c(compiler(), header, arm, tmp_path)
        if code == 0:
            assert len(run_limited([str(binary)], tmp_path, states, limit_s=60)) == 2 * 8 * (7 * 4 + 16)
            continue
        with pytest.raises(subprocess.CalledProcessError) as caught:
            run_limited([str(binary)], tmp_path, states, limit_s=60)
        assert caught.value.returncode == code


@needs_cc
def test_programs_get_no_secrets(tmp_path, monkeypatch):
    """Variables of the user's session do not reach what is run."""
    monkeypatch.setenv("TOKEN", "hush-hush")
    assert b"hush-hush" not in run_limited(["env"], tmp_path, limit_s=10)
