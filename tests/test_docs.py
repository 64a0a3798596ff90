"""The documentation: every command and every Python example in it works, and it builds without a warning."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from armid.cli import main

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
#: Languages a block may have: bash and python are run, yaml is parsed by the pages' own tests, text is only shown.
LANGUAGES = {"bash", "python", "yaml", "text", "json", "c"}
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


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    for name in ("arm.urdf", "arm.yaml"):
        shutil.copy(ROOT / "examples" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_every_block_says_what_it_is(page):
    """No block escapes the tests by having no language."""
    assert {found[2] for found in FENCE.finditer(page.read_text("utf-8"))} <= LANGUAGES


@pytest.mark.parametrize("page", [p for p in DOCS if blocks(p, "bash", "python")], ids=lambda page: page.stem)
def test_examples_run(page, desk, capsys):
    """Commands and Python of a page, one after the other, as a reader would."""
    names: dict = {}
    for language, code in blocks(page, "bash", "python"):
        if language == "python":
            exec(compile(code, f"{page.name}", "exec"), names)
            continue
        for words in commands(code):
            _bring_csv(desk, words)
            expected = 1 if shlex.join(["armid", *words]) in NEGATIVE else 0
            assert main(words) == expected, f"{shlex.join(words)}: {capsys.readouterr().err}"


def _bring_csv(desk, words):
    """monday.csv and recipe.yaml of your-own-arm: the reader's own recording, made from the one before."""
    if "monday.csv" not in words or (desk / "monday.csv").exists():
        return
    import numpy as np

    import armid

    log = armid.read_log(desk / "monday.parquet")
    table = np.column_stack([1e3 * log.time, np.degrees(log["position"]), log["effort"]])
    names = "t_ms,q1,q2,q3,q4,tau1,tau2,tau3,tau4"
    np.savetxt(desk / "monday.csv", table, fmt="%.8g", delimiter=",", header=names, comments="")
    (recipe,) = (code for _, code in blocks(ROOT / "docs" / "your-own-arm.md", "yaml"))
    (desk / "recipe.yaml").write_text(recipe)


def test_every_page_is_in_the_contents():
    """The navigation names all pages, and no others."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"([\w-]+\.md)\b", str(yaml.safe_load(text)["nav"]))
    assert sorted(named) == sorted(page.name for page in DOCS)


def test_documentation_builds_without_a_warning(tmp_path):
    """Strict: a dead link, a missing page or an unknown name is an error; nothing is fetched from a network."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(DOCS)
    for page in pages:
        fetched = re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="(https?:[^"]+)"', page.read_text("utf-8"))
        assert fetched == [], page.name
