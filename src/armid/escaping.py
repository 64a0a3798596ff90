"""Words of others in text that armid writes: one function per language, and each knows what may stand there.

Names of robots, joints, links and files come from files that anybody may have written. Nothing of them reaches a
generated text but through these functions. `unprintable` is the door: a robot with such a name is not loaded.
"""

from __future__ import annotations

import hashlib
import html as _html
import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any
from xml.sax.saxutils import quoteattr

LONGEST = 200  # characters of a name in a comment
LONGEST_FILE = 48  # characters of a name in a file's name, which may have more parts and 255 bytes in all
_MARKS = frozenset(" _.,:;()[]+-=@'/")  # beside letters and digits: none ends or continues a comment or a string
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)  # names that Windows keeps for itself
_NOT_PLAIN = re.compile(r"[<>&\[\]|\\]")  # what Markdown takes for HTML, links, tables and escapes


def unprintable(words: str) -> bool:
    """Whether a name holds control or invisible characters, line breaks or halves of characters."""
    return any(map(_invisible, words))


def _invisible(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind.startswith("C") or kind in ("Zl", "Zp")


def one_line(words: str) -> str:
    r"""For terminals and messages: what `unprintable` names is shown as in ``\n`` and ``\x07``."""
    return "".join(ascii(c)[1:-1] if _invisible(c) else c for c in words)


def lines(words: str) -> str:
    """The same for several lines, whose breaks and tabs stay."""
    return "".join(part if part in "\n\t" else one_line(part) for part in re.split(r"([\n\t])", words))


def comment(words: str) -> str:
    """For a comment or docstring of C, Python, XML, YAML and URScript: letters, digits and harmless marks."""
    kept = "".join(c if c.isalnum() or c in _MARKS else "_" for c in " ".join(words.split()))
    kept = re.sub(r"-{2,}", "-", kept)
    return kept if len(kept) <= LONGEST else f"{kept[: LONGEST - 3]}..."


def comments(names: Iterable[str]) -> str:
    """Several of them, with commas."""
    return ", ".join(map(comment, names))


def file_name(words: str) -> str:
    """Part of a file's name, or a robot's own: letters, digits, - and _; a long one ends in a hash of the whole."""
    name = re.sub(r"[^\w-]+", "_", words) or "arm"
    if len(name) > LONGEST_FILE:
        name = f"{name[: LONGEST_FILE - 9]}_{hashlib.sha256(words.encode(errors='replace')).hexdigest()[:8]}"
    return f"arm_{name}" if _DEVICES.fullmatch(name) else name


def identifier(words: str) -> str:
    """A name for C and Python: a-z, 0-9 and _."""
    name = re.sub(r"\W+", "_", file_name(words), flags=re.ASCII).strip("_").lower() or "arm"
    return f"arm_{name}" if name[0].isdigit() else name


def xml_attribute(words: str) -> str:
    """A quoted attribute of XML, its quotes included."""
    return quoteattr(one_line(words))


def html(words: str) -> str:
    """Text or a quoted attribute of HTML."""
    return _html.escape(lines(words), quote=True)


def script_json(data: Any) -> str:
    """Data inside a script element: no text in it can end the element or open a comment."""
    content = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        content = content.replace(character, f"\\u{ord(character):04x}")
    return content


def markdown(words: str) -> str:
    """A sentence of Markdown: no HTML, no links, one line."""
    return _NOT_PLAIN.sub(r"\\\g<0>", one_line(words))
