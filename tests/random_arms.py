"""Plausible arms that nobody has tuned anything on: random geometry, masses, friction, rotors, loops."""

from dataclasses import dataclass

import numpy as np
import yaml

import armid

FAMILIES = ("none", "coulomb-viscous", "stribeck", "hyperbolic", "double-exponential")
SHARES = (0.1, 0.25, 0.25, 0.2, 0.2)


@dataclass(frozen=True)
class RandomArm:
    """A robot with its truth, the family of its friction and the bandwidth of its drive loops [Hz]."""

    robot: object
    family: str
    loop_hz: float


def random_arm(seed, folder):
    """The arm of a seed; its description is written to `folder`. From 200 on also skew axes, springs and loads."""
    rng = np.random.default_rng(seed)
    n, reach = int(rng.integers(4, 8)), float(np.exp(rng.uniform(np.log(0.5), np.log(2.5))))
    alpha = np.array([0.0, *rng.choice([-0.5, 0.5], n - 1)]) * np.pi
    if rng.random() < 0.4:
        alpha[2] = 0.0  # shoulder and elbow are parallel, as on most industrial arms
    lengths = reach * np.sort(rng.dirichlet(np.full(n, 1.5)))[::-1]
    along_x = rng.random(n) < 0.5
    along_x[0] = False
    a, d = np.where(along_x, lengths, 0.0), np.where(along_x, 0.0, lengths)
    mass = 20.0 * reach**2 * np.exp(rng.normal(0.0, 0.5)) * np.sort(rng.dirichlet(np.full(n, 3.0)))[::-1]
    ends = [np.array([a[i], -np.sin(alpha[i]) * d[i], np.cos(alpha[i]) * d[i]]) for i in range(1, n)]
    ends.append(np.array([0.0, 0.0, 0.08 * reach]))
    links = [_link(rng, m, end, 0.12 * reach) for m, end in zip(mass, ends, strict=True)]
    speed = np.sort(rng.uniform(1.0, 4.0, n))
    beyond = np.array([lengths[i:].sum() for i in range(n)])
    weight = 9.81 * np.array([mass[i:].sum() for i in range(n)]) * 0.5 * beyond + 0.5
    family = str(rng.choice(FAMILIES, p=SHARES))
    gear = float(rng.choice([50.0, 100.0, 160.0]))
    virtual = {
        "links": links,
        "rotor_inertia": (0.005 * weight / gear**2 * rng.uniform(0.3, 3.0, n)).tolist(),
        "torque_noise": (0.01 * weight * np.exp(rng.normal(0.0, 0.4, n)) + 0.02).tolist(),
    }
    level = weight * rng.uniform(0.03, 0.2, n) + 0.2
    if family != "none":
        virtual["friction"] = {"law": family, "coefficients": _friction(rng, family, level, speed)}
    if rng.random() < 0.3:
        virtual["load_loss"] = {"slope": rng.uniform(0.0, 0.08, n).tolist(), "offset": [0.0] * n}
    description = {
        "armid": 1,
        "name": f"random{seed}",
        "kinematics": {
            "convention": "modified-dh",
            "rows": [[float(alpha[i]), float(a[i]), float(d[i]), 0.0] for i in range(n)],
        },
        "limits": {
            "position": [[-2.5, 2.5]] * n,
            "velocity": speed.tolist(),
            "acceleration": (speed * rng.uniform(2.0, 5.0)).tolist(),
        },
        "drives": {"gear_ratio": gear, "rotor_inertia": "unknown", "coupled": False},
        "friction": {"law": "coulomb-viscous" if family == "none" else family},
        "virtual": virtual,
    }
    if seed >= 200:
        _harder(np.random.default_rng([seed, 1]), description, weight, float(mass[-1]))
    path = folder / f"random{seed}.yaml"
    path.write_text(yaml.safe_dump(description), "utf-8")
    return RandomArm(armid.load_robot(path), family, float(rng.uniform(5.0, 30.0)))


def _harder(rng, description, weight, end_mass):
    """Axes at odd angles as in many URDF files, a spring at the shoulder, a load at the flange."""
    if rng.random() < 0.5:
        for row in description["kinematics"]["rows"][1:]:
            row[0] += float(rng.normal(0.0, 0.3))
    if rng.random() < 0.4:
        description["springs"] = [{"type": "linear", "along": {"joint2": 1}}]
        stiffness = float(rng.uniform(0.1, 0.5) * weight[1])
        description["virtual"]["springs"] = [{"k": stiffness, "l0": float(rng.normal(0.0, 0.3))}]
    if rng.random() < 0.5:
        mass = end_mass * float(rng.uniform(0.3, 2.0))
        size = mass * 0.05**2
        description["virtual"]["payload"] = {
            "mass": mass,
            "com": rng.normal(0.0, 0.04, 3).tolist(),
            "inertia": {"xx": size, "xy": 0.0, "xz": 0.0, "yy": size, "yz": 0.0, "zz": size},
        }


def _link(rng, mass, end, least):
    """A box about the way to the next joint, its centre somewhere on it."""
    length = float(np.linalg.norm(end))
    thick = 0.25 * max(length, least) * np.exp(rng.normal(0.0, 0.25))
    along = end / length
    across = np.cross(along, rng.normal(size=3))
    across /= np.linalg.norm(across)
    axes = np.column_stack([along, across, np.cross(along, across)])
    sides = np.array([length + thick, *2.0 * thick * rng.uniform(0.6, 1.3, 2)]) ** 2
    inertia = mass / 12.0 * (axes * (sides.sum() - sides)) @ axes.T
    centre = end * rng.uniform(0.25, 0.6) + 0.25 * thick * rng.normal(size=3)
    names = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
    return {
        "mass": float(mass),
        "com": centre.tolist(),
        "inertia": {name: float(inertia[place]) for name, place in names.items()},
    }


def _friction(rng, family, level, speed):
    """Coefficients of a family for joints with a level of friction [N m] and a fastest speed [rad/s]."""
    n = len(level)
    viscous = level * rng.uniform(0.2, 1.0, n) / speed
    values = {
        "coulomb-viscous": lambda: {"fv": viscous, "fc": level},
        "stribeck": lambda: {
            "fv": viscous,
            "fc": level,
            "fs": level * rng.uniform(1.1, 1.6, n),
            "vs": speed * rng.uniform(0.02, 0.1, n),
        },
        "hyperbolic": lambda: {
            "g1": 0.6 * level,
            "g2": 30.0 / speed,
            "g3": 0.5 * level,
            "g4": 3.0 / speed,
            "g5": 0.3 * level / speed,
        },
        "double-exponential": lambda: {
            "f1": viscous,
            "f2": level,
            "f3": level * rng.uniform(-0.3, 0.4, n),
            "f4": speed * rng.uniform(0.03, 0.15, n),
            "f5": level * rng.uniform(-0.2, 0.3, n),
            "f6": 10.0 / speed,
        },
    }[family]()
    return {name: value.tolist() for name, value in values.items()}
