"""Questions in place of a gold standard: a policy learned from answers to "the same object?".

Strategy: the present policy, at first the mean, makes a hierarchy. Boundaries between its regions,
at several scales, are the candidates; the most doubtful one of a drawn scale is asked. An answer
says that each of the two regions is one object, and whether both are the same. So answers grow
*components*: sets of superpixels of one object, and pairs of components of different objects. They
are the gold standard of a training in which all other pairs are unknown, and constraints of the
next hierarchy.

Few answers teach less than the mean of the boundary cue knows already: which features matter is
then chance. So the policy has a share of the mean, its *prior*, which is the less the more answers
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, check_progress, part_of
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import InvalidInput, check_choice, check_whole
from napari_agglo.features import feature_map
from napari_agglo.graph import RegionGraph, contracted
from napari_agglo.learning._fit import ForestSettings, logistic_of, with_prior
from napari_agglo.learning._train import learn_volumes
from napari_agglo.learning._training_volume import TrainingVolume, gold_table
from napari_agglo.policy import Forest, LearnedPolicy, MeanPolicy, Policy, stretched

_COARSEST = 16  # regions of the coarsest scale that is asked about, at least
_CERTAIN = 0.3  # priority of a learned policy, above which a region may be of several objects
_FINE = 8  # superpixels to a region, above which the mean may have joined several objects
_MISTRUST = 0.5  # weight of a region around one that could not be told, one of two
_EARLY_EPOCHS = 1  # of the policies between questions
_WORTH = 12  # clear answers that count as much as the prior


@dataclass(frozen=True, eq=False)
class Question:
    """A pair of regions that touch, to be told one object or two.

    Attributes
    ----------
    first, second : ndarray of uint64
        The superpixels of each region (the user's ids).
    wrong : float
        Probability of the present policy that merging them is wrong; 0.5 before the first training.
    """

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    wrong: float


@dataclass(frozen=True, eq=False)
class _Answer:
    first: NDArray[np.int64]  # dense ids
    second: NDArray[np.int64]
    same: bool | None
    start: float  # priority of the pair by the policy of the start


@dataclass(frozen=True, eq=False)
class _Known:
    """Components of superpixels by answers, 0 for superpixels without, and different pairs."""

    component: NDArray[np.int64]
    different: set[tuple[int, int]]

    @classmethod
    def of(cls, answers: list[_Answer], n_regions: int) -> _Known:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        clear = [answer for answer in answers if answer.same is not None]
        links = [np.zeros((2, 0), np.int64)]
        for answer in clear:
            sides = [answer.first, answer.second]
            for members in [np.concatenate(sides)] if answer.same else sides:
                links.append(np.stack([np.full_like(members, members[0]), members]))
        first, second = np.concatenate(links, axis=1)
        size = n_regions + 1
        matrix = coo_array((np.ones(first.size, np.int8), (first, second)), shape=(size, size))
        numbers = np.zeros(size, np.int64)
        inside = np.unique(second)
        sets = connected_components(matrix, directed=False)[1]
        numbers[inside] = np.unique(sets[inside], return_inverse=True)[1].reshape(-1) + 1
        different = set()
        for answer in clear:
            a, b = (int(numbers[members[0]]) for members in (answer.first, answer.second))
            if not answer.same and a != b:
                different.add((min(a, b), max(a, b)))
        return cls(numbers, different)

    def assigned(self) -> NDArray[np.int64]:
        """Return rows of gold segments by superpixel, for the votes of `boundary_labels`.

        The first row has the components, which vote -1 within each and +1 between any two; in the
        second all are one segment, which votes -1 on every pair; and each further row has one pair
        of different components. The sums are negative within components, positive between
        different ones, and 0, unknown, otherwise.
        """
        component = self.component
        rows = [component, (component > 0).astype(np.int64)]
        for a, b in sorted(self.different):
            rows.append(np.where(component == a, 1, np.where(component == b, 2, 0)))
        return np.stack(rows)

    def lut(self) -> NDArray[np.uint32]:
        """Return the smallest superpixel of the component of each superpixel."""
        lut = np.arange(self.component.size, dtype=np.uint32)
        inside = np.flatnonzero(self.component)
        _, first, back = np.unique(self.component[inside], return_index=True, return_inverse=True)
        lut[inside] = inside[first[back.reshape(-1)]]
        return lut


@dataclass(frozen=True, eq=False)
class _Learned:
    """A policy, the answers that it learned from, and the scales of the next questions."""

    answers: list[_Answer]
    policy: Policy
    scales: list[_Scale]


class Questions:
    """Teach a policy by answers to questions about pairs of regions.

    Parameters
    ----------
    graph : RegionGraph
        The regions to ask about.
    every : int
        Answers between two trainings.
    order : {"doubt", "random"}
        *doubt*: ask first where the policy is least certain. *random*: any boundary, for
        comparison.
    preset : str
        Features, as for `train`.
    settings : ForestSettings, optional
        Parameters of the forest.
    start : Policy, optional
        The policy of the first questions; the mean of the cue "boundary" by default.
    seed : int
        Same graph, answers and seed, same questions and policy.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> from napari_agglo.learning import Questions, answer_by_gold
    >>> sample = agglo.sample("cells2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues["boundary"])
    >>> questions = Questions(graph, every=10, preset="minimal")
    >>> person = answer_by_gold(graph, sample.gold)
    >>> for _ in range(20):
    ...     questions.answer(person(questions.next()))
    >>> questions.n_answers
    20
    >>> questions.train().record["answers"]
    20
    """

    def __init__(
        self,
        graph: RegionGraph,
        *,
        every: int = 5,
        order: str = "doubt",
        preset: str = "shape",
        settings: ForestSettings | None = None,
        start: Policy | None = None,
        seed: int = 0,
    ) -> None:
        check_whole("every", every, 1, 1000)
        check_choice("order", order, ("doubt", "random"))
        check_whole("seed", seed, 0, 2**32 - 1)
        self._start = start or MeanPolicy()
        self._start.check(graph)
        self.graph = graph
        self._features = feature_map(graph, preset)
        self._every, self._order = int(every), order
        self._settings = settings or ForestSettings()
        self._seed = int(seed)
        self._answers: list[_Answer] = []
        self._question: tuple[Question, _Answer] | None = None
        self._learned: _Learned | None = None  # replaced as a whole, maybe by another thread

    @property
    def policy(self) -> Policy:
        """The present policy: that of the start, until answers of both kinds have been given."""
        return self._start if self._learned is None else self._learned.policy

    @property
    def n_answers(self) -> int:
        """Number of answers, those of None included."""
        return len(self._answers)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of the answers True, False and None."""
        same = [answer.same for answer in self._answers]
        return same.count(True), same.count(False), same.count(None)

    @property
    def n_new(self) -> int:
        """Number of answers that the present policy has not learned from."""
        learned = [] if self._learned is None else self._learned.answers
        common = 0
        while common < min(len(learned), self.n_answers) and (
            learned[common] is self._answers[common]
        ):
            common += 1
        return self.n_answers - common

    @property
    def is_due(self) -> bool:
        """Whether to learn: at first, after `every` answers, and if one was taken back."""
        learned = self._learned
        if learned is None or self.n_new >= self._every:
            return True
        return self.n_answers - self.n_new < len(learned.answers)

    def next(self, *, learn: bool = True) -> Question:
        """Return the question to answer; the same one until it is answered.

        Parameters
        ----------
        learn : bool
            Whether to learn before, if it is due. False, for a program that calls `learn` in
            another thread: ask by the present policy, which is refused if no question is left.

        Returns
        -------
        Question
            Two regions, and what is known of their boundary.
        """
        if self._question is None:
            if learn and self.is_due:
                self.learn()
            pair = self._choose()
            if pair is None and learn and self.n_new:
                self.learn()
                pair = self._choose()
            if pair is None:
                raise InvalidInput(
                    "No question is left", argument="graph", remedy="train with the answers so far"
                )
            self._question = pair
        return self._question[0]

    def answer(self, same: bool | None) -> None:
        """Answer the question: True for one object, False for two, None for "unclear".

        Parameters
        ----------
        same : bool or None
            The answer.
        """
        if same not in (True, False, None):
            raise InvalidInput(
                f"`same` must be True, False or None, got {same!r}",
                argument="same",
                remedy="pass None if the answer is unclear",
            )
        self.next()
        assert self._question is not None
        pair = self._question[1]
        self._answers.append(replace(pair, same=same))
        self._question = None

    def undo(self) -> None:
        """Take the last answer back, and ask the question again."""
        if not self._answers:
            raise InvalidInput(
                "There is no answer to take back", argument="answers", remedy="answer a question"
            )
        last = self._answers.pop()
        self._question = self._as_question(last, 0.5), last

    def train(
        self, *, epochs: int = 5, seed: int | None = None, progress: ProgressCallback | None = None
    ) -> LearnedPolicy:
        """Return a policy that learned from all answers, with all trees and epochs.

        Parameters
        ----------
        epochs : int
            The number of epochs.
        seed : int, optional
            By default the seed of the questions.
        progress : callable, optional
            Called with a `Progress` now and then; it may raise `Cancelled`.

        Returns
        -------
        LearnedPolicy
            The policy.
        """
        check_progress(progress)
        answers = list(self._answers)
        known = _Known.of(answers, self.graph.n_regions)
        try:
            seed = self._seed if seed is None else seed
            policy = self._fit(answers, known, epochs, seed, progress)
        except InvalidInput as error:
            yes, no, _ = self.counts
            raise InvalidInput(
                f"The answers so far, {yes} yes and {no} no, are too few to train a policy",
                argument="answers",
                remedy="go on until there are answers of both kinds",
            ) from error
        return self._with_prior(policy, answers)

    def learn(self, progress: ProgressCallback | None = None) -> None:
        """Learn from the answers so far, in one epoch, for the next questions.

        Another thread may ask and answer meanwhile. If `progress` raises `Cancelled`, nothing is
        changed.

        Parameters
        ----------
        progress : callable, optional
            Called with a `Progress` now and then; it may raise `Cancelled`.
        """
        answers = list(self._answers)
        known = _Known.of(answers, self.graph.n_regions)
        policy = self._start
        with suppress(InvalidInput):  # examples of one kind only
            part = part_of(progress, 0.0, 0.7)
            policy = self._fit(answers, known, _EARLY_EPOCHS, self._seed, part)
        scales = self._make_scales(known, policy, part_of(progress, 0.7, 1.0))
        self._learned = _Learned(answers, policy, list(scales))

    def _fit(
        self,
        answers: list[_Answer],
        known: _Known,
        epochs: int,
        seed: int,
        progress: ProgressCallback | None,
    ) -> LearnedPolicy:
        policy = learn_volumes(
            [TrainingVolume(self.graph, (), known.assigned(), 0)],
            self._features,
            epochs=epochs,
            settings=self._settings,
            seed=seed,
            progress=progress,
        )
        policy.record["answers"] = len(answers)
        return policy

    def _with_prior(self, policy: LearnedPolicy, answers: list[_Answer]) -> LearnedPolicy:
        """Return the policy with the share of the mean that so many answers leave it."""
        clear = [answer for answer in answers if answer.same is not None]
        model, start = policy.model, self._start
        if not isinstance(start, MeanPolicy) or not isinstance(model, Forest):
            return policy
        # The mean itself says that 0 is one object and 1 are two.
        values = np.array([0.0, 1.0, *(answer.start for answer in clear)])
        wrong = np.array([False, True, *(not answer.same for answer in clear)])
        middle, slope = logistic_of(values, wrong)
        if slope <= 0:  # answers against the cue
            return policy
        share = _WORTH / (_WORTH + len(clear))
        column = policy.features.names.index(f"{start.cue}/edge/mean")
        mixed = with_prior(model, column, middle, slope, share)
        highest = share + (1 - share) * 0.5 / policy.record["neutral"]
        prior = {"cue": start.cue, "share": round(share, 4), "middle": middle, "slope": slope}
        record = {**policy.record, "neutral": 0.5 / highest, "prior": prior}
        return LearnedPolicy(policy.features, mixed, record)

    def _make_scales(
        self, known: _Known, policy: Policy, progress: ProgressCallback | None
    ) -> Iterator[_Scale]:
        """Yield coarser and coarser partitions by the policy, each of half as many regions."""
        first = known.lut()
        base = contracted(self.graph, first)
        row = np.searchsorted(base.ids, self.graph.ids[first])  # dense id in `base`
        of_component = np.zeros(known.component.max() + 1, np.int64)
        of_component[known.component] = row
        apart = [
            (int(base.ids[of_component[a]]), int(base.ids[of_component[b]]))
            for a, b in known.different
        ]
        tree = merge_tree(base, policy, cannot_link=apart or None, progress=progress)
        probable = policy.probabilistic
        most = tree.n_merges_at(_CERTAIN) if probable else base.n_regions * (1 - 1 / _FINE)
        left = base.n_regions
        while left == base.n_regions or (left >= _COARSEST and base.n_regions - left <= most):
            lut = tree.lut(merges=base.n_regions - left)
            coarse = contracted(base, lut)
            yield _Scale.of(coarse, lut[row], known, policy, self._start)
            left //= 2

    def _choose(self) -> tuple[Question, _Answer] | None:
        """Return the best boundary of a drawn scale; None if all are answered."""
        learned = self._learned
        if learned is None:
            return None
        rng = np.random.default_rng([self._seed, self.n_answers])
        is_answered = np.zeros(self.graph.n_regions + 1, np.bool_)
        for answer in self._answers[len(learned.answers) :]:
            is_answered[answer.first] = is_answered[answer.second] = True
        unclear = [m for one in self._answers if one.same is None for m in (one.first, one.second)]
        usable = [scale for scale in learned.scales if len(scale.rows)]
        for scale in (usable[k] for k in rng.permutation(len(usable))):
            pair = scale.choose(is_answered, unclear, self._order, rng)
            if pair is not None:
                return self._as_question(pair[0], pair[1]), pair[0]
        return None

    def _as_question(self, pair: _Answer, wrong: float) -> Question:
        ids = self.graph.ids
        return Question(ids[pair.first], ids[pair.second], wrong)


@dataclass(frozen=True, eq=False)
class _Scale:
    """A partition of the superpixels, and its boundaries that are not known."""

    region: NDArray[np.int64]  # dense region of each superpixel
    edges: NDArray[np.int64]
    sizes: NDArray[np.int64]  # pixels of each region
    wrong: NDArray[np.float64]  # probability of each boundary; 0.5 without a learned policy
    start: NDArray[np.float64]  # priority of each boundary by the policy of the start
    rows: NDArray[np.int64]  # boundaries to ask about

    @classmethod
    def of(
        cls,
        coarse: RegionGraph,
        lut: NDArray[Any],
        known: _Known,
        policy: Policy,
        start: Policy,
    ) -> _Scale:
        region = np.searchsorted(np.unique(lut), lut)  # dense, as in `coarse`
        scores = policy.score(coarse)
        wrong = stretched(policy, scores) if policy.probabilistic else np.full(len(scores), 0.5)
        place = np.zeros(known.component.max() + 1, np.int64)
        place[known.component] = region
        apart = {tuple(sorted(place[list(pair)])) for pair in known.different}
        rows = [k for k, edge in enumerate(coarse.edges.tolist()) if tuple(edge) not in apart]
        before = np.asarray(start.score(coarse), np.float64)
        return cls(region, coarse.edges, coarse.sizes, wrong, before, np.array(rows, np.int64))

    def choose(
        self,
        excluded: NDArray[np.bool_],
        unclear: list[NDArray[np.int64]],
        order: str,
        rng: np.random.Generator,
    ) -> tuple[_Answer, float] | None:
        """Return the best boundary between regions that were not asked about since the training."""
        touched = np.zeros(len(self.sizes), np.bool_)
        touched[self.region[excluded]] = True
        free = self.rows[~touched[self.edges[self.rows]].any(axis=1)]
        if not len(free):
            return None
        if order == "random":
            row = int(rng.choice(free))
        else:
            doubt = 4 * self.wrong[free] * (1 - self.wrong[free])
            small = self.sizes[self.edges[free]].min(axis=1)
            trust = np.ones(len(self.sizes))
            for members in unclear:
                inside = self.region[members]
                if (inside == inside[0]).all():
                    trust[inside[0]] *= _MISTRUST
            doubt *= trust[self.edges[free]].prod(axis=1)
            row = int(free[np.argmax(doubt * np.sqrt(small) * rng.uniform(0.5, 1, len(free)))])
        first, second = (np.flatnonzero(self.region == one) for one in self.edges[row])
        return _Answer(first, second, None, float(self.start[row])), float(self.wrong[row])


_PURE = 0.8  # share of a region within one gold segment, from which a person calls it one object


def answer_by_gold(graph: RegionGraph, gold: Any) -> Callable[[Question], bool | None]:
    """Return a simulated person: a function that answers questions by a gold standard.

    A region is an object if four fifths of its annotated pixels lie in one gold segment; if either
    is not, the answer is None.

    Parameters
    ----------
    graph : RegionGraph
        The graph of the questions.
    gold : array of int
        The gold standard, of the shape of the superpixels; 0 is not annotated.

    Returns
    -------
    callable
        From a `Question` to True, False or None.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> from napari_agglo.learning import Questions
    >>> labels = np.repeat(np.arange(1, 17).reshape(4, 4), 8, axis=1).repeat(8, axis=0)
    >>> graph = agglo.region_graph(labels, np.random.default_rng(0).random(labels.shape))
    >>> answer = answer_by_gold(graph, np.where(labels % 4 > 1, 1, 2))
    >>> answer(Questions(graph).next()) in (True, False)
    True
    """
    table = gold_table(graph, gold)
    shared = np.zeros((graph.n_regions + 1, len(table.column_ids)), np.int64)
    shared[table.rows, table.columns] = table.counts

    def object_of(ids: NDArray[np.uint64]) -> int | None:
        pixels = shared[np.searchsorted(graph.ids, ids)].sum(axis=0)
        best = int(pixels.argmax())
        return best if pixels[best] >= _PURE * max(pixels.sum(), 1) else None

    def answer(question: Question) -> bool | None:
        first, second = object_of(question.first), object_of(question.second)
        return None if first is None or second is None else first == second

    return answer
