"""Errors are values: problem, argument and remedy, and a sentence made of them."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from napari_agglo._data_warnings import keep_warnings, warn_caller
from napari_agglo.errors import (
    Advice,
    ConvertTo,
    DataWarning,
    Install,
    InvalidInput,
    LabelComponents,
    OneOf,
    PickIndex,
    SetOption,
    alternatives,
    check_choice,
)


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        (SetOption("sigma", 2.5), "pass sigma=2.5"),
        (SetOption("spacing"), "pass `spacing`"),
        (SetOption("ranges", key="a"), "pass `ranges` for 'a'"),
        (SetOption("ranges", (0, 255), "boundary"), "pass ranges={'boundary': (0, 255)}"),
        (SetOption("nan", "boundary", when="to count them"), "pass nan='boundary' to count them"),
        (PickIndex((1,), 3), "pick one index along axis 1, e.g. array[:, 0]"),
        (PickIndex((0, 3), 4), "pick one index along axis 0, 3, e.g. array[0, :, :, 0]"),
        (ConvertTo("float32"), "convert it with .astype('float32')"),
        (Install("imagecodecs"), "install it with: pip install imagecodecs"),
        ("use a crop", "use a crop"),
        (("use a crop", ConvertTo("uint8")), "use a crop, or convert it with .astype('uint8')"),
    ],
)
def test_the_remedy_ends_the_sentence(remedy, words):
    assert str(InvalidInput("`mask` is wrong.", remedy=remedy)) == f"`mask` is wrong; {words}."


def test_argument_and_remedy_are_values():
    error = InvalidInput("`mask` is wrong", argument="mask", remedy=("use a crop", Install("dask")))
    assert error.argument == "mask"
    assert error.remedy == OneOf((Advice("use a crop"), Install("dask")))
    assert str(InvalidInput("`mask` is wrong")) == "`mask` is wrong"


def test_a_misspelt_choice_is_answered_with_the_nearest():
    choices = ("agglo", "flat", "lash")
    for value, remedy in (("aglo", "agglo"), ("FLAT", "flat"), ("deep", "agglo"), (3, "agglo")):
        with pytest.raises(InvalidInput) as caught:
            check_choice("strategy", value, choices)
        assert caught.value.remedy == SetOption("strategy", remedy)
        near = value in ("aglo", "FLAT")
        assert (f"did you mean {remedy!r}?" in caught.value.problem) == near


def test_alternatives_of_nested_remedies():
    inner = OneOf((Advice("a"), LabelComponents()))
    assert alternatives(OneOf((inner, Advice("b")))) == (
        Advice("a"), LabelComponents(), Advice("b"),
    )  # fmt: skip


@pytest.mark.parametrize("copied", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_error_from_another_process_is_the_same(copied):
    error = InvalidInput("`mask` is wrong", argument="mask", remedy=SetOption("nan", "boundary"))
    again = copied(error)
    assert (str(again), again.argument, again.remedy) == (str(error), "mask", error.remedy)


def test_warnings_are_kept_for_the_thread_that_asks_for_them():
    with ThreadPoolExecutor(1) as pool, keep_warnings() as kept:
        warn_caller(DataWarning("here"))
        with pytest.warns(DataWarning, match="there"):
            pool.submit(warn_caller, DataWarning("there")).result()
        with keep_warnings() as inner:
            warn_caller(DataWarning("inside"))
    assert [str(one) for one in kept] == ["here"]
    assert [str(one) for one in inner] == ["inside"]
    with pytest.warns(DataWarning, match="told") as told:
        warn_caller(DataWarning("told"))
    assert told[0].filename == __file__
