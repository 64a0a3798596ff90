"""What the stages of a run do: thin calls of the procedure's own functions, from file to file."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError
from armid.files import file_hash, write_text
from armid.progress import report_progress
from armid.robot import load_robot
from armid.run.settings import Settings
from armid.run.stages import Workplace

if TYPE_CHECKING:
    from armid.logs.log import Log
    from armid.robot.robot import Robot

_NOT_EXPORTED = "NOT-EXPORTED.txt"
KEPT_SHARE = 0.3  # of a log, for validation where no other log is given
#: Tool paths that a library robot is known by.
PATHS = {"pa10": "pa10-figure"}


def robot_of(settings: Settings) -> Robot:
    """The robot that the settings describe."""
    return load_robot(
        settings.robot,
        links=settings.links,
        rotors=not settings.no_rotors,
        gravity=settings.gravity,
        simplify=settings.simplify,
    )


def log_names(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of the training logs and of the validation logs in the run's folder."""
    count = max(1, len(_groups(settings, settings.log)))
    others = max(1, len(_groups(settings, settings.validation))) if settings.validation else count
    return _numbered("training", count), _numbered("validation", others)


def path_to_track(settings: Settings) -> str | None:
    """The path that is followed with the identified model, on the virtual robot only."""
    if settings.track is not None:
        return None if settings.track == "none" else settings.track
    return PATHS.get(settings.robot) if settings.virtual and settings.links is None else None


def model(place: Workplace) -> None:
    """Base parameters."""
    from armid.dynamics import Model

    made = Model(robot_of(place.settings))
    base = made.base
    _write(
        place / "model.json",
        {
            "robot": made.robot.name,
            "joint_names": list(made.robot.joint_names),
            "base_parameters": base.count,
            "groups": [{"name": g.name, "expression": g.expression, "unit": g.unit} for g in base.groups],
            "unidentifiable": list(base.no_effect),
        },
    )


def design(place: Workplace) -> None:
    """The excitation, and a smaller motion of other harmonics for validation."""
    from armid.excitation import Fourier, design
    from armid.excitation import criterion as criterion_named

    s, robot = place.settings, robot_of(place.settings)
    criterion = criterion_named(s.criterion)
    plan = design(
        robot, Fourier(s.harmonics, s.period), criterion=criterion, starts=s.starts, rate_hz=s.rate, seed=s.seed
    )
    report_progress("excitation design", 0.8)
    other = design(
        robot,
        Fourier(max(2, s.harmonics - 2), s.period),
        criterion=criterion,
        starts=1,
        rate_hz=s.rate,
        seed=s.seed + 1,
    )
    plan.save(place / "plan.json")
    other.save(place / "validation-plan.json")


def warm_up(place: Workplace) -> None:
    """Move the cold virtual arm until its friction changes no more."""
    from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
    from armid.experiment import VirtualRobot
    from armid.experiment.settings import Thermal
    from armid.experiment.warm_up import warm_up

    s = place.settings
    arm = VirtualRobot(robot_of(s), rate_hz=s.rate, seed=s.seed, thermal=Thermal())
    result = warm_up(arm, arm.robot)
    fits = [
        fit_warmup(arm.robot.joint_names[joint], *cycle_means(result.log, arm.robot, joint + 1))
        for joint in result.joints
    ]
    joints = [{"number": j + 1, **fit.to_data()} for j, fit in zip(result.joints, fits, strict=True)]
    about = {"warm": result.warm, "seconds_of_motion": result.log.duration, "seed": s.seed}
    _write(place / "warmup.json", {**about, "joints": joints})


def excite(place: Workplace) -> None:
    """Drive the plan and the other motion on the warm virtual arm."""
    from armid.excitation import load_plan
    from armid.experiment import VirtualRobot
    from armid.experiment.excite import excite
    from armid.logs import write_log

    s = place.settings
    training, validation = log_names(s)
    runs = (("plan.json", training[0], s.seed), ("validation-plan.json", validation[0], s.seed + 1))
    for plan_name, name, seed in runs:
        arm = VirtualRobot(robot_of(s), rate_hz=s.rate, seed=seed)
        log = excite(arm, load_plan(place / plan_name), periods=s.periods)
        history = {**log.info.history, "plan_sha256": file_hash(place / plan_name)}
        write_log(log.with_channels({}, history=history, source=name), place / name)


def read(place: Workplace) -> None:
    """Bring the user's logs into one form, and keep a part for validation where no other log is given."""
    from armid.logs import write_log

    s = place.settings
    training, validation = log_names(s)
    logs = [_log(s, group) for group in _groups(s, s.log)]
    others = [_log(s, group) for group in _groups(s, s.validation)]
    if not others:
        parts = [_split(log) for log in logs]
        logs, others = [first for first, _ in parts], [rest for _, rest in parts]
    for log, name in zip((*logs, *others), (*training, *validation), strict=True):
        write_log(log, place / name)


def files_of(settings: Settings) -> tuple[str, ...]:
    """The user's files and folders that logs are read from, those that a recipe names included."""
    from armid.logs import Recipe

    named: list[str] = []
    for name in (*settings.log, *settings.validation):
        if Path(name).suffix in (".yaml", ".yml") and Path(name).is_file():
            named += [str(path) for path in Recipe.load(name).files]
        named.append(name)
    return tuple(name for name in named if Path(name).exists())


def inspect(place: Workplace) -> None:
    """Ask the log doctor about every log."""
    from armid.logs import read_log
    from armid.signals.doctor import examine

    robot = robot_of(place.settings)
    names = [name for group in log_names(place.settings) for name in group]
    reports = [examine(read_log(place / name), robot) for name in names]
    _write(place / "inspection.json", {"logs": {n: r.as_data() for n, r in zip(names, reports, strict=True)}})
    for report in reports:
        for finding in report.at_least("error"):
            raise ArmidError(f"{report.source}: {finding.code}: {finding.what} {finding.advice}".rstrip())


def identify(place: Workplace) -> None:
    """Estimate from the training logs."""
    from armid.estimation import identify
    from armid.estimation.consistent.prior import parse_prior
    from armid.logs import read_log
    from armid.signals import load_pipeline, process_logs

    s, robot = place.settings, robot_of(place.settings)
    logs = [read_log(place / name) for name in log_names(s)[0]]
    sets = process_logs(logs, load_pipeline(s.signals), robot)
    report_progress("identification", 0.2)
    prior = parse_prior(s.prior, robot) if s.prior else None
    fit = identify(robot, sets, method=s.method, friction=s.friction, prior=prior)
    files = {name: file_hash(place / name) for name in log_names(s)[0]}
    fit = replace(
        fit,
        options={**fit.options, "run": s.to_data()},
        history={**fit.history, "files_sha256": files},
    )
    fit.save(place / "fit.json")


def validate(place: Workplace) -> None:
    """Compare with the other motion."""
    from armid.estimation import load_fit
    from armid.logs import read_log
    from armid.validation import validate

    logs = [read_log(place / name) for name in log_names(place.settings)[1]]
    check = validate(load_fit(place / "fit.json"), logs)
    files = {name: file_hash(place / name) for name in ("fit.json", *log_names(place.settings)[1])}
    replace(check, options={"files_sha256": files}).save(place / "validation.json")


def audit(place: Workplace) -> None:
    """Whether an arm with these parameters can exist."""
    from armid.estimation import load_fit
    from armid.validation import audit

    (found,) = audit(load_fit(place / "fit.json"))
    _write(place / "audit.json", found.to_data())


def _groups(settings: Settings, names: tuple[str, ...]) -> list[list[str]]:
    """Files that make one log each; all of them one where the recipe puts files side by side."""
    from armid.logs import Recipe

    if settings.recipe and names and Recipe.load(settings.recipe).join == "columns":
        return [list(names)]
    return [[name] for name in names]


def _log(settings: Settings, files: list[str]) -> Log:
    from armid.logs import read_log

    if settings.recipe:
        log = read_log(files, settings.recipe, effort=settings.effort)
    else:
        log = read_log(files[0], effort=settings.effort)
    names = ", ".join(Path(name).name for name in files)
    return log if names in log.info.source else log.with_channels({}, source=names)


def _split(log: Log) -> tuple[Log, Log]:
    """The first part of a log for training and the rest for validation, whole periods where it says its period."""
    rows = round((1.0 - KEPT_SHARE) * len(log))
    if log.info.period_s is not None:
        period = round(log.info.period_s * log.rate_hz)
        rows = max(1, round(rows / period)) * period
    history = {**log.info.history, "part": f"{len(log) - rows} of {len(log)} rows are kept for validation"}
    first = log.rows(slice(0, rows)).with_channels({}, history=history)
    rest = log.rows(slice(rows, None)).with_channels({}, history=history, source=f"{log.info.source} (last part)")
    return first, rest


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return (f"{name}.parquet", *(f"{name}-{number}.parquet" for number in range(2, count + 1)))


def _write(path: Path, data: dict[str, Any]) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def export(place: Workplace) -> None:
    """Files for other programs, each proved; what cannot be written costs neither the rest nor the report."""
    from armid.estimation import load_fit
    from armid.exporting import export, exporters

    fit, folder, formats = load_fit(place / "fit.json"), place / "exports", list(place.settings.to)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    said = []
    if fit.standard_parameters is None and (left := [name for name in formats if exporters[name].links]):
        formats = [name for name in formats if name not in left]
        said.append(f"{', '.join(left)} not written: the fit has no links; use --method feasible")
    try:
        if formats:
            export(fit, formats, folder, seed=place.settings.seed)
    except ArmidError as error:
        said.append(str(error))
    if said:
        write_text(folder / _NOT_EXPORTED, "\n".join(said) + "\n")


def notes_of(folder: Path) -> str:
    """What the log doctor warns of, and what an export could not write and why; a line each."""
    logs = json.loads((folder / "inspection.json").read_text(encoding="utf-8"))["logs"]
    codes = [f["code"] for log in logs.values() for f in log["findings"] if f["severity"] != "info"]
    lines = []
    if codes:
        named = ", ".join(dict.fromkeys(codes))
        count = "1 warning" if len(codes) == 1 else f"{len(codes)} warnings"
        lines.append(f"log doctor: {count} ({named}); the report says more")
    path = folder / "exports" / _NOT_EXPORTED
    if path.is_file():
        lines.append(path.read_text(encoding="utf-8").strip())
    return "\n".join(lines)


def track(place: Workplace) -> None:
    """Follow a path on the virtual robot, with the identified model and without."""
    from armid.control.compare import compare_controllers
    from armid.estimation import load_fit

    s = place.settings
    path = path_to_track(s)
    assert path is not None
    fit = load_fit(place / "fit.json")
    options = {"files_sha256": {"fit.json": file_hash(place / "fit.json")}}
    compare_controllers(fit, robot_of(s), path, seed=s.seed, options=options).save(place / "tracking.json")


def report(place: Workplace) -> None:
    """The page that shows all of it."""
    from armid.reporting import build, gather

    build(gather(place.folder)).save(place / "report.html")
