"""Single experiments of a paper, short or at full size, for the tests."""

from pathlib import Path

from armid.papers.bench import PaperBench, PaperOutcome, PaperRow, experiments_of, load_outcome, save_outcome


def run_experiment(
    paper: str, name: str, folder: Path, *, earlier=None, seed=0, as_printed=True, **options
) -> PaperOutcome:
    """One experiment in its folder, with the file's options but for those given; it must survive being saved."""
    (experiment,) = [one for one in experiments_of(paper) if one.name == name]
    place = folder / name
    place.mkdir(exist_ok=True)
    outcome = experiment.run(PaperBench(paper, name, place, seed, as_printed, earlier or {}), **options)
    save_outcome(outcome, place / "outcome.json")
    assert load_outcome(place / "outcome.json")[0] == outcome
    return outcome


def run_in_order(paper: str, folder: Path, *, seed=0, as_printed=True, **options) -> dict[str, PaperOutcome]:
    """All experiments of a paper; `options` are keyword arguments by experiment."""
    found: dict[str, PaperOutcome] = {}
    for experiment in experiments_of(paper):
        about = {"earlier": found, "seed": seed, "as_printed": as_printed, **options.get(experiment.name, {})}
        found[experiment.name] = run_experiment(paper, experiment.name, folder, **about)
    return found


def rows_of(outcome: PaperOutcome, *parts: str) -> list[PaperRow]:
    """Rows whose quantity contains all parts; at least one."""
    found = [row for row in outcome.rows if all(part in row.quantity for part in parts)]
    assert found, parts
    return found


def row_of(outcome: PaperOutcome, *parts: str) -> PaperRow:
    """The one row whose quantity contains all parts."""
    (row,) = rows_of(outcome, *parts)
    return row
