"""`armid check`: names what is there, what is missing and what is broken."""

import json
import sys

from armid.cli import main
from armid.run import installation


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
    monkeypatch.setattr(installation, "_rendering", lambda: installation.Item("MuJoCo rendering", "absent", ""))
    assert main(["check"]) == 1
    assert "!! MuJoCo dynamics" in capsys.readouterr().out
