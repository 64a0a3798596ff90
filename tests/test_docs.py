"""The documentation: every command and every Python example in it works, and it builds without a warning."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import armid
from armid.cli import main
from armid.robot.inertia import from_com
from armid.validation.result import load_validation
from tests.remembering import remembered, shorter  # noqa: F401

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
#: Languages a block may have: bash and python are run, yaml is parsed by the pages' own tests, text is only shown.
LANGUAGES = {"bash", "python", "yaml", "text", "json", "toml", "c"}
#: Elements of a page's text that reach beyond the window, but for those inside of something that scrolls.
BEYOND = """() => [...document.querySelectorAll('.md-content *')].filter((e) => {
  const r = e.getBoundingClientRect();
  let home = e.parentElement;
  while (home && !['auto', 'scroll'].includes(getComputedStyle(home).overflowX)) home = home.parentElement;
  return r.width > 0 && r.right > innerWidth + 1 && !home;
}).map((e) => `${e.tagName}.${e.className}`).slice(0, 5)"""
NEGATIVE = ("armid audit pa10 --published",)  # commands whose verdict is meant to be negative


def blocks(page, *languages):
    """Code blocks of a page in order, as (language, code)."""
    text = page.read_text("utf-8")
    return [(found[2], found[3]) for found in FENCE.finditer(text) if found[2] in languages]


def commands(code):
    """The armid commands of a block, comments removed and continued lines joined."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] == "armid":
            yield words[1:]


@pytest.fixture(scope="module")
def drawer(tmp_path_factory):
    """The files that the pages speak of: an arm, a plan, two recordings in several formats, a fit."""
    folder = tmp_path_factory.mktemp("drawer")
    for name in ("arm.urdf", "arm.yaml"):
        shutil.copy(ROOT / "examples" / name, folder / name)
    robot = armid.load_robot(folder / "arm.yaml")
    plans = [
        armid.design(robot, armid.Fourier(harmonics=3, period=6.0), rate_hz=200.0, starts=1, seed=k) for k in (0, 1)
    ]
    runs = [armid.VirtualRobot(robot, rate_hz=200.0, seed=k).run(plan, periods=4) for k, plan in enumerate(plans)]
    plans[0].save(folder / "plan.json")
    names = ("run.parquet", "long.parquet", "training.parquet", "run.mcap")
    for name in names:
        armid.write_log(runs[0], folder / name)
    for name in ("other.parquet", "validation.parquet", "other.csv"):
        armid.write_log(runs[1], folder / name)
    fit = armid.identify(robot, armid.process(runs[0], robot=robot))
    fit.save(folder / "fit.json")
    armid.validate(fit, runs[1]).save(folder / "validation.json")
    (folder / "my-run").mkdir()
    for name in ("fit.json", "plan.json", "validation.json", "training.parquet", "validation.parquet"):
        shutil.copy(folder / name, folder / "my-run" / name)
    tool_poses(robot, folder / "path.csv")
    body = from_com(1.4, [0.02, -0.01, 0.11], np.diag([0.004, 0.003, 0.002]))
    loaded = armid.VirtualRobot(robot, rate_hz=200.0, seed=2, payload=body).run(plans[0], periods=4)
    armid.write_log(loaded, folder / "loaded.parquet")
    (folder / "cad.yaml").write_text("mass: 1.4\ncom: [0.02, -0.01, 0.11]\n")
    return folder


def tool_poses(robot, path):
    """A closed path of the tool, made of a motion that the arm can do."""
    time = np.linspace(0.0, 6.0, 31)
    swing = 0.5 * (1.0 - np.cos(2.0 * np.pi * time / 6.0))
    q = np.array([0.2, 0.8, -0.9, 0.0]) + swing[:, None] * np.array([0.5, 0.3, -0.3, 0.0])
    table = np.column_stack([time, armid.tool_frame(robot, q)[:, :3, 3]])
    np.savetxt(path, table, fmt="%.9f", delimiter=",", header="time,x,y,z", comments="")


@pytest.fixture
def desk(drawer, tmp_path, monkeypatch):
    """A folder of one's own with all of them."""
    shutil.copytree(drawer, tmp_path / "desk")
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


def controller_files(desk):
    """recipe.yaml of docs/logs.md with recordings that suit it."""
    (desk / "recipe.yaml").write_text(blocks(ROOT / "docs" / "logs.md", "yaml")[0][1])
    names = "ms;q_a;q_b;q_c;qd_a;qd_b;qd_c;i_1;i_2;i_3;t_1;t_3"
    row = "360,0;90,0;2000,0;60,0;30,0;0,0;1000,0;-2000,0;500,0;20,5;21,5"
    for day in ("monday", "tuesday"):
        lines = ["Recorder", "serial 7", names, *(f"{k},5;{row}" for k in range(4000))]
        (desk / f"{day}.csv").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def names_in_use(drawer):
    """What examples that go on from an earlier step take for granted; the files lie in the folder of each page."""
    desk = drawer
    robot = armid.load_robot(desk / "arm.yaml")
    log = armid.read_log(desk / "run.parquet")
    data = armid.process(log, robot=robot)
    given = {
        "robot": robot,
        "log": log,
        "data": data,
        "fit": armid.load_fit(desk / "fit.json"),
        "plan": armid.load_plan(desk / "plan.json"),
        "check": load_validation(desk / "validation.json"),
        "training": log,
        "validation": armid.read_log(desk / "validation.parquet"),
        "arm": armid.VirtualRobot(robot, rate_hz=400.0),
        "armid": armid,
    }
    return {**vars(armid.estimation), **vars(armid.signals), **given}


def public_files(desk):
    """The UR10e's logs under the names of the page."""
    if "ARMID_DATA" not in os.environ:
        pytest.skip("needs the public logs of the UR10e in the folder named by ARMID_DATA")
    names = {"ur10e.urdf": "ur10e.urdf", "30sec.csv": "ur-20_02_10-30sec_12harm.csv"}
    for name, origin in {**names, "ptp.csv": "ur-20_01_17-ptp_10_points.csv"}.items():
        shutil.copy(Path(os.environ["ARMID_DATA"]) / "ur10e" / origin, desk / name)


def foreign_files(desk):
    """Measurements as FloBaRoID writes them."""
    log = armid.read_log(desk / "run.parquet")
    q = log["position"]
    arrays = {"positions": q, "velocities": np.gradient(q, log.time, axis=0), "torques": log["effort"]}
    np.savez(desk / "measurements.npz", times=log.time, **arrays)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page):
    """No block escapes the tests by having no language."""
    assert {found[2] for found in FENCE.finditer(page.read_text("utf-8"))} <= LANGUAGES


@pytest.mark.parametrize("size", [shorter, pytest.param(str, marks=pytest.mark.prove, id="as printed")])
@pytest.mark.parametrize("page", [p for p in DOCS if blocks(p, "bash", "python")], ids=lambda page: page.stem)
def test_examples_run(page, size, desk, names_in_use, capsys):
    """Commands and Python of a page, one after the other, as a reader would; with short experiments, or as printed."""
    names = dict(names_in_use)
    if page.stem == "logs":
        controller_files(desk)
    if page.stem == "migrating":
        foreign_files(desk)
    if page.stem == "real-robot":
        public_files(desk)
    if page.stem in ("your-own-arm", "real-robot"):
        ((_, recipe),) = blocks(page, "yaml")
        (desk / "recipe.yaml").write_text(recipe)
    for language, printed in blocks(page, "bash", "python"):
        code = size(printed)
        if language == "python":
            exec(compile(code, f"{page.name}", "exec"), names)
            continue
        for words in commands(code):
            expected = 1 if shlex.join(["armid", *words]) in NEGATIVE else 0
            assert main(words) == expected, f"{shlex.join(words)}: {capsys.readouterr().err}"


def test_reference_lists_every_public_name_and_no_other():
    """Each name that `armid` exports, once."""
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    listed = re.findall(r"^::: armid\.(\S+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in armid.__all__ if name != "__version__")


def test_estimators_and_criteria_are_importable_from_armid():
    """All of armid's own that the registries hold, whatever module they are from."""
    from armid.excitation.criteria import CRITERIA

    own = [*armid.estimators.values(), *(type(criterion) for criterion in CRITERIA.values())]
    for kind in own:  # those that examples of the pages have added are in no module
        if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind and kind.__module__ != "__main__":
            assert getattr(armid, kind.__name__) is kind


def test_every_page_is_in_the_contents():
    """The navigation names all pages, and no others."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"([\w-]+\.md)\b", str(yaml.safe_load(text)["nav"]))
    assert sorted(named) == sorted(page.name for page in DOCS)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation as a site; strict: a dead link, a missing page or an unknown name is an error."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_documentation_builds_without_a_warning(site):
    """Every page is there, nothing is fetched from a network, and all equations are set."""
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(DOCS)
    for page in pages:
        fetched = re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="(https?:[^"]+)"', page.read_text("utf-8"))
        assert fetched == [], page.name
        assert not re.search(r"\$\$|noitauqe", re.sub(r"<code.*?</code>", "", page.read_text("utf-8"), flags=re.DOTALL))
    equations = (site / "computed.html").read_text("utf-8")
    assert equations.count('display="block"') == (ROOT / "docs" / "computed.md").read_text("utf-8").count("$$") / 2


@pytest.fixture
def browser():
    """A real one."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the browser: pip install playwright"
    )
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium on this machine: install the package chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.prove
def test_no_page_reaches_beyond_the_window(site, browser):
    """On a desk, a tablet and a phone; tables, code and equations that are wider scroll by themselves."""
    found, problems = [], []
    for width in (1400, 800, 390):
        tab = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        tab.on("pageerror", lambda error: problems.append(str(error)))
        for page in sorted(site.rglob("*.html")):
            tab.goto(page.as_uri())
            beyond = tab.evaluate(BEYOND)
            found += [f"{page.name} at {width} px: {one}" for one in beyond]
    assert problems == []
    assert found == []


@pytest.mark.prove
def test_pages_from_the_disk_are_searched(site, browser):
    """Without a server, in which browsers start no worker, and without a request to anybody."""
    tab, asked = browser.new_page(), []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((site / "index.html").as_uri())
    tab.locator(".md-search__input").press_sequentially("payload")
    tab.get_by_text(re.compile(r"\d+ matching documents")).wait_for()
    assert tab.locator(".md-search-result__link[href*='payload.html']").count() > 0
    assert [url for url in asked if url.startswith("http")] == []
