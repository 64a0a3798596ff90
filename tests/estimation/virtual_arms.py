"""Truths and data for the estimators: base parameters of virtual arms, torque from MuJoCo along given motion."""

from dataclasses import replace

import numpy as np

import armid
from armid.dynamics.model import Motion
from armid.excitation.fourier import FourierSeries
from armid.experiment import stepping
from armid.experiment.physics import Physics
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log, LogInfo
from armid.signals.dataset import Dataset
from armid.torque.model import model_of


def arm(name):
    """A library arm, cut to the links whose truth is known: all its parameters, no payload, no load-dependent loss."""
    robot = armid.load_robot(name)
    n = len(robot.virtual.inertia)
    robot = robot.first_links(n).simplified("none")
    return replace(robot, virtual=replace(robot.virtual, payload=None, load_loss=np.zeros((n, 2))))


def true_values(robot):
    """Base parameters of the virtual arm, by the grouping of the model."""
    truth, model = robot.virtual, model_of(robot)
    values = {}
    for link, row in enumerate(truth.inertia, start=1):
        values |= dict(zip((f"{n}{link}" for n in LINK), row, strict=True))
        values[f"Im{link}"] = truth.rotor_inertia[link - 1]
        values |= {f"{name}{link}": value for name, value in truth.coefficients[link - 1].items()}
    for number, (k, free) in enumerate(truth.springs, start=1):
        values |= {f"ks{number}": k, f"kl{number}": k * free}
    return model.base.matrix @ np.array([values[name] for name in model.base.names])


LINK = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def excitation(robot, seed=0, harmonics=5, period=10.0, share=0.8):
    """A random Fourier series well inside the limits."""
    rng = np.random.default_rng(seed)
    n = robot.n_joints
    low, high = (np.clip(np.nan_to_num(limit, nan=sign * 3.0), -3.0, 3.0) for limit, sign in LIMITS(robot))
    sine, cosine = rng.normal(size=(2, n, harmonics)) / np.arange(1, harmonics + 1) ** 0.5
    size = np.abs(sine).sum(axis=1) + np.abs(cosine).sum(axis=1)
    scale = (share * 0.5 * (high - low) / size)[:, None]
    return FourierSeries(1.0 / period, tuple(range(1, harmonics + 1)), scale * sine, scale * cosine, 0.5 * (low + high))


def LIMITS(robot):
    return (robot.limits.lower, -1.0), (robot.limits.upper, 1.0)


def mujoco_torque(robot, motion):
    """Torque of the drives: MuJoCo's mass matrix and bias, friction and springs written out."""
    truth = robot.virtual
    physics = Physics(robot, truth, None)
    torque = np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        mass, bias = physics.joint_space(q, v)
        torque[row] = mass @ a + bias
    for joint, values in enumerate(truth.coefficients):
        v = motion.qd[:, joint]
        torque[:, joint] += values.get("fv", 0.0) * v + values.get("fc", 0.0) * np.sign(v)
    for spring, (k, free) in zip(robot.springs, truth.springs, strict=True):
        angle = motion.q[:, spring.joint - 1] - spring.phi
        length = np.sqrt(spring.a**2 + spring.b**2 - 2.0 * spring.a * spring.b * np.cos(angle))
        torque[:, spring.joint - 1] += k * (length - free) * spring.a * spring.b * np.sin(angle) / length
    return torque


def dataset(robot, motion, torque, rate_hz, **more):
    """Data as a pipeline without filters would give them."""
    samples = len(motion.q)
    return Dataset(
        joints=robot.joint_names,
        time=np.arange(samples) / rate_hz,
        q=motion.q,
        qd=motion.qd,
        qdd=motion.qdd,
        torque=torque,
        rows=np.arange(samples),
        **more,
    )


def sampled(trajectory, rate_hz):
    """One period."""
    return Motion(*(np.ascontiguousarray(array) for array in trajectory.sample(rate_hz)[1]))


def errors(values, truth):
    """Relative errors of base parameters; those that are zero (to 1e-6) count against the largest."""
    largest = np.abs(truth).max()
    return np.abs(values - truth) / np.where(np.abs(truth) > 1e-6 * largest, np.abs(truth), largest)


def noisy_loop(robot, trajectory, *, rate_hz, noise, seconds, seed, bandwidth_hz=4.0):
    """A log of an arm whose position loop hears the encoders' noise: what is fed back is what is recorded.

    Independent drives with the gains of `DriveLoop`; velocity by differences, low-passed at 12 bandwidths.
    """
    sensors = Sensors(torque_noise=0.0, encoder_resolution=0.0, encoder_noise=noise, velocity_noise=0.0)
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    reference = trajectory.at(times)
    machine = VirtualRobot(robot, rate_hz=rate_hz, seed=seed, posture=reference.q[0], sensors=sensors)
    machine._state[stepping.V] = reference.qd[0]
    inertia = np.diag(machine._physics.joint_space(reference.q[0], 0.0 * reference.q[0])[0])
    omega = 2.0 * np.pi * bandwidth_hz
    kd = 4.0 * omega * inertia
    kp, ki = kd * 2.0 * omega, kd * omega**2
    integral = machine._holding_torque()
    machine.set_mode("torque")
    keep = np.exp(-12.0 * omega / rate_hz)
    before = q = machine.state().position
    last = integral
    v = reference.qd[0].copy()
    rows = {"position": [], "effort": []}
    for r, rate in zip(reference.q, reference.qd, strict=True):
        v = keep * v + (1.0 - keep) * (q - before) * rate_hz if rows["position"] else v
        integral = integral + ki * (r - q) / rate_hz
        torque = kp * (r - q) + kd * (rate - v) + integral
        rows["position"].append(q)
        rows["effort"].append(0.5 * (last + torque))  # a command is held for one cycle
        last = torque
        before, q = q, machine.command(torque).position
    info = LogInfo(joints=robot.joint_names, effort="joint torque", rate_hz=rate_hz)
    return Log(times, {**{k: np.array(x) for k, x in rows.items()}, "command": reference.q}, info)


def prediction_error(robot, seed=7):
    """A judge of parameter values: RMS error of torque on another motion, in standard deviations of that torque."""
    motion = sampled(excitation(robot, seed=seed), 50.0)
    torque = mujoco_torque(robot, motion)
    model = model_of(robot)
    regressor = model.regressor(*motion, model.base.kept)
    return lambda values: float(np.sqrt(np.mean(((regressor @ values - torque) / torque.std(axis=0)) ** 2)))
