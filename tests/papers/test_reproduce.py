"""The runner of reproductions: resumes, forgets nothing, judges rightly, tells the truth by its exit code."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from inspect import signature
from pathlib import Path

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
    monkeypatch.setattr(runner, "code_hash", lambda unused: "same")
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


def test_what_the_command_has_finished_is_not_done_again(calls, tmp_path, capsys):
    """`make papers` and the proof at full size share their outcomes."""
    main(["reproduce", "rx60", "-o", str(tmp_path), "--quiet"])
    runner.reproduce(["rx60"], tmp_path)
    assert calls == ["R1", "R2"]


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
    monkeypatch.setattr(runner, "code_hash", lambda unused: "changed")
    runner.reproduce(["rx60"], tmp_path)
    assert calls == ["R1", "R2", "R1", "R1", "R2"]


def test_papers_use_nothing_that_their_outcomes_do_not_depend_on():
    """No module of the packages that the key of an outcome leaves out is loaded with the papers."""
    names = ", ".join(f"armid.papers.{path.stem}" for path in files("armid.papers").iterdir() if path.suffix == ".py")
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, {names}; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()
    used = {name.split(".")[1] for name in loaded if name.startswith("armid.")}
    assert "estimation" in used
    assert not used & set(runner.UNUSED)


def test_command_prints_every_row_and_fails_with_a_worse_one(calls, tmp_path, capsys):
    assert main(["reproduce", "rx60", "-o", str(tmp_path / "out"), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"paper", "experiment", "quantity", "published", "ours", "unit", "verdict", "note"} <= set(rows[0])
    assert main(["reproduce", "rx60", "-o", str(tmp_path / "out"), "--quiet"]) == 1
    text = capsys.readouterr().out
    assert "! slope" in text
    assert "1 worse (!), 1 better (+), 0 match (=)" in text
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
        (1.0, 1.0, None, "match"),
        (1.1, 1.0, 1.2, "worse"),  # a wider bar is no excuse
        (0.9, None, 1.0, "no number"),
        (1.1, None, 1.0, "worse"),
        (0.9, None, None, "no number"),
        (float("nan"), 1.0, 2.0, "worse"),
    ],
)
def test_verdicts_of_what_should_be_small(ours, published, bar, wanted):
    assert verdict("at most", ours, published, bar) == wanted
    turned = (None if published is None else -published, None if bar is None else -bar)
    assert verdict("at least", -ours, *turned) == wanted


def test_the_worst_of_several_numbers_counts():
    assert verdict("at most", [1.0, 2.0], [1.5, 2.5]) == "better"
    assert verdict("at most", [1.5, 2.0], [1.5, 2.5]) == "match"
    assert verdict("at most", [1.0, 2.6], [1.5, 2.5]) == "worse"


def test_what_was_put_in_is_recovered_or_worse():
    """Against the virtual arm's truth where that is not the published number; nothing read back is a match."""
    assert verdict("recovered", 1.0, 5.0, 1.1, 0.2) == "recovered"
    assert verdict("recovered", 5.0, 5.0, 1.1, 0.2) == "worse"
    assert verdict("recovered", 5.0, 5.0) == "recovered"
    assert verdict("recovered", "no", None, "no") == "recovered"
    assert verdict("recovered", float("nan"), 5.0, None, 1.0) == "worse"


def test_a_published_number_needs_a_rule_and_only_an_erratum_excuses(tmp_path):
    bench = PaperBench("rx60", "R1", tmp_path)
    with pytest.raises(ValueError, match="needs a rule"):
        bench.compare(RowTemplate(quantity="x", published=1.0), 1.0)
    with pytest.raises(ValueError, match="only an erratum"):
        bench.compare(RowTemplate(quantity="x", published=1.0, rule="not comparable"), 1.0)
    row = bench.compare(RowTemplate(quantity="x", published=1.0, rule="not comparable", erratum="RX-7"), 1.0)
    assert (row.verdict, row.erratum) == ("not comparable", "RX-7")


def test_a_worse_row_says_why(tmp_path):
    bench = PaperBench("rx60", "R1", tmp_path)
    template = RowTemplate(quantity="x", published=1.0, rule="at most", note="n", reason="noise {level:g}")
    assert bench.compare(template, 2.0, level=3).note == "n; worse: noise 3"
    assert bench.compare(template, 0.5, level=3).note == "n"


def test_errata_of_the_files_are_in_the_list():
    """docs/errata.md, whose first columns may hold several: "PB-1, PB-2", "SW-4, 9", "RX-9 … RX-15"."""
    listed = set()
    for line in (Path(__file__).parents[2] / "docs" / "errata.md").read_text().splitlines():
        for letters, first, last, others in re.findall(
            r"(?<![A-Z])(RX|SW|PA|ER|PB)-(\d+)(?: … \1-(\d+))?((?:, \d+)*)", line.split("|")[1] if "|" in line else ""
        ):
            listed |= {f"{letters}-{k}" for k in range(int(first), int(last or first) + 1)}
            listed |= {f"{letters}-{k}" for k in re.findall(r"\d+", others)}
    assert len(listed) == 16 + 12 + 18 + 14 + 18
    for paper in PAPERS:
        rows = paper_file(paper).rows
        assert {key for key, row in rows.items() if row.rule == "not comparable" and row.erratum not in listed} == set()
        assert {key for key, row in rows.items() if row.erratum and row.rule != "not comparable"} == set()


def test_rows_are_filled_from_their_template(tmp_path):
    """Numbers of joints share a cell or have a row each; notes are templates; a share is of the published number."""
    bench = PaperBench("rx60", "R1", tmp_path)
    each = RowTemplate(quantity="error of {what}", note="by joint {levels:.2g}", digits=3)
    assert bench.compare(each, [1.0, 2.34567], what="x", levels=[0.123, 4.0]) == PaperRow(
        "rx60", "R1", "error of x", None, "1 / 2.35", "", "no number", "by joint 0.12 / 4"
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


def test_seeds_side_by_side(calls, tmp_path):
    """Median and range of numbers, the share of seeds that hold, and the reason of the seed that does not.

    A row that is worse in half of the seeds is worse.
    """
    first = runner.reproduce(["rx60"], tmp_path)
    rows = tuple(replace(row, ours=4.5, verdict="worse", note="worse: why") for row in first.rows[:1])
    second = replace(first, rows=rows + first.rows[1:], seed=1)
    error, slope = runner.over_seeds([first, second])
    assert (error.ours, error.held, error.verdict, error.note) == ("2.5 (0.5 … 4.5)", 0.5, "worse", "worse: why")
    assert (slope.ours, slope.held, slope.verdict) == ("2", 0.0, "worse")
    assert [one.verdict for one in runner.over_seeds([second, first, first])] == ["better", "worse"]
    page = runner.seeds_page([first, second])
    assert "| worse | error | 1 N m | 2.5 (0.5 … 4.5) | 50% | worse: why |" in page
    assert "| rx60 | 2 | 1.5 (1 … 2) | 0.5 (0 … 1) | 0 | 0 | 0 | 0 |" in page


def test_command_runs_seeds_in_folders_of_their_own(calls, tmp_path, capsys):
    assert main(["reproduce", "rx60", "-o", str(tmp_path), "--quiet", "--seeds", "2"]) == 1
    assert calls == ["R1", "R2"] * 2
    assert (tmp_path / "seed-1" / "rx60" / "flow.png").stat().st_size > 5000
    assert "| rx60 | 2 |" in (tmp_path / "seeds.md").read_text()
    assert main(["reproduce", "rx60", "-o", str(tmp_path), "--seeds", "0"]) == 2


def test_every_capability_of_the_papers_is_shown_or_refused():
    """docs/papers.md: each of the 124 ids once; the test files that it names exist."""
    tests = Path(__file__).parents[1]
    rows = re.findall(r"^\| ([A-L]\d+) \|.*\| (.+) \|$", (tests.parent / "docs" / "papers.md").read_text(), re.M)
    sizes = dict(zip("ABCDEFGHIJKL", (9, 15, 8, 9, 13, 15, 11, 12, 10, 4, 13, 5), strict=True))
    assert [name for name, _ in rows] == [f"{letter}{k + 1}" for letter, count in sizes.items() for k in range(count)]
    named = {file for _, shown in rows for file in re.findall(r"(?:\w+/)test_\w+\.py", shown)}
    assert {file for file in named if not (tests / file).is_file()} == set()
