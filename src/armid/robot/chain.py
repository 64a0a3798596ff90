"""An arm that is part of a larger file: which of its joints move, while all others are locked where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from armid.errors import DescriptionError, UnknownNameError


@dataclass(frozen=True)
class Chain:
    """The joints of an arm within a file, by name or as those between two links; by default all.

    Attributes:
        joints: their names.
        start: link that they hang on, the file's first where it is None.
        end: link that they carry; None for all that the start carries.
    """

    joints: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None

    def __bool__(self) -> bool:
        """Whether it chooses."""
        return bool(self.joints or self.start or self.end)

    def chosen(self, source: str, joints: Mapping[str, tuple[str, ...]], parents: Mapping[str, str]) -> set[str]:
        """Names of the joints that move.

        Args:
            source: file, for messages.
            joints: that can move, by the link they carry directly.
            parents: of each link but the first.
        """
        moving = {name for names in joints.values() for name in names}
        if not self:
            return moving
        if self.joints and (self.start or self.end):
            raise DescriptionError(source, "joints", "are named, and links around them too; give one of them")
        for name in self.joints:
            if name not in moving:
                raise UnknownNameError(f"joint of {source} that can move", name, sorted(moving))
        for link in filter(None, (self.start, self.end)):
            if link not in parents and link not in parents.values():
                raise UnknownNameError(f"link of {source}", link, sorted({*parents, *parents.values()}))
        if self.joints:
            return set(self.joints)
        between = {link for link in parents if self._holds(link, parents)}
        found = {name for link in between for name in joints.get(link, ())}
        if not found:
            ends = f"from {self.start or 'the base'} to {self.end or 'the tips'}"
            raise DescriptionError(source, "joints", f"that can move: there are none {ends}; name links of one branch")
        return found

    def _holds(self, link: str, parents: Mapping[str, str]) -> bool:
        """Whether a link lies beyond the start and on the way to the end."""
        inward = _path(link, parents)[1:]
        return (self.start is None or self.start in inward) and (self.end is None or link in _path(self.end, parents))


def _path(link: str, parents: Mapping[str, str]) -> list[str]:
    """The link and those it hangs on, up to the first."""
    path = [link]
    while path[-1] in parents and len(path) <= len(parents):
        path.append(parents[path[-1]])
    return path


WHOLE = Chain()
