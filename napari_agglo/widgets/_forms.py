"""Forms: magicgui controls made from the parameters of library functions.

A parameter is declared once, in the library. Its annotation gives the control, its default the
first value, and the numpydoc section "Parameters" the tooltip and, as ``{"agglo", "flat"}``, the
choices. A table beside the form adds only what a window needs: labels, ranges, layers to choose
from. `Form.values` gives the keyword arguments back.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from html import escape
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from magicgui.signature import MagicParameter
from magicgui.widgets import ComboBox, Container, FileEdit
from napari.layers import Layer
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo.widgets._qt import close_up, tell_error

_PLAIN = (bool, int, float, str)  # types that become controls by themselves
_LABEL_WIDTH = 92  # pixels, so that the controls of several forms stand in one column
_NARROWEST = 6  # characters of a choice; long names of layers do not widen the dock
_OWN = ("automatic", "layers", "name", "names", "suffix", "tips")  # options that are not magicgui's


# The numpydoc section "Parameters" of a function.


class Description(NamedTuple):
    """The text on a parameter, the choices that its type lists, and the text on each of them."""

    text: str = ""
    choices: tuple[str, ...] = ()
    tips: Mapping[str, str] = types.MappingProxyType({})


def descriptions(function: Callable[..., Any]) -> dict[str, Description]:
    """Return what the docstring of a function says of its parameters, by name.

    A choice is described as ``*fast*: text``.

    Examples
    --------
    >>> def grow(speed="fast"):
    ...     '''Grow.
    ...
    ...     Parameters
    ...     ----------
    ...     speed : {"fast", "slow"}
    ...         Of growth. *fast*: in a day. *slow*: in a ``year``.
    ...     '''
    >>> speed = descriptions(grow)["speed"]
    >>> speed.text, speed.choices
    ('Of growth. fast: in a day. slow: in a year.', ('fast', 'slow'))
    >>> speed.tips
    {'fast': 'in a day.', 'slow': 'in a year.'}
    """
    doc = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n-+\n((?:(?!^.*\n--+$).*\n?)*)", doc, re.MULTILINE)
    found: dict[str, Description] = {}
    for head, body in re.findall(r"^(\S.*)\n((?:[ ]+.*\n?|\n)*)", section[1] if section else "",
                                 re.MULTILINE):  # fmt: skip
        names, _, kind = head.partition(" : ")
        listed = re.search(r"\{(.*?)\}", kind)
        choices = literal_eval(f"({listed[1]},)") if listed else ()
        text = " ".join(body.split())
        tips = re.findall(r"\*(\w+)\*: (.*?)(?= \*\w+\*: |$)", text)
        for name in names.split(","):
            found[name.strip()] = Description(
                _plain(text), choices, {choice: _plain(tip) for choice, tip in tips}
            )
    return found


def _plain(text: str) -> str:
    """Return a text without its marks for emphasis and code."""
    return re.sub(r"`+|\*(?=\w)|(?<=\w)\*", "", text)


# From a parameter to a control.


class Field(NamedTuple):
    """One control: a magicgui widget, and the value that stands for None."""

    widget: Any
    nothing: Any = None  # the lowest number of a spin box that can be "automatic"
    whole: bool = False
    listing: Callable[[Any], list[tuple[str, Any]]] | None = None

    @property
    def value(self) -> Any:
        """The value, as the function takes it."""
        value = self.widget.value
        if self.nothing is not None and value == self.nothing:
            return None
        return int(value) if self.whole else value

    def show(self, value: Any) -> None:
        """Show a value, without telling that it changed."""
        if value is None and self.nothing is not None:
            value = self.nothing
        with self.widget.changed.blocked():
            self.list_choices()
            self.widget.value = value

    def list_choices(self) -> None:
        """List the choices as they are now, in their order; magicgui would append new ones."""
        if self.listing is None:
            return
        native = self.widget.native
        first = [self.widget.null_string] if None in self.widget.choices else []
        names = first + [name for name, _ in self.listing(self.widget)]
        if names != [native.itemText(k) for k in range(native.count())]:
            native.blockSignals(True)
            native.clear()
            native.blockSignals(False)
        self.widget.reset_choices()


def _split(annotation: Any) -> tuple[tuple[Any, ...], bool, dict[str, Any]]:
    """Return the types of an annotation, whether None is one of them, and its options."""
    options: dict[str, Any] = {}
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        for one in extras:
            options |= one if isinstance(one, Mapping) else {}
    union = get_origin(annotation) in (Union, types.UnionType)
    kinds = get_args(annotation) if union else (annotation,)
    return tuple(k for k in kinds if k is not type(None)), type(None) in kinds, options


def _parameters(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Return annotation and default of each parameter; those that cannot be evaluated are None."""
    space = vars(sys.modules[function.__module__])
    found: dict[str, tuple[Any, Any]] = {}
    for name, one in inspect.signature(function).parameters.items():
        annotation = one.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, space)
            except (NameError, TypeError, AttributeError):  # imported for type checkers only
                annotation = None
        found[name] = annotation, one.default
    return found


def _is_option(kinds: tuple[Any, ...]) -> bool:
    """Return whether a parameter of these types becomes a control by itself."""
    return bool(kinds) and all(
        kind in _PLAIN or get_origin(kind) is Literal or _is_enum(kind) for kind in kinds
    )


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a function, those that become controls, with their defaults."""
    return {
        name: default
        for name, (annotation, default) in _parameters(function).items()
        if _is_option(_split(annotation)[0])
    }


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _is_path(kind: Any) -> bool:
    return isinstance(get_origin(kind) or kind, type) and issubclass(
        get_origin(kind) or kind, (Path, PathLike)
    )


def make_field(name: str, annotation: Any, default: Any, description: Description) -> Field:
    """Return the control of a parameter.

    Parameters
    ----------
    name : str
        The parameter.
    annotation : type
        Its type; ``Annotated[type, {...}]`` has options of magicgui (`label`, `tooltip`, `min`,
        `max`, `step`, `choices`), and of ours: `automatic`, the text that stands for None;
        `layers`, a callable that lists the layers to choose from; `names` and `tips`, texts and
        tooltips of choices by value; `suffix` of a number; `name`, the Qt widget's object name.
    default : object
        The value at first.
    description : Description
        From the docstring.
    """
    kinds, optional, options = _split(annotation)
    own = {key: options.pop(key) for key in _OWN if key in options}
    options.setdefault("label", name.replace("_", " ").capitalize())
    options.setdefault("tooltip", f"<qt>{escape(description.text)}</qt>")
    automatic = own.get("automatic", "automatic")
    choices = options.pop("choices", None) or description.choices or None
    kind: Any = kinds[0]
    if get_origin(kind) is Literal:
        choices = choices or get_args(kind)
    elif _is_enum(kind):
        choices = choices or [(str(one.value), one) for one in kind]
    nothing, whole, listing = None, False, None
    if isinstance(kind, type) and issubclass(kind, Layer):
        choices = _layer_choices(own["layers"], kinds)
    if choices is not None:
        names = own.get("names", {})
        if not callable(choices):
            choices = [one if isinstance(one, tuple) else (names.get(one, str(one)), one)
                       for one in choices]  # fmt: skip
        listing = _listing(choices)
        options |= {"widget_type": "ComboBox", "choices": listing, "nullable": optional}
    elif any(_is_path(one) for one in kinds):
        kind = Path
    elif optional and kind in (int, float):
        # The lowest value stands for None; only Qt's spin box of floats has a text for it.
        step = options.setdefault("step", 1 if kind is int else 0.1)
        nothing, whole = options.get("min", 0) - step, kind is int
        options |= {"widget_type": "FloatSpinBox", "min": nothing}
        options.setdefault("max", 10**6)
        default = nothing if default is None else default
        kind = float
    elif kind is int and "suffix" in own:
        options["widget_type"], whole = "FloatSpinBox", True
    parameter = MagicParameter(
        name,
        default=default,
        annotation=object if choices is not None else kind,
        gui_options=options,
        raise_on_unknown=True,
    )
    field = Field(parameter.to_widget(), nothing, whole, listing)
    _dress(field, own)
    if isinstance(field.widget, ComboBox):
        field.widget.null_string = automatic
        with field.widget.changed.blocked():
            field.list_choices()
        native: Any = field.widget.native
        for choice, tip in own.get("tips", description.tips).items():
            native.setItemData(native.findData(choice), tip, Qt.ItemDataRole.ToolTipRole)
    return field


def _layer_choices(layers: Callable[[], Iterable[Any]], kinds: tuple[Any, ...]) -> Any:
    """Return a callable that lists layers, those of the first type first."""

    def choices() -> list[tuple[str, Any]]:
        candidates = list(layers())
        return [(str(one.name), one) for k in kinds for one in candidates if isinstance(one, k)]

    return choices


def _listing(choices: Any) -> Callable[[Any], list[tuple[str, Any]]]:
    """Return choices as magicgui asks for them, again at each `reset_choices`."""

    def listed(_: Any) -> list[tuple[str, Any]]:
        return list(choices() if callable(choices) else choices)

    return listed


def _dress(field: Field, own: Mapping[str, Any]) -> None:
    """Set what magicgui leaves to Qt."""
    widget = field.widget
    native: Any = widget.native
    native.setObjectName(own.get("name", widget.label.lower()))
    native.setAccessibleName(widget.label)
    if isinstance(native, QComboBox):
        native.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        native.setMinimumContentsLength(_NARROWEST)
        native.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    if isinstance(native, QAbstractSpinBox):
        native.setKeyboardTracking(False)
        native.setMinimumWidth(60)
    if isinstance(native, QDoubleSpinBox):
        if field.whole:
            native.setDecimals(0)
        if field.nothing is not None:
            native.setSpecialValueText(own.get("automatic", "automatic"))
        native.setSuffix(own.get("suffix", ""))
    if isinstance(widget, FileEdit):
        widget.choose_btn.text = "…"
        widget.choose_btn.native.setToolTip("Choose in a window")
        widget.choose_btn.native.setFixedWidth(28)
        widget.line_edit.native.setToolTip(native.toolTip())


# The form.


class Form(QWidget):
    """Controls for the options of functions, in magicgui containers.

    Every parameter that is a number, a switch, a text or a choice becomes a control; parameters of
    other types (arrays, graphs, callbacks) do not, unless `table` has them.

    Parameters
    ----------
    *functions : callable
        The functions whose parameters these are; later ones add to the first.
    table : mapping of str to type, optional
        For parameters that need more than the library says: ``Annotated[type, {...}]`` as
        `make_field` takes it. The type may be `None`, for that of the library.
    only : sequence of str, optional
        The parameters that become controls; by default all that can.
    without : sequence of str
        Parameters that get no control.
    first : sequence of str, optional
        The parameters that are in sight; all others are folded away.
    more : str
        Title of the part that is folded away.
    labels : bool
        Whether controls have labels at their left.
    layout : {"vertical", "horizontal"}
        Direction in which the controls stand.
    """

    changed = Signal(str)  # the parameter that the user has changed

    def __init__(
        self,
        *functions: Callable[..., Any],
        table: Mapping[str, Any] | None = None,
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        first: Sequence[str] | None = None,
        more: str = "More",
        labels: bool = True,
        layout: str = "vertical",
    ) -> None:
        super().__init__()
        self.fields = _fields(functions, dict(table or {}), only, without)
        shown = [name for name in self.fields if first is None or name in first]
        folded = [name for name in self.fields if name not in shown]
        self._labels, self._layout = labels, layout
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.container = self._container(shown)
        column.addWidget(self.container.native)
        self.more: QCollapsible | None = None
        if folded:
            self.rest = self._container(folded)
            labels_of = ", ".join(self.fields[name].widget.label for name in folded)
            self.more = fold(more, self.rest.native, labels_of)
            column.addWidget(self.more)
        for name, field in self.fields.items():
            field.widget.changed.connect(lambda _, n=name: self.changed.emit(n))

    def __getitem__(self, name: str) -> Any:
        """Return the magicgui widget of a parameter."""
        return self.fields[name].widget

    def values(self) -> dict[str, Any]:
        """Return the keyword arguments of the functions."""
        return {name: field.value for name, field in self.fields.items()}

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these values, without telling that they changed."""
        for name, value in values.items():
            if name in self.fields:
                self.fields[name].show(value)

    def _container(self, names: Sequence[str]) -> Any:
        widgets = [self.fields[name].widget for name in names]
        made = Container(widgets=widgets, labels=self._labels, layout=self._layout)
        made.margins = (0, 0, 0, 0)
        made.native.layout().setSpacing(3)
        for label in made.native.findChildren(QLabel):
            label.setMinimumWidth(_LABEL_WIDTH)
        return made


def _fields(
    functions: tuple[Callable[..., Any], ...],
    table: dict[str, Any],
    only: Sequence[str] | None,
    without: Sequence[str],
) -> dict[str, Field]:
    parameters: dict[str, tuple[Any, Any]] = {}
    text: dict[str, Description] = {}
    for one in functions:
        parameters |= _parameters(one)
        text |= descriptions(one)
    if not functions:
        parameters = {name: (kind, inspect.Parameter.empty) for name, kind in table.items()}
    unknown = [name for name in (*table, *(only or ())) if name not in parameters]
    if unknown:
        raise KeyError(f"no parameter {unknown[0]}")
    found: dict[str, Field] = {}
    for name, (annotation, default) in parameters.items():
        if name in without or (only is not None and name not in only):
            continue
        annotation = _merged(annotation, table.get(name))
        if name in table or only is not None or _is_option(_split(annotation)[0]):
            found[name] = make_field(name, annotation, default, text.get(name, Description()))
    return found


def _merged(annotation: Any, entry: Any) -> Any:
    """Return the annotation of the library with that of the table over it."""
    if entry is None:
        return annotation
    if isinstance(entry, Mapping):
        return Annotated[annotation, dict(entry)]
    return entry


def fold(title: str, content: QWidget, tooltip: str = "") -> QCollapsible:
    """Return a part that is folded away until its button is clicked."""
    part = QCollapsible(title)
    part.setObjectName(title.lower())
    part.setToolTip(tooltip)
    part.setDuration(0)
    part.setContent(content)
    close_up(part)
    part.collapse(animate=False)
    return part


def ask_form(
    parent: QWidget, title: str, form: Form, accept: str, act: Callable[..., object]
) -> QDialog:
    """Show a form in a dialog that does not keep the window waiting; `accept` calls `act`."""
    dialog = QDialog(parent)
    dialog.setObjectName("agglo form")
    dialog.setWindowTitle(title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    buttons = QDialogButtonBox()
    buttons.addButton("Cancel", QDialogButtonBox.ButtonRole.RejectRole)
    button = buttons.addButton(accept, QDialogButtonBox.ButtonRole.AcceptRole)
    if button is not None:
        button.setObjectName(accept)

    def accepted() -> None:
        try:
            act(**form.values())
        except Exception as error:
            tell_error(error)
        else:
            dialog.accept()

    buttons.accepted.connect(accepted)
    buttons.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.addWidget(form)
    layout.addWidget(buttons)
    dialog.resize(420, dialog.sizeHint().height())
    dialog.open()
    return dialog
