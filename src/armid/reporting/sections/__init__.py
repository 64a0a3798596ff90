"""The sections of a report, in reading order; each is a function from the evidence to a section, or to none."""

from __future__ import annotations

from collections.abc import Callable

from armid.reporting.evidence import Evidence
from armid.reporting.html import Section
from armid.reporting.sections.friction import friction
from armid.reporting.sections.motion import excitation, replay
from armid.reporting.sections.parameters import conditioning, links, parameters
from armid.reporting.sections.results import exports, payload, tracking
from armid.reporting.sections.signals import signals
from armid.reporting.sections.torque import errors, residuals, torque
from armid.reporting.sections.verdict import remarks, verdict

SECTIONS: tuple[Callable[[Evidence], Section | None], ...] = (
    *(verdict, torque, errors, residuals, friction, parameters, conditioning, links),
    *(excitation, replay, signals, payload, tracking, exports, remarks),
)
