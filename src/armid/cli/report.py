"""`armid report FIT or RUN`: the picture book."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.log_options import check_output
from armid.cli.options import add_json_option, print_json
from armid.progress import progress_part, report_progress

if TYPE_CHECKING:
    from armid.reporting import Evidence


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "report",
        help="show a fit, its evidence and its warnings on one page",
        description="Write one HTML page that needs no network: verdict, torque on other data, errors, friction, "
        "parameters, links, excitation, a replay of the motion, signals and warnings.",
    )
    command.add_argument("fit", metavar="FIT", help="fit (JSON), or the folder of a run (see `armid run`)")
    command.add_argument("-o", "--output", metavar="FILE", help="page to write (default: report.html beside FIT)")
    command.add_argument("--validation", metavar="FILE", help="validation, written by `armid validate`")
    command.add_argument("--plan", metavar="FILE", help="plan, written by `armid design`")
    command.add_argument("--warmup", metavar="FILE", help="result of `armid warmup`")
    command.add_argument("--title", metavar="TEXT", help="of the page")
    command.add_argument(
        "--log",
        dest="logs",
        metavar="LOG",
        nargs="+",
        action="extend",
        default=[],
        help="what was recorded: adds spectra and nominal torque; without --validation it is validated on",
    )
    command.add_argument("--recipe", metavar="FILE", help="what the columns of LOG mean: a recipe or its name")
    command.add_argument("--effort", metavar="KIND", help="what was measured, for logs that do not say it")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.reporting import build
    from armid.reporting.page import plotly_script

    given = Path(options.fit)
    home = given if given.is_dir() else given.parent
    output = Path(options.output) if options.output else home / "report.html"
    inputs = [item for item in (options.fit, options.validation, options.plan, options.warmup, *options.logs) if item]
    check_output(str(output), inputs)
    plotly_script()  # whether it is there, before long work
    with progress_part(0.0, 0.4):
        evidence = _evidence(given, options)
    with progress_part(0.4, 1.0):
        page = build(evidence, title=options.title)
    page.save(output)
    report_progress("done", 1.0)
    size = output.stat().st_size
    if options.json:
        sections = [{"name": s.name, "title": s.title, "sentence": s.sentence, "empty": s.empty} for s in page.sections]
        print_json({"title": page.title, "sections": sections, "bytes": size, "files": [str(output)]})
    else:
        first = page.sections[0].sentence
        sys.stdout.write(f"{first}\nwrote {output} ({size / 1e6:.1f} MB, {len(page.sections)} sections)\n")
    return 0


def _evidence(given: Path, options: argparse.Namespace) -> Evidence:
    """What was named, beside what the folder of a run holds."""
    from armid.cli.log_options import logs_from
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
