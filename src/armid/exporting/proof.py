"""Proof of a written file: another program reads it, and its torque is compared with the fit's on random states."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.errors import ArmidWarning
from armid.exporting.arm import Arm, ExportError
from armid.robot.load import load_robot

TOLERANCE, TIGHT = 1e-9, 1e-10  # of the range of torque; the second for programs
ROUND_OFF = 2e-14  # of the sum of absolute terms that cancel: 90 times the precision of a double
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")
_SMALLEST = 1e-3  # ranges of torque below this share of the largest count as that much


class ProofError(ExportError):
    """A written file does not give the fit's torque; nothing was kept of it."""


@dataclass(frozen=True)
class Proof:
    """The comparison of one file with the fit.

    Attributes:
        file: name of the file.
        against: program that read it; None if there was none.
        error: largest difference of torque over the range of that joint's torque; None if not proved.
        states: how many random states.
        tolerance: what would have been too much there: fixed, or more where large terms cancel (see `checked`).
        note: what was compared, or why not.
    """

    file: str
    against: str | None
    error: float | None
    states: int
    tolerance: float
    note: str

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.file,
            "against": self.against,
            "error": self.error,
            "states": self.states,
            "tolerance": self.tolerance,
            "note": self.note,
        }


def relative_error(found: Array, wanted: Array) -> float:
    """Largest difference over the range of each column; ranges below 1e-3 of the largest count as that much."""
    return float(_column_errors(found, wanted).max())


def _column_errors(found: Array, wanted: Array) -> Array:
    return np.where(np.isfinite(found).all(), np.abs(found - wanted).max(axis=0) / _ranges(wanted), np.inf)


def _ranges(wanted: Array) -> Array:
    span = np.ptp(wanted, axis=0)
    return np.maximum(span, max(_SMALLEST * float(span.max(initial=0.0)), 1e-12))


def checked(
    path: Path,
    against: str,
    pairs: dict[str, tuple[Array, Array]],
    tolerance: float,
    note: str,
    terms: Mapping[str, Array] | None = None,
) -> Proof:
    """A proof from what was found and wanted, by name; raises if it fails.

    A double holds 16 digits of each term of a sum. Where terms are much larger than what is left of them, as with
    parameters that the data hardly determine, two right programs differ by more: up to `ROUND_OFF` of the sum of the
    terms' sizes, which is allowed where it exceeds the tolerance.

    Args:
        path: the file.
        against: who read it.
        pairs: found and wanted (states, columns), by name.
        tolerance: largest difference, as a share of each column's range.
        note: what was compared.
        terms: by the same names, largest sum (columns,) of the absolute terms that make up each column.
    """
    largest, allowed = -1.0, tolerance
    for name, (found, wanted) in pairs.items():
        errors, limits = _column_errors(found, wanted), np.full(wanted.shape[1], tolerance)
        if terms is not None and name in terms:
            limits = np.maximum(limits, ROUND_OFF * terms[name] / _ranges(wanted))
        worst = int(np.argmax(errors / limits))
        if not errors[worst] <= limits[worst]:
            raise ProofError(
                f"{path.name}: was not kept, because {against} finds another {name} in it than the fit has (by "
                f"{errors[worst]:.2g} of its range, {limits[worst]:.2g} allowed); please report this"
            )
        at = int(np.argmax(errors))
        if errors[at] > largest:
            largest, allowed = float(errors[at]), float(limits[at])
    return Proof(path.name, against, largest, len(next(iter(pairs.values()))[0]), allowed, note)


def prove_urdf(path: Path, arm: Arm, motion: Motion, wanted: Array, terms: Mapping[str, Array]) -> Proof:
    """Links and `<dynamics>` of a URDF, through Pinocchio, or armid's own reader where it is not installed."""
    try:
        import pinocchio
    except ImportError:
        found = _by_own_reader(path, motion)
        note = "links, damping and friction; not proved by another program: install Pinocchio (pip install pin)"
        return checked(path, "armid's own URDF reader", {"torque": (found, wanted)}, TOLERANCE, note, terms)
    model = pinocchio.buildModelFromXML(path.read_text("utf-8"))
    model.gravity.linear = arm.robot.gravity
    data = model.createData()
    joints = [model.joints[model.getJointId(name)] for name in arm.robot.joint_names]
    damping, friction = (np.zeros(model.nv) + getattr(model, name) for name in ("damping", "friction"))
    found = np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        full_q, full_v, full_a = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for k, joint in enumerate(joints):
            turn = [np.cos(q[k]), np.sin(q[k])] if joint.nq == 2 else [q[k]]
            full_q[joint.idx_q : joint.idx_q + joint.nq] = turn
            full_v[joint.idx_v], full_a[joint.idx_v] = v[k], a[k]
        torque = pinocchio.rnea(model, data, full_q, full_v, full_a) + damping * full_v + friction * np.sign(full_v)
        found[row] = [torque[joint.idx_v] for joint in joints]
    against = f"Pinocchio {pinocchio.__version__}"
    return checked(path, against, {"torque": (found, wanted)}, TOLERANCE, "links, damping and Coulomb friction", terms)


def _by_own_reader(path: Path, motion: Motion) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmidWarning)
        robot = load_robot(path)
    model = Model(robot)
    inertia, friction = robot.nominal_inertia, robot.nominal_friction
    values = np.zeros(len(model.names))
    if inertia is None or friction is None:
        raise ProofError(f"{path.name}: was not kept, because it states no inertia; please report this")
    values[: inertia.size] = inertia.ravel()
    return model.inverse_dynamics(*motion, values) + friction[:, 0] * motion.qd + friction[:, 1] * np.sign(motion.qd)


def prove_yaml(path: Path, motion: Motion, wanted: Array, terms: Mapping[str, Array]) -> Proof:
    """The robot file, loaded by armid, with the values of its set ``identified``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmidWarning)
        robot = load_robot(path)
    model = Model(robot)
    rows = robot.published["identified"]["parameters"]
    found = model.inverse_dynamics(*motion, {row["name"]: row["value"] for row in rows})
    return checked(path, "armid load_robot", {"torque": (found, wanted)}, TOLERANCE, "all parameters of the set", terms)


def prove_python(path: Path, motion: Motion, wanted: dict[str, Array], terms: Mapping[str, Array]) -> Proof:
    """The Python module, run here."""
    functions = runpy.run_path(str(path))
    found = {
        "torque": functions["inverse_dynamics"](*motion),
        "gravity": functions["gravity"](motion.q),
        "friction": functions["friction"](*motion),
        "springs": functions["springs"](motion.q),
        "mass matrix": functions["mass_matrix"](motion.q).reshape(len(motion.q), -1),
    }
    pairs = {name: (found[name], wanted[name]) for name in found}
    return checked(path, f"NumPy {np.__version__}", pairs, TIGHT, _compared(wanted), terms)


def compiler() -> str | None:
    """The system's C compiler, or the one that CC names."""
    return next(
        (found for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (found := shutil.which(name))), None
    )


def prove_c(path: Path, arm: Arm, motion: Motion, wanted: dict[str, Array], terms: Mapping[str, Array]) -> Proof:
    """The C header, compiled without a single warning and run in a process of its own."""
    program = compiler()
    if program is None:
        note = "not proved: there is no C compiler; install one (or name it with CC) and export again"
        return Proof(path.name, None, None, 0, TIGHT, note)
    with tempfile.TemporaryDirectory(prefix="armid-export-") as folder:
        binary = compile_c(program, path, arm, Path(folder))
        states = np.ascontiguousarray(np.hstack(list(motion))).astype("<f8")
        try:
            run = subprocess.run([binary], input=states.tobytes(), capture_output=True, check=True, timeout=60.0)
        except (subprocess.SubprocessError, OSError) as error:
            raise ProofError(f"{path.name}: was not kept, because the compiled program failed ({error})") from None
    n = arm.robot.n_joints
    out = np.frombuffer(run.stdout, dtype="<f8").reshape(-1, 4 * n + n * n)
    names = ("torque", "gravity", "friction", "springs")
    found = {name: out[:, k * n : (k + 1) * n] for k, name in enumerate(names)} | {"mass matrix": out[:, 4 * n :]}
    pairs = {name: (found[name], wanted[name]) for name in found}
    return checked(path, f"{Path(program).name} {' '.join(FLAGS)}", pairs, TIGHT, _compared(wanted), terms)


def _compared(wanted: Mapping[str, Array]) -> str:
    """What was compared, in words: a spring that the arm has not is not worth a word."""
    return ", ".join(name for name, values in wanted.items() if np.any(values))


def compile_c(program: str, header: Path, arm: Arm, folder: Path, main: str | None = None) -> Path:
    """Compile a program around the header, in `folder`; without `main` one that reads states and writes all torques."""
    source, binary = folder / "main.c", folder / "main"
    text = (main or _MAIN).replace("@X@", arm.identifier).replace("@N@", str(arm.robot.n_joints))
    shutil.copy(header, folder / "arm.h")
    source.write_text(text)
    command = [program, *FLAGS, str(source), "-o", str(binary), "-lm"]
    try:
        subprocess.run(command, capture_output=True, check=True, text=True, timeout=120.0)
    except subprocess.CalledProcessError as error:
        first = (error.stderr or "").strip().splitlines()
        raise ProofError(
            f"{header.name}: was not kept, because {Path(program).name} refuses it ({first[0] if first else error})"
        ) from None
    except (subprocess.TimeoutExpired, OSError) as error:
        raise ProofError(f"{header.name}: was not kept, because the C compiler failed ({error})") from None
    return binary


def time_c(header: Path, arm: Arm) -> float:
    """Seconds that one call of the header's inverse dynamics takes on this machine, the best of twenty rounds.

    Raises:
        ExportError: there is no C compiler.
    """
    program = compiler()
    if program is None:
        raise ExportError("there is no C compiler to time the header with; install one, or name it with CC")
    with tempfile.TemporaryDirectory(prefix="armid-export-") as folder:
        binary = compile_c(program, header, arm, Path(folder), _TIMED)
        run = subprocess.run([binary], capture_output=True, text=True, check=True, timeout=60.0)
    return float(run.stdout.split()[0])


_MAIN = """\
#include <stdio.h>
#include "arm.h"
int main(void)
{
    double x[3 * @N@], tau[@N@], mass[@N@ * @N@];
    while (fread(x, sizeof(double), 3 * @N@, stdin) == 3 * @N@) {
        @X@_inverse_dynamics(x, x + @N@, x + 2 * @N@, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_gravity(x, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_friction(x, x + @N@, x + 2 * @N@, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_springs(x, tau);
        fwrite(tau, sizeof(double), @N@, stdout);
        @X@_mass_matrix(x, mass);
        fwrite(mass, sizeof(double), @N@ * @N@, stdout);
    }
    return 0;
}
"""

_TIMED = """\
#include <stdio.h>
#include <time.h>
#include "arm.h"
int main(void)
{
    double q[@N@], qd[@N@], qdd[@N@], tau[@N@], sum = 0.0, best = 1e9;
    int i, k, round;
    for (round = 0; round < 20; round++) {
        const clock_t start = clock();
        double used;
        for (k = 0; k < 20000; k++) {
            for (i = 0; i < @N@; i++) {
                q[i] = 0.1 * i + 1e-4 * k;
                qd[i] = 0.3 - 0.1 * i;
                qdd[i] = 1e-3 * k;
            }
            @X@_inverse_dynamics(q, qd, qdd, tau);
            sum += tau[@N@ - 1];
        }
        used = (double)(clock() - start) / CLOCKS_PER_SEC / 20000;
        best = used < best ? used : best;
    }
    printf("%.9e %.3e\\n", best, sum);
    return 0;
}
"""
