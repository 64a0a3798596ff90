"""The runner of reproductions: resumes, forgets nothing, judges rightly, tells the truth by its exit code."""

import json
from importlib.resources import files
from inspect import signature

import pytest

from armid.cli import main
from armid.errors import UnknownNameError
from armid.papers import reproduce as runner
from armid.papers.bench import (
    PAPERS,
    Experiment,
    ExperimentTemplate,
    PaperBench,
    PaperOutcome,
    PaperRow,
    RowTemplate,
    experiments_of,
    load_outcome,
    paper_file,
    save_outcome,
    verdict,
)


@pytest.fixture
def calls(monkeypatch):
    """Two small experiments in the place of rx60's; the second needs the first."""
    calls = []

    def first(bench):
        calls.append("R1")
        bench.compare(RowTemplate(quantity="error", rule="at most", published=1.0, unit="N m"), 0.5)
        return {"slope": 2.0}

    def second(bench):
        calls.append("R2")
        slope = bench.earlier["R1"].data["slope"]
        bench.compare(RowTemplate(quantity="slope", rule="near", published=2.1, within=0.05, note="RX-9"), slope)

    one = ExperimentTemplate(title="first", function="first", seconds=1.0)
    other = ExperimentTemplate(title="second", function="second", seconds=1.0, needs=("R1",), notes=("a finding",))
    two = (Experiment("R1", "rx60", one, first), Experiment("R2", "rx60", other, second))
    monkeypatch.setattr(runner, "experiments_of", lambda paper: two if paper == "rx60" else experiments_of(paper))
    monkeypatch.setattr(runner, "code_hash", lambda: "same")
    return calls


def test_rows_come_in_order_and_later_experiments_see_earlier_ones(calls, tmp_path):
    result = runner.reproduce(["rx60"], tmp_path)
    assert [(row.experiment, row.ours, row.verdict) for row in result.rows] == [
        ("R1", 0.5, "better"),
        ("R2", 2.0, "worse"),
    ]
    assert not result.good
    assert result.notes["rx60 R2"] == ("a finding",)
    assert json.loads((tmp_path / "reproduction.json").read_text())["counts"]["worse"] == 1


def test_what_is_finished_is_not_done_again(calls, tmp_path):
    runner.reproduce(["rx60"], tmp_path)
    (tmp_path / "rx60" / "R2" / "outcome.json").unlink()  # as after an interruption
    heard = []
    again = runner.reproduce(["rx60"], tmp_path, progress=heard.append)
    assert calls == ["R1", "R2", "R2"]
    assert [news.kept for news in heard if news.outcome] == [True, False]
    assert len(again.rows) == 2


@pytest.mark.parametrize("change", [{"seed": 1}, {"as_printed": True}])
def test_other_options_are_run_anew(calls, tmp_path, change):
    runner.reproduce(["rx60"], tmp_path)
    runner.reproduce(["rx60"], tmp_path, **change)
    assert calls == ["R1", "R2"] * 2


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"rows": 3}'])
def test_other_code_or_a_damaged_outcome_is_run_anew(calls, tmp_path, monkeypatch, text):
    runner.reproduce(["rx60"], tmp_path)
    (tmp_path / "rx60" / "R1" / "outcome.json").write_text(text)
    runner.reproduce(["rx60"], tmp_path)
    assert calls == ["R1", "R2", "R1"]
    monkeypatch.setattr(runner, "code_hash", lambda: "changed")
    runner.reproduce(["rx60"], tmp_path)
    assert calls == ["R1", "R2", "R1", "R1", "R2"]


def test_command_prints_every_row_and_fails_with_a_worse_one(calls, tmp_path, capsys):
    assert main(["reproduce", "rx60", "-o", str(tmp_path / "out"), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"paper", "experiment", "quantity", "published", "ours", "unit", "verdict", "note"} <= set(rows[0])
    assert main(["reproduce", "rx60", "-o", str(tmp_path / "out"), "--quiet"]) == 1
    text = capsys.readouterr().out
    assert "! slope" in text
    assert "RX-9" in text
    assert "a finding" in text


def test_unknown_paper_is_refused_before_any_work(calls, tmp_path, capsys):
    with pytest.raises(UnknownNameError, match="rx60"):
        runner.reproduce(["rx60", "rx61"], tmp_path)
    assert not calls
    assert main(["reproduce", "rx61", "-o", str(tmp_path)]) == 2
    assert "did you mean 'rx60'" in capsys.readouterr().err


def test_folder_that_cannot_be_made_is_named(calls, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "rx60", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "file/out: cannot be a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ours", "published", "bar", "wanted"),
    [
        (0.9, 1.0, None, "better"),
        (1.1, 1.0, None, "worse"),
        (1.1, 1.0, 1.2, "match"),
        (0.9, 1.0, 0.8, "worse"),  # the bar may be stricter than the paper
        (0.9, None, 1.0, "match"),
        (0.9, None, None, "not comparable"),
        (float("nan"), 1.0, 2.0, "worse"),
    ],
)
def test_verdicts_of_what_should_be_small(ours, published, bar, wanted):
    assert verdict("at most", ours, published, bar) == wanted
    turned = (None if published is None else -published, None if bar is None else -bar)
    assert verdict("at least", -ours, *turned) == wanted


def test_rows_are_filled_from_their_template(tmp_path):
    """Numbers of joints share a cell or have a row each; notes are templates; a share is of the published number."""
    bench = PaperBench("rx60", "R1", tmp_path)
    each = RowTemplate(quantity="error of {what}", note="by joint {levels:.2g}", digits=3)
    assert bench.compare(each, [1.0, 2.34567], what="x", levels=[0.123, 4.0]) == PaperRow(
        "rx60", "R1", "error of x", None, "1 / 2.35", "", "not comparable", "by joint 0.12 / 4"
    )
    share = RowTemplate(quantity="slope", rule="near", within_share=0.1)
    assert [bench.compare(share, ours, published=-2.0).verdict for ours in (-2.19, -2.21)] == ["match", "worse"]
    bench.rows.clear()
    bench.by_joint("largest_error", [1.0, 2.0], published=[1.5, 1.5])
    assert [(row.quantity[-24:], row.verdict) for row in bench.rows] == [
        ("of joint 1 over the runs", "better"),
        ("of joint 2 over the runs", "worse"),
    ]


@pytest.mark.parametrize("paper", PAPERS)
def test_files_are_whole(paper):
    """Every row is used by the paper's module, none hides a common one, and experiments need earlier ones only."""
    file = paper_file(paper)
    code = (files("armid.papers") / f"{paper}.py").read_text()
    assert [key for key in file.rows if f'"{key}"' not in code and f'"{key.split("_")[0]}_' not in code] == []
    assert not set(file.rows) & set(paper_file("common").rows)
    names = list(file.experiments)
    assert all(names.index(need) < names.index(name) for name, one in file.experiments.items() for need in one.needs)
    assert [experiment.name for experiment in experiments_of(paper)] == names
    for experiment in experiments_of(paper):
        signature(experiment.function).bind(None, **experiment.about.options)  # all that it needs, nothing else


def test_outcomes_survive_the_disk(tmp_path):
    row = PaperRow("rx60", "R1", "x", "1.0 ± 0.1", 2.0, "kg", "not comparable", "why", 3.0)
    outcome = PaperOutcome((row,), {"rate_hz": 5.0}, {"list": [1, 2.5]}, ("a", "b"))
    save_outcome(outcome, tmp_path / "o.json", seed=4)
    assert load_outcome(tmp_path / "o.json") == (outcome, {"seed": 4})
