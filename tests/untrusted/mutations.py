"""Files that are nearly right: one or a few places changed in a way that their format knows, or any bytes."""

import copy
import csv
import io
import json
from xml.etree import ElementTree

import yaml

from tests.untrusted.names import NAMES

JUNK = (
    *(None, True, False, 0, 1, -1, 2, 7, 0.0, -0.0, 1e-300, 1e300, -1e300, 1e99, 1e20, 10**30, 0.5, -3.5),
    *("", "a", "nan", "1", "none", "auto", " ", "x" * 300, [], {}, [[]], [None], {"a": None}, [1, 2, 3], [0.0] * 10),
    *([[1.0, 2.0], [3.0]], [[0.0] * 3] * 3, [["a"]], float("nan"), float("inf"), 2**63, "\ud800", "a\nb"),
)
BYTES = (b"\0", b"\xff", b"\n", b",", b'"', b"'", b"#", b":", b"-", b"[", b"{", b"<", b"&", b"*", b"!", b"%", b"e")
CELLS = ("", "a", "nan", "inf", "-inf", "1e300", "-1e300", "1e-300", "1e5", "0", "-1", '"', "1;2", "1_0", "0x10", "½")


def mutated_bytes(data, rng):
    """Some bytes changed, lost, added or doubled."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = rng.choice(BYTES) * rng.choice((1, 1, 3, 40))
        elif kind == 3:
            data[at:at] = data[at : at + size]
        elif kind == 4:
            data[at : at + size] = rng.choice((b"\xff", b"\0", b"\x7f", b"9")) * size
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def places(data, path=()):
    """Paths of everything in nested lists and mappings; of long lists the first entries and the last."""
    found = [path]
    if isinstance(data, dict):
        for key in data:
            found += places(data[key], (*path, key))
    elif isinstance(data, list):
        for index in {*range(min(len(data), 3)), *([len(data) - 1] if data else [])}:
            found += places(data[index], (*path, index))
    return found


def mutated_tree(data, rng):
    """Nested data with one to three places replaced, taken away, doubled, renamed, negated or wrapped."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        options = [path for path in places(data) if path]
        if not options:
            return data
        path = rng.choice(options)
        home = data
        for step in path[:-1]:
            home = home[step]
        key = path[-1]
        kind = rng.randrange(9)
        if kind <= 2:
            home[key] = copy.deepcopy(rng.choice(JUNK))
        elif kind == 3:
            del home[key]
        elif kind == 4:
            home[key] = [copy.deepcopy(home[key])] * rng.choice((2, 3, 10))
        elif kind == 5 and isinstance(home, dict):
            home[rng.choice(("", "a", "name", "x" * 100, f"{key}s", "format"))] = home.pop(key)
        elif kind == 6:
            home[key] = negated(home[key], rng)
        elif kind == 7 and isinstance(home[key], str):
            home[key] = rng.choice(NAMES)
        elif kind == 7 and isinstance(home[key], list):
            home[key] = home[key][: rng.randrange(len(home[key]) + 1)]
        else:
            other = rng.choice(options)
            value = data
            try:
                for step in other:
                    value = value[step]
                home[key] = copy.deepcopy(value)
            except (KeyError, IndexError, TypeError):
                pass
    return data


def negated(value, rng):
    """Numbers with another sign or size, everywhere in it."""
    factor = rng.choice((-1, 0, 1e12, 1e-12, 1e60))
    if isinstance(value, list):
        return [negated(entry, rng) for entry in value]
    return value * factor if isinstance(value, float) else -value if isinstance(value, int) else value


def mutated_json(data, rng):
    """JSON, now and then nested without end, and now and then with changed bytes."""
    if rng.random() < 0.02:
        return b"[" * 20_000
    tree = json.dumps(mutated_tree(json.loads(data), rng)).encode()
    return mutated_bytes(tree, rng) if rng.random() < 0.15 else tree


def mutated_yaml(data, rng):
    """YAML: other data, other text, or an alias that stands for much."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    tree = mutated_tree(yaml.safe_load(data), rng)
    text = yaml.safe_dump(tree, allow_unicode=False, default_flow_style=rng.choice((True, False, None)))
    if rng.random() < 0.1:
        levels = "".join(f"b{k}: &b{k} [{', '.join([f'*b{k - 1}'] * 9)}]\n" for k in range(1, 8))
        text = f"b0: &b0 [1, 2]\n{levels}" + text.replace("[", "[*b7, ", 1)
    return text.encode(errors="replace")


def mutated_xml(data, rng):
    """XML: attributes and elements changed, taken away, doubled or moved."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    root = ElementTree.fromstring(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        nodes = list(root.iter())
        node, other = rng.choice(nodes), rng.choice(nodes)
        kind = rng.randrange(5)
        if kind <= 1 and node.attrib:
            name = rng.choice(sorted(node.attrib))
            words = (*CELLS, *NAMES, "0 0 0", "1 2", "0 0 0 0", "-1 -1 -1", "1e300 0 0")
            node.set(name, "".join(c for c in rng.choice(words) if c.isprintable() or c in "\n\t"))
        elif kind == 2 and node.attrib:
            node.attrib.pop(rng.choice(sorted(node.attrib)))
        elif kind == 3 and len(node):
            node.remove(rng.choice(list(node)))
        else:
            node.append(copy.deepcopy(other) if other is not root else ElementTree.Element("link"))
    return ElementTree.tostring(root)


def mutated_csv(data, rng):
    """A table: cells, rows and columns changed, taken away, doubled or put elsewhere; the header too."""
    if rng.random() < 0.2:
        return mutated_bytes(data, rng)
    lines = data.decode().splitlines()
    first = next(k for k, line in enumerate(lines) if not line.startswith("#"))
    rows = list(csv.reader(lines[first:]))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, column = rng.randrange(len(rows)), rng.randrange(max(len(rows[0]), 1))
        kind = rng.randrange(9)
        if kind == 0 and column < len(rows[at]):
            rows[at][column] = rng.choice(CELLS)
        elif kind == 1 and len(rows) > 2:
            del rows[at : at + rng.choice((1, 5, len(rows) // 2))]
        elif kind == 2:
            rows[at:at] = copy.deepcopy(rows[at : at + rng.choice((1, 20))])
        elif kind == 3:
            for row in rows[1:]:
                if column < len(row):
                    same = rows[1][column] if column < len(rows[1]) else ""
                    row[column] = rng.choice(CELLS) if rng.random() < 0.1 else same
        elif kind == 4:
            for row in rows:
                del row[column : column + 1]
        elif kind == 5:
            rng.shuffle(rows)
        elif kind == 6 and column < len(rows[0]):
            rows[0][column] = rng.choice(NAMES).encode(errors="replace").decode()
        elif kind == 7:
            rows[1:] = rows[1 : 1 + rng.choice((0, 1, 2, 5))]
        elif kind == 8 and column < len(rows[at]):
            rows[at][column] = "1" * rng.choice((20, 400, 140_000))
        rows = rows or [["time"]]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return ("\n".join([*lines[:first], ""]) + out.getvalue()).encode(errors="replace")
