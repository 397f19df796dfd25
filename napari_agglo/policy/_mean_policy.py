"""Policies by the mean of a cue over the boundary, also of an oriented cue.

In its own file because each policy is one: see `_policies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._model import MEAN
from napari_agglo.policy._policies import policies
from napari_agglo.policy._score import Scoring, scoring


@policies.add("mean")
@dataclass(frozen=True)
class MeanPolicy:
    """Merge first where the mean of a cue over the boundary is lowest.

    Of a graph without the cue "boundary", the default, the first oriented cue is taken.

    Parameters
    ----------
    cue : str
        The name of the cue.
    """

    cue: str = "boundary"
    name: ClassVar[str] = "mean"
    probabilistic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True

    def cue_in(self, graph: RegionGraph) -> str:
        """Return the cue in a graph; refuse one that has no value on some faces.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        str
            The name of the cue.
        """
        name, layout = self.cue, graph.layout
        if name == MeanPolicy.cue and name not in graph.cue_names:
            oriented = (k for k, row in enumerate(layout.sources) if len(row) > 1)
            name = next((graph.cue_names[k] for k in oriented), name)
        if not layout.sampled(graph.cue_index(name)).all():
            raise InvalidInput(
                f"The cue {name!r} has no value on faces across some axes, so a boundary may have "
                "no mean",
                argument="cue",
                remedy="merge by the cue of the nearest voxels along all axes",
            )
        return name

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Raises
        ------
        InvalidInput
            If the graph cannot be scored.
        """
        self.cue_in(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        return graph.boundary_mean(self.cue_in(graph))

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record for the compiled loop, with the column of the cue's sum.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        return scoring(MEAN, graph.layout.boundary_sums(graph.cue_index(self.cue_in(graph))).start)

    def to_json(self) -> dict[str, Any]:
        """Return the cue.

        Returns
        -------
        dict
            Plain numbers and strings, with the name of the policy as "kind".
        """
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> MeanPolicy:
        """Return the policy of the result of `to_json`.

        Parameters
        ----------
        words : dict
            The result of `to_json`.

        Returns
        -------
        MeanPolicy
            The same policy.

        Raises
        ------
        InvalidInput
            If `words` are not those of this policy.
        """
        if not isinstance(words.get("cue"), str):
            raise InvalidInput(
                f"The policy 'mean' needs the name of a cue, got {words!r}",
                argument="words",
                remedy="name one, such as {'cue': 'boundary'}",
            )
        return cls(words["cue"])


@policies.add("oriented mean")
@dataclass(frozen=True)
class OrientedMeanPolicy:
    """Merge first where the mean of an oriented cue over the boundary is lowest.

    A face reads the channel of its own direction: of an oriented map (`oriented_boundary`) that of
    its border, and of affinities that of its axis. Without a name the first oriented cue that has a
    value on all faces is taken.

    Parameters
    ----------
    cue : str, optional
        The name of an oriented cue.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> affinities = agglo.affinities(np.ones((2, 1, 3)), [(-1, 0), (0, -1)])
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), affinities)
    >>> agglo.agglomerate(graph, "oriented mean").n_segments(0.5)
    1
    """

    cue: str | None = None
    name: ClassVar[str] = "oriented mean"
    probabilistic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True

    def mean_in(self, graph: RegionGraph) -> MeanPolicy:
        """Return the mean of the cue in a graph; refuse a graph without an oriented cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        MeanPolicy
            The mean of that cue.
        """
        layout = graph.layout
        whole = [
            name
            for k, name in enumerate(graph.cue_names)
            if layout.sources and len(layout.sources[k]) > 1 and layout.sampled(k).all()
        ]
        if self.cue is None and not whole:
            raise InvalidInput(
                f"The policy 'oriented mean' needs an oriented cue, and the cues are "
                f"{', '.join(graph.cue_names)}",
                argument="policy",
                remedy=(
                    "pass oriented_boundary(image) or affinities(array) among the cues",
                    SetOption("policy", "mean"),
                ),
            )
        return MeanPolicy(whole[0] if self.cue is None else self.cue)

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Raises
        ------
        InvalidInput
            If the graph cannot be scored.
        """
        self.mean_in(graph).check(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        return self.mean_in(graph).score(graph)

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record for the compiled loop, with the column of the cue's sum.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        return self.mean_in(graph).kernel(graph)

    def to_json(self) -> dict[str, Any]:
        """Return the cue.

        Returns
        -------
        dict
            Plain numbers and strings, with the name of the policy as "kind".
        """
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> OrientedMeanPolicy:
        """Return the policy of the result of `to_json`.

        Parameters
        ----------
        words : dict
            The result of `to_json`.

        Returns
        -------
        OrientedMeanPolicy
            The same policy.

        Raises
        ------
        InvalidInput
            If `words` are not those of this policy.
        """
        cue = words.get("cue")
        if not (cue is None or isinstance(cue, str)):
            raise InvalidInput(
                f"The policy 'oriented mean' needs the name of a cue or none, got {words!r}",
                argument="words",
                remedy="name one, such as {'cue': 'boundary_oriented'}",
            )
        return cls(cue)
