"""The fleet page: what it says, how large it is, and how it behaves in a real browser without network."""

import base64
import json
import re
import shutil

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.files import plain
from armid.fleet.page import fleet_page, save_fleet_page
from armid.fleet.page_data import fleet_numbers, page_data
from armid.reporting.page import DARK, LIGHT
from tests.fleet.fleets import FIRST, WITHDRAWN, as_result, astray, made_up

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
    return next((one["robot"], one["parameter"]) for one in fleet["watch"] if one["shape"] == "ramp")


@pytest.fixture(scope="module")
def files(fleet, tmp_path_factory):
    """Pages, with a report beside one."""
    folder = tmp_path_factory.mktemp("pages")
    report = folder / "robots" / changed(fleet)[0] / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<p>a report</p>")
    save_fleet_page(as_result(fleet), folder / "fleet.html")
    save_fleet_page(as_result(wild(fleet)), folder / "wild.html")
    return folder


@pytest.fixture(scope="module")
def large_file(large, files):
    """The page of the large fleet, beside the others."""
    save_fleet_page(as_result(large), files / "large.html")
    return files / "large.html"


def wild(fleet):
    """The same with two recordings of clocks that were never set, and one from the far future."""
    found = astray(astray(fleet, "1970-01-01", 0), "0001-01-01", 0)
    return astray(found, "9999-12-31", 1)


# What the page says.


def lead(page, section):
    """The sentence that opens a section."""
    found = re.search(rf'<section id="{section}".*?<p class="lead">(.*?)</p>', page, re.DOTALL)[1]
    return re.sub(r"<[^>]*>", "", found).replace("\u00a0", " ")


def test_verdict_names_the_arms(fleet):
    """As many arms as the watch list has, the first of them by name; a fleet without faults says so."""
    arms = list(dict.fromkeys(one["robot"] for one in fleet["watch"]))
    sentence = lead(fleet_page(as_result(fleet)), "verdict")
    assert sentence.startswith(f"{len(arms)} of 50 arms need attention: {arms[0]} (")
    assert sentence.endswith(f"and {len(arms) - 5} more.")
    sound = fleet_page(as_result(made_up(6, 4, faults=0, lost=0).to_data()))
    assert lead(sound, "verdict") == "None of 6 arms needs attention."
    assert lead(sound, "problems") == "Every recording could be used."


def sure_of(page, entries, kind):
    """The last cell of the watch list's first row of a kind."""
    place = next(k for k, one in enumerate(entries) if one["kind"] == kind)
    rows = re.findall(r"<tr.*?</tr>", re.search(r'<section id="watch".*?</section>', page, re.DOTALL)[0], re.DOTALL)
    return re.sub(r"<[^>]*>", "", re.findall(r"<td.*?</td>", rows[1 + place], re.DOTALL)[-1]).strip()


def test_watch_list_states_size_with_interval(fleet):
    """A ramp of 8 % a day with a standard deviation of 0.4 % is 8.0 ± 0.8 %, 95 %."""
    page = fleet_page(as_result(fleet)).replace("\u00a0", " ")
    assert "+8.0 ± 0.8 % a day" in page
    assert "+0.90 ± 0.06 kg" in page
    sure = {kind: sure_of(page, fleet["watch"], kind) for kind in ("sign", "misfit")}
    assert sure == {"sign": "plain to see", "misfit": "not promised"}  # a reversed sensor needs no statistics


def test_packed_numbers_are_those_of_the_file(fleet):
    """Deviations come back to 1/32767 of the largest, their errors to 3 %, gaps stay gaps."""
    shown = page_data(fleet_numbers(as_result(fleet)))
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
    numbers = fleet_numbers(as_result(fleet))
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
    numbers = fleet_numbers(as_result(fleet))
    assert numbers.together == 4
    assert numbers.dates == tuple(fleet["dates"][::4])
    series, k = fleet["arms"][0]["series"], 5
    name = fleet["watched"][k]["name"]
    inside = [i for i, day in enumerate(series["days"]) if day // 4 == 1]
    values, errors = (np.array(series[key][name])[inside] for key in ("deviation", "deviation_sigma"))
    assert numbers.deviation[0, 1, k] == pytest.approx(np.average(values, weights=errors**-2.0))
    assert numbers.sigma[0, 1, k] == pytest.approx(np.sum(errors**-2.0) ** -0.5)
    assert "means over 4 days" in fleet_page(as_result(fleet))


def test_wild_dates_are_off_the_axis(fleet):
    """Three days of single arms, years away, are named and not drawn; the period is that of the others."""
    data = wild(fleet)
    numbers = fleet_numbers(as_result(data))
    assert dict(zip(numbers.dates, numbers.on_axis, strict=True)) == {
        **dict.fromkeys(fleet["dates"], True),
        **dict.fromkeys(("0001-01-01", "1970-01-01", "9999-12-31"), False),
    }
    assert numbers.off_axis == {"0001-01-01": ["arm001"], "1970-01-01": ["arm001"], "9999-12-31": ["arm002"]}
    page = re.sub(r"<[^>]*>", "", fleet_page(as_result(data)).partition('<script type="application/json"')[0])
    assert "they lie years from the rest: 0001-01-01 (arm001), 1970-01-01 (arm001) and 9999-12-31 (arm002)." in page
    assert f"Mitsubishi PA-10, {fleet['dates'][0]} to {fleet['dates'][-1]}" in page
    assert "years from the rest" not in fleet_page(as_result(fleet)).partition("<script")[0]


def test_old_recordings_stay_on_the_axis(fleet):
    """Half of the recordings six years back are no slip of a clock: all is drawn."""
    dates = ["2020" + day[4:] if d < 10 else day for d, day in enumerate(fleet["dates"])]
    numbers = fleet_numbers(as_result({**fleet, "dates": dates, "problems": [], "watch": []}))
    assert numbers.on_axis.all()
    assert numbers.off_axis == {}


def test_joined_days_keep_wild_dates_apart(fleet, monkeypatch):
    """Where days are joined, a wild date is a point of its own, and no day of the others is lost with it."""
    data = astray(fleet, "1970-01-01", 0)
    monkeypatch.setattr("armid.fleet.page_data.CELLS", 50 * 21 * 22 // 4)
    numbers = fleet_numbers(as_result(data))
    assert numbers.together == 4
    assert numbers.dates == ("1970-01-01", *fleet["dates"][::4])
    assert numbers.on_axis.tolist() == [False, *5 * [True]]
    assert numbers.deviation[:, 1:] == pytest.approx(fleet_numbers(as_result(fleet)).deviation, nan_ok=True)


def test_days_that_fit_nothing_are_told(fleet):
    """Days that were left out are not passed over in silence; files from before they were counted still open."""
    before = {key: value for key, value in fleet["summary"].items() if key != "misfit_days"}
    data = {**fleet, "problems": [], "summary": before}
    assert lead(fleet_page(as_result(data)), "problems") == "Every recording could be used."
    for count, words in (
        (3, "3 days left out because they fit nothing"),
        (1, "1 day left out because it fits nothing"),
    ):
        data = {**fleet, "summary": {**fleet["summary"], "misfit_days": count}}
        assert lead(fleet_page(as_result({**data, "problems": []})), "problems") == f"{words}; see the watch list."
        assert lead(fleet_page(as_result(data)), "problems").endswith(f"all other recordings are unaffected. {words}.")


def test_words_are_explained(fleet):
    """Names of parameters that this fleet has, arm-day, σ, and of what the others stay within some per cent."""
    page = re.sub(r"<[^>]*>", "", fleet_page(as_result(fleet)).partition('<script type="application/json"')[0])
    for words in (
        "mx, my, mz mass times distance",
        "Ixx … Izz moments of inertia",
        "fv viscous friction",
        "fo torque offset",
    ):
        assert words in page
    assert "inertia of the rotor" not in page  # it has none
    assert "An arm-day is one arm on one day" in page
    assert "Unlike itself: how far its oddest day lies from what is usual for this arm" in page
    inner = [
        abs(v)
        for arm in fleet["arms"]
        if arm["series"] and not changed_in(fleet, arm["name"])
        for one in fleet["watched"]
        if one["relative"]
        for v in arm["series"]["deviation"][one["name"]]
    ]
    share = 100.0 * np.quantile(inner, 0.95)
    sentence = lead(fleet_page(as_result(fleet)), "course")
    assert sentence.endswith(
        f"95 % of the daily friction values of the others lie within ±{share:.1f} % of what is usual for the same arm."
    )


def changed_in(fleet, arm):
    """What is watched and has changed in an arm."""
    watched = {one["name"] for one in fleet["watched"]}
    return [one for one in fleet["watch"] if one["robot"] == arm and one["since"] and one["parameter"] in watched]


def test_what_an_arm_of_its_own_could_be_is_no_alarm(fleet):
    """Whether values of its own data alone are possible is no column of the table: it is told in the arm's view."""
    table = re.search(r'<section id="arms".*?</table>', fleet_page(as_result(fleet)), re.DOTALL)[0]
    assert "possible" not in table


def test_a_mass_in_the_hand_is_explained_beside_its_picture(fleet):
    """Figures that are told stand beside the course that shows others; without a payload there is no note."""
    page = fleet_page(as_result(fleet))
    told = next(one["robot"] for one in fleet["watch"] if one["kind"] == "payload")
    note = re.search(r'<p class="remark beside-panel">(.*?)</p>', page)[1].replace("\u00a0", " ")
    assert f"{told} +0.90 ± 0.06 kg" in note
    assert "as if it sat in the tool’s origin" in note
    without = [one for one in fleet["watch"] if one["kind"] != "payload"]
    assert (
        "beside-panel"
        not in fleet_page(as_result({**fleet, "watch": without})).partition("<body>")[2].partition("<script")[0]
    )


def test_problems_are_told_once_and_plainly(fleet):
    """Days that follow one another with the same reason are one line."""
    days = fleet["dates"]
    problems = [
        {"robot": "arm001", "date": day, "file": "a.csv", "reason": "The effort of a is 0 in all rows."}
        for day in (*days[2:5], days[7])
    ]
    found = as_result({**fleet, "problems": problems}).unused()
    assert [(one.days, len(one.dates)) for one in found] == [(f"{days[2]} to {days[4]}", 3), (days[7], 1)]


def test_words_of_others_are_escaped(fleet):
    """Names of folders and files cannot become part of the page."""
    evil = "</script><img src=x onerror=alert(1)>"
    arms = [{**fleet["arms"][0], "name": evil, "state": "look"}, *fleet["arms"][1:]]
    watch = [{**fleet["watch"][0], "robot": evil, "code": evil}]
    problems = [{"robot": evil, "date": fleet["dates"][0], "file": evil, "reason": evil}]
    page = fleet_page(as_result({**fleet, "arms": arms, "watch": watch, "problems": problems}))
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script")


def test_small_and_odd_fleets():
    """One arm on one day, an arm without anything, a fleet too young to tell a change."""
    one = made_up(1, 1, faults=0, lost=0).to_data()
    page = fleet_page(as_result({**one, "promise": plain(WITHDRAWN)}))
    assert "whether an arm has changed is not known yet" in lead(page, "verdict")
    assert "cannot be promised yet, so no change is reported" in page
    none = [{**one["arms"][0], "series": None, "state": "no data", "days": 0, "possible": None, "fit": None}]
    none[0].update(dict.fromkeys(("noise", "values", "sigma", "own", "deviation")))
    page = fleet_page(as_result({**one, "arms": none}))
    assert "without any usable recording" in page
    assert 'id="map"' not in page


def test_size(fleet):
    """Far below 8 MB for 50 arms."""
    assert len(fleet_page(as_result(fleet)).encode()) < 1e6


@pytest.mark.prove
def test_size_of_a_thousand_arms(large_file):
    """Far below 15 MB: what is thinned stays readable."""
    assert large_file.stat().st_size < 6e6


def test_cannot_be_written(fleet, tmp_path):
    """Where the folder is missing the error names the file."""
    with pytest.raises(ArmidError, match="cannot be written"):
        save_fleet_page(as_result(fleet), tmp_path / "nowhere" / "fleet.html")


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


AT_REST = """() => new Promise((done) => {
  let [y, frames] = [scrollY, 0];
  const look = () => {
    [y, frames] = [scrollY, scrollY === y ? frames + 1 : 0];
    frames < 15 ? requestAnimationFrame(look) : done(y);
  };
  look();
})"""


def rests(page):
    """How far the page is scrolled once it has come to rest: it scrolls smoothly to a section [px]."""
    return page.evaluate(AT_REST)


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
    look = list(dict.fromkeys(one["robot"] for one in fleet["watch"]))
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


def test_contents_beside_the_text_are_shown_whole(home, fleet):
    """All sections and the arms that need attention fit on a desk: nothing is cut off, nothing scrolls."""
    assert home.locator("nav .looks a").count() >= len({one["robot"] for one in fleet["watch"]})
    over = home.evaluate(
        "() => { const nav = document.querySelector('nav'); return nav.scrollHeight - nav.clientHeight; }"
    )
    assert over <= 0
    size = home.locator("nav .looks").bounding_box()
    last = home.locator("nav .looks li").last.bounding_box()
    assert last["y"] + last["height"] <= size["y"] + size["height"] + 1.0


def test_filtering(home, fleet):
    """By words and by state, both at once; the count is told."""
    search = home.locator("#filter")
    search.fill("ARM02")
    assert sorted(shown_arms(home)) == [f"arm02{k}" for k in range(10)]
    home.locator(".filter button", has_text="needs attention").click()
    expected = {one["robot"] for one in fleet["watch"] if one["robot"].startswith("arm02")}
    assert set(shown_arms(home)) == expected
    assert home.locator("#shown").inner_text() == f"{len(expected)} of 50"
    search.fill("")
    assert len(shown_arms(home)) == len({one["robot"] for one in fleet["watch"]})
    home.locator(".filter button", has_text="needs attention").click()
    assert len(shown_arms(home)) == 50


def test_drill_down_by_click(home, fleet):
    """From the watch list to the arm's history and back to where one was; links lead to its files."""
    arm, parameter = changed(fleet)
    row = home.locator("#watch tbody tr", has_text=arm)
    row.locator("a").scroll_into_view_if_needed()
    before = rests(home)
    row.locator("a").click()
    home.wait_for_function("() => !document.getElementById('one').hidden")
    one = home.locator("#one")
    assert one.locator("h2").inner_text() == arm
    assert home.locator("#verdict").is_hidden()
    sentence = next(w["sentence"] for w in fleet["watch"] if w["robot"] == arm)
    assert sentence in one.locator(".warnings").inner_text().replace("\u00a0", " ")
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
    assert abs(rests(home) - before) < 3


def test_back_to_where_one_clicked_while_the_page_still_scrolled(home):
    """The browser reports scrolling only with its next frame; a click may come before."""
    rests(home)
    home.evaluate("""() => {
      scrollTo({ top: 300, behavior: "instant" });
      document.querySelector("#watch tbody a").click();
    }""")
    home.wait_for_function("() => !document.getElementById('one').hidden")
    home.go_back()
    home.wait_for_function("() => document.getElementById('one').hidden")
    assert rests(home) == 300


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
    home.emulate_media(color_scheme="light")
    seen = [home.evaluate(LOOK)[2]]
    for scheme, colours in (("dark", DARK), ("light", LIGHT)):
        home.emulate_media(color_scheme=scheme)
        home.wait_for_function(f"(before) => ({LOOK})()[2] !== before", arg=seen[-1])  # drawn when there is time
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


@pytest.mark.prove
def test_thousand_arms(browser, large_file, large):
    """Bands instead of lines, every arm within reach, and answers while one waits: filter, sort, open an arm."""
    opened = Opened(browser, large_file, **DESKTOP)
    page = opened.page
    painted = page.evaluate("performance.getEntriesByType('paint').map((e) => e.startTime)")
    assert all(time < 4000.0 for time in painted)  # ms; 300 on an idle machine
    assert page.locator("#course path.arm").count() == 0
    assert page.locator("#course path.wide").count() == len(large["watched"])
    looked = {one["robot"] for one in large["watch"] if one["shape"] and one["kind"] != "reversal"}
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
    page = fleet_page(as_result(fleet))
    data = json.loads(re.search(r'id="armid-fleet">(.*?)</script>', page, re.DOTALL)[1])
    assert data["ordinals"] == list(range(20))
    assert data["dates"][0] == str(FIRST)


# What a shop floor needs.


BOXES = """(shapes) => shapes.map((e) => e.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom])"""


def overlap(one, other, slack=1.0):
    """Whether two boxes share more than an edge [px]."""
    return (
        min(one[2], other[2]) - max(one[0], other[0]) > slack and min(one[3], other[3]) - max(one[1], other[1]) > slack
    )


@pytest.mark.parametrize("options", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["files", pytest.param("large_file", marks=pytest.mark.prove)])
def test_names_on_the_map_cover_nothing(browser, request, name, options):
    """Neither a dot nor another name lies under a name; some arms are named all the same."""
    there = request.getfixturevalue(name)
    opened = Opened(browser, there / "fleet.html" if there.is_dir() else there, **options)
    dots = opened.page.locator("#scatter circle").evaluate_all(BOXES)
    names = opened.page.locator("#scatter text.name").evaluate_all(BOXES)
    names = [(left, top + 2.0, right, bottom - 2.0) for left, top, right, bottom in names]  # without the line's leading
    assert len(names) >= 4
    assert not [1 for i, one in enumerate(names) for other in names[:i] if overlap(one, other)]
    assert not [1 for one in names for dot in dots if overlap(one, dot)]
    opened.context.close()


def test_wild_dates_leave_the_axes_alone(browser, files, fleet):
    """A few ticks of the ordinary days, no line across the page; the arms concerned say which days are missing."""
    opened = Opened(browser, files / "wild.html", **DESKTOP)
    page = opened.page
    panel = page.locator("#course .panel").first
    shown = panel.locator("text.time").all_text_contents()
    assert 2 <= len(shown) <= 6
    assert all(name.endswith("Jan") for name in shown)
    box = panel.locator("path.arm").first.evaluate("p => [p.getBBox().x, p.getBBox().width]")
    assert box[0] >= 30.0
    assert box[0] + box[1] <= panel.evaluate("p => p.clientWidth")
    page.evaluate("location.hash = 'arm=arm001'")
    page.wait_for_function("() => document.querySelector('#one h2')?.textContent === 'arm001'")
    assert "years from the rest: 0001-01-01, 1970-01-01." in page.locator("#one .note.off").inner_text()
    page.evaluate("location.hash = 'arm=arm003'")
    page.wait_for_function("() => document.querySelector('#one h2')?.textContent === 'arm003'")
    assert page.locator("#one .note.off").count() == 0
    assert opened.problems == []
    opened.context.close()


@pytest.mark.parametrize(
    ("days", "pattern"),
    [(20, r"\d+ Jan"), (400, r"[A-Z][a-z]{2} 20\d\d"), (9000, r"20\d[05]"), (700_000, r"\d{4}")],
    ids=["days", "months", "years", "ages"],
)
def test_ticks_follow_the_span(home, days, pattern):
    """Days, months or years, never more than wanted, all inside."""
    for most in (1, 2, 5, 12):
        ticks = home.evaluate(f"Draw.dayTicks(3, {3 + days}, {most})")
        assert 1 <= len(ticks) <= most + 1
        assert all(3 <= at <= 3 + days for at, _ in ticks)
        if most >= 5:
            assert len(ticks) >= 2
            assert all(re.fullmatch(pattern, words) for _, words in ticks[:1])


def test_words_sort_from_a(home):
    """The first click on a column of words goes from A to Z, the second back."""
    head = home.locator("#arms th .head").first
    for reverse in (False, True):
        head.click()
        assert shown_arms(home) == sorted(shown_arms(home), reverse=reverse)
    head.click()


def test_no_match_is_told(home):
    """A filter that fits no arm says so."""
    assert home.locator("#nothing").is_hidden()
    home.locator("#filter").fill("nobody at all")
    assert shown_arms(home) == []
    assert home.locator("#nothing").inner_text() == "No arm matches."
    home.locator("#filter").fill("")
    assert home.locator("#nothing").is_hidden()


def test_tables_tell_what_is_below(browser, tmp_path):
    """Fifteen entries of a watch list and more are seen at once; how many are not is told, until one is at the end."""
    save_fleet_page(made_up(40, 10, faults=30), tmp_path / "many.html")
    opened = Opened(browser, tmp_path / "many.html", **DESKTOP)
    page = opened.page
    box, note = page.locator("#watch .table"), page.locator("#watch .below")
    rows = box.locator("tbody tr").count()
    words = note.inner_text()
    hidden = int(words.split()[0])
    assert words.endswith("more: scroll ↓")
    assert 15 <= rows - hidden < rows
    box.evaluate("b => b.scrollTo({ top: b.scrollHeight, behavior: 'instant' })")
    page.wait_for_function("() => document.querySelector('#watch .below').textContent === ''")
    page.locator("#filter").fill("arm03")
    assert page.locator("#arms .below").inner_text() == ""
    opened.context.close()


def test_short_watch_lists_are_whole(home, fleet):
    """Eight entries need no box of their own."""
    assert home.locator("#watch .table.tall").count() == 0
    assert home.locator("#watch .below").count() == 0


LINES = """(cells) => cells.map((e) => { const r = document.createRange(); r.selectNodeContents(e);
  return new Set([...r.getClientRects()].map((b) => Math.round(b.top))).size; })"""


@pytest.mark.parametrize("options", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_dates_and_sizes_stay_on_a_line(browser, files, fleet, options):
    """Dates, sizes with their units and units of parameters are not broken, on the page and in an arm's view."""
    opened = Opened(browser, files / "fleet.html", **options)
    page = opened.page
    assert page.locator(".date").count() > 10
    for what in (".date", "#watch td:nth-child(5)", "#usual td:nth-child(5)"):
        found = page.locator(what).evaluate_all(LINES)
        assert set(found) <= {0, 1}, what
        assert 1 in found
    page.evaluate(f"location.hash = 'arm={changed(fleet)[0]}'")
    page.wait_for_function("() => !document.getElementById('one').hidden")
    for what in ("#one .date", "#one tbody td:nth-last-child(2)"):
        assert set(page.locator(what).evaluate_all(LINES)) == {1}, what
    opened.context.close()


def test_arm_view_on_a_dark_phone(browser, files, fleet):
    """Its table says that there are more columns, until one is there; the edge of a cut table is no pale stripe."""
    opened = Opened(browser, files / "fleet.html", f"#arm={changed(fleet)[0]}", color_scheme="dark", **PHONE)
    page = opened.page
    box = page.locator("#one .table", has=page.locator("text=stands for"))
    style = "b => [getComputedStyle(b, '::after').content, getComputedStyle(b).boxShadow]"
    words, shadow = box.evaluate(style)
    assert words == '"more columns: scroll →"'
    assert shadow.startswith(rgb(DARK["faint"]))
    box.evaluate("b => b.scrollTo({ left: b.scrollWidth, behavior: 'instant' })")
    page.wait_for_function("() => !document.querySelector('#one .table.more')")
    opened.context.close()


def test_arm_view_explains(home, fleet):
    """Possible or not in a sentence, names of parameters, the note of a payload, and a command that makes a report."""
    arm = next(one["robot"] for one in fleet["watch"] if one["kind"] == "payload")
    home.evaluate(f"location.hash = 'arm={arm}'")
    home.wait_for_function(f"() => document.querySelector('#one h2')?.textContent === '{arm}'")
    one = home.locator("#one")
    assert "Reported: 0.90\u00a0kg" in one.locator("[data-quantity=payload] figcaption").text_content()
    assert "mass times distance" in one.locator(".names").inner_text()
    assert "Own data: how much of the value its own recordings decide" in one.locator(".names").inner_text()
    folder = home.evaluate("decodeURIComponent(location.pathname)").rsplit("/", 1)[0]
    assert one.locator(".facts code").inner_text() == f"armid report {folder}/robots/{arm}/fit.json"
    for possible, words in ((False, "could not belong to a real arm"), (True, "could belong to a real arm")):
        name = next(a["name"] for a in fleet["arms"] if a["possible"] is possible)
        home.evaluate(f"location.hash = 'arm={name}'")
        home.wait_for_function(f"() => document.querySelector('#one h2')?.textContent === '{name}'")
        assert f"Its own values taken alone {words}" in one.locator(".facts").inner_text()
