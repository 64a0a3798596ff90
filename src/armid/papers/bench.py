"""What a reproduction is made of: the paper's file, the bench its experiments run on, rows "published against ours".

A paper is a YAML file and a Python module of one name, such as ``rx60.yaml`` and ``rx60.py``. The file holds published
numbers, the settings of the stand, the experiments with their options, and every row that can come out; see
`PaperFile`. The module holds one function per experiment, named by the file::

    def friction(bench: PaperBench, *, speeds: int) -> dict[str, Any]:
        fit = ...
        bench.compare("slope", fit.slope, sigma=fit.sigma)   # the row `slope` of the file, its note filled in
        bench.draw(figure, "friction.png")
        return {"coefficients": ...}                          # what later experiments and readers need
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from armid import theme
from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.files import checked, parse_json, parse_yaml, plain, write_text

#: The papers by the short name of their arm, in the order of the experiments R1 to R15.
PAPERS = ("rx60", "ir361", "kr15", "pa10", "er16", "powerball")
Verdict = Literal["worse", "better", "match", "recovered", "no number", "not comparable"]
Rule = Literal["at most", "at least", "near", "recovered", "no number", "not comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class RowTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row that may come out; texts are templates for `str.format`.

    Attributes:
        quantity: in words, with the joint.
        rule: how the verdict is found; see `verdict`.
        published: the paper's number or text, or those of all joints.
        bar: what ours is held against where the paper has no number; of all joints, too.
        within: distance from the number aimed at that is a match [same unit].
        within_share: the same as a share of that number.
        unit: of both.
        note: what to mind.
        reason: why ours is worse, where it is.
        erratum: which makes the published number wrong; without one, no number is "not comparable".
        digits: of the numbers where ours is a list.
    """

    quantity: str
    rule: Rule = "no number"
    published: float | str | list[float] | None = None
    bar: float | str | list[float] | None = None
    within: float = 0.0
    within_share: float = 0.0
    unit: str = ""
    note: str = ""
    reason: str = "the reason is not known"
    erratum: str = ""
    digits: int = 4


class ExperimentTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An experiment of a paper's file.

    Attributes:
        title: what is done, in a few words.
        function: of the paper's module, a function of the bench and the options.
        seconds: about how long it takes.
        needs: experiments of the same paper that come before.
        options: size of the experiment, such as the number of runs.
        notes: findings; templates that options and data fill.
    """

    title: str
    function: str
    seconds: float
    needs: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    notes: tuple[str, ...] = ()


class PaperFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``PAPER.yaml``.

    Attributes:
        title: authors and title.
        published: tables and numbers of the paper that the robot library does not hold.
        stand: settings of the virtual arm, its sensors and drives, and of the procedure.
        experiments: by name, in the order of the paper.
        rows: by key.
    """

    title: str = ""
    published: dict[str, Any] = {}
    stand: dict[str, Any] = {}
    experiments: dict[str, ExperimentTemplate] = {}
    rows: dict[str, RowTemplate]


@cache
def paper_file(paper: str) -> PaperFile:
    """The file of a paper; ``common`` holds rows that several papers share."""
    name = f"{paper}.yaml"
    return checked(parse_yaml((files("armid.papers") / name).read_text(encoding="utf-8"), name), PaperFile, name)


def stand_of(paper: str) -> Any:
    """Settings of a paper's stand, as attributes."""
    return _attributes(paper_file(paper).stand)


def published_of(paper: str) -> Any:
    """Published numbers of a paper, as attributes."""
    return _attributes(paper_file(paper).published)


def _attributes(value: Any) -> Any:
    if isinstance(value, dict) and all(isinstance(key, str) and key.isidentifier() for key in value):
        return SimpleNamespace(**{key: _attributes(item) for key, item in value.items()})
    return value


@dataclass(frozen=True)
class PaperRow:
    """One published number and ours.

    Attributes:
        paper: short name of the arm, such as ``rx60``.
        experiment: such as ``R2``.
        quantity: in words, with the joint.
        published: the paper's number; a text where it is not one number; None where the paper gives none.
        ours: the same, measured on the virtual robot.
        unit: of both; empty for pure numbers.
        verdict: one of `VERDICTS`.
        note: what to mind, and of a worse row the reason.
        bar: what ours was held against, where that is not the published number.
        erratum: such as RX-3, which makes the published number wrong.
    """

    paper: str
    experiment: str
    quantity: str
    published: float | str | None
    ours: float | str
    unit: str
    verdict: Verdict
    note: str = ""
    bar: float | str | None = None
    erratum: str = ""


def verdict(rule: Rule, ours: Any, published: Any, bar: Any = None, within: float = 0.0) -> Verdict:
    """The verdict of a row; lists are held number by number, and the worst counts.

    The published number decides. Where the paper has none, ours is held against the bar, and the verdict is "no number"
    or, beyond the bar, "worse". Nothing else is an excuse: no seed, no noise, no search range.

    Args:
        rule: "at most": worse above the number, better below it, else a match; "at least": the other way round; "near":
            a match within a distance, or if texts are equal; "recovered": the same for what was put into the virtual
            arm, the bar where that is not the published number; "not comparable": an erratum makes the number wrong.
        ours: what was found.
        published: what the paper prints.
        bar: see above.
        within: see `rule`.
    """
    if rule == "not comparable":
        return rule
    if rule == "recovered":
        return "recovered" if _near(ours, published if bar is None else bar, within) else "worse"
    if rule == "no number" and published is not None:
        raise ValueError(f"{published} is published: the row needs a rule")
    target: Any = bar if published is None else published
    if target is None:
        return "no number"
    if rule == "near":
        held, better = _near(ours, target, within), False
    else:
        sign = 1.0 if rule == "at most" else -1.0
        away = sign * np.subtract(ours, target)
        held, better = bool(np.all(away <= 0.0)), bool(np.all(away < 0.0))
    if not held:
        return "worse"
    return "no number" if published is None else "better" if better else "match"


def _near(ours: Any, target: Any, within: float) -> bool:
    return bool(ours == target if isinstance(ours, str) else np.all(np.abs(np.subtract(ours, target)) <= within))


@dataclass(frozen=True)
class PaperOutcome:
    """What an experiment found.

    Attributes:
        rows: published against ours.
        settings: of the stand, and the experiment's options.
        data: whatever later experiments or readers need; plain JSON values.
        notes: findings in sentences, such as why a rank is deficient.
    """

    rows: tuple[PaperRow, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class PaperBench:
    """Where an experiment works, and where its rows are collected.

    Attributes:
        paper, experiment: whose rows are made.
        folder: its own folder, which exists; pictures, fits and logs go there.
        seed: of everything random.
        as_printed: also show what the uncorrected equation or table would give.
        earlier: outcomes of the experiments it needs, by name.
        say: shows one line of progress.
        rows: what has come out so far.
        notes: findings beside those of the paper's file.
    """

    paper: str
    experiment: str
    folder: Path
    seed: int = 0
    as_printed: bool = False
    earlier: Mapping[str, PaperOutcome] = field(default_factory=dict)
    say: Callable[[str], None] = lambda line: None
    rows: list[PaperRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def folder_of(self, experiment: str) -> Path:
        """Folder of an earlier experiment of the same paper."""
        return self.folder.parent / experiment

    def draw(self, figure: theme.Picture, name: str) -> None:
        """Save a picture in the experiment's folder."""
        theme.save(figure, self.folder / name)

    def table(self, name: str, columns: Mapping[str, Sequence[Any] | Array]) -> None:
        """Save a table, such as an author would look for, as Markdown in the experiment's folder.

        Args:
            name: of the file, without its ending.
            columns: cells from top to bottom, by what stands above them.
        """
        rows: list[Sequence[Any]] = [list(columns), ["---"] * len(columns), *zip(*columns.values(), strict=True)]
        cells = [[one if isinstance(one, str) else f"{one:.5g}" for one in row] for row in rows]
        write_text(self.folder / f"{name}.md", "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n")

    def compare(self, row: str | RowTemplate, ours: Any, **given: Any) -> PaperRow:
        """Add a row.

        Args:
            row: key in the paper's file (or in ``common.yaml``), or a template.
            ours: number, text, or numbers of all joints for one cell.
            given: what fills the templates; `published`, `bar`, `within`, `unit` and `rule` are used instead of the
                template's.
        """
        template = self._template(row) if isinstance(row, str) else row
        published, bar = given.pop("published", template.published), given.pop("bar", template.bar)
        rule, within = given.get("rule", template.rule), given.get("within", template.within)
        if template.within_share:
            within = template.within_share * abs(published if bar is None else bar)
        if rule == "not comparable" and not template.erratum:
            raise ValueError(f"{template.quantity}: only an erratum makes a number not comparable")
        found = verdict(rule, ours, published, bar, within)
        words = _words({**given, "ours": ours, "published": published, "bar": bar})
        quantity, note, reason = (text.format(**words) for text in (template.quantity, template.note, template.reason))
        if found == "worse":
            note = f"{note}; worse: {reason}" if note else f"worse: {reason}"
        ours, published, bar = (_cell(value, template.digits) for value in (ours, published, bar))
        about = (given.get("unit", template.unit), found, note, bar, template.erratum)
        self.rows.append(PaperRow(self.paper, self.experiment, quantity, published, ours, *about))
        return self.rows[-1]

    def by_joint(self, row: str, ours: Sequence[float] | Array, **given: Any) -> None:
        """Add a row per joint, `{joint}` in its templates; lists in `given` and in the template are by joint."""
        template = self._template(row)
        each = {"published": template.published, "bar": template.bar, **given}
        for j, value in enumerate(ours):
            own = {key: one[j] if isinstance(one, list | tuple | np.ndarray) else one for key, one in each.items()}
            self.compare(template, value, **{"joint": j + 1, **own})

    def _template(self, key: str) -> RowTemplate:
        rows = paper_file(self.paper).rows
        return rows[key] if key in rows else paper_file("common").rows[key]


class Each(tuple[Any, ...]):
    """Numbers of the joints; formatted one by one: ``0.1 / 0.2 / 0.1``."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return " / ".join(format(value, spec) for value in self)


def _words(values: Mapping[str, Any]) -> dict[str, Any]:
    """What fills a template: lists and arrays so that each number is formatted."""
    return {name: Each(one) if isinstance(one, list | tuple | np.ndarray) else one for name, one in values.items()}


def _cell(value: Any, digits: int) -> float | str | None:
    if isinstance(value, list | tuple | np.ndarray):
        return format(Each(map(float, value)), f".{digits}g")
    return value if value is None or isinstance(value, str) else float(value)


@dataclass(frozen=True)
class Experiment:
    """A part of a paper that can be run.

    Attributes:
        name: such as ``R6``.
        paper: short name of the arm.
        about: title, needs, options and notes.
        function: does it; its result is the outcome's data.
    """

    name: str
    paper: str
    about: ExperimentTemplate
    function: Callable[..., Mapping[str, Any] | None]

    def run(self, bench: PaperBench, **changed: Any) -> PaperOutcome:
        """Run it with the options of the paper's file but for those given."""
        options = {**self.about.options, **changed}
        data = plain(self.function(bench, **options) or {})
        notes = [*(text.format(**_words({**options, **data})) for text in self.about.notes), *bench.notes]
        settings = plain({**paper_file(self.paper).stand, **options})
        return PaperOutcome(tuple(bench.rows), settings, data, tuple(notes))


def experiments_of(paper: str) -> tuple[Experiment, ...]:
    """The experiments of a paper, in its order.

    Raises:
        UnknownNameError: there is no such paper.
    """
    if paper not in PAPERS:
        raise UnknownNameError("paper", paper, [*PAPERS, "all"])
    about = paper_file(paper).experiments
    return tuple(
        Experiment(name, paper, one, resolve_name(f"armid.papers.{paper}:{one.function}"))
        for name, one in about.items()
    )


def save_outcome(outcome: PaperOutcome, path: Path, **about: Any) -> None:
    """Write an outcome and what it was made with."""
    data = {**about, **asdict(outcome)}
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load_outcome(path: Path) -> tuple[PaperOutcome, dict[str, Any]]:
    """Read `save_outcome`'s file: the outcome and what it was made with."""
    data = parse_json(path.read_text(encoding="utf-8"))
    outcome = checked(data, PaperOutcome, str(path))
    return outcome, {name: value for name, value in data.items() if name not in outcome.__dataclass_fields__}
