"""Plan of a block-wise run: inputs, settings and the grid, in one file of the results folder.

A plan names its inputs by path, each with a fingerprint, so that every process opens them for
itself and a changed input is noticed. Each stage has a digest of the settings that its results
depend on: a new plan in the same folder keeps the finished blocks of every stage whose digest is
unchanged.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo._typed_json import decode
from napari_agglo._version import __version__
from napari_agglo.blocks._block_grid import Grid
from napari_agglo.blocks._face_cues import AFFINITY, columns_of, offsets_of_text
from napari_agglo.errors import Advice, InvalidInput, SetOption
from napari_agglo.graph import Layout
from napari_agglo.volumes import OmeImage, Volume, open_volume, plan_image
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._on_disk import OnDisk
from napari_agglo.volumes._open import split_source
from napari_agglo.volumes._store_location import Place

PLAN = "plan.json"
_FORMAT = "napari-agglo blocks 1"
_TABLES = "napari-agglo blocks 2"  # changes when results of a stage have other files than before


@dataclass(frozen=True)
class Source:
    """An input: its path as `open_volume` takes it, and what the voxels were like.

    Attributes
    ----------
    path : str
        Absolute path or URL, with the key of an array in a file.
    shape : tuple of int
        Voxels along each axis.
    dtype : str
        Type of the voxels.
    fingerprint : str
        Checksum by which a change of the file is noticed.
    accepted : str
        The fingerprint of files that a user took for the same ones, later; results do not depend
        on it.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    fingerprint: str
    accepted: str = ""

    @classmethod
    def of(cls, source: object, name: str) -> Source:
        """Open an input once, and take its fingerprint.

        Parameters
        ----------
        source : str or path
            The file.
        name : str
            Name of the argument, for messages.

        Returns
        -------
        Source
            The input as it is now.
        """
        if not isinstance(source, str | os.PathLike):
            raise InvalidInput(
                f"`{name}` must be the path of a file, as every block opens it for itself, got a "
                f"{type(source).__name__}",
                argument=name,
                remedy="write it to a file such as NAME.zarr, and pass its path",
            )
        text = os.fspath(source)
        volume = open_volume(text)
        if "://" not in text:
            text = os.path.abspath(text)
        return cls(text, volume.shape, volume.dtype.str, _fingerprint(text, volume))

    def open(self) -> Volume:
        """Open the input, lazily where its format allows.

        Returns
        -------
        Volume
            The volume of the path.
        """
        return open_volume(self.path)

    def check(self, name: str, *, accept: bool = False) -> Source:
        """Refuse an input that is no longer the one of the plan.

        Parameters
        ----------
        name : str
            Name of the argument, for messages.
        accept : bool
            Take files of other times for those of the plan, if names and sizes are the same.

        Returns
        -------
        Source
            The input, with the fingerprint that was accepted.
        """
        now = Source.of(self.path, name)
        known = now.fingerprint
        if not self.fingerprint.startswith(_SECOND):
            known = _first_fingerprint(self.path, now.open())
        same_kind = (now.shape, now.dtype) == (self.shape, self.dtype)
        if same_kind and known in (self.fingerprint, self.accepted):
            return self
        sizes = self.fingerprint.split("-")[2:]
        same_sizes = same_kind and sizes != [] and sizes == known.split("-")[2:]
        if accept and same_sizes:
            return replace(self, accepted=known)
        again = Advice("plan again with the same folder; the work that depends on it is repeated")
        accepting = SetOption(
            "accept_inputs", True, when="if its content is the same, as of a restored copy"
        )
        what = "; names and sizes of its files are those of before, the times are others"
        raise InvalidInput(
            f"`{name}` ({self.path}) has changed since the plan was made, and finished blocks "
            f"would no longer match{what if same_sizes else ''}",
            argument=name,
            remedy=(accepting, again) if same_sizes else again,
        )


def _fingerprint(text: str, volume: Volume) -> str:
    """Return a checksum of names, sizes and times of the files of an input, not of their bytes.

    Behind it is one of names and sizes alone, where these are known.
    """
    digest = hashlib.sha256(repr((volume.shape, volume.dtype.str)).encode())
    path, _ = split_source(text)
    if isinstance(path, Place):  # whose files cannot be listed: some chunks stand for all
        for name in _METADATA:
            digest.update(path.read(name) or b"")
        digest.update(path.stamp().encode())
        for place, name in _some_chunks(volume.data):
            digest.update(place.stamp(name).encode())
        return _SECOND + digest.hexdigest()[:32]
    # What an array takes from the metadata around it; other arrays of a group do not matter.
    digest.update(repr((volume.spacing, volume.unit, volume.origin)).encode())
    sizes = digest.copy()
    for name, file in _files(path, volume.data):
        state = os.stat(file)
        sizes.update(repr((name, state.st_size)).encode())
        digest.update(repr((name, state.st_size, state.st_mtime_ns)).encode())
    return f"{_SECOND}{digest.hexdigest()[:32]}-{sizes.hexdigest()[:16]}"


def _files(path: Path, data: Any) -> Iterator[tuple[str, str]]:
    """Yield the files of an input on disk, each by its name in the input and by its path."""
    if path.is_file():
        yield "", str(path)
        return
    if not path.is_dir():  # a pattern
        for file in sorted(glob.glob(str(path))):
            yield file, file
        return
    first = data.files((slice(0, 1),) * data.ndim) if isinstance(data, OnDisk) else []
    for folder, folders, names in os.walk(str(first[0][0]) if first else path):
        folders.sort()  # the order in which they are walked
        for name in sorted(names):
            file = os.path.join(folder, name)
            yield os.path.relpath(file, path), file


_SECOND = "2-"  # begins the fingerprints that know more than those of earlier versions
_METADATA = ("zarr.json", ".zarray", ".zattrs", "attributes.json", "info")
_CHUNKS = 16  # of an input at a URL, which the fingerprint asks the server for


def _some_chunks(data: Any) -> list[tuple[Place, str]]:
    """Return the files of some chunks of an array, spread over all of it."""
    if not isinstance(data, OnDisk) or not data.chunks or not data.size:
        return []
    counts = [-(-n // side) for n, side in zip(data.shape, data.chunks, strict=True)]
    total = math.prod(counts)
    files: list[tuple[Place, str]] = []
    for k in range(min(_CHUNKS, total)):
        place = np.unravel_index(k * (total - 1) // max(1, min(_CHUNKS, total) - 1), counts)
        corner = [int(at) * side for at, side in zip(place, data.chunks, strict=True)]
        files += data.files(tuple(slice(a, a + 1) for a in corner))
    return files


def _first_fingerprint(text: str, volume: Volume) -> str:
    """Return the fingerprint of an input as plans of earlier versions have it."""
    digest = hashlib.sha256(repr((volume.shape, volume.dtype.str)).encode())
    path, _ = split_source(text)
    if isinstance(path, Place):
        for name in _METADATA:
            digest.update(path.read(name) or b"")
    elif path.is_dir():
        count = size = latest = 0
        for folder, _, names in os.walk(path):
            for name in names:
                state = os.stat(os.path.join(folder, name))
                count, size = count + 1, size + state.st_size
                latest = max(latest, state.st_mtime_ns)
        digest.update(repr((count, size, latest)).encode())
    elif path.is_file():
        state = path.stat()
        digest.update(repr((state.st_size, state.st_mtime_ns)).encode())
    return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Plan:
    """Inputs and settings of a run; `make_plan` checks and completes them.

    Attributes
    ----------
    shape, spacing : tuple
        Voxels along each axis, and the distance between them.
    unit : str, optional
        Unit of the spacing, if known.
    block, chunks : tuple of int
        Voxels of a block, and of a chunk of the stores that are written.
    shards : bool
        Whether a block is one shard, that is one file, of these stores.
    cues : dict of str to Source
        Evidence by name. Those that a pixel classifier predicts are not among them.
    ranges : dict of str to pair of float
        Values that mean 0 and 1, of the cues that declare them.
    affinities : Source, optional
        Channels of affinities. Theirs are the first cues.
    offsets : str
        Offsets of the affinities, as JSON.
    nan : str
        "boundary" if NaN counts as boundary, "refuse" otherwise.
    superpixels : Source, optional
        Label image; without it, superpixels are made of the cue `boundary`.
    gold, mask, image : Source, optional
        Gold standard, mask of the superpixels, image of the pixel classifier.
    predicted : tuple of str
        Cues that a pixel classifier predicts from `image`.
    boundary : str
        Name of the cue of which superpixels are made.
    sigma : float, optional
        Smoothing of that cue, in the unit of the spacing.
    min_size : int, optional
        Least size of a superpixel in voxels.
    per_plane : bool
        Whether each plane has superpixels of its own.
    halo : int
        Voxels around a block that its superpixels are made with.
    statistics, bins : str, int
        Statistics of the graph, and bins of its histograms, as of `region_graph`.
    dams : bool
        Whether regions that a line of 0 separates are adjacent.
    policy : str
        Name of a policy, a file, or ``"module:function"``.
    policy_digest, classifier_digest : str
        Checksums of the files of policy and pixel classifier; empty if there is none.
    threshold : float
        Threshold of the label images.
    levels : int
        Levels of the pyramids.
    ome_version : str
        Version of OME-Zarr of the stores.
    precomputed : bool
        Whether labels are written for Neuroglancer too.
    hierarchical : bool
        Whether merges are made in groups of blocks.
    approximate : float
        Priority below which a hierarchical run makes merges of a learned policy, though they are
        not proven to be final; 0 for the mean policy.
    workers : int
        Tasks that run at a time.
    memory : int
        Budget of memory in bytes.
    predict_bytes, trees : int
        Memory of the filters of a pixel classifier, and its trees, for the estimate.
    superpixel_density, boundary_density : float
        Superpixels and boundaries of a voxel by a sample of the volume, for the estimate; 0 if they
        are not known.
    copy_to : str
        URL that the labels are copied to at the end; empty if there is none.
    """

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    unit: str | None
    block: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: bool
    cues: dict[str, Source]
    affinities: Source | None
    offsets: str
    ranges: dict[str, tuple[float, float]]
    nan: str
    superpixels: Source | None
    gold: Source | None
    mask: Source | None
    image: Source | None
    predicted: tuple[str, ...]
    boundary: str
    sigma: float | None
    min_size: int | None
    per_plane: bool
    halo: int
    statistics: str
    bins: int
    dams: bool
    policy: str
    policy_digest: str
    classifier_digest: str
    threshold: float
    levels: int
    ome_version: str
    precomputed: bool
    hierarchical: bool
    approximate: float
    workers: int
    memory: int
    predict_bytes: int = 0
    trees: int = 0
    superpixel_density: float = 0.0
    boundary_density: float = 0.0
    copy_to: str = ""

    @cached_property
    def grid(self) -> Grid:
        """The blocks."""
        return Grid(self.shape, self.block)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def cue_names(self) -> tuple[str, ...]:
        """Names of all cues, in the order of the columns of the tables."""
        return self._columns[0]

    @cached_property
    def _columns(self) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
        plain = (*self.cues, *self.predicted)
        if self.affinities is None:
            return plain, ()
        return columns_of(self.shape, offsets_of_text(self.offsets), plain)

    @property
    def layout(self) -> Layout:
        """Columns of the tables."""
        kept = (self.bins, 4) if self.statistics == "all" else (0, 1)
        return Layout(self.ndim, len(self.cue_names), *kept, self._columns[1])

    @property
    def mean_cue(self) -> int:
        """The cue that the mean policy reads: that of the boundary, or else of affinities."""
        names = self.cue_names
        return names.index("boundary") if "boundary" in names else names.index(AFFINITY)

    @property
    def label_dtype(self) -> np.dtype[Any]:
        """Type of the superpixels and labels: that of the given superpixels, or uint32."""
        given = "<u4" if self.superpixels is None else self.superpixels.dtype
        return np.dtype(given).newbyteorder("=")

    @property
    def bytes_per_voxel(self) -> int:
        """Bytes of all inputs at one voxel."""
        named = [*self.cues.values(), self.superpixels, self.mask, self.gold, self.image]
        plain = sum(np.dtype(one.dtype).itemsize for one in named if one is not None)
        faces = self.affinities
        return plain + (np.dtype(faces.dtype).itemsize * faces.shape[0] if faces else 0)

    def pyramid(self, name: str) -> OmeImage:
        """Return the levels of a store of labels.

        Parameters
        ----------
        name : str
            Name of the image.

        Returns
        -------
        OmeImage
            Shape, scale and place of each level.
        """
        return plan_image(
            name, self.shape, self.spacing, unit=self.unit, version=self.ome_version,
            levels=self.levels,
        )  # fmt: skip

    def sources(self) -> dict[str, Source]:
        """Return the inputs by their names in messages.

        Returns
        -------
        dict of str to Source
            Superpixels, gold, mask, image, affinities and each cue, as far as they are given.
        """
        single = ("superpixels", "gold", "mask", "image", "affinities")
        given = {name: getattr(self, name) for name in single}
        given |= {f"cues[{name!r}]": cue for name, cue in self.cues.items()}
        return {name: source for name, source in given.items() if source is not None}

    def digest(self, stage: str) -> str:
        """Return the checksum of the settings that the results of a stage depend on.

        Parameters
        ----------
        stage : str
            Name of the stage.

        Returns
        -------
        str
            Sixteen hexadecimal digits.
        """
        plain = asdict(self, dict_factory=_without_accepted)
        wanted = {name: plain[name] for name in _DEPENDS[stage.partition("-")[0]]}
        wanted["version"] = _TABLES
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]

    def check_inputs(self, *, accept: bool = False) -> Plan:
        """Refuse inputs that are no longer those of the plan.

        Parameters
        ----------
        accept : bool
            Take files of other times for those of the plan, if names and sizes are the same.

        Returns
        -------
        Plan
            The plan, with the fingerprints that were accepted.
        """
        now = {name: one.check(name, accept=accept) for name, one in self.sources().items()}
        cues = {name: now.pop(f"cues[{name!r}]") for name in self.cues}
        changes: dict[str, Any] = {"cues": cues, **now}
        return replace(self, **changes)

    def write(self, folder: Path) -> None:
        """Write the plan to a folder.

        Parameters
        ----------
        folder : Path
            The results folder.
        """
        plain = {"format": _FORMAT, "version": __version__, **asdict(self)}
        files.write_whole(folder / PLAN, json.dumps(plain, indent=1).encode())


def _without_accepted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name != "accepted"}


def read_plan(folder: Path) -> Plan:
    """Read the plan of a folder; refuse a folder without one."""
    try:
        plain = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        if not isinstance(plain, dict) or plain.pop("format", None) != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT!r}")
        plain.pop("version", None)
        plan: Plan = decode(Plan, plain, "plan")
    except FileNotFoundError:
        raise InvalidInput(
            f"{folder} has no plan of a block-wise run",
            argument="folder",
            remedy="make one first: napari-agglo blocks plan FOLDER --cues FILE",
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"the plan in {folder} cannot be read ({error})",
            argument="folder",
            remedy="plan again; finished blocks are kept",
        ) from error
    return plan


_VOLUME = ("shape", "spacing", "block")
_PREDICT = (*_VOLUME, "image", "predicted", "classifier_digest")
_CUT = (
    *_PREDICT, "superpixels", "cues", "affinities", "offsets", "ranges", "nan", "mask", "boundary",
    "sigma", "min_size", "per_plane", "halo",
)  # fmt: skip
_STORE = ("chunks", "shards", "unit", "ome_version")
_GRAPH = (*_CUT, "statistics", "bins", "dams")
_TREE = (*_GRAPH, "hierarchical", "approximate", "policy", "policy_digest")
# The settings that the results of a stage depend on, those of the stages before it included.
_DEPENDS: Mapping[str, tuple[str, ...]] = {
    "predict": (*_PREDICT, *_STORE),
    "cut": _CUT,
    "join": _CUT,
    "number": _CUT,
    "superpixels": (*_CUT, *_STORE, "levels"),  # level 1 may be written with level 0
    "overview": (*_CUT, *_STORE, "levels"),
    "statistics": _GRAPH,
    "reduce": _TREE,
    "graph": _TREE,
    "whole": _GRAPH,  # the graph of a hierarchical run, which is made when a session needs it
    "tree": _TREE,
    "table": (*_TREE, "threshold"),
    "labels": (*_TREE, "threshold", *_STORE, "levels"),
    "pyramid": (*_TREE, "threshold", *_STORE, "levels"),
    "precomputed": (*_TREE, "threshold", *_STORE, "levels"),
    "copy": (*_TREE, "threshold", *_STORE, "levels", "precomputed", "copy_to"),
    "publish": (*_TREE, "threshold", *_STORE, "levels", "precomputed", "copy_to"),
    "overlap": (*_CUT, "gold"),
    "evaluate": (*_TREE, "gold"),
}
assert {name for names in _DEPENDS.values() for name in names} <= {f.name for f in fields(Plan)}
