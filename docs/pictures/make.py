"""Make the README's pictures from a real run: `make pictures`."""

from pathlib import Path

import armid
from armid import theme
from armid.figures import Figure, torque_block
from armid.run.procedure import run
from armid.run.settings import Settings
from armid.validation.result import Validation, load_validation

HERE = Path(__file__).parent
RUN = HERE.parents[1] / "build" / "demo"
SHOWN = (0, 1, 3, 5)  # joints of the torque picture
SECONDS = 10.0


def torque_picture(check: Validation) -> None:
    """Held-out torque of some joints: measured, predicted, and what is left at the same scale."""
    series = check.series
    rows = series.time - series.time[0] <= SECONDS
    time = series.time[rows] - series.time[0]
    blocks = []
    for j in SHOWN:
        joint = check.joints[j]
        corner = f"NRMS {100 * joint.nrms_moving:.1f} %"
        curves = (time, series.measured[rows, j], series.predicted[rows, j])
        blocks.append(torque_block(joint.name, "N m", *curves, corner=corner, tall=91.0))
    worst = max(joint.nrms_moving for joint in check.joints)
    figure = Figure("torque", blocks).draw(
        f"A motion that the fit has not seen: measured torque (black), predicted (blue), error (orange). The worst "
        f"joint is off by {100 * worst:.1f} % of its torque's spread."
    )
    theme.save(figure, HERE / "torque.png")


def report_picture(page: Path) -> None:
    """The top of the report, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": 1280, "height": 900})
        window.goto(page.resolve().as_uri())
        window.wait_for_timeout(1500)
        window.screenshot(path=HERE / "report.png")
        browser.close()


def main() -> None:
    """The demo's run, or what is left of it, then the pictures."""
    run(Settings(robot="pa10"), RUN)
    torque_picture(load_validation(RUN / "validation.json"))
    report_picture(RUN / "report.html")
    print(f"armid {armid.__version__}: wrote {HERE / 'torque.png'}, {HERE / 'report.png'}")


if __name__ == "__main__":
    main()
