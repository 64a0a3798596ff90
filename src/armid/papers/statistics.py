"""The statistics that every reproduction prints: errors against noise, parameter spread, conditioning, feasibility."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.papers.experiment import Bench, Row
from armid.validation.auditing import audit
from armid.validation.metrics import joint_metrics, plain

TORQUE_FIGURES = ("rms", "mse", "correlation", "noise_ratio")


def torque_statistics(
    measured: Array, predicted: Array, velocity: Array, noise: ArrayLike, names: Sequence[str]
) -> dict[str, list[float]]:
    """RMS [N m], MSE [N^2 m^2], correlation ER-16 (18) and RMS over noise, per joint.

    Args:
        measured: torque (samples, joints) [N m].
        predicted: the same, by the model.
        velocity: of the joints (samples, joints) [rad/s].
        noise: standard deviation of the measured torque's noise per joint [N m].
        names: of the joints.
    """
    levels = np.asarray(noise, dtype=float)
    each = [
        joint_metrics(name, measured[:, j], predicted[:, j], velocity[:, j], float(levels[j]))
        for j, name in enumerate(names)
    ]
    found = {key: [float(getattr(one, key)) for one in each] for key in TORQUE_FIGURES}
    # over all samples, as the papers do, not only over those at which the joint moves
    found["noise_ratio"] = [one.rms / level for one, level in zip(each, levels, strict=True)]
    return found


def fit_statistics(fit: Fit) -> dict[str, Any]:
    """Values, sigma and relative sigma of the parameters, condition number, and how far from physically possible."""
    judged = audit(fit)[0]
    relative = fit.sigma / np.maximum(np.abs(fit.values), 1e-12)
    return {
        "parameters": list(fit.names),
        "values": plain(fit.values),
        "sigma": plain(fit.sigma),
        "relative_sigma": plain(relative),
        "condition_number": plain(float(fit.identifiability.condition)),
        "possible": bool(judged.possible),
        "feasibility_distance": float(judged.distance_parameters),
    }


def statistics_rows(bench: Bench, what: str, torque: dict[str, list[float]], fit: dict[str, Any]) -> tuple[Row, ...]:
    """The statistics as rows; the paper prints none of them, so they are not comparable."""
    words = {"rms": ("RMS of the torque error", "N m"), "mse": ("mean squared torque error", "(N m)²")}
    words |= {"correlation": ("correlation (18)", ""), "noise_ratio": ("RMS of the torque error over noise", "")}
    rows = [
        bench.row(
            f"{what}: {words[key][0]}, by joint",
            ours=listed(torque[key], 6 if key == "correlation" else 4),
            unit=words[key][1],
            verdict=_NOT,
        )
        for key in TORQUE_FIGURES
        if key in torque
    ]
    sigma, relative = np.array(fit["sigma"]), np.array(fit["relative_sigma"])
    worst = int(relative.argmax())
    rows += [
        bench.row(
            f"{what}: median relative sigma of {len(sigma)} parameters",
            ours=float(np.median(relative)),
            verdict=_NOT,
            note=f"largest {relative[worst]:.3g} ({fit['parameters'][worst]}, sigma {sigma[worst]:.3g})",
        ),
        bench.row(f"{what}: condition number, columns scaled", ours=float(fit["condition_number"]), verdict=_NOT),
        bench.row(
            f"{what}: relative distance to physically possible parameters",
            ours=float(fit["feasibility_distance"]),
            verdict=_NOT,
            note="possible as it is" if fit["possible"] else "plain least squares knows no physics",
        ),
    ]
    return tuple(rows)


def listed(values: Sequence[float] | Array, digits: int = 4) -> str:
    """Numbers of the joints in one cell: ``0.1 / 0.2 / 0.1``."""
    return " / ".join(f"{float(value):.{digits}g}" for value in values)


_NOT = "not comparable"
