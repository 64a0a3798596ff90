"""The page as a file: the same numbers as the files it is made from, nothing that can break out, nothing outside."""

import json
import re
import shutil
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

import armid
from armid.errors import ArmidError, MissingExtraError
from armid.exporting.arm import fit_digest
from armid.logs import write_log
from armid.reporting import build, gather, page
from armid.reporting.html import script_data
from tests.reporting import arms

MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder as `armid run` writes it."""
    folder = tmp_path_factory.mktemp("run")
    found = arms.evidence(folder)
    found.fit.save(folder / "fit.json")
    found.check.save(folder / "validation.json")
    found.plan.save(folder / "plan.json")
    for log, name in zip(found.logs, ("training", "validation"), strict=True):
        write_log(log, folder / f"{name}.csv")
    for name in ("warmup", "payload"):
        (folder / f"{name}.json").write_text(json.dumps(getattr(found, name)))
    options = {"files_sha256": {"run/fit.json": sha256((folder / "fit.json").read_bytes()).hexdigest()}}
    (folder / "tracking.json").write_text(json.dumps({**found.tracking, "options": options}))
    (folder / "exports").mkdir()
    sidecar = {"files": list(found.exports), "history": {"fit_sha256": fit_digest(found.fit)}}
    (folder / "exports" / "EXPORT.json").write_text(json.dumps(sidecar))
    return folder


@pytest.fixture(scope="module")
def html(run):
    """The page of the folder."""
    return build(gather(run)).html()


class Page(HTMLParser):
    """Elements, and the text of scripts by their id."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self._script = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._script = dict(attributes).get("id") if tag == "script" else None

    def handle_endtag(self, tag):
        self._script = None

    def handle_data(self, data):
        if self._script:
            self.data[self._script] = json.loads(data)


def test_numbers_are_those_of_the_files(run, html):
    """The page holds, digit for digit, the parameters of fit.json and the figures of validation.json and plan.json."""
    inside = Page(html).data["armid-data"]
    fit, check, plan = (json.loads((run / f"{name}.json").read_text()) for name in ("fit", "validation", "plan"))
    for key in ("parameters", "residual_rms", "noise", "standard_parameters", "condition_number", "delay_s", "notes"):
        assert inside["fit"][key] == fit[key]
    for key in ("verdict", "relative_error", "relative_error_moving", "joints", "residuals", "data_sha256"):
        assert inside["validation"][key] == check[key]
    for key in ("conditioning", "margins", "certified"):
        assert inside["plan"][key] == plan[key]
    assert inside["tracking"]["runs"][0]["max_joint_error"] == 0.02
    assert "series" not in inside["tracking"]["runs"][0]


def test_tables_show_those_numbers(run, html):
    """Sort keys of the table of errors are the full numbers of validation.json."""
    table = re.search(r'<section id="errors">.*?</section>', html, re.DOTALL).group()
    for joint in json.loads((run / "validation.json").read_text())["joints"]:
        for key in ("rms", "nrms", "nrms_moving", "noise_ratio", "r2"):
            assert f'data-sort="{joint[key]!r}"' in table


def test_one_file_without_network(html):
    """Below 8 MB; no element refers to anything outside the page, and the page forbids it."""
    assert len(html.encode()) < MOST_BYTES
    tags = Page(html).tags
    links = [a[key] for _, a in tags for key in ("src", "href") if a.get(key)]
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    policy = next(a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_names_cannot_break_out(html):
    """A title with script and image elements stays text."""
    tags = Page(html).tags
    assert sum(tag == "script" for tag, _ in tags) == 6  # data, figures, scene, colours, plotly, ours
    assert not any(tag == "img" for tag, _ in tags)
    assert "&lt;/script&gt;&lt;script&gt;alert(&quot;x&quot;)" in html
    assert 'alert("x")' not in html


def test_data_cannot_end_its_script():
    """Whatever is in it, the element ends where it should, and the data come back."""
    data = {"a": "</script><!-- <script>", "b": "\u2028 & '\""}
    text = script_data("x", data)
    assert text.count("<") == 2
    assert json.loads(re.fullmatch(r"<script[^>]*>(.*)</script>", text).group(1)) == data


def test_same_input_same_page(run, html):
    """Made again it is the same, byte for byte: nothing depends on the clock."""
    assert build(gather(run)).html() == html


def test_gathers_what_is_there(run, tmp_path):
    """A folder needs fit.json alone; logs may be several; an empty result counts as none."""
    assert gather(run).files == (
        "fit.json", "validation.json", "plan.json", "warmup.json", "payload.json", "tracking.json",
        "training.csv", "validation.csv",
    )  # fmt: skip
    (tmp_path / "fit.json").write_bytes((run / "fit.json").read_bytes())
    assert gather(tmp_path).check is None
    for name in ("training.csv", "training-2.csv"):
        (tmp_path / name).write_bytes((run / "training.csv").read_bytes())
    (tmp_path / "tracking.json").write_text("{}")
    found = gather(tmp_path)
    assert len(found.logs) == 2
    assert not any(section.name == "tracking" for section in build(found).sections)


def test_folder_without_a_fit(tmp_path):
    """Says what is missing and what to give."""
    with pytest.raises(ArmidError, match=r"holds no fit\.json; give a folder that armid run has written"):
        gather(tmp_path)
    with pytest.raises(ArmidError, match="is no folder"):
        gather(tmp_path / "nothing")
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(ArmidError, match="is not a fit"):
        gather(tmp_path)


def test_damaged_extras(run, tmp_path):
    """A further result that is no JSON object is named."""
    (tmp_path / "fit.json").write_bytes((run / "fit.json").read_bytes())
    (tmp_path / "audit.json").write_text("[1]")
    with pytest.raises(ArmidError, match=r"audit\.json: holds no JSON object"):
        gather(tmp_path)


def test_parts_of_another_robot_are_refused(run):
    """A plan or validation of other joints is not shown beside this fit."""
    found = gather(run)
    with pytest.raises(ArmidError, match="the plan is of the joints a, b"):
        replace(found, plan=replace(found.plan, joint_names=("a", "b")))


def test_the_validation_of_another_fit_is_refused(run, tmp_path):
    """Made from other data, or from the same data with another result: the fit's file tells."""
    found = gather(run)
    with pytest.raises(ArmidError, match=r"of a fit from other data \(SHA-256 abc; this fit's"):
        replace(found, check=replace(found.check, fit_sha256=("abc",)))
    digest = sha256((run / "fit.json").read_bytes()).hexdigest()
    for options in ({"files_sha256": {"fit.json": "0" * 64}}, {"fit": "a.json", "files_sha256": {"a.json": "0" * 64}}):
        with pytest.raises(ArmidError, match=f"another fit from the same data .*SHA-256 000000000000, .*{digest[:12]}"):
            replace(found, check=replace(found.check, options=options))
    right = {"fit": "a.json", "files_sha256": {"a.json": digest, "other.csv": "0" * 64}}
    assert replace(found, check=replace(found.check, options=right)).check.options == right


def test_a_validation_on_training_data_is_called_so(run):
    """Whatever the file says of itself: the data's hash, or that of a log's file, is among those of the fit."""
    found = gather(run)
    assert not found.check.same_as_training
    trained = found.fit.history["data_sha256"]
    by_data = replace(found, check=replace(found.check, data_sha256=tuple(trained)))
    files = {"files_sha256": {"monday.csv": "1" * 64}}
    fit = replace(found.fit, history={**found.fit.history, **files})
    by_file = replace(found, fit=fit, fit_file_sha256="", check=replace(found.check, options=files))
    for evidence in (by_data, by_file):
        assert evidence.check.same_as_training
        html = build(evidence).html()
        assert "training data: no proof" in html
        assert 'class="stamp good"' not in html
        assert "held-out" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def test_results_of_another_fit_are_left_out(run, tmp_path):
    """Exports and tracking that were made before the fit changed are not shown, and the page says so."""
    assert len(gather(run).exports) == 1
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    fit = gather(run).fit
    links = {name: 1.01 * value for name, value in fit.standard_parameters.items()}
    replace(fit, values=fit.values * 1.01, standard_parameters=links).save(tmp_path / "fit.json")
    found = gather(tmp_path)
    assert (found.tracking, found.exports) == (None, ())
    assert "tracking.json" not in found.files
    html = build(found).html()
    assert "tracking.json is of another fit" in html
    assert "The files in exports are of another fit" in html
    (tmp_path / "exports" / "EXPORT.json").unlink()
    (tmp_path / "exports" / "old.urdf").write_text("<robot/>")
    assert gather(tmp_path).exports == ()  # of unknown origin


def test_from_python(run, tmp_path):
    """armid.report(fit, check, path=...) works again after the package of that name is imported."""
    found = gather(run)
    for _ in range(2):
        made = armid.report(found.fit, found.check, path=tmp_path / "report.html", title="A <title>")
        assert "<title>A &lt;title&gt;</title>" in (tmp_path / "report.html").read_text("utf-8")
    assert made.summary().startswith("Verdict: ")
    with pytest.raises(ArmidError, match="made of a Fit, not of a dict"):
        armid.report({})


def test_plotly_is_an_extra(run, monkeypatch):
    """Without it the way to install it is told, before any work."""
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"armid\[report\]"):
        build(gather(run))
