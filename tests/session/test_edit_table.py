"""A table of edits, made again: on the same superpixels, on others, and twice."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.cli import main
from napari_agglo.errors import Install, SetOption


def labels_at_all_scales(session):
    here = session.threshold
    found = []
    for threshold in (0.0, 0.3, 0.5, 0.7):
        session.threshold = threshold
        found.append(session.labels())
    session.threshold = here
    return np.stack(found)


def some_edits(session, seed):
    """Make random edits of every kind, some of them undone."""
    rng = np.random.default_rng(seed)
    for _ in range(14):
        session.threshold = float(rng.choice([0.3, 0.5]))
        segment = int(rng.choice(session.segments.ids()))
        members = session.segments.members(segment)
        kind = rng.choice(["merge", "cut", "point", "lock", "up", "mark", "no", "undo"])
        try:
            if kind == "merge":
                session.merge(segment, int(rng.choice(session.segments.neighbours(segment))))
            elif kind == "cut" and len(members) > 1:
                session.cut(segment, [[members[0]], [members[-1]]])
            elif kind == "point":
                pixels = np.argwhere(session.labels() == segment)
                session.cut(segment, points=[[tuple(pixels[0])], [tuple(pixels[-1])]])
            elif kind == "lock":
                session.lock(segment)
            elif kind == "up":
                session.up(segment)
            elif kind == "mark":
                session.marks.review(segment)
            elif kind == "no" and (following := session.queue.next(1)):
                session.queue.reject(following[0])
            elif kind == "undo":
                session.undo()
        except agglo.InvalidInput:
            continue
    session.threshold = 0.4


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_edits_made_again_give_the_same_segments_at_every_scale(tmp_path, grid, seed):
    graph, _ = grid
    with Session.create(tmp_path / "a.agglo", graph) as first:
        some_edits(first, seed)
        assert len(first.history) > 3, "test invalid"
        wanted, marks = labels_at_all_scales(first), first.marks.all()
        first.export(tmp_path / "edits.csv", "edits")
        again = first.apply(tmp_path / "edits.csv")
    with Session.create(tmp_path / "b.agglo", graph) as second:
        threshold = second.threshold
        done = second.apply(tmp_path / "edits.csv")
        assert done.not_applied == ()
        assert 0 < done.applied <= len(second.history)
        np.testing.assert_array_equal(labels_at_all_scales(second), wanted)
        assert second.marks.all() == marks
        assert second.threshold == threshold
        while second.history.can_undo:
            second.undo()
        assert len(np.unique(second.labels())) > 1
    # On the same session moves up a branch go further; marks and answers may be of older segments.
    assert {one.kind for one in again.not_applied} <= {"up", "mark", "reject"}


def test_edits_on_other_segments_do_what_they_can_and_list_the_rest(tmp_path, grid):
    graph, _ = grid
    with Session.create(tmp_path / "a.agglo", graph) as first:
        first.threshold = 0.0
        first.merge(1, 2, 6)
        first.cut(1, parts=[[1, 2], [6]])
        first.lock(13)
        first.merge(24, 25)
        table = first.history.table()
    assert table["kind"].tolist() == ["merge", "cut", "lock", "merge"]
    assert json.loads(table["details"][1])["steps"][0]["cut"] == [[1, 2], [6]]
    with Session.create(tmp_path / "b.agglo", graph) as second:
        second.threshold = 0.0
        second.merge(6, 7)  # a larger segment than the one that was cut
        second.merge(13, 14)
        second.lock(25)
        done = second.apply(table)
        assert (done.applied, done.already) == (2, 0)
        assert [one.kind for one in done.not_applied] == ["lock", "merge"]
        assert "other superpixels" in done.not_applied[0].reason
        assert "locked" in done.not_applied[1].reason
        assert second.segments.members(1).tolist() == [1, 2]
        assert second.segments.members(6).tolist() == [6, 7]
        assert second.apply(table.iloc[:2]).applied == 2, "the older merge is made, then cut again"
        assert second.segments.members(1).tolist() == [1, 2]
    halves = np.array([[1, 1, 2, 2]])
    other = agglo.region_graph(halves, np.zeros(halves.shape))
    with Session.create(tmp_path / "c.agglo", other) as third:
        with refuses("table", SetOption("other_superpixels", True, when="to match them by id all "
                                        "the same"), facts=("1x4:2:", "20x20:25:")):  # fmt: skip
            third.apply(table)
        done = third.apply(table, other_superpixels=True)
        assert len(done.not_applied) == 4
        assert "there is no superpixel" in done.not_applied[0].reason
        assert len(third.history) == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_edit_before_any_merge_has_no_number_in_words_or_files(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    labels = np.arange(1, 7)[None].repeat(4, 0)
    boundary = np.where(labels > 3, 0.5, 0.0)
    graph = agglo.region_graph(labels, boundary)
    file = tmp_path / f"edits.{suffix}"
    with Session.create(tmp_path / "a.agglo", graph) as first:
        assert first.history.unedited_tree.heights[0] == 0, "test invalid"
        first.threshold = -5e-324  # as the left end of the slider, where the first merge is at 0
        change = first.merge(3, 4)
        assert "before any merge" in str(change)
        assert "e-" not in str(change)
        first.cut(3, parts=[[3], [4]])
        first.lock(2)
        wanted = labels_at_all_scales(first)
        table = first.history.table()
        first.export(file, "edits")
    assert table["scale"].tolist() == [-np.inf] * 3
    assert [json.loads(one)["steps"][0]["scale"] for one in table["details"]] == [None] * 3
    if suffix == "csv":
        assert "e-3" not in file.read_text()
    for k, given in enumerate((file, old_table(table))):
        with Session.create(tmp_path / f"{k}.agglo", graph) as second:
            done = second.apply(given)
            assert (done.applied, done.not_applied) == (3, ())
            np.testing.assert_array_equal(labels_at_all_scales(second), wanted)
            assert second.history.table()["scale"].tolist() == [-np.inf] * 3


def old_table(table):
    """Return a table as it was written before, with the number that stood for the state."""
    before = table["details"].str.replace('"scale": null', '"scale": -5e-324')
    assert not before.str.contains("null").any()
    return table.assign(scale=-5e-324, details=before)


def test_parquet_without_pyarrow_is_refused_with_its_package(grid_session, monkeypatch, tmp_path):
    def missing(_):
        raise ImportError("pyarrow")

    monkeypatch.setattr("pandas.read_parquet", missing)
    with refuses("table", Install('"napari-agglo[parquet]"')):
        grid_session.apply(tmp_path / "edits.parquet")


def test_a_table_that_is_none_is_refused(tmp_path, grid_session):
    with refuses("table", "pass session.history.table()"):
        grid_session.apply(7)
    with refuses("table", "pass session.history.table()"):
        grid_session.apply(grid_session.history.table().drop(columns="details"))
    with refuses("table", "check the path"):
        grid_session.apply(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    with refuses("table", "pass a file of export(path, 'edits')"):
        grid_session.apply(tmp_path / "empty.csv")
    broken = grid_session.history.table()
    broken.loc[0] = [1, "", "merge", 0.0, "1 2", "live", "", "{"]
    broken.loc[1] = [2, "", "cut", 0.0, "1", "live", "", '{"steps": [{"cut": 5, "scale": 0}]}']
    broken.loc[2] = [3, "", "dance", 0.0, "1", "live", None, '{"superpixel": 1}']
    assert [one.row for one in grid_session.apply(broken).not_applied] == [0, 1, 2]
    assert len(grid_session.history) == 0


def test_the_command_line_applies_a_table(tmp_path, grid, capsys):
    graph, _ = grid
    for name in ("a", "b"):
        with Session.create(tmp_path / f"{name}.agglo", graph) as session:
            session.threshold = 0.0
            if name == "a":
                session.merge(1, 2)
                session.lock(9)
    a, b, table = (str(tmp_path / name) for name in ("a.agglo", "b.agglo", "edits.csv"))
    assert main(["export", a, "edits", "-o", table]) == 0
    assert main(["session", "apply", b, table]) == 0
    assert "2 edits applied" in capsys.readouterr().out
    with Session.open(b) as session:
        assert session.segments.members(1).tolist() == [1, 2]
        session.unlock(9)
        session.merge(9, 10)
    assert main(["session", "apply", b, table]) == 1
    text = capsys.readouterr().out
    assert "1 already made" in text
    assert "sequence 2, lock 9" in text


def comb_session(path):
    """Return a session of two combs that reach into each other, with many runs in their boxes."""
    labels = np.where(np.arange(60) % 2, 2, 1)[None].repeat(40, 0)
    labels[0], labels[-1] = 1, 2
    boundary = np.full(labels.shape, 0.5)
    session = Session.create(path, agglo.region_graph(labels, boundary))
    session.threshold = 0.0
    return session


@pytest.mark.parametrize("cell", [32_000, 100])
def test_a_cut_through_a_large_superpixel_fits_into_cells(tmp_path, monkeypatch, cell):
    monkeypatch.setattr("napari_agglo.session._exports.csv_tables.CELL", cell)
    with comb_session(tmp_path / "a.agglo") as session:
        session.cut(1, points=[[(20, 0)], [(20, 58)]])
        wanted = session.labels()
        table = session.history.table()
        session.export(tmp_path / "edits.csv", "edits")
        with monkeypatch.context() as before:  # a table with all runs as numbers
            before.setattr("napari_agglo.session._edit_table._FEW", 10**9)
            before.setattr("napari_agglo.session._exports.csv_tables.CELL", 10**9)
            old = session.history.table()
    kinds = [type(session_details(one)["steps"][0]["divisions"][0]["runs"]) for one in (table, old)]
    assert kinds == [str, list]
    with (tmp_path / "edits.csv").open(newline="") as file:
        rows = list(csv.reader(file))  # which refuses cells of more than 131,072 characters
    assert max(len(text) for row in rows for text in row) <= cell
    assert ("details_2" in rows[0]) == (cell == 100)
    for k, given in enumerate((table, tmp_path / "edits.csv", old)):
        with comb_session(tmp_path / f"{k}.agglo") as session:
            assert (session.labels() != wanted).any()
            assert session.apply(given).applied == 1
            np.testing.assert_array_equal(session.labels(), wanted)


def session_details(table):
    """Return the details of the first row of a table."""
    return json.loads("".join(text for name, text in table.iloc[0].items() if "details" in name))


def test_packed_runs_that_are_damaged_are_not_applied(tmp_path):
    with comb_session(tmp_path / "a.agglo") as session:
        session.cut(1, points=[[(20, 0)], [(20, 58)]])
        table = session.history.table()
    table["details"] = table["details"].str.replace("zlib:", "zlib:AAAA")
    with comb_session(tmp_path / "b.agglo") as session:
        done = session.apply(table)
        assert (done.applied, len(done.not_applied)) == (0, 1)


def test_edits_of_another_crop_are_refused_until_one_insists(tmp_path, grid, capsys):
    graph, _ = grid
    a, b, table = str(tmp_path / "a.agglo"), str(tmp_path / "b.agglo"), str(tmp_path / "edits.csv")
    with Session.create(a, graph) as first:
        first.threshold = 0.0
        first.merge(1, 2)
        first.export(table, "edits")
        same = first.history.table()
    moved = agglo.region_graph(graph.superpixels.image.T[::-1], np.ones((20, 20)))
    Session.create(b, moved).close()
    assert main(["session", "apply", b, table]) == 2
    assert "--other-superpixels" in capsys.readouterr().err
    with Session.open(b) as second:
        assert len(second.history) == 0, "nothing has changed"
        assert second.apply(same.drop(columns="superpixels")).applied == 1, "an older table"
        second.undo()
    assert main(["session", "apply", b, table, "--other-superpixels"]) == 0
    with Session.open(a) as first:
        assert first.apply(table).already == 1


def test_a_cut_that_is_not_possible_names_its_parts_and_its_sequence(tmp_path):
    row = np.array([[1, 2, 3, 4, 5]])
    graph = agglo.region_graph(row, np.zeros((1, 5)))
    with Session.create(tmp_path / "a.agglo", graph) as one:
        one.threshold = 0.5
        one.marks.review(1)
        one.cut(1, parts=[[1, 2], [3, 4, 5]])
        table = one.history.table()
    details = json.loads(table["details"][1])
    details["steps"][0]["cut"] = [[1, 4], [2, 5]]  # parts that cross each other
    table.loc[1, "details"] = json.dumps(details)
    with Session.create(tmp_path / "b.agglo", graph) as two:
        (failed,) = two.apply(table).not_applied
    assert "1, 4 | 2, 5" in failed.reason
    assert "seeds" not in failed.reason
    assert failed.row == 1
    assert str(failed).startswith("sequence 2, cut 1:")
    del table["sequence"]
    with Session.create(tmp_path / "c.agglo", graph) as three:
        assert str(three.apply(table).not_applied[0]).startswith("row 1, cut 1:")
