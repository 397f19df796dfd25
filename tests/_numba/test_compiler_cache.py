"""Kernels on disk: one knows that they are there without loading them; a full disk is no error."""

from __future__ import annotations

import warnings

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


def test_without_a_folder_for_kernels_they_are_called_all_the_same_and_one_warning_says_so(
    monkeypatch,
):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    _numba._warn_not_kept.cache_clear()
    with pytest.warns(DataWarning, match="NUMBA_CACHE_DIR"):
        one = define()
    assert one() == 1
    assert not is_cached(one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert define()() == 1
