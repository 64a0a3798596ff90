"""Arms of one type whose logs cost next to nothing: torque by the model itself, noise, no simulator."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import armid
from armid.estimation.consistent.feasible import ConsistentLeastSquares
from armid.logs import write_log
from armid.logs.log import Log, LogInfo
from armid.torque.model import model_of

EXAMPLES = Path(__file__).parents[2] / "examples"
LINK = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
NOISE = 0.2  # [N m]
_FOLDER = TemporaryDirectory(prefix="armid-type-")


def arm_file(folder):
    """Description of the example arm, copied into a folder."""
    for name in ("arm.urdf", "arm.yaml"):
        shutil.copy(EXAMPLES / name, folder / name)
    return folder / "arm.yaml"


def rough_arm_file(folder):
    """The same with the friction of rougher gears: Stribeck's, and a part of it in proportion to the load."""
    path = arm_file(folder)
    law = "{law: stribeck, coefficients: {fv: [2.4, 2.9, 1.1, 0.35], fc: [3.1, 3.6, 1.4, 0.5], "
    law += "fs: [4.6, 5.6, 2.3, 0.8], vs: [0.15, 0.1, 0.2, 0.2]}}"
    load = "  load_loss: {slope: [0.08, 0.08, 0.08, 0.0], offset: [0, 0, 0, 0]}"
    before, rest = path.read_text().split("  friction: {law: coulomb-viscous", 1)
    path.write_text(f"{before}  friction: {law}\n{load}\n{rest.split(chr(10), 1)[1]}")
    return path


def true_parameters(virtual):
    """All standard parameters of a virtual arm, by name."""
    values = {}
    for number, row in enumerate(virtual.inertia, start=1):
        values |= dict(zip((f"{name}{number}" for name in LINK), row, strict=True))
        values[f"Im{number}"] = virtual.rotor_inertia[number - 1]
        values |= {f"{name}{number}": value for name, value in virtual.coefficients[number - 1].items()}
    return values


def base_values(robot, virtual):
    """Base parameters of a virtual arm, by the grouping of the model."""
    base, values = model_of(robot).base, true_parameters(virtual)
    return base.matrix @ np.array([values.get(name, 0.0) for name in base.names])


def motion(robot, seconds, rate_hz, seed, share=0.5):
    """Random Fourier series: time, position, velocity, acceleration; `seconds` is a whole number of its 5 s periods."""
    rng = np.random.default_rng(seed)
    n, k = robot.n_joints, np.arange(1, 5)
    sine, cosine = rng.normal(size=(2, n, len(k))) / k
    size = np.abs(sine).sum(axis=1) + np.abs(cosine).sum(axis=1)
    sine, cosine = (share * part / size[:, None] for part in (sine, cosine))
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    w = 2.0 * np.pi / 5.0 * k
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    q = s @ sine.T + c @ cosine.T
    return (
        t,
        q,
        c @ (w[:, None] * sine.T) - s @ (w[:, None] * cosine.T),
        -s @ (w[:, None] ** 2 * sine.T) - c @ (w[:, None] ** 2 * cosine.T),
    )


def log_of(robot, parameters, *, seconds=15.0, rate_hz=100.0, seed=0, payload=None, name=None, temperature=None):
    """A recording of an arm with given parameters."""
    model = model_of(robot)
    t, q, qd, qdd = motion(robot, seconds, rate_hz, seed)
    tau = model.inverse_dynamics(q, qd, qdd, parameters)
    tau = tau + NOISE * np.random.default_rng([seed, 1]).normal(size=tau.shape)
    info = LogInfo(
        joints=robot.joint_names,
        effort="joint torque",
        rate_hz=rate_hz,
        payload=payload,
        robot=robot.name if name is None else name,
        history={"seed": seed},
    )
    channels = {"position": q, "effort": tau}
    if temperature is not None:
        channels["temperature"] = np.full(q.shape, temperature)
    return Log(t, channels, info)


@cache
def known_type():
    """File of a fit that says what the example arm is like; made once, where each fleet would learn it again."""
    robot = armid.load_robot(EXAMPLES / "arm.yaml")
    log = log_of(robot, true_parameters(robot.virtual), seconds=20.0)
    path = Path(_FOLDER.name) / "type.json"
    ConsistentLeastSquares().fit(robot, armid.process(log, robot=robot)).save(path)
    return path


def write_fleet(folder, arms, days, *, seconds=15.0, rate_hz=100.0, change=None):
    """A fleet of logs and its file; `change(parameters, arm, day)` may alter an arm's parameters on a day."""
    folder.mkdir(parents=True, exist_ok=True)
    robot = armid.load_robot(arm_file(folder))
    usual = true_parameters(robot.virtual)
    for arm in range(arms):
        own = {name: value * (1.0 + 0.02 * np.random.default_rng([7, arm]).normal()) for name, value in usual.items()}
        for day in range(days):
            values = own if change is None else change(dict(own), arm, day)
            place = folder / "logs" / f"robot=arm{arm + 1:03d}" / f"date=2026-03-{day + 1:02d}"
            place.mkdir(parents=True, exist_ok=True)
            log = log_of(robot, values, seconds=seconds, rate_hz=rate_hz, seed=1000 * arm + day)
            write_log(log, place / "log.parquet")
    (folder / "fleet.yaml").write_text(f"robot: arm.yaml\nlogs: logs\nfriction: {known_type()}\n")
    return folder / "fleet.yaml"
