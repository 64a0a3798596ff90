"""From a log in memory to weighted least squares with covariance: armid against Pinocchio."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
import pinocchio as pin

import armid
from armid.signals.dataset import Dataset

SAMPLES = 1_000_000
PEER_SAMPLES = 20_000  # a Pinocchio loop with the stacked regressor in memory; time per sample is what counts
ROUNDS = 7


def identify(results: dict, robot: armid.Robot, columns: np.ndarray, pin_model: pin.Model) -> None:
    """Time per sample, all on one thread, in one run, taking turns; columns: inertia, viscous and Coulomb friction.

    It is the time that the processor works, so that other processes on the machine count for nobody.
    """
    data = log_of(robot, SAMPLES)
    small = log_of(robot, PEER_SAMPLES)
    ours, peer = [], []
    estimator = armid.WeightedLeastSquares()
    estimator.fit(robot, small)
    for _ in range(ROUNDS):
        ours.append(_seconds(lambda: estimator.fit(robot, data)) / SAMPLES)
        peer.append(_seconds(lambda: _pinocchio(pin_model, columns, small)) / PEER_SAMPLES)
    ours_s, peer_s = float(np.median(ours)), float(np.median(peer))
    results["identify_vs_pinocchio"] = peer_s / ours_s
    results["identify"] = {
        "armid_us_per_sample": 1e6 * ours_s,
        "armid_samples": SAMPLES,
        "pinocchio_us_per_sample": 1e6 * peer_s,
        "pinocchio_samples": PEER_SAMPLES,
    }


def log_of(robot: armid.Robot, samples: int) -> Dataset:
    """Periodic motion of five harmonics of 0.1 Hz at 1 kHz, and random torque.

    Random states would not do: next to slow ones, which are everywhere among them, rows do not count.
    """
    rng, time = np.random.default_rng(0), 1e-3 * np.arange(samples)
    omega = 0.2 * np.pi * np.arange(1, 6)
    sine, cosine = np.sin(np.outer(time, omega)), np.cos(np.outer(time, omega))
    a, b = rng.normal(size=(2, 5, robot.n_joints)) / omega[:, None]
    q, qd = sine @ a + cosine @ b, (cosine * omega) @ a - (sine * omega) @ b
    qdd = -(sine * omega**2) @ a - (cosine * omega**2) @ b
    return Dataset(robot.joint_names, time, q, qd, qdd, rng.normal(size=q.shape), np.arange(samples))


def _pinocchio(model: pin.Model, columns: np.ndarray, data: Dataset) -> np.ndarray:
    """Ordinary, then weighted least squares with covariance, as one writes it with Pinocchio and NumPy."""
    state = model.createData()
    count, n = data.q.shape
    stacked = np.empty((count * n, len(columns) + 2 * n))
    for i in range(count):
        rows = slice(i * n, (i + 1) * n)
        stacked[rows, : len(columns)] = pin.computeJointTorqueRegressor(
            model, state, data.q[i], data.qd[i], data.qdd[i]
        )[:, columns]
        stacked[rows, len(columns) :] = np.hstack([np.diag(data.qd[i]), np.diag(np.sign(data.qd[i]))])
    torque = data.torque.ravel()
    first = np.linalg.lstsq(stacked, torque, rcond=None)[0]
    sigma = (torque - stacked @ first).reshape(count, n).std(axis=0)
    weight = np.tile(1.0 / sigma, count)
    weighted = stacked * weight[:, None]
    np.linalg.lstsq(weighted, torque * weight, rcond=None)
    return np.linalg.inv(weighted.T @ weighted)


def _seconds(work: Any) -> float:
    start = process_time()
    work()
    return process_time() - start
