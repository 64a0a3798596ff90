"""The numbers that matter, from the files of a run, and how they are said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.validation.result import Validation


def numbers_that_matter(folder: Path, fit: Fit, check: Validation) -> dict[str, Any]:
    """What a reader wants to know first; taken from the results, never computed again."""
    classes = fit.identifiability.classes
    worst = max(check.joints, key=lambda joint: joint.nrms_moving)
    noisy = [joint for joint in check.joints if joint.noise_ratio is not None]
    loudest = max(noisy, key=lambda joint: joint.noise_ratio or 0.0, default=None)
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    return {
        "parameters": len(classes),
        "parameters_determined": classes.count("determined"),
        "relative_error": check.relative_error,
        "relative_error_moving": check.relative_error_moving,
        "worst_joint": worst.name,
        "worst_nrms_moving": worst.nrms_moving,
        "noisiest_joint": None if loudest is None else loudest.name,
        "largest_noise_ratio": None if loudest is None else loudest.noise_ratio,
        "possible": bool(audit["possible"]),
        **_tracking(folder / "tracking.json"),
    }


def _tracking(path: Path) -> dict[str, Any]:
    """Mean distance from the path [m] with the identified model and with feedback alone; None if not measured."""
    if not path.exists():
        return {"tracking_error_m": None, "pid_error_m": None}
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    errors = {run["controller"]: run["mean_cartesian_error"] for run in reversed(runs)}  # the first of a name counts
    return {"tracking_error_m": errors.get("computed-torque"), "pid_error_m": errors.get("pid")}


def in_words(numbers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Five of the numbers, each as what it is and how much."""
    n = numbers
    yield "parameters determined by the data", f"{n['parameters_determined']} of {n['parameters']}"
    yield "held-out torque error, all joints", f"{100 * n['relative_error_moving']:.2g} % of the torque"
    yield "worst joint while it moves", f"{100 * n['worst_nrms_moving']:.2g} % ({n['worst_joint']})"
    if n["largest_noise_ratio"] is not None:
        yield "largest error over noise", f"{n['largest_noise_ratio']:.2g} ({n['noisiest_joint']})"
    if n["tracking_error_m"] is not None:
        alone = "" if n["pid_error_m"] is None else f" (PID alone {1e3 * n['pid_error_m']:.2g} mm)"
        yield "tracking, mean distance from the path", f"{1e3 * n['tracking_error_m']:.2g} mm{alone}"
    else:
        yield "an arm with these parameters can exist", "yes" if n["possible"] else "no"
