"""Capsules enclose what they stand for: boxes, meshes in STL and OBJ, shapes of an MJCF, links that are cut off."""

import numpy as np
import pytest

import armid
from armid.robot.robot import Capsule
from armid.robot.shapes import around_box, around_mesh, link_surfaces, own_meshes, read_mesh
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


LINK = """<robot name="r"><link name="base"/><link name="arm">{}</link><joint name="j" type="revolute">
<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/></joint></robot>"""
PART = '<{0}><origin xyz="0 0 1"/><geometry><mesh filename="{1}" scale="0.001 0.001 -0.001"/></geometry></{0}>'


def test_pictures_show_only_files_of_the_description(tmp_path):
    """Its folder and its packages, and no way out of them by dots, links or absolute names; other kinds are none."""
    home, away = tmp_path / "pack" / "urdf", tmp_path / "away"
    for folder in (home, away, tmp_path / "pack" / "meshes"):
        folder.mkdir(parents=True)
        write_stl(folder / "a.stl", bent_tube((0.1, 0.0, 0.2), 0.02))
    write_stl(away / "secret.stl", bent_tube((0.1, 0.0, 0.2), 0.02))
    (home / "link.stl").symlink_to(away / "secret.stl")
    (home / "text.txt").write_text("x")
    inside = ["a.stl", "elsewhere/a.STL", f"file://{home}/a.stl", "package://pack/meshes/a.stl", "package://urdf/a.stl"]
    assert [own_meshes([name], home) != [] for name in inside] == [True] * 5
    outside = [
        f"{away}/secret.stl",
        "../../away/secret.stl",
        "package://pack/../away/secret.stl",
        "link.stl",
        "text.txt",
    ]
    for name in [*outside, "", "..", "\0", "/dev/zero"]:
        assert own_meshes([name], home) == [], name
        assert own_meshes(["a.stl", name], home) == [], name
    assert own_meshes(["../meshes/b.stl"], home) == []
    (tmp_path / "pack" / "meshes" / "a.stl").rename(tmp_path / "pack" / "meshes" / "b.stl")
    (tmp_path / "pack" / "package.xml").write_text("<package/>")
    assert own_meshes(["../meshes/b.stl"], home) == [tmp_path / "pack" / "meshes" / "b.stl"]


def test_surfaces_of_links(tmp_path):
    """In the link's frame, scaled, never inside out; visual before collision; nothing of a damaged file."""
    triangles = bent_tube((0.1, 0.0, 0.2), 0.02)
    write_stl(tmp_path / "a.stl", 1000.0 * triangles)
    (tmp_path / "eye.dae").write_text("<COLLADA/>")
    path = tmp_path / "arm.urdf"
    path.write_text(LINK.format(PART.format("visual", "eye.dae") + PART.format("collision", "a.stl")))
    robot = armid.load_robot(path)
    (surface,) = link_surfaces(robot)[1]
    (tmp_path / "b.stl").write_bytes(surface)
    seen = read_mesh("b.stl", tmp_path)
    assert np.allclose(seen[:, ::-1], triangles * [1.0, 1.0, -1.0] + [0.0, 0.0, 1.0], atol=1e-6)
    assert volume(seen) == pytest.approx(volume(triangles), rel=1e-5)
    write_stl(tmp_path / "eye.stl", triangles)
    path.write_text(LINK.format(PART.format("visual", "eye.stl") + PART.format("collision", "a.stl")))
    assert [mesh.file for mesh in armid.load_robot(path).meshes] == [str(tmp_path / "eye.stl")]
    (tmp_path / "eye.stl").write_text("solid nothing")
    assert link_surfaces(armid.load_robot(path)) == {}


def volume(triangles):
    """Of a closed surface; negative if it is inside out."""
    a, b, c = triangles.swapaxes(0, 1)
    return float(np.einsum("ki,ki->", a, np.cross(b, c))) / 6.0


def test_surfaces_of_an_mjcf(tmp_path):
    """MuJoCo's own corners and ours are at the same places; files lie in the folder that it names, or beside it."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "assets").mkdir()
    write_stl(tmp_path / "assets" / "a.stl", 1000.0 * bent_tube((0.3, 0.0, 0.4), 0.04))
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><compiler meshdir="assets"/><asset><mesh name="a" file="a.stl" scale="0.001 0.002 0.001"/></asset>'
        '<worldbody><body><joint axis="0 1 0"/><geom type="mesh" mesh="a" pos="0.1 0 0" euler="0 30 40"/>'
        '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    (surface,) = link_surfaces(armid.load_robot(path))[1]
    (tmp_path / "b.stl").write_bytes(surface)
    model = mujoco.MjModel.from_xml_path(str(path))
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[0])
    corners = model.mesh_vert @ turn.reshape(3, 3).T + model.geom_pos[0]
    ours = read_mesh("b.stl", tmp_path).reshape(-1, 3)
    assert np.linalg.norm(ours[:, None] - corners, axis=2).min(axis=1).max() < 1e-6
    (tmp_path / "assets" / "a.stl").rename(tmp_path / "a.stl")
    assert armid.load_robot(path).meshes[0].file == str(tmp_path / "a.stl")
    (tmp_path / "a.stl").unlink()
    assert armid.load_robot(path).meshes == ()


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
