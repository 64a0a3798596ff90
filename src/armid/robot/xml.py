"""Safe XML: no entity expansion, no network, errors that name the file."""

import math
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from armid.errors import DescriptionError
from armid.files import read_text


def parse_xml(path: Path) -> Element:
    """Root element of an XML file."""
    try:
        return defusedxml.ElementTree.fromstring(read_text(path).encode())
    except ParseError as error:
        line, column = error.position
        reason = str(error).split(":")[0]
        raise DescriptionError(str(path), f"line {line}, column {column}", f"is not valid XML ({reason})") from None
    except DefusedXmlException:
        raise DescriptionError(
            str(path), "", "declares XML entities, which are refused because they can exhaust memory; remove them"
        ) from None
    except (LookupError, ValueError) as error:
        raise DescriptionError(
            str(path), "", f"has an XML encoding that cannot be read ({error}); save as UTF-8"
        ) from None


def numbers(source: str, element: Element, name: str, attribute: str, default: str, count: int) -> list[float]:
    """Numbers in an attribute, as in ``xyz="0 0 1"``; `name` says whose element it is."""
    text = element.get(attribute, default)
    field = f"{name}: {attribute}={text!r}"
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        raise DescriptionError(source, field, "is not a list of numbers") from None
    if len(values) != count:
        raise DescriptionError(source, field, f"has {len(values)} numbers where {count} are needed")
    if not all(math.isfinite(value) for value in values):
        raise DescriptionError(source, field, "is not finite")
    return values
