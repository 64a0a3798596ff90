"""Sentences of what is worth knowing about exported files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_CHOICE = "one choice that agrees with what the data tell of combinations"


def _masses(determined: Sequence[str], links: int) -> str:
    if not determined:
        return f"No link's mass is determined by the data: the masses in these files are {_CHOICE}."
    if len(determined) == links:
        return "The mass of every link is determined by the data."
    verb = "mass is" if len(determined) == 1 else "masses are"
    return f"Only of {', '.join(determined)} the {verb} determined by the data: the other masses are {_CHOICE}."


def _emptied(links: Sequence[str]) -> str:
    it, its = ("it", "its") if len(links) == 1 else ("them", "their")
    return (
        f"The inertia of {', '.join(links)} is part of the moving link that carries {it}, where the whole was "
        f"identified; {its} own <inertial> was taken out, so that nothing counts twice."
    )


def _massless(links: Sequence[str], least_kg: float) -> str:
    verb = "has" if len(links) == 1 else "have"
    return f"{', '.join(links)} {verb} no mass in the fit; MuJoCo wants some, so that {least_kg:g} kg stand there."


def _gravity(vector: Sequence[float]) -> str:
    words = " ".join(f"{value:.6g}" for value in vector)
    return f"A URDF does not say where down is: this arm's gravity is {words} m/s^2 in the base frame."


def _agreement(error: float, rounded: bool) -> str:
    why = ", because the description's angles are rounded" if rounded else ""
    return (
        f"Standard and base parameters of the fit differ by {error:.1e} of the range of torque{why}; the standard "
        "parameters are written."
    )


WORDS: dict[str, Any] = {
    "agreement": _agreement,
    "base_only": (
        "The fit has base parameters only: torques are those of the fit, but masses and inertias in these files are no "
        "single links' (`armid identify --method feasible` gives links)."
    ),
    "masses": _masses,
    "emptied": _emptied,
    "meshes": "Mesh files are named relative to the original file; keep the new one beside it, or copy them.",
    "joint_frames": "A URDF has its link frames at the joints: inertias are given there, not in the fit's link frames.",
    "gravity": _gravity,
    "massless": _massless,
    "lost_spring": (
        "Spring {number} (stiffness {stiffness:.4g} N/m, free length {length:.4g} m) is none that MuJoCo takes."
    ),
    "new_file": "A new file was written, because the robot's own cannot be completed: {reason}.",
    "other_gravity": "The file's gravity stays {file} m/s^2; the fit was made with {fit}.",
    "kinematics": "Its kinematics are those of {file}, which goes with it.",
}
