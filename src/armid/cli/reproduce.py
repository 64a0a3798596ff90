"""`armid reproduce PAPER...`: the papers' experiments on the virtual robot, number against number."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from armid.cli.arguments import arg
from armid.cli.display import Display, display
from armid.cli.options import SEED, command, finish, output_folder
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.papers.bench import PaperRow
    from armid.papers.reproduce import News, Reproduction

_MARKS = {"better": "+", "match": "=", "worse": "!", "not comparable": "·"}


@command(
    "reproduce",
    "repeat the papers' experiments on the virtual robot",
    "Repeat the experiments of the papers behind the built-in robots and print, for every table and claim, the "
    "published number, ours and a verdict. Finished experiments are kept in the folder and not repeated. Exit code 1 "
    "if a verdict is `worse`.",
    arg("papers PAPER...", "{values}", values="armid.papers.bench:PAPERS all"),
    output_folder("folder", "reproduction"),
    SEED,
    arg("--as-printed", "also show what the uncorrected equations and tables give"),
    arg("--processes N", "papers at once", default=2),
    resumes=True,
)
def reproduce(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.papers.bench import PAPERS
    from armid.papers.reproduce import reproduce

    papers = list(PAPERS) if "all" in options.papers else list(dict.fromkeys(options.papers))
    with watch_progress(None):  # what single experiments tell would stand in the way of the display of all
        result = reproduce(
            papers,
            Path(options.output),
            seed=options.seed,
            as_printed=options.as_printed,
            processes=options.processes,
            progress=_Teller(papers, display(options, stay=False)),
        )
    return finish(options, result.to_data(), _describe(result), good=result.good)


class _Teller:
    """One line per finished experiment, and what is being done where the terminal can show it."""

    def __init__(self, papers: list[str], shown: Display) -> None:
        from armid.papers.bench import experiments_of

        self._left = {(paper, e.name): e.about.seconds for paper in papers for e in experiments_of(paper)}
        self._all, self._shown = sum(self._left.values()), shown

    def __call__(self, news: News) -> None:
        if news.outcome is None:
            share = 1.0 - sum(self._left.values()) / self._all
            self._shown(f"{news.paper} {news.experiment}: {news.line}", min(share, 0.99))
            return
        self._left.pop((news.paper, news.experiment), None)
        worse = sum(row.verdict == "worse" for row in news.outcome.rows)
        state = "kept from an earlier run" if news.kept else f"{news.seconds:.0f} s"
        verdict = f"{worse} worse than it should be" if worse else "all as it should be"
        self._shown.line(f"{news.paper} {news.experiment} {news.title}: {verdict}, {state}", timed=False)


def _describe(result: Reproduction) -> Iterator[str]:
    from armid.papers.bench import paper_file

    for paper, of_paper in groupby(result.rows, key=lambda row: row.paper):
        yield f"{paper}: {paper_file(paper).title}"
        for experiment, rows in groupby(of_paper, key=lambda row: row.experiment):
            yield from _table(experiment, list(rows))
            yield from (f"    {note}" for note in result.notes.get(f"{paper} {experiment}", ()))
        yield ""
    counts = result.counts()
    yield ", ".join(f"{count} {verdict} ({_MARKS[verdict]})" for verdict, count in counts.items() if count)
    yield f"outcomes and pictures: {result.folder}"


def _table(experiment: str, rows: list[PaperRow]) -> Iterator[str]:
    width = max(len(row.quantity) for row in rows)
    yield f"  {experiment:<{width + 4}} {'paper':>12} {'ours':>12}"
    for row in rows:
        note = f"  {row.note}" if row.note else ""
        yield (
            f"  {_MARKS[row.verdict]} {row.quantity:<{width + 2}} {_number(row.published):>12} "
            f"{_number(row.ours):>12} {row.unit:<8}{note}".rstrip()
        )


def _number(value: float | str | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.4g}"
