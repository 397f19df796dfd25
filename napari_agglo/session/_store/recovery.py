"""Repair of a damaged session folder, as far as other parts determine the damaged one.

The manifest has a copy beside the arrays. Statistics are computed again from superpixels and cues,
and used only if they are the same, bit for bit. The tree can be computed again at any time. Damaged
files are renamed; nothing is deleted. In its own file because it is imported only for a repair.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.errors import AggloError, InvalidInput
from napari_agglo.graph import DEFAULT_BINS, region_graph
from napari_agglo.session._store import stored_policy
from napari_agglo.session._store.arrays import (
    ARRAYS,
    STATISTICS,
    packed,
    read_array,
    read_attributes,
    unpacked,
    write_array,
)
from napari_agglo.session._store.create import TREE, match_superpixels, read_superpixels
from napari_agglo.session._store.journal import JOURNAL, Journal
from napari_agglo.session._store.lock import Lock
from napari_agglo.session._store.manifest import (
    MANIFEST,
    Manifest,
    decode_manifest,
    read_manifest,
    write_manifest,
)
from napari_agglo.session._store.store_errors import PackageMissing, Report, SessionDamaged, saving
from napari_agglo.session._store.stored_policy import do_without_lost
from napari_agglo.volumes import DenseLabels, cues_of_rows
from napari_agglo.volumes import _replace_file as files


def recover_folder(folder: Path, superpixels: Any = None) -> Report:
    """Repair a session folder under its lock, and report the repairs."""
    if not (folder / MANIFEST).exists() and not (folder / ARRAYS).is_dir():
        raise InvalidInput(
            f"{folder} is not a session: it has neither {MANIFEST} nor {ARRAYS}",
            argument="path",
            remedy="choose a NAME.agglo folder",
        )
    lock = Lock(folder)
    try:
        return _Recovery(folder).run(superpixels)
    finally:
        lock.release()


class _Recovery:
    """A repair of a folder, and its findings so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sentences: list[str] = []
        self.aside: list[Path] = []
        self.unmended = False

    def run(self, superpixels: Any) -> Report:
        manifest = self._manifest()
        labels = self._superpixels(manifest, superpixels)
        self._statistics(manifest, labels)
        manifest = self._optional(manifest)
        try:
            if stored_policy.function_of(manifest.policy) is None:
                stored_policy.recall(self.folder, manifest.policy)
        except PackageMissing as error:
            self.sentences.append(
                f"{_plain(error)} Until then the session opens read-only, unless an edit since its "
                "last snapshot needs the policy."
            )
        except AggloError as error:
            self._give_up(_plain(error))
        report = self._journal(manifest)
        sentences = (*self.sentences, *report.sentences)
        aside = (*self.aside, *report.aside)
        return replace(report, sentences=sentences, aside=aside, unmended=self.unmended)

    def _manifest(self) -> Manifest:
        try:
            return read_manifest(self.folder)
        except SessionDamaged as error:
            is_there = (self.folder / MANIFEST).exists()
            reason = _plain(error) if is_there else f"{self.folder} has no {MANIFEST}."
        try:
            copy = decode_manifest(read_attributes(self.folder / ARRAYS))
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise SessionDamaged(
                f"{reason} Its copy in {ARRAYS} is damaged too ({error}); nothing was changed",
                argument="path",
                remedy=f"restore {MANIFEST} from a copy of the session",
            ) from error
        if (self.folder / MANIFEST).exists():
            self._move_aside(MANIFEST)
        write_manifest(self.folder, copy)
        self.sentences.append(
            f"{MANIFEST} was damaged or missing; it is now as at the creation of the session, and "
            "later settings are lost."
        )
        return copy

    def _superpixels(self, manifest: Manifest, replacement: Any) -> DenseLabels | None:
        try:
            return read_superpixels(self.folder, manifest)
        except AggloError as error:
            if replacement is None:
                self._give_up(f"{_plain(error)} To restore them, pass superpixels=PATH.")
                return None
        labels = match_superpixels(replacement, manifest)
        if manifest.source is None:
            for name, array in (("superpixels", labels.image), ("ids", labels.ids)):
                if not self._is_whole(manifest, name):
                    self._put_back(name, array)
        return labels

    def _statistics(self, manifest: Manifest, labels: DenseLabels | None) -> None:
        names = [name for name in STATISTICS if not self._is_whole(manifest, name)]
        broken_cues = "cues" in manifest.arrays and not self._is_whole(manifest, "cues")
        if broken_cues:
            self._give_up("The cues are damaged, and cannot be computed again.")
        if not names or labels is None:
            return
        if "cues" not in manifest.arrays or broken_cues:
            self._give_up(
                f"The statistics {names} are damaged, and without cues they cannot be computed "
                "again; make a new session from the same data."
            )
            return
        fresh = self._computed(manifest, labels)
        for name in names:
            self._put_back(name, fresh[name])
        # read_array compares the checksums: the arrays must be as before the damage.
        arrays = {
            name: read_array(self.folder / ARRAYS, name, manifest.arrays[name])
            for name in STATISTICS
        }
        unpacked(labels, manifest.graph, arrays)

    def _computed(self, manifest: Manifest, labels: DenseLabels) -> dict[str, Any]:
        graph = manifest.graph
        cues = read_array(self.folder / ARRAYS, "cues", manifest.arrays["cues"])
        return packed(
            region_graph(
                labels.ids[labels.image],
                cues_of_rows(graph.cue_names, cues, graph.sources, graph.words),
                spacing=graph.spacing,
                ranges=(0, 255),
                statistics="all" if graph.powers == 4 else "mean",
                bins=graph.bins or DEFAULT_BINS,
                dams=graph.dams,
                keep_cues=False,
            )
        )

    def _optional(self, manifest: Manifest) -> Manifest:
        """Drop damaged arrays that the session can do without."""
        groups = {"merge tree": tuple(f"tree_{name}" for name in TREE), "gold": ("gold",)}
        for key, note in manifest.sources.items():
            if (note.array or "").startswith("source_"):
                groups[f"copy of the {key}"] = (str(note.array),)
        for what, names in groups.items():
            stored = [name for name in names if name in manifest.arrays]
            if all(self._is_whole(manifest, name) for name in stored):
                continue
            rest = {k: note for k, note in manifest.arrays.items() if k not in stored}
            manifest = replace(manifest, arrays=rest)
            write_manifest(self.folder, manifest)
            for name in stored:
                self._move_aside(f"{ARRAYS}/{name}")
            self.sentences.append(f"The {what} was damaged; the session continues without it.")
        return manifest

    def _journal(self, manifest: Manifest) -> Report:
        if not (self.folder / JOURNAL).exists():
            with saving("The journal", self.folder / JOURNAL):
                files.write_new(self.folder / JOURNAL, b"")
                files.sync_folder(self.folder)
            self.sentences.append(f"{JOURNAL} was missing; a new one without entries was made.")
        journal = Journal(self.folder, manifest.id, read_only=False)
        try:
            self.sentences += do_without_lost(self.folder, journal)
        finally:
            journal.close()
        return journal.report

    def _is_whole(self, manifest: Manifest, name: str) -> bool:
        if name not in manifest.arrays:
            return False
        try:
            read_array(self.folder / ARRAYS, name, manifest.arrays[name])
        except SessionDamaged:
            return False
        return True

    def _put_back(self, name: str, array: np.ndarray[Any, Any]) -> None:
        if (self.folder / ARRAYS / name).exists():
            self._move_aside(f"{ARRAYS}/{name}")
        with saving(f"The array {name}", self.folder):
            write_array(self.folder / ARRAYS, name, array)
            files.sync_folder(self.folder / ARRAYS)
        self.sentences.append(f"The array {name!r} was damaged and is restored.")

    def _move_aside(self, inner: str) -> None:
        source = self.folder / inner
        target = files.free_name(self.folder, f"{source.stem}.damaged", source.suffix)
        with saving("The damaged part", target):
            if source.exists():
                files.rename(source, target)
                files.sync_folder(self.folder)
                self.aside.append(target)
                self.sentences.append(f"The damaged {inner} was renamed {target.name}.")

    def _give_up(self, sentence: str) -> None:
        self.unmended = True
        self.sentences.append(sentence)


def _plain(error: AggloError) -> str:
    """Return an error as a sentence, without the advice to call recover()."""
    if isinstance(error, InvalidInput) and "recover()" in str(error.remedy):
        return f"{error.problem.rstrip('.')}."
    return f"{str(error).rstrip('.')}."
