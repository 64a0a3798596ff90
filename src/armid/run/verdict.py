"""The five numbers that matter, from the files of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.validation.validation import Validation


def numbers_that_matter(folder: Path, fit: Fit, check: Validation) -> dict[str, str]:
    """What a reader wants to know first, in words; taken from the results, never computed again."""
    classes = fit.identifiability.classes
    worst = max(check.joints, key=lambda joint: joint.nrms_moving)
    noisy = [joint for joint in check.joints if joint.noise_ratio is not None]
    numbers = {
        "parameters determined by the data": f"{classes.count('determined')} of {len(classes)}",
        "held-out torque error, all joints": f"{100 * check.relative_error:.2g} % of the torque",
        "worst joint while it moves": f"{100 * worst.nrms_moving:.2g} % ({worst.name})",
    }
    if noisy:
        loudest = max(noisy, key=lambda joint: joint.noise_ratio or 0.0)
        numbers["largest error over noise"] = f"{loudest.noise_ratio:.2g} ({loudest.name})"
    tracking = folder / "tracking.json"
    if tracking.exists():
        numbers["tracking, mean distance from the path"] = _tracking(json.loads(tracking.read_text(encoding="utf-8")))
    else:
        audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
        numbers["an arm with these parameters can exist"] = "yes" if audit["possible"] else "no"
    return numbers


def _tracking(data: dict[str, Any]) -> str:
    """The identified model against feedback alone."""
    errors = {run["controller"]: run["mean_cartesian_error"] for run in reversed(data["runs"])}
    best, alone = errors.get("computed-torque"), errors.get("pid")
    if best is None:
        return "not measured"
    return f"{1e3 * best:.2g} mm" + ("" if alone is None else f" (PID alone {1e3 * alone:.2g} mm)")
