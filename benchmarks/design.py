"""Design of a trajectory as armid does it, and by IPOPT with finite differences of a Pinocchio loop: same start."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pinocchio as pin

import armid
from armid.excitation.checks import Checks
from armid.excitation.design import design_problem
from armid.excitation.problem import DesignProblem, _Best, _ipopt, solve
from armid.excitation.search import random_start
from benchmarks import peers

ITERATIONS, STARTS = 120, 3
CLOSE = 0.5  # log det


class _Timed(DesignProblem):
    """Remembers after how much work of the processor which feasible cost was reached."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "history", [])
        object.__setattr__(self, "began", time.process_time())

    def cost_and_gradient(self, x):
        result = self.timed_cost_and_gradient(x)
        if self.violation(x) < 1e-4 and np.isfinite(result[0]):
            self.history.append((time.process_time() - self.began, result[0]))
        return result

    def timed_cost_and_gradient(self, x):
        return super().cost_and_gradient(x)

    def time_to(self, cost: float) -> float:
        return next((seconds for seconds, value in self.history if value <= cost), np.inf)


class _FiniteDifferences(_Timed):
    """The peer: regressors from a Pinocchio loop, gradient by forward differences."""

    def prepare(self, robot: armid.Robot) -> None:
        inertial = [p.name for p in self.model.parameters if p.kind == "inertial"]
        object.__setattr__(self, "peer", peers.pinocchio_model(robot))
        object.__setattr__(self, "chosen", np.array([inertial.index(name) for name in self.parameters]))

    def peer_cost(self, x) -> float:
        q, qd, qdd = self.variables.motion(x, self._cost_bases)
        data, information = self.peer.createData(), 0.0
        rows = np.empty((len(q), self.peer.nv, len(self.chosen)))
        for k in range(len(q)):
            rows[k] = pin.computeJointTorqueRegressor(self.peer, data, q[k], qd[k], qdd[k])[:, self.chosen]
        stacked = rows.reshape(-1, len(self.chosen))
        information = stacked.T @ stacked / len(q)
        sign, value = np.linalg.slogdet(information)
        return -value if sign > 0 else np.nan

    def timed_cost_and_gradient(self, x):
        cost = self.peer_cost(x)
        step = 1e-6
        gradient = np.empty(len(x))
        for i in range(len(x)):
            shifted = x.copy()
            shifted[i] += step
            gradient[i] = (self.peer_cost(shifted) - cost) / step
        return cost, gradient


def design(results: dict) -> None:
    """PA-10, 45 inertial columns, 77 variables, 512 samples: seconds until log det is within 0.5 of the same value."""
    robot = armid.load_robot("pa10", rotors=False, simplify="none")
    ready = design_problem(robot, parameters="inertial")
    ready.cost_and_gradient(random_start(ready, 0))  # compile
    found = [_one_start(robot, ready, seed) for seed in range(STARTS)]
    results["design_vs_finite_differences"] = statistics.median(one["ratio"] for one in found)
    results["design"] = {"starts": found, "variables": ready.variables.count, "samples": len(ready._cost_bases[0])}


def _one_start(robot: armid.Robot, ready: DesignProblem, seed: int) -> dict[str, float]:
    fields = ("model", "parameters", "variables", "limits", "criterion", "weights", "given")
    start = random_start(ready, seed)
    ours = _Timed(*(getattr(ready, name) for name in fields))
    object.__setattr__(ours, "began", time.process_time())
    solve(ours, start, iterations=ITERATIONS, deadline=np.inf)
    peer = _FiniteDifferences(*(getattr(ready, name) for name in fields))
    peer.prepare(robot)
    assert abs(peer.peer_cost(start) - ready.cost_and_gradient(start)[0]) < 1e-6
    object.__setattr__(peer, "began", time.process_time())
    _ipopt(_Best(peer, np.inf), start, ITERATIONS)
    best = max(min(cost for _, cost in problem.history) for problem in (ours, peer))
    mine, theirs = ours.time_to(best + CLOSE), peer.time_to(best + CLOSE)
    return {"ratio": theirs / mine, "armid_s": mine, "pinocchio_finite_differences_s": theirs, "log_det": -best}


def design_limits(results: dict) -> None:
    """Design of the PA-10 with torque, self-collision, floor and tool speed, over the same without; five starts."""
    robot, times = armid.load_robot("pa10"), []
    for checks in (None, Checks()):
        began = time.process_time()
        armid.design(robot, starts=5, workers=1, checks=checks)
        times.append(time.process_time() - began)
    results["design_all_limits_vs_plain"] = times[1] / times[0]


def ten_starts(results: dict) -> None:
    """`armid design pa10 --starts 10` on all cores, by the clock, kernels compiled."""
    robot = armid.load_robot("pa10")
    armid.design(robot, starts=2)
    began = time.perf_counter()
    armid.design(robot, starts=10)
    results["design_pa10_ten_starts_s"] = time.perf_counter() - began
