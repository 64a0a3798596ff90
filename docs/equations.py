"""Equations of the pages as MathML, which browsers draw by themselves: no script, no request.

`$$ ... $$` in its own paragraph is displayed, and scrolls where the window is narrow; `$ ... $` stands in a line. Both
are in LaTeX's language.
"""

import re

from latex2mathml.converter import convert

CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$(?! )([^$\n]+?(?:\n[^$\n]+?)?)(?<! )\$", re.DOTALL)
SCROLLS = "display: block; overflow: auto hidden; padding: 0.3em 0"


def on_page_markdown(markdown, page, **_):
    """Put a mark in the place of each equation, so that Markdown leaves it alone."""
    page.meta["equations"] = found = []

    def mark(match):
        shown = match[1] is not None
        equation = convert(" ".join((match[1] or match[2]).split()), display="block" if shown else "inline")
        found.append(f'<span style="{SCROLLS}">{equation}</span>' if shown else equation)
        return f"equation{len(found) - 1}noitauqe"

    parts = CODE.split(markdown)
    return "".join(part if k % 2 else EQUATION.sub(mark, part) for k, part in enumerate(parts))


def on_page_content(html, page, **_):
    """Put the equations back."""
    return re.sub(r"equation(\d+)noitauqe", lambda match: page.meta["equations"][int(match[1])], html)
