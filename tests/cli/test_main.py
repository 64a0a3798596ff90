"""The armid program as people start it: help, pipes, interrupts, and what it does not import."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import armid as package
from armid.cli import main

HEAVY = ("numpy", "numba", "scipy", "mujoco", "yaml", "armid.robot", "armid.dynamics")


def program(*arguments, **options):
    """The command line of armid as a process of its own."""
    code = "import sys; from armid.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def imported_by(code):
    """Which heavy modules a piece of code imports."""
    listing = f"print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{listing}"], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", [(), ("robots",), ("model",), ("new",)])
def test_help(command):
    """Help is on standard output and names armid."""
    result = program(*command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: armid")


def test_version():
    """--version prints the package's version."""
    assert program("--version").stdout == f"armid {package.__version__}\n"


def test_installed_program():
    """The `armid` script of the environment is this main function."""
    script = Path(sys.executable).with_name("armid")
    if not script.exists():
        pytest.skip("armid is not installed as a program here")
    result = subprocess.run([script, "robots"], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert "pa10" in result.stdout


def test_import_is_light():
    """`import armid` loads neither NumPy nor anything that needs it."""
    assert imported_by("import armid") == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["model", "--help"], ["model"]])
def test_help_and_wrong_usage_are_light(arguments):
    """Help and wrong usage are answered before anything heavy is imported."""
    code = f"from armid.cli import main\ntry:\n    main({arguments!r})\nexcept SystemExit:\n    pass"
    assert imported_by(code) == "[]"


def test_list_of_robots_needs_no_compiler():
    """`armid robots` imports neither Numba nor SciPy nor MuJoCo."""
    found = imported_by("from armid.cli import main\nmain(['robots'])")
    assert not {"numba", "scipy", "mujoco", "armid.dynamics"} & set(ast.literal_eval(found))


def test_public_names_exist():
    """Every name of the package can be used, and unknown ones are AttributeErrors."""
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) == set(dir(package))
    with pytest.raises(AttributeError, match="colour"):
        _ = package.colour


@pytest.mark.parametrize("arguments", ["model pa10 --quiet", "robots pa10", "model pa10 --json --quiet"])
def test_closed_pipe_leaves_no_traceback(arguments):
    """Nobody reads the output to its end, as in `armid model pa10 | head -1`: no word about it."""
    code = "import sys; from armid.cli import main; sys.exit(main())"
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_piping_into_head():
    """The first line arrives and nothing else is said."""
    code = "import sys; from armid.cli import main; sys.exit(main())"
    command = f"{sys.executable} -c '{code}' model pa10 --json --quiet | head -n 1"
    result = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert (result.stdout, result.stderr) == ("{\n", "")


def test_interrupt_is_not_a_traceback(monkeypatch, capsys):
    """Ctrl-C ends with 130 and one line."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("armid.robot.library_names", interrupted)
    assert main(["robots"]) == 130
    assert capsys.readouterr() == ("", "armid: interrupted\n")


def test_errors_of_armid_itself_are_not_hidden(monkeypatch):
    """A bug is not an error of the user: it keeps its traceback."""

    def broken():
        raise ZeroDivisionError

    monkeypatch.setattr("armid.robot.library_names", broken)
    with pytest.raises(ZeroDivisionError):
        main(["robots"])


def test_process_reports_bad_input_like_the_function():
    """Exit code and message arrive outside the process."""
    result = program("model", "pa11")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("armid: error: robot 'pa11' is not known, did you mean 'pa10'?")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_one_sentence():
    """Standard output that takes nothing: exit code 2, a sentence, no traceback."""
    command = [sys.executable, "-m", "armid", "robots"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("armid: error: the result: cannot be read or written (No space left")
    assert "Traceback" not in done.stderr
