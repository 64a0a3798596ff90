"""Hostile names through every writer: nothing is run, every output is valid or refused in a sentence, in its folder."""

import ast
import csv
import io
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

import armid
from armid.cli import main
from armid.errors import ArmidError
from armid.escaping import one_line, unprintable
from armid.excitation.export_plan import to_csv, to_ros, to_urscript
from armid.exporting import export
from armid.files import write_text
from armid.fleet.page import fleet_page
from armid.reporting import Evidence, build
from armid.robot.load import description_for
from tests.excitation.test_export_plan import plan_for
from tests.exporting.arms import fitted
from tests.fleet.fleets import as_result, made_up
from tests.reporting import arms
from tests.untrusted.names import names

FORMATS = ("c", "python", "urdf", "mjcf", "yaml")
FEW = slice(None, None, 16)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A fit of a small arm and a plan, whose names are then replaced."""
    robot = arms.planar(tmp_path_factory.mktemp("names"))
    return fitted(robot)


def named(robot, name):
    """The robot with a name, joints and links that are called so; refused where nobody could read them."""
    first = replace(robot.joints[0], name=f"{name}1", link_name=name)
    return replace(robot, name=name, title=name, joints=(first, *robot.joints[1:]))


def check_files(folder):
    """Every exported file is valid in its language."""
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            ast.parse(text)
        elif path.suffix in (".urdf", ".xml"):
            ElementTree.fromstring(text)
        elif path.suffix == ".yaml":
            assert yaml.safe_load(text)["kinematics"]["convention"]
        elif path.suffix == ".json":
            json.loads(text)
        elif path.suffix == ".md":
            assert "<script" not in text.replace("\\<", "")
            assert "\x1b" not in text


def inside(folder):
    """Files below a folder, none of which may lie elsewhere."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@cache
def six_joints():
    """A plan for an arm of six joints."""
    return plan_for("powerball")


def check_plan(name):
    """CSV, ROS and URScript: the names come back as they were, and nothing else is there."""
    plan = replace(six_joints(), robot=name, joint_names=(name, *"bcdef"))
    header = next(row for row in csv.reader(io.StringIO(to_csv(plan))) if not row[0].startswith("#"))
    assert header[1] == f"position.{one_line(name)}"
    said = yaml.safe_load(to_ros(plan, 1.0, run_in=False))
    assert said["joint_names"] == [name, *"bcdef"]
    assert set(said) == {"header", "joint_names", "points"}
    assert to_urscript(plan).splitlines()[1:] == to_urscript(six_joints()).splitlines()[1:]


def through_everything(fit, name, folder, mark):
    """One name: robot, exports, report, template, plan."""
    check_plan(name)
    if unprintable(name):
        with pytest.raises(ValueError, match="invisible characters"):
            named(fit.robot, name)
        return None
    robot = named(fit.robot, name)
    done = export(replace(fit, robot=robot), FORMATS, folder / "out")
    assert done.refused == ()
    check_files(folder / "out")
    page = build(Evidence(fit=replace(fit, robot=robot)))
    page.save(folder / "report.html")
    assert sorted(path.name for path in folder.iterdir()) == ["out", "report.html"]
    assert all("/" not in file for file in inside(folder / "out"))
    assert not mark.exists()
    return folder / "report.html"


def test_some_names_everywhere(good, tmp_path):
    """Some of them."""
    mark = tmp_path / "mark"
    for index, name in enumerate(names(mark)[FEW]):
        (tmp_path / str(index)).mkdir()
        through_everything(good, name, tmp_path / str(index), mark)


@pytest.mark.prove
def test_all_names_everywhere(good, tmp_path):
    """All of them; pages are opened in a browser, where none runs or fetches anything."""
    mark = tmp_path / "mark"
    pages = []
    for index, name in enumerate(names(mark)):
        (tmp_path / str(index)).mkdir()
        pages.append(through_everything(good, name, tmp_path / str(index), mark))
        data = json.loads(json.dumps(made_up(2, 5, faults=1, lost=1).to_data()))
        data["arms"][0]["name"] = data["robot"]["name"] = data["problems"][0]["reason"] = name
        write_text(tmp_path / f"fleet{index}.html", fleet_page(as_result(data)))
        pages.append(tmp_path / f"fleet{index}.html")
    assert not mark.exists()
    open_in_browser([page for page in pages if page is not None])


def open_in_browser(pages):
    """No script of a name is run, nothing is fetched, nothing is logged."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        problems, requests = [], []
        page.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        for path in pages:
            page.goto(path.as_uri())
            page.evaluate("window.Charts && Charts.drawings.forEach((d) => d.drawAll())")
            assert page.title() != "gone", path
        browser.close()
    assert problems == []
    assert requests == [path.as_uri() for path in pages]


@pytest.mark.parametrize("name", names("/tmp/mark"))
def test_descriptions_with_such_names(tmp_path, name):
    """A URDF with the name is refused in a sentence, or described, drawn and listed."""
    joint = ElementTree.fromstring(
        '<joint type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    )
    root = ElementTree.Element("robot", name=name)
    for link in ("a", "b"):
        ElementTree.SubElement(root, "link", name=link)
    joint.set("name", name)
    root.append(joint)
    path = Path(tmp_path / "arm.urdf")
    path.write_bytes(ElementTree.tostring(root, encoding="utf-8") if name.isprintable() else ElementTree.tostring(root))
    try:
        robot = armid.load_robot(path)
    except ArmidError as refused:
        assert "\n" not in str(refused)  # noqa: PT017 - it need not be refused
        return
    text = description_for(path, tmp_path / "arm.yaml")
    (tmp_path / "arm.yaml").write_text(text)
    assert armid.load_robot(tmp_path / "arm.yaml").joint_names == robot.joint_names


def test_pictures_stay_in_their_folder(tmp_path, monkeypatch):
    """The name of a robot is no path, that of a joint no formula for Matplotlib."""
    (tmp_path / "a" / "b" / "pictures").mkdir(parents=True)
    arm = armid.load_robot("ir361")
    second = replace(arm.joints[1], name="$\\frac{")
    hostile = replace(arm, name="../../outside", joints=(arm.joints[0], second, *arm.joints[2:]))
    monkeypatch.setattr("armid.robot.load_robot", lambda *_, **__: hostile)
    folder = tmp_path / "a" / "b" / "pictures"
    words = ["load-friction", "ir361", "--joints", "2", "--seconds", "2", "--pictures", str(folder), "--quiet"]
    assert main(words) in (0, 1)
    assert [path.name for path in folder.iterdir()] == ["_outside-load-friction.png"]
    assert [path.name for path in (tmp_path / "a").rglob("*.png")] == ["_outside-load-friction.png"]
