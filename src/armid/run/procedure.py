"""The procedure: model, design, warm-up, excitation, inspection, identification, validation, audit, use, report."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from armid._version import __version__
from armid.control.reference import tool_path
from armid.control.track import compare_controllers
from armid.control.tracking import FORMAT
from armid.dynamics import Model
from armid.dynamics.model import Motion
from armid.errors import ArmidError, UnknownNameError
from armid.estimation.consistent.prior import parse_prior
from armid.estimation.fit import load_fit
from armid.estimation.identifying import check_method, identify
from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
from armid.excitation import Fourier, criterion, design, load_plan
from armid.excitation.design import with_default_limits
from armid.excitation.search import Standing
from armid.experiment import VirtualRobot
from armid.experiment.excite import excite
from armid.experiment.settings import Thermal
from armid.experiment.warm_up import warm_up
from armid.exporting import export, exporters
from armid.files import file_hash, read_text, write_result, write_text
from armid.logs import Log, Recipe, read_logs, write_log
from armid.logs.files import log_groups
from armid.progress import Progress, report_progress
from armid.reporting import build, gather
from armid.robot import Robot, load_robot
from armid.robot.load import robot_digest
from armid.run.goal import Goal, Outlook, fit_information
from armid.run.outcome import NOT_EXPORTED, Outcome, notes_of, numbers_of, standing_of
from armid.run.settings import SETTINGS, Settings, save_settings
from armid.run.stages import Done, Stage, Workplace, carry_out, clear, finished
from armid.signals import load_pipeline, process_logs
from armid.signals.doctor import examine
from armid.signals.pipeline import check_robot
from armid.signals.repair import with_clock_put_forward
from armid.signals.words import finding_entry
from armid.validation import audit, load_validation, validate

STUCK = 0.97  # share of an interval two experiments ago above which it no longer shrinks
MARGIN, MOST_MORE = 1.1, 4.0  # next experiment: over what it will take, and at most over what there is
KEPT_SHARE = 0.3  # of a log, for validation where no other log is given
#: Tool paths that a library robot is known by.
PATHS = {"pa10": "pa10-figure"}


def run(
    settings: Settings,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    tell: Callable[[Done], None] | None = None,
) -> Outcome:
    """Carry out the whole procedure, or what is left of it.

    Args:
        settings: what to do.
        folder: for all results; made if it is not there. A run that was interrupted is gone on with; stages whose
            inputs have not changed are not repeated.
        progress: told what is done and which share of it.
        tell: told when a stage has ended.

    Raises:
        ArmidError: a setting names what no stage knows, or a file that cannot be read.
    """
    place = _workplace(settings, folder, progress)
    folder = place.folder
    tell = tell or (lambda stage: None)
    experiments = _experiments(place, tell) if settings.until else [[]]
    rounds, done = len(experiments), [stage for part in experiments for stage in part]
    stages = stages_of(settings, rounds)
    clear(stages, place)
    done += carry_out(stages[len(done) :], replace(place, rounds=rounds), tell)
    check = load_validation(folder / "validation.json")
    numbers = numbers_of(folder, check, rounds if settings.until else None)
    outcome = Outcome(folder, tuple(done), check, numbers, folder / "report.html", notes_of(folder))
    _write(folder / "run.json", {"armid": __version__, "settings": settings.to_data(), **outcome.to_data()})
    return outcome


def run_stages(
    settings: Settings,
    folder: str | Path,
    last: str,
    *,
    progress: Progress | None = None,
    tell: Callable[[Done], None] | None = None,
) -> list[Done]:
    """Carry out the procedure up to a stage, as `run` would.

    Args:
        settings: what to do.
        folder: of the run.
        last: name of the stage to stop after.
        progress: told what is done and which share of it.
        tell: told when a stage has ended.
    """
    place, stages = _workplace(settings, folder, progress), stages_of(settings)
    clear(stages, place)
    end = next(number for number, stage in enumerate(stages, start=1) if stage.name == last)
    return carry_out(stages[:end], place, tell or (lambda stage: None))


def finished_stages(settings: Settings, folder: Path) -> list[str]:
    """Stages of a run whose results are up to date; nothing is done or written."""
    place = Workplace(folder, settings, lambda text, share: None, robot_digest(robot_of(settings)))
    return finished(stages_of(settings), place)


def _workplace(settings: Settings, folder: str | Path, progress: Progress | None) -> Workplace:
    """Where a run works, if it can; the settings are kept there, so that anybody can go on."""
    folder, robot = Path(folder), robot_of(settings)
    _check(settings, robot)
    _prepare(folder)
    save_settings(settings, folder / SETTINGS)
    return Workplace(folder, settings, progress or (lambda text, share: None), robot_digest(robot))


def _experiments(place: Workplace, tell: Callable[[Done], None]) -> list[list[Done]]:
    """Experiment and identify until the goal is reached or out of reach; the stages of each experiment."""
    s, shares, rounds = place.settings, list[float](), list[list[Done]]()
    for number in range(1, 1 + (s.rounds if s.virtual else 1)):
        stages, first = stages_of(s, number), sum(map(len, rounds))
        last = next(k for k, stage in enumerate(stages) if stage.name == f"next-{number}")
        rounds.append(carry_out(stages[first : last + 1], replace(place, rounds=number), tell))
        standing = standing_of(place.folder, number)
        shares.append(standing.share)
        far = number > 1 and standing.seconds_more is None  # the first outlook is a rough one
        if standing.reached or far or (number > 2 and shares[-1] > STUCK * shares[-3]):
            break
    return rounds


def robot_of(settings: Settings) -> Robot:
    """The robot that the settings describe, with stand-ins for limits that its file does not state (plans say so)."""
    robot = load_robot(
        settings.robot,
        links=settings.links,
        rotors=not settings.no_rotors,
        gravity=settings.gravity,
        simplify=settings.simplify,
        joints=settings.joints,
    )
    return replace(robot, limits=with_default_limits(robot.limits)[0])


def stages_of(settings: Settings, rounds: int = 1) -> list[Stage]:
    """The stages of a run, in order; with a goal, those of so many experiments."""
    s = settings
    training, validation = _log_names(s, rounds)
    logs, first = (*training, *validation), (*training[:1], *validation)
    extra = tuple(item for item in (s.recipe, s.signals) if item and Path(item).is_file())
    prior = (s.prior.rpartition(":")[0],) if s.prior else ()
    outside = tuple(item for item in (*prior, *extra) if Path(item).is_file())
    plans = ("plan.json", "validation-plan.json")
    planned = ("criterion", "harmonics", "period", "starts", "rate", "seed")
    driven, estimated = ("periods", "rate", "seed"), ("signals", "method", "friction", "prior")
    how = ("log", "validation", "train", "validate", "recipe", "effort")
    path = _path_to_track(s)
    poses = (path,) if path is not None and Path(path).is_file() else ()
    warm, exported = s.virtual and not s.no_warmup, s.to not in ((), ("none",))
    made = ("fit.json", "validation.json", "audit.json", "inspection.json", *logs)
    made += ("exports",) * exported + ("tracking.json",) * (path is not None)
    planning = s.virtual or s.design
    made += ("plan.json",) * planning + ("warmup.json",) * warm
    source = (f"fit-{rounds}.json",) if s.until else training
    looked = Stage("inspection", "log doctor", _inspect, ("inspection.json",), logs, ("accept",))
    repeated = [
        (True, stage)
        for number in range(1, rounds + 1 if s.until else 1)
        for stage in _round(number, training if not s.virtual else training[:number], validation, s, outside)
    ]
    # Whether the stage is part of this run; the stage.
    stages = [
        (True, Stage("model", "base parameters", _model, ("model.json",))),
        (planning, Stage("design", "excitation design", _design, plans, ("model.json",), planned)),
        (warm, Stage("warmup", "warm-up", _warm_up, ("warmup.json",), ("model.json",), ("seed", "rate"))),
        (s.virtual, Stage("excitation", "excitation and another motion", _excite, first, plans, driven)),
        (not s.virtual, Stage("logs", "reading the logs", _read, logs, ("model.json",), how, (*_files_of(s), *extra))),
        (not s.virtual, looked),  # an error of the doctor ends the run before the work
        *repeated,
        (s.virtual, looked),
        (True, Stage("identification", "identification", _identify, ("fit.json",), source, estimated, outside)),
        (True, Stage("validation", "validation", _validate, ("validation.json",), ("fit.json", *validation))),
        (True, Stage("audit", "audit", _audit, ("audit.json",), ("fit.json",))),
        (exported, Stage("export", "export", _export, ("exports",), ("fit.json",), ("to",))),
        (
            path is not None,
            Stage("tracking", "tracking", _track, ("tracking.json",), ("fit.json",), ("track", "seed"), poses),
        ),
        (True, Stage("report", "report", _report, ("report.html",), made)),
    ]
    return [stage for wanted, stage in stages if wanted]


def _round(
    number: int, training: tuple[str, ...], validation: tuple[str, ...], s: Settings, outside: tuple[str, ...]
) -> list[Stage]:
    """One experiment on the way to a goal: the motion planned last, identification from all, what would be next."""
    before, after, fit, words = f"next-{number - 1}", f"next-{number}", f"fit-{number}.json", f"experiment {number}"
    driven, estimated = ("rate", "seed"), ("signals", "method", "friction", "prior")
    planned = ("until", "criterion", "harmonics", "period", "starts", "rate", "seed", "signals")
    read = (fit, *training, *validation)
    stages = [
        Stage(f"identification-{number}", f"{words}: identification", _estimate, (fit,), training, estimated, outside),
        Stage(after, f"{words}: what is left", _plan_next, (after,), read, planned),
    ]
    if number == 1:
        return stages
    return [Stage(f"excitation-{number}", words, _excite_again, training[-1:], (before,), driven), *stages]


def _check(settings: Settings, robot: Robot) -> None:
    """Refuse, before the first experiment, names that no stage knows and files that cannot be read."""
    for name in (*settings.log, *settings.validation):
        if not Path(name).exists():
            raise ArmidError(f"{name}: there is no such file")
    check_method(settings.method, settings.friction)
    for name in settings.to:
        if name not in exporters and settings.to != ("none",):
            raise UnknownNameError("--to", name, (*exporters, "none"))
    criterion(settings.criterion)
    for code in settings.accept:
        finding_entry(code)
    load_pipeline(settings.signals)
    if settings.prior:
        parse_prior(settings.prior, robot)
    if settings.recipe:
        Recipe.load(settings.recipe)
    if (path := _path_to_track(settings)) is not None:
        tool_path(path)
    if settings.until:
        Goal.parse(settings.until).check(robot)


def _prepare(folder: Path) -> None:
    """Find out before the work whether its results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArmidError(f"{folder}: cannot be made ({error.strerror}); choose another folder with -o") from None
    if not os.access(folder, os.W_OK):
        raise ArmidError(f"{folder}: cannot be written; choose another folder with -o")


def _log_names(settings: Settings, rounds: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files of the training logs and of the validation logs in the run's folder."""
    recipe = Recipe.load(settings.recipe) if settings.recipe else None
    count = max(1, len(log_groups(settings.log, recipe)))
    others = len(log_groups(settings.validation, recipe)) or count
    count = max(count, rounds)
    numbered = {"training": count, "validation": others}
    names = [(f"{n}.parquet", *(f"{n}-{k}.parquet" for k in range(2, number + 1))) for n, number in numbered.items()]
    return names[0], names[1]


def _path_to_track(settings: Settings) -> str | None:
    """The path that is followed with the identified model, on the virtual robot only."""
    if settings.track is not None:
        return None if settings.track == "none" else settings.track
    return PATHS.get(settings.robot) if settings.virtual and settings.links is None else None


def _files_of(settings: Settings) -> tuple[str, ...]:
    """The user's files and folders that logs are read from, those that a recipe names included."""
    named: list[str] = []
    for name in (*settings.log, *settings.validation):
        if Path(name).suffix in (".yaml", ".yml") and Path(name).is_file():
            named += [str(path) for path in Recipe.load(name).files]
        named.append(name)
    return tuple(name for name in named if Path(name).exists())


def _model(place: Workplace) -> None:
    """Base parameters."""
    made = Model(robot_of(place.settings))
    base = made.base
    data = {
        "robot": made.robot.name,
        "joint_names": list(made.robot.joint_names),
        "base_parameters": base.count,
        "groups": [{"name": g.name, "expression": g.expression, "unit": g.unit} for g in base.groups],
        "unidentifiable": list(base.no_effect),
    }
    _write(place / "model.json", data)


def _design(place: Workplace) -> None:
    """The excitation, and a smaller motion of other harmonics for validation."""
    s, robot = place.settings, robot_of(place.settings)
    shared: dict[str, Any] = {"criterion": criterion(s.criterion), "rate_hz": s.rate}

    def tell(now: Standing) -> None:
        limits = "limits kept" if now.violation <= 0.0 else f"limits broken by {now.violation:.2g}"
        best = f"log det {now.log_det:.4g}, condition number {now.condition:.3g}, {limits}"
        report_progress(f"design: search {now.done} of {now.total}, best so far: {best}", 0.8 * now.done / now.total)

    shape = Fourier(s.harmonics, s.period)
    plan = design(robot, shape, starts=s.starts, seed=s.seed, progress=tell, **shared)
    report_progress("design of the validation motion", 0.8)
    other = design(robot, Fourier(max(2, s.harmonics - 2), s.period), starts=1, seed=s.seed + 1, **shared)
    plan.save(place / "plan.json")
    other.save(place / "validation-plan.json")


def _warm_up(place: Workplace) -> None:
    """Move the cold virtual arm until its friction changes no more."""
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


def _excite(place: Workplace) -> None:
    """Drive the plan and the other motion on the warm virtual arm."""
    s = place.settings
    (training,), (validation,) = _log_names(s)
    for plan, name, seed in (("plan.json", training, s.seed), ("validation-plan.json", validation, s.seed + 1)):
        log = excite(VirtualRobot(robot_of(s), rate_hz=s.rate, seed=seed), load_plan(place / plan), periods=s.periods)
        history = {**log.info.history, "plan_sha256": file_hash(place / plan)}
        write_log(log.with_channels({}, history=history, source=name), place / name)


def _read(place: Workplace) -> None:
    """Bring the user's logs into one form, and keep a part for validation where no other log is given."""
    s, robot = place.settings, robot_of(place.settings)
    training, validation = _log_names(s)
    logs, others = (_named(read_logs(names, s.recipe, effort=s.effort), names) for names in (s.log, s.validation))
    if not others:
        logs = [with_clock_put_forward(log)[0] for log in logs]  # parts are those of the motion, not of its stamps
        parts = [(log.part(s.train), log.part(s.validate)) if s.train and s.validate else _split(log) for log in logs]
        logs, others = [first for first, _ in parts], [rest for _, rest in parts]
        for name in (first.info.source for first, rest in parts if {*rest.time} & {*first.time}):
            raise ArmidError(f"--train {s.train} and --validate {s.validate} share rows of {name}; use others")
    for log, name in zip((*logs, *others), (*training, *validation), strict=True):
        check_robot(log.info, robot)
        write_log(log, place / name)


def _named(logs: list[Log], files: tuple[str, ...]) -> list[Log]:
    """Logs that name the files they were read from."""
    groups = [files] if len(logs) < len(files) else [(file,) for file in files]
    names = [", ".join(Path(file).name for file in group) for group in groups]
    named = zip(logs, names, strict=True)
    return [log if name in log.info.source else log.with_channels({}, source=name) for log, name in named]


def _split(log: Log) -> tuple[Log, Log]:
    """The first part of a log for training and the rest for validation, whole periods where it says its period."""
    rows = round((1.0 - KEPT_SHARE) * len(log))
    if log.info.period_s is not None:
        period = round(log.info.period_s * log.rate_hz)
        whole = max(1, round(rows / period)) * period
        rows = whole if whole + 0.5 * period < len(log) else rows  # one period and no other is split anywhere
    history = {**log.info.history, "part": f"{len(log) - rows} of {len(log)} rows are kept for validation"}
    first = log.rows(slice(0, rows)).with_channels({}, history=history)
    rest = log.rows(slice(rows, None)).with_channels({}, history=history, source=f"{log.info.source} (last part)")
    return first, rest


def _inspect(place: Workplace) -> None:
    """Ask the log doctor about every log."""
    robot = robot_of(place.settings)
    names = [name for group in _log_names(place.settings, place.rounds) for name in group]
    reports = [examine(place.log(name), robot) for name in names]
    _write(place / "inspection.json", {"logs": {n: r.as_data() for n, r in zip(names, reports, strict=True)}})
    for report in reports:
        for finding in report.at_least("error"):
            told = f"{report.source}: {finding.code}: {finding.what} {finding.advice}"
            if finding.code not in place.settings.accept:
                raise ArmidError(f"{told} If that is wrong, go on with --accept {finding.code}.")


def _identify(place: Workplace) -> None:
    """Estimate from the training logs, or take what the last experiment brought."""
    if place.settings.until:
        write_text(place / "fit.json", read_text(place / f"fit-{place.rounds}.json"))
    else:
        _estimate(place, "fit.json")


def _estimate(place: Workplace, file: str = "") -> None:
    """Estimate from the training logs so far."""
    s, robot = place.settings, robot_of(place.settings)
    names = _log_names(s, place.rounds)[0]
    sets = process_logs([place.log(name) for name in names], load_pipeline(s.signals), robot)
    report_progress("identification", 0.2)
    prior = parse_prior(s.prior, robot) if s.prior else None
    fit = identify(robot, sets, method=s.method, friction=s.friction, prior=prior)
    fit = replace(
        fit,
        options={**fit.options, "run": s.to_data()},
        history={**fit.history, "files_sha256": {name: file_hash(place / name) for name in names}},
    )
    fit.save(place / (file or f"fit-{place.rounds}.json"))


def _plan_next(place: Workplace) -> None:
    """How far the goal is, and the motion that would bring most of what is still unknown."""
    s, robot, number = place.settings, robot_of(place.settings), place.rounds
    fit, folder, pipeline = load_fit(place / f"fit-{number}.json"), place / f"next-{number}", load_pipeline(s.signals)
    training, validation = (
        process_logs([place.log(name) for name in names], pipeline, robot) for names in _log_names(s, number)
    )
    goal, shape = Goal.parse(s.until), Fourier(s.harmonics, s.period)
    outlook = Outlook(goal, fit, training, Motion(*(getattr(validation[0], name) for name in Motion._fields)))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    following = None
    if not outlook.reached:
        given, noise = fit_information(fit, robot, shape, rate_hz=s.rate)
        wanted: dict[str, Any] = {"criterion": criterion(s.criterion), "rate_hz": s.rate, "noise": noise}
        plan = design(robot, shape, starts=s.starts, seed=s.seed + 1 + number, given=given, **wanted)
        plan.save(folder / "plan.json")
        following = plan.trajectory.sample(s.rate)[1]
    _write(folder / "standing.json", outlook.standing(following).to_data())


def _excite_again(place: Workplace) -> None:
    """Drive what was planned last, for as long as it will take by then, four times what there is at most."""
    s, number = place.settings, place.rounds
    standing, name = standing_of(place.folder, number - 1), _log_names(s, number)[0][-1]
    most = MOST_MORE * standing.seconds
    seconds = min(MARGIN * (standing.seconds_more or most), most)
    arm = VirtualRobot(robot_of(s), rate_hz=s.rate, seed=s.seed + 1 + number)
    log = excite(arm, load_plan(place / f"next-{number - 1}" / "plan.json"), periods=max(1, ceil(seconds / s.period)))
    write_log(log.with_channels({}, source=name), place / name)


def _validate(place: Workplace) -> None:
    """Compare with the other motion."""
    names = _log_names(place.settings)[1]
    check = validate(load_fit(place / "fit.json"), [place.log(name) for name in names])
    files = {name: file_hash(place / name) for name in ("fit.json", *names)}
    replace(check, options={"files_sha256": files}).save(place / "validation.json")


def _audit(place: Workplace) -> None:
    """Whether the parameters are physically consistent."""
    (found,) = audit(load_fit(place / "fit.json"))
    _write(place / "audit.json", found.to_data())


def _export(place: Workplace) -> None:
    """Files for other programs, each proved; what cannot be written costs neither the rest nor the report."""
    fit, folder, formats = load_fit(place / "fit.json"), place / "exports", list(place.settings.to)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    said = []
    if fit.standard_parameters is None and (left := [name for name in formats if exporters[name].links]):
        formats = [name for name in formats if name not in left]
        said.append(f"{', '.join(left)} not written: the fit has no standard parameters; use --method feasible")
    try:
        if formats:
            said += [file.reason for file in export(fit, formats, folder, seed=place.settings.seed).refused]
    except ArmidError as error:
        said.append(str(error))
    if said:
        write_text(folder / NOT_EXPORTED, "\n".join(said) + "\n")


def _track(place: Workplace) -> None:
    """Follow a path on the virtual robot; one that the arm cannot follow is noted, and the report is written."""
    s = place.settings
    path = _path_to_track(s)
    assert path is not None
    options = {"files_sha256": {"fit.json": file_hash(place / "fit.json")}}
    try:
        found = compare_controllers(load_fit(place / "fit.json"), robot_of(s), path, seed=s.seed, options=options)
    except ArmidError as error:
        empty = {"robot": s.robot, "path": path, "options": options, "runs": [], "notes": [str(error)]}
        write_result(place / "tracking.json", FORMAT, empty)
    else:
        found.save(place / "tracking.json")


def _report(place: Workplace) -> None:
    """The page that shows all of it, from the logs as they were read and processed."""
    build(gather(place.folder, place.logs)).save(place / "report.html")


def _write(path: Path, data: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
