"""What the arm carries: mass, centre of mass and inertia of a payload, from a minute of motion."""

from armid.payload.body import QUANTITIES as QUANTITIES
from armid.payload.body import consistent_body as consistent_body
from armid.payload.body import load_reference as load_reference
from armid.payload.estimate import PayloadEstimate as PayloadEstimate
from armid.payload.estimate import Requirement as Requirement
from armid.payload.estimate import load_payload as load_payload
from armid.payload.gains import GainEstimate as GainEstimate
from armid.payload.gains import identify_gains as identify_gains
from armid.payload.identify import identify_payload as identify_payload
