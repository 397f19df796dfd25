"""Policy files: one npz of plain arrays and a JSON record; nothing in it can run code.

Kernels do no bounds checking, so every array is checked first, and a damaged or hostile file is
refused with a message. Sizes are read from the headers and compared with the size of the file
before memory is allocated.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import Advice, Install, InvalidInput
from napari_agglo.features import FORMER, FeatureMap, feature_blocks
from napari_agglo.policy._learned_policy import LearnedPolicy
from napari_agglo.policy._model import Forest, Logistic, Model
from napari_agglo.policy._policies import Policy
from napari_agglo.volumes import replacing
from napari_agglo.volumes._image_files import npy_header

SCHEMA = 1
INSTALL_PACKAGE = Advice("install the package that has it")
_FORMAT = "napari-agglo policy"
_LARGEST = 1 << 30  # bytes of one array: a forest of a hundred trees has some megabytes
_ARRAYS = {
    "forest": {"roots": "<u4", "nodes": "<u4", "values": "<f8"},
    "logistic": {"weights": "<f8"},
}


class FeaturesMissing(InvalidInput):
    """Features of another package that is not installed, cannot be loaded, or has changed."""


def save_policy(policy: Policy, path: str | PathLike[str]) -> Path:
    """Write a learned policy to a file, whole or not at all; `LearnedPolicy.save` does the same.

    Parameters
    ----------
    policy : Policy
        A learned policy; others are refused.
    path : path-like
        The file to write, ``.npz``.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InvalidInput
        If the policy was not learned.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> superpixels = np.arange(1, 25).reshape(4, 6)
    >>> graph = agglo.region_graph(superpixels, np.where(superpixels % 6 > 3, 0.7, 0.2))
    >>> policy = agglo.train(graph, superpixels % 6 // 4 + 1, strategy="flat", preset="minimal")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_policy(policy, f"{folder}/policy.npz").name
    'policy.npz'
    """
    target, data = Path(path), encode_policy(policy)
    with replacing(target) as temporary:
        temporary.write_bytes(data)
    return target


def encode_policy(policy: Policy) -> bytes:
    """Return the bytes of a learned policy's file."""
    if not isinstance(policy, LearnedPolicy):
        raise InvalidInput(
            f"The policy {policy.name!r} has no learned arrays to save",
            argument="policy",
            remedy="pass its name where a policy is needed; only learned policies are saved",
        )
    kind = "forest" if isinstance(policy.model, Forest) else "logistic"
    owners = {block.name: feature_blocks.package_of(block.name) for block in policy.features.blocks}
    packages = {name: owner for name, owner in owners.items() if owner is not None}
    header = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "model": kind,
        "preset": policy.features.preset,
        "cues": list(policy.features.cues),
        "bins": policy.features.bins,
        **({"words": list(policy.features.words)} if policy.features.words else {}),
        "features": list(policy.features.names),
        **({"packages": packages} if packages else {}),
        "record": policy.record,
    }
    return encode_model(header, policy.model, kind)


def encode_model(header: dict[str, Any], model: Model, kind: str = "forest") -> bytes:
    """Return the bytes of a file with a JSON header and the arrays of a model."""
    text = json.dumps(header).encode()
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(getattr(model, name), dtype)
        for name, dtype in _ARRAYS[kind].items()
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # as numpy writes it, which compresses slowly
        for name, array in {"header": np.frombuffer(text, np.uint8), **arrays}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")  # of no date: the same bytes for the same policy
            archive.writestr(entry, part.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return buffer.getvalue()


def load_policy(path: str | PathLike[str]) -> LearnedPolicy:
    """Read a policy that `LearnedPolicy.save` wrote.

    Policies of classes with parameters have no such files: docs/extending.md says how to keep them.

    Parameters
    ----------
    path : path-like
        The ``.npz`` file of a policy that was trained.

    Returns
    -------
    LearnedPolicy
        One whose scores are, bit for bit, those of the policy that was saved.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> superpixels = np.arange(1, 25).reshape(4, 6)
    >>> graph = agglo.region_graph(superpixels, np.where(superpixels % 6 > 3, 0.7, 0.2))
    >>> gold = np.where(superpixels % 6 > 3, 1, 2)
    >>> policy = agglo.train(graph, gold, strategy="flat", preset="minimal")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read = load_policy(policy.save(f"{folder}/policy.npz"))
    >>> bool((read.score(graph) == policy.score(graph)).all())
    True
    """
    _refuse_json(Path(path))
    with model_file(path, "policy") as archive:
        header = _header(archive)
        arrays = read_arrays(archive, header["model"])
        words = tuple(header.get("words", ()))  # in the files of policies that have some
        base, *blocks = header["preset"].split("+")
        _check_blocks(blocks, header)
        features = FeatureMap(header["preset"], tuple(header["cues"]), header["bins"], words)
        if list(features.names) != header["features"] and base in FORMER:
            former = "+".join([FORMER[base], *blocks])
            features = dataclasses.replace(features, preset=former)
        require(
            list(features.names) == header["features"],
            "its features are not those of this version",
        )
        model = _model(header["model"], arrays, features.width)
    return LearnedPolicy(features, model, header["record"])


def _check_blocks(blocks: list[str], header: dict[str, Any]) -> None:
    """Refuse a file whose feature blocks are not there, or have other columns now."""
    owners = header.get("packages")
    packages = owners if isinstance(owners, dict) else {}
    missing = [name for name in blocks if name not in feature_blocks]
    if missing:
        package = packages.get(missing[0])
        known = isinstance(package, str) and re.fullmatch(r"[\w.-]+", package)
        raise FeaturesMissing(
            f"its features {', '.join(missing)} are of a package that is not installed",
            argument=feature_blocks.noun,
            remedy=Install(str(package)) if known else INSTALL_PACKAGE,
        )
    for name in blocks:
        try:
            columns = feature_blocks[name].columns
        except InvalidInput as error:  # the package is installed, and broken
            raise FeaturesMissing(
                error.problem, argument=feature_blocks.noun, remedy=error.remedy
            ) from error
        start = f"{name}/"
        before = [
            one.removeprefix(start)
            for one in header["features"]
            if isinstance(one, str) and one.startswith(start)
        ]
        if before != list(columns):
            package = feature_blocks.package_of(name) or packages.get(name)
            of_package = f" of the package {package}" if package else ""
            which = f"the version of {package}" if package else "the code"
            raise FeaturesMissing(
                f"the feature block {name!r}{of_package} has the columns {', '.join(columns)} now, "
                f"and had {', '.join(before)} when the policy was trained",
                argument=feature_blocks.noun,
                remedy=(f"install {which} of then", "train the policy again"),
            )


def _refuse_json(source: Path) -> None:
    """Refuse the JSON of a policy with the way to make the policy of it."""
    try:
        with source.open("rb") as file:
            start = file.read(64).lstrip()[:1]
    except OSError:
        return  # refused below
    if start == b"{":
        raise InvalidInput(
            f"{source} is JSON; `load_policy` reads the .npz files of trained policies alone",
            argument="path",
            remedy="make a policy with parameters by its class, from_json(json.load(file)), or "
            "name an object of it in a module, as MODULE:NAME",
        )


@contextmanager
def model_file(path: str | PathLike[str], noun: str) -> Iterator[zipfile.ZipFile]:
    """Open the file of a model, such as a policy; raise all errors as `InvalidInput`."""
    source = Path(path)
    if not source.is_file():
        raise InvalidInput(
            f"There is no {noun} file {source}",
            argument="path",
            remedy=f"train a {noun}, or correct the path",
        )
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive
    except InvalidInput as error:
        raise InvalidInput(
            f"{source} cannot be used as a {noun}: {error.problem}",
            argument="path",
            remedy=error.remedy or f"train the {noun} again or use another copy",
        ) from error
    except Exception as error:  # zip and npy readers raise a dozen kinds of error on damage
        raise InvalidInput(
            f"{source} is not a {noun} file, or is damaged ({type(error).__name__}: {error})",
            argument="path",
            remedy=f"train the {noun} again or use another copy",
        ) from error


def read_header(archive: zipfile.ZipFile, form: str, schema: int) -> dict[str, Any]:
    """Return the JSON of a file; refuse another format or schema."""
    header: dict[str, Any] = json.loads(_member(archive, "header", "|u1").tobytes().decode())
    require(isinstance(header, dict) and header.get("format") == form, "it has another format")
    require(
        header.get("schema") == schema,
        f"its schema is {header.get('schema')}, and this version reads {schema}",
        "update napari-agglo or train it again",
    )
    require(isinstance(header.get("record"), dict), "its record is missing")
    return header


def read_arrays(archive: zipfile.ZipFile, kind: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a forest or a logistic, of the right types."""
    return {name: _member(archive, name, dtype) for name, dtype in _ARRAYS[kind].items()}


def require(condition: bool, otherwise: str, remedy: str | None = None) -> None:
    """Refuse a file, for the reason `otherwise`, unless a condition is met."""
    if not condition:
        raise InvalidInput(otherwise, argument="path", remedy=remedy)


def _member(archive: zipfile.ZipFile, name: str, dtype: str) -> NDArray[Any]:
    """Read one array, after a check of its declared type and size against the file."""
    info = archive.getinfo(f"{name}.npy")
    require(info.file_size <= _LARGEST, f"its array {name!r} claims {info.file_size} bytes")
    with archive.open(info) as file:
        shape, fortran, stored = npy_header(file)
        require(
            stored == np.dtype(dtype) and not fortran,
            f"its array {name!r} is of type {stored}, not {np.dtype(dtype)}",
        )
        size = math.prod(shape) * stored.itemsize  # integers of Python: no overflow
        require(
            size == info.file_size - file.tell(),
            f"its array {name!r} declares {size} bytes and has {info.file_size - file.tell()}",
        )
        # writable, as in a new policy: kernels are compiled separately for read-only arrays
        data = bytearray(file.read())
    return np.frombuffer(data, dtype).reshape(shape)


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    header = read_header(archive, _FORMAT, SCHEMA)
    cues, bins = header.get("cues"), header.get("bins")
    require(header.get("model") in _ARRAYS, f"its model {header.get('model')!r} is not known")
    require(
        isinstance(cues, list) and bool(cues) and all(isinstance(cue, str) for cue in cues),
        "its cues are not names",
    )
    require(isinstance(bins, int) and 1 <= bins <= 256, f"it has {bins!r} bins")
    words = header.get("words", [])
    require(
        isinstance(words, list) and all(isinstance(one, str) for one in words),
        "its cues of words are not names",
    )
    return header


def _model(kind: str, arrays: dict[str, NDArray[Any]], width: int) -> Model:
    if kind == "logistic":
        weights = arrays["weights"].astype(np.float64)
        require(weights.shape == (width + 1,), f"it has weights of shape {weights.shape}")
        require(bool(np.isfinite(weights).all()), "some of its weights are not finite")
        return Logistic(weights)
    return check_forest(arrays, width)


def check_forest(arrays: dict[str, NDArray[Any]], width: int) -> Forest:
    """Return a forest on `width` features; refuse arrays that a kernel could not walk."""
    roots, nodes, values = arrays["roots"], arrays["nodes"], arrays["values"]
    n = len(nodes)
    require(roots.ndim == 1 and len(roots) > 0, f"its roots have shape {roots.shape}")
    require(nodes.ndim == 2 and nodes.shape[1] == 4, f"its nodes have shape {nodes.shape}")
    require(values.shape == (n,), f"its values have shape {values.shape}, not {(n,)}")
    require(bool((roots < n).all()), "a root is not a node")
    require(bool((nodes[:, 0] < width).all()), "a node uses a feature that does not exist")
    own = np.arange(n)
    left, right = nodes[:, 2].astype(np.int64), nodes[:, 3].astype(np.int64)
    leaf = (left == own) & (right == own)
    # A child has a higher number than its parent, so that no walk can loop for ever.
    down = (left > own) & (right > own) & (left < n) & (right < n)
    require(bool((leaf | down).all()), "a node's children are not below it")
    above = np.bincount(np.concatenate([left[~leaf], right[~leaf], roots]), minlength=n)
    require(bool((above == 1).all()), "a node is not in exactly one place of one tree")
    thresholds = nodes.view(np.float32)[:, 1]
    require(bool((np.isfinite(thresholds) | leaf).all()), "a threshold is not finite")
    inside = bool(((values >= 0) & (values <= 1)).all())
    require(inside, "a value is not a probability")
    return Forest(
        roots.astype(np.uint32), np.ascontiguousarray(nodes, np.uint32), values.astype(np.float64)
    )
