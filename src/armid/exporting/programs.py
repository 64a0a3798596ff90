"""For programs that armid writes: an arm as plain numbers, and checks before a program is compiled or run.

Written programs hold our own words and numbers, nothing else. `exporting/assets/states.c` then gives up every right but
reading and writing its pipes before it calls the header, on systems that have a way to do so (seccomp); limits of time,
memory and files hold on all but Windows.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from armid.arrays import Array
from armid.dynamics.parameters import FRICTION, CoupledRotor, Local, frame_changes, tree_of
from armid.estimation.fit import STANDSTILL
from armid.exporting.arm import IdentifiedArm
from armid.exporting.exporter import ProofError
from armid.monitoring.detector import OPEN, ContactLimits
from armid.monitoring.observer import FADE_S, STRANGE
from armid.torque.expression import FUNCTIONS
from armid.torque.friction.law import FrictionLaw


class Rotor(NamedTuple):
    """A rotor that feels the link it sits on; `axis` in that link's joint frame."""

    carrier: int
    joint: int
    ratio: float
    inertia: float
    axis: Array


class Line(NamedTuple):
    """Linear friction along u = weight . q: viscous and Coulomb friction for each direction, and an offset."""

    weight: Array
    viscous_up: float
    coulomb_up: float
    viscous_down: float
    coulomb_down: float
    offset: float


class Curve(NamedTuple):
    """Friction of a joint by a law: its coefficients forwards and backwards, and an offset."""

    joint: int
    law: FrictionLaw
    up: Mapping[str, float]
    down: Mapping[str, float]
    offset: float


@dataclass(frozen=True, eq=False)
class Numbers:
    """Everything that makes the torque.

    Attributes:
        parent: (n,) link that each joint hangs on, -1 for the base.
        prismatic: (n,) bool.
        rotation, translation: joint frame at zero in the parent's joint frame, (n, 3, 3) and (n, 3).
        gravity: (3,) [m/s^2].
        inertia: (n, 10) in joint frames.
        reflected: (n, n) inertia of rotors that feel no link [kg m^2].
        rotors: rotors that do.
        lines: linear friction.
        load: (n, 10) links whose torque is the load of load terms, or None.
        curves: friction laws, of the fit's terms and known beforehand.
        loss: (n, 2) slope and offset of load-proportional loss, or None.
        weight: (n, 10) links whose gravity torque it is proportional to, or None.
        springs: joint, a, b, phi, ks, kl.
        linear_springs: direction in joint space (n,), ks, kl.
        tables: joint, positions and torques of counterbalances.
        still, slow: speeds below which a joint stands still, and below which its friction is not known [rad/s].
        delay: by which torque lags motion [s].
        lag: by which friction changes sides later than the motion [s].
    """

    parent: Array
    prismatic: Array
    rotation: Array
    translation: Array
    gravity: Array
    inertia: Array
    reflected: Array
    rotors: tuple[Rotor, ...]
    lines: tuple[Line, ...]
    load: Array | None
    curves: tuple[Curve, ...]
    loss: Array | None
    weight: Array | None
    springs: tuple[tuple[int, float, float, float, float, float], ...]
    linear_springs: tuple[tuple[Array, float, float], ...]
    tables: tuple[tuple[int, Array, Array], ...]
    still: Array
    slow: Array
    delay: Array
    lag: Array


def numbers_of(arm: IdentifiedArm) -> Numbers:
    """Collect the numbers of an arm."""
    robot, tree = arm.robot, tree_of(arm.robot)
    loss, weight = (None, None) if arm.load_loss is None else arm.load_loss
    still = arm.fit.standstill[0]
    return Numbers(
        parent=tree.parent,
        prismatic=tree.prismatic,
        rotation=tree.rotation,
        translation=tree.translation,
        gravity=tree.gravity,
        inertia=_in_joint_frames(arm, arm.values),
        reflected=_reflected(arm),
        rotors=_rotors(arm),
        lines=_lines(arm),
        load=None if arm.load is None else _in_joint_frames(arm, arm.load),
        curves=curves_of(arm),
        loss=loss,
        weight=None if weight is None else _in_joint_frames(arm, weight),
        springs=tuple(
            (s.joint - 1, s.a, s.b, s.phi, arm.by_name[f"ks{i}"], arm.by_name[f"kl{i}"])
            for i, s in enumerate(robot.springs, start=1)
        ),
        linear_springs=tuple(
            (s.ratios, arm.by_name[f"ks{i}"], arm.by_name[f"kl{i}"])
            for i, s in enumerate(robot.linear_springs, start=len(robot.springs) + 1)
        ),
        tables=tuple((table.joint - 1, table.position, table.torque) for table in robot.counterbalances),
        still=still,
        slow=still / STANDSTILL,
        delay=arm.fit.delay_s,
        lag=np.zeros_like(still) if arm.fit.friction_lag_s is None else arm.fit.friction_lag_s,
    )


def limit_numbers(limits: ContactLimits) -> tuple[Array, ...]:
    """The limits of contacts: gain, time to forget, gate of a joint that moves and what is strange; then by joint."""
    speeds = (limits.slow_speed, limits.usual_speed, limits.steepness, limits.usual_acceleration)
    by_joint = (limits.variance, limits.scale, limits.level, *speeds, limits.inertia, limits.friction)
    return np.array([limits.gain, FADE_S, OPEN, STRANGE]), *by_joint


def _in_joint_frames(arm: IdentifiedArm, vector: Array) -> Array:
    links = vector[: 10 * arm.robot.n_joints].reshape(-1, 10)
    result: Array = np.einsum("nij,nj->ni", frame_changes(arm.robot), links)
    return result


def _reflected(arm: IdentifiedArm) -> Array:
    result = np.zeros((arm.robot.n_joints, arm.robot.n_joints))
    for parameter in arm.model.parameters:
        column = parameter.column
        if isinstance(column, Local) and column.kind == "acceleration":
            result += arm.by_name[parameter.name] * column.constants[0] * np.outer(column.weight, column.weight)
    return result


def _rotors(arm: IdentifiedArm) -> tuple[Rotor, ...]:
    result = []
    for parameter in arm.model.parameters:
        column = parameter.column
        if isinstance(column, CoupledRotor) and arm.by_name[parameter.name] != 0.0:
            axis = arm.robot.joints[column.carrier].link_frame[:3, :3] @ column.axis
            result.append(Rotor(column.carrier, column.joint, column.ratio, arm.by_name[parameter.name], axis))
    return tuple(result)


# What each kind of column adds to a Line: viscous up, Coulomb up, viscous down, Coulomb down, offset.
_LINE = {
    "velocity": (1.0, 0.0, 1.0, 0.0, 0.0),
    "sign": (0.0, 1.0, 0.0, 1.0, 0.0),
    "one": (0.0, 0.0, 0.0, 0.0, 1.0),
    "velocity_up": (1.0, 0.0, 0.0, 0.0, 0.0),
    "velocity_down": (0.0, 0.0, 1.0, 0.0, 0.0),
    "moving_up": (0.0, 1.0, 0.0, 0.0, 0.0),
    "moving_down": (0.0, 0.0, 0.0, 1.0, 0.0),
}


def _lines(arm: IdentifiedArm) -> tuple[Line, ...]:
    sums: dict[tuple[float, ...], Array] = {}
    for parameter in arm.model.parameters:
        column = parameter.column
        if parameter.kind == FRICTION and isinstance(column, Local):
            share = arm.by_name[parameter.name] * column.constants[0] * np.array(_LINE[column.kind])
            key = tuple(column.weight.tolist())
            sums[key] = sums.get(key, np.zeros(5)) + share
    return tuple(Line(np.array(weight), *values.tolist()) for weight, values in sums.items() if values.any())


def curves_of(arm: IdentifiedArm) -> tuple[Curve, ...]:
    """Friction laws of the fit's terms and those known beforehand."""
    result = []
    for term in arm.fit.terms:
        if term.formula.weighted:  # not a curve over velocity
            continue
        linear = (arm.coefficients[name] for name in term.names)
        values = dict(zip((*term.formula.columns, *term.formula.shapes), (*linear, *term.shapes), strict=True))
        result.append(Curve(term.joint, term.formula, values, values, 0.0))
    known = arm.fit.known_torque
    for joint, entry in enumerate(() if known is None else known.friction):
        if entry is not None:
            friction, coefficients = entry
            offset = float(coefficients["fo"]) if friction.offset else 0.0
            result.append(Curve(joint, friction.formula, *friction.by_direction(coefficients), offset))
    return tuple(result)


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
