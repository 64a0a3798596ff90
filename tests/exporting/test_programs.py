"""C and Python: the same torque as the fit, from files that need nothing else."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import RoundedAngleWarning
from armid.exporting import export
from armid.exporting.arm import arm_of
from armid.exporting.c import compile_c, compiler
from armid.robot.parts import Friction
from tests.exporting.arms import fitted, library_fit, range_error, rich_fit, small_fit, states, written

needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")


def run_c(path, fit, motion, folder):
    """Inverse dynamics of all states by the compiled header."""
    binary = compile_c(compiler(), path, arm_of(fit, complete=False), folder)
    states = np.hstack(list(motion)).tobytes()
    out = np.frombuffer(subprocess.run([binary], input=states, capture_output=True, check=True).stdout)
    return out.reshape(len(motion.q), -1)[:, : fit.robot.n_joints]


def load_term_alone():
    """Friction that depends on the load, and no other law beyond viscous and Coulomb friction."""
    rich = rich_fit()
    first = len(rich.torque_model.model.base.kept)
    columns = [*range(first), len(rich.columns) - 1]
    return replace(
        rich,
        columns=tuple(rich.columns[k] for k in columns),
        values=rich.values[columns],
        covariance=rich.covariance[np.ix_(columns, columns)],
        terms=rich.terms[-1:],
        identifiability=replace(rich.identifiability, classes=tuple(rich.identifiability.classes[k] for k in columns)),
        known_torque=None,
    )


FITS = {
    "load-dependent friction alone": load_term_alone,
    "everything": rich_fit,
    "sliding joints": None,
    "seven joints": lambda: library_fit("pa10"),
    "standard DH": lambda: library_fit("powerball"),
}


@pytest.fixture(params=FITS)
def fit(request, home):
    """Arms that differ in what they have."""
    return small_fit(home) if FITS[request.param] is None else FITS[request.param]()


@needs_compiler
def test_c_equals_the_fit(fit, tmp_path):
    """Strictest flags, then 1e-10 of the range on states that the proof did not use."""
    done = export(fit, ["c"], tmp_path / "out")
    assert "-Werror" in done.files[0].proof.against
    motion = states(fit.robot, 500, 11)
    torque = run_c(tmp_path / "out" / done.files[0].file, fit, motion, tmp_path)
    assert range_error(torque, fit.predict(motion).torque) < 1e-10


def test_angles_that_are_rounded(tmp_path):
    """Programs hold the links, which differ from base parameters by as much as 1.5708 is off, and are proved so."""
    links = "".join(f'<link name="l{k}"/>' for k in range(5))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/><axis xyz="0 0 1"/>'
        f'<origin xyz="{x} 0 0.1" rpy="{turn} 0 0"/></joint>'
        for k, (x, turn) in enumerate([(0.0, 0.0), (0.1, -1.5708), (0.4, 0.0), (0.3, 1.5708)], start=1)
    )
    with pytest.warns(RoundedAngleWarning):
        robot = armid.load_robot(written(tmp_path, f'<robot name="r">{links}{joints}</robot>'), rotors=False)
    fit = fitted(replace(robot, friction=(Friction("coulomb-viscous"),) * robot.n_joints))
    motion = states(robot, 100, 3)
    links = arm_of(fit, complete=True).torque(motion)
    assert 1e-9 < range_error(links, fit.predict(motion).torque) < 1e-4
    done = export(fit, ["c", "python"] if compiler() else ["python"], tmp_path / "out")
    assert all(file.proof.error < 1e-10 for file in done.files)


def test_python_equals_the_fit(fit, tmp_path):
    """In a process that sees NumPy and the file alone; one sample and many."""
    done = export(fit, ["python"], tmp_path)
    motion = states(fit.robot, 500, 11)
    np.save(tmp_path / "motion.npy", np.array(motion))
    name = done.files[0].file.removesuffix(".py")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, {name} as arm\n"
        f"q, v, a = np.load({str(tmp_path / 'motion.npy')!r}); tau = arm.inverse_dynamics(q, v, a)\n"
        "assert np.abs(arm.inverse_dynamics(q[7], v[7], a[7]) - tau[7]).max() < 1e-9 * np.abs(tau).max()\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('armid', 'scipy', 'numba')]\n"
        f"np.save({str(tmp_path / 'tau.npy')!r}, tau)\n"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
    assert range_error(np.load(tmp_path / "tau.npy"), fit.predict(motion).torque) < 1e-10


@needs_compiler
def test_c_is_fast(tmp_path):
    """Inverse dynamics of seven joints with coupled rotors and friction take less than 5 microseconds."""
    pytest.importorskip("pinocchio", reason="the benchmark compares with it")
    from benchmarks.export import time_c

    fit = library_fit("pa10")
    export(fit, ["c"], tmp_path)
    seconds, _ = time_c(tmp_path / "pa10_dynamics.h", arm_of(fit, complete=True))
    assert seconds < 5e-6


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
def test_c_needs_five_functions_of_the_library(tmp_path):
    """The compiled header asks for sin, cos, tanh, exp and log at most; nothing is allocated."""
    fit = rich_fit()
    export(fit, ["c"], tmp_path)
    text = (tmp_path / "kr15_dynamics.h").read_text("utf-8")
    functions = re.findall(r"static inline \w+ (kr15_[a-z_]*[a-z])\(", text)
    source = '#include "kr15_dynamics.h"\n' + "".join(f"void *p{k} = (void *){f};\n" for k, f in enumerate(functions))
    (tmp_path / "all.c").write_text(source)
    subprocess.run([compiler(), "-O0", "-c", "all.c", "-o", "all.o"], cwd=tmp_path, check=True)
    symbols = subprocess.run(["nm", "-u", "all.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[-1].lstrip("_") for line in symbols.splitlines()} - {
        "stack_chk_fail",
        "GLOBAL_OFFSET_TABLE_",
    }
    assert wanted == {"sin", "cos", "tanh", "exp", "log"}  # this arm needs them all
    assert "malloc" not in text


@needs_compiler
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_header_is_valid_in_cpp(tmp_path):
    """It can be included from C++, twice."""
    export(rich_fit(), ["c"], tmp_path)
    (tmp_path / "a.cpp").write_text(
        '#include "kr15_dynamics.h"\n#include "kr15_dynamics.h"\nint main() { return 0; }\n'
    )
    command = ["g++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "a.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)


@needs_compiler
def test_base_parameters_are_enough(home, tmp_path):
    """A fit without links gives the same torque in C, Python and YAML; the sidecar says what that means."""
    fit = small_fit(home, possible=False)
    assert fit.standard_parameters is None
    done = export(fit, ["c", "python", "yaml"], tmp_path / "out")
    motion = states(fit.robot, 300, 2)
    torque = run_c(tmp_path / "out/small_dynamics.h", fit, motion, tmp_path)
    assert range_error(torque, fit.predict(motion).torque) < 1e-10
    assert done.history["parameters"] == "base"
    assert any("no single links" in str(note) for note in done.notes)


@needs_compiler
def test_friction_at_rest(tmp_path):
    """At zero velocity there is no Coulomb friction, no NaN from exp(-1/0), in C as in the fit."""
    fit = rich_fit()
    export(fit, ["c", "python"], tmp_path / "out")
    motion = states(fit.robot, 20, 2)
    motion.qd[:, ::2] = 0.0
    torque = run_c(tmp_path / "out/kr15_dynamics.h", fit, motion, tmp_path)
    assert range_error(torque, fit.predict(motion).torque) < 1e-10
