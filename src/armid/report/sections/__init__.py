"""The sections of a report, in reading order; each is a function from the evidence to a section, or to none."""

from __future__ import annotations

from collections.abc import Callable

from armid.report.evidence import Evidence
from armid.report.section import Section
from armid.report.sections.conditioning import conditioning
from armid.report.sections.errors import errors
from armid.report.sections.excitation import excitation
from armid.report.sections.exports import exports
from armid.report.sections.friction import friction
from armid.report.sections.links import links
from armid.report.sections.parameters import parameters
from armid.report.sections.payload import payload
from armid.report.sections.remarks import remarks
from armid.report.sections.replay import replay
from armid.report.sections.residuals import residuals
from armid.report.sections.signals import signals
from armid.report.sections.torque import torque
from armid.report.sections.tracking import tracking
from armid.report.sections.verdict import verdict

SECTIONS: tuple[Callable[[Evidence], Section | None], ...] = (
    *(verdict, torque, errors, residuals, friction, parameters, conditioning, links),
    *(excitation, replay, signals, payload, tracking, exports, remarks),
)
