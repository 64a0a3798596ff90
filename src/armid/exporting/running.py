"""Written programs are checked before they are compiled or run: they hold our own words and numbers, nothing else.

`exporting/assets/states.c` then gives up every right but reading and writing its pipes before it calls the header, on
systems that have a way to do so (seccomp); limits of time, memory and files hold on all but Windows.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from pathlib import Path

from armid.exporting.exporter import ProofError
from armid.torque.expression import FUNCTIONS

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_SIGNS = re.compile(r"[\w\s\"#&()*+,./:;<=>?!\[\]{}-]*", re.ASCII)
_C_WORDS = {"load", "weight", "rest", "f", "s", "t", "u", "v", "z", "pow", *FUNCTIONS}  # of parts written out
_LITERAL = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Load, ast.UnaryOp, ast.USub, ast.BinOp, ast.operator),
    *(ast.Lambda, ast.arguments, ast.arg, ast.Name),
)
_NAMES = {"np", "v", "load"}
MEMORY, FILES, CPU_S = 1 << 30, 1 << 26, 60  # [byte], [byte], [s] that a compiler or a program may take


def check_c(name: str, text: str, template: str, prefix: str) -> None:
    """Refuse a header that holds anything but words of its template, its own prefix and numbers.

    Raises:
        ProofError: there is more in it.
    """
    code, ours = (_COMMENT.sub(" ", part) for part in (text, template))
    words = set(_WORD.findall(code)) - set(_WORD.findall(ours)) - _C_WORDS
    strange = sorted(word for word in words if not word.lower().startswith(f"{prefix}_"))
    directives = {line.replace("@UP@", prefix.upper()) for line in ours.splitlines() if "#" in line}
    more = {line for line in code.splitlines() if "#" in line} - directives
    more = {line for line in more if not re.fullmatch(rf"#define {prefix.upper()}_JOINTS \d+", line)}
    if strange or more or not _SIGNS.fullmatch(code) or "\\" in text or "??" in text:
        raise _refused(name, next(iter((*strange, *more)), "a sign"))


def check_python(name: str, text: str, template: str) -> None:
    """Refuse a module that holds anything but a docstring, constants and the functions of its template.

    Raises:
        ProofError: there is more in it.
    """
    ours = ast.parse(f"import numpy as np\n{template}").body
    tree = ast.parse(text)
    after = len(tree.body) + 1 - len(ours)
    functions = [*tree.body[1:2], *tree.body[max(after, 2) :]]
    if ast.get_docstring(tree) is None or [ast.dump(node) for node in functions] != [ast.dump(node) for node in ours]:
        raise _refused(name, "other functions")
    for line in tree.body[2:after]:
        if not isinstance(line, ast.Assign) or not all(map(_harmless, ast.walk(line.value))):
            raise _refused(name, ast.unparse(line)[:60])


def _harmless(node: ast.AST) -> bool:
    """A number, a text, a list of them, a call of NumPy, or a formula of velocity and load."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.attr in ("array", "arctan", *FUNCTIONS)
    return isinstance(node, _LITERAL) and (not isinstance(node, ast.Name) or node.id in _NAMES)


def _refused(name: str, what: str) -> ProofError:
    return ProofError(f"{name}: was not kept and not run, because it holds what armid does not write ({what})")


def run_limited(command: list[str], folder: Path, given: bytes = b"", *, limit_s: float) -> bytes:
    """Standard output of a command that gets `given`, no variables but the path, and little time and memory.

    Raises:
        subprocess.SubprocessError, OSError: it failed.
    """
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "SDKROOT") if name in os.environ}
    done = subprocess.run(
        _limits() + command,
        input=given,
        capture_output=True,
        check=True,
        timeout=limit_s,
        cwd=folder,
        env=kept | {"LC_ALL": "C", "TMPDIR": str(folder), "TEMP": str(folder)},
    )
    return done.stdout


def _limits() -> list[str]:
    """A shell that lowers its limits and becomes the command; nothing where there is no such shell."""
    if not Path("/bin/sh").exists():
        return []
    lowered = f"ulimit -t {CPU_S}; ulimit -v {MEMORY >> 10}; ulimit -f {FILES >> 9}; ulimit -c 0"
    return ["/bin/sh", "-c", f'{{ {lowered}; }} 2>/dev/null; exec "$@"', "armid"]
