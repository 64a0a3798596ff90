"""`armid report FIT or RUN`: the picture book."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.options import HOW_TO_READ, check_output, command, finish, logs_from
from armid.progress import progress_part

if TYPE_CHECKING:
    from armid.reporting import Evidence


@command(
    "report",
    "show a fit, its evidence and its warnings on one page",
    "Write one HTML page that needs no network: verdict, torque on other data, errors, friction, parameters, links, "
    "excitation, a replay of the motion, signals and warnings.",
    arg("fit FIT", "fit (JSON), or the folder of a run (see `armid run`)"),
    arg("-o --output FILE", "page to write (default: report.html beside FIT)", file="written"),
    arg("--validation FILE", "validation, written by `armid validate`"),
    arg("--plan FILE", "plan, written by `armid design`"),
    arg("--warmup FILE", "result of `armid warmup`", old="--warm-up"),
    arg("--title TEXT", "of the page"),
    arg(
        "--log LOG...",
        "what was recorded: adds spectra and nominal torque; without --validation it is validated on",
        default=[],
        action="extend",
        dest="logs",
    ),
    *HOW_TO_READ,
)
def report(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.reporting import build
    from armid.reporting.page import plotly_script

    given = Path(options.fit)
    path = Path(options.output) if options.output else (given if given.is_dir() else given.parent) / "report.html"
    check_output(str(path))
    plotly_script()  # whether it is there, before long work
    with progress_part(0.0, 0.4):
        evidence = _evidence(given, options)
    with progress_part(0.4, 1.0):
        page = build(evidence, title=options.title)
    page.save(path)
    size, named = path.stat().st_size, ("name", "title", "sentence", "empty")
    sections = [{name: getattr(section, name) for name in named} for section in page.sections]
    data = {"title": page.title, "sections": sections, "bytes": size, "files": [str(path)]}
    wrote = f"wrote {path} ({size / 1e6:.1f} MB, {len(sections)} sections)"
    return finish(options, data, [page.sections[0].sentence, wrote])


def _evidence(given: Path, options: argparse.Namespace) -> Evidence:
    """What was named, beside what the folder of a run holds."""
    from armid.estimation.fit import load_fit
    from armid.excitation import load_plan
    from armid.files import file_hash
    from armid.reporting import Evidence, gather
    from armid.reporting.evidence import load_mapping
    from armid.validation import load_validation, validate

    if given.is_dir():
        found = gather(given)
    else:
        found = Evidence(fit=load_fit(given), files=(given.name,), fit_file_sha256=file_hash(given))
    changes: dict[str, Any] = {}
    if options.validation:
        changes["check"] = load_validation(options.validation)
    if options.plan:
        changes["plan"] = load_plan(options.plan)
    if options.warmup:
        changes["warmup"] = load_mapping(Path(options.warmup))
    if options.logs:
        changes["logs"] = (*found.logs, *logs_from(options))
        if found.check is None and not options.validation:
            changes["check"] = validate(found.fit, changes["logs"], allow_training=True)
    names = [Path(item).name for item in (options.validation, options.plan, options.warmup, *options.logs) if item]
    return replace(found, **changes, files=(*found.files, *names))
