"""A fit in other programs' formats: URDF, MJCF, C, Python, a robot file; each proved before it is kept."""

from armid.exporting import formats as formats  # registers armid's own
from armid.exporting.arm import ExportError as ExportError
from armid.exporting.exporter import Content as Content
from armid.exporting.exporter import Exporter as Exporter
from armid.exporting.exporter import Job as Job
from armid.exporting.exporter import exporters as exporters
from armid.exporting.proof import Proof as Proof
from armid.exporting.proof import ProofError as ProofError
from armid.exporting.result import Export as Export
from armid.exporting.result import ExportedFile as ExportedFile
from armid.exporting.writing import export as export
