"""A fit in other programs' formats: URDF, MJCF, C, Python, a robot file; each proved before it is kept."""

from armid.export.arm import ExportError as ExportError
from armid.export.holds import FORMATS as FORMATS
from armid.export.proof import Proof as Proof
from armid.export.proof import ProofError as ProofError
from armid.export.result import Export as Export
from armid.export.result import ExportedFile as ExportedFile
from armid.export.writing import export as export
