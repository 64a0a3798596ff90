"""`armid reproduce PAPER...`: the papers' experiments on the virtual robot, number against number."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.display import on_line
from armid.cli.log_options import check_folder
from armid.cli.options import add_json_option, print_json
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.papers.bench import PaperRow
    from armid.papers.reproduce import News, Reproduction

_MARKS = {"better": "+", "match": "=", "worse": "!", "not comparable": "·"}


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "reproduce",
        help="repeat the papers' experiments on the virtual robot",
        description="Repeat the experiments of the papers behind the built-in robots and print, for every table and "
        "claim, the published number, ours and a verdict. Finished experiments are kept in the folder and not "
        "repeated. Exit code 1 if a verdict is `worse`.",
    )
    command.add_argument("papers", nargs="+", metavar="PAPER", help="rx60, ir361, kr15, pa10, er16, powerball, or all")
    command.add_argument("-o", "--output", metavar="DIR", default="reproduction", help="folder (default: reproduction)")
    command.add_argument("--seed", type=int, default=0, help="seed of everything random (default: 0)")
    command.add_argument(
        "--as-printed", action="store_true", help="also show what the uncorrected equations and tables give"
    )
    command.add_argument("--processes", type=int, default=2, metavar="N", help="papers at once (default: 2)")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.papers.bench import PAPERS
    from armid.papers.reproduce import reproduce

    check_folder(options.output)
    papers = list(PAPERS) if "all" in options.papers else list(dict.fromkeys(options.papers))
    with watch_progress(None):  # what single experiments tell would stand in the way of the display of all
        result = reproduce(
            papers,
            Path(options.output),
            seed=options.seed,
            as_printed=options.as_printed,
            processes=options.processes,
            progress=None if options.quiet else _Display(papers),
        )
    if options.json:
        print_json(result.to_data())
    else:
        sys.stdout.write("\n".join(_describe(result)) + "\n")
    return 0 if result.good else 1


class _Display:
    """One line per finished experiment, and what is being done where the terminal can show it."""

    def __init__(self, papers: list[str]) -> None:
        from armid.papers.bench import experiments_of

        self._left = {(paper, e.name): e.about.seconds for paper in papers for e in experiments_of(paper)}
        self._live = sys.stderr.isatty()

    def __call__(self, news: News) -> None:
        if news.outcome is None:
            if self._live:
                minutes = sum(self._left.values()) / 60.0
                text = f"{news.paper} {news.experiment}: {news.line} (about {minutes:.0f} min of work left)"
                on_line(text)
            return
        self._left.pop((news.paper, news.experiment), None)
        worse = sum(row.verdict == "worse" for row in news.outcome.rows)
        state = "kept from an earlier run" if news.kept else f"{news.seconds:.0f} s"
        verdict = f"{worse} worse than it should be" if worse else "all as it should be"
        start = "\r\x1b[K" if self._live else ""
        sys.stderr.write(f"{start}{news.paper} {news.experiment} {news.title}: {verdict}, {state}\n")
        sys.stderr.flush()


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
