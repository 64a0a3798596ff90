"""The virtual robot: an arm to experiment on, with MuJoCo's dynamics and our drives, friction and sensors."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid._version import __version__
from armid.arrays import Array, Indices
from armid.dynamics.model import Model
from armid.errors import ArmidError, DataShapeError, UnknownNameError
from armid.excitation.collision import some_postures
from armid.excitation.constraints import prior_values
from armid.excitation.plan import Plan
from armid.excitation.trajectory import Trajectory
from armid.experiment import stepping
from armid.experiment.drive import Recording, State, Timing
from armid.experiment.physics import Physics, Sensing, mujoco_functions
from armid.experiment.settings import DriveLoop, Elasticity, Presliding, Sensors, Thermal, per_joint
from armid.files import plain
from armid.logs.log import MODES, Log, LogInfo
from armid.robot.inertia import change_of_frame
from armid.robot.parts import Friction
from armid.robot.robot import Robot, Virtual, inertial_names
from armid.torque.friction.law import FrictionLaw

_log = logging.getLogger(__name__)
LONGEST_STEP = 5e-4  # [s] of the simulation
NODES = 1501  # of the table of a friction law
WIDEST = 5.0  # ratio of a joint's inertia to its smallest up to which its loop is tuned for it
POSTURES = 64  # in which it is looked at
HEAVIEST = 6.0  # inertia that loops meet over the one they are tuned for; they are unstable from 8 on (Routh)
NOISE = 0.01  # of a joint's usual torque, where no file states the noise of its measurement
ENCODER = 2.0 * np.pi / 2**18  # [rad or m] steps of encoders that no file states
SATURATED = 0.01  # share of the time that drives may spend at their torque limits without a warning


@dataclass(frozen=True, eq=False)
class Truth:
    """What really happened at the sampling instants, each (cycles, joints) but `time`; for tests and teaching.

    Attributes:
        time: [s].
        q, qd, qdd: the simulator's own.
        torque: of the drives, joint side [N m].
        friction: the part of it lost in friction, without the load-proportional part [N m].
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array
    friction: Array


class VirtualRobot:
    """An arm that exists in MuJoCo only; implements the drive protocol `Arm`.

    Rigid-body dynamics come from MuJoCo (see `Physics`); drive loops, friction, springs, load-proportional loss,
    warming and sensors are added at each time step of at most 0.5 ms.

    Attributes:
        robot: its description, cut to the links whose truth is known.
        info: what its logs mean.
        truth: what really happened during the last `stream`; None before.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        rate_hz: float = 200.0,
        seed: int = 0,
        posture: ArrayLike | None = None,
        payload: ArrayLike | None = None,
        effort: str = "joint torque",
        loop: DriveLoop | None = None,
        sensors: Sensors | None = None,
        thermal: Thermal | None = None,
        presliding: Presliding | None = None,
        ripple: Sequence[tuple[int, float, float]] = (),
        elasticity: Elasticity | None = None,
    ) -> None:
        """Make the arm and let it stand still.

        Args:
            robot: with a `virtual` section, or with the inertias of a URDF or MJCF file.
            rate_hz: command and sample rate.
            seed: of all noise.
            posture: where it stands [rad]; zero, or the nearest position inside the limits, without it.
            payload: ten inertial parameters in the tool frame; the description's without it.
            effort: what it reports: ``joint torque`` or ``current`` (needs a current gain).
            loop: drive loops.
            sensors: noise and faults.
            thermal: cold grease; None is a warm arm.
            presliding: smooth reversals; None lets friction jump, and joints stick.
            ripple: torque that goes with the angle, as gears have it: joint from 1, amplitude [N m], waves per turn.
            elasticity: gears that give way; None is a rigid arm.
        """
        robot.refuse_undriven("the virtual robot, whose drives move all joints, cannot simulate it")
        truth = truth_of(robot)
        self.robot = robot = robot if len(truth.inertia) == robot.n_joints else robot.first_links(len(truth.inertia))
        self._truth, n = truth, robot.n_joints
        if not np.isfinite(rate_hz) or rate_hz <= 0.0:
            raise ArmidError(f"rate_hz is {rate_hz:g}; it must be above zero")
        self._cycle = 1.0 / rate_hz
        self._substeps = max(1, int(np.ceil(self._cycle / LONGEST_STEP - 1e-9)))
        self._dt = self._cycle / self._substeps
        loop, sensors = loop or DriveLoop(), sensors or Sensors()
        self._thermal, self._bristles = thermal, presliding is not None
        self._ripple = tuple(ripple)
        carried = truth.payload if payload is None else np.asarray(payload, dtype=float)
        self._physics = Physics(robot, truth, carried)
        self._state = np.zeros((stepping.STATES, n))
        self._state[stepping.Q] = _posture(robot, posture)
        self._state[stepping.WARMTH] = 1.0 if thermal is None else thermal.start
        self._laws, self._coefficients = _encoded(truth, robot)
        self._state[stepping.LINK_Q] = self._state[stepping.Q]
        self._settings = self._make_settings(loop, presliding, elasticity)
        self._hang()
        self._mode, self._before = stepping.POSITION, np.tile(self._state[stepping.Q], (3, 1))
        self._clock, self._cycles, self._wall, self._warned = 0.0, 0, 0.0, False
        self._torque = self._holding_torque()
        self._sensing = Sensing(
            robot,
            truth,
            sensors,
            thermal,
            effort=effort,
            cycle_s=self._cycle,
            step_s=self._dt,
            seed=seed,
            standing=self._now(),
        )
        self.truth: Truth | None = None
        history: dict[str, Any] = {"armid": __version__, "made_by": "virtual robot", "seed": seed}
        chosen = {"loop": loop, "sensors": sensors, "thermal": thermal, "presliding": presliding}
        chosen |= {} if elasticity is None else {"elasticity": elasticity}
        history |= plain({**chosen, "ripple": self._ripple, "truth": _stated(robot, truth, carried)})
        x, y, z = (float(g) for g in robot.gravity)
        self.info = LogInfo(
            joints=robot.joint_names,
            effort=effort,
            rate_hz=rate_hz,
            gravity=(x, y, z),
            robot=robot.name,
            gain_uncertainty=(0.0,) * robot.n_joints,
            source=f"virtual {robot.name}",
            history=history,
        )
        self.set_mode("position")

    @cached_property
    def _springs(self) -> tuple[Array, Array, Array, Array]:
        """Gravity springs, linear springs, counterbalances and ripple as the compiled step takes them."""
        robot, count, n = self.robot, len(self.robot.springs), self.robot.n_joints
        rows = zip(robot.springs, self._truth.springs[:count], strict=True)
        gravity = [(s.joint - 1, s.a, s.b, s.phi, *true) for s, true in rows]
        linear = [(*s.ratios, *true) for s, true in zip(robot.linear_springs, self._truth.springs[count:], strict=True)]
        most = max((len(table.position) for table in robot.counterbalances), default=1)
        tables = []
        for table in robot.counterbalances:  # one length for all: beyond its end a table is constant
            more = most - len(table.position)
            beyond = table.position[-1] + np.arange(1.0, more + 1.0)
            tables.append([table.joint - 1, *table.position, *beyond, *table.torque, *[table.torque[-1]] * more])
        ripple = [(joint - 1, amplitude, waves) for joint, amplitude, waves in self._ripple]
        shapes = (gravity, 6), (linear, n + 2), (tables, 1 + 2 * most), (ripple, 3)
        return tuple(np.array(some, dtype=float).reshape(-1, width) for some, width in shapes)  # type: ignore[return-value]

    @property
    def cycle_s(self) -> float:
        """Length of a command cycle [s]."""
        return self._cycle

    @property
    def link_position(self) -> Array:
        """Where the links are now [rad or m]; on an elastic arm not where the motors are, which encoders show."""
        return np.array(self._state[stepping.LINK_Q])

    @property
    def speed_factor(self) -> float:
        """Simulated seconds per second of computing so far."""
        return self._clock / self._wall if self._wall > 0.0 else float("nan")

    def set_mode(self, mode: str) -> None:
        """Choose what commands mean; the loops start from where the arm is, holding it."""
        if mode not in MODES:
            raise UnknownNameError("mode", mode, MODES)
        self._mode = MODES.index(mode)
        self._before = np.tile(self._state[stepping.Q] if mode == "position" else 0.0 * self._state[stepping.Q], (3, 1))
        self._state[stepping.REFERENCE] = self._state[stepping.Q]
        self._state[stepping.INTEGRAL] = self._holding_torque()
        self.info = replace(self.info, mode=mode)

    def state(self) -> State:
        """What the sensors say now."""
        found = self._sensing.snapshot(self._now(), self._clock)
        return State(time=float(found.pop("time")[0]), **{name: values[0] for name, values in found.items()})

    def command(self, values: ArrayLike) -> State:
        """Hold a command for one cycle and return the state at its end."""
        self._advance(self._checked(np.atleast_2d(np.asarray(values, dtype=float))))
        return self.state()

    def stream(self, commands: ArrayLike) -> Recording:
        """Send one command per cycle, (cycles, joints); row k is the state when row k was sent."""
        wanted = self._checked(np.asarray(commands, dtype=float))
        start = self._clock
        record = self._advance(wanted)
        self._warn_of_saturation(record[:, stepping.R_TAU])
        times: Array = start + self._cycle * np.arange(len(wanted), dtype=np.float64)
        at = record[:: self._substeps]
        channels = (stepping.R_Q, stepping.R_V, stepping.R_A, stepping.R_TAU, stepping.R_FRICTION)
        self.truth = Truth(times, *(at[:, channel].copy() for channel in channels))
        found = self._sensing.readings(record, self._now(), times)
        kept = np.isin(np.arange(len(wanted)), found.pop("row"))
        return Recording(command=wanted[kept], **found)

    def timing(self) -> Timing:
        """The virtual clock never slips; jitter of the sampling instants is told by the time stamps."""
        return Timing(self._cycles, self._cycle, self._cycle, 1.0)

    def run(self, motion: Trajectory | Plan, *, periods: int = 1, settle: int = 1) -> Log:
        """Drive a trajectory or a plan: approach, `settle` periods that are discarded, `periods` that are kept."""
        from armid.experiment.excite import excite

        return excite(self, motion, periods=periods, settle=settle)

    def _checked(self, commands: Array) -> Array:
        n = self.robot.n_joints
        if commands.ndim != 2 or commands.shape[1] != n or not len(commands):
            raise DataShapeError(f"commands have the shape {commands.shape}; (cycles, {n}) is needed")
        if not np.all(np.isfinite(commands)):
            raise DataShapeError("commands hold values that are not finite")
        return np.ascontiguousarray(commands)

    def _advance(self, commands: Array) -> Array:
        """Simulate one cycle per command; returns the record (steps, channels, joints)."""
        began = time.perf_counter()
        physics, substeps = self._physics, self._substeps
        record = np.empty((len(commands) * substeps, stepping.RECORDED, self.robot.n_joints))
        physics.place(self._state[stepping.LINK_Q], self._velocity(links=True))
        stepping.advance(
            mujoco_functions(), physics.model._address, physics.data._address,
            bool(np.any(self._truth.load_loss[:, 0])), physics.mass, physics.bias, np.zeros_like(physics.bias),
            physics.projection, physics.reflected, *self._springs, self._state, self._settings, self._laws,
            self._coefficients, self._mode, commands, self._before, substeps, self._dt, self._cycle, self._bristles,
            record, physics.data.qpos, physics.data.qvel, physics.joint_dofs,
            *stepping.scratch(*reversed(physics.projection.shape)),
        )  # fmt: skip
        if not np.all(np.isfinite(self._state)):
            raise ArmidError(
                f"the virtual {self.robot.name} became unstable; use a slower motion or a smaller loop bandwidth"
            )
        self._torque = record[-1, stepping.R_TAU].copy()
        self._clock += len(commands) * self._cycle
        self._cycles += len(commands)
        self._wall += time.perf_counter() - began
        return record

    def _warn_of_saturation(self, torque: Array) -> None:
        """Say, once, which drive could not give the torque that the motion needs."""
        share = np.mean(np.abs(torque) >= 0.999 * self._settings[stepping.LIMIT], axis=0)
        if self._mode != stepping.TORQUE and share.max() > SATURATED and not self._warned:
            self._warned, worst = True, int(share.argmax())
            drive = f"the drive of {self.robot.joint_names[worst]} is at its torque limit"
            problem = f"the virtual {self.robot.name} does not follow its motion: {drive}"
            _log.warning("%s for %.0f %% of the time; use a slower motion", problem, 100.0 * share[worst])

    def _holding_torque(self) -> Array:
        """Torque of the drives that holds the arm where it is, without friction."""
        q = self._state[stepping.LINK_Q]
        _, weight = self._physics.joint_space(q, np.zeros_like(q))
        passive = np.zeros_like(q)
        stepping.passive_torque(*self._springs, q, passive)
        loss = self._truth.load_loss
        result: Array = weight * (1.0 + loss[:, 0]) + loss[:, 1] + passive + self._settings[stepping.OFFSET]
        return result

    def _hang(self) -> None:
        """Let the links hang in their springs."""
        stiffness, loss = self._settings[stepping.STIFFNESS], self._truth.load_loss
        for _ in range(20 if stiffness.any() else 0):
            held = self._holding_torque() - self._settings[stepping.OFFSET] - loss[:, 1]
            self._state[stepping.LINK_Q] = self._state[stepping.Q] - held / (1.0 + loss[:, 0]) / stiffness

    def _make_settings(self, loop: DriveLoop, presliding: Presliding | None, elasticity: Elasticity | None) -> Array:
        """The compiled step's table of constants."""
        n, truth = self.robot.n_joints, self._truth
        settings = np.zeros((stepping.SETTINGS, n))
        inertia = self._tuning_inertia()
        omega = 2.0 * np.pi * np.array(per_joint("bandwidth_hz", loop.bandwidth_hz, n))
        faster = loop.velocity_ratio * omega
        if not faster.min() > 0.0:
            raise ArmidError(f"a drive loop has a bandwidth of {loop.bandwidth_hz} Hz; it must be above zero")
        settings[stepping.KD] = faster * inertia
        settings[stepping.KP] = settings[stepping.KD] * (omega + 0.25 * faster)
        settings[stepping.KI] = settings[stepping.KD] * 0.25 * faster * omega
        settings[stepping.LIMIT] = np.where(np.isnan(self.robot.limits.torque), np.inf, self.robot.limits.torque)
        settings[stepping.OFFSET] = [values.get("fo", 0.0) for values in truth.coefficients]
        settings[stepping.LOSS], settings[stepping.LOSS_OFFSET] = truth.load_loss.T
        if self._thermal is not None:
            settings[stepping.EXCESS] = self._thermal.excess
            settings[stepping.THERMAL_RATE] = 1.0 / self._thermal.time_constant_s
        if presliding is not None:
            slow = np.geomspace(1e-4, 0.1, 40)
            for joint in range(n):
                law, pair = self._laws[joint], self._coefficients[joint]
                top = max(stepping.level(law, c, float(v), 1.0)[0] for c in pair for v in slow)
                settings[stepping.S0, joint] = max(top, 1e-6) / presliding.deflection
            settings[stepping.S1] = 2.0 * presliding.damping * np.sqrt(settings[stepping.S0] * inertia)
        if elasticity is not None:
            settings[[stepping.STIFFNESS, stepping.DAMPING, stepping.MOTOR]] = self._springs_of_gears(elasticity)
        return settings

    def _springs_of_gears(self, elasticity: Elasticity) -> Array:
        """Stiffness, damping and the motors' inertia, (3, joints); takes the motors off the physics."""
        n, still, physics = self.robot.n_joints, np.zeros(self.robot.n_joints), self._physics
        omega = 2.0 * np.pi * np.array(per_joint("resonance_hz", elasticity.resonance_hz, n))
        if self.robot.coupling is not None or not omega.min() > 0.0:
            raise ArmidError(f"{self.robot.name}: elasticity needs resonances above zero and joints without coupling")
        postures = (self._state[stepping.Q], *some_postures(self.robot, POSTURES))
        stated = physics.take_motors_off()
        masses = np.array([physics.joint_space(q, still)[0] for q in postures])
        alone = 1.0 / np.diagonal(np.linalg.inv(masses), axis1=1, axis2=2).max(axis=0)
        most = np.linalg.eigvalsh(np.sqrt(alone)[:, None] * np.linalg.inv(masses) * np.sqrt(alone)).max()
        motors = np.where(stated > 0.0, stated, 0.5 * alone / most)
        if elasticity.motors is not None:
            motors = np.array(per_joint("motors", elasticity.motors, n))
        physics.reflected = -np.diag(np.where(stated > 0.0, 0.0, motors))
        links = masses + physics.reflected
        if not (motors.min() > 0.0 and np.linalg.eigvalsh(links).min() > 0.0):
            raise ArmidError(f"{self.robot.name}: elasticity.motors must be above zero and leave some inertia to links")
        stiffness = omega**2 * np.maximum(np.diagonal(links, axis1=1, axis2=2).max(axis=0), motors)
        return np.array([stiffness, 2.0 * elasticity.damping * stiffness / omega, motors])

    def _tuning_inertia(self) -> Array:
        """Inertia of each joint that its loop is tuned for: where the arm stands.

        Where that is more than `WIDEST` times the smallest in any of some postures, a loop tuned for it would be
        unstable there, and the geometric mean of smallest and largest is taken instead. All grow in proportion where
        joints that move together meet more than `HEAVIEST` times that, as in long chains of light links.
        """
        still = np.zeros(self.robot.n_joints)
        postures = (self._state[stepping.Q], *some_postures(self.robot, POSTURES))
        masses = np.array([self._physics.joint_space(q, still)[0] for q in postures])
        found = np.diagonal(masses, axis1=1, axis2=2)
        smallest, largest = found.min(axis=0), found.max(axis=0)
        result: Array = np.where(found[0] > WIDEST * smallest, np.sqrt(smallest * largest), found[0])
        met = float(np.linalg.eigvalsh(masses / np.sqrt(np.outer(result, result))).max())
        return result * max(met / HEAVIEST, 1.0)

    def _velocity(self, *, links: bool = False) -> Array:
        """Velocities at the present instant, of motors or links."""
        v, a = (stepping.LINK_V, stepping.LINK_A) if links else (stepping.V, stepping.A)
        return np.asarray(self._state[v] + 0.5 * self._dt * self._state[a])

    def _now(self) -> Array:
        """The present instant as a record's row."""
        row = np.zeros((stepping.RECORDED, self.robot.n_joints))
        row[stepping.R_Q], row[stepping.R_V] = self._state[stepping.Q], self._velocity()
        row[stepping.R_TAU], row[stepping.R_WARMTH] = self._torque, self._state[stepping.WARMTH]
        return row


def _posture(robot: Robot, posture: ArrayLike | None) -> Array:
    if posture is None:
        return np.fmin(np.fmax(np.zeros(robot.n_joints), robot.limits.lower), robot.limits.upper)
    q = np.asarray(posture, dtype=float)
    if q.shape != (robot.n_joints,) or not np.all(np.isfinite(q)):
        raise ArmidError(f"posture must be {robot.n_joints} finite numbers [rad], one per joint of {robot.name}")
    return q


def _encoded(truth: Virtual, robot: Robot) -> tuple[Indices, Array]:
    """Laws as numbers, coefficients or tables up to thrice the fastest speed (joints, directions, entries)."""
    codes, rows = [], []
    known = robot.limits.velocity
    fastest = known if len(known) == robot.n_joints else np.full(robot.n_joints, np.nan)
    for friction, values, speed in zip(truth.friction, truth.coefficients, fastest, strict=True):
        written = friction.law in stepping.LAWS
        codes.append(stepping.LAWS.index(friction.law) if written else stepping.TABULATED)
        ways = friction.by_direction(values)
        top = 3.0 * (speed if np.isfinite(speed) else 3.0)
        rows.append([list(way.values()) if written else _table(friction.formula, way, top) for way in ways])
    width = max(6, *(len(row) for pair in rows for row in pair))
    table = np.zeros((len(rows), 2, width))
    for joint, pair in enumerate(rows):
        for direction, row in enumerate(pair):
            table[joint, direction, : len(row)] = row
    return np.array(codes, dtype=np.int64), table


def _table(law: FrictionLaw, coefficients: Mapping[str, float], top: float) -> list[float]:
    """A law's torque over speed as `stepping` reads it; the viscous coefficient, which grease changes, stands apart."""
    viscous = coefficients[law.viscous] if law.viscous else 0.0
    rest = {**coefficients, **({law.viscous: 0.0} if law.viscous else {})}
    speed = np.maximum(top * np.linspace(0.0, 1.0, NODES) ** 3, 1e-9)
    step = 1e-6 * np.maximum(speed, 1e-6)
    slope = (law.torque(speed + step, rest) - law.torque(np.maximum(speed - step, 1e-12), rest)) / (2.0 * step)
    return [viscous, top, *law.torque(speed, rest).tolist(), *slope.tolist()]


def _stated(robot: Robot, truth: Virtual, payload: Array | None) -> dict[str, Any]:
    """The truth as a log keeps it, for pictures of estimates beside it: parameters with the payload, friction laws."""
    links = np.array(truth.inertia, dtype=float)
    if payload is not None:
        links[robot.n_joints - 1] += change_of_frame(robot.tool) @ payload
    values = {f"Im{i}": float(inertia) for i, inertia in enumerate(truth.rotor_inertia, start=1)}
    for i, body in enumerate(links, start=1):
        values |= dict(zip(inertial_names(i), body.tolist(), strict=True))
    for i, (stiffness, rest) in enumerate(truth.springs, start=1):
        values |= {f"ks{i}": stiffness, f"kl{i}": stiffness * rest}
    return {"parameters": values, "friction": list(zip(truth.friction, truth.coefficients, strict=True))}


def truth_of(robot: Robot) -> Virtual:
    """A description's `virtual` section, or the inertias and friction that its URDF or MJCF file states.

    Such files say nothing of sensors: encoders of 18 bits are assumed, and torque noise of 1 % of what gravity,
    friction at 1 rad/s and an acceleration of 1 rad/s^2 ask of each joint, root mean square over postures.
    """
    if robot.virtual is not None:
        return robot.virtual
    if robot.nominal_inertia is None:
        raise ArmidError(
            f"{robot.source}: virtual: is missing, so this arm cannot be simulated; "
            "describe its true links, friction and noise there, or start from a URDF with inertias"
        )
    n = robot.n_joints
    friction = np.zeros((n, 2)) if robot.nominal_friction is None else robot.nominal_friction
    reflected = np.zeros(n) if robot.nominal_rotors is None else robot.nominal_rotors
    ratios = np.array([drive.gear_ratio for drive in robot.drives])
    return Virtual(
        inertia=robot.nominal_inertia,
        rotor_inertia=reflected / ratios**2,
        friction=tuple(Friction("coulomb-viscous") for _ in range(n)),
        coefficients=tuple({"fv": float(fv), "fc": float(fc)} for fv, fc in friction),
        springs=(*((0.0, 1.0) for _ in robot.springs), *((s.stiffness, s.rest) for s in robot.linear_springs)),
        load_loss=np.zeros((n, 2)),
        torque_noise=NOISE * np.hypot(_usual_torque(robot), friction.sum(axis=1)),
        encoder_resolution=ENCODER,
        payload=None,
        note="from the nominal inertias of the description, with assumed sensors",
    )


def _usual_torque(robot: Robot) -> Array:
    """Root mean square over postures of each joint's weight and its inertia times 1 rad/s^2 [N m]."""
    model, q = Model(robot), some_postures(robot, POSTURES)
    values = prior_values(model)
    inertia = np.diagonal(model.mass_matrix(q, values), axis1=1, axis2=2)
    return np.asarray(np.sqrt(np.mean(model.gravity_torque(q, values) ** 2 + inertia**2, axis=0)))
