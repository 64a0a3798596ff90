"""Editing XML in place: what is not asked for keeps its bytes."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armid.exporting import ExportError
from armid.exporting.own_file import Document
from tests.exporting.arms import URDF


def document(text):
    return Document(text.encode(), "a.urdf")


@pytest.mark.parametrize("text", [URDF, URDF.replace("\n", "\r\n"), "\ufeff" + URDF, URDF.replace("\n", "")])
def test_without_edits_every_byte_stays(text):
    """Line ends, byte order mark, comments, CDATA."""
    assert document(text).result() == text.encode()


def test_positions_are_those_of_the_elements():
    """The bytes of each element parse to that element, wherever it stands."""
    content = URDF.encode()
    root = Document(content, "a").root
    pairs = [(root, ElementTree.fromstring(content))]
    while pairs:
        node, element = pairs.pop()
        assert content[node.start : node.start + 1] == b"<"
        assert content[node.end - 1 : node.end] == b">"
        assert len(node.children) == len(element)
        assert node.tag == element.tag.replace("{", "")
        pairs += zip(node.children, element, strict=True)


def test_attributes_change_where_they_stand():
    """Order, quotes and spaces stay; missing attributes come last."""
    doc = document('<a><b  x = \'1\' y="2"  /><c z="1>2">text</c></a>')
    doc.set(doc.root.find("b"), {"y": "7", "x": "6", "w": "5"})
    doc.set(doc.root.find("c"), {"k": "0"})
    assert doc.result() == b'<a><b  x = \'6\' y="7" w="5"  /><c z="1>2" k="0">text</c></a>'


def test_a_name_inside_another_name_or_value_is_left_alone():
    """`x` is not `xx`, and not the text of a value."""
    doc = document('<a><b xx="x=1" x="2"/></a>')
    doc.set(doc.root.find("b"), {"x": "3"})
    assert doc.result() == b'<a><b xx="x=1" x="3"/></a>'


def test_insertions_follow_the_file_s_own_indentation():
    """On a line of its own where its neighbours are, inline where they are not; an empty element opens."""
    doc = document("<a>\n\t<b>\n\t\t<c/>\n\t</b>\n\t<d/>\n\t<e><f/></e>\n</a>")
    for tag in "bde":
        doc.insert_last(doc.root.find(tag), "<new/>")
    doc.insert_first(doc.root.find("b"), "<first/>")
    assert doc.result() == (
        b"<a>\n\t<b>\n\t\t<first/>\n\t\t<c/>\n\t\t<new/>\n\t</b>\n\t<d>\n\t  <new/>\n\t</d>\n\t<e><f/><new/></e>\n</a>"
    )


@given(st.lists(st.sampled_from(["<x/>", "<!-- > ' -->", "<![CDATA[</a>]]>", "text", "<y k='>'>t</y>"]), max_size=6))
def test_a_removed_element_takes_nothing_else_along(parts):
    """Property: what stands before and after an element stays, whatever it is."""
    before, after = "".join(parts), "".join(reversed(parts))
    doc = document(f"<a>{before}<gone><x/></gone>{after}</a>")
    doc.remove(doc.root.find("gone"))
    assert doc.result().decode() == f"<a>{before}{after}</a>"


def test_entities_are_refused():
    """An entity could stand for anything, so that positions would mean nothing."""
    with pytest.raises(ExportError, match="entities"):
        document('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>')


def test_broken_files_are_named():
    """The error names the file."""
    with pytest.raises(ExportError, match=r"a\.urdf: is not valid XML"):
        document("<a><b></a>")
