"""An exporter that is not part of armid: by decorator in a program, by entry point from the command line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import armid
from armid.exporting import Content, Exporter, Proof, exporters
from tests.exporting.arms import library_fit, small_fit

PLUGIN = '''
import json
from armid.exporting import Content, Exporter

class Weights(Exporter):
    """Masses of the links."""

    title = "JSON: masses of the links"
    links = True

    def files(self, job):
        return {"weights.json": Content(json.dumps(job.arm.links[:, 0].tolist()).encode())}
'''


@pytest.fixture
def table():
    """A format that a program adds, and takes away again."""

    @exporters.add("table")
    class Table(Exporter):
        title = "torque at the random states"

        def files(self, job):
            return {"torque.csv": Content("\n".join(" ".join(map(repr, row)) for row in job.torque.tolist()).encode())}

        def causes(self, arm):
            return ()

        def prove(self, path, job, torque):
            found = np.loadtxt(path) - (job.torque - torque)
            return Proof(path.name, "NumPy", float(np.abs(found - torque).max()), len(torque), 1e-9, "torque")

    yield
    del exporters._things["table"]


def test_by_decorator(tmp_path, table):
    """It is listed, writes, is proved, says what it leaves out, and stands in the sidecar like armid's own."""
    assert list(exporters)[-1] == "table"
    done = armid.export(library_fit("ir361"), ["c", "table"], tmp_path)
    assert [file.format for file in done.files] == ["c", "table"]
    data = json.loads((tmp_path / "EXPORT.json").read_text())["files"][1]
    assert data["file"] == "torque.csv"
    assert data["proof"]["error"] < 1e-12
    assert data["holds"] == "torque at the random states"
    assert "springs" in [row["what"] for row in data["cannot_hold"]]


def test_by_entry_point(home, tmp_path):
    """An installed package adds a format: `armid export` lists it among the valid names and writes it, unproved."""
    place = tmp_path / "site" / "weights-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: weights\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("[armid.exporters]\nweights = armid_weights:Weights\n")
    (tmp_path / "site" / "armid_weights.py").write_text(PLUGIN)
    fit = small_fit(home)
    fit.save(tmp_path / "fit.json")
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))

    def call(*arguments):
        command = [sys.executable, "-m", "armid", "export", *arguments]
        return subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True)

    result = call("fit.json", "--to", "weights", "-o", "out")
    assert result.returncode == 0, result.stderr
    masses = [fit.standard_parameters[f"m{number}"] for number in range(1, 5)]
    assert json.loads((tmp_path / "out/weights.json").read_text()) == masses
    assert b"Not proved" in result.stdout
    assert b"weights" in call("fit.json", "--to", "wrong", "-o", "out").stderr
    assert b"yaml, weights" in b" ".join(call("--help").stdout.split())
