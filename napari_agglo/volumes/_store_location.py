"""Folders of chunked formats (Zarr, N5, precomputed) on disk or at a URL, and files at a URL.

A URL (``https://``, ``s3://``, ``gs://``, ``memory://`` ...) is read through fsspec, and only when
a user names one. Zarr, N5 and precomputed are read chunk by chunk; a single file, such as a TIFF,
is fetched whole into a temporary folder, which is removed when the program ends.
"""

from __future__ import annotations

import atexit
import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from napari_agglo.errors import Advice, Install, InvalidInput, Remedy

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# the package that fsspec needs for a protocol, beside those of the extra "remote"
_PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "sftp": "paramiko"}

# what servers tell of a file, by protocol
_CHECKSUMS = ("etag", "content-md5", "md5hash", "crc32c", "digest", "versionid", "generation")
_TIMES = ("last-modified", "lastmodified", "mtime", "updated", "created")


def is_url(text: str) -> bool:
    """Return whether a text is a URL.

    Examples
    --------
    >>> is_url("s3://bucket/a.zarr"), is_url("C:/cells.tif")
    (True, False)
    """
    return _URL.match(text) is not None


@dataclass(frozen=True)
class Place:
    """A folder of an array or group: `root` is a path or URL, `inner` the folder in it.

    Examples
    --------
    >>> (Place("cells.zarr") / "labels" / "0").inner
    'labels/0'
    """

    root: str
    inner: str = ""

    def __truediv__(self, name: str) -> Place:
        return Place(self.root, posixpath.join(self.inner, name).strip("/"))

    def __str__(self) -> str:
        start = self.root.rstrip("/") if self.is_remote else self.root
        return f"{start}/{self.inner}" if self.inner else start

    @property
    def is_remote(self) -> bool:
        """Whether this is a URL."""
        return is_url(self.root)

    @property
    def parent(self) -> Place | None:
        """The folder around this one; None at the root of a URL."""
        if self.inner:
            return Place(self.root, posixpath.dirname(self.inner))
        return None if self.is_remote else Place(str(Path(self.root).parent))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(str(self).rstrip("/")) if self.is_remote else Path(str(self)).name

    def read(self, name: str) -> bytes | None:
        """Return the content of a file in this folder; None if there is no such file."""
        if not self.is_remote:
            try:
                return (Path(str(self)) / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
        with remote(str(self)):
            system, path = file_system(f"{self}/{name}")
            try:
                return bytes(system.cat_file(path))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError):
                return None

    def stamp(self, name: str = "") -> str:
        """Return the checksum of a file at a server, or else its time, and its size.

        The text changes with the content of the file; "" if there is none.
        """
        with remote(str(self)):
            system, path = file_system(f"{self}/{name}" if name else str(self))
            try:
                details = system.info(path)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError):
                return ""
        known = {str(key).lower().replace("_", "-"): value for key, value in details.items()}
        for names in (_CHECKSUMS, _TIMES):
            marks = [str(known[one]).removeprefix("W/") for one in names if known.get(one)]
            if marks:
                return repr((known.get("size"), *marks))
        return repr(known.get("size"))

    def has(self, *names: str) -> bool:
        """Return whether this folder has a file of one of these names."""
        if not self.is_remote:
            return any((Path(str(self)) / name).is_file() for name in names)
        return any(self.read(name) is not None for name in names)

    def folders(self, marks: tuple[str, ...], depth: int = 3) -> list[str]:
        """Return the folders below that have a file of one of these names; none if not known."""
        if self.is_remote:  # a web server does not list its files
            return []
        root = Path(str(self))
        return sorted(
            file.parent.relative_to(root).as_posix()
            for mark in marks
            for level in range(1, depth + 1)
            for file in root.glob("*/" * level + mark)
        )


def split_url(text: str) -> tuple[str, str | None]:
    """Split URL:KEY at a colon after the path, the one of the host's port excepted.

    Examples
    --------
    >>> split_url("https://a.org:8000/cells.zarr:labels/x,c=1")
    ('https://a.org:8000/cells.zarr', 'labels/x,c=1')
    >>> split_url("s3://bucket/cells.zarr")
    ('s3://bucket/cells.zarr', None)
    """
    matched = _URL.match(text)
    start = matched.end() if matched else 0
    slash = text.find("/", start)
    colon = text.find(":", slash) if slash >= 0 else -1
    if colon < 0:
        return text.rstrip("/"), None
    return text[:colon].rstrip("/"), text[colon + 1 :] or None


def fetch(url: str) -> Path:
    """Copy a file at a URL to a temporary folder, and return the path of the copy.

    One that has changed since is copied again.
    """
    state = Place(url).stamp()
    target = _cache() / f"{abs(hash((url, state))):x}" / posixpath.basename(url.rstrip("/"))
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with remote(url):
            system, path = file_system(url)
            system.get_file(path, str(target))
    return target


@cache
def _cache() -> Path:
    folder = tempfile.mkdtemp(prefix="napari-agglo-")
    atexit.register(shutil.rmtree, folder, True)
    return Path(folder)


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import fsspec

    system, path = fsspec.core.url_to_fs(url)
    return system, str(path)


@contextmanager
def remote(url: str) -> Iterator[None]:
    """Raise the errors of a network as `InvalidInput` with the URL."""
    try:
        yield
    except InvalidInput:
        raise
    except ImportError as error:  # the package of this protocol is missing
        scheme = url.partition("://")[0]
        package = _PACKAGES.get(scheme, '"napari-agglo[remote]"')
        raise InvalidInput(
            f"{url} needs a package that is not installed ({error})",
            argument="source",
            remedy=Install(package),
        ) from error
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{url} does not exist", argument="source", remedy="check the address"
        ) from error
    except Exception as error:  # protocols raise nearly anything
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy: Remedy = Advice("check the address and the connection, or download it")
        if "protocol not known" in reason.lower():
            remedy = Advice("use https://, s3:// or a file")
        elif "credentials" in reason.lower():
            remedy = Advice(
                "log in, or for a public bucket set the environment variable FSSPEC_S3_ANON=true"
            )
        raise InvalidInput(
            f"{url} cannot be read ({reason})", argument="source", remedy=remedy
        ) from error
