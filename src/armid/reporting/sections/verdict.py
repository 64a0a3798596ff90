"""The verdict with the few numbers that matter and where they come from; and at the end every warning in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from armid._version import __version__
from armid.estimation.fit import Fit
from armid.reporting.evidence import Evidence
from armid.reporting.html import Section, bullets, facts, text, tiles
from armid.reporting.numbers import percent, share, short, spaced
from armid.validation.result import Validation

LIMITS = "estimation.limits_active"  # note of a fit that stands among the warnings


def verdict(evidence: Evidence) -> Section:
    """The first section."""
    fit, check = evidence.fit, evidence.check
    body = f"{_why(evidence)}{_stamp(check)}{tiles(_numbers(fit, check))}{_provenance(evidence)}"
    return Section("verdict", "Verdict", _sentence(fit, check), body)


def _sentence(fit: Fit, check: Validation | None) -> str:
    if check is None:
        return (
            f"{fit.identifiability.counts[1]} parameters of {fit.robot.name} were identified; nothing is proved about "
            "other motion yet: add a validation (armid validate) on data that the fit has not seen."
        )
    error = percent(check.relative_error_moving)
    if check.same_as_training:
        return f"The error is {error} of the torque, but on training data: this proves nothing about other motion."
    moving = [joint for joint in check.joints if np.isfinite(joint.nrms_moving)]
    worst = max(moving, key=lambda joint: joint.nrms_moving, default=None)
    tail = "" if worst is None else f"; {worst.name} is the worst, {percent(worst.nrms_moving)} of its torque’s spread"
    if worst is not None and np.isfinite(worst.noise_ratio):
        tail += f" and {worst.noise_ratio:.1f}× the noise"
    start = f"The model is {check.in_words}: on motion it has not seen"
    return f"{start} the error is {error} of the torque while moving{tail}."


def _stamp(check: Validation | None) -> str:
    if check is None:
        return '<p class="stamp open">not validated</p>'
    if check.same_as_training:
        return '<p class="stamp poor">training data: no proof</p>'
    return f'<p class="stamp {check.verdict}">{text(check.in_words)}</p>'


def _numbers(fit: Fit, check: Validation | None) -> list[tuple[str, str, str]]:
    judged = fit.identifiability
    count, total = judged.counts
    found = []
    if check is not None:
        moving = [joint for joint in check.joints if np.isfinite(joint.nrms_moving)]
        found.append(
            (
                percent(check.relative_error_moving),
                "error while moving",
                f"of the torque, all joints; {percent(check.relative_error)} on all rows",
            )
        )
        if moving:
            worst = max(moving, key=lambda joint: joint.nrms_moving)
            limit = f"limit {share(check.thresholds.nrms_moving)}"
            found.append((percent(worst.nrms_moving), f"NRMS of {worst.name}", f"the worst joint, moving; {limit}"))
        noisy = [joint for joint in check.joints if np.isfinite(joint.noise_ratio)]
        if noisy:
            loud = max(noisy, key=lambda joint: joint.noise_ratio)
            found.append((f"{loud.noise_ratio:.1f}×", f"the noise, {loud.name}", "1× cannot be improved"))
        nominal = [joint.nominal_nrms_moving for joint in check.joints if np.isfinite(joint.nominal_nrms_moving)]
        if nominal:
            found.append((percent(max(nominal)), "worst NRMS, nominal", "the file’s own inertia, best friction"))
    found.append((f"{count} of {total}", "parameters determined", "to 30 % of their value or better"))
    found.append((short(judged.condition), "condition number", "poor data" if judged.poor else "columns scaled"))
    return found


def _why(evidence: Evidence) -> str:
    check = evidence.check
    sentences: list[str] = [] if check is None else [str(one) for one in (*check.reasons, *check.advice)]
    audit = evidence.audit
    if audit is not None and "possible" in audit:
        certificates = [str(words) for words in audit.get("certificates", ())]
        sentences += (
            ["The parameters are physically consistent (audit)."]
            if audit["possible"]
            else ["The parameters are not physically consistent (audit).", *certificates]
        )
    elif evidence.fit.standard_parameters is not None:
        sentences.append("The parameters are physically consistent: the method enforces it for every link.")
    else:
        sentences.append("Physical consistency was not enforced; armid identify --method feasible does.")
    return bullets(spaced(words) for words in sentences)


def _provenance(evidence: Evidence) -> str:
    fit, check, plan = evidence.fit, evidence.check, evidence.plan
    command = fit.options.get("command") or {}
    logs = command.get("logs") if isinstance(command, dict) else None
    trained = ", ".join(Path(str(log)).name for log in logs or ()) or ", ".join(_origins(fit))
    robot = fit.robot
    pairs = [
        ("robot", f"{robot.name}, {robot.n_joints} joints{f' ({robot.title})' if robot.title else ''}"),
        ("description", Path(robot.source).name),
        ("method", f"{fit.method}, friction {fit.options.get('friction', 'as described')}"),
        ("signals", " → ".join(str(step.get("step", "?")) for step in fit.pipeline)),
        ("trained on", _with_hashes(trained, fit.history.get("data_sha256", ()))),
        ("validated on", "" if check is None else _with_hashes(_checked_on(check), check.data_sha256)),
        ("plan", "" if plan is None else f"{plan.criterion}, seed {plan.options.get('seed', 'unknown')}"),
        ("read from", ", ".join(evidence.files)),
        ("armid", f"{__version__}; fit made by {fit.history.get('armid', 'an unknown version')}"),
    ]
    return f'<details class="provenance" open><summary>Provenance</summary>{facts(pairs)}</details>'


def _checked_on(check: Validation) -> str:
    logs = check.options.get("logs") if check.options else None
    return ", ".join(Path(str(log)).name for log in logs or check.sources) or "a data set"


def _origins(fit: Fit) -> list[str]:
    data = fit.history.get("data") or ()
    words = []
    for entry in data if isinstance(data, Sequence) else ():
        if isinstance(entry, dict):
            seed = f", seed {entry['seed']}" if "seed" in entry else ""
            words.append(f"{Path(str(entry.get('source') or '')).name or entry.get('made_by') or 'a data set'}{seed}")
    return words or ["a data set"]


def _with_hashes(words: str, hashes: Sequence[str]) -> str:
    digests = ", ".join(digest[:12] for digest in hashes)
    return f"{words} (SHA-256 {digests})" if digests else words


def remarks(evidence: Evidence) -> Section:
    """Warnings first, then the notes of the fit."""
    warned = warnings(evidence)
    notes = [str(note) for note in evidence.fit.notes if note.code != LIMITS]
    body = bullets(warned, "warnings")
    if notes:
        body += "<h3>What was found and chosen</h3>" + bullets(spaced(note) for note in notes)
    count = len(warned)
    start = f"{count} thing{'s' if count != 1 else ''} to know before using this model" if count else "No warning"
    return Section("remarks", "Warnings and choices", f"{start}; {len(notes)} choices were made and are listed.", body)


def warnings(evidence: Evidence) -> list[str]:
    """What a user of the model should know, in sentences."""
    fit, check, plan = evidence.fit, evidence.check, evidence.plan
    found = []
    if check is None:
        found.append("The model is not validated: nothing is known about motion other than that of the training data.")
    else:
        if check.same_as_training:
            found.append("Some of the validation data are training data: the figures prove nothing about other motion.")
        if not check.good:
            found += [str(one) for one in (*check.reasons, *check.advice)]
    if fit.identifiability.poor:
        found.append(f"{fit.identifiability.verdict}.".replace("..", "."))
    free = [n for n, kind in zip(fit.names, fit.identifiability.classes, strict=True) if kind == "undetermined"]
    if free:
        found.append(f"The data leave these parameters free, so their values mean nothing alone: {', '.join(free)}.")
    found += [str(note) for note in fit.notes if note.code == LIMITS]
    if evidence.audit is not None and evidence.audit.get("possible") is False:
        found += ["The parameters are not physically consistent.", *map(str, evidence.audit.get("certificates", ()))]
    if plan is not None and not plan.certified:
        found.append("The plan breaks a limit: do not run it on the arm.")
    assumed = sorted(fit.robot.limits.assumed)
    if assumed and plan is not None:
        found.append(
            f"Limits of {', '.join(assumed)} are assumed, not known: the certificate is only as good as they are."
        )
    if fit.noise is None and (check is None or not any(np.isfinite(joint.noise) for joint in check.joints)):
        found.append("The noise of the torque was not measured, so errors cannot be set against it.")
    found += [*_findings(evidence), *evidence.left_out]
    if evidence.warmup is not None and evidence.warmup.get("warm") is False:
        found.append("The arm was not warm yet when the warm-up ended: friction goes on changing.")
    return [spaced(words) for words in found]


def _findings(evidence: Evidence) -> list[str]:
    """What the log doctor warns of, with its advice."""
    logs = (evidence.inspection or {}).get("logs")
    found = []
    for name, report in logs.items() if isinstance(logs, Mapping) else ():
        for finding in report.get("findings") or ():
            if finding.get("severity") in ("warning", "error"):
                joint = f", {finding['joint']}" if finding.get("joint") else ""
                found.append(f"{name}{joint}: {finding.get('what', '')} {finding.get('advice', '')}".strip())
    return found
