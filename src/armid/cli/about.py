"""`armid reproduce`, `datasets`, `check` and `completion`: papers, published logs, and the installation."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import zlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import Argument, Parser, arg, commands_of, offered
from armid.cli.display import Display, display
from armid.cli.options import SEED, command, finish, output_folder
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.logs.public import PublicLogs
    from armid.papers.bench import PaperRow
    from armid.papers.reproduce import News, Reproduction

_MARKS = {"worse": "!", "better": "+", "match": "=", "recovered": "o", "no number": "·", "not comparable": "×"}


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
    arg("--processes N", "papers at once", default=2, least=1, most=256),
    arg("--seeds N", "this many, each in its folder; writes median and range of each row", default=1, least=1, most=99),
    resumes=True,
)
def reproduce(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text
    from armid.papers.bench import PAPERS
    from armid.papers.reproduce import reproduce, seeds_page

    papers = list(PAPERS) if "all" in options.papers else list(dict.fromkeys(options.papers))
    folder, results = Path(options.output), []
    for seed in range(options.seed, options.seed + options.seeds):
        with watch_progress(None):  # what single experiments tell would stand in the way of the display of all
            one = reproduce(
                papers,
                folder / f"seed-{seed}" if options.seeds > 1 else folder,
                seed=seed,
                as_printed=bool(options.as_printed),
                processes=options.processes,
                progress=_Teller(papers, display(options, stay=False)),
            )
        results.append(one)
    files = [folder / "seeds.md"] if len(results) > 1 else []
    for page in files:
        write_text(page, seeds_page(results))
    data, text = results[0].to_data(), _describe_rows(results[0])
    return finish(options, data, text, files or None, good=all(one.good for one in results))


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
        verdict = f"{worse} worse" if worse else "none worse"
        self._shown.line(f"{news.paper} {news.experiment} {news.title}: {verdict}, {state}", timed=False)


def _describe_rows(result: Reproduction) -> Iterator[str]:
    from armid.papers.bench import paper_file

    for paper, of_paper in groupby(result.rows, key=lambda row: row.paper):
        yield f"{paper}: {paper_file(paper).title}"
        for experiment, rows in groupby(of_paper, key=lambda row: row.experiment):
            yield from _experiment_table(experiment, list(rows))
            yield from (f"    {note}" for note in result.notes.get(f"{paper} {experiment}", ()))
        yield ""
    counts = result.counts()
    yield ", ".join(f"{count} {verdict} ({_MARKS[verdict]})" for verdict, count in counts.items())
    yield f"outcomes and pictures: {result.folder}"


def _experiment_table(experiment: str, rows: list[PaperRow]) -> Iterator[str]:
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


@command(
    "datasets",
    "list published logs of real robots, and fetch them",
    "List logs of real robots that others have published, with origin, licence and checksums. armid holds none of "
    "them: --fetch downloads one from its origin, or ARMID_DATA names a folder with copies.",
    arg("name [NAME]", "show one of them", values="armid.logs.public:public_logs"),
    arg("--fetch", "download what is missing, and check it"),
    arg("--folder DIR", "folder with the data sets (default: what ARMID_DATA names)"),
)
def datasets(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs.public import VARIABLE, public_log, public_logs

    folder = options.folder or os.environ.get(VARIABLE)
    chosen = [public_log(options.name)] if options.name else list(public_logs().values())
    written: list[Path] = []
    if options.fetch:
        if not options.name:
            raise ArmidError(f"--fetch needs a NAME: one of {', '.join(entry.name for entry in chosen)}")
        if not folder:
            raise ArmidError(f"--fetch needs a folder: give --folder DIR, or set {VARIABLE}")
        written = chosen[0].fetch(folder)
    data = {"folder": folder, "datasets": [_as_data(entry, folder) for entry in chosen]}
    lines = _describe(chosen[0], folder) if options.name else _entries(chosen, folder)
    return finish(options, data, lines, written)


def _as_data(entry: PublicLogs, folder: str | None) -> dict[str, Any]:
    where, named = entry.folder(folder), ("name", "title", "origin", "commit", "licence", "recipe")
    return {
        **{name: getattr(entry, name) for name in named},
        "robot": entry.robot_path(folder),
        "prior": entry.prior_path(folder),
        "files": [{**vars(file), "state": None if where is None else file.state(where)} for file in entry.files],
    }


def _entries(entries: list[PublicLogs], folder: str | None) -> Iterator[str]:
    for entry in entries:
        megabytes = sum(file.bytes for file in entry.files) / 1e6
        yield f"{entry.name:<8} {entry.title}"
        yield f"{'':<8} {megabytes:.1f} MB, {entry.licence}; {_have(entry, folder)}"
    yield "`armid datasets NAME` shows one, `armid datasets NAME --fetch --folder DIR` fetches it"


def _have(entry: PublicLogs, folder: str | None) -> str:
    where = entry.folder(folder)
    if where is None:
        return entry.origin
    states = [file.state(where) for file in entry.files]
    if "different" in states:
        return f"{states.count('different')} of {len(states)} files in {where} are not the published ones"
    return f"{states.count('there')} of {len(states)} files are in {where}"


def _describe(entry: PublicLogs, folder: str | None) -> Iterator[str]:
    yield f"{entry.name}: {entry.title}"
    yield f"origin   {entry.origin} at {entry.commit}"
    yield f"licence  {entry.licence}"
    yield f"recipe   {entry.recipe}"
    yield f"robot    {entry.robot_path(folder)}"
    if entry.prior_path(folder) is not None:
        yield f"prior    {entry.prior_path(folder)}"
    where = entry.folder(folder)
    width = max(len(file.name) for file in entry.files)
    for file in entry.files:
        state = "" if where is None else f"  {file.state(where)}"
        source = "" if file.addresses else "  (not offered by the origin)"
        yield f"  {file.name:<{width}}  {file.use:<9} {file.bytes / 1e6:5.1f} MB  {file.sha256[:12]}…{state}{source}"
    base = where or Path(entry.name)
    train, other = ([str(base / name) for name in entry.of_use(use)] for use in ("train", "validate"))
    prior = "" if entry.prior_path(folder) is None else f" --prior {shlex.quote(f'{entry.prior_path(folder)}:0.05')}"
    yield "use it with"
    robot = shlex.quote(str(entry.robot_path(folder)))
    yield f"  armid identify {robot} {shlex.join(train)} --recipe {entry.recipe}{prior} -o fit.json"
    if other:
        yield f"  armid validate fit.json {shlex.join(other)} --recipe {entry.recipe}"


_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


@command(
    "check",
    "the state of the installation",
    "Say which extras are installed, whether the numeric kernels are compiled and right, which BLAS is used, and "
    "whether MuJoCo can simulate and draw. Exit code 1 if something that is installed does not work.",
)
def check(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.run.installation import examine_installation

    found = examine_installation()
    width = max(len(item.name) for item in found)
    marks = {"ok": "ok", "absent": "--", "broken": "!!"}
    good = all(item.good for item in found)
    lines = (f"{marks[item.state]} {item.name:<{width}}  {item.detail}" for item in found)
    return finish(options, {"good": good, "items": [vars(item) for item in found]}, lines, good=good)


@command(
    "completion",
    "print a completion script for your shell",
    'Print a script for tab completion. bash, zsh: eval "$(armid completion bash)" (or zsh) at the end of ~/.bashrc or '
    "~/.zshrc; fish: armid completion fish > ~/.config/fish/completions/armid.fish",
    arg("shell SHELL", ", ".join(_SHELLS), choices=_SHELLS),
    json=False,
)
def completion(options: argparse.Namespace) -> int:
    """Run the command."""
    import shtab

    _complete(options.root)
    sys.stdout.write(shtab.complete(options.root, options.shell) + "\n")
    return 0


def _complete(parser: Parser) -> None:
    """Give every action of a parser and its commands what shtab needs: names to choose from, or that it is a file."""
    for action in parser.fill()._actions:
        declared: Argument | None = vars(action).get("declared")
        if declared is None or action.nargs == 0 or action.choices is not None:
            continue
        words = [word for word in offered(declared.values) if " " not in word]  # which no shell keeps as one
        if declared.file and words:
            vars(action)["complete"] = _words_or_files(words)
        elif declared.file:
            vars(action)["complete"] = _files()
        elif words:
            action.choices = words
    for nested in commands_of(parser).values():
        _complete(nested)


def _files() -> dict[str, Any]:
    import shtab

    return dict(shtab.FILE)


def _words_or_files(words: list[str]) -> dict[str, Any]:
    """Completion of names, or of a file."""
    line = " ".join(words)
    name = f"_armid_file_{zlib.crc32(line.encode()):x}"
    script = f'{name}() {{\n  compgen -W "{line}" -- "$1"\n  compgen -f -- "$1"\n}}'
    return {
        **_files(),
        "bash": name,
        "zsh": f"{{compadd {line}; _files}}",
        "fish": f"{line} {_files()['fish']}",
        "preamble": {"bash": script},
    }
