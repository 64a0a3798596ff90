"""Everything that armid reads: a good example of each, how it is mutated, and what is done with what was read."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy.io import savemat

import armid
from armid.control.reference import read_tool_poses
from armid.dynamics.model import Motion
from armid.estimation import identify
from armid.estimation.consistent.prior import parse_prior
from armid.estimation.fit import load_fit
from armid.excitation import link_capsules, load_plan
from armid.excitation.trajectory import load_trajectory, save_trajectory
from armid.exporting import export
from armid.exporting.arm import arm_of
from armid.exporting.c import c_header
from armid.files import plain
from armid.fleet.day import ArmDay
from armid.fleet.description import load_fleet
from armid.fleet.page import fleet_page
from armid.fleet.partitions import find_partitions
from armid.fleet.reduce import reduce_partition
from armid.fleet.result import FleetResult
from armid.logs import Recipe, read_log, write_log
from armid.monitoring.detector import Detector, calibrate, load_limits
from armid.monitoring.recordings import stretches
from armid.papers.bench import PaperOutcome, save_outcome
from armid.papers.reproduce import _kept
from armid.payload import identify_payload
from armid.payload.body import load_reference
from armid.payload.estimate import load_payload
from armid.reporting import Evidence, build
from armid.reporting.evidence import load_mapping
from armid.run.settings import load_settings, make_settings
from armid.signals.doctor import examine
from armid.signals.pipeline import load_pipeline, process
from armid.studio.folder import read_settings
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


def _shape(path):
    return link_capsules(armid.load_robot(path.parent / f"{path.suffix[1:]}.urdf"))


def _limits(path):
    still = np.zeros((1, 2))
    return Detector(load_fit(path.parent / "fit.json"), load_limits(path)).step(still, still, still, 0.01).over


def _part_of_a_run(path):
    return build(Evidence(fit=load_fit(path.parent / "fit.json"), **{path.stem: load_mapping(path)}))


def _own(path):
    kind = path.suffix[1:].replace("xml", "mjcf")
    with TemporaryDirectory() as folder:
        return export(load_fit(path.parent / "links.json"), [kind], folder, **{kind: path}).summary()


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
    "stl": Reader("part.stl", mutated_bytes, _shape),
    "obj": Reader("part.obj", mutated_bytes, _shape),
    "bag": Reader("bag/bag.db3", mutated_bytes, lambda path: _log(path.parent)),
    "metadata of a bag": Reader("bag/metadata.yaml", mutated_yaml, lambda path: _log(path.parent)),
    "limits": Reader("limits.json", mutated_json, _limits),
    "warmup": Reader("warmup.json", mutated_json, _part_of_a_run),
    "tracking": Reader("tracking.json", mutated_json, _part_of_a_run),
    "audit": Reader("audit.json", mutated_json, _part_of_a_run),
    "inspection": Reader("inspection.json", mutated_json, _part_of_a_run),
    "urdf to complete": Reader("own.urdf", mutated_xml, _own),
    "mjcf to complete": Reader("own.xml", mutated_xml, _own),
    "paper": Reader("paper.json", mutated_json, lambda path: _kept(path, {"key": "x"})),
    "settings of a run": Reader("finished/run.json", mutated_json, lambda path: read_settings(path.parent)),
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
    links = small_fit(folder)
    links.save(folder / "links.json")
    (folder / "own.urdf").write_text(URDF)
    export(links, ["mjcf"], folder / "exported")
    next((folder / "exported").glob("*.xml")).rename(folder / "own.xml")
    rmtree(folder / "exported")
    _write_shapes(folder)
    _write_bag(log, folder / "bag")
    _write_parts_of_a_run(made, folder)


def _write_shapes(folder):
    """A tetrahedron as STL and as OBJ, and an arm with each."""
    corners = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 3]])
    faces = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    facets = ["facet normal 0 0 0 outer loop", "endloop endfacet"]
    text = [facets[0] + "".join(f"\nvertex {corners[k][0]} {corners[k][1]} {corners[k][2]}" for k in f) for f in faces]
    (folder / "part.stl").write_text(f"\n{facets[1]}\n".join(["solid part", *text, "endsolid part"]))
    rows = [f"v {x} {y} {z}" for x, y, z in corners]
    rows += [f"f {' '.join(str(k + 1) for k in face)}" for face in faces]
    (folder / "part.obj").write_text("\n".join(rows) + "\n")
    for kind in ("stl", "obj"):
        shape = f'<collision><geometry><mesh filename="part.{kind}"/></geometry></collision></link>'
        links = f'<link name="a"/><link name="b">{shape}<link name="c">{shape}'
        joints = "".join(
            f'<joint name="{a}" type="revolute"><parent link="{a}"/><child link="{b}"/><origin xyz="0 0 0.4"/>'
            '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
            for a, b in ("ab", "bc")
        )
        (folder / f"{kind}.urdf").write_text(f'<robot name="x">{links}{joints}</robot>')


def _write_bag(log, folder):
    """Joint states in SQLite, and the file that names it."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    with Writer(folder, version=8, storage_plugin=StoragePlugin.SQLITE3) as writer:
        topic = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for time, *rows in zip(log.time[:200], log["position"], log["position"], log["effort"], strict=False):
            stamp = kinds["builtin_interfaces/msg/Time"](sec=int(time), nanosec=int(time % 1.0 * 1e9))
            header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="")
            state = kinds["sensor_msgs/msg/JointState"](header, list(log.info.joints), *map(np.ascontiguousarray, rows))
            writer.write(topic, int(time * 1e9), store.serialize_cdr(state, "sensor_msgs/msg/JointState"))


def _write_parts_of_a_run(made, folder):
    """What `armid run` leaves beside plan, fit and validation, and `armid reproduce` for its page."""
    found = {"logs": {"log.csv": examine(made.logs[1], made.fit.robot).as_data()}}
    parts = {
        "warmup": made.warmup,
        "tracking": made.tracking,
        "audit": audit(made.fit)[0].to_data(),
        "inspection": found,
    }
    (folder / "finished").mkdir()
    parts["finished/run"] = {"settings": make_settings({"robot": "ir361", "harmonics": 3}).to_data()}
    for name, data in parts.items():
        (folder / f"{name}.json").write_text(json.dumps(plain(data)))
    calibrate(made.fit, [stretches(made.fit, log) for log in made.logs]).save(folder / "limits.json")
    save_outcome(PaperOutcome((), {"seed": 1}, {"values": [1.0, 2.0]}, ("a note",)), folder / "paper.json", key="x")
