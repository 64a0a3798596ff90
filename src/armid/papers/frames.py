"""Frame drawing of an arm, made from its description (RX-60 Fig. 1, PA-10 Fig. 2, ER-16 Fig. 3, Powerball Fig. 2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.dynamics.kinematics import all_frames, tool_frame
from armid.robot.robot import Robot

AXIS, DRUM, RADIUS = 0.2, 0.09, 0.026  # length of axes, length and radius of joints, as shares of the arm's size
SAME = 1e-3  # points closer than this share of the size are one point
_ROUND, _SQUARE = 24, 4  # sides of the drums of turning and of sliding joints


def frames_figure(robot: Robot) -> theme.Picture:
    """The arm's frames in its zero posture: joints as drums about their axes, z axes blue, x axes black, links grey.

    A link is drawn as its kinematics go: along the common normal and along the joint's axis. Axes are those of the link
    frames (with DH parameters those of the table), so that with standard DH z1 lies in the axis of joint 2. Names of
    axes that end in one point share a line.
    """
    posture = np.zeros((1, robot.n_joints))
    joints, links = (frames[0] for frames in all_frames(robot, posture))
    tool = tool_frame(robot, posture)[0]
    lines = link_lines(robot, joints, links)
    if np.linalg.norm(tool[:3, 3] - links[-1, :3, 3]) > 0.0:
        lines.append(np.array([links[-1, :3, 3], tool[:3, 3]]))
    size = float(np.ptp(np.vstack(lines), axis=0).max()) or 1.0

    figure = theme.new_figure(6.6)
    axis: Any = figure.add_subplot(projection="3d")
    for line in lines:
        axis.plot(*line.T, color=theme.NOMINAL, linewidth=4.0, solid_capstyle="round", alpha=0.8)
    for j, joint in enumerate(robot.joints):
        _draw_drum(axis, joints[j], DRUM * size, RADIUS * size, _SQUARE if joint.prismatic else _ROUND)
    labels = []
    for j, frame in enumerate((np.eye(4), *links)):
        labels.append((_arrow(axis, frame, 0, 0.7 * AXIS * size), f"x{j}", theme.MEASURED))
        labels.append((_arrow(axis, frame, 2, (1.0 if j else 0.7) * AXIS * size), f"z{j}", theme.PREDICTED))
    _draw_gravity(axis, robot, size, np.vstack([*lines, *(tip[None] for tip, _, _ in labels)]))
    _write_labels(axis, labels, SAME * size)
    theme.style_space(axis, "m")
    # let the drawing fill the figure unless it is tall; scales stay equal
    x, y, z = (float(np.diff(getattr(axis, f"get_{name}lim")())[0]) for name in "xyz")
    axis.set_box_aspect((x, y, z), zoom=1.0 if z > 1.2 * max(x, y) else 1.15)
    theme.say(figure, _sentence(robot, tool))
    return figure


def link_lines(robot: Robot, joints: Array, links: Array) -> list[Array]:
    """Corners [m] of each link's line: from the parent's origin along the normal and the axis to its own origin.

    Args:
        robot: the robot.
        joints: joint frames (joints, 4, 4) in the base frame, before the joint's motion.
        links: link frames (joints, 4, 4).
    """
    lines = []
    for j, joint in enumerate(robot.joints):
        start = np.zeros(3) if joint.parent == 0 else links[joint.parent - 1, :3, 3]
        middle, end, z = joints[j, :3, 3], links[j, :3, 3], joints[j, :3, 2]
        corners = [start, middle - ((middle - start) @ z) * z, middle, middle + ((end - middle) @ z) * z, end]
        kept = corners[:1] + [b for a, b in pairwise(corners) if np.linalg.norm(b - a) > 1e-9]
        lines.append(np.array(kept))
    return lines


def _arrow(axis: Any, frame: Array, column: int, length: float) -> Array:
    """Draw one axis of a frame; returns its tip."""
    origin, direction = frame[:3, 3], length * frame[:3, column]
    colour = theme.MEASURED if column == 0 else theme.PREDICTED
    axis.quiver(*origin, *direction, color=colour, linewidth=1.2, arrow_length_ratio=0.16)
    return np.asarray(origin + direction)


def _draw_drum(axis: Any, frame: Array, length: float, radius: float, sides: int) -> None:
    """A cylinder, or a box for sliding joints, about a frame's z axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    round_about = radius * np.stack([np.cos(angle), np.sin(angle)])
    ends = [np.vstack([round_about, np.full(sides + 1, height)]) for height in (-0.5 * length, 0.5 * length)]
    placed = [frame[:3, :3] @ end + frame[:3, 3:] for end in ends]
    x, y, z = (np.stack([placed[0][k], placed[1][k]]) for k in range(3))
    axis.plot_surface(x, y, z, color=theme.NOMINAL, alpha=0.35, linewidth=0.0, shade=True)
    for end in placed:
        axis.plot(*end, color=theme.TEXT, linewidth=0.6)


def _draw_gravity(axis: Any, robot: Robot, size: float, points: Array) -> None:
    """Gravity beside the arm."""
    strength = float(np.linalg.norm(robot.gravity))
    if strength == 0.0:
        return
    down = 0.6 * AXIS * size * robot.gravity / strength
    place = np.array([points[:, 0].max(), points[:, 1].max(), points[:, 2].max()])
    axis.quiver(*(place - down), *down, color=theme.LIMIT, linewidth=1.0, arrow_length_ratio=0.2)
    axis.text(*(place - down), f" g = {strength:.4g} m/s²", fontsize=theme.TICK, color=theme.LIMIT)


def _write_labels(axis: Any, labels: list[tuple[Array, str, str]], near: float) -> None:
    """Names at the tips; those of one place stand in one line, in the colour of the first."""
    places: list[tuple[Array, list[str], str]] = []
    for tip, name, colour in labels:
        for place, names, own in places:
            if own == colour and np.linalg.norm(tip - place) < near:
                names.append(name)
                break
        else:
            places.append((tip, [name], colour))
    for tip, names, colour in places:
        axis.text(*tip, f" {', '.join(names)}", fontsize=theme.LABEL + 1.0, color=colour, zorder=20)


def _sentence(robot: Robot, tool: Array) -> str:
    kinds = "turning" if not any(joint.prismatic for joint in robot.joints) else "turning or sliding"
    x, y, z = tool[:3, 3]
    constants = ", ".join(f"{length.name} = {length.value:g} m" for length in robot.lengths)
    return (
        f"{robot.title.partition(',')[0] or robot.name}: {robot.n_joints} {kinds} joints in their zero posture, the "
        f"tool at ({x:.3g}, {y:.3g}, {z:.3g}) m{'; ' if constants else ''}{constants}."
    )
