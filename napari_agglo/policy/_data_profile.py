"""Profiles of data: cues, spacing and sizes of superpixels, in the record of a learned policy.

A learned policy is good on data like those of its training. Its record has a profile of them
(``record["data"]``), and `data_differences` compares it with a graph that the policy is applied to:
a cue that is inverted or of another strength, pixels or superpixels of another size. `adapt_cues`
removes the differences in the values of the cues.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._policies import Policy, policy_record
from napari_agglo.volumes import OrientedCue, are_on_disk, cues_of_rows, unit_name, unit_symbol

# Limits beyond which a difference is reported. The differences between the halves, or the volumes,
# of every data set that the defaults were chosen on are all below them, in both directions.
_SHIFT = 0.15  # mean distance, 0 to 1, by which values would have to move
_STRENGTH = 1.5  # ratio of the contrast between boundaries and insides
_SPREAD = 1.8  # ratio of the standard deviations of a cue without such a contrast
_CLEAR = 0.05  # contrast of a cue that is inverted if the sign of its contrast has changed
_CONTRAST = 0.02  # contrast below which a cue does not stand out on boundaries
_SPACING = 1.3  # ratio of the sizes of a pixel
_SIZE = 4.0  # ratio of the median sizes of superpixels
_OTHER_UNIT = 30.0  # ratio of lengths of pixels from which sizes of superpixels are not compared


@dataclass(frozen=True)
class DataDifference:
    """A difference between the data of a training and those that a policy is applied to.

    Attributes
    ----------
    kind : {"inverted", "strength", "values", "oriented", "spacing", "superpixels"}
        The difference. The first three are removed by `adapt_cues`.
    cue : str
        The cue that differs; empty if the difference is not in a cue.
    text : str
        Message: the difference, and a remedy.
    """

    kind: str
    cue: str
    text: str

    def __str__(self) -> str:
        return self.text


def data_profile(graphs: Sequence[RegionGraph]) -> dict[str, Any]:
    """Return the profile of volumes as plain JSON, the mean over all of their pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([[1, 1, 2, 2]]), np.array([[0.0, 0.2, 0.8, 1.0]]))
    >>> profile = data_profile([graph])
    >>> profile["superpixel_size"], profile["cues"]["boundary"]["inside"]
    (2.0, 0.5)
    """
    first = graphs[0]
    cues = {}
    for k, name in enumerate(first.cue_names):
        histogram = np.zeros(first.layout.bins)
        sums, pixels = np.zeros(2), np.zeros(2)
        for graph in graphs:
            layout = graph.layout
            histogram += graph.regions[:, layout.region_histogram(k)].sum(axis=0)
            faces = graph.boundaries[:, layout.faces].sum(axis=0) @ layout.sampled(k)
            sums += (
                graph.boundaries[:, layout.boundary_sums(k).start].sum(),
                graph.regions[:, layout.region_sums(k).start].sum(),
            )
            pixels += (2 * faces, graph.regions[:, 0].sum())
        means = sums / np.maximum(pixels, 1) / 255
        cues[name] = {
            "histogram": [round(float(h), 6) for h in histogram / max(histogram.sum(), 1)],
            "boundary": round(float(means[0]), 4),
            "inside": round(float(means[1]), 4),
        }
        if first.layout.sources and len(first.layout.sources[k]) > 1:
            cues[name]["oriented"] = True
    sizes = np.concatenate([graph.regions[1:, 0] for graph in graphs])
    return {
        "spacing": [float(s) for s in first.spacing],
        **({"unit": first.unit} if first.unit else {}),
        "superpixel_size": round(float(np.median(sizes)), 1) if len(sizes) else 0.0,
        "cues": cues,
    }


def graph_digest(graph: RegionGraph) -> str:
    """Return a digest of the boundaries of a graph and their statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graphs = [region_graph(np.array([[1, 2]]), np.full((1, 2), v)) for v in (0.1, 0.1, 0.2)]
    >>> one, same, other = map(graph_digest, graphs)
    >>> one == same, one == other
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in (graph.edges, graph.boundaries):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def cue_digests(graph: RegionGraph) -> list[str]:
    """Return a digest of the pixels of each cue that `graph` has kept and that is not constant.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> cue = np.array([[0.1, 0.1, 0.7]])
    >>> graphs = [region_graph(np.array([ids]), cue) for ids in ([1, 1, 2], [1, 2, 3])]
    >>> cue_digests(graphs[0]) == cue_digests(graphs[1])
    True
    """
    if graph.cues is None or are_on_disk(graph.cues):  # which would be read as a whole
        return []
    planes = [plane for plane in graph.cues if np.ptp(plane)]
    return [hashlib.blake2b(plane.data, digest_size=16).hexdigest() for plane in planes]


def is_training_data(policy: Policy, graph: RegionGraph) -> bool:
    """Return whether a policy was trained on these data: an error measured there flatters it.

    The data are known by their graph, or by a cue, if the superpixels were made again.
    """
    volumes = (policy_record(policy) or {}).get("volumes", [])
    known = {one.get("digest") for one in volumes} - {None}
    if not known:
        return False
    if graph_digest(graph) in known:
        return True
    size = graph.superpixels.image.size
    alike = {
        digest for one in volumes if one.get("pixels") == size for digest in one.get("cues", ())
    }
    return bool(alike) and not alike.isdisjoint(cue_digests(graph))


def data_differences(policy: Policy, graph: RegionGraph) -> tuple[DataDifference, ...]:
    """Return the differences between the data of `graph` and those of a policy's training.

    Parameters
    ----------
    policy : Policy
        A policy without a profile of its training, such as the mean, gives no differences.
    graph : RegionGraph
        A graph that the policy can be applied to.

    Returns
    -------
    tuple of DataDifference
        Empty if the data are alike.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> sample = agglo.sample("cells2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues["boundary"])
    >>> policy = agglo.train(graph, sample.gold, strategy="flat", preset="minimal")
    >>> agglo.data_differences(policy, graph)
    ()
    >>> other = agglo.region_graph(superpixels, 0.3 * sample.cues["boundary"])
    >>> [one.kind for one in agglo.data_differences(policy, other)]
    ['strength']
    """
    known = (policy_record(policy) or {}).get("data")
    if not known or graph.cue_names != tuple(known["cues"]) or graph.layout.powers == 1:
        return ()  # the policy refuses such a graph
    if any(len(one["histogram"]) != graph.layout.bins for one in known["cues"].values()):
        return ()
    here = data_profile([graph])
    out = []
    # Superpixels of an inverted map have their borders inside of objects, where the other cues have
    # another contrast, though nothing is wrong with them: only their values are compared then.
    contrasts = not any(_flipped(was, here["cues"][name]) for name, was in known["cues"].items())
    for name, was in known["cues"].items():
        now = here["cues"][name]
        if was.get("oriented", False) != now.get("oriented", False):
            kinds = ("a value for each face", "a value for each pixel")
            first, second = kinds if was.get("oriented") else kinds[::-1]
            text = f"The cue {name!r} had {first} in the training, and has {second} here; use a "
            text += "graph of the same kind of cue"
            out.append(DataDifference("oriented", "", text))
            continue
        out += _cue_difference(name, was, now, contrasts)
    return (*out, *_scale_differences(known, here))


def _flipped(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether the values of a cue are those of the training upside down."""
    shift = _distance(was["histogram"], now["histogram"])
    return shift > _SHIFT and _distance(was["histogram"], now["histogram"][::-1]) < 0.5 * shift


def _cue_difference(
    name: str, was: Mapping[str, Any], now: Mapping[str, Any], contrasts: bool
) -> list[DataDifference]:
    adapt = "adapt the cues (`adapt_cues`) or choose another map"
    before, after = was["boundary"] - was["inside"], now["boundary"] - now["inside"]
    shift = _distance(was["histogram"], now["histogram"])
    flipped = _distance(was["histogram"], now["histogram"][::-1])
    contrast = min(abs(before), abs(after)) if before * after < 0 else 0.0  # of opposite signs
    opposite = contrast > _CLEAR or (contrast > _CONTRAST and flipped < shift)
    if (contrasts and opposite) or _flipped(was, now):
        text = (
            f"The cue {name!r} looks inverted: it is {now['boundary']:.2f} on boundaries and "
            f"{now['inside']:.2f} inside of superpixels, and in the training it was "
            f"{was['boundary']:.2f} and {was['inside']:.2f}; {adapt}"
        )
        return [DataDifference("inverted", name, text)]
    # the strength of a cue without a contrast on boundaries is the spread of its values
    limit, measure = _STRENGTH, "boundaries stand out by"
    if not contrasts or abs(before) < _CONTRAST:
        limit, measure = _SPREAD, "its standard deviation is"
        before, after = _deviation(was["histogram"]), _deviation(now["histogram"])
    ratio = after / before if before * after > 0 else 1.0
    if not 1 / limit <= ratio <= limit:
        text = (
            f"The cue {name!r} is {ratio:.2g} times as strong as in the training: {measure} "
            f"{after:.2f}, there {before:.2f}; {adapt}"
        )
        return [DataDifference("strength", name, text)]
    if shift > _SHIFT:
        text = (
            f"The values of the cue {name!r} differ from those of the training by {shift:.2f} in "
            f"the mean, of a range of 1; {adapt}"
        )
        return [DataDifference("values", name, text)]
    return []


def _scale_differences(known: Mapping[str, Any], here: Mapping[str, Any]) -> list[DataDifference]:
    out = []
    was, now = known["spacing"], here["spacing"]
    if len(was) != len(now):
        text = f"The policy was trained on {len(was)}-D data, and these are {len(now)}-D"
        return [DataDifference("spacing", "", f"{text}; train on data like these")]
    # data without a known spacing have 1 along every axis: their unit is not known either
    stated = any(s != 1 for s in was) and any(s != 1 for s in now)
    ratios = [b / a for a, b in zip(was, now, strict=True)]
    pixel, comparable = 1.0, True
    if stated and any(not 1 / _SPACING <= ratio <= _SPACING for ratio in ratios):
        pixel = math.prod(ratios)
        comparable = all(1 / _OTHER_UNIT < ratio < _OTHER_UNIT for ratio in ratios)
        text = (
            f"Pixels are of size {_sizes(here)}, and in the training they were of {_sizes(known)}; "
            f"check the spacing{'' if comparable else ' and its unit'}, or train on data like these"
        )
        out.append(DataDifference("spacing", "", text))
    sizes = known["superpixel_size"], here["superpixel_size"]
    if comparable and min(sizes) > 0 and not 1 / _SIZE <= sizes[1] * pixel / sizes[0] <= _SIZE:
        there = f"and in the training they had {sizes[0]:,.0f}"
        if pixel != 1:
            there = f"and those of the training would have {max(1, sizes[0] / pixel):,.0f}"
        text = f"Superpixels have {sizes[1]:,.0f} pixels in the median, {there}; make superpixels "
        text += "of that size (`min_size` of oversegment)"
        out.append(DataDifference("superpixels", "", text))
    return out


def _sizes(profile: Mapping[str, Any]) -> str:
    """Return the size of a pixel with its unit, which older profiles do not have.

    Examples
    --------
    >>> _sizes({"spacing": [0.04, 4], "unit": "micrometer"}), _sizes({"spacing": [10, 10]})
    ('0.04 x 4 µm', '10 x 10 (unit not known)')
    """
    unit = profile.get("unit")
    named = unit_symbol(unit) if unit and unit_name(unit) == unit else "(unit not known)"
    return f"{' x '.join(f'{s:g}' for s in profile['spacing'])} {named}"


def _distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the mean distance by which values move from one histogram to the other, 0 to 1."""
    steps = np.cumsum(np.asarray(first) - np.asarray(second))
    return float(np.abs(steps).sum() / len(first))


def _deviation(histogram: Sequence[float]) -> float:
    """Return the standard deviation of values with this histogram, 0 to 1."""
    shares = np.asarray(histogram)
    values = (np.arange(len(shares)) + 0.5) / len(shares)
    return math.sqrt(max(float(shares @ values**2 - (shares @ values) ** 2), 0.0))


def adapt_cues(policy: Policy, graph: RegionGraph) -> dict[str, Any]:
    """Return the cues of a graph, with values distributed as in the training of a policy.

    A cue without a difference stays as it is. An inverted cue is inverted again; a cue of another
    distribution is mapped, monotonically, to the distribution of the training.

    Parameters
    ----------
    policy : Policy
        A learned policy.
    graph : RegionGraph
        The graph to apply the policy to, with its cues (``keep_cues=True``).

    Returns
    -------
    dict of str to ndarray of float32, or OrientedCue
        The cues, 0 to 1, for `region_graph`.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> sample = agglo.sample("cells2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues["boundary"])
    >>> policy = agglo.train(graph, sample.gold, strategy="flat", preset="minimal")
    >>> weak = agglo.region_graph(superpixels, 0.4 * sample.cues["boundary"])
    >>> cues = agglo.adapt_cues(policy, weak)
    >>> bool(abs(cues["boundary"].mean() - sample.cues["boundary"].mean()) < 0.02)
    True
    """
    known = (policy_record(policy) or {}).get("data")
    if not known:
        raise InvalidInput(
            f"The policy {policy.name!r} has no record of the data that it was trained on",
            argument="policy",
            remedy="train it again, or change the cues yourself",
        )
    policy.check(graph)
    if graph.cues is None:
        raise InvalidInput(
            "`graph` has not kept its cues",
            argument="graph",
            remedy=SetOption("keep_cues", True),
        )
    if are_on_disk(graph.cues):
        raise InvalidInput(
            "`graph` has its cues on disk, and they are adapted in memory",
            argument="graph",
            remedy="adapt the cues of a crop, and change those of the whole in the same way",
        )
    kinds = {one.cue: one.kind for one in data_differences(policy, graph)}
    rows = graph.cues.reshape(-1, *graph.superpixels.image.shape)
    words = dict(zip(graph.word_names, graph.layout.words, strict=True))
    out = cues_of_rows(graph.cue_names, rows, graph.layout.sources, words)
    for name, cue in out.items():
        if name in words:
            continue
        values = cue.pixels if isinstance(cue, OrientedCue) else cue
        table = np.arange(256) / 255
        if kinds.get(name) == "inverted":
            table = table[::-1]
        elif name in kinds:
            table = _matching(values, known["cues"][name]["histogram"])
        if isinstance(cue, OrientedCue):
            whole = np.round(255 * table).astype(np.uint8)
            faces = tuple(None if plane is None else whole[plane] for plane in cue.faces)
            out[name] = OrientedCue(whole[values], faces)
        else:
            out[name] = table.astype(np.float32)[values]
    return out


def _matching(values: NDArray[np.uint8], histogram: Sequence[float]) -> NDArray[np.float64]:
    """Return, for each value 0..255, the value of the same rank in a histogram of 0 to 1."""
    counts = np.bincount(values.reshape(-1), minlength=256)
    ranks = (np.cumsum(counts) - 0.5 * counts) / max(counts.sum(), 1)
    below = np.concatenate([[0.0], np.cumsum(histogram)])
    # strictly ascending, without empty bins
    kept = np.concatenate([[True], np.diff(below) > 1e-9])
    at: NDArray[np.float64] = np.linspace(0, 1, len(below))[kept]
    mapped: NDArray[np.float64] = np.interp(ranks, below[kept] / below[-1], at)
    return mapped
