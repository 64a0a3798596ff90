"""C99: one header, no allocation, nothing but sin, cos, tanh, exp and log from the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.escaping import comment
from armid.exporting.arm import IdentifiedArm
from armid.exporting.exporter import LIMIT, TIGHT, Content, Job, Program, Proof, ProofError, exporters
from armid.exporting.programs import Curve, Numbers, check_c, limit_numbers, numbers_of, run_limited
from armid.monitoring.detector import ContactLimits

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")


@exporters.add("c")
class C(Program):
    """A header for C and C++, compiled and run."""

    title = "C99: one header without allocation, for controllers"

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        return {f"{job.arm.identifier}_dynamics.h": Content(c_header(job.arm, job.banner, job.limits))}

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Compiled without a single warning and run in a process of its own."""
        program = compiler()
        if program is None:
            note = "not proved: there is no C compiler; install one (or name it with CC) and export again"
            return Proof(path.name, None, None, 0, TIGHT, note)
        with tempfile.TemporaryDirectory(prefix="armid-export-") as folder:
            binary = compile_c(program, path, job.arm, Path(folder))
            states = np.ascontiguousarray(np.hstack(list(job.motion))).astype("<f8")
            try:
                said = run_limited([str(binary)], Path(folder), states.tobytes(), limit_s=60.0)
            except (subprocess.SubprocessError, OSError) as error:
                raise ProofError(f"{path.name}: was not kept, because the compiled program failed ({error})") from None
        n = job.arm.robot.n_joints
        out = np.frombuffer(said, dtype="<f8").reshape(len(states), -1)
        names = ("torque", "gravity", "friction", "springs")
        found = {name: out[:, k * n : (k + 1) * n] for k, name in enumerate(names)}
        mass, external, limit = 4 * n, 4 * n + n * n, 7 * n + n * n
        found |= {"mass matrix": out[:, mass:external], "external torque": out[:, external : external + n]}
        found |= {LIMIT: out[:, limit:]} if job.limits is not None else {}
        return self.compared(path, f"{Path(program).name} {' '.join(FLAGS)}", found, job, torque)


def c_header(arm: IdentifiedArm, banner: list[str], limits: ContactLimits | None = None) -> bytes:
    """Text of the header; `banner` are sentences for its first comment, `limits` those of its detector."""
    numbers = numbers_of(arm)
    declared, friction = _friction(numbers)
    parts = {
        "BANNER": "\n".join(f" * {line}".rstrip() for line in banner),
        "TABLES": _tables(numbers) + _limits(limits),
        "DECLARED": declared,
        "FRICTION": friction,
        "SPRINGS": _springs(numbers),
        "COUPLED": str(len(numbers.rotors)),
        "N": str(arm.robot.n_joints),
        "UP": arm.identifier.upper(),
        "X": arm.identifier,
    }
    used = set(re.findall(r"@X@_(\w+)_\(", friction + parts["SPRINGS"]))
    used |= set() if limits is None else {"detector", "root"}
    used |= {name for name, there in (("coupled", numbers.rotors), ("reflected", numbers.reflected.any())) if there}
    kept = re.compile(r"@IF (\w+)@\n(.*?)@END@\n", re.DOTALL)  # functions in between are written where they are used
    text = kept.sub(lambda found: found[2] if found[1] in used else "", _asset("dynamics.h"))
    for name, words in parts.items():
        text = text.replace(f"@{name}@", words)
    return text.encode()


def _asset(name: str) -> str:
    """A fixed text; ``@X@`` is the arm's name, ``@N@`` its number of joints."""
    return (resources.files("armid.exporting") / "assets" / name).read_text("utf-8")


def _number(value: float) -> str:
    text = repr(float(value) + 0.0)
    return text if any(mark in text for mark in ".en") else f"{text}.0"


def _list(values: Iterable[float]) -> str:
    return "{" + ", ".join(_number(value) for value in values) + "}"


def _array(name: str, rows: Array) -> str:
    """A constant array, one row per line."""
    rows = np.atleast_2d(rows)
    body = ",\n".join("    " + ", ".join(_number(value) for value in row) for row in rows)
    return f"static const double @X@_{name}_[{rows.size}] = {{\n{body}\n}};\n"


def _tables(numbers: Numbers) -> str:
    places = np.hstack([numbers.rotation.reshape(-1, 9), numbers.translation])
    text = [
        f"static const int @X@_parent_[@N@] = {{{', '.join(str(int(p)) for p in numbers.parent)}}};\n",
        f"static const int @X@_slides_[@N@] = {{{', '.join(str(int(p)) for p in numbers.prismatic)}}};\n",
        "/* per joint: rotation by rows and translation of its frame at zero in its parent's */\n",
        _array("place", places),
        "/* per link, in its joint's frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin */\n",
        _array("inertia", numbers.inertia),
        f"static const double @X@_gravity_[3] = {_list(numbers.gravity)};\n",
        f"static const double @X@_weightless_[3] = {_list(np.zeros(3))};\n",
    ]
    text += [_array(name, getattr(numbers, name)) for name in ("still", "slow", "delay", "lag")]
    if numbers.rotors:
        rows = [[r.carrier, r.joint, r.ratio, r.ratio * r.inertia, *r.axis] for r in numbers.rotors]
        text += ["/* rotors that feel the link they sit on: link, joint, gear ratio, that times inertia, axis */\n"]
        text.append(_array("coupled", np.array(rows)))
    if numbers.reflected.any():
        text += ["/* inertia of the rotors that feel no link, in joint space */\n", _array("rotor", numbers.reflected)]
    if numbers.load is not None:
        text += ["/* links whose torque is the load of load-dependent friction */\n", _array("load", numbers.load)]
    if numbers.weight is not None:
        text += ["/* links whose weight makes the load-proportional loss */\n", _array("weight", numbers.weight)]
    for k, (_, position, torque) in enumerate(numbers.tables):
        text += [_array(f"table_q{k}", position), _array(f"table_tau{k}", torque)]
    return "".join(text)


def _limits(limits: ContactLimits | None) -> str:
    if limits is None:
        return ""
    names = ("gain", "variance", "scale", "level", "slower", "faster", "steep", "usual", "coupling", "changing")
    arrays = zip(names, limit_numbers(limits), strict=True)
    return "/* limits of contacts */\n" + "".join(_array(name, values) for name, values in arrays)


def _friction(numbers: Numbers) -> tuple[str, str]:
    """Declarations and body of the friction function, joint by joint, written out."""
    lines: list[str] = []
    if numbers.load is not None:
        lines.append("    @X@_newton_euler_(@X@_load_, @X@_gravity_, q, qd, qdd, 0, load);\n")
    if numbers.weight is not None:
        lines.append("    @X@_newton_euler_(@X@_weight_, @X@_gravity_, q, rest, rest, 0, weight);\n")
    for line in numbers.lines:
        moved = [(j, w) for j, w in enumerate(line.weight) if w != 0.0]
        u = " + ".join(f"qd[{j}]" if w == 1.0 else f"{_number(w)} * qd[{j}]" for j, w in moved)
        up = f"{_number(line.viscous_up)} * u + {_number(line.coulomb_up)}"
        down = f"{_number(line.viscous_down)} * u - {_number(line.coulomb_down)}"
        lines.append(f"    u = {u};\n")
        lines.append(f"    f = (u > 0.0 ? {up} : u < 0.0 ? {down} : 0.0) + {_number(line.offset)};\n")
        lines += [f"    tau[{j}] += {'f' if w == 1.0 else f'{_number(w)} * f'};\n" for j, w in moved]
    for curve in numbers.curves:
        lines += _curve(curve)
    if numbers.loss is not None:
        for joint, (slope, offset) in enumerate(numbers.loss):
            lines.append(f"    tau[{joint}] += {_number(slope)} * weight[{joint}] + {_number(offset)};\n")
    body = "".join(lines)
    names = [("double", "u", "u ="), ("double", "f", " f ="), ("double", "load[@N@]", "load["), ("double", "v", " v =")]
    declared = [f"{kind} {name}" for kind, name, mark in names if mark in body]
    if numbers.weight is not None:
        declared += ["double weight[@N@]", "static const double rest[@N@] = {0.0}"]
    return "".join(f"    {text};\n" for text in declared), body


def _curve(curve: Curve) -> list[str]:
    """A law written out for both directions; `v` is the speed."""
    load = f"@X@_size_(load[{curve.joint}])"
    texts = (curve.law.c_text(values, load) for values in (curve.up, curve.down))
    up, down = (re.sub(r"\bsqrt\(", "@X@_root_(", text) for text in texts)  # not the library's
    at, back = f"qd[{curve.joint}]", "" if curve.law.even else "-"
    speed = [f"    v = @X@_size_({at});\n"] if re.search(r"\bv\b", f"{up} {down}") else []
    once, up, down = _once(up, down)
    rest = up if curve.law.even else "0.0"
    text = f"    f = {at} > 0.0 ? {up} : {at} < 0.0 ? {back}({down}) : {rest};  /* {comment(curve.law.name)} */\n"
    return [*speed, *once, text, f"    tau[{curve.joint}] += f + {_number(curve.offset)};\n"]


def _once(up: str, down: str) -> tuple[list[str], str, str]:
    """A logarithm that a law has in each of its terms, computed once for both directions."""
    start, depth, end = up.find("log("), 0, 0
    for end in range(start + 3, len(up) if start >= 0 else 0):
        depth += {"(": 1, ")": -1}.get(up[end], 0)
        if depth == 0:
            break
    term = up[start : end + 1]
    if start < 0 or up.count(term) < 2 or "log(" in f"{up} {down}".replace(term, ""):
        return [], up, down
    return [f"    u = {term};\n"], up.replace(term, "u"), down.replace(term, "u")


def _springs(numbers: Numbers) -> str:
    lines: list[str] = []
    for joint, a, b, phi, stiffness, force in numbers.springs:
        lever = f"{_number(a * b)} * sin(q[{joint}] - {_number(phi)})"
        length = f"@X@_root_({_number(a * a + b * b)} - {_number(2.0 * a * b)} * cos(q[{joint}] - {_number(phi)}))"
        lines.append(f"    tau[{joint}] += {lever} * ({_number(stiffness)} - {_number(force)} / {length});\n")
    for ratios, stiffness, force in numbers.linear_springs:
        along = " + ".join(f"{_number(ratios[j])} * q[{j}]" for j in np.flatnonzero(ratios))
        torque = f"({_number(stiffness)} * ({along}) - {_number(force)})"
        lines += [f"    tau[{j}] += {_number(ratios[j])} * {torque};\n" for j in np.flatnonzero(ratios)]
    for k, (joint, position, _) in enumerate(numbers.tables):
        lines.append(
            f"    tau[{joint}] += @X@_table_(q[{joint}], {len(position)}, @X@_table_q{k}_, @X@_table_tau{k}_);\n"
        )
    return "".join(lines) or "    (void)q;\n"


def compiler() -> str | None:
    """The system's C compiler, or the one that CC names."""
    return next(
        (found for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (found := shutil.which(name))), None
    )


def compile_c(program: str, header: Path, arm: IdentifiedArm, folder: Path, main: str = "") -> Path:
    """Compile a program (text) around the checked header, by default the one that writes the torques of states."""
    check_c(header.name, header.read_text("utf-8"), _asset("dynamics.h"), arm.identifier)
    source, binary = folder / "main.c", folder / "main"
    text = main or _asset("states.c")
    for mark, word in (("@X@", arm.identifier), ("@N@", str(arm.robot.n_joints)), ("@UP@", arm.identifier.upper())):
        text = text.replace(mark, word)
    shutil.copy(header, folder / "arm.h")
    source.write_text(text)
    command = [program, *FLAGS, str(source), "-o", str(binary), "-lm"]
    try:
        run_limited(command, folder, limit_s=120.0)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        first = next((line for line in said if "error" in line), said[0] if said else str(error))
        raise ProofError(f"{header.name}: was not kept, because {Path(program).name} refuses it ({first})") from None
    except (subprocess.TimeoutExpired, OSError) as error:
        raise ProofError(f"{header.name}: was not kept, because the C compiler failed ({error})") from None
    return binary
