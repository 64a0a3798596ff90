"""Recipes that write themselves: what columns are, from their names, units and physics, each guess with its evidence.

A guess is written down only where nothing speaks against it and another reading would be clearly worse. What cannot be
told, such as whether a torque was measured before or after the gear, stays an open line for the person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.escaping import comment
from armid.logs.columns import (
    Balance,
    TableColumn,
    balance,
    correlation,
    counts,
    derivative,
    numeric_columns,
    read_name,
    runs,
    smoothed,
)
from armid.logs.files import table_of
from armid.logs.log import LogError
from armid.logs.table import UNITS, Table, unit
from armid.logs.turns import unwound
from armid.robot.robot import Robot

LIKE = 0.98  # correlation of a column with the derivative of another from which it is that derivative
CLOSE = 0.03  # by which a ratio of units may differ from what it should be
STEPS_S = {"s": (2e-4, 0.1), "ms": (1.5, 100.0), "us": (150.0, 1e5), "ns": (1.5e5, 1e8)}  # usual, in each unit
COMMANDED = {"target", "ref", "reference", "cmd", "command", "commanded", "des", "desired", "setpoint", "goal"}


@dataclass(frozen=True)
class Guess:
    """One entry of the recipe.

    Attributes:
        entry: of the recipe, such as ``columns.position``.
        value: what is guessed; None where it stays open.
        confidence: from 0 to 1.
        evidence: what speaks for it, or why it is open.
        likely: what it may be where it is open, for a person to look at.
    """

    entry: str
    value: Any
    confidence: float
    evidence: str
    likely: Any = None


@dataclass(frozen=True)
class Guesses:
    """What a file's columns seem to be; `text` is the recipe."""

    source: str
    joints: tuple[str, ...]
    guesses: tuple[Guess, ...]

    def __getitem__(self, entry: str) -> Any:
        """The value of an entry, None where it is open or not there."""
        return next((guess.value for guess in self.guesses if guess.entry == entry), None)

    @property
    def open(self) -> tuple[Guess, ...]:
        """What a person has to say."""
        return tuple(guess for guess in self.guesses if guess.value is None)

    def text(self) -> str:
        """The recipe as YAML, with the evidence as comments and open entries marked."""
        lines = [
            f"# {comment(self.source)}: written by armid recipe; complete the lines that are marked OPEN",
            "armid: 1",
        ]
        lines.append(f"joints: {json.dumps(self.joints)}")
        for section in ("", "columns", "units"):
            own = [g for g in self.guesses if g.entry.rpartition(".")[0] == section]
            if section and any(guess.value is not None for guess in own):
                lines.append(f"{section}:")
            for guess in own:
                name, indent = guess.entry.rpartition(".")[2], "  " if section else ""
                if guess.value is None:
                    lines.append(f"# OPEN {guess.entry}: {comment(guess.evidence)}")
                else:
                    sure = f"{100 * guess.confidence:.0f} %: {comment(guess.evidence)}"
                    lines.append(f"{indent}{name}: {json.dumps(guess.value)}   # {sure}")
        return "\n".join(lines) + "\n"


def guess_recipe(paths: Sequence[str | Path], robot: Robot) -> Guesses:
    """What the columns of tables with the same columns are, for logs of a robot; the first one tells.

    Raises:
        LogError: a file cannot be read as a table, needs no recipe, or has other columns than the first.
    """
    table = table_of(Path(paths[0]))
    for path in paths[1:]:
        if table_of(Path(path)).names != table.names:
            raise LogError(str(path), "", f"has other columns than {table.source}; write a recipe for each of them")
    if table.info is not None or {"time", f"position.{robot.joint_names[0]}"} <= set(table.names):
        raise LogError(table.source, "", "needs no recipe: it says itself what it holds")
    return _Guesser(table, robot).guesses()


@dataclass
class _Guesser:
    """Says one entry after the other."""

    table: Table
    robot: Robot
    found: list[Guess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = [TableColumn(k + 1, name, values) for k, name, values in numeric_columns(self.table)]
        self.named = any(not column.name.isdigit() for column in self.columns)
        for column in self.columns if self.named else []:
            read_name(column, self.robot.joint_names)

    def say(self, entry: str, value: Any, confidence: float, evidence: str, likely: Any = None) -> None:
        self.found.append(Guess(entry, value, confidence, evidence, likely))

    def guesses(self) -> Guesses:
        step = self._time()
        if step is not None:
            groups = self._groups() if self.named else self._by_derivative(step)
            self._motion(groups, step)
        if all(guess.value is not None and guess.entry != "columns.position" for guess in self.found):
            for entry in ("columns.position", "effort"):
                self.say(entry, None, 0.0, "no names that tell it")
        return Guesses(self.table.source, self.robot.joint_names, tuple(self.found))

    def _time(self) -> float | None:
        """Say the column and unit of time; the usual step [s]."""
        likely = [c for c in self.columns if runs(c.values)]
        own = [c for c in likely if c.channel == "time"]
        if self.named and not own:
            own = [c for c in likely if not c.channel and not counts(c.values)]
        elif not self.named:
            own = [c for c in likely if not counts(c.values)]
        if len(own) != 1:
            names = f" ({', '.join(str(c.name) for c in own)})" if own else ""
            self.say(
                "columns.time", None, 0.0, f"{len(own)} columns run like a clock{names}; name one, or give the rate"
            )
            return None
        column = own[0]
        step = float(np.median(np.diff(column.values)))
        fits = [name for name, (low, high) in STEPS_S.items() if low <= step <= high]
        if unit(column.unit, "time") is not None and column.unit:
            fits = [column.unit]
        if len(fits) != 1:
            self.say("units.time", None, 0.0, f"the usual step is {step:g}, which may be more than one unit")
            return None
        self.say("columns.time", self._place([column]), 0.95, f"runs evenly, step {step:g}")
        self.say("units.time", fits[0], 0.9, "by its name" if column.unit else f"{step:g} is a usual step in it")
        return step * UNITS["time"][fits[0]]

    def _place(self, columns: Sequence[TableColumn]) -> Any:
        places = [c.name if self.named else c.number for c in columns]
        return places[0] if len(columns) == 1 else places

    def _groups(self) -> dict[str, list[TableColumn]]:
        """Columns of each channel in the order of the joints, by their names; those that are not clear stay open."""
        kinds: dict[tuple[str, frozenset[str]], dict[int | str, TableColumn]] = {}
        twice = set()
        for c in self.columns:
            if c.channel and c.channel != "time" and c.joint is not None and not c.words & COMMANDED:
                kind = kinds.setdefault((c.channel, c.words), {})
                twice |= {(c.channel, c.words)} if c.joint in kind else set()
                kind[c.joint] = c
        result: dict[str, list[TableColumn]] = {}
        count, names = self.robot.n_joints, list(self.robot.joint_names)
        for channel in dict.fromkeys(channel for channel, _ in kinds):
            fitting = []
            for (own, words), members in kinds.items():
                orders: list[list[Any]] = [names, list(range(count)), list(range(1, count + 1))]
                order = next((o for o in orders if set(o) == set(members)), None)
                if own == channel and order is not None and (own, words) not in twice:
                    fitting.append([members[key] for key in order])
            if len(fitting) == 1:
                result[channel] = fitting[0]
            else:
                near = [str(c.name) for (own, _), members in kinds.items() if own == channel for c in members.values()]
                why = f"{len(fitting)} groups of {count} columns have such names; say which of {', '.join(near)}"
                self.say(f"columns.{channel}", None, 0.0, why)
        return result

    def _by_derivative(self, step: float) -> dict[str, list[TableColumn]]:
        """Columns without names: positions have a derivative among the others, effort is what balances them."""
        moving = [c for c in self.columns if np.ptp(c.values) > 0.0 and not runs(c.values)]
        slopes = [derivative(c.values, step) for c in moving]
        smooth = [smoothed(c.values, step) for c in moving]
        child = {
            (a, b)
            for a in range(len(moving))
            for b in range(len(moving))
            if a != b and correlation(slopes[a], smooth[b]) > LIKE
        }
        starts = sorted(a for a, _ in child if not any(end == a for _, end in child))
        pairs = [(a, [b for first, b in child if first == a]) for a in starts]
        single = all(len(ends) == 1 for _, ends in pairs) and len({ends[0] for _, ends in pairs}) == len(pairs)
        if len(pairs) != self.robot.n_joints or not single:
            why = f"{len(pairs)} columns have a derivative among the others, for {self.robot.n_joints} joints"
            self.say("columns.position", None, 0.0, why)
            return {}
        taken = {index for pair in child for index in pair}
        rest = [moving[k] for k in range(len(moving)) if k not in taken]
        return {
            "position": [moving[a] for a, _ in pairs],
            "velocity": [moving[ends[0]] for _, ends in pairs],
            "rest": rest,
        }

    def _motion(self, groups: Mapping[str, list[TableColumn]], step: float) -> None:
        """Say position, velocity and effort as far as names, units and physics agree."""
        if "position" not in groups:
            return
        position = groups["position"]
        kinds, least = ("effort", "current", "rest"), len(position)
        efforts = next((groups[name] for name in kinds if len(groups.get(name, ())) >= least), [])
        values = np.column_stack([c.values for c in position])
        tries = self._position_units(position, values)
        motions = {name: unwound(factor * values)[0] for name, factor in tries.items()}
        found: dict[str, Balance] = {}
        if efforts:
            torque = np.column_stack([c.values for c in efforts])
            found = {name: balance(self.robot, motion, torque, step) for name, motion in motions.items()}
        best = self._best_unit(tries, found)
        if best is None:
            why = f"may be in {' or '.join(tries) or 'no unit that is known'}, and the effort does not tell"
            self._leave_open(groups, why)
            return
        told = found.get(best)
        if not self.named and (told is None or not told.order_is_clear):
            pair = f"{self._place(position)} with derivatives {self._place(groups['velocity'])}"
            why = f"columns {pair}; which belongs to which joint does not show in the effort, so look at their order"
            self._leave_open(groups, why)
            self.say("units.position", best, 0.9, "by range")
            return
        errors = "" if told is None else f"; dynamics leave {told.worst:.2f} of the effort unexplained"
        self.say(
            "columns.position", self._place(position), 0.9, ("by name" if self.named else "by derivatives") + errors
        )
        self.say("units.position", best, 0.9, "by name" if position[0].unit else "by range and balance of torques")
        self._velocity(groups, motions[best], step)
        self._effort(groups, told)

    def _leave_open(self, groups: Mapping[str, list[TableColumn]], why: str) -> None:
        """Positions, and what depends on them, are for a person to look at."""
        count = len(groups["position"])
        self.say("columns.position", None, 0.0, why, self._place(groups["position"]))
        for kind in ("velocity", "effort", "current", "rest"):
            if len(columns := groups.get(kind, ())) >= count:
                entry = f"columns.{'effort' if kind == 'rest' else kind}"
                place = self._place(columns[:count])
                self.say(entry, None, 0.0, f"columns {place}, to be judged with the positions", place)

    def _position_units(self, columns: Sequence[TableColumn], values: Array) -> dict[str, float]:
        """Units that the positions may have, with their values in SI."""
        names = {c.unit for c in columns}
        factor = unit(columns[0].unit, "position") if columns[0].unit else None
        if len(names) == 1 and factor is not None:
            return {columns[0].unit: factor.factor}
        most = float(np.abs(values).max())
        return {name: UNITS["position"][name] for name, limit in (("rad", 13.0), ("deg", 750.0)) if most < limit}

    def _best_unit(self, tries: Mapping[str, float], found: Mapping[str, Balance]) -> str | None:
        if len(tries) == 1:
            return next(iter(tries))
        errors = sorted((balance.mean, name) for name, balance in found.items())
        if len(errors) < 2 or not errors[0][0] < 0.6 * errors[1][0]:
            return None
        return errors[0][1]

    def _velocity(self, groups: Mapping[str, list[TableColumn]], position: Array, step: float) -> None:
        if "velocity" not in groups:
            return
        ratios = []
        for column, q in zip(groups["velocity"], position.T, strict=True):
            slope, own = derivative(q, step), smoothed(column.values, step)
            if np.ptp(q) > 1e-3 and correlation(slope, own) < LIKE:
                why = f"{column.name} is not the derivative of its position"
                self.say("columns.velocity", None, 0.0, why)
                return
            if np.ptp(q) > 1e-3:
                ratios.append(float(slope @ own / (own @ own)))
        usual = float(np.median(ratios)) if ratios else 0.0
        near = [n for n, f in UNITS["velocity"].items() if abs(usual / f - 1.0) < CLOSE and n[0] not in "mc"]
        if not near or max(abs(ratio / usual - 1.0) for ratio in ratios) > CLOSE:
            self.say(
                "columns.velocity", None, 0.0, f"the derivative of the positions is {usual:.4g} times these columns"
            )
            return
        self.say("columns.velocity", self._place(groups["velocity"]), 0.95, "derivative of the positions")
        self.say("units.velocity", near[0], 0.95, f"one of it is {usual:.4g} rad/s")

    def _effort(self, groups: Mapping[str, list[TableColumn]], told: Balance | None) -> None:
        """Say where effort is; what it is only if the names do."""
        kind = next((name for name in ("current", "effort", "rest") if name in groups), "")
        if kind == "rest" and told is not None and told.columns is not None:
            columns = [groups["rest"][k] for k in told.columns]
            why = f"columns {self._place(columns)} balance the joints; say whether that is a torque or a current"
            self.say("effort", None, 0.0, why)
            self.say("columns.effort", None, 0.0, "see effort", self._place(columns))
            return
        if kind not in ("current", "effort") or told is None:
            self.say(
                "effort", None, 0.0, "no column that balances the motion; joint torque, motor torque, current, none"
            )
            return
        if not told.in_order:
            self.say(f"columns.{kind}", None, 0.0, "columns do not balance the joints in the order of their names")
            return
        units = {c.unit for c in groups[kind]}
        own = units.pop() if len(units) == 1 else ""
        known = bool(own) and unit(own, kind) is not None
        self.say(
            f"columns.{kind}",
            self._place(groups[kind]),
            0.9,
            f"by name; dynamics leave {told.worst:.2f} of it unexplained",
        )
        if known:
            self.say(f"units.{kind}", own, 0.95, "by name")
        words = frozenset().union(*(c.words for c in groups[kind]))
        if kind == "current":
            self.say("effort", "current", 0.95, "by name; current_gain is needed for torque")
            self.say(
                "current_gain", None, 0.0, "N m per A of each joint; known from the maker, or found by armid gains"
            )
        elif words & {"motor", "mot"}:
            self.say("effort", "motor torque", 0.9, "by name; gear_ratio is needed")
        elif words & {"joint", "jnt", "link", "ext"} and known:
            self.say("effort", "joint torque", 0.8, "by name and unit")
        else:
            self.say("effort", None, 0.0, "say joint torque (after the gear), motor torque (before it) or current")
