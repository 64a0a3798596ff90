"""The arm in space: meshes, capsules or ellipsoids that follow the joints, and an arrow for gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from nicegui import ui

from armid import theme
from armid.arrays import Array
from armid.dynamics.kinematics import link_frames
from armid.excitation.collision import ShapelessError, link_capsules
from armid.reporting.evidence import reach_of
from armid.reporting.sections.parameters import ellipsoid
from armid.robot.geometry import along
from armid.robot.robot import Capsule, Robot

_TURN = np.pi  # half the range of a slider where a joint has no limits [rad]


class ArmScene:
    """An arm that takes any posture.

    Args:
        robot: the arm.
        meshes: surfaces of links, found under the address ``/mesh/LINK/PART``; links without any are capsules.
        bodies: inertial parameters of each link, drawn as ellipsoids of the same inertia; None for none.
    """

    def __init__(
        self, robot: Robot, meshes: Mapping[int, Sequence[bytes]], bodies: Sequence[Array] | None = None
    ) -> None:
        """Draw it at zero."""
        self.robot, self.capsules = robot, tuple[Capsule, ...]()
        with suppress(ShapelessError):
            self.capsules = link_capsules(robot)
        self.reach = max(reach_of(robot), _farthest(robot, self.capsules))
        size = max(1.0, float(np.ceil(2.0 * self.reach)))
        self.scene = ui.scene(grid=(int(2 * size), int(4 * size)), background_color="#f6f7f8", height=420)
        self.scene.classes("arm").props('aria-label="the arm in space; drag to turn it"')
        self.links: list[Any] = []
        self._seen = 0
        with self.scene as scene:
            for number in range(len(robot.links) + 1):
                with scene.group() as group:
                    self._link(number, len(meshes.get(number, ())), 1.0 if bodies is None else 0.25)
                    if bodies is not None and number:
                        self._ellipsoid(bodies[number - 1])
                self.links.append(group)
            self._gravity()
        far = 0.95 * self.reach
        scene.move_camera(x=far, y=-far, z=0.9 * far, look_at_z=0.35 * self.reach, duration=0.0)
        self.pose([0.0] * robot.n_joints)

    def pose(self, q: Sequence[float]) -> None:
        """Move the joints to positions [rad or m]."""
        frames = link_frames(self.robot, np.asarray([q], dtype=float))[0]
        for group, frame in zip(self.links[1:], frames, strict=True):
            group.move(*frame[:3, 3].tolist()).rotate_R(frame[:3, :3].tolist())

    def _link(self, number: int, meshes: int, opacity: float) -> None:
        capsules = [capsule for capsule in self.capsules if capsule.link == number]
        self._seen += bool(meshes or capsules)  # colours take turns among the links that are seen
        colour = theme.NOMINAL if self._seen % 2 else "#b9bec4"
        for part in range(meshes):
            self.scene.stl(f"/mesh/{number}/{part}").material(colour, opacity, side="both")
        if meshes:
            return
        for capsule in capsules:
            way = capsule.end - capsule.start
            length = float(np.linalg.norm(way))
            for end in (capsule.start, capsule.end):
                self.scene.sphere(capsule.radius, 24, 12).material(colour, opacity).move(*end.tolist())
            if length > 1e-9:
                # A cylinder stands along y.
                turned = along(way / length)[:, [1, 2, 0]]
                tube = self.scene.cylinder(capsule.radius, capsule.radius, length, 24)
                tube.material(colour, opacity).rotate_R(turned.tolist())
                tube.move(*(0.5 * (capsule.start + capsule.end)).tolist())

    def _ellipsoid(self, body: Array) -> None:
        found = ellipsoid(body)
        if found is None:
            return
        centre, shape = found
        squares, axes = np.linalg.eigh(shape)
        axes = axes * np.linalg.det(axes)
        radii = np.clip(np.sqrt(np.maximum(squares, 0.0)), 1e-3, self.reach)
        shown = self.scene.sphere(1.0, 24, 12).material(theme.PREDICTED, 0.75).scale(*radii.tolist())
        shown.rotate_R(axes.tolist()).move(*np.clip(centre, -self.reach, self.reach).tolist())

    def _gravity(self) -> None:
        size = float(np.linalg.norm(self.robot.gravity))
        if size == 0.0:
            return
        down = self.robot.gravity / size
        start = np.array([0.6 * self.reach, 0.0, 0.0]) - 0.5 * self.reach * down
        length, turned = 0.3 * self.reach, along(down)[:, [1, 2, 0]]
        shaft = self.scene.cylinder(0.008 * self.reach, 0.008 * self.reach, length, 12)
        shaft.material(theme.RESIDUAL).rotate_R(turned.tolist()).move(*(start + 0.5 * length * down).tolist())
        # The tip's narrow end is at its bottom, -y: turned upside down it points along gravity.
        tip = self.scene.cylinder(0.03 * self.reach, 0.0, 0.08 * self.reach, 16).material(theme.RESIDUAL)
        tip.rotate_R((turned @ np.diag([1.0, -1.0, -1.0])).tolist()).move(*(start + length * down).tolist())


def _farthest(robot: Robot, capsules: Sequence[Capsule]) -> float:
    """How far the arm's surface is from the origin at zero [m]."""
    frames = [np.eye(4), *link_frames(robot, np.zeros((1, robot.n_joints)))[0]]
    placed = [capsule.moved(frames[capsule.link], 0) for capsule in capsules]
    return max((float(np.linalg.norm(end)) + c.radius for c in placed for end in (c.start, c.end)), default=0.0)


def posture_sliders(scene: ArmScene) -> None:
    """A slider for each joint, between its limits."""
    robot = scene.robot
    q = [0.0] * robot.n_joints
    with ui.element("div").classes("sliders"):
        for j, joint in enumerate(robot.joints):
            lower, upper = (float(limit[j]) for limit in (robot.limits.lower, robot.limits.upper))
            bound = scene.reach if joint.prismatic else _TURN
            low, high = (lower if np.isfinite(lower) else -bound), (upper if np.isfinite(upper) else bound)
            q[j] = min(max(0.0, low), high)
            _slider(scene, q, j, low, high)
    scene.pose(q)


def _slider(scene: ArmScene, q: list[float], j: int, low: float, high: float) -> None:
    joint = scene.robot.joints[j]
    unit = "m" if joint.prismatic else "rad"

    def turn(event: Any) -> None:
        q[j] = float(event.value)
        value.set_text(f"{q[j]:.2f} {unit}")
        scene.pose(q)

    with ui.element("div").classes("slider"):
        ui.label(joint.name).classes("name")
        slider = ui.slider(min=low, max=high, step=(high - low) / 200.0, value=q[j], on_change=turn)
        slider.props["aria-label"] = f"position of {joint.name}"
        value = ui.label(f"{q[j]:.2f} {unit}").classes("value")
