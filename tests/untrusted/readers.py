"""Everything that armid reads: a good example of each, how it is mutated, and what is done with what was read."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.io import savemat

import armid
from armid.control.reference import read_tool_poses
from armid.dynamics.model import Motion
from armid.estimation import identify
from armid.estimation.consistent.prior import parse_prior
from armid.estimation.fit import load_fit
from armid.excitation import load_plan
from armid.excitation.trajectory import load_trajectory, save_trajectory
from armid.exporting.arm import arm_of
from armid.exporting.c import c_header
from armid.fleet.day import ArmDay
from armid.fleet.description import load_fleet
from armid.fleet.page import fleet_page
from armid.fleet.partitions import find_partitions
from armid.fleet.reduce import reduce_partition
from armid.fleet.result import FleetResult
from armid.logs import Recipe, read_log, write_log
from armid.payload import identify_payload
from armid.payload.body import load_reference
from armid.payload.estimate import load_payload
from armid.run.settings import load_settings
from armid.signals.doctor import examine
from armid.signals.pipeline import load_pipeline, process
from armid.torque.known import given_friction
from armid.validation.auditing import audit
from armid.validation.result import load_validation
from tests.exporting.arms import URDF, small_fit
from tests.fleet.arms import write_fleet
from tests.fleet.fleets import made_up
from tests.reporting import arms
from tests.untrusted.mutations import mutated_bytes, mutated_csv, mutated_json, mutated_xml, mutated_yaml

RECIPE = "joints: [a, b]\neffort: joint torque\ncolumns: {time: t, position: [qa, qb], effort: [ea, eb]}\n"
NAMES = ("t", "qa", "qb", "ea", "eb")
MJCF = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="one"><joint name="a" axis="0 0 1" range="-1 1"/>
<inertial pos="0 0 0.1" mass="2" diaginertia="0.01 0.01 0.01"/>
<body name="two" pos="0 0 0.3"><joint name="b" axis="0 1 0" damping="0.5" frictionloss="0.2" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body>
</worldbody></mujoco>"""


class Reader(NamedTuple):
    """A kind of file.

    Attributes:
        name: of a file of this kind; others that it needs lie beside it.
        mutate: makes another content from a good one and a source of chance.
        use: reads the file and does something with it.
    """

    name: str
    mutate: Callable[[bytes, Any], bytes]
    use: Callable[[Path], object]


def _robot(path):
    robot = armid.load_robot(path)
    model = armid.Model(robot)
    if robot.nominal_inertia is not None or robot.published:
        audit(robot)
    return model.base.count, repr(robot), robot._repr_html_()


def _fit(path):
    fit = load_fit(path)
    rng = np.random.default_rng(0)
    fit.predict(Motion(*rng.normal(size=(3, 5, fit.robot.n_joints))))
    audit(fit)
    return fit.summary(), c_header(arm_of(fit, complete=False), ["fit"])


def _log(path, recipe=None):
    log = read_log(path, recipe)
    examine(log)
    return process(log)


def _with_recipe(path):
    return _log(path, Recipe.load(path.parent / "recipe.yaml"))


def _recipe(path):
    return _log(path.parent / "foreign.csv", Recipe.load(path))


def _fleet(path):
    fleet = load_fleet(path)
    return [reduce_partition(fleet, one) for one in find_partitions(fleet)[:1]]


def _plan(path):
    plan = load_plan(path)
    return plan.summary(), plan.trajectory.at([0.0, 0.1])


def _planar(path):
    return armid.load_robot(path.parent / "planar.yaml")


READERS = {
    "robot.yaml": Reader("robot.yaml", mutated_yaml, _robot),
    "urdf": Reader("small.urdf", mutated_xml, _robot),
    "mjcf": Reader("arm.xml", mutated_xml, _robot),
    "plan": Reader("plan.json", mutated_json, _plan),
    "trajectory": Reader("trajectory.json", mutated_json, lambda path: load_trajectory(path).at([0.0, 0.1])),
    "fit": Reader("fit.json", mutated_json, _fit),
    "fit by default": Reader("mixed.json", mutated_json, _fit),
    "validation": Reader("validation.json", mutated_json, lambda path: load_validation(path).summary()),
    "payload": Reader("payload.json", mutated_json, lambda path: load_payload(path).summary()),
    "friction": Reader("friction.json", mutated_json, lambda path: given_friction(path, _planar(path))),
    "csv log": Reader("log.csv", mutated_csv, _log),
    "csv of others": Reader("foreign.csv", mutated_csv, _with_recipe),
    "parquet": Reader("log.parquet", mutated_bytes, _log),
    "mat": Reader("log.mat", mutated_bytes, _with_recipe),
    "mcap": Reader("log.mcap", mutated_bytes, _log),
    "recipe": Reader("recipe.yaml", mutated_yaml, _recipe),
    "signals": Reader("signals.yaml", mutated_yaml, lambda path: process(_log_of(path), load_pipeline(str(path)))),
    "prior": Reader("prior.yaml", mutated_yaml, lambda path: parse_prior(str(path), _planar(path))),
    "reference": Reader("reference.yaml", mutated_yaml, load_reference),
    "settings": Reader("settings.yaml", mutated_yaml, load_settings),
    "tool poses": Reader("poses.csv", mutated_csv, read_tool_poses),
    "fleet.yaml": Reader("fleet.yaml", mutated_yaml, _fleet),
    "fleet.json": Reader("fleet.json", mutated_json, lambda path: fleet_page(FleetResult.load(path))),
    "arm-day": Reader("day.npz", mutated_bytes, lambda path: ArmDay.from_bytes(path.read_bytes())),
}


def _log_of(path):
    return read_log(path.parent / "log.csv")


def write_examples(folder):
    """A good file of each kind."""
    made = arms.evidence(folder)
    log = made.logs[1]
    robot = made.fit.robot
    made.fit.save(folder / "fit.json")
    identify(robot, [process(made.logs[0], robot=robot)]).save(folder / "mixed.json")
    made.check.save(folder / "validation.json")
    made.plan.save(folder / "plan.json")
    save_trajectory(made.plan.trajectory, folder / "trajectory.json")
    identify_payload(made.fit, [log]).save(folder / "payload.json")
    for suffix in ("csv", "parquet", "mcap"):
        write_log(log, folder / f"log.{suffix}")
    library = resources.files("armid.robot.library") / "ir361.yaml"
    (folder / "robot.yaml").write_bytes(library.read_bytes())
    (folder / "recipe.yaml").write_text(RECIPE)
    table = np.column_stack([log.time, log["position"], log["effort"]])
    np.savetxt(folder / "foreign.csv", table, delimiter=",", header=",".join(NAMES), comments="", fmt="%.6g")
    savemat(folder / "log.mat", dict(zip(NAMES, table.T, strict=True)), do_compression=True)
    (folder / "small.urdf").write_text(URDF)
    (folder / "arm.xml").write_text(MJCF)
    (folder / "signals.yaml").write_text("[{step: LowPass, cutoff_hz: 5.0}]\n")
    link = "{mass: 2.0, com: [0.25, 0.02, 0], inertia: {xx: 0.01, yy: 0.06, zz: 0.06, xy: 0, xz: 0, yz: 0}}"
    (folder / "prior.yaml").write_text(f"strength: 0.1\nlinks:\n- {link}\n- {link}\n")
    (folder / "reference.yaml").write_text(link + "\n")
    (folder / "settings.yaml").write_text("robot: planar.yaml\nlog: [log.csv]\nto: [c, urdf]\nperiods: 4\nseed: 1\n")
    rows = [f"{0.1 * k},{0.5 + 0.01 * k},0.1,0.6,1,0,0,0" for k in range(20)]
    (folder / "poses.csv").write_text("\n".join(["time,x,y,z,qw,qx,qy,qz", *rows]) + "\n")
    entries = [
        {"number": n, "law": "coulomb-viscous", "per_direction": False, "coefficients": {"fv": 1.0, "fc": 2.0}}
        for n in (1, 2)
    ]
    friction = {"format": "armid friction 1", "armid": "0", "robot": robot.name, "joints": entries}
    (folder / "friction.json").write_text(json.dumps(friction))
    fleet = load_fleet(write_fleet(folder, 1, 1, seconds=5.0))
    (folder / "day.npz").write_bytes(reduce_partition(fleet, find_partitions(fleet)[0]).to_bytes())
    made_up(2, 5, faults=1, lost=1).save(folder / "fleet.json")
    small_fit(folder).save(folder / "links.json")
