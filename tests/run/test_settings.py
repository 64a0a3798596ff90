"""Settings of a run: the file holds what the flags hold, and mistakes in it are named."""

import pytest

from armid.cli.main import parser
from armid.errors import ArmidError, DescriptionError
from armid.run.settings import CHOICES, Settings, load_settings, make_settings


def _file(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


def test_every_setting_is_a_flag():
    flags = vars(parser().parse_args(["run", "pa10"]))
    assert {choice.name for choice in CHOICES} <= set(flags)


def test_file_and_flags_together(tmp_path):
    path = _file(tmp_path, "robot: ir361\nperiods: 4\nseed: 3\nto: [c, yaml]\nno_warmup: true\ngravity: [0, 0, -9.8]\n")
    settings = load_settings(path, periods=6, method=None)
    assert settings == Settings(
        robot="ir361", periods=6, seed=3, to=("c", "yaml"), no_warmup=True, gravity=(0.0, 0.0, -9.8)
    )


def test_files_are_named_from_the_settings_file(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    settings = load_settings(_file(tmp_path, "robot: pa10\nlog: [a.csv]\nmethod: wls\n"))
    assert settings.log == (str(tmp_path / "a.csv"),)
    assert settings.method == "wls"
    assert not settings.virtual


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("robot: pa10\nperiod: 10\nharmonic: 3\n", "harmonic: is not a known key, did you mean 'harmonics'"),
        ("robot: pa10\nperiods: many\n", "periods: must be a whole number, not 'many'"),
        ("robot: pa10\nseed: [1, 2]\n", "seed: must be a whole number, not [1, 2]"),
        ("robot: pa10\nno_warmup: 1\n", "no_warmup: must be true or false, not 1"),
        ("periods: 3\n", "robot: is missing"),
        ("- 3\n", "holds no fields"),
    ],
)
def test_mistakes_name_file_and_key(tmp_path, text, words):
    with pytest.raises(DescriptionError) as error:
        load_settings(_file(tmp_path, text))
    assert words in str(error.value)
    assert "run.yaml" in str(error.value)


def test_formats_with_commas_or_blanks():
    assert make_settings({"robot": "pa10", "to": ("urdf,c", "yaml")}).to == ("urdf", "c", "yaml")


@pytest.mark.parametrize(
    "values",
    [
        {"validation": ("a",)},
        {"log": ("a",), "validation": ("a",)},
        {"gravity": (1.0,)},
        {"periods": 0},
        {"rate": -1.0},
        {"seed": -1},
    ],
)
def test_values_that_cannot_be_are_refused(values):
    with pytest.raises(ArmidError):
        make_settings({"robot": "pa10", **values})
