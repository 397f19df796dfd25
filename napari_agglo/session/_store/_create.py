"""A new session directory: made under another name, then put in place whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import LearnedPolicy, Policy
from napari_agglo.session._store import _disk, _policies
from napari_agglo.session._store._arrays import ARRAYS, write_array, write_group
from napari_agglo.session._store._digest import Fingerprint
from napari_agglo.session._store._errors import saving
from napari_agglo.session._store._examine import JOURNAL, TAIL
from napari_agglo.session._store._graph import described, packed, statistics_checksum
from napari_agglo.session._store._manifest import Manifest, write_manifest
from napari_agglo.session._store._superpixels import COPY_BELOW, relative_to
from napari_agglo.session._store._tail import Tail
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import check_labels, check_same_shape, dense_labels, open_volume

TREE = ("winners", "losers", "priorities")


def create_folder(
    target: Path,
    graph: RegionGraph,
    policy: Policy,
    *,
    tree: MergeTree | None,
    gold: Any,
    settings: Mapping[str, Any],
    source: Any,
    progress: ProgressCallback | None,
) -> None:
    """Write a session directory to `target`, where nothing may be yet."""
    _refuse_place(target)
    if isinstance(policy, LearnedPolicy):
        policy.check(graph)
    arrays, where = _arrays_of(graph, tree, gold, source, Path(os.path.realpath(target)))
    staging = target.with_name(f".{target.name}.{_disk.token()}.partial")
    with saving("The session", target):
        try:
            _disk.make_folder(staging)
            _fill(staging, graph, policy, arrays, where, settings, progress)
            _put_in_place(staging, target)
        finally:
            _disk.remove_tree(staging)


def _refuse_place(target: Path) -> None:
    if target.suffix != ".agglo":
        named = target.with_name(target.name + ".agglo") if target.name else "NAME.agglo"
        raise InvalidInput(f"`path` must end in .agglo, got {target}; call it {named}.")
    if os.path.lexists(target):
        raise InvalidInput(
            f"{target} exists, and would be lost; open it, or choose another name for the new one."
        )
    if not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be made: make the folder {target.parent} first.")


def _arrays_of(
    graph: RegionGraph, tree: MergeTree | None, gold: Any, source: Any, real: Path
) -> tuple[dict[str, NDArray[Any]], str | None]:
    """Return the arrays to store, by name, and where the superpixels are if not among them."""
    arrays = packed(graph)
    labels = graph.superpixels
    where = None
    if source is not None and labels.image.nbytes >= COPY_BELOW:
        found = Fingerprint.of(dense_labels(open_volume(source), "source"))
        if found != Fingerprint.of(labels):  # or the session could never be opened again
            raise InvalidInput(
                f"`source` must be the file of the superpixels, but {source} has {found}, and the "
                f"superpixels have {Fingerprint.of(labels)}."
            )
        where = relative_to(real, source)
    else:
        arrays |= {"superpixels": labels.image, "ids": labels.ids}
    if tree is not None:
        if tree.n_superpixels != graph.n_regions:
            raise InvalidInput(
                f"`tree` must be of the graph's {graph.n_regions} superpixels, got "
                f"{tree.n_superpixels}; agglomerate this graph."
            )
        arrays |= {f"tree_{name}": getattr(tree, name) for name in TREE}
    if gold is not None:
        checked = check_labels(gold, "gold")
        check_same_shape(labels.image.shape, checked, "superpixels", "gold")
        arrays["gold"] = checked
    return arrays, where


def _fill(
    folder: Path,
    graph: RegionGraph,
    policy: Policy,
    arrays: Mapping[str, NDArray[Any]],
    where: str | None,
    settings: Mapping[str, Any],
    progress: ProgressCallback | None,
) -> None:
    group = folder / ARRAYS
    _disk.make_folder(group)
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
        policy=_policies.keep(folder, policy, _policies.FIRST),
    ).with_settings(settings)
    write_group(group, manifest.encode())
    _disk.write_new(folder / JOURNAL, b"")
    _disk.write_new(folder / TAIL, Tail(0, manifest.id).encode())
    write_manifest(folder, manifest)
    _disk.sync_folder(folder)
    report(progress, "saving the session", total, total)


def _put_in_place(staging: Path, target: Path) -> None:
    if os.path.lexists(target):  # made by somebody in the meantime
        _refuse_place(target)
    _disk.rename(staging, target)
    try:
        _disk.sync_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            _disk.rename(target, staging)
        raise
