"""Writing files so that they are either complete or not there."""

import os
import tempfile
from pathlib import Path

from armid.errors import ArmidError


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise ArmidError(f"{path}: cannot be written ({error.strerror})") from None
