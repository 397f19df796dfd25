"""Every public function with `progress` refuses a value that cannot be called."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import (
    agglomeration,
    blocks,
    compare,
    evaluate,
    graph,
    learning,
    movie,
    partition,
    pixels,
    report,
    session,
    shapes,
    superpixels,
    volumes,
)

API = Path(__file__).with_name("api.txt")
INNER = {"scan", "in_memory"}  # for other folders of the package: public functions in front check


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return inputs of every stage: 16 square superpixels in four squares of gold."""
    row, column = np.indices((16, 16))
    labels = (row // 4 * 4 + column // 4 + 1).astype(np.uint32)
    gold = (row // 8 * 2 + column // 8 + 1).astype(np.uint32)
    cue = np.random.default_rng(0).random(labels.shape)
    own = agglo.region_graph(labels, cue)
    classifier = agglo.train_pixels(
        cue, np.where(gold < 3, gold, 0), spacing=(1, 1), scales=(1,), trees=2
    )
    folder = tmp_path_factory.mktemp("progress")
    deep = agglo.region_graph(np.stack([labels] * 2), np.stack([cue] * 2))
    one = agglo.Session.create(folder / "one.agglo", deep, gold=np.stack([gold] * 2))
    one.threshold = 0.0
    one.merge(1, 2)
    one.lock(16)
    one.merge(5, 6)
    one.undo()
    tree = agglo.agglomerate(own)
    yield SimpleNamespace(
        folder=folder, labels=labels, gold=gold, cue=cue, graph=own, deep=deep, tree=tree,
        session=one, classifier=classifier, live=pixels.LiveTraining(cue),
        questions=learning.Questions(own), finding=report.examine(tree, gold),
        strokes=np.where(gold < 3, gold, 0),
    )  # fmt: skip
    one.close()


DOORS = {
    "PixelClassifier.blocks": lambda w, p: list(w.classifier.blocks(w.cue, progress=p)),
    "PixelClassifier.predict": lambda w, p: w.classifier.predict(w.cue, progress=p),
    "LiveTraining.train": lambda w, p: w.live.train(w.strokes, w.classifier.classes, progress=p),
    "LiveTraining.predict": lambda w, p: w.live.predict(w.classifier, (0, 0), (4, 4), progress=p),
    "Questions.learn": lambda w, p: w.questions.learn(p),
    "Questions.train": lambda w, p: w.questions.train(progress=p),
    "Movie.frames": lambda w, p: list(movie.movie({"a": w.tree}, frames=2).frames(p)),
    "Segments.mesh": lambda w, p: w.session.segments.mesh(1, progress=p),
    "Session.apply": lambda w, p: w.session.apply(w.session.history.table(), progress=p),
    "Session.create": lambda w, p: session.Session.create(
        w.folder / "n.agglo", w.graph, progress=p
    ),
    "Session.cut": lambda w, p: w.session.cut(1, [[1], [2]], progress=p),
    "Session.cut_children": lambda w, p: w.session.cut_children(1, progress=p),
    "Session.detach": lambda w, p: w.session.detach(1, [2], progress=p),
    "Session.export": lambda w, p: w.session.export(w.folder / "r.csv", "regions", progress=p),
    "Session.lock": lambda w, p: w.session.lock(3, progress=p),
    "Session.look": lambda w, p: w.session.look(p),
    "Session.merge": lambda w, p: w.session.merge(3, 4, progress=p),
    "Session.open": lambda w, p: session.Session.open(w.session.path, read_only=True, progress=p),
    "Session.redo": lambda w, p: w.session.redo(p),
    "Session.relearn": lambda w, p: w.session.relearn(
        [(w.deep, np.stack([w.gold] * 2))], progress=p
    ),
    "Session.unlock": lambda w, p: w.session.unlock(16, progress=p),
    "SessionErrors.count": lambda w, p: w.session.errors.count(p),
    "SessionErrors.now": lambda w, p: w.session.errors.now(p),
    "SessionErrors.overlaps": lambda w, p: w.session.errors.overlaps(p),
    "Result.create_session": lambda w, p: blocks.Result(w.folder, None).create_session(
        w.folder / "n.agglo", progress=p
    ),
    "affinities": lambda w, p: volumes.affinities(np.stack([w.cue, w.cue]), progress=p),
    "agglomerate": lambda w, p: agglomeration.agglomerate(w.graph, progress=p),
    "best_covering": lambda w, p: evaluate.best_covering(w.tree, w.gold, progress=p),
    "best_point": lambda w, p: evaluate.best_point(w.graph, w.gold, progress=p),
    "boundary_cue": lambda w, p: superpixels.boundary_cue(w.cue, progress=p),
    "boundary_curve": lambda w, p: evaluate.boundary_curve(w.tree, w.gold, progress=p),
    "boundary_from_labels": lambda w, p: superpixels.boundary_from_labels(w.labels, progress=p),
    "boundary_scores": lambda w, p: evaluate.boundary_scores(w.labels, w.gold, progress=p),
    "breakdown": lambda w, p: evaluate.breakdown(w.labels, w.gold, progress=p),
    "build_tree": lambda w, p: partition.build_tree(w.graph, progress=p),
    "check_cues": lambda w, p: volumes.check_cues(w.cue, w.cue.shape, progress=p),
    "check_labels": lambda w, p: volumes.check_labels(w.labels, progress=p),
    "contingency": lambda w, p: evaluate.contingency(w.labels, w.gold, progress=p),
    "cross_validate": lambda w, p: evaluate.cross_validate([(w.graph, w.gold)] * 2, progress=p),
    "dense_labels": lambda w, p: volumes.dense_labels(w.labels, progress=p),
    "disagreements": lambda w, p: compare.disagreements(w.labels, w.gold, progress=p),
    "divide_superpixels": lambda w, p: superpixels.divide_superpixels(w.labels, w.gold, progress=p),
    "examine": lambda w, p: report.examine(w.tree, w.gold, progress=p),
    "far_pairs": lambda w, p: graph.far_pairs(w.graph, p),
    "hold_out": lambda w, p: evaluate.hold_out(w.graph, w.gold, {"mean": "mean"}, progress=p),
    "html_report": lambda w, p: report.html_report([w.finding], progress=p),
    "human_agreement": lambda w, p: evaluate.human_agreement([w.gold, w.labels], progress=p),
    "matched": lambda w, p: compare.matched(w.labels, w.gold, progress=p),
    "merge_curve": lambda w, p: evaluate.merge_curve(w.tree, w.gold, progress=p),
    "merge_greedily": lambda w, p: agglomeration.merge_greedily(
        w.graph, agglo.MeanPolicy(), progress=p
    ),
    "merge_tree": lambda w, p: agglomeration.merge_tree(w.graph, agglo.MeanPolicy(), progress=p),
    "mesh": lambda w, p: shapes.mesh(w.deep.superpixels.image, 1, progress=p),
    "mesh_of_regions": lambda w, p: shapes.mesh_of_regions(w.deep, np.array([1]), progress=p),
    "metrics": lambda w, p: evaluate.metrics(w.labels, w.gold, progress=p),
    "movie": lambda w, p: movie.movie({"a": w.tree}, progress=p),
    "multicut": lambda w, p: partition.multicut(w.graph, progress=p),
    "mutex_watershed": lambda w, p: partition.mutex_watershed(w.graph, progress=p),
    "oriented_boundary": lambda w, p: superpixels.oriented_boundary(w.cue, progress=p),
    "oversegment": lambda w, p: superpixels.oversegment(w.cue, progress=p),
    "region_graph": lambda w, p: graph.region_graph(w.labels, w.cue, progress=p),
    "run": lambda w, p: blocks.run(w.folder, progress=p),
    "split_vi": lambda w, p: evaluate.split_vi(w.labels, w.gold, progress=p),
    "table_curve": lambda w, p: evaluate.table_curve(
        w.tree, evaluate.contingency(w.labels, w.gold), progress=p
    ),
    "texton_dictionary": lambda w, p: superpixels.texton_dictionary([w.cue], 4, progress=p),
    "textons": lambda w, p: superpixels.textons(w.cue, 4, progress=p),
    "train": lambda w, p: learning.train(w.graph, w.gold, progress=p),
    "train_and_hold_out": lambda w, p: evaluate.train_and_hold_out(w.graph, w.gold, progress=p),
    "train_pixels": lambda w, p: pixels.train_pixels(w.cue, w.strokes, progress=p),
    "vi_curve": lambda w, p: evaluate.vi_curve(w.tree, w.gold, progress=p),
    "warm_up": lambda w, p: session.warm_up(["merge"], progress=p),
    "weighted_vi": lambda w, p: evaluate.weighted_vi(w.labels, w.gold, progress=p),
    "write_labels": lambda w, p: volumes.write_labels(w.folder / "a.tif", w.labels, progress=p),
    "write_labels h5": lambda w, p: volumes.write_labels(w.folder / "a.h5", w.labels, progress=p),
    "write_labels zarr": lambda w, p: volumes.write_labels(
        w.folder / "a.zarr", w.labels, progress=p
    ),
    "write_movie": lambda w, p: movie.write_movie(w.folder / "a.gif", {"a": w.tree}, progress=p),
}


def public_doors() -> set[str]:
    """Return the public functions and methods of `api.txt` that have a parameter `progress`."""
    doors, kind = set(), ""
    for line in API.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"  class (\w+)", line):
            kind = found[1]
        elif "progress: " in line and (found := re.match(r"  (  \.)?(\w+)\(", line)):
            doors.add(f"{kind}.{found[2]}" if found[1] else found[2])
    return doors


def test_every_public_function_with_progress_is_listed():
    listed = {name.split(" ")[0] for name in DOORS}
    assert public_doors() - INNER == listed


@pytest.mark.parametrize("door", DOORS)
def test_progress_that_cannot_be_called_is_refused(world, door):
    before = sorted(world.folder.iterdir()), len(world.session.history)
    with refuses("progress"):
        DOORS[door](world, True)
    assert (sorted(world.folder.iterdir()), len(world.session.history)) == before
