"""The sections of a report, in reading order; each is a function from the evidence to a section, or to none."""

from __future__ import annotations

from collections.abc import Callable

from armid.reporting.evidence import Evidence
from armid.reporting.section import Section
from armid.reporting.sections.conditioning import conditioning
from armid.reporting.sections.errors import errors
from armid.reporting.sections.excitation import excitation
from armid.reporting.sections.exports import exports
from armid.reporting.sections.friction import friction
from armid.reporting.sections.links import links
from armid.reporting.sections.parameters import parameters
from armid.reporting.sections.payload import payload
from armid.reporting.sections.remarks import remarks
from armid.reporting.sections.replay import replay
from armid.reporting.sections.residuals import residuals
from armid.reporting.sections.signals import signals
from armid.reporting.sections.torque import torque
from armid.reporting.sections.tracking import tracking
from armid.reporting.sections.verdict import verdict

SECTIONS: tuple[Callable[[Evidence], Section | None], ...] = (
    *(verdict, torque, errors, residuals, friction, parameters, conditioning, links),
    *(excitation, replay, signals, payload, tracking, exports, remarks),
)
