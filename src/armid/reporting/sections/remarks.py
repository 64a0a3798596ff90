"""Every warning in plain words, and what was chosen on the way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.reporting.evidence import Evidence
from armid.reporting.html import bullets
from armid.reporting.numbers import spaced
from armid.reporting.section import Section

TITLE = "Warnings and choices"
EDGE = "estimation.limits_active"


def remarks(evidence: Evidence) -> Section:
    """Warnings first, then the notes of the fit."""
    warned = warnings(evidence)
    notes = [str(note) for note in evidence.fit.notes if note.code != EDGE]
    body = bullets(warned, "warnings")
    if notes:
        body += "<h3>What was found and chosen</h3>" + bullets(spaced(note) for note in notes)
    count = len(warned)
    start = f"{count} thing{'s' if count != 1 else ''} to know before using this model" if count else "No warning"
    return Section("remarks", TITLE, f"{start}; {len(notes)} choices were made and are listed.", body)


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
            found += [*check.reasons, *check.advice]
    if fit.identifiability.poor:
        found.append(f"{fit.identifiability.verdict}.".replace("..", "."))
    free = [n for n, kind in zip(fit.names, fit.identifiability.classes, strict=True) if kind == "undetermined"]
    if free:
        found.append(f"The data leave these parameters free, so their values mean nothing alone: {', '.join(free)}.")
    found += [str(note) for note in fit.notes if note.code == EDGE]
    if evidence.audit is not None and evidence.audit.get("possible") is False:
        found += ["No arm can have these parameters.", *map(str, evidence.audit.get("certificates", ()))]
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
