"""Creation of a session folder, under a temporary name until it is complete; its superpixels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._store import stored_policy
from napari_agglo.session._store.arrays import (
    ARRAYS,
    described,
    labels_from,
    packed,
    read_array,
    read_contents,
    statistics_checksum,
    write_array,
    write_group,
)
from napari_agglo.session._store.journal import JOURNAL, TAIL, Tail
from napari_agglo.session._store.manifest import (
    FORMAT,
    MANIFEST,
    Fingerprint,
    Manifest,
    SourceNote,
    digest_all,
    is_sample,
    write_manifest,
)
from napari_agglo.session._store.sources import AFFINITIES, Source, described_sources
from napari_agglo.session._store.store_errors import SessionDamaged, saving
from napari_agglo.volumes import (
    DenseLabels,
    are_on_disk,
    check_labels,
    check_same_shape,
    dense_labels,
    disk_labels,
    is_lazy,
    is_on_disk,
    open_levels,
    open_volume,
    unwrap,
)
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._on_disk import DamagedFile


def check_path(path: Any, what: str, argument: str = "path") -> str:
    """Return a path as text; refuse a value that is none. `what` names the thing at the path.

    Examples
    --------
    >>> check_path(Path("a.agglo"), "a session folder")
    'a.agglo'
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(
            f"`{argument}` must be the path of {what}, got {path!r}",
            argument=argument,
            remedy="pass a str or a Path",
        )
    return text


def session_folder(path: Any) -> Path:
    """Return the folder of a path, links resolved; refuse a path without one."""
    text = check_path(path, "a session folder")
    folder = Path(os.path.realpath(text))
    if not folder.exists():
        raise InvalidInput(
            f"There is no session {text}",
            argument="path",
            remedy="check the path, or create the session first",
        )
    if not folder.is_dir():
        raise InvalidInput(
            f"{text} is a file, not a session",
            argument="path",
            remedy="choose a NAME.agglo folder",
        )
    return folder


def holding_session(path: Path) -> Path | None:
    """Return the session folder that a path is, lies in, or links into; None if there is none."""
    real = Path(os.path.realpath(path))
    named = Path(os.path.realpath(path.parent)) / path.name
    for place in (named, real):
        for folder in (place, *place.parents):
            if _is_session(folder):
                return folder
    return None


def _is_session(folder: Path) -> bool:
    """Return whether a folder has the manifest of a session, or the journal and arrays of one."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            if FORMAT.encode() in file.read(1000):
                return True
    except OSError:
        pass
    return (folder / JOURNAL).exists() and (folder / ARRAYS).is_dir()


COPY_BELOW = 10**9  # bytes of a label image that is copied into the folder


def read_superpixels(
    folder: Path, manifest: Manifest, progress: ProgressCallback | None = None
) -> DenseLabels:
    """Return the superpixels of a session: its own copy, or the file that its manifest names."""
    dtype = manifest.graph.labels_dtype
    if manifest.source is None:
        notes = manifest.arrays
        if not {"superpixels", "ids"} <= notes.keys():
            raise SessionDamaged(
                f"{folder} has neither its superpixels nor the path of their file", argument="path"
            )
        image, _, extent = read_contents(folder / ARRAYS, "superpixels", notes["superpixels"])
        ids = read_array(folder / ARRAYS, "ids", notes["ids"])
        labels = labels_from(image, ids, dtype, extent)
        checksum = digest_all(notes[name].checksum for name in ("superpixels", "ids"))
        if Fingerprint(image.shape, labels.n_labels, checksum) != manifest.superpixels:
            raise SessionDamaged(
                f"The superpixels in {folder} are not those of its manifest", argument="path"
            )
        return labels
    where = os.path.normpath(folder / manifest.source)
    try:
        if refers_to_disk(manifest):  # larger than memory when the session was made
            return _labels_on_disk(folder, where, manifest)
        return match_superpixels(where, manifest, progress)
    except DamagedFile as error:
        around = os.path.dirname(where)
        is_result = os.path.isfile(os.path.join(around, "plan.json"))
        raise InvalidInput(
            f"The superpixels of {folder} are damaged: {error.problem}",
            argument="superpixels",
            remedy=f"napari-agglo blocks status {around} --check names the commands that write "
            "their chunks again"
            if is_result
            else "put the file back from a copy",
        ) from error
    except InvalidInput as error:
        raise InvalidInput(
            f"The superpixels of {folder} are no longer at {where}: {error.problem}",
            argument="superpixels",
            remedy=SetOption("superpixels", when="with their present path"),
        ) from error


def refers_to_disk(manifest: Manifest) -> bool:
    """Return whether the superpixels of a session stay in their file, and are read in parts."""
    return manifest.source is not None and "ids" in manifest.arrays


def _labels_on_disk(folder: Path, where: str, manifest: Manifest) -> DenseLabels:
    """Return superpixels that stay in their file; refuse a file that has changed."""
    ids = read_array(folder / ARRAYS, "ids", manifest.arrays["ids"])
    data, *coarser = (level.data for level in open_levels(where))
    labels = disk_labels(data, ids, manifest.graph.labels_dtype, coarser)
    if labels.image.shape == manifest.superpixels.shape:  # else nothing need be read
        # sessions of earlier versions have a checksum of all voxels
        whole = not is_sample(manifest.superpixels.checksum)
        _compare(Fingerprint.of(labels, whole=whole), manifest)
    else:
        _compare(Fingerprint(labels.image.shape, labels.n_labels, ""), manifest)
    return labels


def match_superpixels(
    superpixels: Any,
    manifest: Manifest,
    progress: ProgressCallback | None = None,
    folder: Path | None = None,
) -> DenseLabels:
    """Return superpixels of the user, an array or a path; refuse those of another session.

    Those of a session on disk stay there; `folder` is that of the session, which has their ids.
    """
    if refers_to_disk(manifest) and folder and isinstance(superpixels, (str, os.PathLike)):
        return _labels_on_disk(folder, os.fspath(superpixels), manifest)
    if isinstance(superpixels, DenseLabels):
        labels = superpixels
    else:
        is_path = isinstance(superpixels, (str, os.PathLike))
        source = open_volume(superpixels) if is_path else superpixels
        labels = dense_labels(source, "superpixels", progress=progress)
    _compare(Fingerprint.of(labels), manifest)
    return DenseLabels(labels.image, labels.ids, np.dtype(manifest.graph.labels_dtype))


def _compare(fingerprint: Fingerprint, manifest: Manifest) -> None:
    if fingerprint != manifest.superpixels:
        raise InvalidInput(
            f"`superpixels` are not those of the session: these have {fingerprint}, those of the "
            f"session {manifest.superpixels}",
            argument="superpixels",
            remedy="pass the same label image",
        )


def relative_to(folder: Path, source: Any) -> str:
    """Return PATH or PATH:KEY relative to the folder; absolute on another drive."""
    text = os.path.abspath(os.fspath(source))
    try:
        return Path(os.path.relpath(text, folder)).as_posix()
    except ValueError:
        return Path(text).as_posix()


TREE = ("winners", "losers", "priorities")


def create_folder(
    target: Path,
    graph: RegionGraph,
    policy: Policy,
    *,
    tree: MergeTree | None,
    gold: Any,
    source: Any,
    sources: Mapping[str, Any],
    progress: ProgressCallback | None,
) -> None:
    """Write a session folder to `target`, which must not exist."""
    _refuse_place(target)
    policy.check(graph)
    real = Path(os.path.realpath(target))
    on_disk = is_on_disk(graph.superpixels.image)
    if on_disk:
        sources, gold = _lazy_sources(graph, gold, sources)
    arrays, where = _arrays_of(graph, tree, gold, source, real)
    inputs, copies = described_sources(sources, real, arrays, progress)
    arrays |= copies
    staging = target.with_name(f".{target.name}.{files.token()}.partial")
    with saving("The session", target):
        try:
            files.make_folder(staging)
            _fill(staging, graph, policy, arrays, where, inputs, progress)
            _put_in_place(staging, target)
        finally:
            files.remove_tree(staging)


def _lazy_sources(
    graph: RegionGraph, gold: Any, sources: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Return the inputs of a session on disk, and the gold to copy: none that is in a file."""
    inputs = dict(sources)
    cues: Any = graph.cues
    if are_on_disk(cues):
        files_of = zip(cues.names, cues.paths, strict=False)
        inputs |= {f"cue {name}": path for name, path in files_of if f"cue {name}" not in inputs}
        if cues.faces is not None and cues.faces.path:
            path = cues.faces.path
            inputs.setdefault(AFFINITIES, Source(open_volume(path).data, path, AFFINITIES))
    if isinstance(gold, (str, os.PathLike)):
        inputs.setdefault("gold", gold)
        check_same_shape(open_volume(gold), graph.superpixels.image.shape, "gold", "superpixels")
        gold = None
    elif gold is not None and is_lazy(unwrap(gold, "gold")):
        if "gold" not in inputs:
            raise InvalidInput(
                "The gold of superpixels on disk is not copied, and the session refers to it",
                argument="gold",
                remedy="pass the path of its file",
            )
        gold = None
    return inputs, gold


def _refuse_place(target: Path) -> None:
    if target.suffix != ".agglo":
        named = target.with_name(target.name + ".agglo") if target.name else "NAME.agglo"
        raise InvalidInput(
            f"`path` must end in .agglo, got {target}", argument="path", remedy=f"call it {named}"
        )
    if os.path.lexists(target):
        raise InvalidInput(
            f"{target} exists already",
            argument="path",
            remedy="open it, or choose another name for the new session",
        )
    if not target.parent.is_dir():
        raise InvalidInput(
            f"{target} cannot be made",
            argument="path",
            remedy=f"make the folder {target.parent} first",
        )


def _arrays_of(
    graph: RegionGraph, tree: MergeTree | None, gold: Any, source: Any, real: Path
) -> tuple[dict[str, NDArray[Any]], str | None]:
    """Return the arrays to store, by name, and the path of the superpixels if not among them."""
    arrays = packed(graph)
    labels = graph.superpixels
    where = None
    if is_on_disk(labels.image):
        if source is None:
            raise InvalidInput(
                "The superpixels are on disk, and the session refers to them",
                argument="source",
                remedy=SetOption("source", when="with their path"),
            )
        check_same_shape(open_volume(source), labels.image.shape, "source", "superpixels")
        arrays["ids"] = labels.ids
        where = relative_to(real, source)
    elif source is not None and labels.image.nbytes >= COPY_BELOW:
        stored = Fingerprint.of(dense_labels(open_volume(source), "source"))
        if stored != Fingerprint.of(labels):  # or the session could never be opened again
            raise InvalidInput(
                f"`source` must be the file of the superpixels, but {source} has {stored}, and the "
                f"superpixels have {Fingerprint.of(labels)}",
                argument="source",
                remedy="leave it out: the superpixels are then copied into the session",
            )
        where = relative_to(real, source)
    else:
        arrays |= {"superpixels": labels.image, "ids": labels.ids}
    if tree is not None:
        arrays |= {f"tree_{name}": getattr(tree, name) for name in TREE}
    if gold is not None:
        checked = check_labels(gold, "gold")
        check_same_shape(checked, labels.image.shape, "gold", "superpixels")
        if not np.any(checked):
            raise InvalidInput(
                "`gold` has no annotated voxel: it is 0 everywhere",
                argument="gold",
                remedy="pass a gold standard with segments, or leave it out",
            )
        arrays["gold"] = checked
    return arrays, where


def _fill(
    folder: Path,
    graph: RegionGraph,
    policy: Policy,
    arrays: Mapping[str, NDArray[Any]],
    where: str | None,
    inputs: dict[str, SourceNote],
    progress: ProgressCallback | None,
) -> None:
    group = folder / ARRAYS
    files.make_folder(group)
    notes, total = {}, sum(array.nbytes for array in arrays.values())
    done = 0
    for name, array in arrays.items():
        report(progress, "saving the session", done, total)
        notes[name] = write_array(group, name, array)
        done += array.nbytes
    plain = described(graph)
    manifest = Manifest(
        superpixels=Fingerprint.of(graph.superpixels),
        source=where,
        statistics=statistics_checksum(plain, notes),
        graph=plain,
        arrays=notes,
        policy=stored_policy.keep(folder, policy, stored_policy.FIRST),
        sources=inputs,
    )
    write_group(group, manifest.encode())
    files.write_new(folder / JOURNAL, b"")
    files.write_new(folder / TAIL, Tail(0, manifest.id).encode())
    write_manifest(folder, manifest)
    files.sync_folder(folder)
    report(progress, "saving the session", total, total)


def _put_in_place(staging: Path, target: Path) -> None:
    if os.path.lexists(target):  # created by another program in the meantime
        _refuse_place(target)
    files.rename(staging, target)
    try:
        files.sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            files.rename(target, staging)
        raise
