"""`armid studio [FOLDER]`: the procedure as a local page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from armid.cli.arguments import arg
from armid.cli.options import command


@command(
    "studio",
    "the whole procedure as a page in the browser",
    "Arm, motion, recording, model, evidence and use, one screen each, on the folder of `armid run -o FOLDER`: page "
    "and command line go on with each other's work. The page is for this machine alone. Ctrl-C ends it.",
    arg("folder [FOLDER]", "folder of the run (default: studio); made if it is not there"),
    arg("--port N", "port to listen on (default: any that is free)", int, 0, least=0),
    arg("--no-browser", "print the address, open nothing"),
    json=False,
)
def studio(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.studio.server import serve

    def tell(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    serve(Path(options.folder or "studio"), port=options.port, browser=not options.no_browser, tell=tell)
    return 0
