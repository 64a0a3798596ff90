"""Make the README's pictures and figures from one run of the demo: `make pictures`."""

import json
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import armid
from armid import theme
from armid.figures import Figure, torque_block
from armid.logs.public import public_log
from armid.run.procedure import run
from armid.run.settings import Settings
from armid.validation.result import Validation, load_validation

HERE = Path(__file__).parent
RUN = HERE.parents[1] / "build" / "demo"
README = HERE.parents[1] / "README.md"
PLACE = re.compile(r"(<!-- demo: written by make pictures -->\n).*?(<!-- end of demo -->)", re.DOTALL)


def demo_figures(run_folder: Path) -> dict[str, Any]:
    """What the README says of the demo, from the files of its run; errors are fractions, distances in metres."""
    check = load_validation(run_folder / "validation.json")
    fit = armid.load_fit(run_folder / "fit.json")
    runs = json.loads((run_folder / "tracking.json").read_text("utf-8"))["runs"]
    distance = {run["title"]: run["mean_cartesian_error"] for run in runs}
    worst = max(check.joints, key=lambda joint: joint.nrms_moving)
    return {
        "verdict": check.verdict,
        "relative_error_moving": check.relative_error_moving,
        "worst_joint": worst.name,
        "worst_nrms_moving": worst.nrms_moving,
        "determined": fit.identifiability.counts[0],
        "parameters": fit.identifiability.counts[1],
        "tracking_m": distance["computed torque, identified model"],
        "tracking_pid_m": distance["PID"],
    }


def demo_words(figures: Mapping[str, Any]) -> str:
    """The README's sentences about the demo."""
    error, worst = (100 * figures[name] for name in ("relative_error_moving", "worst_nrms_moving"))
    tool, pid = (1e3 * figures[name] for name in ("tracking_m", "tracking_pid_m"))
    words = [
        f"The demo's verdict is *{figures['verdict']}*. On a motion that the fit has not seen, the error is",
        f"{error:.1f} % of the torque; the worst joint, {figures['worst_joint']}, is off by {worst:.1f} % of its",
        f"torque's spread. The data determine {figures['determined']} of {figures['parameters']} parameters. With the",
        f"model in the controller the tool stays {tool:.2f} mm from its path on average, with PID alone {pid:.1f} mm.",
    ]
    return textwrap.fill(" ".join(words), 120) + "\n"


def torque_picture(check: Validation, name: str, shown: Sequence[int], seconds: float) -> None:
    """Held-out torque of some joints: measured, predicted, and what is left at the same scale."""
    series = check.series
    rows = series.time - series.time[0] <= seconds
    time = series.time[rows] - series.time[0]
    blocks = []
    for j in shown:
        joint = check.joints[j]
        corner = f"NRMS {100 * joint.nrms_moving:.1f} %"
        curves = (time, series.measured[rows, j], series.predicted[rows, j])
        blocks.append(torque_block(joint.name, "N m", *curves, corner=corner, tall=91.0))
    worst = max(joint.nrms_moving for joint in check.joints)
    figure = Figure("torque", blocks).draw(
        f"A motion that the fit has not seen: measured torque (black), predicted (blue), error (orange). The worst "
        f"joint is off by {100 * worst:.1f} % of its torque's spread."
    )
    theme.save(figure, HERE / f"{name}.png")


def real_picture(folder: Path) -> None:
    """The UR10e of the page "A real robot"."""
    entry = public_log("ur10e")
    robot = armid.load_robot(entry.robot_path(folder))
    names = ("ur-20_02_10-30sec_12harm.csv", "ur-20_01_17-ptp_10_points.csv")
    trained, other = (armid.read_log(folder / "ur10e" / name, entry.recipe) for name in names)
    fit = armid.identify(robot, armid.process(trained, robot=robot))
    torque_picture(armid.validate(fit, other, low_pass_hz=5.0), "ur10e-torque", (0, 1, 2, 4), 40.0)


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
    """The demo's run, or what is left of it, then its figures and pictures."""
    run(Settings(robot="pa10"), RUN)
    figures = demo_figures(RUN)
    (HERE / "demo.json").write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    told = PLACE.sub(lambda found: f"{found[1]}{demo_words(figures)}{found[2]}", README.read_text("utf-8"))
    README.write_text(told, "utf-8")
    torque_picture(load_validation(RUN / "validation.json"), "torque", (0, 1, 3, 5), 10.0)
    report_picture(RUN / "report.html")
    if "ARMID_DATA" in os.environ:
        real_picture(Path(os.environ["ARMID_DATA"]))
    print(f"armid {armid.__version__}: wrote torque.png, report.png and demo.json in {HERE}, and the README's figures")


if __name__ == "__main__":
    main()
