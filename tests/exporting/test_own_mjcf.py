"""The user's own MJCF: MuJoCo finds the fit's torque in it, and nothing but inertia and friction has changed."""

import difflib
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.cli import main
from armid.exporting import ExportError, export
from armid.exporting.own_mjcf import compiled, other_changes
from armid.robot.parts import Friction
from tests.exporting.arms import fitted, library_fit, range_error, states

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.filterwarnings("ignore::armid.errors.ArmidWarning")

MESH = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
# The look of the Menagerie's arms: nested classes, meshes for looks and for contact, position actuators, a scene file.
SCENE = """\
<mujoco model="arm scene">
  <include file="arm.xml"/>

  <statistic center="0.3 0 0.4" extent="0.8"/>
  <visual><headlight diffuse="0.6 0.6 0.6"/></visual>
  <worldbody>
    <light pos="0 0 1.5" dir="0 0 -1" directional="true"/>
    <geom name="floor" size="0 0 0.05" type="plane"/>
  </worldbody>
</mujoco>
"""
ARM = """\
<mujoco model="arm">
  <compiler angle="radian" meshdir="assets" autolimits="true"/>
  <option integrator="implicitfast" gravity="0.5 -1 -9.7"/>
  <default>
    <default class="arm">
      <material specular="0.5"/>
      <joint axis="0 1 0" range="-6.28 6.28" armature="0.1" damping='1.5'/>
      <general gaintype="fixed" biastype="affine" gainprm="2000" biasprm="0 -2000 -400"/>
      <default class="big">
        <joint damping="2" frictionloss="0.4"/>
        <default class="limited"> <joint range="-3.1 3.1"/> </default>
      </default>
      <default class="curved"><joint damping="0.5 0.1 0.02"/></default>
      <default class="visual"><geom type="mesh" contype="0" conaffinity="0" group="2"/></default>
      <default class="collision"><geom type="capsule" group="3"/></default>
      <site size="0.001" rgba="0.5 0.5 0.5 0.3" group="4"/>
    </default>
  </default>
  <asset><material class="arm" name="black" rgba="0.03 0.03 0.03 1"/><mesh file="part.obj"/></asset>
  <!-- <inertial mass="1"/> in a comment, with a stray > -->
  <worldbody>
    <light name="spot" mode="targetbodycom" target="wrist" pos="0 -1 2"/>
    <camera name="follow" mode="targetbodycom" target="upper" pos="1 -1 2"/>
    <body name="base" childclass="arm" quat="0.9 0.1 -0.2 0.3">
      <inertial mass="4" pos="0 0 0" diaginertia="0.004 0.004 0.007"/>
      <geom mesh="part" material="black" class="visual"/>
      <body name="shoulder" pos="0 0 0.163">
        <inertial mass="3.7" pos="0 0.01 0" quat="0.9 0.1 0 0.2"  diaginertia="0.0102675 0.0102675 0.00666"/>
        <joint name="pan" class="big" axis="0 0 1" pos="0.02 0.01 -0.05"/>
        <geom mesh="part" class="visual"/>
        <geom class="collision" size="0.06 0.06" pos="0 0 -0.04"/>
        <body name="upper" pos="0 0.138 0" quat="1 0 1 0">
          <inertial pos='0 0 0.2125' mass="8.4" fullinertia="0.14 0.13 0.02 0 0.01 0"/>
          <joint name="lift" class="limited"/>
          <geom class="collision" fromto="0 -0.04 0 0 -0.04 0.4" size="0.06"/>
          <site name="elbow_site" pos="0 0 0.4"/>
          <body name="sensor" pos="0 0.1 0.1" euler="0.1 0.2 0.3"><!-- welded -->
            <geom type="box" size="0.03 0.02 0.01"/>
          </body>
          <frame pos="0 -0.1 0.4" euler="0 0.2 0">
            <body name="fore"><joint name="elbow" class="curved"/>
              <geom class="collision" size="0.05 0.15" pos="0.1 0 0.1"/>
              <body name="wrist" pos="0 0 0.39" gravcomp="0">
                <frame euler="0.3 0 0"><inertial pos="0 0.1 0" mass="1.2" diaginertia="0.003 0.002 0.002"/></frame>
                <joint name="ram" type="slide" axis="1 0 1" ref="-0.1" range="-0.2 0.3" stiffness="3"/>
                <body name="flange" pos="0 0.1 0" quat="-1 1 0 0">
                  <inertial mass="0.2" pos="0 0 0.01" diaginertia="1e-4 1e-4 2e-4"/>
                  <site name="attachment" pos="0 0.01 0"/>
                  <camera name="eye" pos="0 0 0.1" mode="trackcom"/>
                  <body name="tool"/>
                </body>
              </body>
            </body>
          </frame>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="base" body2="shoulder"/></contact>
  <tendon><fixed name="t"><joint joint="pan" coef="1"/></fixed></tendon>
  <actuator>
    <general class="arm" name="pan" joint="pan" ctrlrange="-6 6"/>
    <motor name="lift" joint="lift" gear="50"/>
  </actuator>
  <sensor><jointpos joint="pan"/><force site="attachment"/></sensor>
  <keyframe><key name="home" qpos="-1.5 -1.5 1.5 0"/></keyframe>
</mujoco>
"""
# Parts in files of their own, in folders, inside bodies; two worlds; a file of defaults.
PARTS = {
    "main.xml": '<mujoco><include file="parts/defaults.xml"/>\n<worldbody>\n<body name="one">\n'
    '<include file="parts/one.xml"/><include file="parts/two.xml"/>\n</body></worldbody>\n'
    '<worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>\n',
    "parts/defaults.xml": '<mujoco><compiler angle="radian"/><default><joint damping="0.7" armature="0.02"/>'
    '<default class="w"><joint frictionloss="0.3"/></default></default></mujoco>',
    "parts/one.xml": '<mujocoinclude>\n  <inertial pos="0 0 0.1" mass="2" diaginertia="0.1 0.1 0.05"/>\n'
    '  <joint name="a" axis="0 0 1"/>\n</mujocoinclude>\n',
    "parts/two.xml": '<mujocoinclude>\r\n  <body name="two" pos="0.3 0 0">\r\n'
    '    <joint name="b" class="w" axis="0 1 0"/>\r\n    <geom size="0.1" pos="0.1 0 0"/>\r\n'
    '    <include file="three.xml"/>\r\n  </body>\r\n</mujocoinclude>\r\n',
    "parts/three.xml": '<mujocoinclude><body name="three" pos="0.3 0.1 0"><joint name="c" axis="1 1 0"/>'
    '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.005" euler="0.1 0.2 0.3"/></body></mujocoinclude>',
}
BARE = """<mujoco model="bare"><compiler fusestatic="true"/>
<worldbody><body><joint/><geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.05"/>
<body pos="0.4 0 0"><geom size="0.1"/><geom size="0.05" pos="0 0.2 0"/>
<body pos="0.1 0 0"><joint axis="0 1 0"/><geom type="box" size="0.1 0.2 0.1" pos="0.1 0 0"/></body></body></body>
</worldbody></mujoco>"""
FILES = {
    "arm": {"arm.xml": ARM},
    "scene": {"scene.xml": SCENE, "arm.xml": ARM},
    "crlf": {"arm.xml": ARM.replace("\n", "\r\n")},
    "parts": PARTS,
    "bare": {"bare.xml": BARE},
}
EDITED = re.compile(
    rb"""\s*<inertial[^>]*?/>|\s+(?:armature|damping|frictionloss)\s*=\s*(?:"[^"]*"|'[^']*')""",
)


def written(folder, files):
    """The files and a mesh; the first one is the model."""
    (folder / "assets").mkdir(parents=True)
    (folder / "assets/part.obj").write_text(MESH)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder / next(iter(files))


def fit_of(path, seed=0, **options):
    """A fit with friction that MuJoCo can hold, without the springs of the file, which stay as they are."""
    robot = replace(armid.load_robot(path, **options), linear_springs=())
    return fitted(replace(robot, friction=(Friction("coulomb-viscous"),) * robot.n_joints), seed=seed)


def test_files_that_are_included_are_among_those_written(tmp_path, capsys):
    """The command names every file that it has written, the main one first; so does EXPORT.md."""
    fit_of(written(tmp_path / "own", PARTS)).save(tmp_path / "fit.json")
    assert main(["export", str(tmp_path / "fit.json"), "--to", "mjcf", "-o", str(tmp_path / "out")]) == 0
    said = [line.removeprefix("wrote ") for line in capsys.readouterr().out.splitlines() if line.startswith("wrote ")]
    assert said == [str(tmp_path / "out" / name) for name in (*PARTS, "EXPORT.json", "EXPORT.md")]
    assert "came with: parts/defaults.xml, parts/one.xml" in (tmp_path / "out/EXPORT.md").read_text()


def torque_of(path, motion):
    """Torque by MuJoCo of the tree with armature, damping and frictionloss; springs of the user's are left out."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_SPRING
    data, result = mujoco.MjData(model), np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        result[row] = data.qfrc_inverse + model.dof_frictionloss * np.sign(v)
    return result


@pytest.mark.parametrize("kind", FILES)
def test_round_trip(kind, tmp_path):
    """Torque is the fit's to 1e-9; every field of mjModel that inertia and friction do not reach is as it was."""
    path = written(tmp_path / "own", FILES[kind])
    fit = fit_of(path)
    done = export(fit, ["mjcf"], tmp_path / "out")
    assert [file.file for file in done.files] == [path.name]
    assert done.files[0].proof.error < 1e-9
    written_names = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.xml")}
    assert written_names == set(FILES[kind]) == set(done.names)
    before = mujoco.MjModel.from_xml_path(str(path))
    shutil.copytree(tmp_path / "out", tmp_path / "own", dirs_exist_ok=True)  # beside its meshes
    motion = states(fit.robot, 200, 4)
    assert range_error(torque_of(path, motion), fit.predict(motion).torque) < 1e-9
    after = mujoco.MjModel.from_xml_path(str(path))
    assert other_changes(before, after) == []
    assert not np.array_equal(before.body_mass, after.body_mass)


@pytest.mark.parametrize("kind", FILES)
def test_other_bytes_stay(kind, tmp_path):
    """With <inertial>, armature, damping and frictionloss cut out, old and new files are equal byte by byte."""
    path = written(tmp_path / "own", FILES[kind])
    export(fit_of(path), ["mjcf"], tmp_path / "out")
    for name in FILES[kind]:
        old, new = ((tmp_path / folder / name).read_bytes() for folder in ("own", "out"))
        assert EDITED.sub(b"", old) == EDITED.sub(b"", new)
        assert (b"\r" in old) == (b"\r" in new)


def test_defaults_are_not_repeated(tmp_path):
    """A joint whose class says the value already gets no attribute; links that have not changed keep their bytes."""
    path = written(tmp_path / "own", FILES["arm"])
    fit = fit_of(path)
    robot = armid.load_robot(path)
    values = {name: fit.standard_parameters[name] for name in fit.standard_parameters}
    values |= dict(zip(fit.torque_model.model.names, robot.nominal_inertia.ravel().tolist(), strict=False))
    for number in range(1, 5):
        values[f"Im{number}"] = float(robot.nominal_rotors[number - 1])
        values[f"fv{number}"], values[f"fc{number}"] = robot.nominal_friction[number - 1].tolist()
    values["fv1"], values["Im2"], values["m3"] = 9.25, 0.125, values["m3"] + 1.0
    model = fit.torque_model.model
    kept = model.base.matrix @ np.array([values[name] for name in model.names])
    fit = replace(fit, standard_parameters=values, values=kept)
    export(fit, ["mjcf"], tmp_path / "out")
    lines = list(difflib.ndiff(ARM.splitlines(), (tmp_path / "out/arm.xml").read_text().splitlines()))
    new = [line[2:].strip() for line in lines if line.startswith("+ ")]
    assert len(new) == 3
    assert new[0] == '<joint name="pan" class="big" axis="0 0 1" pos="0.02 0.01 -0.05" damping="9.25"/>'
    assert new[1] == '<joint name="lift" class="limited" armature="0.125"/>'
    assert new[2].startswith('<body name="fore"><inertial pos="')
    assert 'damping="0.5 0 0"' in new[2]  # armid has no curve, so that the class's is taken away


def test_bodies_without_joints_are_counted_once(tmp_path):
    """What is welded to a moving body has no mass any more; what is fixed to the world keeps its own."""
    path = written(tmp_path / "own", FILES["arm"])
    done = export(fit_of(path), ["mjcf"], tmp_path / "out", mjcf=path)
    shutil.copytree(tmp_path / "out", tmp_path / "own", dirs_exist_ok=True)
    model = mujoco.MjModel.from_xml_path(str(path))
    assert [model.body(name).mass[0] for name in ("base", "sensor", "flange", "tool")] == [4.0, 0.0, 0.0, 0.0]
    assert any("sensor, flange" in str(note) for note in done.files[0].notes)


def test_without_meshes(tmp_path):
    """Where meshes are missing and not needed, the file is completed all the same."""
    path = written(tmp_path / "own", FILES["parts"])
    text = path.read_text().replace("<worldbody>\n", '<asset><mesh name="m" file="gone.stl"/></asset><worldbody>\n')
    path.write_text(text.replace('<body name="one">\n', '<body name="one">\n<geom type="mesh" mesh="m"/>\n'))
    done = export(fit_of(path), ["mjcf"], tmp_path / "out")
    assert done.files[0].proof.error < 1e-9
    assert b'<geom type="mesh" mesh="m"/>' in (tmp_path / "out/main.xml").read_bytes()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("<compiler ", '<compiler inertiafromgeom="true" '), "inertiafromgeom"),
        (('gear="50"', 'gear="50" armature="0.001"'), "actuators have armature"),
        (('<site name="attachment"', '<replicate count="2"><site/></replicate><site name="attachment"'), "<replicate>"),
        (('<joint name="elbow"', '<joint name="twist" axis="1 0 0"/><joint name="elbow"'), "between 'twist' and"),
    ],
)
def test_what_cannot_be_completed_gets_a_new_file(tmp_path, change, reason):
    """The reason is said, and the new file holds the fit's torque."""
    text = re.sub(r"<keyframe>.*</keyframe>", "", ARM.replace(*change))
    done = export(fit_of(written(tmp_path / "own", {"arm.xml": text})), ["mjcf"], tmp_path / "out")
    assert done.files[0].proof.error < 1e-9
    assert any(note.code == "exporting.new_file" and reason in str(note) for note in done.files[0].notes)
    assert (tmp_path / "out/arm.xml").read_text().startswith("<!--")


def test_files_outside_its_folder_are_not_written(tmp_path):
    """An included file that lies elsewhere cannot be written beside the others; nothing appears outside the target."""
    path = written(tmp_path / "own/deep", FILES["scene"])
    (tmp_path / "own/deep/arm.xml").rename(tmp_path / "own/arm.xml")
    (tmp_path / "own/deep/assets").rename(tmp_path / "own/assets")
    path.write_text(SCENE.replace('file="arm.xml"', 'file="../arm.xml"'))
    (tmp_path / "own/arm.xml").write_text(ARM.replace('meshdir="assets"', 'meshdir="../assets"'))
    before = (tmp_path / "own/arm.xml").read_bytes()
    done = export(fit_of(path), ["mjcf"], tmp_path / "out/deep")
    assert any("not in its folder" in str(note) for note in done.files[0].notes)
    assert (tmp_path / "own/arm.xml").read_bytes() == before
    assert not (tmp_path / "out/arm.xml").exists()


def test_what_follows_from_inertia_in_other_ways_is_refused(tmp_path):
    """A spring that MuJoCo tunes to the inertia would change: the file is not kept."""
    text = ARM.replace('stiffness="3"', 'springdamper="0.5 1"')
    with pytest.raises(ExportError, match=r"jnt_stiffness.*springdamper"):
        export(fit_of(written(tmp_path / "own", {"arm.xml": text})), ["mjcf"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_robot_a_lost_file_and_the_original(tmp_path):
    """A file of another arm is refused, one that has moved is asked for, the original is never replaced."""
    path = written(tmp_path / "own", FILES["arm"])
    fit = fit_of(path)
    other = tmp_path / "own/other.xml"
    other.write_text(ARM.replace('pos="0 0 0.163"', 'pos="0 0 0.164"'))
    with pytest.raises(ExportError, match="another robot"):
        export(fit, ["mjcf"], tmp_path / "out", mjcf=other)
    with pytest.raises(ExportError, match="MJCF that is read"):
        export(fit, ["mjcf"], tmp_path / "own")
    path.rename(tmp_path / "own/moved.xml")
    with pytest.raises(ExportError, match="--mjcf FILE"):
        export(fit, ["mjcf"], tmp_path / "out")
    assert export(fit, ["mjcf"], tmp_path / "out", mjcf=tmp_path / "own/moved.xml").files[0].file == "moved.xml"


def test_a_fit_of_another_description_completes_a_file(tmp_path):
    """Joints are compared as lines in space: a fit from a DH table completes the MJCF of the same arm."""
    fit = library_fit("powerball")
    export(fit, ["mjcf"], tmp_path / "own")
    done = export(fitted(fit.robot, seed=3), ["mjcf"], tmp_path / "out", mjcf=tmp_path / "own/powerball.xml")
    assert done.files[0].proof.error < 1e-9
    old, new = ((tmp_path / folder / "powerball.xml").read_bytes() for folder in ("own", "out"))
    assert old != new
    assert EDITED.sub(b"", old) == EDITED.sub(b"", new)


def test_a_hostile_include_is_refused(tmp_path):
    """Entities in an included file are not expanded."""
    path = written(tmp_path / "own", FILES["scene"])
    fit = fit_of(path)
    text = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>' + ARM
    (tmp_path / "own/arm.xml").write_text(text)
    done = export(fit, ["mjcf"], tmp_path / "out")
    assert any("declares XML entities" in str(note) for note in done.files[0].notes)


def test_the_comparison_sees_changes(tmp_path):
    """A gain, a range and a mesh's place are seen; masses are not counted."""
    path = written(tmp_path / "own", FILES["arm"])
    models = [
        compiled({path: ARM.replace(old, new).encode()})
        for old, new in (
            ("", ""),
            ('gear="50"', 'gear="51"'),
            ('range="-3.1', 'range="-3.2'),
            ('mass="3.7"', 'mass="3.8"'),
        )
    ]
    assert [other_changes(models[0], model) for model in models] == [[], ["actuator_gear"], ["jnt_range"], []]
