"""The studio in a real Chromium, driven by Playwright as a person would: clicking, dropping files, reloading."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import armid
from armid.excitation import FourierSeries
from armid.experiment import VirtualRobot
from armid.logs import read_log, write_log
from armid.studio.recipes import load_draft
from tests.excitation.test_safe_plans import bent_tube, write_stl

pytest.importorskip("nicegui", reason="the page needs it: pip install 'armid[studio]'")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install the package chromium")

WIDTHS = (1400, 800, 390)
HOSTILE = "<img src=x onerror=document.title='gone'>"
ARM = """<robot name="{name}"><link name="base"/>
<link name="{link}"><inertial><origin xyz="0.3 0 0"/><mass value="3"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://{name}/../Tube.STL"/></geometry></visual></link>
<joint name="{joint}" type="revolute"><parent link="base"/><child link="{link}"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="2" effort="50"/></joint></robot>"""
#: What reaches beyond the window or a frame; what scrolls by itself may.
BEYOND = """() => [...document.querySelectorAll('body *')].filter((e) => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && r.right > innerWidth + 1 && !e.closest('.table, .q-uploader__list, .arm, .q-slider');
}).map((e) => `${e.tagName}.${e.className}`).concat(
  [document, ...[...document.querySelectorAll('iframe')].map((f) => f.contentDocument)].map((d) => d.documentElement)
    .filter((e) => e.scrollWidth > e.ownerDocument.defaultView.innerWidth).map((e) => `page of ${e.scrollWidth}`))"""
PATIENCE_S = 180.0  # on a machine that is busy with other things


class Person:
    """Somebody at a browser, and whatever went wrong there."""

    def __init__(self, context, address):
        self.context, self.address = context, address
        self.problems, self.requests = [], []
        self.page = self.tab()

    def tab(self):
        """Another tab with the studio."""
        page = self.context.new_page()
        page.set_default_timeout(1000.0 * PATIENCE_S)
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(self.address)
        return page

    def go(self, step):
        """To a screen."""
        self.page.get_by_role("navigation").get_by_role("link", name=re.compile(step)).click()
        self.page.wait_for_url(f"**/{step.lower()}")

    def pick(self, label, option):
        """Choose in a list."""
        self.page.get_by_label(label, exact=True).click()
        self.page.get_by_role("option", name=option, exact=True).click()
        self.page.locator(".q-menu").wait_for(state="hidden")  # lists close slowly

    def press(self, words):
        """Click a button when it can be clicked."""
        self.page.get_by_role("button", name=words, exact=True).click()

    def until(self, holds):
        """Wait for something that the page shows nothing of."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end
            self.page.wait_for_timeout(50)

    def wait(self, state="done", title=".*"):
        """Until work ends so."""
        shown = self.page.locator(f".progress[data-state={state}]")
        shown.filter(has_text=re.compile(title)).wait_for(timeout=2000.0 * PATIENCE_S)

    def fits(self):
        """Nothing reaches beyond the window, on a desk, a tablet or a phone; frames are as wide as their place."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.wait_for_timeout(300)
            for _ in range(20):  # until it has been laid out
                beyond = self.page.evaluate(BEYOND)
                if not beyond:
                    break
                self.page.wait_for_timeout(500)
            assert beyond == []
        self.page.set_viewport_size({"width": 1400, "height": 900})

    def leave(self, address):
        """Nothing went wrong, and nothing was asked of anybody else."""
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith((address, "data:", "blob:"))] == []
        assert all("gone" not in page.title() for page in self.context.pages)


@pytest.fixture
def person(tmp_path):
    """Somebody who has opened the page of a new folder."""
    command = [sys.executable, "-m", "armid", "studio", str(tmp_path / "run"), "--no-browser"]
    # NiceGUI behaves otherwise where it thinks that it is tested.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", env=environment)
    address = server.stdout.readline().strip()
    try:
        with sync_api.sync_playwright() as playwright:
            options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
            person = Person(browser.new_context(viewport={"width": 1400, "height": 900}), address)
            yield person
            person.leave(address.partition("?")[0])
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        server.stdout.close()


@pytest.mark.prove
def test_a_hostile_arm_in_two_tabs(person, tmp_path):
    """A dropped arm with hostile names is drawn, never run; another tab follows, a reload stays, a stranger is refused.

    The joint is turned with the keyboard alone, a refusal is told, and nothing is clipped at any width.
    """
    page = person.page
    assert page.url.endswith("/arm")
    assert "token" not in page.url
    escaped = HOSTILE.replace("<", "&lt;").replace(">", "&gt;")
    path = tmp_path / "arm'; drop.urdf"
    path.write_text(ARM.format(name="odd", link="upper arm", joint=escaped), "utf-8")
    other = person.tab()
    page.locator("input[type=file]").first.set_input_files(path)
    person.wait(title="base parameters")
    page.get_by_text(f"{HOSTILE}", exact=False).first.wait_for()
    other.get_by_text("Motion can show").wait_for()
    page.get_by_text("Motion can show").wait_for()
    write_stl(tmp_path / "Tube.STL", bent_tube((0.4, 0.0, 0.3), 0.05))
    with page.expect_response("**/mesh/1/0") as mesh:
        page.locator("input[type=file]").first.set_input_files(tmp_path / "Tube.STL")
    assert mesh.value.body()[80:84] == (tmp_path / "Tube.STL").read_bytes()[80:84]  # as many triangles
    for elsewhere in ("0/0", "1/1", "1/-1", "../fit.json", "1/..%2f..%2fsettings.yaml"):
        assert page.request.get(f"{person.address.partition('?')[0]}mesh/{elsewhere}").status in (404, 422)
    person.wait(title="base parameters")
    page.get_by_text("meshes of links: 1").wait_for()
    page.locator(".q-slider [tabindex]").press("ArrowRight")
    page.get_by_text("0.02 rad").wait_for()
    person.fits()
    person.go("Model")
    page.get_by_role("alert").get_by_text("Record first").wait_for()
    page.reload()
    page.get_by_role("alert").get_by_text("Record first").wait_for()
    stranger = page.context.browser.new_context().new_page()
    assert stranger.goto(person.address.partition("?")[0]).status == 403


@pytest.mark.prove
def test_the_whole_way_on_a_virtual_arm(person, tmp_path):
    """Arm, motion, recording, model, evidence, use: with a stop, a reload in the middle and `armid run` at the end."""
    page = person.page
    person.pick("arm", "ir361")
    person.wait(title="base parameters")
    person.fits()
    person.go("Motion")
    page.get_by_label("random starts").fill("100")
    page.get_by_label("random starts").press("Tab")
    person.press("Design")
    person.wait("running", "design")
    person.press("Stop")
    person.wait("stopped")
    page.get_by_label("random starts").fill("1")
    page.get_by_label("random starts").press("Tab")
    person.press("Design")
    page.reload()
    person.wait(title="design")
    page.frame_locator("iframe.view").get_by_text("stay inside their limits").wait_for()
    person.fits()
    person.go("Recording")
    page.get_by_label("recorded periods").fill("5")
    page.get_by_label("warm the arm up first").click()
    sync_api.expect(page.get_by_label("warm the arm up first")).not_to_be_checked(timeout=10_000)
    person.press("Record")
    person.wait(title="recording")
    page.frame_locator("iframe.view").get_by_role("heading", name="training.parquet").wait_for()
    person.fits()
    person.go("Model")
    person.press("Identify")
    person.wait(title="identification")
    page.frame_locator("iframe.view").get_by_role("heading", name="Verdict").wait_for()
    person.fits()
    person.go("Evidence")
    page.frame_locator("iframe.view").get_by_role("heading", name="Torque on held-out data").wait_for()
    person.fits()
    person.go("Use")
    person.press("Report")
    person.wait(title="report")
    page.get_by_role("link", name="report.html").wait_for()
    person.fits()
    folder = tmp_path / "run"
    again = [sys.executable, "-m", "armid", "run", "-o", str(folder)]
    told = subprocess.run(again, capture_output=True, encoding="utf-8", check=False).stderr
    assert "excitation design: unchanged" in told
    assert "identification: unchanged" in told


@pytest.mark.prove
def test_real_logs_whose_recipe_is_wrong_at_first(person, data, tmp_path):
    """UR10e: armid asks what the effort is, two columns are wrong at first, gains are missing; clicking corrects it."""
    page = person.page
    page.locator("input[type=file]").first.set_input_files(data / "ur10e" / "ur10e.urdf")
    person.wait(title="base parameters")
    person.go("Recording")
    drop = page.locator("input[type=file]").first
    drop.set_input_files(data / "ur10e" / "ur-20_02_10-30sec_12harm.csv")
    page.get_by_label("effort of elbow_joint").wait_for()
    drop.set_input_files(data / "ur10e" / "ur-20_02_12-50sec_12harm.csv")
    page.get_by_label("ur-20_02_12-50sec_12harm.csv").wait_for()
    person.pick("measured effort", "current")
    page.locator(".recipe tr").filter(has_text="wrist_3_joint").get_by_text("19", exact=True).wait_for()
    recipe = tmp_path / "run" / "recipe.yaml"
    for channel, wrong, right in (("position", "5", "4"), ("current", "17", "16")):
        for column in (wrong, right):
            person.pick(f"{channel} of elbow_joint", column)
            person.until(lambda: load_draft(recipe)["columns"][channel][2] == column)  # noqa: B023
            cell = page.locator(".recipe td").filter(has=page.get_by_label(f"{channel} of elbow_joint", exact=True))
            cell.get_by_text(column, exact=True).wait_for()
    gains = (11.976, 11.976, 9.8386, 10.763, 10.763, 10.763)
    names = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
    for j, (joint, gain) in enumerate(zip(names, gains, strict=True)):
        field = page.get_by_label(f"torque per current of {joint}_joint")
        field.fill(str(gain))
        field.press("Tab")
        person.until(lambda: load_draft(recipe)["current_gain"][j] == gain)  # noqa: B023
        sync_api.expect(field).to_have_value(str(gain))
    page.frame_locator("iframe.view").get_by_text("as read with the recipe").first.wait_for()
    person.fits()
    person.press("Read and inspect")
    person.wait(title="reading")
    person.go("Model")
    person.press("Identify")
    person.wait(title="identification")
    person.go("Evidence")
    page.get_by_text("ur-20_02_12-50sec_12harm.csv").first.wait_for()
    page.frame_locator("iframe.view").get_by_role("heading", name="Torque on held-out data").wait_for()
    person.fits()


@pytest.mark.prove
def test_a_log_of_half_a_gigabyte(person, tmp_path):
    """The page takes it while it goes on answering; what is read of it is the whole, and an arm is identified."""
    page, path = person.page, tmp_path / "long.csv"
    rows = write_long_log(path, 500_000_000)
    person.pick("arm", "ir361")
    person.wait(title="base parameters")
    person.go("Recording")
    page.locator("input[type=file]").first.set_input_files(path)
    page.get_by_role("button", name="Read and inspect").wait_for()
    other = person.tab()
    other.get_by_role("link", name=re.compile("Arm")).click(timeout=10_000)
    person.press("Read and inspect")
    person.wait(title="reading")
    training, validation = (read_log(tmp_path / "run" / f"{name}.parquet") for name in ("training", "validation"))
    assert len(training) + len(validation) == rows
    person.go("Model")
    person.press("Identify")
    person.wait(title="identification")
    page.frame_locator("iframe.view").get_by_role("heading", name="Verdict").wait_for()
    person.fits()


def write_long_log(path, size):
    """A motion of the virtual IR 361 again and again, until the file has this many bytes; returns its rows."""
    robot = armid.load_robot("ir361")
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    series = FourierSeries(0.1, (1, 3), np.tile([0.4, 0.1], (3, 1)), np.tile([0.2, -0.1], (3, 1)), middle)
    log = VirtualRobot(robot, rate_hz=100.0, seed=1).run(series, periods=10)
    write_log(log, path)
    about, names, *rows = path.read_text("utf-8").splitlines()
    values = [row.partition(",")[2] for row in rows]
    copies = -(-size // path.stat().st_size)
    with path.open("w") as file:
        file.write(f"{about}\n{names}\n")
        for copy in range(copies):
            times = log.time + copy * len(log) / 100.0
            file.writelines(f"{time:.6f},{value}\n" for time, value in zip(times, values, strict=True))
    return copies * len(log)
