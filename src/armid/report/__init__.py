"""The report: one HTML page that shows a fit, its evidence and its warnings, and needs no network."""

import sys
from types import ModuleType
from typing import Any

from armid.report.build import Report as Report
from armid.report.build import build as build
from armid.report.build import report as report
from armid.report.evidence import Evidence as Evidence
from armid.report.evidence import gather as gather


class _Callable(ModuleType):
    """`armid.report` is this package once it is imported, and the function before: so the package can be called too."""

    def __call__(self, *arguments: Any, **options: Any) -> Report:
        return report(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
