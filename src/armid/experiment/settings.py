"""What is adjustable on the virtual robot: its drive loops, sensors, grease, gears and reversal behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from armid.errors import ArmidError

PerJoint = float | tuple[float, ...]
LONGEST_S = 10.0  # of delays, jitter and correlation, for which past samples are kept


@dataclass(frozen=True)
class DriveLoop:
    """Independent cascade per joint, as in most drives: a position loop around a velocity loop with integral action.

    The velocity wanted is v = dq_ref/dt + w_p (q_ref - q), and the torque K (v - dq/dt) + K w_v / 4 times the integral
    of (v - dq/dt), with K = w_v J and J the joint's own inertia where the arm stands when it is made (a mean over
    postures where it varies so much that such a loop would be unstable elsewhere).

    Attributes:
        bandwidth_hz: of the position loop, w_p = 2 pi bandwidth.
        velocity_ratio: bandwidth of the velocity loop over that of the position loop, w_v = ratio w_p.
    """

    bandwidth_hz: PerJoint = 8.0
    velocity_ratio: float = 4.0


@dataclass(frozen=True)
class Sensors:
    """What stands between the truth and the log.

    Attributes:
        torque_noise: standard deviation [N m]; None takes the description's.
        noise_time_constant_s: 0 for white noise, otherwise its correlation time (first-order).
        encoder_resolution: [rad]; None takes the description's.
        encoder_noise: standard deviation added before rounding [rad].
        velocity_noise: standard deviation [rad/s]; None takes a tenth of the encoder's resolution per cycle.
        effort_delay_s: how late the effort is reported.
        effort_range: measured efforts are cut at plus and minus this [N m]; None for no limit.
        jitter_s: standard deviation of the sampling instants; time stamps tell them.
        drop_probability: share of samples that are lost.
    """

    torque_noise: PerJoint | None = None
    noise_time_constant_s: float = 0.0
    encoder_resolution: float | None = None
    encoder_noise: PerJoint = 0.0
    velocity_noise: PerJoint | None = None
    effort_delay_s: PerJoint = 0.0
    effort_range: PerJoint | None = None
    jitter_s: float = 0.0
    drop_probability: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no size."""
        for name in ("noise_time_constant_s", "jitter_s"):
            per_joint(name, getattr(self, name), 1)
        if not 0.0 <= self.drop_probability < 1.0:
            raise ArmidError(f"drop_probability is {self.drop_probability:g}; give a share, at least 0 and below 1")

    @classmethod
    def perfect(cls) -> Sensors:
        """No noise, no rounding."""
        return cls(torque_noise=0.0, encoder_resolution=0.0, velocity_noise=0.0)


@dataclass(frozen=True)
class Thermal:
    """Grease that warms up while a joint moves and cools while it rests.

    The viscous coefficient is (1 + excess (1 - w)) times that of the warm arm, with dw/dt = (moving - w) / time
    constant; `moving` is 1 above 1e-3 rad/s and else 0.

    Attributes:
        excess: by how much the viscous coefficient is larger on the cold arm.
        time_constant_s: of warming and cooling.
        start: w at power-on, 0 cold and 1 warm.
        ambient: temperature of the cold arm [°C].
        rise: temperature of the warm arm above it [°C].
    """

    excess: float = 0.35
    time_constant_s: float = 400.0
    start: float = 0.0
    ambient: float = 22.0
    rise: float = 14.0


@dataclass(frozen=True)
class Presliding:
    """LuGre-type bristles, so that friction does not jump at reversals.

    dz/dt = v - s0 |v| z / g(v) and friction = s0 z + s1 dz/dt, with g(v) the friction law's own level.

    Attributes:
        deflection: bristle deflection at the level of slow motion [rad]; s0 = level / deflection.
        damping: s1 = 2 damping sqrt(s0 J).
    """

    deflection: float = 1e-3
    damping: float = 0.5


@dataclass(frozen=True)
class Elasticity:
    """Gears that give way: a spring and a damper between the motor and the link of each joint (Spong 1987).

        B theta'' + friction = tau - s,    M_l q'' + h = s,    s = K (theta - q) + D (theta' - q')

    B is the motors' inertia on the joint side and M_l the arm's without it; links do not feel how motors spin.
    Encoders, drives and friction are on the motors' side.

    Attributes:
        resonance_hz: the lowest of a joint, of its links against the locked motor or of its motor against locked links,
            f: K = (2 pi f)^2 J, with J the larger of both inertias in any posture.
        damping: ratio of that resonance's, D = 2 damping K / (2 pi f).
        motors: B [kg m^2]; None takes the description's rotors, or, where one has none (its inertia is part of the
            link's), half of what the arm's mass matrix leaves for it in any posture.
    """

    resonance_hz: PerJoint = 15.0
    damping: float = 0.05
    motors: PerJoint | None = None


def per_joint(name: str, value: PerJoint, joints: int) -> list[float]:
    """A value for each joint."""
    values = [float(value)] * joints if isinstance(value, int | float) else [float(v) for v in value]
    if len(values) != joints:
        raise ArmidError(f"{name} has {len(values)} values; give one, or one for each of the {joints} joints")
    if name.endswith("_s") and max(values) > LONGEST_S:
        raise ArmidError(f"{name} is {max(values):g} s; give at most {LONGEST_S:g} s")
    if not all(v >= 0.0 for v in values):
        raise ArmidError(f"{name} is negative or not a number ({min(values):g}); use zero or more")
    return values
