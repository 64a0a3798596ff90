"""Writing files so that they are either complete or not there."""

import os
import tempfile
from pathlib import Path

from armid.errors import ArmidError


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArmidError(f"{path}: cannot be written ({error.strerror})") from None
