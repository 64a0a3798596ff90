"""The Python twin of the C header: one file that needs NumPy alone, vectorised over samples."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.escaping import comment
from armid.exporting.arm import IdentifiedArm
from armid.exporting.exporter import LIMIT, OBSERVED_S, Content, Job, Program, Proof, exporters
from armid.exporting.programs import Curve, check_python, limit_numbers, numbers_of
from armid.monitoring.detector import ContactLimits


@exporters.add("python")
class Python(Program):
    """A module that needs NumPy alone, run here."""

    title = "Python: one module that needs NumPy alone, vectorised over samples"

    def files(self, job: Job) -> dict[str, Content]:
        """One file."""
        return {f"{job.arm.identifier}_dynamics.py": Content(python_module(job.arm, job.banner, job.limits))}

    def prove(self, path: Path, job: Job, torque: Array) -> Proof:
        """Run here."""
        check_python(path.name, path.read_text("utf-8"), _asset())
        functions, motion = runpy.run_path(str(path)), job.motion
        observer = functions["Observer"]()
        found = {
            "torque": functions["inverse_dynamics"](*motion),
            "gravity": functions["gravity"](motion.q),
            "friction": functions["friction"](*motion),
            "springs": functions["springs"](motion.q),
            "mass matrix": functions["mass_matrix"](motion.q).reshape(len(motion.q), -1),
            "external torque": np.array([observer.step(*row, OBSERVED_S) for row in zip(*motion, strict=True)]),
        }
        if job.limits is not None:
            detector = functions["Detector"]()
            found[LIMIT] = np.array([detector.step(*row, OBSERVED_S)[1] for row in zip(*motion, strict=True)])
        return self.compared(path, f"NumPy {np.__version__}", found, job, torque)


def python_module(arm: IdentifiedArm, banner: list[str], limits: ContactLimits | None = None) -> bytes:
    """Text of the module; `banner` are sentences for its docstring, `limits` those of its detector."""
    numbers = numbers_of(arm)
    doc = "\n".join(banner)
    constants = [
        ("JOINTS", repr(tuple(arm.robot.joint_names)), ""),
        ("PARENT", repr([int(p) for p in numbers.parent]), "link that each joint hangs on, -1 for the base"),
        ("SLIDES", repr([bool(p) for p in numbers.prismatic]), ""),
        ("ROTATION", _array(numbers.rotation), "joint frame at zero in the parent's"),
        ("TRANSLATION", _array(numbers.translation), ""),
        ("GRAVITY", _array(numbers.gravity), ""),
        (
            "INERTIA",
            _array(numbers.inertia),
            "per link, in its joint's frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin",
        ),
        ("REFLECTED", _array(numbers.reflected), "inertia of the rotors that feel no link, in joint space"),
        (
            "ROTORS",
            _rows([(r.carrier, r.joint, r.ratio, r.inertia, r.axis) for r in numbers.rotors]),
            "rotors that feel the link they sit on: link, joint, gear ratio, inertia, axis",
        ),
        (
            "LINES",
            _rows(list(numbers.lines)),
            "linear friction: direction in joint space; viscous, Coulomb forwards; the same backwards; offset",
        ),
        ("LOAD", _array(numbers.load), "links whose torque is the load of load-dependent friction"),
        ("CURVES", _curves(numbers.curves), "friction laws: joint, torque forwards, backwards, at rest; offset"),
        ("LOSS", _array(numbers.loss), ""),
        ("WEIGHT", _array(numbers.weight), "links whose weight makes the load-proportional loss"),
        ("SPRINGS", _rows(list(numbers.springs)), "joint, a, b, phi, stiffness, stiffness times free length"),
        ("LINEAR", _rows(list(numbers.linear_springs)), "direction in joint space, stiffness, stiffness times rest"),
        ("TABLES", _rows(list(numbers.tables)), ""),
        ("STILL", _array(numbers.still), "speed below which a joint stands still"),
        ("SLOW", _array(numbers.slow), "speed below which its friction is not known"),
        ("DELAY", _array(numbers.delay), "by which torque lags motion"),
        ("LAG", _array(numbers.lag), "by which friction changes sides later than the motion"),
        (
            "LIMITS",
            "None" if limits is None else f"({', '.join(map(_array, limit_numbers(limits)))})",
            "of contacts: gain, time to forget, gate of a joint that moves, what is strange; then variance, scale, "
            "dead zone, slow speed, usual acceleration, inertia, and how friction changes from day to day",
        ),
    ]
    lines = [(f"# {comment}\n" if comment else "") + f"{name} = {text}" for name, text, comment in constants]
    return (f'"""{doc}\n"""\n\nimport numpy as np\n\n' + "\n".join(lines) + "\n" + _asset()).encode()


def _asset() -> str:
    return (resources.files("armid.exporting") / "assets" / "dynamics.py.txt").read_text("utf-8")


def _array(values: Array | None) -> str:
    return "None" if values is None else "np.array(" + _plain(values) + ")"


def _rows(rows: Sequence[Sequence[object]]) -> str:
    inner = "".join("    (" + ", ".join(_plain(entry) for entry in row) + "),\n" for row in rows)
    return f"(\n{inner})" if rows else "()"


def _curves(curves: Sequence[Curve]) -> str:
    rows = []
    for joint, law, up, down, offset in curves:
        back = "" if law.even else "-"
        forms = ("", up), (back, down), ("" if law.even else "0.0 * ", up)
        texts = ", ".join(f"lambda v, load: {sign}({law.numpy_text(c, 'load')})" for sign, c in forms)
        rows.append(f"    ({joint}, {texts}, {float(offset)!r}),  # {comment(law.name)}\n")
    return f"(\n{''.join(rows)})" if rows else "()"


def _plain(value: object) -> str:
    """A literal that reads back exactly."""
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            return "[\n" + "".join(f"    {_plain(row)},\n" for row in value) + "]"
        return "[" + ", ".join(repr(float(entry) + 0.0) for entry in value) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_plain(entry)}, " for entry in value) + ")"
    return repr(value)
