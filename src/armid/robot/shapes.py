"""Shapes of links: capsules around boxes, cylinders, spheres and meshes, and the files that meshes are read from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from armid.arrays import Array
from armid.files import is_file
from armid.robot.robot import Robot

#: Start and end [m] of a capsule's axis, and its radius [m].
Shape = tuple[Array, Array, float]
_LARGEST_BYTES = 200_000_000
_LARGEST_PICTURE, _FAR = 40_000_000, 1e6  # bytes of all meshes of a picture together, and its size [m]
_DIRECTIONS, _BEST = 60, 3  # tried for the axis of a capsule, and how many of them with care
_SLABS, _WORTH = 3, 0.6  # parts of a long mesh, if their volume together is below this share of one capsule's
_MARGIN = 1.0 + 1e-9


def around_box(size: Array) -> Shape:
    """A capsule around a box about the origin, its axis along the longest side."""
    half = 0.5 * np.abs(np.asarray(size, dtype=float))
    corners = half * np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return _along(corners, np.eye(3)[int(np.argmax(half))])


def around_mesh(triangles: Array) -> list[Shape]:
    """Capsules that together enclose triangles (count, 3, 3): one, or several along a bent part."""
    whole = _around(triangles.reshape(-1, 3))
    axis, points = whole[1] - whole[0], triangles.reshape(-1, 3)
    along = (points @ axis).reshape(-1, 3)
    edges = np.linspace(along.min(), along.max(), _SLABS + 1)
    slabs = [_between(triangles, along, low, high) for low, high in pairwise(edges)]
    parts = [_around(slab) for slab in slabs if len(slab)]
    return parts if sum(map(_volume, parts)) < _WORTH * _volume(whole) else [whole]


def _between(triangles: Array, along: Array, low: float, high: float) -> Array:
    """Corners of the parts of triangles whose heights `along` an axis lie between two values."""
    way, rise = np.roll(triangles, -1, axis=1) - triangles, np.roll(along, -1, axis=1) - along
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort([(low - along) / rise, (high - along) / rise], axis=0)
    level = (along >= low) & (along <= high)
    first = np.where(rise == 0.0, np.where(level, 0.0, 2.0), np.maximum(ends[0], 0.0))
    last = np.where(rise == 0.0, 1.0, np.minimum(ends[1], 1.0))
    points = [triangles + share[..., None] * way for share in (first, last)]
    return np.concatenate([point[first <= last] for point in points])


def read_mesh(name: str, folder: Path) -> Array | None:
    """Triangles (count, 3, 3) of an STL or OBJ file that a description in `folder` names; None if it cannot be read."""
    path = next((path for _, path in _candidates(name, folder) if is_file(path)), None)
    return None if path is None else read_triangles(path)


def read_triangles(path: Path, largest: int = _LARGEST_BYTES) -> Array | None:
    """Triangles (count, 3, 3) of an STL or OBJ file of at most `largest` bytes; None if it cannot be read."""
    try:
        if path.stat().st_size > largest:
            return None
        triangles = (_read_obj if path.suffix.lower() == ".obj" else _read_stl)(path.read_bytes())
    except (OSError, ValueError, IndexError):
        return None
    return triangles if len(triangles) and np.isfinite(triangles).all() else None


def own_meshes(names: Iterable[str], folder: Path) -> list[Path]:
    """The STL and OBJ files that a description in `folder` names; none unless all lie in its folder or packages."""
    found = []
    for name in names:
        places = ((root.resolve(), path.resolve()) for root, path in _candidates(name, folder) if is_file(path))
        path = next((path for root, path in places if path.is_relative_to(root)), None)
        if path is None or path.suffix.lower() not in (".stl", ".obj"):
            return []
        found.append(path)
    return found


def _candidates(name: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Where a mesh may be, each after the folder that it belongs to.

    As it is named, in a ROS package above the description or on the path of packages, or beside the description.
    """
    text = unquote(name.removeprefix("file://"))
    above = [folder.resolve(), *folder.resolve().parents]
    if text.startswith("package://"):
        package, _, rest = text.removeprefix("package://").partition("/")
        roots = [place for place in above if place.name == package] + [place / package for place in above]
        for variable, inside in (("ROS_PACKAGE_PATH", "."), ("AMENT_PREFIX_PATH", "share")):
            roots += [Path(entry) / inside / package for entry in os.environ.get(variable, "").split(os.pathsep)]
        yield from ((root, root / rest) for root in roots)
    else:
        own = next((place for place in above if is_file(place / "package.xml")), folder)
        yield own, folder / text
    stem, dot, suffix = Path(text).name.rpartition(".")  # copied without its folders, its suffix perhaps small
    yield from ((folder, folder / f"{stem}{dot}{end}") for end in (suffix, suffix.lower()))


def link_surfaces(robot: Robot) -> dict[int, list[bytes]]:
    """Meshes of each link (0: the base) in its frame, as binary STL; none of a link with one that cannot be read."""
    surfaces: dict[int, list[bytes]] = {mesh.link: [] for mesh in robot.meshes}
    left = _LARGEST_PICTURE
    for mesh in robot.meshes:
        triangles, turn = read_triangles(Path(mesh.file), left), mesh.frame[:3, :3]
        placed = None if triangles is None else triangles @ turn.T + mesh.frame[:3, 3]
        if placed is None or np.abs(placed).max() > _FAR:
            surfaces.pop(mesh.link, None)
        elif mesh.link in surfaces:
            surfaces[mesh.link].append(_binary_stl(placed if np.linalg.det(turn) > 0.0 else placed[:, ::-1]))
            left -= len(surfaces[mesh.link][-1])
    return surfaces


def _binary_stl(triangles: Array) -> bytes:
    """Triangles (count, 3, 3) as binary STL."""
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    rows = np.zeros(len(triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
    rows["normal"] = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    rows["corners"] = triangles
    return bytes(80) + len(rows).to_bytes(4, "little") + rows.tobytes()


def _read_stl(data: bytes) -> Array:
    """Binary STL: 80 bytes, a count, then 50 bytes per triangle; otherwise the word `vertex` before each corner."""
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, dtype=np.uint8, offset=84).reshape(-1, 50)
        return rows[:, 12:48].copy().view("<f4").astype(float).reshape(-1, 3, 3)
    lines = (line.split() for line in data.splitlines())
    return np.array([words[1:4] for words in lines if words[:1] == [b"vertex"]], dtype=float).reshape(-1, 3, 3)


def _read_obj(data: bytes) -> Array:
    """Wavefront OBJ: corners, and faces as lists of their numbers."""
    lines = [line.split() for line in data.splitlines()]
    corners = np.array([words[1:4] for words in lines if words[:1] == [b"v"]], dtype=float)
    faces = [[int(word.split(b"/")[0]) for word in words[1:]] for words in lines if words[:1] == [b"f"]]
    fans = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
    numbers = np.array(fans, dtype=int).reshape(-1, 3)
    return corners[np.where(numbers > 0, numbers - 1, numbers)]


def _around(points: Array) -> Shape:
    """The smallest of the capsules around points whose axes have principal, coordinate or many other directions."""
    points = _hull(points)
    principal = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
    others = np.random.default_rng(0).normal(size=(_DIRECTIONS, 3))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    axes = sorted((*np.eye(3), *principal, *others), key=lambda axis: _volume(_along(points, axis, 0)))
    return min((_along(points, axis) for axis in axes[:_BEST]), key=_volume)


def _hull(points: Array) -> Array:
    """The corners of the convex hull, or all points where they lie in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        return points


def _along(points: Array, axis: Array, steps: int = 30) -> Shape:
    """A capsule around points with an axis of given direction, as short as its radius allows."""
    height = points @ axis
    across = points - np.outer(height, axis)
    centre = 0.5 * (across.min(axis=0) + across.max(axis=0))
    tried = [centre]
    for step in range(steps):  # towards the centre of the smallest circle around them (Badoiu and Clarkson 2003)
        away = across - tried[-1]
        tried.append(tried[-1] + away[np.argmax(np.einsum("ki,ki->k", away, away))] / (step + 2.0))
    centre = min(tried, key=lambda point: float(np.linalg.norm(across - point, axis=1).max()))
    distance = np.linalg.norm(across - centre, axis=1)
    radius = _MARGIN * float(distance.max())
    cap = np.sqrt(np.maximum(radius**2 - distance**2, 0.0))
    low, high = float((height + cap).min()), float((height - cap).max())
    if low > high:
        low = high = 0.5 * (low + high)
    return centre + low * axis, centre + high * axis, radius


def _volume(shape: Shape) -> float:
    start, end, radius = shape
    return radius**2 * (float(np.linalg.norm(end - start)) + 4.0 / 3.0 * radius)
