"""Completion scripts: a real shell completes commands, options, robots and files with them."""

import shutil
import subprocess

import pytest

from armid.cli import main


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
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "fit.json").write_text("{}")
    assert complete(script, "armid", "iden", folder=tmp_path) == ["identify"]
    assert complete(script, "armid", "identify", "--meth", folder=tmp_path) == ["--method"]
    assert complete(script, "armid", "model", "pa1", folder=tmp_path) == ["pa10"]
    assert complete(script, "armid", "validate", "fi", folder=tmp_path) == ["fit.json"]


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
