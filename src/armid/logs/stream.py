"""A log that is read block by block, so that its length does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from armid.logs.log import Log, LogError, LogInfo, concatenate

BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class LogStream:
    """A log in a file, or anywhere else, that is never in memory as a whole.

    Attributes:
        info: what the numbers mean.
        channels: names of the channels that every block has.
        open_blocks: gives the blocks from the start, each of at most as many samples as it is asked for.
    """

    info: LogInfo
    channels: tuple[str, ...]
    open_blocks: Callable[[int], Iterator[Log]]

    def blocks(self, size: int = BLOCK) -> Iterator[Log]:
        """The log in pieces of at most `size` samples, from the start.

        Raises:
            LogError: the data cannot be read, or there are none.
        """
        if size < 1:
            raise LogError(self.info.source, "", f"cannot be read in blocks of {size} samples; use 1 or more")
        samples = 0
        for block in self.open_blocks(size):
            samples += len(block)
            yield block
        if samples == 0:
            raise LogError(
                self.info.source, "", "holds no samples; check that rows of numbers follow its header, or record again"
            )

    def read(self) -> Log:
        """The whole log."""
        return concatenate(self.blocks())


def one_after_the_other(streams: list[LogStream], names: list[str]) -> LogStream:
    """Streams of the same joints, channels and kind of effort as one; times are kept as they are."""
    first = streams[0]
    for other, name in zip(streams[1:], names[1:], strict=True):
        if other.info.joints != first.info.joints or set(other.channels) != set(first.channels):
            raise LogError(name, "", f"has other joints or channels than {names[0]}")
        if (other.info.effort, other.info.side) != (first.info.effort, first.info.side):
            raise LogError(name, "effort", f"means something else than in {names[0]}")

    def blocks(size: int) -> Iterator[Log]:
        for stream in streams:
            yield from stream.blocks(size)

    return LogStream(first.info, first.channels, blocks)
