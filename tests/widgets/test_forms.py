"""Forms have a control for each option of a library function, and give its arguments back."""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from magicgui.widgets import CheckBox, ComboBox, Container, FileEdit
from napari.layers import Image, Labels

from napari_agglo.learning import train
from napari_agglo.session import Session
from napari_agglo.superpixels import boundary_cue, oversegment
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._qt import label


class Side(Enum):
    LEFT = "on the left"
    RIGHT = "on the right"


def grow(image: Any, *, speed: str = "fast", steps: int = 3, progress: Any = None) -> None:
    """Grow.

    Parameters
    ----------
    image : array
        The image.
    speed : {"fast", "slow"}
        The speed. *fast*: in a `day`. *slow*: in a year.
    steps : int
        Number of steps.
    progress : callable, optional
        Told how far it is.

    Returns
    -------
    None
    """


def grow_further(
    image: Any,
    *,
    speed: Literal["fast", "slow"] = "slow",
    steps: int | None = None,
    width: float | None = 0.5,
    side: Side = Side.LEFT,
    again: bool = False,
    weight: Annotated[int, {"min": 2, "max": 4}] = 3,
) -> None:
    """Grow with more options."""


@pytest.fixture
def form_of(qtbot):
    """Return a function that makes a form which is taken away at the end."""

    def make(*functions, **options):
        made = Form(*functions, **options)
        qtbot.addWidget(made)
        return made

    return make


def test_options_become_controls_and_arrays_do_not(form_of):
    form = form_of(grow)
    assert form.values() == {"speed": "fast", "steps": 3}
    assert isinstance(form.container, Container)
    assert isinstance(form["speed"], ComboBox)
    assert form["speed"].choices == ("fast", "slow")
    assert "Number of steps." in form["steps"].tooltip


def test_a_new_parameter_of_a_function_makes_a_control_appear(form_of):
    before = form_of(grow)
    signature = inspect.signature(grow)
    more = inspect.Parameter("depth", inspect.Parameter.KEYWORD_ONLY, default=7, annotation=int)

    def deeper() -> None: ...

    text = "    depth : int\n        Of it.\n    progress :"
    deeper.__doc__ = grow.__doc__.replace("    progress :", text)
    parameters = [*signature.parameters.values(), more]
    deeper.__signature__ = signature.replace(parameters=parameters)
    after = form_of(deeper, first=("speed",))
    assert "depth" not in before.fields, "test invalid"
    assert after.values() == {**before.values(), "depth": 7}
    assert "Of it." in after["depth"].tooltip
    assert after.more is not None


def test_none_has_a_text_of_its_own(form_of):
    form = form_of(grow_further)
    assert form.values() == {
        "speed": "slow", "steps": None, "width": 0.5, "side": Side.LEFT, "again": False, "weight": 3
    }  # fmt: skip
    assert form["steps"].native.text() == "automatic"
    form["steps"].value = 12
    form["side"].value = Side.RIGHT
    form["again"].value = True
    values = form.values()
    assert (values["steps"], values["side"], values["again"]) == (12, Side.RIGHT, True)
    assert isinstance(values["steps"], int)
    assert (form["weight"].min, form["weight"].max) == (2, 4)
    form.show_values({"steps": None, "width": None})
    assert (form.values()["steps"], form.values()["width"]) == (None, None)


def test_changes_of_the_user_are_told_and_those_shown_are_not(form_of):
    form, told = form_of(grow), []
    form.changed.connect(told.append)
    form.show_values({"steps": 5, "other": 1})
    assert told == []
    form["speed"].native.setCurrentText("slow")
    form["steps"].native.setValue(6)
    assert told == ["speed", "steps"]
    assert form.values() == {"speed": "slow", "steps": 6}


def test_layers_are_chosen_by_their_type(form_of):
    layers = [Image(np.zeros((2, 2)), name="picture"), Labels(np.zeros((2, 2), int), name="gold")]
    table = {
        "gold": Annotated[
            Labels | Image | None, {"layers": lambda: layers, "automatic": "none", "tooltip": "x"}
        ]
    }
    form = form_of(table=table)
    box = form["gold"].native
    assert [box.itemText(k) for k in range(box.count())] == ["none", "gold", "picture"]
    assert form.values() == {"gold": None}
    form["gold"].value = layers[1]
    layers[1].name = "truth"
    form.show_values({"gold": layers[1]})
    assert box.currentText() == "truth"
    gone = layers.pop()
    form.show_values({"gold": None})
    assert gone not in form["gold"].choices


def test_a_path_is_a_control_only_where_it_is_asked_for(form_of, tmp_path):
    assert "path" not in form_of(Session.create).fields
    form = form_of(Session.create, only=("path",), table={"path": Annotated[Path, {"mode": "w"}]})
    assert isinstance(form["path"], FileEdit)
    form["path"].value = tmp_path / "new.agglo"
    assert form.values() == {"path": tmp_path / "new.agglo"}


def test_a_table_cannot_name_what_is_no_parameter(form_of):
    with pytest.raises(KeyError, match="epoch_number"):
        form_of(train, table={"epoch_number": {"min": 1}})


@pytest.mark.parametrize("function", [train, oversegment, boundary_cue, Session.relearn])
def test_the_values_at_first_are_the_defaults_of_the_library(form_of, function):
    form = form_of(function)
    parameters = inspect.signature(function).parameters
    assert form.fields
    for name, value in form.values().items():
        assert value == parameters[name].default
        assert form[name].tooltip not in ("", "<qt></qt>"), name
        assert not isinstance(form[name], CheckBox) or form[name].text


def test_a_dialog_gives_the_values(qtbot):
    from qtpy.QtWidgets import QPushButton, QWidget

    parent, values = QWidget(), []
    qtbot.addWidget(parent)
    dialog = ask_form(parent, "Grow", Form(grow), "Go", lambda **given: values.append(given))
    dialog.findChild(QPushButton, "Go").click()
    assert values == [{"speed": "fast", "steps": 3}]
    assert dialog.result() == dialog.DialogCode.Accepted


def test_a_label_gives_room_back_when_its_text_is_shorter(qtbot):
    from qtpy.QtWidgets import QVBoxLayout, QWidget

    place, text = QWidget(), label("text")
    qtbot.addWidget(place)
    QVBoxLayout(place).addWidget(text)
    place.resize(200, 400)
    with qtbot.waitExposed(place):
        place.show()
    text.setText("short")
    line = text.minimumHeight()
    text.setText("a text of many lines " * 10)
    assert text.minimumHeight() > 3 * line > 0
    text.setText("short")
    assert text.minimumHeight() == line
