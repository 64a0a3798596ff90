"""Completion scripts: a real shell completes commands, options, robots and files with them."""

import os
import select
import shutil
import subprocess
import sys
import time

import pytest

from armid.cli import main
from armid.cli.completion import VALUES as VALUES_WRITTEN

PROGRAM = [sys.executable, "-c", "import sys; from armid.cli import main; sys.exit(main())"]


def complete(script, *words, folder):
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    lines = [
        script,
        f"COMP_WORDS=({line})",
        f"COMP_CWORD={len(words) - 1}",
        "_armid",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines() if done.stdout.strip() else []


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "fit.json").write_text("{}")
    assert complete(script, "armid", "iden", folder=tmp_path) == ["identify"]
    assert complete(script, "armid", "identify", "--meth", folder=tmp_path) == ["--method"]
    assert complete(script, "armid", "model", "pa1", folder=tmp_path) == ["pa10"]
    assert complete(script, "armid", "validate", "fi", folder=tmp_path) == ["fit.json"]


TYPED = {
    "armid iden": "identify",
    "armid identify --meth": "--method",
    "armid model pa1": "pa10",
    "armid validate fi": "fit.json",
    "armid design pa10 --criterion d": "d-optimal",
    "armid fleet id": "identify",
}


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(("typed", "offered"), TYPED.items())
def test_fish_completes(capsys, tmp_path, typed, offered):
    assert main(["completion", "fish"]) == 0
    (tmp_path / "armid.fish").write_text(capsys.readouterr().out)
    (tmp_path / "fit.json").write_text("{}")
    line = ["fish", "--no-config", "-c", f"source armid.fish; complete -C '{typed}'"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split("\t")[0].split() == [offered]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize("before", ["", "autoload -U compinit && compinit -u -D"])
def test_zsh_completes(capsys, tmp_path, before):
    """At a terminal, as it is typed, whether completion was started before or not."""
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "armid.zsh").write_text(capsys.readouterr().out)
    (tmp_path / "fit.json").write_text("{}")
    terminal = Terminal(["zsh", "-f", "-i"], tmp_path)
    try:
        terminal.answer("PROMPT='rea''dy> '; unsetopt BEEP\n", "ready> ")  # quotes, so that the echo is not the answer
        terminal.answer(f"{before}\n", "ready> ")
        terminal.answer("source ./armid.zsh\n", "ready> ")
        for typed, offered in TYPED.items():
            wanted = f"{typed.rpartition(' ')[0]} {offered}"
            terminal.answer(f"{typed}\t", wanted)
            terminal.answer("\x15", "")  # clear the line
    finally:
        terminal.close()


class Terminal:
    """A program that believes it has a terminal."""

    def __init__(self, line, folder):
        self.ours, theirs = os.openpty()
        environment = {**os.environ, "TERM": "dumb", "HOME": str(folder), "ZDOTDIR": str(folder)}
        self.process = subprocess.Popen(
            line, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
        os.close(theirs)

    def answer(self, typed, wanted, seconds=20.0):
        """Type, then read until the wanted words have come."""
        os.write(self.ours, typed.encode())
        seen, end = "", time.monotonic() + seconds
        while wanted not in seen:
            assert time.monotonic() < end, f"{typed!r}: {wanted!r} is not in {seen!r}"
            if select.select([self.ours], [], [], 0.1)[0]:
                seen += os.read(self.ours, 65536).decode(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command(capsys, shell):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("identify", "validate", "pa10", "completion"))


def test_unknown_shell_is_refused(capsys):
    with pytest.raises(SystemExit) as end:
        main(["completion", "tcsh"])
    assert end.value.code == 2
    assert "bash, zsh, fish" in capsys.readouterr().err.replace("'", "")


VALUES = {  # what is typed, what is offered
    "identify a b --method": "feasible wls ols svd ml robust tls iv abc de",
    "identify a b --friction": "auto linear root stribeck asymmetry load",
    "identify a b --effort": "joint torque|motor torque|current|none",
    "design pa10 --criterion": "d-optimal a-optimal e-optimal condition condition-raw condition-and-sigma",
    "design pa10 --to": "csv ros urscript",
    "design pa10 --seed": "",
    "design pa10 --gravity 0 0": "",
    "export fit.json --to": "urdf mjcf c python yaml",
    "run pa10 --to urdf": "urdf mjcf c python yaml none",
    "friction pa10 --grid": "pa10 powerball",
    "stiffness pa10 --friction": "a file.json",
    "completion": "bash zsh fish",
    "fleet": "identify simulate",
    "fleet identify --workers": "",
    "check": "--help --json --quiet",
}


@pytest.fixture(scope="module")
def script():
    """The script for bash."""
    done = subprocess.run([*PROGRAM, "completion", "bash"], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("typed", VALUES)
def test_values_of_options_and_arguments(script, tmp_path, typed):
    """Only what can stand there is offered: choices, no files where none can be named, nothing for a number."""
    (tmp_path / "a file.json").write_text("{}")
    offered = complete(script, "armid", *typed.split(), "", folder=tmp_path)
    wanted = VALUES[typed]
    assert offered == (wanted.split("|") if "|" in wanted else [wanted] if "a file" in wanted else wanted.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_nested_actions_lists_and_equals_signs(script, tmp_path):
    """Options of an action within a command, the next word of a comma list, and --option=value as bash splits it."""
    assert complete(script, "armid", "fleet", "identify", "--w", folder=tmp_path) == ["--workers"]
    assert complete(script, "armid", "fleet", "simulate", "--fau", folder=tmp_path) == ["--faults"]
    assert complete(script, "armid", "export", "f", "--to", "urdf,m", folder=tmp_path) == ["urdf,mjcf"]
    assert complete(script, "armid", "identify", "--method", "=", "w", folder=tmp_path) == ["wls"]
    assert complete(script, "armid", "model", "--gravity", "0", "0", "-9.81", "pa", folder=tmp_path) == ["pa10"]


def test_written_values_are_those_there_are():
    """The table that spares the shell a long import agrees with the packages."""
    from armid.cli.friction import _LAWS
    from armid.cli.track import CONTROLLERS
    from armid.dynamics.views import _GENERAL
    from armid.estimation import estimators
    from armid.excitation.criteria import CRITERIA
    from armid.excitation.export_plan import KINDS as EXPORTS
    from armid.exporting import exporters
    from armid.logs.log import EFFORTS
    from armid.torque.friction.added import ADDED

    real = {
        "--method": estimators,
        "--friction": ("auto", "linear", *(name.removesuffix("-excess") for name in ADDED)),
        "--criterion": CRITERIA,
        "--controller": CONTROLLERS,
        "--law": _LAWS,
        "--view": _GENERAL,
        "--effort": EFFORTS,
        "design --to": EXPORTS,
        "export --to": tuple(exporters),
        "run --to": (*exporters, "none"),
    }
    assert {name: [w.replace("+", " ") for w in VALUES_WRITTEN[name].split()] for name in real} == {
        name: list(names) for name, names in real.items()
    }


def test_fish_tells_actions_from_commands(capsys):
    """`identify` is a command and an action of fleet, with options of their own."""
    main(["completion", "fish"])
    lines = capsys.readouterr().out.splitlines()
    workers = [line for line in lines if " -l workers " in line]
    assert len(workers) == 2
    assert all("__fish_seen_subcommand_from fleet; and __fish_seen" in line for line in workers)
    method = next(line for line in lines if " -l method " in line)
    assert "identify; and not __fish_seen_subcommand_from fleet'" in method
    assert method.endswith("-x -a 'feasible wls ols svd ml robust tls iv abc de'")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_names_of_what_a_command_takes(capsys, tmp_path):
    """Data sets, papers and shells; robots only where one is asked for."""
    main(["completion", "bash"])
    script = capsys.readouterr().out
    offered = {name: complete(script, "armid", name, "", folder=tmp_path) for name in ("datasets", "reproduce")}
    assert "kr300" in offered["datasets"]
    assert "pa10" not in offered["datasets"]
    assert {"rx60", "powerball", "all"} <= set(offered["reproduce"])
    assert complete(script, "armid", "completion", "z", folder=tmp_path) == ["zsh"]
    assert complete(script, "armid", "robots", "er", folder=tmp_path) == ["er16"]
