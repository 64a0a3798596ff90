"""An arm with the payload in its hand: the same model, to be used like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError
from armid.notes import note
from armid.robot.inertia import change_of_frame
from armid.robot.robot import Robot, inertial_names

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.payload.estimate import PayloadEstimate


def loaded_fit(fit: Fit, payload: PayloadEstimate) -> Fit:
    """The fit with a payload that was estimated with it.

    Links, rotors and springs stay as they were, the payload joins the last link, friction of the joints that moved is
    that found with the payload. The covariance knows that errors of arm and payload are related. Factor, weights and
    identifiability stay those of the arm's own data.
    """
    if tuple(fit.history.get("data_sha256", ())) != payload.fit_sha256 or len(payload.loaded_values) != len(fit.values):
        raise ArmidError(
            "the payload was estimated with another fit of the arm; attach it to that one, or estimate it again"
        )
    moved = {joint.name: joint for joint in payload.joints if joint.moved}
    rms = [
        moved[name].rms_with if name in moved else before
        for name, before in zip(fit.robot.joint_names, fit.residual_rms.tolist(), strict=True)
    ]
    made = attached(fit, payload.in_drive_units, payload.loaded_values, payload.loaded_covariance)
    nominal = _with_payload(fit.robot, payload.parameters)
    prints = [*fit.history.get("data_sha256", ()), *payload.data_sha256]
    return replace(
        made,
        robot=replace(made.robot, nominal_inertia=nominal),
        residual_rms=np.array(rms),
        gain_effects=None if fit.gain_effects is None else fit.gain_effects + base_map(fit) @ payload.gain_effects,
        options={**fit.options, "payload": payload.parameters.tolist()},
        notes=(*fit.notes, note("payload.attached", mass=payload.mass)),
        history={**fit.history, "data_sha256": prints},
    )


def attached(fit: Fit, parameters: Array, values: Array, covariance: Array) -> Fit:
    """The fit with other values, and with a payload in what its values do not hold: known parameters, load, links."""
    shift = base_shift(fit, parameters)
    link = change_of_frame(fit.robot.tool) @ parameters
    names = inertial_names(fit.robot.n_joints)
    known = fit.torque_model.model.known
    added = dict(zip(names, link.tolist(), strict=True))
    held = {name: known[name] + part for name, part in added.items() if name in known}
    robot = fit.robot
    if held:
        robot = replace(robot, zero=robot.zero - set(held), known={**robot.known, **held})
    links = fit.standard_parameters
    if links is not None:
        links = {name: value + added.get(name, 0.0) for name, value in links.items()}
    load = None
    if fit.load_values is not None:
        moved = dict(zip(fit.columns, shift.tolist(), strict=True))
        load = {name: value + moved.get(name, 0.0) for name, value in fit.load_values.items()}
    return replace(fit, robot=robot, values=values, covariance=covariance, standard_parameters=links, load_values=load)


def base_shift(fit: Fit, parameters: Array) -> Array:
    """What a payload adds to the fit's values."""
    return np.asarray(base_map(fit) @ parameters)


def base_map(fit: Fit) -> Array:
    """(values, 10): the fit's values per unit of the payload's parameters in the tool frame."""
    base = fit.torque_model.model.base
    to_link = change_of_frame(fit.robot.tool)
    index = {name: i for i, name in enumerate(base.names)}
    result = np.zeros((len(fit.names), 10))
    for name, row in zip(inertial_names(fit.robot.n_joints), to_link, strict=True):
        if name in index:
            result[: len(base.kept)] += np.outer(base.matrix[:, index[name]], row)
    return result


def loaded_robot(robot: Robot, parameters: Array) -> Robot:
    """The description with a payload: in the nominal inertia it states, and on its virtual arm."""
    virtual = None if robot.virtual is None else replace(robot.virtual, payload=np.array(parameters, dtype=float))
    return replace(robot, nominal_inertia=_with_payload(robot, parameters), virtual=virtual)


def _with_payload(robot: Robot, payload: Array) -> Array | None:
    """The nominal inertia with a payload on the last link; None where none is stated."""
    if robot.nominal_inertia is None:
        return None
    result = np.array(robot.nominal_inertia, dtype=float)
    result[robot.n_joints - 1] += change_of_frame(robot.tool) @ payload
    return result
