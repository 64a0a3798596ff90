"""The report: one HTML page that shows a fit, its evidence and its warnings, and needs no network."""

from armid.reporting.build import Report as Report
from armid.reporting.build import build as build
from armid.reporting.build import report as report
from armid.reporting.evidence import Evidence as Evidence
from armid.reporting.evidence import gather as gather
