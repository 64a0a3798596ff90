"""What a reproduction is made of: experiments, the bench they run on, and rows "published against ours".

One module per paper (``armid.papers.rx60`` and so on) holds ``EXPERIMENTS``, a tuple of `Experiment`, in the order of
the paper's sections. Each has a function of a `Bench` that returns an `Outcome`::

    def friction(bench: Bench) -> Outcome:
        arm = VirtualRobot(load_robot("pa10"), rate_hz=400.0, seed=bench.seed)
        ...
        bench.draw(figure, "friction.png")
        row = bench.at_most("largest distance of a curve from the truth", 0.8, published=None, bar=4.0, unit="sigma")
        return Outcome(rows=(row,), settings={"rate_hz": 400.0}, data={"coefficients": …})

    EXPERIMENTS = (Experiment("R6", "pa10", "Friction of seven joints", friction, seconds=30.0), …)

Published tables that the robot library does not hold lie in ``papers/tables/PAPER.yaml``; see `table`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from armid import theme
from armid.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICTS = ("better", "match", "worse", "not comparable")


@dataclass(frozen=True)
class Row:
    """One published number and ours.

    Attributes:
        paper: short name of the arm, such as ``rx60``.
        experiment: such as ``R2``.
        quantity: in words, with the joint.
        published: the paper's number; a text where it is not one number; None where the paper gives none.
        ours: the same, measured on the virtual robot.
        unit: of both; empty for pure numbers.
        verdict: one of `VERDICTS`.
        note: why, or what to mind; names the erratum (such as RX-3) where the published number is wrong.
        bar: what ours was held against, where that is not the published number.
    """

    paper: str
    experiment: str
    quantity: str
    published: float | str | None
    ours: float | str
    unit: str
    verdict: str
    note: str = ""
    bar: float | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict {self.verdict!r}")


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes:
        rows: published against ours.
        settings: what the paper leaves open and was chosen here.
        data: whatever later experiments or readers need; plain JSON values.
        notes: findings in sentences, such as why a rank is deficient.
    """

    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """Where an experiment works.

    Attributes:
        paper, experiment: whose rows are made.
        folder: its own folder, which exists; pictures, fits and logs go there.
        seed: of everything random.
        as_printed: also show what the uncorrected equation or table would give.
        earlier: outcomes of the experiments it needs, by name.
        say: shows one line of progress.
    """

    paper: str
    experiment: str
    folder: Path
    seed: int = 0
    as_printed: bool = False
    earlier: Mapping[str, Outcome] = field(default_factory=dict)
    say: Callable[[str], None] = lambda line: None

    def folder_of(self, experiment: str) -> Path:
        """Folder of an earlier experiment of the same paper."""
        return self.folder.parent / experiment

    def draw(self, figure: Figure, name: str) -> None:
        """Save a picture in the experiment's folder."""
        theme.save(figure, self.folder / name)

    def row(
        self,
        quantity: str,
        *,
        ours: float | str,
        verdict: str,
        published: float | str | None = None,
        unit: str = "",
        note: str = "",
        bar: float | None = None,
    ) -> Row:
        """A row with its verdict given."""
        if isinstance(ours, float | int):
            ours = float(ours)
        return Row(self.paper, self.experiment, quantity, published, ours, unit, verdict, note, bar)

    def at_most(
        self, quantity: str, ours: float, *, published: float | None, bar: float | None = None, **words: str
    ) -> Row:
        """A row of something that should be small.

        Worse above `bar` (above the published number where there is no bar), else better below the published number,
        else a match.
        """
        return self.row(
            quantity, ours=ours, published=published, bar=bar, verdict=_verdict(ours, published, bar), **words
        )

    def at_least(
        self, quantity: str, ours: float, *, published: float | None, bar: float | None = None, **words: str
    ) -> Row:
        """A row of something that should be large; see `at_most`."""
        negative = [None if value is None else -value for value in (published, bar)]
        return self.row(quantity, ours=ours, published=published, bar=bar, verdict=_verdict(-ours, *negative), **words)

    def near(
        self, quantity: str, ours: float, *, published: float, within: float, unit: str = "", note: str = ""
    ) -> Row:
        """A row of something that should be the published number, give or take `within` (absolute)."""
        verdict = "match" if abs(ours - published) <= within else "worse"
        return self.row(quantity, ours=ours, published=published, verdict=verdict, unit=unit, note=note)


def _verdict(ours: float, published: float | None, bar: float | None) -> str:
    if not math.isfinite(ours):
        return "worse"
    if published is None and bar is None:
        return "not comparable"
    limit = bar if bar is not None else published
    if limit is not None and ours > limit:
        return "worse"
    return "better" if published is not None and ours < published else "match"


@dataclass(frozen=True)
class Experiment:
    """A part of a paper that can be run.

    Attributes:
        name: such as ``R6``.
        paper: short name of the arm.
        title: what is done, in a few words.
        run: does it.
        needs: names of earlier experiments of the same paper.
        seconds: about how long it takes, for the remaining time.
    """

    name: str
    paper: str
    title: str
    run: Callable[[Bench], Outcome]
    needs: tuple[str, ...] = ()
    seconds: float = 20.0


def table(paper: str) -> Any:
    """Published tables of a paper, ``papers/tables/PAPER.yaml``."""
    return yaml.safe_load((files("armid.papers") / "tables" / f"{paper}.yaml").read_text(encoding="utf-8"))


def save_outcome(outcome: Outcome, path: Path, **about: Any) -> None:
    """Write an outcome and what it was made with."""
    data = {
        **about,
        "rows": [asdict(row) for row in outcome.rows],
        "settings": dict(outcome.settings),
        "notes": list(outcome.notes),
        "data": dict(outcome.data),
    }
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load_outcome(path: Path) -> tuple[Outcome, dict[str, Any]]:
    """Read `save_outcome`'s file: the outcome and what it was made with."""
    data = json.loads(path.read_text(encoding="utf-8"))
    rows = tuple(Row(**row) for row in data.pop("rows"))
    outcome = Outcome(rows, data.pop("settings"), data.pop("data"), tuple(data.pop("notes")))
    return outcome, data
