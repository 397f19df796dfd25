"""The menu of Open… has recent sessions; those that are gone are left out."""

from __future__ import annotations

import json
import shutil

import pytest

from napari_agglo.widgets.proofread._recent_sessions import recent_sessions, remember_session


def entries(step):
    step.bar.list_recent()
    return {one.text(): one for one in step.bar.menu.actions() if not one.isSeparator()}


def test_the_list_has_the_latest_first_and_drops_what_is_gone(tmp_path):
    folders = [tmp_path / f"{k}.agglo" for k in range(12)]
    for one in folders:
        one.mkdir()
        remember_session(tmp_path, one)
    assert recent_sessions(tmp_path) == folders[:1:-1]
    remember_session(tmp_path, folders[5])
    assert recent_sessions(tmp_path)[0] == folders[5]
    assert recent_sessions(tmp_path).count(folders[5]) == 1
    folders[5].rmdir()
    assert folders[5] not in recent_sessions(tmp_path)


def test_a_list_that_cannot_be_read_or_written_is_empty(tmp_path):
    for text in ("{", json.dumps({"a": 1}), json.dumps([3, None])):
        (tmp_path / "recent.json").write_text(text)
        assert recent_sessions(tmp_path) == []
    file = tmp_path / "file"
    file.write_text("in the place of a folder")
    remember_session(file, tmp_path)
    assert recent_sessions(file) == []


@pytest.mark.slow
def test_a_recent_session_is_opened_from_the_menu(hands):
    step, path = hands.step, hands.project.session.path
    assert path.stem not in entries(step), "it is open"
    copy = path.with_name("copy.agglo")
    hands.proofreader.close_session()
    shutil.copytree(path, copy)
    remember_session(path.parent, copy)
    assert list(entries(step))[:2] == ["copy", path.stem]
    entries(step)[path.stem].trigger()
    hands.settle()
    assert hands.project.session.path == path
    shutil.rmtree(copy)
    assert list(entries(step)) == ["Other folder…"]
