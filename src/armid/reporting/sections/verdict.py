"""The first screen: can the model be trusted, and for what? At the end, what was chosen on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.estimation.fit import Fit
from armid.files import checked
from armid.reporting.evidence import Evidence, Inspection
from armid.reporting.html import Section, bullets, facts, folded, text, tiles
from armid.reporting.numbers import listed, percent, share, short, spaced
from armid.validation.judging import implausible_links
from armid.validation.metrics import JointMetrics
from armid.validation.result import Validation

SHOWN = 6  # objections that are not folded


def verdict(evidence: Evidence) -> Section:
    """The first section: can the model be trusted, and for what? What counts against it stands first."""
    fit, check = evidence.fit, evidence.check
    against = objections(evidence)
    body = bullets(against[:SHOWN], "warnings")
    body += folded(f"{len(against) - SHOWN} more", bullets(against[SHOWN:], "warnings")) if against[SHOWN:] else ""
    body += _stamp(evidence) + tiles(_numbers(fit, check))
    return Section("verdict", "Verdict", _answer(evidence), body + _next(evidence) + _provenance(evidence))


def _answer(evidence: Evidence) -> str:
    """Can this model be trusted, and for what: one sentence."""
    fit, check = evidence.fit, evidence.check
    virtual = " of a virtual arm (simulated, not measured)" if evidence.virtual else f" of {fit.robot.name}"
    if check is None:
        return (
            f"Nothing is known yet about this model{virtual} on other motion: validate it on data that the fit has not "
            "seen (armid validate)."
        )
    error, faults = percent(check.relative_error_moving), _findings(evidence)
    doctor = f"; the log doctor objects to its logs {len(faults)} times" if faults else ""
    if check.same_as_training:
        start = f"This model{virtual} is not validated: its error of {error} is on training data and proves nothing"
        return f"{start} about other motion{doctor}."
    reasons = [str(one) for one in check.reasons] if check.verdict != "good" else []
    if _impossible(evidence):
        reasons.insert(0, "the parameters are not physically consistent.")
    reasons = [words[0].lower() + words[1:] if words.startswith("The ") else words for words in reasons]
    if check.verdict == "poor" or any(severity == "error" for severity, _, _ in faults):
        first = reasons[0] if check.verdict == "poor" else faults[0][2]
        return f"Do not trust this model{virtual}: {spaced(first).removesuffix('.')}{doctor}."
    if reasons:
        use = listed(check.usable_for) or "torque prediction"
        return f"Trust this model{virtual} only for {use}: {spaced(reasons[0]).removesuffix('.')}{doctor}."
    worst, truth = _worst(check), evidence.beside_truth
    tail = "" if worst is None else f", at most {percent(worst.nrms_moving)} of its spread ({worst.name})"
    inside = sum(row.within_2_sigma for row in truth)
    tail += f"; {inside} of {len(truth)} true parameters lie within two standard deviations" if truth else ""
    return (
        f"You can trust this model{virtual} at the speeds and postures of its data: on motion that the fit has not "
        f"seen its error is {error} of the torque while moving{tail}{doctor}."
    )


def _impossible(evidence: Evidence) -> bool:
    return evidence.audit is not None and evidence.audit.get("possible") is False


def _worst(check: Validation) -> JointMetrics | None:
    return max((check.joints[j] for j in check.moving), key=lambda joint: joint.nrms_moving, default=None)


def _stamp(evidence: Evidence) -> str:
    check, virtual = evidence.check, '<span class="stamp open">virtual arm</span> ' if evidence.virtual else ""
    if check is None:
        return f'<p>{virtual}<span class="stamp open">not validated</span></p>'
    if check.same_as_training:
        return f'<p>{virtual}<span class="stamp poor">training data: no proof</span></p>'
    use = f" for {', '.join(check.usable_for)}" if check.usable_for else ""
    return f'<p>{virtual}<span class="stamp {check.verdict}">{check.verdict}<span>{text(use)}</span></span></p>'


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
    spread = "high: single values are uncertain" if judged.poor else "columns scaled"
    found.append((short(judged.condition), "condition number", spread))
    return found


def _rows(check: Validation) -> str:
    """How many rows are slow or at rest, which a fit leaves out."""
    turning, still = np.mean([(joint.reversal_rows, joint.standstill_rows) for joint in check.joints], axis=0)
    return f"{100 * turning:.0f}\u00a0% around changes of direction, {100 * still:.0f}\u00a0% at rest"


def _next(evidence: Evidence) -> str:
    """What to change next, and whether the parameters are physically consistent."""
    sentences = [str(one) for one in evidence.check.advice] if evidence.check is not None else []
    if evidence.audit is not None and evidence.audit.get("possible"):
        sentences.append("The parameters are physically consistent (audit).")
    elif evidence.fit.standard_parameters is not None and not _impossible(evidence):
        sentences.append("The parameters are physically consistent: the method enforces it for every link.")
    elif not _impossible(evidence):
        sentences.append("Physical consistency was not enforced; armid identify --method feasible does.")
    return bullets(spaced(words) for words in sentences)


def _provenance(evidence: Evidence) -> str:
    fit, check, plan = evidence.fit, evidence.check, evidence.plan
    command = fit.options.get("command") or {}
    logs = command.get("logs") if isinstance(command, dict) else None
    trained = ", ".join(Path(str(log)).name for log in logs or ()) or ", ".join(map(_origin, evidence.origins))
    given = () if check is None else check.options.get("logs") or check.sources
    robot, checked = fit.robot, ", ".join(Path(str(log)).name for log in given) or "a data set"
    pairs = [
        ("robot", f"{robot.name}, {robot.n_joints} joints{f' ({robot.title})' if robot.title else ''}"),
        ("description", Path(robot.source).name),
        ("method", f"{fit.method}, friction {fit.options.get('friction', 'as described')}"),
        ("signals", " → ".join(str(step.get("step", "?")) for step in fit.pipeline)),
        ("trained on", _with_hashes(trained, fit.history.get("data_sha256", ()))),
        ("validated on", "" if check is None else _with_hashes(checked, check.data_sha256)),
        ("plan", "" if plan is None else f"{plan.criterion}, seed {plan.options.get('seed', 'unknown')}"),
        ("read from", ", ".join(evidence.files)),
        ("armid", f"{__version__}; fit made by {fit.history.get('armid', 'an unknown version')}"),
    ]
    return folded("Provenance", facts(pairs))


def _origin(entry: Mapping[str, Any]) -> str:
    seed = f", seed {entry['seed']}" if "seed" in entry else ""
    return f"{Path(str(entry.get('source') or '')).name or entry.get('made_by') or 'a data set'}{seed}"


def _with_hashes(words: str, hashes: Sequence[str]) -> str:
    digests = ", ".join(digest[:12] for digest in hashes)
    return f"{words} (SHA-256 {digests})" if digests else words


def remarks(evidence: Evidence) -> Section | None:
    """What was found and chosen on the way."""
    notes = [spaced(str(note)) for note in evidence.fit.notes]
    if not notes:
        return None
    sentence = f"armid found or chose {len(notes)} thing{'s' if len(notes) != 1 else ''} on the way to this model."
    return Section("remarks", "Choices", sentence, bullets(notes), folded=True)


def objections(evidence: Evidence) -> list[str]:
    """What counts against the model, in sentences: the worst first."""
    fit, check, plan = evidence.fit, evidence.check, evidence.plan
    found = []
    if (audit := evidence.audit) is not None and _impossible(evidence):
        found += ["The parameters are not physically consistent.", *map(str, audit.get("certificates", ()))]
    if check is None:
        found.append("The model is not validated: nothing is known about motion other than that of the training data.")
        found += [str(objection.note) for objection in implausible_links(fit)]
    reasons = [str(one) for one in check.reasons] if check is not None and not check.good else []
    found += [*reasons[:1], *_by_kind(_findings(evidence)), *reasons[1:]]  # faulty logs explain the rest
    stated = {} if evidence.truth is None else evidence.truth.parameters
    if absorbed := sorted(name for name in fit.robot.zero if abs(stated.get(name, 0.0)) > 1e-12):
        taken = f"The description takes {listed(absorbed)} as zero, but the virtual arm has them"
        found.append(f"{taken}: other parameters absorb them and miss their true values.")
    if fit.identifiability.poor:
        count, total = fit.identifiability.counts
        found.append(f"Only {count} of {total} parameters are determined to 30 %: use them together, not one by one.")
    free = [n for n, kind in zip(fit.names, fit.identifiability.classes, strict=True) if kind == "undetermined"]
    if free:
        found.append(f"The data leave these parameters free, so their values mean nothing alone: {', '.join(free)}.")
    if plan is not None and not plan.certified:
        found.append("The plan breaks a limit: do not run it on the arm.")
    assumed = sorted(fit.robot.limits.assumed)
    if assumed and plan is not None:
        limits = f"Limits of {', '.join(assumed)} are assumed, not known"
        found.append(f"{limits}: the certificate is only as good as they are.")
    if fit.noise is None and (check is None or not any(np.isfinite(joint.noise) for joint in check.joints)):
        found.append("The noise of the torque was not measured, so errors cannot be set against it.")
    found += evidence.left_out
    if evidence.warmup is not None and evidence.warmup.get("warm") is False:
        found.append("The arm was not warm yet when the warm-up ended: friction goes on changing.")
    return [spaced(words) for words in found]


def _by_kind(faults: list[tuple[str, str, str]]) -> list[str]:
    """The words of the first finding of each kind, and how many more there are."""
    kinds: dict[str, list[str]] = {}
    for _, code, words in faults:
        kinds.setdefault(code, []).append(words)
    return [f"{first} ({len(more)} more of this kind.)" if more else first for first, *more in kinds.values()]


def _findings(evidence: Evidence) -> list[tuple[str, str, str]]:
    """What the log doctor warns of, errors first: severity, kind, and words with the advice."""
    if evidence.inspection is None:
        return []
    found = []
    for name, report in checked(evidence.inspection, Inspection, "inspection.json").logs.items():
        for finding in report.findings:
            if finding.severity in ("warning", "error"):
                joint = f", {finding.joint}" if finding.joint else ""
                words = f"{name}{joint}: {finding.what} {finding.advice}".strip()
                found.append((finding.severity, finding.code, words))
    return sorted(found, key=lambda one: one[0])
