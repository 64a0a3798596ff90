"""Words of others in generated text: whatever they are, they stay words."""

import ast
import html.parser
import json
import re
from xml.etree import ElementTree

import pytest
import yaml

from armid import escaping
from tests.untrusted.names import names

HOSTILE = names("/tmp/armid-was-here")


@pytest.mark.parametrize("name", HOSTILE)
def test_comments(name):
    """In a comment or docstring of any language a name cannot end it, start a line, or make it invalid."""
    words = escaping.comment(name)
    assert len(words) <= escaping.LONGEST
    assert not escaping.unprintable(words)
    assert not re.search(r'[*\\"?#`$<>&{}]|--', words)
    words.encode()
    assert ast.get_docstring(ast.parse(f'"""of {words}\n"""')) is not None
    assert yaml.safe_load(f"# {words}\na: 1") == {"a": 1}
    assert ElementTree.fromstring(f"<a><!-- {words} --></a>").text is None


@pytest.mark.parametrize("name", HOSTILE)
def test_other_places(name):
    """XML attributes, HTML, data of scripts, Markdown, terminals, names of files and of programs."""
    shown = escaping.one_line(name)
    assert not escaping.unprintable(shown)
    assert ElementTree.fromstring(f"<a b={escaping.xml_attribute(name)}/>").get("b") == shown
    seen = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append((tag, dict(attributes)))
    parser.feed(f'<p title="{escaping.html(name)}">{escaping.html(name)}</p>')
    assert [tag for tag, _ in seen] == ["p"]
    assert set(seen[0][1]) == {"title"}
    data = escaping.script_json({name: name})
    assert json.loads(data) == {name: name}
    assert not set("<>&\u2028") & set(data)
    assert not re.search(r"(?<!\\)[<\[|]|\n", escaping.markdown(name).replace("\\\\", ""))
    file = escaping.file_name(name)
    assert re.fullmatch(r"[\w-]+", file)
    assert len(file.encode()) < 200
    assert file.upper() not in ("CON", "NUL")
    assert re.fullmatch(r"[a-z_][a-z0-9_]*", escaping.identifier(name))


def test_ordinary_names_stay_as_they_are():
    """Nobody's own name is changed where nothing can go wrong."""
    for name in ("joint_1", "arm/elbow joint", "Grün 关节 №1", "A1.2-left"):
        assert escaping.one_line(name) == name
        assert not escaping.unprintable(name)
    assert escaping.comment("arm/elbow joint_1 (left)") == "arm/elbow joint_1 (left)"
    assert escaping.file_name("ur10e-real") == "ur10e-real"
    assert escaping.identifier("UR10e") == "ur10e"
    assert escaping.file_name("a" * 300) != escaping.file_name("a" * 299)
