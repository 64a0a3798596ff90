"""Runs the papers' experiments: in two processes, resumable, each outcome saved as soon as it is there."""

from __future__ import annotations

import json
import multiprocessing
import queue
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing.managers import SyncManager
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np

from armid import theme
from armid._version import __version__
from armid.errors import ArmidError
from armid.excitation.pool import end_with_parent, interruptions_held, stop_workers
from armid.files import code_hash, write_text
from armid.papers.bench import (
    VERDICTS,
    Experiment,
    PaperBench,
    PaperOutcome,
    PaperRow,
    Verdict,
    experiments_of,
    load_outcome,
    save_outcome,
)
from armid.papers.pictures import flow_figure

#: Packages that no paper uses: what changes there leaves outcomes as they are.
UNUSED = ("monitoring", "exporting", "reporting", "run", "fleet", "studio", "cli")


@dataclass(frozen=True)
class News:
    """One message of a running reproduction.

    Attributes:
        experiment: whose.
        line: what it does; empty when it has ended.
        outcome: when it has ended.
        kept: it had been done before and was read again.
        seconds: how long it took.
    """

    experiment: str
    paper: str
    title: str
    line: str = ""
    outcome: PaperOutcome | None = None
    kept: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Reproduction:
    """All rows, in the order of the papers.

    Attributes:
        rows: published against ours.
        notes: findings by paper and experiment, such as ``pa10 R6``.
        folder: where outcomes and pictures lie.
        seed: of everything random.
    """

    rows: tuple[PaperRow, ...]
    notes: dict[str, tuple[str, ...]]
    folder: Path
    seed: int

    @property
    def good(self) -> bool:
        """No verdict is "worse"."""
        return all(row.verdict != "worse" for row in self.rows)

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        return {verdict: sum(row.verdict == verdict for row in self.rows) for verdict in VERDICTS}

    def to_data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "armid": __version__,
            "seed": self.seed,
            "rows": [asdict(row) for row in self.rows],
            "counts": self.counts(),
            "notes": {name: list(notes) for name, notes in self.notes.items()},
            "pictures": sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.png")),
        }


@dataclass(frozen=True)
class SeedsRow:
    """A row of several reproductions that differ in their seed.

    Attributes:
        first: of the first seed.
        ours: median and range, or the texts.
        held: share of the seeds in which it is not worse.
        verdict: worse if it is so in half of the seeds or more, else what it is in most of the others.
        note: of a seed in which it is worse, otherwise of the first.
    """

    first: PaperRow
    ours: str
    held: float
    verdict: Verdict
    note: str


def over_seeds(results: Sequence[Reproduction]) -> list[SeedsRow]:
    """The rows of reproductions that differ in their seed, in the order of the first."""
    each: dict[tuple[str, str, str], list[PaperRow]] = {}
    for result in results:
        for row in result.rows:
            each.setdefault((row.paper, row.experiment, row.quantity), []).append(row)
    return [_together(rows) for rows in each.values()]


def _together(rows: Sequence[PaperRow]) -> SeedsRow:
    worse = [row for row in rows if row.verdict == "worse"]
    others = [row.verdict for row in rows if row.verdict != "worse"]
    verdict: Verdict = "worse" if len(worse) >= len(others) else mode(others)
    values = [row.ours for row in rows if not isinstance(row.ours, str)]
    ours = "; ".join(dict.fromkeys(str(row.ours) for row in rows))
    if values:
        low, middle, high = np.min(values), np.median(values), np.max(values)
        ours = f"{middle:.4g}" + (f" ({low:.3g} … {high:.3g})" if low < high else "")
    return SeedsRow(rows[0], ours, len(others) / len(rows), verdict, (worse or rows)[0].note)


def seeds_page(results: Sequence[Reproduction]) -> str:
    """Markdown: how many rows have each verdict, then all that were compared with the paper or worse."""
    papers = list(dict.fromkeys(row.paper for run in results for row in run.rows))
    lines = [f"| | seeds | {' | '.join(VERDICTS)} |", f"|{'---|' * 8}"]
    for paper in papers:
        runs = [[row.verdict for row in run.rows if row.paper == paper] for run in results]
        counts = [[verdicts.count(one) for verdicts in runs if verdicts] for one in VERDICTS]
        ranges = [f"{min(c)}" if min(c) == max(c) else f"{np.median(c):g} ({min(c)} … {max(c)})" for c in counts]
        lines.append(f"| {paper} | {len(counts[0])} | {' | '.join(ranges)} |")
    for paper in papers:
        lines += ["", f"### {paper}", "", "| | quantity | published | ours: median (range) | holds | remarks |"]
        lines.append(f"|{'---|' * 6}")
        for one in (one for one in over_seeds(results) if one.first.paper == paper):
            row, held = one.first, one.held
            if one.verdict not in ("no number", "recovered") or held < 1.0:
                said = row.published if isinstance(row.published, str) else f"{row.published or 0.0:.4g} {row.unit}"
                said = "–" if row.published is None else said.strip()
                remark = one.note if held < 1.0 or one.verdict == "not comparable" else ""
                cells = (one.verdict, row.quantity, said, one.ours, f"{held:.0%}", remark)
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def reproduce(
    papers: Sequence[str],
    folder: Path,
    *,
    seed: int = 0,
    as_printed: bool = False,
    processes: int = 2,
    progress: Callable[[News], None] | None = None,
) -> Reproduction:
    """Run the experiments of some papers, or read what an earlier call has finished.

    Args:
        papers: short names; see `PAPERS`.
        folder: for outcomes and pictures; ``PAPER/EXPERIMENT/outcome.json`` there is used again when seed, options and
            armid's own code are the same.
        seed: of everything random.
        as_printed: also show what the uncorrected equations and tables give.
        processes: papers to work on at once.
        progress: hears what happens.
    """
    for paper in papers:
        experiments_of(paper)  # unknown names before any work
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArmidError(f"{folder}: cannot be made ({error.strerror}); choose another folder with -o") from None
    tell = progress or (lambda news: None)
    if processes < 2 or len(papers) < 2:
        found = {paper: run_paper(paper, folder, seed, as_printed, tell) for paper in papers}
    else:
        found = _run_in_processes(papers, folder, seed, as_printed, processes, tell)
    rows = tuple(row for paper in papers for outcome in found[paper].values() for row in outcome.rows)
    notes = {f"{paper} {name}": outcome.notes for paper in papers for name, outcome in found[paper].items()}
    result = Reproduction(rows, notes, folder, seed)
    write_text(folder / "reproduction.json", json.dumps(result.to_data(), indent=1, ensure_ascii=False) + "\n")
    return result


def _run_in_processes(
    papers: Sequence[str], folder: Path, seed: int, as_printed: bool, processes: int, tell: Callable[[News], None]
) -> dict[str, dict[str, PaperOutcome]]:
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    with interruptions_held():
        manager.start(end_with_parent)
    with manager, ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool:
        news = manager.Queue()
        order = sorted(papers, key=lambda paper: -sum(one.about.seconds for one in experiments_of(paper)))
        try:
            with interruptions_held():
                running = {paper: pool.submit(run_paper, paper, folder, seed, as_printed, news.put) for paper in order}
            for item in _hear(news, running.values()):
                tell(item)
            return {paper: task.result() for paper, task in running.items()}
        except BaseException:
            stop_workers(pool)  # the outcomes that are finished are saved
            raise


def _hear(news: Any, running: Collection[Future[Any]]) -> Iterator[News]:
    """Messages until all tasks have ended or one has failed."""
    while True:
        ended = all(task.done() for task in running) or any(task.done() and task.exception() for task in running)
        try:
            yield news.get(timeout=0.2)
        except queue.Empty:
            if ended:
                return


def run_paper(
    paper: str, folder: Path, seed: int, as_printed: bool, tell: Callable[[News], None]
) -> dict[str, PaperOutcome]:
    """Run one paper's experiments in order; each is saved when it has ended."""
    done: dict[str, PaperOutcome] = {}
    code = code_hash(UNUSED)
    for experiment in experiments_of(paper):
        place = folder / paper / experiment.name
        key = {"armid": __version__, "code_sha256": code, "seed": seed, "as_printed": as_printed}
        kept = _kept(place / "outcome.json", key)
        if kept is not None:
            done[experiment.name] = kept
            tell(News(experiment.name, paper, experiment.about.title, outcome=kept, kept=True))
            continue
        place.mkdir(parents=True, exist_ok=True)

        def say(line: str, experiment: Experiment = experiment) -> None:
            tell(News(experiment.name, paper, experiment.about.title, line=line))

        say("started")
        start = time.perf_counter()
        earlier = {name: done[name] for name in experiment.about.needs}
        outcome = experiment.run(PaperBench(paper, experiment.name, place, seed, as_printed, earlier, say))
        seconds = time.perf_counter() - start
        save_outcome(outcome, place / "outcome.json", title=experiment.about.title, seconds=round(seconds, 1), **key)
        done[experiment.name] = outcome
        tell(News(experiment.name, paper, experiment.about.title, outcome=outcome, seconds=seconds))
    steps = {one.name: (one.about.title, one.about.needs) for one in experiments_of(paper)}
    theme.save(flow_figure(steps, what=paper), folder / paper / "flow.png")
    return done


def _kept(path: Path, key: dict[str, Any]) -> PaperOutcome | None:
    """An earlier outcome made in the same way, or None."""
    try:
        outcome, about = load_outcome(path)
    except (OSError, ValueError, ArmidError):
        return None
    return outcome if all(about.get(name) == value for name, value in key.items()) else None
