"""The page in a real browser without network: Chromium, driven by Playwright."""

import re
import shutil

import pytest

from armid.reporting import build
from armid.reporting.page import DARK, LIGHT
from tests.reporting import arms

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install the package chromium")

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
WIDTHS = (1400, 800, 390)
#: What reaches beyond the window; tables and the contents scroll by themselves.
BEYOND = """() => [...document.querySelectorAll('body *')].filter((e) => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && r.right > innerWidth + 1 && !e.closest('.table, nav');
}).map((e) => `${e.closest('section')?.id}: ${e.tagName} ${e.textContent.slice(0, 60)}`)"""
A4_PX = (680, 1009)  # what a page leaves between margins of 15 mm


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with every section, and its file."""
    folder = tmp_path_factory.mktemp("browser")
    made = build(arms.evidence(folder))
    made.save(folder / "report.html")
    return made, folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium."""
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page without network, and whatever went wrong on it."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.problems, self.requests = [], []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())


@pytest.fixture(scope="module")
def desktop(browser, report):
    """The page on a desk; it must have no problem even after all tests have used it."""
    opened = Opened(browser, report[1], **DESKTOP)
    yield opened.page
    assert opened.problems == []
    assert opened.requests == [report[1].as_uri()]
    opened.context.close()


@pytest.fixture(scope="module")
def phone(browser, report):
    """The page on a phone."""
    opened = Opened(browser, report[1], **PHONE)
    yield opened.page
    assert opened.problems == []
    opened.context.close()


def unfold(page):
    """Show what is folded, with its figures."""
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("Charts.drawings.forEach((d) => d.drawAll())")


def test_nothing_overflows_at_any_width(browser, report):
    """On a desk, a tablet and a phone, whatever is folded shown: a long name is written in lines, not cut."""
    opened = Opened(browser, report[1], viewport={"width": WIDTHS[0], "height": 900})
    for width in WIDTHS:
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.page.wait_for_timeout(300)
        unfold(opened.page)
        assert opened.page.evaluate(BEYOND) == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.context.close()


def test_what_few_need_is_folded(browser, report):
    """The contents lead into a folded section and open it; its figures are drawn then, at their width."""
    opened = Opened(browser, report[1], **DESKTOP)
    plot = opened.page.locator("#residuals .plot").first
    assert not plot.is_visible()
    opened.page.locator("nav a[href='#residuals']").click()
    plot.locator("svg.main-svg").first.wait_for()
    assert plot.locator("svg.main-svg").first.bounding_box()["width"] > 500
    opened.context.close()


def test_every_section_is_there(desktop, report):
    """Each with its title and sentence, and an entry in the contents that leads to it."""
    for section in report[0].sections:
        place = desktop.locator(f"section#{section.name}")
        assert place.locator("h2").inner_text() == section.title
        assert place.locator(".lead").inner_text().replace("\u00a0", " ") == section.sentence
        assert desktop.locator(f"nav a[href='#{section.name}']").is_visible()


def test_figures_are_drawn_when_they_come_into_view(desktop, report):
    """Scrolling through the page draws every panel of every figure; nothing below was drawn before."""
    desktop.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    plots = desktop.locator(".plot")
    drawn = "() => [...document.querySelectorAll('.plot')].filter((p) => p.querySelector('svg.main-svg')).length"
    assert desktop.evaluate(drawn) < plots.count()
    for index in range(plots.count()):
        plots.nth(index).scroll_into_view_if_needed()
    desktop.wait_for_function(f"() => ({drawn})() === {plots.count()}")
    panels = sum(len(row) for s in report[0].sections for f in s.figures for b in f.blocks for row in b.panels)
    assert desktop.locator(".plot .bglayer > .bg, .plot .subplot").count() >= panels
    assert desktop.locator(".views ellipse").count() == 2 * 2 * 3  # links, identified and nominal, views


def test_contents_stay_and_follow(desktop):
    """The contents are still in view far down, and mark where the reader is."""
    desktop.evaluate("document.getElementById('friction').scrollIntoView({behavior: 'instant'})")
    desktop.wait_for_function("() => document.querySelector('nav a[aria-current]').hash === '#friction'")
    box = desktop.locator("nav").bounding_box()
    assert 0 <= box["y"] < 100


def test_tables_sort(desktop):
    """By number: descending, ascending, and back; also with the keyboard."""
    table = desktop.locator("#parameters table").first
    head = table.locator("th").nth(1).locator(".head")

    def values():
        return [float(v) for v in table.locator("td:nth-child(2)").evaluate_all("c => c.map(x => x.dataset.sort)")]

    original = values()
    assert original != sorted(original)
    head.click()
    assert values() == sorted(original, reverse=True)
    head.press("Enter")
    assert values() == sorted(original)
    head.click()
    assert values() == original


def pixels(page):
    """The picture of the replay."""
    return page.evaluate("document.querySelector('.replay canvas').toDataURL()")


def test_replay(desktop):
    """The scrubber moves time and arm, play goes on from there, dragging turns the view."""
    desktop.locator(".scrubber").scroll_into_view_if_needed()
    first = pixels(desktop)
    desktop.locator(".scrubber").fill("500")
    assert desktop.locator(".clock").inner_text() == "4.00 s"
    middle = pixels(desktop)
    assert middle != first
    desktop.locator(".play").click()
    desktop.wait_for_function("() => parseFloat(document.querySelector('.clock').textContent) > 4.1")
    desktop.locator(".play").click()
    desktop.locator(".scrubber").fill("500")
    assert pixels(desktop) == middle
    box = desktop.locator(".replay canvas").bounding_box()
    desktop.mouse.move(box["x"] + 200, box["y"] + 200)
    desktop.mouse.down()
    desktop.mouse.move(box["x"] + 320, box["y"] + 230)
    desktop.mouse.up()
    assert pixels(desktop) != middle


def ranges(page, axis):
    """Ends of an axis in each block of the torque figure."""
    return page.evaluate(f"Charts.drawings[0].plots.map((p) => p._fullLayout.{axis}.range)")


def test_joints_zoom_together_and_can_share_a_scale(desktop):
    """A zoom of one joint's time is that of all; one button gives all torques the same scale."""
    desktop.evaluate("Charts.drawings[0].drawAll()")
    desktop.evaluate("Plotly.relayout(Charts.drawings[0].plots[0], {'xaxis.range[0]': 1, 'xaxis.range[1]': 2})")
    desktop.wait_for_function("() => Charts.drawings[0].plots[1]._fullLayout.xaxis.range[0] === 1")
    assert ranges(desktop, "xaxis2") == [[1, 2], [1, 2]]
    own = ranges(desktop, "yaxis")
    assert own[0] != own[1]
    button = desktop.locator("button.scale")
    button.click()
    same = ranges(desktop, "yaxis")
    assert same[0] == same[1]
    button.click()
    assert ranges(desktop, "yaxis") == own


def rgb(colour):
    """As a browser writes it."""
    return "rgb({}, {}, {})".format(*(int(colour[k : k + 2], 16) for k in (1, 3, 5)))


TONE = "Charts.drawings[0].plots[0]._fullData.find((t) => t.name.startsWith('predicted')).line.color"


def look(page):
    """Colours of paper and of the predicted torque."""
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return paper, page.evaluate(TONE)


def test_light_and_dark(desktop):
    """The page follows the browser's setting while it is open, figures included."""
    desktop.evaluate("Charts.drawings[0].drawAll()")
    assert look(desktop) == (rgb(LIGHT["paper"]), LIGHT["predicted"])
    for scheme, colours in (("dark", DARK), ("light", LIGHT)):
        desktop.emulate_media(color_scheme=scheme)
        desktop.wait_for_function(f"() => ({TONE}) === '{colours['predicted']}'")
        assert look(desktop) == (rgb(colours["paper"]), colours["predicted"])


def test_no_table_is_cut_without_a_sign(desktop, phone):
    """On a desk all columns fit; on a phone a table that is wider says so until its end is reached."""
    wide = "[...document.querySelectorAll('.table')].filter((t) => t.scrollWidth > t.clientWidth + 4)"
    assert desktop.evaluate(f"{wide}.length") == 0
    assert phone.evaluate(f"{wide}.length") > 0
    assert phone.evaluate(f"{wide}.every((t) => t.classList.contains('more'))")
    sign = "getComputedStyle(t, '::after').content"
    assert phone.evaluate(f"{wide}.every((t) => {sign}.includes('scroll'))")
    phone.evaluate(f"{wide}.forEach((t) => t.scrollTo({{ left: 1e4, behavior: 'instant' }}))")
    phone.wait_for_function("() => !document.querySelector('.table.more')")


def test_base_parameters_are_shown_whole(desktop, phone):
    """No box that scrolls by itself, and nothing beside the screen of a phone."""
    hidden = "t => [t.scrollHeight - t.clientHeight, t.scrollWidth - t.clientWidth]"
    for page in (desktop, phone):
        assert max(page.locator("#parameters .table").first.evaluate(hidden)) <= 2


def test_axes_have_numbers(desktop):
    """Singular values and friction curves: at least three labels on each axis."""
    unfold(desktop)
    for figure in ("singular", "friction"):
        for axis in ("x", "y"):
            count = f"(p) => p.querySelectorAll('.{axis}tick text').length"
            find = f"Charts.drawings.find((d) => d.element.dataset.figure === '{figure}').plots.map({count})"
            assert min(desktop.evaluate(find)) >= 3, (figure, axis)


def test_phone(phone):
    """Nothing is wider than the screen, panels stand one under the other, tables scroll by themselves."""
    unfold(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    residuals = "Charts.drawings.find((d) => d.element.dataset.figure === 'residuals').plots[0]._fullLayout"
    domains = phone.evaluate(f"[1, 2, 3].map((k) => {residuals}['xaxis' + (k === 1 ? '' : k)].domain)")
    assert domains[0] == domains[1] == domains[2]
    tops = phone.evaluate(f"[1, 2, 3].map((k) => {residuals}['yaxis' + (k === 1 ? '' : k)].domain[1])")
    assert tops == sorted(tops, reverse=True)
    phone.locator("nav a[href='#friction']").tap()
    phone.wait_for_function("() => document.getElementById('friction').getBoundingClientRect().top < 200")


def test_print(browser, report):
    """A4, in light colours from a dark screen too; no figure is higher than a page or wider than its text."""
    opened = Opened(browser, report[1], **DESKTOP, color_scheme="dark")
    pdf = opened.page.pdf(prefer_css_page_size=True, print_background=True)
    sizes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert len(sizes) >= 3
    assert all((round(float(w)), round(float(h))) in ((595, 842), (596, 842)) for w, h in sizes)
    opened.page.emulate_media(media="print")
    opened.page.evaluate("Charts.print(true)")
    assert look(opened.page) == (rgb(LIGHT["paper"]), LIGHT["predicted"])
    boxes = opened.page.locator(".plot").evaluate_all(
        "plots => plots.map((p) => [p.querySelector('svg.main-svg').clientWidth, p.clientHeight])"
    )
    assert all(width <= A4_PX[0] and height <= A4_PX[1] for width, height in boxes)
    breaks = opened.page.locator(".plot").evaluate_all("plots => plots.map((p) => getComputedStyle(p).breakInside)")
    assert set(breaks) == {"avoid"}
    assert opened.page.locator("nav").is_hidden()
    assert opened.problems == []
    opened.context.close()
