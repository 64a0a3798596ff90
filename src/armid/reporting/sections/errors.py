"""The table of errors against the noise."""

from __future__ import annotations

import numpy as np

from armid.reporting.evidence import Evidence, units_of
from armid.reporting.html import Cell, Column, Row, paragraph, table
from armid.reporting.numbers import percent, share, short
from armid.reporting.section import Section, lacking
from armid.validation.metrics import JointMetrics
from armid.validation.result import Validation
from armid.validation.verdict import failing

TITLE = "Errors against the noise"
QUIET = 1.1  # multiples of the noise up to which a joint counts as predicted as well as it can be


def errors(evidence: Evidence) -> Section:
    """A row per joint, the worst marked."""
    check = evidence.check
    if check is None:
        words = f"On the training data the residual is {_list(evidence)} N m per joint; a validation says more."
        return lacking("errors", TITLE, words)
    body = table(_columns(check, _unit(evidence)), _rows(check), caption="errors of the predicted torque per joint")
    limits = check.thresholds
    body += paragraph(
        f"NRMS is the error over the spread of the measured torque. A joint passes with NRMS while moving of at most "
        f"{share(limits.nrms_moving)}, or {limits.noise_ratio:g}× the noise.",
        "remark",
    )
    return Section("errors", TITLE, _sentence(check), body)


def _list(evidence: Evidence) -> str:
    return ", ".join(short(value) for value in evidence.fit.residual_rms)


def _sentence(check: Validation) -> str:
    known = [joint for joint in check.joints if np.isfinite(joint.noise_ratio)]
    if not known:
        return "The noise of the torque was not measured, so the errors stand alone; NRMS sets them against the torque."
    quiet = [joint for joint in known if joint.noise_ratio <= QUIET]
    worst = max(known, key=lambda joint: joint.noise_ratio)
    if len(quiet) == len(known):
        limit = "" if worst.noise_ratio <= 1.0 else f"{QUIET:g}× "
        return f"Every joint is predicted to within {limit}its noise; {worst.name} comes last with {_times(worst)}."
    several = f"{len(quiet)} of {len(known)} joints {'is' if len(quiet) == 1 else 'are'}"
    count = several if quiet else "No joint is"
    look = check.residuals[[joint.name for joint in check.joints].index(worst.name)]
    where = (
        "the excess is at velocity reversals"
        if look.reversal_rms > 1.5 * look.elsewhere_rms
        else f"its error remembers itself for {short(look.memory_s, 2)} s"
    )
    return f"{count} predicted to within {QUIET:g}× the noise; {worst.name} is {_times(worst)} the noise; {where}."


def _times(joint: JointMetrics) -> str:
    """Multiples of the noise, with a second decimal near one."""
    return f"{joint.noise_ratio:.{2 if joint.noise_ratio < 1.2 else 1}f}×"


def _unit(evidence: Evidence) -> str:
    robot = evidence.fit.robot
    return " or ".join(dict.fromkeys(units_of(robot, j)[0] for j in range(robot.n_joints)))


def _columns(check: Validation, unit: str) -> list[Column]:
    columns = [
        Column("joint", words=True),
        Column("RMS", unit, "root mean square of the error, all rows"),
        Column("RMS moving", unit, "over the rows at which the joint moves"),
        Column("noise", unit, "standard deviation of the measured torque's noise"),
        Column("× noise", "", "RMS moving over noise"),
        Column("NRMS", "", "RMS over the standard deviation of the torque"),
        Column("NRMS moving", "", "the same while the joint moves"),
        Column("R²", "", "coefficient of determination"),
        Column("correlation", "", "of measured and predicted torque"),
    ]
    if _has_nominal(check):
        columns.append(Column("nominal", "NRMS moving", "the file's own inertia with the best friction for it"))
    return columns


def _has_nominal(check: Validation) -> bool:
    return any(np.isfinite(joint.nominal_nrms_moving) for joint in check.joints)


def _rows(check: Validation) -> list[Row]:
    bad = set(failing(check.joints, check.thresholds))
    most = max((j.noise_ratio for j in check.joints if np.isfinite(j.noise_ratio)), default=np.nan)
    widest = max((j.nrms_moving for j in check.joints if np.isfinite(j.nrms_moving)), default=np.nan)
    rows = []
    for index, joint in enumerate(check.joints):
        mark = "misses the limits" if index in bad else "the worst joint" if joint.nrms_moving == widest else ""
        rows.append(Row((*_cells(joint, most, widest), *_nominal(check, joint)), mark))
    return rows


def _cells(joint: JointMetrics, most: float, widest: float) -> tuple[Cell, ...]:
    ratio = "–" if not np.isfinite(joint.noise_ratio) else f"{joint.noise_ratio:.2f}"
    return (
        Cell(joint.name),
        Cell(short(joint.rms), joint.rms),
        Cell(short(joint.rms_moving), joint.rms_moving),
        Cell(short(joint.noise), joint.noise),
        Cell(ratio, joint.noise_ratio, joint.noise_ratio / most),
        Cell(percent(joint.nrms), joint.nrms),
        Cell(percent(joint.nrms_moving), joint.nrms_moving, joint.nrms_moving / widest),
        Cell("–" if not np.isfinite(joint.r2) else f"{joint.r2:.4f}", joint.r2),
        Cell("–" if not np.isfinite(joint.correlation) else f"{joint.correlation:.4f}", joint.correlation),
    )


def _nominal(check: Validation, joint: JointMetrics) -> tuple[Cell, ...]:
    value = joint.nominal_nrms_moving
    return (Cell(percent(value), value),) if _has_nominal(check) else ()
