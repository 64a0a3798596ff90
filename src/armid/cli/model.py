"""`armid model ROBOT`: which parameters a robot has, and which combinations a motion can reveal."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.options import ARM_CHOICE, command, finish, robot_arguments, robot_from

if TYPE_CHECKING:
    from armid.dynamics import Model, View


@command(
    "model",
    "show the base parameters of a robot, in words",
    "Show which parameters can be identified alone, which only in combination, which not at all.",
    *robot_arguments(),
    *ARM_CHOICE,
    arg(
        "--view NAME",
        "another list of parameters: barycentric, modified-newton-euler, or a published set",
        values="armid.dynamics.views:GENERAL",
    ),
)
def model(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    from armid.dynamics import Model, view

    model = Model(robot)
    other = view(model, options.view) if options.view else None
    data = _as_data(model) if options.json else {}
    if other is not None:
        return finish(options, {**data, "view": _view_data(other)}, _describe_view(other))
    return finish(options, data, _describe(model))


def _standard(model: Model) -> int:
    return sum(parameter.kind in ("inertial", "rotor") for parameter in model.parameters)


def _friction_count(model: Model) -> int:
    """Unknown coefficients of the described laws, which need not be linear, and of coupled drives."""
    friction = {parameter.name for parameter in model.parameters if parameter.kind == "friction"}
    coupled = sum(name[2] == "c" for name in friction)
    known = len(friction & set(model.known))
    return coupled - known + sum(len(friction.coefficient_names) for friction in model.robot.friction)


def _springs(model: Model) -> int:
    return len(model.base.groups_of("spring"))


def _as_data(model: Model) -> dict[str, Any]:
    base = model.base
    inertial = {p.name for p in model.parameters if p.kind in ("inertial", "rotor")}
    return {
        "robot": model.robot.name,
        "joints": model.robot.n_joints,
        "joint_names": list(model.robot.joint_names),
        "gravity": model.robot.gravity,
        "standard_parameters": _standard(model),
        "base_parameters": base.count,
        "friction_parameters": _friction_count(model),
        "spring_parameters": _springs(model),
        "groups": [
            {"name": group.name, "expression": group.expression, "unit": group.unit, "terms": _terms(group.terms)}
            for group in base.groups_of("inertial", "rotor")
        ],
        "alone": [name for name in base.alone if name in inertial],
        "combined": [name for name in base.combined if name in inertial],
        "unidentifiable": list(base.no_effect),
        "zero": sorted(model.robot.zero),
        "disagreement": base.disagreement(),
    }


def _terms(pairs: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"parameter": name, "coefficient": value} for name, value in pairs]


def _describe(model: Model) -> Iterable[str]:
    robot, base = model.robot, model.base
    yield f"{robot.name}: {robot.title}" if robot.title else robot.name
    friction, springs = _friction_count(model), _springs(model)
    total = base.count + friction + springs
    parts = f"{base.count} base + {friction} friction"
    yield (
        f"{robot.n_joints} joint{'s' if robot.n_joints > 1 else ''}, {_standard(model)} standard parameters, {parts}"
        + (f" + {springs} spring" if springs else "")
        + f" = {total} to identify"
    )
    if robot.zero:
        yield f"{len(robot.zero)} parameters are taken as zero (--simplify none keeps them)"
    yield ""
    groups = base.groups_of("inertial", "rotor")
    width = max((len(group.name) for group in groups), default=0)
    for number, group in enumerate(groups, start=1):
        words = f"= {group.expression}" if len(group.terms) > 1 else "  alone"
        yield f"{number:>3}  {group.name:<{width}} {words}"
    yield ""
    yield f"no effect on any torque: {', '.join(base.no_effect) or 'none'}"
    springs_absorbed = [name for name in base.combined if name.startswith(("ks", "kl"))]
    if springs_absorbed:
        yield f"springs that gravity hides: {', '.join(springs_absorbed)} (they belong to groups above)"
    yield (
        f"grouped and full model agree to {base.disagreement():.0e}; weakest column kept {base.weakest_kept:.1e}, "
        f"strongest absorbed {base.strongest_absorbed:.0e}"
    )


def _view_data(view: View) -> dict[str, Any]:
    names = view.model.names
    classes = view.classes()
    return {
        "name": view.name,
        "identifiable_combinations": view.identifiable_combinations(),
        "entries": [
            {
                "name": entry,
                "unit": view.units[i],
                "class": classes[i],
                "terms": _terms((names[c], view.matrix[i, c]) for c in view.matrix[i].nonzero()[0]),
            }
            for i, entry in enumerate(view.entries)
        ],
    }


def _describe_view(view: View) -> Iterable[str]:
    classes = view.classes()
    combinations = view.identifiable_combinations()
    count = f"{len(view.entries)} parameters, {combinations} combinations identifiable"
    yield f"{view.model.robot.name}, {view.name}: {count}"
    width = max(len(entry) for entry in view.entries)
    for i, entry in enumerate(view.entries):
        terms = [(view.model.names[c], view.matrix[i, c]) for c in view.matrix[i].nonzero()[0]]
        yield f"  {entry:<{width}}  {classes[i]:<9}  {_sum(terms)}"


def _sum(terms: Sequence[tuple[str, float]]) -> str:
    """Terms as people write a sum."""
    text = ""
    for name, value in terms:
        size = "" if abs(value) == 1.0 else f"{abs(value):.6g} "
        sign = " − " if value < 0.0 else " + " if text else ""
        text += f"{sign}{size}{name}"
    return text.lstrip() or "0"
