"""A small arm with hostile names, and everything a report can show of it, made in seconds."""

from dataclasses import replace

import numpy as np

import armid
from armid.estimation import identify
from armid.logs.log import Log, LogInfo
from armid.reporting import Evidence
from armid.robot.inertia import from_com
from armid.robot.robot import inertial_names
from armid.signals.pipeline import process
from armid.torque.model import model_of

HOSTILE = '</script><script>alert("x")</script><img src=http://example.com/x.png> & <b>bold</b>'
LINK = from_com(2.0, [0.25, 0.02, 0.0], np.diag([0.01, 0.06, 0.06]))
VALUES = {"fv1": 2.0, "fc1": 3.0, "fo1": 0.5, "fv2": 1.0, "fc2": 1.5, "fo2": -0.2}
RATE_HZ, PERIOD_S = 100.0, 8.0


def planar(folder):
    """Two links that swing in a vertical plane, with limits and a title that a page must not run."""
    path = folder / "planar.yaml"
    path.write_text(
        f"name: planar\ntitle: '{HOSTILE}'\nkinematics:\n  convention: modified-dh\n"
        "  rows: [[0, 0, 0, 0], [0, 0.5, 0, 0]]\n"
        "gravity: [0, -9.81, 0]\nfriction: {law: coulomb-viscous, offset: true}\n"
        "limits:\n  position: [[-2.5, 2.5], [-2.5, 2.5]]\n  velocity: [3.0, 3.0]\n  acceleration: [20.0, 20.0]\n"
    )
    return armid.load_robot(path)


def log_of(robot, seed, periods=4, noise=0.05, rest=None):
    """A log of a periodic motion with known torque; the joint with the index `rest` stands still."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(periods * PERIOD_S * RATE_HZ)) / RATE_HZ
    q, qd, qdd = np.zeros((3, len(t), 2))
    for harmonic in range(1, 5):
        w = 2 * np.pi * harmonic / PERIOD_S
        a, b = 0.4 * rng.normal(size=(2, 2))
        q += np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b)
        qd += w * (np.outer(np.cos(w * t), a) - np.outer(np.sin(w * t), b))
        qdd -= w**2 * (np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b))
    if rest is not None:
        for array in (q, qd, qdd):
            array[:, rest] = 0.0
    model = model_of(robot)
    values = {
        **VALUES,
        **{name: value for k in (1, 2) for name, value in link_values(k, LINK).items() if name in model.names},
    }
    torque = model.inverse_dynamics(q, qd, qdd, values)
    torque = torque + noise * rng.normal(size=torque.shape)
    info = LogInfo(
        joints=robot.joint_names, effort="joint torque", rate_hz=RATE_HZ, period_s=PERIOD_S, source=f"swing {seed}"
    )
    return Log(t, {"position": q, "effort": torque}, info)


def link_values(number, phi):
    """Inertial parameters of a link by name."""
    return dict(zip(inertial_names(number), phi.tolist(), strict=True))


def evidence(folder, *, method="feasible", nominal=True, **changes):
    """A fit with links, its validation on other motion, plan, logs, warm-up, tracking, payload and exports."""
    robot = planar(folder)
    if nominal:
        robot = replace(robot, nominal_inertia=np.array([0.8 * LINK, 1.3 * LINK]))
    logs = [log_of(robot, 1), log_of(robot, 2)]
    fit = identify(robot, [process(logs[0], robot=robot)], method=method, friction="linear")
    check = armid.validate(fit, logs[1])
    plan = armid.design(robot, armid.Fourier(harmonics=3, period=PERIOD_S), starts=1, seed=0)
    whole = Evidence(
        fit=fit,
        check=check,
        plan=plan,
        logs=tuple(logs),
        warmup=warmup(),
        tracking=tracking(),
        payload=payload(),
        exports=exports(),
        files=("fit.json",),
    )
    return replace(whole, **changes)


def warmup():
    """As `armid warmup` writes it: one joint, an exponential of known drop and time constant."""
    time = 10.0 * np.arange(40) + 5.0
    means = 3.0 + 1.0 * np.exp(-time / 120.0)
    joint = {
        "joint": "joint1", "drop": 0.25, "time_constant_s": 120.0, "significant": True,
        "time": time.tolist(), "means": means.tolist(),
        "fit": {"law": "decay", "coefficients": {"a": 3.0, "b": 1.0, "T": 120.0}},
    }  # fmt: skip
    return {"joints": [joint], "warm": True}


def tracking():
    """As `armid track` writes it, with one controller that was broken off."""
    time = np.linspace(0.0, 5.0, 200)

    def run(name, title, size):
        return {
            "controller": name, "title": title, "completed": size is not None,
            "max_joint_error": size, "mean_cartesian_error": None if size is None else size / 2,
            "series": {"time": time.tolist(), "tool_error": (np.full(200, size or 1.0) / 2).tolist()},
        }  # fmt: skip

    runs = [
        run("pid", "PID", 0.02),
        run("computed-torque", "computed torque, identified model", 0.004),
        run("bad", "unstable controller of a name that is longer than a telephone is wide", None),
    ]
    runs.insert(2, run("computed-torque", "computed torque, nominal model", 0.05))
    return {"path": "circle", "runs": runs, "notes": ["The same gains everywhere."]}


def payload():
    """As `armid payload` writes it."""
    mass = {"name": "mass", "value": 1.5, "sigma": 0.01, "unit": "kg", "determined": True}
    return {"mass": 1.5, "verdict": "good", "reasons": [], "quantities": [mass]}


def exports():
    """As `armid export` describes its files."""
    proof = {
        "against": "cc -std=c99 -Wall -Wextra -Werror -pedantic -O2 and Pinocchio 3",
        "error": 2e-12,
        "states": 200,
    }
    long = "friction beyond viscous and Coulomb friction; coupling of rotors with the links they sit on"
    lost = [{"what": "springs"}, {"what": long}]
    return ({"file": "planar.urdf", "format": "urdf", "proof": proof, "cannot_hold": lost},)
