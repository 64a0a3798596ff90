"""`armid check` and `armid completion`: a real shell completes commands, options, robots and files."""

import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

from armid.cli import main
from armid.cli.arguments import commands_of, offered
from armid.cli.main import parser
from armid.registry import friction_laws
from armid.run import installation

PROGRAM = [sys.executable, "-c", "import sys; from armid.cli import main; sys.exit(main())"]


def complete(script, *words, folder):
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    lines = [
        script,
        f"COMP_WORDS=({line})",
        f"COMP_CWORD={len(words) - 1}",
        "_shtab_armid 2>/dev/null",
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
        main(["completion", "csh"])
    assert end.value.code == 2
    assert "csh" in capsys.readouterr().err.replace("'", "")


VALUES = {  # what is typed, what is offered
    "identify a b --method": "mixed feasible wls ols svd ml robust tls iv abc de",
    "identify a b --friction": " ".join(("auto", "linear", *friction_laws)),
    "design pa10 --criterion": "d-optimal a-optimal e-optimal condition condition-raw condition-and-sigma",
    "design pa10 --to": "csv ros urscript",
    "design pa10 --seed": "",
    "design pa10 --gravity 0 0": "",
    "export fit.json --to": "urdf mjcf c python yaml sdf",
    "run pa10 --to urdf": "urdf mjcf c python yaml sdf none",
    "friction pa10 --grid": "pa10 powerball",
    "stiffness pa10 --friction": "a file.json",
    "completion": "bash zsh fish tcsh powershell",
    "fleet": "identify simulate",
    "fleet identify --workers": "",
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
def test_nested_actions_and_lists(script, tmp_path):
    """Options of an action within a command, the next word of a list, and what follows several numbers."""
    assert complete(script, "armid", "fleet", "identify", "--w", folder=tmp_path) == ["--workers"]
    assert complete(script, "armid", "fleet", "simulate", "--fau", folder=tmp_path) == ["--faults"]
    for action, command in (("--workers", ("fleet", "identify")), ("--method", ("identify",))):
        typed = [
            (words, complete(script, "armid", *words, action, folder=tmp_path)) for words in (("identify",), command)
        ]
        assert all((offered == [action]) == (words == command) for words, offered in typed)  # two of the same name
    assert complete(script, "armid", "export", "f", "--to", "urdf", "m", folder=tmp_path) == ["mjcf"]
    assert complete(script, "armid", "model", "--gravity", "0", "0", "-9.81", "pa", folder=tmp_path) == ["pa10"]


def test_values_come_from_where_they_are_defined():
    """Every list of values that an argument declares can be resolved, and is not empty."""
    declared = [
        vars(action).get("declared") for one in commands_of(parser()).values() for action in one.fill()._actions
    ]
    values = {one.values for one in declared if one is not None and one.values}
    assert len(values) > 10
    assert all(offered(value) for value in values)


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


def test_a_full_installation_is_good(capsys):
    assert main(["check", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    states = {item["name"]: item["state"] for item in data["items"]}
    assert data["good"]
    assert states["kernels"] == "ok"
    assert states["MuJoCo dynamics"] == "ok"
    assert all(states[f"extra {name}"] in ("ok", "absent") for name in installation.EXTRAS)


def test_a_missing_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)  # as if it were not installed
    item = installation._extra("feasible")
    assert (item.state, item.good) == ("absent", True)
    assert "pip install 'armid[feasible]'" in item.detail


def test_what_is_broken_gives_exit_code_1(monkeypatch, capsys):
    def broken():
        raise OSError("libcrash.so is missing")

    monkeypatch.setattr(installation, "_simulation", broken)
    monkeypatch.setattr(installation, "_rendering", lambda: ("absent", ""))
    assert main(["check"]) == 1
    assert "!! MuJoCo dynamics" in capsys.readouterr().out
