"""Known payloads from files, and pictures."""

import json

import pytest

from armid.errors import ArmidError
from armid.payload import identify_payload, load_payload, load_reference
from armid.payload.estimate import payload_figure
from tests.payload.stand import BODY, Draws

TABLE_3 = """
mass: 9.579
com: [0.024, 0.09, -0.202]
inertia: {xx: 0.612, yy: 0.063, zz: 0.637, xy: -0.158, xz: -0.002, yz: -0.008}
"""


def test_files(tmp_path):
    """YAML, JSON, and mass alone."""
    (tmp_path / "cad.yaml").write_text(TABLE_3)
    values = load_reference(tmp_path / "cad.yaml")
    assert len(values) == 10
    assert (values["m"], values["c_z"], values["Ixy"]) == (9.579, -0.202, -0.158)
    (tmp_path / "scale.json").write_text(json.dumps({"mass": 2.805}))
    assert load_reference(tmp_path / "scale.json") == {"m": 2.805}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("com: [0, 0, 0]", "mass"),
        ("mass: -1", "above zero"),
        ("mass: 1\nweight: 2", "weight"),
        ("mass: 1\ncom: [1, 2]", "list of 3"),
        ("mass: 1\ncom: [0, 0, 0]\ninertia: {xx: 1, yy: 1, zz: 9}", "triangle"),
        ("format: armid fit 1", "format"),
    ],
)
def test_bad_files(tmp_path, text, words):
    """One sentence with file and field."""
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ArmidError, match=r"bad\.yaml") as caught:
        load_reference(tmp_path / "bad.yaml")
    assert words in str(caught.value)


def test_an_estimate_as_reference_and_as_picture(tmp_path):
    """What armid wrote is a reference for the next time; a picture needs the series of the run itself."""
    draws = Draws("kr15", joints=(2, 3, 4, 5))
    fit = draws.fit()
    first = identify_payload(fit, draws.loaded(), reference=BODY)
    first.save(tmp_path / "payload.json")
    again = identify_payload(fit, draws.loaded(), reference=load_reference(tmp_path / "payload.json"))
    assert all(row.sigmas < 4.0 for row in again.reference)
    figure = payload_figure(first)
    assert len(figure.axes) == 8
    assert "kg explains" in figure.get_suptitle()
    with pytest.raises(ArmidError, match="series"):
        payload_figure(load_payload(tmp_path / "payload.json"))
