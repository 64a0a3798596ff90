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
from armid.validation.metrics import JointMetrics
from armid.validation.result import Validation


def verdict(evidence: Evidence) -> Section:
    """The first section: what speaks against the model stands before the word."""
    fit, check = evidence.fit, evidence.check
    reasons = () if check is None else check.reasons
    kind = "" if check is None or check.good else "warnings"
    body = bullets((spaced(str(one)) for one in reasons), kind) + _stamp(check) + tiles(_numbers(fit, check))
    return Section("verdict", "Verdict", _sentence(fit, check), body + _next(evidence) + _provenance(evidence))


def _sentence(fit: Fit, check: Validation | None) -> str:
    if check is None:
        return (
            f"{fit.identifiability.counts[1]} parameters of {fit.robot.name} were identified; nothing is proved about "
            "other motion yet: add a validation (armid validate) on data that the fit has not seen."
        )
    error = percent(check.relative_error_moving)
    if check.same_as_training:
        return f"The error is {error} of the torque, but on training data: this proves nothing about other motion."
    worst = _worst(check)
    tail = "" if worst is None else f"; {worst.name} is the worst, {percent(worst.nrms_moving)} of its torque’s spread"
    if worst is not None and np.isfinite(worst.noise_ratio):
        tail += f" and {float(f'{worst.noise_ratio:.3g}'):,.12g}× the noise"
    return f"On motion that the model has not seen its error is {error} of the torque while moving{tail}."


def _worst(check: Validation) -> JointMetrics | None:
    return max((check.joints[j] for j in check.moving), key=lambda joint: joint.nrms_moving, default=None)


def _stamp(check: Validation | None) -> str:
    if check is None:
        return '<p class="stamp open">not validated</p>'
    if check.same_as_training:
        return '<p class="stamp poor">training data: no proof</p>'
    use = f" for {', '.join(check.usable_for)}" if check.usable_for else ""
    return f'<p class="stamp {check.verdict}">{check.verdict}<span>{text(use)}</span></p>'


def _numbers(fit: Fit, check: Validation | None) -> list[tuple[str, str, str]]:
    judged, found = fit.identifiability, []
    if check is not None:
        found.append((percent(check.relative_error_moving), "error while moving", "of the torque, all joints"))
        found.append((percent(check.relative_error), "error on all rows", _rows(check)))
        if (worst := _worst(check)) is not None:
            limit = f"limit {share(check.thresholds.nrms_moving)}"
            found.append((percent(worst.nrms_moving), f"NRMS of {worst.name}", f"the worst joint, moving; {limit}"))
        covered = [joint for joint in check.joints if np.isfinite(joint.coverage)]
        if covered:
            least = min(covered, key=lambda joint: joint.coverage)
            told = f"of {least.name}, the least; 95 % is stated"
            found.append((percent(least.coverage), "rows inside the interval", told))
    count, total = judged.counts
    found.append((f"{count} of {total}", "parameters determined", "to 30 % of their value or better"))
    found.append((short(judged.condition), "condition number", "poor data" if judged.poor else "columns scaled"))
    return found


def _rows(check: Validation) -> str:
    """How many rows are slow or at rest, which a fit leaves out."""
    turning, still = np.mean([(joint.reversal_rows, joint.standstill_rows) for joint in check.joints], axis=0)
    return f"{100 * turning:.0f}\u00a0% around changes of direction, {100 * still:.0f}\u00a0% at rest"


def _next(evidence: Evidence) -> str:
    """What to change next, and whether the parameters are physically consistent."""
    sentences = [str(one) for one in evidence.check.advice] if evidence.check is not None else []
    audit = evidence.audit
    if audit is not None and "possible" in audit:
        word = "are" if audit["possible"] else "are not"
        certificates = [] if audit["possible"] else [str(words) for words in audit.get("certificates", ())]
        sentences += [f"The parameters {word} physically consistent (audit).", *certificates]
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
    notes = [str(note) for note in evidence.fit.notes]
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
        found.append(f"{fit.verdict}.".replace("..", "."))
    free = [n for n, kind in zip(fit.names, fit.identifiability.classes, strict=True) if kind == "undetermined"]
    if free:
        found.append(f"The data leave these parameters free, so their values mean nothing alone: {', '.join(free)}.")
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
