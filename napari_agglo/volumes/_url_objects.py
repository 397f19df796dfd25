"""Objects written to a URL through fsspec, one by one, so that a copy can go on where it stopped.

In its own file: reading a URL needs none of this, and only what is named as an output is written.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from napari_agglo.errors import Advice, InvalidInput, Remedy
from napari_agglo.volumes._store_location import Place, file_system, is_url, remote

_READ_ONLY = ("http", "https")
# Stores without folders: those of other protocols, such as sftp, are made.
_FLAT = ("s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "memory")


@dataclass(frozen=True)
class Stored:
    """An object as its server tells of it.

    Attributes
    ----------
    size : int
        Bytes; -1 if the server does not tell.
    stamp : str
        A text that changes with the content: checksum, or else time, and size.
    md5 : tuple of str
        Texts of the server that may be the checksum of the content.
    """

    size: int
    stamp: str
    md5: tuple[str, ...]

    def has(self, data: bytes) -> bool:
        """Return whether the server tells that the object has this content."""
        return self.size == len(data) and md5(data) in self.md5


def md5(data: bytes) -> str:
    """Return the checksum that most servers of objects tell."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def check_output_url(url: str, argument: str) -> str:
    """Return a URL that objects may be written to, without a slash at its end; refuse others.

    Examples
    --------
    >>> check_output_url("memory://cells/", "copy_to")
    'memory://cells'
    """
    if not isinstance(url, str) or not is_url(url):
        raise InvalidInput(
            f"`{argument}` must be a URL, got {url!r}",
            argument=argument,
            remedy="name one such as s3://BUCKET/NAME; a run has its results in its folder anyway",
        )
    scheme, _, rest = url.partition("://")
    if scheme.lower() in _READ_ONLY:
        raise InvalidInput(
            f"{url} cannot be written to: {scheme}:// is read-only",
            argument=argument,
            remedy="name the bucket by its own protocol, e.g. s3://BUCKET/NAME",
        )
    if not rest.strip("/"):
        raise InvalidInput(
            f"{url} names no place",
            argument=argument,
            remedy=f"name a bucket or a folder, e.g. {scheme}://BUCKET/NAME",
        )
    with _writing(url, argument):
        file_system(url)
    return url.rstrip("/")


def stored_object(url: str, argument: str = "source") -> Stored | None:
    """Return the size, the stamp and the checksums of an object; None if there is none."""
    with _writing(url, argument, "looked up"):
        system, path = file_system(url)
        try:
            details = system.info(path)
        except (FileNotFoundError, NotADirectoryError, KeyError):
            return None
    known = {str(key).lower().replace("_", "-"): value for key, value in details.items()}
    size = known.get("size")
    return Stored(-1 if size is None else int(size), Place(url).stamp(), tuple(_checksums(known)))


def _checksums(details: dict[str, Any]) -> Iterator[str]:
    """Yield probable MD5 checksums of an object, as hexadecimal digits."""
    yield str(details.get("etag", "")).removeprefix("W/").strip('"')
    settings = details.get("content-settings") or {}
    inner = settings.get("content_md5") if isinstance(settings, dict) else None
    for value in (details.get("md5hash"), details.get("content-md5"), inner):
        if isinstance(value, str):
            try:
                yield base64.b64decode(value).hex()
            except ValueError:
                continue
        elif isinstance(value, (bytes, bytearray)):
            yield bytes(value).hex()


def read_object(url: str, argument: str = "source") -> bytes | None:
    """Return the content of an object; None if there is none."""
    with _writing(url, argument, "read"):
        system, path = file_system(url)
        try:
            return bytes(system.cat_file(path))
        except (FileNotFoundError, NotADirectoryError, KeyError):
            return None


def write_object(url: str, data: bytes, argument: str = "path") -> Stored:
    """Write an object, in place of one that is there; return what the server then tells of it."""
    with _writing(url, argument):
        system, path = file_system(url)
        if url.partition("://")[0].lower() not in _FLAT:
            system.makedirs(posixpath.dirname(path), exist_ok=True)
        system.pipe_file(path, data)
        there = stored_object(url, argument)
    if there is None or there.size not in (-1, len(data)):
        size = "no" if there is None else f"{there.size:,}"
        raise InvalidInput(
            f"{url} has {size} bytes after {len(data):,} were written",
            argument=argument,
            remedy="check the server, and do it again",
        )
    return there


def remove_object(url: str, argument: str = "path") -> None:
    """Remove an object, if it is there."""
    with _writing(url, argument, "removed"):
        system, path = file_system(url)
        try:
            system.rm_file(path)
        except (FileNotFoundError, NotADirectoryError, KeyError):
            return


@contextmanager
def _writing(url: str, argument: str, verb: str = "written") -> Iterator[None]:
    """Raise the errors of a network as `InvalidInput` that names the object."""
    try:
        with remote(url):
            yield
    except InvalidInput as error:
        cause = error.__cause__
        if cause is None:
            raise
        problem = error.problem.replace(f"{url} cannot be read", f"{url} cannot be {verb}")
        remedy: Remedy | None = error.remedy
        if isinstance(cause, PermissionError):
            remedy = Advice("log in as someone who may write there")
        elif isinstance(remedy, Advice) and "download" in remedy.text:
            remedy = Advice("check the address and the connection")
        raise InvalidInput(problem, argument=argument, remedy=remedy) from cause
