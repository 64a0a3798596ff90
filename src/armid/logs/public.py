"""Logs of real robots that others have published: what there is, where it lies, and whether a copy is the right one."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from armid.errors import ArmidError, UnknownNameError
from armid.files import write_bytes

VARIABLE = "ARMID_DATA"  # names the folder with local copies
TIMEOUT_S = 60.0

Download = Callable[[str, int], bytes]


@dataclass(frozen=True)
class PublicFile:
    """One file.

    Attributes:
        name: in the folder of its data set.
        use: train, validate, payload, friction, robot, reference or licence.
        bytes: its size.
        sha256: its checksum.
        addresses: where it may be fetched from, in this order; empty if the origin does not offer it in this form.
    """

    name: str
    use: str
    bytes: int
    sha256: str
    addresses: tuple[str, ...]

    def state(self, folder: Path) -> str:
        """``there``, ``missing`` or ``different``."""
        path = folder / self.name
        if not path.is_file():
            return "missing"
        return "there" if hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256 else "different"


@dataclass(frozen=True)
class PublicLogs:
    """One robot's published logs.

    Attributes:
        name: short name, also of its folder.
        title: what it is, in a line.
        origin: address of the origin.
        commit: of the origin's repository.
        licence: under which the origin offers it.
        recipe: name of armid's recipe for its files.
        robot: description: a file of the data set, or one that comes with armid.
        prior: what is known of its inertia beforehand, likewise; empty if nothing is.
        files: its files.
    """

    name: str
    title: str
    origin: str
    commit: str
    licence: str
    recipe: str
    robot: str
    prior: str
    files: tuple[PublicFile, ...]

    def of_use(self, use: str) -> tuple[str, ...]:
        """Names of the files for a use."""
        return tuple(file.name for file in self.files if file.use == use)

    def folder(self, data: str | Path | None = None) -> Path | None:
        """Its folder: below `data`, or below what ARMID_DATA names; None where neither is given."""
        base = os.environ.get(VARIABLE) if data is None else data
        return Path(base) / self.name if base else None

    def robot_path(self, data: str | Path | None = None) -> Path:
        """Path of the description."""
        return self._path(self.robot, data)

    def prior_path(self, data: str | Path | None = None) -> Path | None:
        """Path of the prior; None if there is none."""
        return self._path(self.prior, data) if self.prior else None

    def _path(self, name: str, data: str | Path | None) -> Path:
        if name.startswith("armid:"):
            return Path(str(resources.files("armid.logs") / "robots" / name.removeprefix("armid:")))
        return (self.folder(data) or Path(self.name)) / name

    def fetch(self, data: str | Path, download: Download | None = None) -> list[Path]:
        """Download what is missing into the data set's folder below `data`; returns the files that were written.

        Args:
            data: folder for all data sets; made if it is not there.
            download: fetches at most so many bytes from an address (default: HTTPS).

        Raises:
            ArmidError: a file cannot be fetched, or is not what it was; nothing wrong is left behind.
        """
        folder = Path(data) / self.name
        written = []
        for file in self.files:
            state = file.state(folder)
            if state == "different":
                raise ArmidError(
                    f"{folder / file.name}: is there but is another file (its checksum differs); remove it"
                )
            if state == "missing" and file.addresses:
                content = _fetched(file, download or download_https)
                try:
                    (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise ArmidError(f"{folder}: cannot be made ({error.strerror})") from None
                write_bytes(folder / file.name, content)
                written.append(folder / file.name)
        return written


def public_logs() -> dict[str, PublicLogs]:
    """All data sets by name."""
    text = (resources.files("armid.logs") / "public.yaml").read_text("utf-8")
    table: Mapping[str, Any] = yaml.safe_load(text)
    return {name: _entry(name, fields) for name, fields in table.items()}


def public_log(name: str) -> PublicLogs:
    """The data set called `name`."""
    table = public_logs()
    if name not in table:
        raise UnknownNameError("data set", name, table)
    return table[name]


def _entry(name: str, fields: Mapping[str, Any]) -> PublicLogs:
    commit, repository = str(fields["commit"]), str(fields["repository"])
    root = f"https://raw.githubusercontent.com/{repository}/{commit}/"
    files = tuple(
        PublicFile(
            name=str(file["name"]),
            use=str(file["use"]),
            bytes=int(file["bytes"]),
            sha256=str(file["sha256"]),
            addresses=tuple(root + quote(path) for path in file.get("paths", ())),
        )
        for file in fields["files"]
    )
    texts = {key: str(fields.get(key, "")) for key in ("title", "licence", "recipe", "robot", "prior")}
    return PublicLogs(name=name, origin=f"https://github.com/{repository}", commit=commit, files=files, **texts)


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    """Refuses to be sent elsewhere than to HTTPS."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError(f"sent to {newurl}, which is not HTTPS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download_https(address: str, most: int) -> bytes:
    """At most `most` bytes from an HTTPS address."""
    if not address.startswith("https://"):
        raise ArmidError(f"{address}: is not an HTTPS address")
    opener = urllib.request.build_opener(_OnlyHttps)
    with opener.open(address, timeout=TIMEOUT_S) as answer:
        content: bytes = answer.read(most)
    return content


def _fetched(file: PublicFile, download: Download) -> bytes:
    problems = []
    for address in file.addresses:
        try:
            content = download(address, file.bytes + 1)
        except (OSError, HTTPException, ValueError) as error:
            problems.append(f"{address} ({getattr(error, 'reason', None) or error})")
            continue
        if hashlib.sha256(content).hexdigest() == file.sha256:
            return content
        problems.append(f"{address} (another content: the checksum differs)")
    raise ArmidError(
        f"{file.name}: cannot be fetched; tried {'; '.join(problems)}. Put it into the folder by hand, or take a local "
        f"copy (--folder, {VARIABLE})"
    )
