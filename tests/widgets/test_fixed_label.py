"""Labels of a fixed number of lines."""

from __future__ import annotations

from typing import Any

import pytest

from napari_agglo.widgets._fixed_label import fixed_label


@pytest.mark.parametrize("given", [1, 2, 3])
def test_the_first_text_that_fits_is_shown(qapp: Any, given: int) -> None:
    text = fixed_label("x")
    texts = ("about 7 s left: fit, epoch 1 of 5, 70 examples", "about 7 s left: fit", "7 s")
    whole = text.fontMetrics().horizontalAdvance
    text.resize(whole(texts[given - 1]) + 30, 30)
    text.show()
    text.show_first(*texts)
    shown = super(type(text), text).text()
    assert shown == texts[given - 1]
    assert text.text() == texts[0], "the whole text is known"
    assert texts[0] in text.toolTip()
    text.resize(whole("7") // 2, 30)
    assert super(type(text), text).text() not in texts, "test invalid"
    text.setText("new")
    text.resize(400, 30)
    assert super(type(text), text).text() == "new"
