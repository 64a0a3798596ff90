"""An exporter that is not part of armid: by decorator in a program, by entry point from the command line."""

import json

import numpy as np
import pytest

import armid
from armid.exporting import Content, Exporter, Proof, exporters
from tests.exporting.arms import library_fit, small_fit
from tests.plugins import armid_with_plugins, install

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
    install(tmp_path, "armid.exporters", "weights = armid_weights:Weights", PLUGIN)
    fit = small_fit(home)
    fit.save(tmp_path / "fit.json")
    result, refused, shown = armid_with_plugins(
        tmp_path,
        ("export", "fit.json", "--to", "weights", "-o", "out"),
        ("export", "fit.json", "--to", "wrong", "-o", "out"),
        ("export", "--help"),
    )
    assert result.code == 0, result.err
    masses = [fit.standard_parameters[f"m{number}"] for number in range(1, 5)]
    assert json.loads((tmp_path / "out/weights.json").read_text()) == masses
    assert "Not proved" in result.out
    assert "weights" in refused.err
    assert "sdf, weights" in shown.words
