"""Written arms against recorded motion: MuJoCo drives them with the recorded torque and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array, Indices
from armid.errors import ArmidError, MissingExtraError
from armid.estimation.fit import Fit
from armid.exporting.arm import Arm, ExportError, arm_of
from armid.exporting.friction import LinearFriction, linear_friction
from armid.exporting.mjcf import mjcf
from armid.files import write_text
from armid.logs.log import Log
from armid.robot.robot import inertial_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IDENTIFIED, NOMINAL = "identified", "nominal"


@dataclass(frozen=True, eq=False)
class Replay:
    """Recorded motion and what simulated arms did under the recorded torque.

    Attributes:
        joints: names.
        units: of their positions.
        time: [s], (samples,).
        position: recorded, (samples, joints) [rad or m].
        simulated: by name of the arm, (samples, joints).
        starts: samples at which the simulations were put back onto the recorded motion.
        window_s: how long they ran on their own.
    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    time: Array
    position: Array
    simulated: Mapping[str, Array]
    starts: Indices
    window_s: float

    def rms(self, name: str) -> Array:
        """Root mean square distance of an arm from the recorded motion, per joint [rad or m]."""
        return np.sqrt(np.mean((self.simulated[name] - self.position) ** 2, axis=0))

    def summary(self) -> str:
        """One line per arm."""
        lines = [f"{len(self.time)} samples, put back onto the record every {self.window_s:g} s"]
        for name in self.simulated:
            values = " ".join(
                f"{1e3 * value:.3g} m{unit}" for value, unit in zip(self.rms(name), self.units, strict=True)
            )
            lines.append(f"{name}: off by {values} rms, joint by joint")
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        rms = {name: self.rms(name).tolist() for name in self.simulated}
        return {
            "joints": list(self.joints),
            "units": list(self.units),
            "samples": len(self.time),
            "window_s": self.window_s,
            "rms": rms,
        }


def nominal_mjcf(fit: Fit, path: str | Path, *, friction: str = NOMINAL) -> None:
    """Write an MJCF with the inertias that the robot's own description states, to compare with.

    Args:
        fit: of a robot that was read from a URDF or MJCF file.
        path: to write.
        friction: ``nominal`` for friction and rotors of the description, too; ``identified`` for those of the fit, so
            that only the links differ.
    """
    robot = fit.robot
    if robot.nominal_inertia is None:
        raise ExportError(f"{robot.name}: states no nominal inertia to compare with; its kinematics must be a URDF")
    arm = arm_of(fit, complete=True)
    values = dict.fromkeys(arm.model.names, 0.0) if friction == NOMINAL else dict(arm.by_name)
    for number, phi in enumerate(robot.nominal_inertia, start=1):
        values |= dict(zip(inertial_names(number), phi.tolist(), strict=True))
    law = linear_friction(arm)
    if friction == NOMINAL:
        stated = np.zeros((robot.n_joints, 2)) if robot.nominal_friction is None else robot.nominal_friction
        law = LinearFriction(stated[:, 0], stated[:, 1], np.zeros(robot.n_joints, dtype=bool))
        reflected = np.zeros(robot.n_joints) if robot.nominal_rotors is None else robot.nominal_rotors
        ratios = [drive.gear_ratio for drive in robot.drives]
        rotors = {f"Im{i + 1}": float(v) / k**2 for i, (v, k) in enumerate(zip(reflected, ratios, strict=True))}
        values |= {name: value for name, value in rotors.items() if name in values}
    nominal = Arm(arm.fit, np.array([values[name] for name in arm.model.names]), True)
    write_text(Path(path), mjcf(nominal, law)[0].decode())


def replay(arms: Mapping[str, str | Path], log: Log, *, window_s: float = 0.5) -> Replay:
    """Drive arms with a log's torque, from the recorded position and velocity at the start of each window.

    An arm without feedback leaves any record sooner or later; how far it is off within a window tells how good its
    model is. Nothing but the MJCF files is used.

    Args:
        arms: MJCF files by name.
        log: with position, velocity and joint torque.
        window_s: [s].
    """
    if not arms:
        raise ArmidError("replay needs at least one MJCF file")
    if log.info.effort != "joint torque" or "velocity" not in log.channels or window_s <= 0.0:
        raise ArmidError(f"{log.info.source}: replay needs joint torque, velocity and a window above 0 s")
    rows = max(1, round(window_s / float(np.median(np.diff(log.time)))))
    starts = np.arange(0, len(log.time), rows)
    models = {name: _compiled(Path(path)) for name, path in arms.items()}
    simulated = {name: _simulated(model, log, starts) for name, model in models.items()}
    units = next(iter(_units(model, log.info.joints) for model in models.values()))
    return Replay(log.info.joints, units, log.time, log.channels["position"], simulated, starts, window_s)


def _compiled(path: Path) -> Any:
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("replaying motion", "sim") from None
    return mujoco.MjModel.from_xml_path(str(path))


def _units(model: Any, joints: tuple[str, ...]) -> tuple[str, ...]:
    import mujoco

    slide = int(mujoco.mjtJoint.mjJNT_SLIDE)
    return tuple("m" if int(model.joint(name).type[0]) == slide else "rad" for name in joints)


def _simulated(model: Any, log: Log, starts: Indices) -> Array:
    import mujoco

    data = mujoco.MjData(model)
    dofs = [int(model.joint(name).dofadr[0]) for name in log.info.joints]
    effort = log.channels["effort"]
    result = np.empty_like(log.channels["position"])
    restart = set(starts.tolist())
    for row, time in enumerate(log.time):
        if row in restart:
            mujoco.mj_resetData(model, data)
            data.qpos[dofs], data.qvel[dofs] = log.channels["position"][row], log.channels["velocity"][row]
        result[row] = data.qpos[dofs]
        if row + 1 == len(log.time):
            break
        gap = float(log.time[row + 1] - time)
        steps = max(1, round(gap / model.opt.timestep))
        for step in range(steps):
            share = (step + 0.5) / steps
            data.qfrc_applied[dofs] = (1.0 - share) * effort[row] + share * effort[row + 1]
            mujoco.mj_step(model, data)
    return result


def replay_figure(found: Replay, title: str = "") -> Figure:
    """Recorded motion, and how far the arms leave it, one row per joint."""
    rows = [f"{joint} [{unit}]" for joint, unit in zip(found.joints, found.units, strict=True)]
    columns = ("position", "off the record, × 1000")
    figure, axes = theme.small_multiples(rows, columns, x_label="time [s]")
    breaks = found.starts[1:]
    time = np.insert(found.time, breaks, np.nan)
    names = sorted(found.simulated, key=lambda name: name == IDENTIFIED)
    for joint, (left, right) in enumerate(axes):
        recorded = found.position[:, joint]
        for name in names:
            line = theme.LINES["predicted" if name == IDENTIFIED else "nominal"]
            curve = found.simulated[name][:, joint]
            wide = {**line, "linewidth": 2.2} if name == IDENTIFIED else line
            left.plot(time, np.insert(curve, breaks, np.nan), **wide)
            off = np.maximum(1e3 * np.abs(curve - recorded), 1e-2)
            right.plot(time, np.insert(off, breaks, np.nan), **line)
        left.plot(found.time, recorded, **{**theme.LINES["measured"], "linewidth": 0.8})
        room = 0.25 * max(float(np.ptp(recorded)), 1e-6)
        left.set_ylim(recorded.min() - room, recorded.max() + room)
        right.set_yscale("log")
        theme.corner(right, ", ".join(f"{name} {_short(1e3 * found.rms(name)[joint])}" for name in names))
    theme.say(figure, _sentence(found, title))
    return figure


def _sentence(found: Replay, title: str) -> str:
    text = f"{title}: driven" if title else "Driven"
    text += f" by the recorded torque alone for {found.window_s:g} s at a time, the identified arm (blue)"
    others = [name for name in found.simulated if name != IDENTIFIED]
    if IDENTIFIED not in found.simulated or not others:
        return f"{text} follows the record (black)."
    ratios = np.concatenate([found.rms(name) / found.rms(IDENTIFIED) for name in others])
    least, most = _short(ratios.min()), _short(ratios.max())
    return f"{text} stays {least} to {most} times nearer to the record (black) than {' and '.join(others)} (grey)."


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100.0 else f"{float(f'{value:.2g}'):.0f}"
