"""The fleet page: what it says, how large it is, and how it behaves in a real browser without network."""

import base64
import json
import re
import shutil

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.fleet.page import fleet_page, save_fleet_page
from armid.fleet.page_data import fleet_numbers, lost_recordings, page_data
from armid.report.page import DARK, LIGHT
from tests.fleet.fleets import FIRST, made_up

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SECTIONS = ("verdict", "watch", "course", "map", "arms", "problems", "usual", "provenance")


@pytest.fixture(scope="module")
def fleet():
    """Fifty arms on twenty days, faults of all kinds."""
    return made_up(50, 20, faults=8, lost=5).to_data()


@pytest.fixture(scope="module")
def large():
    """A thousand arms on thirty days."""
    return made_up(1000, 30, faults=40, lost=60).to_data()


def changed(fleet):
    """An arm that has changed, and in what."""
    return next((one["arm"], one["parameter"]) for one in fleet["watch"] if one["shape"] == "ramp")


@pytest.fixture(scope="module")
def files(fleet, large, tmp_path_factory):
    """Their pages."""
    folder = tmp_path_factory.mktemp("pages")
    report = folder / "robots" / changed(fleet)[0] / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<p>a report</p>")
    save_fleet_page(fleet, folder / "fleet.html")
    save_fleet_page(large, folder / "large.html")
    return folder


# What the page says.


def lead(page, section):
    """The sentence that opens a section."""
    return re.search(rf'<section id="{section}".*?<p class="lead">(.*?)</p>', page, re.DOTALL)[1].replace("\u00a0", " ")


def test_verdict_names_the_arms(fleet):
    """As many arms as the watch list has, the first of them by name; a fleet without faults says so."""
    arms = list(dict.fromkeys(one["arm"] for one in fleet["watch"]))
    sentence = lead(fleet_page(fleet), "verdict")
    assert sentence.startswith(f"{len(arms)} of 50 arms want a look: {arms[0]} (")
    assert sentence.endswith(f"and {len(arms) - 5} more.")
    sound = fleet_page(made_up(6, 4, faults=0, lost=0).to_data())
    assert lead(sound, "verdict") == "None of 6 arms needs a look."
    assert lead(sound, "problems") == "Every recording could be used."


def test_watch_list_states_size_with_interval(fleet):
    """A ramp of 8 % a day with a standard deviation of 0.4 % is 8.0 ± 0.8 %, 95 %."""
    page = fleet_page(fleet)
    assert "+8.0 ± 0.8 % a day" in page
    assert "+0.90 ± 0.06 kg" in page
    assert "plain to see" in page  # a reversed sensor needs no statistics


def test_packed_numbers_are_those_of_the_file(fleet):
    """Deviations come back to 1/32767 of the largest, their errors to 3 %, gaps stay gaps."""
    shown = page_data(fleet_numbers(fleet))
    points, count = len(fleet["dates"]), len(fleet["watched"])
    raw = np.frombuffer(base64.b64decode(shown["packed"]["deviation"]), "<i2").reshape(-1, points, count)
    level = np.frombuffer(base64.b64decode(shown["packed"]["sigma"]), "u1").reshape(-1, points, count)
    for a, arm in enumerate(fleet["arms"]):
        days = arm["series"]["days"] if arm["series"] else []
        assert (raw[a][[d for d in range(points) if d not in days]] == -32768).all()
        for k, one in enumerate(shown["watched"] if days else []):
            assert raw[a, days, k] * one["step"] == pytest.approx(
                arm["series"]["deviation"][one["name"]], abs=0.51 * one["step"]
            )
            back = one["sigma_low"] * one["sigma_ratio"] ** (level[a, days, k] - 1.0)
            assert back == pytest.approx(arm["series"]["deviation_sigma"][one["name"]], rel=0.03)


def test_quantiles_are_those_of_numpy(fleet):
    """The bands of the panels hold the stated shares of the arms."""
    numbers = fleet_numbers(fleet)
    values = [
        dict(zip(arm["series"]["days"], arm["series"]["deviation"]["fv3"], strict=True)).get(7)
        for arm in fleet["arms"]
        if arm["series"]
    ]
    index = [one["name"] for one in fleet["watched"]].index("fv3")
    known = [value for value in values if value is not None]
    assert numbers.quantiles()[:, 7, index] == pytest.approx(np.quantile(known, [0.05, 0.25, 0.5, 0.75, 0.95]))


def test_long_histories_are_joined(fleet, monkeypatch):
    """Where there are more days than a page should hold, their weighted means are shown, and that is said."""
    monkeypatch.setattr("armid.fleet.page_data.CELLS", 50 * 20 * 22 // 4)
    numbers = fleet_numbers(fleet)
    assert numbers.together == 4
    assert numbers.dates == tuple(fleet["dates"][::4])
    series, k = fleet["arms"][0]["series"], 5
    name = fleet["watched"][k]["name"]
    inside = [i for i, day in enumerate(series["days"]) if day // 4 == 1]
    values, errors = (np.array(series[key][name])[inside] for key in ("deviation", "deviation_sigma"))
    assert numbers.deviation[0, 1, k] == pytest.approx(np.average(values, weights=errors**-2.0))
    assert numbers.sigma[0, 1, k] == pytest.approx(np.sum(errors**-2.0) ** -0.5)
    assert "means over 4 days" in fleet_page(fleet)


def test_problems_are_told_once_and_plainly(fleet):
    """Days that follow one another with the same reason are one line; names of findings are left out."""
    days = fleet["dates"]
    problems = [
        {"robot": "arm001", "date": day, "file": "a.csv", "reason": "dead-channel: The effort of a is -0 in all rows."}
        for day in (*days[2:5], days[7])
    ]
    found = lost_recordings({**fleet, "problems": problems})
    assert [(one.when, one.count) for one in found] == [(f"{days[2]} to {days[4]}", 3), (days[7], 1)]
    assert found[0].reason == "The effort of a is 0 in all rows."


def test_words_of_others_are_escaped(fleet):
    """Names of folders and files cannot become part of the page."""
    evil = "</script><img src=x onerror=alert(1)>"
    arms = [{**fleet["arms"][0], "name": evil, "state": "look"}, *fleet["arms"][1:]]
    watch = [{**fleet["watch"][0], "arm": evil, "sentence": evil}]
    problems = [{"robot": evil, "date": fleet["dates"][0], "file": evil, "reason": evil}]
    page = fleet_page({**fleet, "arms": arms, "watch": watch, "problems": problems})
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script")


def test_small_and_odd_fleets():
    """One arm on one day, an arm without anything, a fleet too young to tell a change."""
    one = made_up(1, 1, faults=0, lost=0).to_data()
    page = fleet_page({**one, "threshold": None})
    assert lead(page, "verdict") == "The arm needs no look."
    none = [{**one["arms"][0], "series": None, "state": "no data", "days": 0, "possible": None, "fit": None}]
    none[0].update(dict.fromkeys(("noise", "values", "sigma", "own", "deviation")))
    page = fleet_page({**one, "arms": none})
    assert "without any usable recording" in page
    assert 'id="map"' not in page


def test_size(fleet, large):
    """Far below 8 MB for 50 arms and 15 MB for 1000: what is thinned stays readable."""
    assert len(fleet_page(fleet).encode()) < 1e6
    assert len(fleet_page(large).encode()) < 6e6


def test_cannot_be_written(fleet, tmp_path):
    """Where the folder is missing the error names the file."""
    with pytest.raises(ArmidError, match="cannot be written"):
        save_fleet_page(fleet, tmp_path / "nowhere" / "fleet.html")


# In a browser.


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: install the package chromium")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page without network, and whatever went wrong on it."""

    def __init__(self, browser, path, address="", **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.problems, self.requests = [], []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri() + address)


@pytest.fixture(scope="module")
def desktop(browser, files):
    """The page on a desk; it must have no problem even after all tests have used it."""
    opened = Opened(browser, files / "fleet.html", **DESKTOP)
    yield opened.page
    assert opened.problems == []
    assert {url.split("#")[0] for url in opened.requests} == {(files / "fleet.html").as_uri()}
    opened.context.close()


@pytest.fixture
def home(desktop):
    """The page as it is when one opens it."""
    desktop.evaluate("location.hash = 'verdict'")
    desktop.wait_for_function("() => document.getElementById('one').hidden")
    return desktop


def test_sections_and_pictures(home, fleet):
    """Every section is there and in the contents; a panel for each quantity, changed arms in colour, others grey."""
    for name in SECTIONS:
        assert home.locator(f"section#{name} h2").is_visible()
        assert home.locator(f"nav a[href='#{name}']").is_visible()
    assert home.locator("#course .panel > svg").count() == len(fleet["watched"])
    quantities = {one["parameter"] for one in fleet["watch"] if one["shape"] and not one["parameter"].startswith("rev")}
    panels = home.locator("#course .panel", has=home.locator("path.changed"))
    assert panels.count() == len(quantities)
    arm, parameter = changed(fleet)
    index = [one["name"] for one in fleet["watched"]].index(parameter)
    panel = home.locator(f"#course .panel[data-watched='{index}']")
    assert arm in panel.locator("text.name").all_text_contents()
    assert panel.locator("path.arm").get_attribute("d").count("M") >= 48  # one line for each of the others with data
    assert home.locator("#scatter circle").count() == sum(one["series"] is not None for one in fleet["arms"])
    assert home.locator("#watch td > svg").count() == sum(one["kind"] != "reversal" for one in fleet["watch"])


def shown_arms(page):
    """Names in the table, as it stands."""
    return page.locator("#arms tbody tr:not([hidden]) td:first-child").all_text_contents()


def test_sorting(home, fleet):
    """Arms to look at come first; a click sorts by number, downwards and upwards."""
    look = list(dict.fromkeys(one["arm"] for one in fleet["watch"]))
    assert shown_arms(home)[: len(look)] == look
    head = home.locator("#arms th .head", has_text="days")
    days = {one["name"]: one["days"] for one in fleet["arms"]}
    for reverse in (True, False):
        head.click()
        values = [days[name] for name in shown_arms(home)]
        assert values == sorted(values, reverse=reverse)
        assert len(set(values)) > 2
    head.click()
    assert shown_arms(home)[: len(look)] == look


def test_filtering(home, fleet):
    """By words and by state, both at once; the count is told."""
    search = home.locator("#filter")
    search.fill("ARM02")
    assert sorted(shown_arms(home)) == [f"arm02{k}" for k in range(10)]
    home.locator(".filter button", has_text="wants a look").click()
    expected = {one["arm"] for one in fleet["watch"] if one["arm"].startswith("arm02")}
    assert set(shown_arms(home)) == expected
    assert home.locator("#shown").inner_text() == f"{len(expected)} of 50"
    search.fill("")
    assert len(shown_arms(home)) == len({one["arm"] for one in fleet["watch"]})
    home.locator(".filter button", has_text="wants a look").click()
    assert len(shown_arms(home)) == 50


def test_drill_down_by_click(home, fleet):
    """From the watch list to the arm's history and back to where one was; links lead to its files."""
    arm, parameter = changed(fleet)
    row = home.locator("#watch tbody tr", has_text=arm)
    row.locator("a").scroll_into_view_if_needed()
    before = home.evaluate("scrollY")
    row.locator("a").click()
    home.wait_for_function("() => !document.getElementById('one').hidden")
    one = home.locator("#one")
    assert one.locator("h2").inner_text() == arm
    assert home.locator("#verdict").is_hidden()
    sentence = next(w["sentence"] for w in fleet["watch"] if w["arm"] == arm)
    assert sentence in one.locator(".warnings").inner_text()
    assert one.locator("a[href$='fit.json']").get_attribute("href") == f"robots/{arm}/fit.json"
    assert one.locator("a[href$='report.html']").get_attribute("href") == f"robots/{arm}/report.html"
    days = next(a["days"] for a in fleet["arms"] if a["name"] == arm)
    panel = one.locator(f".panels.wide .panel[data-quantity='{parameter}']")
    assert panel.locator("circle.dot.changed").count() == days
    assert panel.locator("path.model").count() == panel.locator("line.since").count() == 1
    assert one.locator(".panel > svg").count() == len(fleet["watched"]) + 1  # and the temperature
    assert one.locator("tbody tr").count() >= len(fleet["parameters"])
    home.go_back()
    home.wait_for_function("() => document.getElementById('one').hidden")
    assert home.locator("#verdict").is_visible()
    assert abs(home.evaluate("scrollY") - before) < 3


def test_drill_down_tables_sort(home, fleet):
    """Tables that are made later sort as well: the parameter that is farthest from the type comes first."""
    odd = next(arm for arm in fleet["arms"] if arm["unusual"])
    home.evaluate(f"location.hash = 'arm={odd['name']}'")
    home.locator("#one th .head", has_text="from the type").click()
    assert home.locator("#one tbody tr").first.locator("td").first.inner_text() == odd["unusual"][0]


def test_walk_from_arm_to_arm(home):
    """Neighbours, names and the Escape key."""
    home.evaluate("location.hash = 'arm=arm010'")
    home.locator("#one .walk a", has_text="arm011").click()
    home.wait_for_function("() => document.querySelector('#one h2')?.textContent === 'arm011'")
    home.evaluate("location.hash = 'arm=arm050'")  # without any recording
    home.wait_for_function("() => document.querySelector('#one .stamp')?.textContent === 'no data'")
    assert home.locator("#one .panel").count() == 0
    home.locator("#one .walk input").fill("arm033")
    home.locator("#one .walk input").press("Enter")
    home.wait_for_function("() => document.querySelector('#one h2')?.textContent === 'arm033'")
    home.locator("#one h2").click()
    home.keyboard.press("Escape")
    home.wait_for_function("() => document.getElementById('one').hidden")


def test_pointing_names_the_arm(home, fleet):
    """Over a line its arm and value are told; a click opens it."""
    arm, parameter = changed(fleet)
    index = [one["name"] for one in fleet["watched"]].index(parameter)
    panel = home.locator(f"#course .panel[data-watched='{index}']")
    panel.scroll_into_view_if_needed()
    place = panel.locator("path.changed").evaluate(
        "p => [p.getBoundingClientRect().right, p.getBoundingClientRect().top]"
    )
    home.mouse.move(place[0] - 1, place[1] + 1)
    assert home.locator("#tip").inner_text().startswith(f"{arm}, ")
    home.mouse.click(place[0] - 1, place[1] + 1)
    home.wait_for_function(f"() => document.querySelector('#one h2')?.textContent === '{arm}'")


def test_heat_map_leads_to_the_oddest(home, fleet):
    """The first column of the map is the arm that is most unlike the others."""
    oddest = max((arm for arm in fleet["arms"] if arm["deviation"]), key=lambda arm: max(map(abs, arm["deviation"])))
    canvas = home.locator("#heat canvas")
    canvas.scroll_into_view_if_needed()
    canvas.click(position={"x": 64, "y": 20})
    home.wait_for_function(f"() => document.querySelector('#one h2')?.textContent === '{oddest['name']}'")


def test_address_of_an_arm(browser, files, fleet):
    """The page opens at once at the arm that the address names; an unknown one shows the fleet."""
    arm, _ = changed(fleet)
    opened = Opened(browser, files / "fleet.html", f"#arm={arm}", **DESKTOP)
    assert opened.page.locator("#one h2").inner_text() == arm
    opened.page.locator("#one .back").click()
    opened.page.wait_for_function("() => document.getElementById('one').hidden")
    opened.page.evaluate("location.hash = 'arm=nobody%'")
    assert opened.page.locator("#verdict").is_visible()
    assert opened.problems == []
    opened.context.close()


def rgb(colour):
    """As a browser writes it."""
    return "rgb({}, {}, {})".format(*(int(colour[k : k + 2], 16) for k in (1, 3, 5)))


LOOK = """() => [getComputedStyle(document.documentElement).backgroundColor,
  getComputedStyle(document.querySelector('#course path.changed')).stroke,
  document.querySelector('#heat canvas').toDataURL()]"""


def test_light_dark_and_paper(home):
    """Page, lines and heat map follow the browser's setting while it is open; on paper all is light."""
    seen = []
    for scheme, colours in (("light", LIGHT), ("dark", DARK), ("light", LIGHT)):
        home.emulate_media(color_scheme=scheme)
        home.wait_for_timeout(50)
        paper, line, heat = home.evaluate(LOOK)
        assert (paper, line) == (rgb(colours["paper"]), rgb(colours["residual"]))
        seen.append(heat)
    assert seen[0] == seen[2] != seen[1]
    home.emulate_media(color_scheme="dark", media="print")
    assert home.evaluate(LOOK)[:2] == [rgb(LIGHT["paper"]), rgb(LIGHT["residual"])]
    assert home.locator("nav").is_hidden()
    home.emulate_media(color_scheme="light", media="screen")


def test_phone(browser, files, fleet):
    """Nothing is wider than the screen, neither the fleet nor an arm; panels stand two by two."""
    opened = Opened(browser, files / "fleet.html", **PHONE)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = [page.locator("#course .panel").nth(k).bounding_box() for k in range(3)]
    assert boxes[0]["y"] == boxes[1]["y"] < boxes[2]["y"]
    page.locator("#watch tbody a", has_text=changed(fleet)[0]).tap()
    page.wait_for_function("() => !document.getElementById('one').hidden")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.problems == []
    opened.context.close()


def test_thousand_arms(browser, files, large):
    """Bands instead of lines, every arm within reach, and answers while one waits: filter, sort, open an arm."""
    opened = Opened(browser, files / "large.html", **DESKTOP)
    page = opened.page
    painted = page.evaluate("performance.getEntriesByType('paint').map((e) => e.startTime)")
    assert all(time < 4000.0 for time in painted)  # ms; 300 on an idle machine
    assert page.locator("#course path.arm").count() == 0
    assert page.locator("#course path.wide").count() == len(large["watched"])
    looked = {one["arm"] for one in large["watch"] if one["shape"] and one["kind"] != "reversal"}
    assert page.locator("#course path.changed").count() == len(looked)
    assert page.locator("#scatter circle").count() == 999
    took = page.evaluate(
        """async () => {
          const start = performance.now();
          const input = document.getElementById('filter');
          input.value = 'arm99';
          input.dispatchEvent(new Event('input'));
          document.querySelectorAll('#arms th .head')[5].click();
          location.hash = 'arm=arm998';
          await new Promise((done) => setTimeout(done, 0));
          document.getElementById('one').getBoundingClientRect();
          return performance.now() - start;
        }"""
    )
    assert page.locator("#one h2").inner_text() == "arm998"
    assert took < 3000.0  # ms; 200 on an idle machine
    page.go_back()
    page.wait_for_function("() => document.getElementById('one').hidden")
    assert len(shown_arms(page)) == 10
    assert opened.problems == []
    opened.context.close()


def test_the_page_holds_the_format(fleet):
    """Data are in one element, as JSON; the days are counted from the first."""
    page = fleet_page(fleet)
    data = json.loads(re.search(r'id="armid-fleet">(.*?)</script>', page, re.DOTALL)[1])
    assert data["ordinals"] == list(range(20))
    assert data["dates"][0] == str(FIRST)
