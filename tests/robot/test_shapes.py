"""Capsules enclose what they stand for: boxes, meshes in STL and OBJ, shapes of an MJCF, links that are cut off."""

import numpy as np
import pytest

import armid
from armid.robot.robot import Capsule
from armid.robot.shapes import around_box, around_mesh, read_mesh
from tests.excitation.test_collision import enclosed
from tests.excitation.test_safe_plans import bent_tube, write_stl


@pytest.mark.parametrize("size", [(0.2, 0.1, 0.6), (0.1, 0.1, 0.1), (0.5, 0.01, 0.0)])
def test_box(size):
    """All corners lie inside, and the capsule is no longer than its caps demand."""
    corners = 0.5 * np.array(size) * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    capsule = Capsule(0, *around_box(np.array(size)))
    assert enclosed(corners, [capsule])
    assert np.linalg.norm(capsule.end - capsule.start) <= max(size)


def test_bent_mesh_is_split():
    """Points all over the triangles of an L lie inside; several thin capsules are taken instead of a thick one."""
    triangles = bent_tube((0.5, 0.0, 0.6), 0.05)
    capsules = [Capsule(0, *shape) for shape in around_mesh(triangles)]
    weights = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    assert enclosed(np.einsum("wc,tci->twi", weights, triangles).reshape(-1, 3), capsules)
    assert len(capsules) > 1
    assert max(capsule.radius for capsule in capsules) < 0.2


def test_mesh_files(tmp_path):
    """Binary and text STL and OBJ give the same triangles, in packages too; anything else is none."""
    triangles = bent_tube((0.1, 0.0, 0.2), 0.02)
    write_stl(tmp_path / "a.stl", triangles)
    corners = "".join(f"vertex {' '.join(map(str, p))}\n" for p in triangles.reshape(-1, 3))
    (tmp_path / "b.STL").write_text("solid x\n" + corners)
    lines = "".join(f"v {' '.join(map(str, p))}\n" for p in triangles.reshape(-1, 3))
    faces = "".join(f"f {3 * k + 1}//1 {3 * k + 2}//1 {3 * k + 3}//1\n" for k in range(len(triangles)))
    (tmp_path / "c.obj").write_text(lines + faces)
    for name in ("a.stl", "b.STL", "c.obj", f"package://{tmp_path.name}/a.stl", f"file://{tmp_path}/c.obj"):
        assert np.allclose(read_mesh(name, tmp_path), triangles, atol=1e-7), name
    (tmp_path / "bad.stl").write_bytes(b"\x00" * 100)
    (tmp_path / "bad.obj").write_text("v 1 2 3\nf 1 2 9\n")
    for name in ("bad.stl", "bad.obj", "gone.stl", "", "/dev/zero"):
        assert read_mesh(name, tmp_path) is None, name


def test_shapes_of_an_mjcf(tmp_path):
    """Shapes that can collide become capsules; what stands in the world is named."""
    pytest.importorskip("mujoco")
    body = '<body pos="0 0 0.3"><joint axis="0 1 0"/>{}<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'
    shapes = (
        '<geom type="capsule" fromto="0 0 0 0 0 0.4" size="0.05"/><geom type="box" size="0.1 0.02 0.03"/>'
        '<geom type="sphere" size="0.2" contype="0" conaffinity="0"/>'
    )
    path = tmp_path / "arm.xml"
    world = '<geom type="plane" size="1 1 1"/><geom name="table" type="box" size="1 1 0.1"/>' + body.format(shapes)
    path.write_text(f"<mujoco><worldbody>{world}</worldbody></mujoco>")
    robot = armid.load_robot(path)
    assert [(capsule.link, round(capsule.radius, 3)) for capsule in robot.capsules] == [(1, 0.05), (1, 0.036)]
    assert [shape.name for shape in robot.unread_shapes] == ["table"]


def test_links_that_are_cut_off_keep_their_shape():
    """The forearm and wrist of an RX-60 of three links hang on link 3, locked at zero."""
    whole, cut = armid.load_robot("rx60", links=6), armid.load_robot("rx60")
    wrist = armid.link_frames(whole, np.zeros((1, 6)))[0, 4, :3, 3]
    elbow = armid.link_frames(cut, np.zeros((1, 3)))[0, 2]
    ends = [elbow[:3, :3] @ capsule.end + elbow[:3, 3] for capsule in cut.capsules if capsule.link == 3]
    assert any(np.allclose(end, wrist) for end in ends)
