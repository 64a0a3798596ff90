"""A fit in other programs' formats: URDF, MJCF, C, Python, a robot file, SDF; each proved before it is kept."""

# These register armid's own formats, in this order.
from armid.exporting import urdf as urdf  # isort: skip
from armid.exporting import mjcf as mjcf  # isort: skip
from armid.exporting import c as c  # isort: skip
from armid.exporting import python as python  # isort: skip
from armid.exporting import yaml_file as yaml_file  # isort: skip
from armid.exporting import sdf as sdf  # isort: skip
from armid.exporting.arm import ExportError as ExportError
from armid.exporting.exporter import Content as Content
from armid.exporting.exporter import Exporter as Exporter
from armid.exporting.exporter import Job as Job
from armid.exporting.exporter import Proof as Proof
from armid.exporting.exporter import ProofError as ProofError
from armid.exporting.exporter import exporters as exporters
from armid.exporting.writing import Export as Export
from armid.exporting.writing import ExportedFile as ExportedFile
from armid.exporting.writing import export as export
