"""Kernels on disk: one knows that they are there without loading them; a full disk is no error."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numba
import pytest
from numba.core import caching

from napari_agglo import DataWarning, _numba
from napari_agglo._numba import is_cached, kernel

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Kernels that are defined now are kept in a folder of their own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def define():
    @kernel
    def one():
        return 1

    return one


def test_a_kernel_is_on_disk_once_it_was_called(folder):
    first = define()
    assert not is_cached(first)
    assert first() == 1
    again = define()
    assert is_cached(again)
    assert again() == 1
    assert sum(again.stats.cache_hits.values()) == 1
    assert str(again.stats.cache_path).startswith(str(folder))


def test_a_kernel_that_cannot_be_saved_is_called_all_the_same(monkeypatch):
    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", no_space)
    one = define()
    assert one() == 1
    assert not is_cached(define())


@pytest.fixture
def no_folder(tmp_path, monkeypatch):
    """Let numba cache kernels in no folder that it finds by itself."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    locators = [caching.UserProvidedCacheLocator]
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", locators)
    monkeypatch.setattr(_numba, "_temporary", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(lambda: 1)
    _numba._warn_not_kept.cache_clear()


def test_without_a_folder_for_kernels_a_temporary_one_has_them(no_folder, monkeypatch):
    at_the_end = []
    monkeypatch.setattr(_numba.atexit, "register", lambda *job, **options: at_the_end.append(job))
    assert _numba.temporary_cache() is None
    with pytest.warns(DataWarning, match="NUMBA_CACHE_DIR"):
        first = define()
    assert numba.config.CACHE_DIR == "", "other packages keep their folder"
    assert not is_cached(first)
    assert first() == 1
    again = define()
    assert is_cached(again)
    assert again() == 1
    assert sum(again.stats.cache_hits.values()) == 1
    folder = _numba.temporary_cache()
    assert Path(again.stats.cache_path).parent == folder
    ((remove, place),) = at_the_end
    assert place == folder
    remove(place)
    assert not folder.exists()
    assert define()() == 1, "a cleaner of temporary files does no harm"


def test_without_any_folder_for_kernels_they_are_called_all_the_same_and_one_warning_says_so(
    no_folder, monkeypatch
):
    def read_only(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(_numba.tempfile, "mkdtemp", read_only)
    with pytest.warns(DataWarning, match="NUMBA_CACHE_DIR"):
        one = define()
    assert one() == 1
    assert not is_cached(one)
    assert _numba.temporary_cache() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert define()() == 1
