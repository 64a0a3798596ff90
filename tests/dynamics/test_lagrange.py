"""Torque by Lagrange's equation from energies alone, an independent derivation (PA-10 (2), (3), Powerball (3), (4))."""

import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from tests.dynamics.arms import random_robot

STEP = 1e-5  # of the outer differences; the inner ones are complex steps, which have no round-off


def energies(robot, bodies, q, qd):
    """Kinetic less potential energy; frames are carried along the chain, and nothing of the package is used."""
    rotation, place = [np.eye(3)], [np.zeros(3)]
    spin, speed, total = [np.zeros(3)], [np.zeros(3)], 0.0
    for joint, phi, angle, rate in zip(robot.joints, bodies, q, qd, strict=True):
        p = joint.parent
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        reach = rotation[p] @ joint.placement[:3, 3]
        frame = rotation[p] @ joint.placement[:3, :3]
        axis = frame[:, 2] * rate
        here, omega = place[p] + reach, spin[p] + axis
        velocity = speed[p] + np.cross(spin[p], reach)
        link = frame @ turn @ joint.link_frame[:3, :3]
        offset = frame @ turn @ joint.link_frame[:3, 3]
        m, first, (xx, xy, yy, xz, yz, zz) = phi[0], link @ phi[1:4], phi[4:]
        tensor = link @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ link.T
        at = velocity + np.cross(omega, offset)  # of the link's frame, in which its ten parameters are
        total += 0.5 * m * at @ at + at @ np.cross(omega, first) + 0.5 * omega @ tensor @ omega
        total += robot.gravity @ (m * (here + offset) + first)
        rotation.append(link)
        place.append(here + offset)
        spin.append(omega)
        speed.append(at)
    return total


def lagrange_torque(robot, bodies, q, qd, qdd):
    """d/dt of the momenta dL/dqd, less dL/dq."""

    def slope(q, qd, which):
        result = np.zeros(len(q))
        for i in range(len(q)):
            step = np.zeros(len(q), dtype=complex)
            step[i] = 1e-30j
            result[i] = energies(robot, bodies, q + step * (not which), qd + step * which).imag / 1e-30
        return result

    ahead = slope(q + STEP * qd + 0.5 * STEP**2 * qdd, qd + STEP * qdd, True)
    behind = slope(q - STEP * qd + 0.5 * STEP**2 * qdd, qd - STEP * qdd, True)
    return (ahead - behind) / (2.0 * STEP) - slope(q, qd, False)


@pytest.mark.parametrize("seed", range(4))
def test_newton_euler_is_lagrange(seed):
    """Random trees of revolute joints with any frames and gravity: both derivations give the same torque."""
    rng = np.random.default_rng(seed)
    robot, bodies = random_robot(seed, 4, "any", False)
    motion = random_motion(robot, 3, rng)
    model = armid.Model(robot)
    torque = model.inverse_dynamics(*motion, dict(zip(model.names, bodies.ravel(), strict=True)))
    for k in range(3):
        expected = lagrange_torque(robot, bodies, *(part[k] for part in motion))
        np.testing.assert_allclose(torque[k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
