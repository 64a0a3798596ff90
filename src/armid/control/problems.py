"""What can go wrong in a tracking experiment."""

from armid.errors import ArmidError


class ControlError(ArmidError):
    """A tracking experiment cannot be carried out as asked."""
