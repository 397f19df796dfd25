"""Forms: magicgui controls made from the parameters of library functions.

A parameter is declared once, in the library. Its annotation gives the control and its range, its
default the first value, and the numpydoc section "Parameters" the tooltip and, as
``{"agglo", "flat"}``, the choices. A table beside the form adds only what a window needs: labels,
layers to choose from, a unit. `Form.values` gives the keyword arguments back.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
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
    QLineEdit,
    QSizePolicy,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo.widgets._qt import close_up, column, keep_narrow, named, shortened, tell_error

_PLAIN = (bool, int, float, str)  # types that become controls by themselves
_LABEL_WIDTH = 92  # pixels, so that the controls of several forms stand in one column
_LAYER_NAME = 24  # letters of the name of a layer; a longer one loses its middle
_OWN = ("automatic", "layers", "name", "names", "suffix", "tips")  # options that are not magicgui's


class Description(NamedTuple):
    """The text on a parameter, the choices that its type lists, and the text on each of them."""

    text: str = ""
    choices: tuple[str, ...] = ()
    tips: Mapping[str, str] = types.MappingProxyType({})


def descriptions(function: Callable[..., Any]) -> dict[str, Description]:
    """Return the descriptions of parameters in the docstring of a function, by name.

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
    entries: dict[str, Description] = {}
    for head, body in re.findall(r"^(\S.*)\n((?:[ ]+.*\n?|\n)*)", section[1] if section else "",
                                 re.MULTILINE):  # fmt: skip
        names, _, kind = head.partition(" : ")
        braces = re.search(r"\{(.*?)\}", kind)
        choices = literal_eval(f"({braces[1]},)") if braces else ()
        text = " ".join(body.split())
        tips = re.findall(r"\*(\w+)\*: (.*?)(?= \*\w+\*: |$)", text)
        for name in names.split(","):
            entries[name.strip()] = Description(
                _plain(text), choices, {choice: _plain(tip) for choice, tip in tips}
            )
    return entries


def _plain(text: str) -> str:
    """Return a text without its markup of emphasis and code."""
    return re.sub(r"`+|\*(?=\w)|(?<=\w)\*", "", text)


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
        """Show a value, without a signal that it changed."""
        if value is None and self.nothing is not None:
            value = self.nothing
        with self.widget.changed.blocked():
            self.list_choices()
            self.widget.value = value

    def list_choices(self) -> None:
        """List the current choices in their order; magicgui would append new ones."""
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
            options |= one if isinstance(one, Mapping) else {"tooltip": str(one)}
    union = get_origin(annotation) in (Union, types.UnionType)
    kinds = get_args(annotation) if union else (annotation,)
    return tuple(k for k in kinds if k is not type(None)), type(None) in kinds, options


def _parameters(function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Return annotation (None if it cannot be evaluated) and default of each parameter."""
    space = vars(sys.modules[function.__module__])
    parameters: dict[str, tuple[Any, Any]] = {}
    for name, one in inspect.signature(function).parameters.items():
        annotation = one.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, space)
            except (NameError, TypeError, AttributeError):  # imported for type checkers only
                annotation = None
        parameters[name] = annotation, one.default
    return parameters


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
    plain = get_origin(kind) or kind
    return isinstance(plain, type) and issubclass(plain, PathLike)


def make_field(name: str, annotation: Any, default: Any, description: Description) -> Field:
    """Return the control of a parameter.

    ``Annotated[type, {...}]`` has options of magicgui (`label`, `tooltip`, `min`, `max`, `step`,
    `choices`), and of ours: `automatic`, the text that stands for None; `layers`, a callable that
    lists the layers to choose from; `names` and `tips`, texts and tooltips of choices by value;
    `suffix` of a number; `name`, the Qt widget's object name. A text is the tooltip.
    """
    kinds, optional, options = _split(annotation)
    own = {key: options.pop(key) for key in _OWN if key in options}
    options.setdefault("label", name.replace("_", " ").capitalize())
    options.setdefault("tooltip", f"<qt>{escape(description.text)}</qt>")
    if not options["tooltip"].startswith("<"):  # Qt folds the lines of rich text alone
        options["tooltip"] = f"<qt>{escape(options['tooltip'])}</qt>"
    automatic = own.get("automatic", "automatic")
    choices = options.pop("choices", None) or description.choices or None
    kind: Any = kinds[0]
    if get_origin(kind) is Literal:
        choices = choices or get_args(kind)
    elif _is_enum(kind):
        choices = choices or [(str(one.value), one) for one in kind]
    nothing, whole, listing = None, False, None
    if isinstance(kind, type) and issubclass(kind, Layer):
        choices = partial(_layer_choices, own["layers"], kinds)
    if choices is not None:
        names = own.get("names", {})
        if not callable(choices):
            choices = [one if isinstance(one, tuple) else (names.get(one, str(one)), one)
                       for one in choices]  # fmt: skip
        # As magicgui asks for choices, again at each `reset_choices`.
        listing = lambda _: list(choices() if callable(choices) else choices)  # noqa: E731
        options |= {"widget_type": "ComboBox", "choices": listing, "nullable": optional}
    elif any(_is_path(one) for one in kinds):
        kind = Path
        options.setdefault("nullable", optional)
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


def _layer_choices(
    layers: Callable[[], Iterable[Any]], kinds: tuple[Any, ...]
) -> list[tuple[str, Any]]:
    """Return layers by name, those of the first type first; long names without their middle."""
    candidates = list(layers())
    ordered = [one for kind in kinds for one in candidates if isinstance(one, kind)]
    names = [shortened(str(one.name), _LAYER_NAME) for one in ordered]
    if len(set(names)) < len(names):
        names = [str(one.name) for one in ordered]
    return list(zip(names, ordered, strict=True))


def _dress(field: Field, own: Mapping[str, Any]) -> None:
    """Set the properties that only Qt has."""
    widget = field.widget
    native: Any = widget.native
    native.setObjectName(own.get("name", widget.label.lower()))
    native.setAccessibleName(widget.label)
    if isinstance(native, QComboBox):
        keep_narrow(native)
    if isinstance(native, QLineEdit):
        native.setPlaceholderText(own.get("automatic", ""))
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
        widget.choose_btn.native.setToolTip("Browse files")
        widget.choose_btn.native.setAccessibleName(f"Browse: {widget.label}")
        widget.line_edit.native.setAccessibleName(widget.label)
        widget.choose_btn.native.setFixedWidth(28)
        widget.line_edit.native.setToolTip(native.toolTip())
        widget.line_edit.native.setPlaceholderText(own.get("automatic", "none"))


class Form(QWidget):
    """Controls for the options of functions, in magicgui containers.

    Every number, switch, text or choice becomes a control, and a path if `only` names it.
    Parameters of other types (arrays, graphs, callbacks) need an entry in `table`: a type as
    `make_field` takes it, or a mapping of options beside the type of the library. `only` and
    `without` restrict the parameters. Those `first` are visible (by default all); the others are
    folded away under the title `more`.
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
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.container = self._container(shown)
        body = column(self, self.container.native, spacing=2)
        self.container.native.setVisible(bool(shown))  # an empty one has a height, too
        self.more: QCollapsible | None = None
        if folded:
            self.rest = self._container(folded)
            labels_of = ", ".join(self.fields[name].widget.label for name in folded)
            self.more = fold(more, self.rest.native, labels_of)
            body.addWidget(self.more)
        for name, field in self.fields.items():
            field.widget.changed.connect(lambda _, n=name: self.changed.emit(n))

    def __getitem__(self, name: str) -> Any:
        """Return the magicgui widget of a parameter."""
        return self.fields[name].widget

    def values(self) -> dict[str, Any]:
        """Return the keyword arguments of the functions."""
        return {name: field.value for name, field in self.fields.items()}

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Show these values, without a signal that they changed."""
        for name, value in values.items():
            if name in self.fields:
                self.fields[name].show(value)

    def _container(self, names: Sequence[str]) -> Any:
        widgets = [self.fields[name].widget for name in names]
        container = Container(widgets=widgets, labels=self._labels, layout=self._layout)
        container.margins = (0, 0, 0, 0)
        container.native.layout().setSpacing(3)
        for label in container.native.findChildren(QLabel):
            label.setMinimumWidth(_LABEL_WIDTH)
        return container


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
    fields: dict[str, Field] = {}
    for name, (annotation, default) in parameters.items():
        if name in without or (only is not None and name not in only):
            continue
        entry = table.get(name)  # options beside the library's annotation, or one in its place
        if isinstance(entry, Mapping):
            annotation = Annotated[annotation, dict(entry)]
        elif entry is not None:
            annotation = entry
        kinds = _split(annotation)[0]
        named_path = only is not None and any(_is_path(kind) for kind in kinds)
        if name in table or named_path or _is_option(kinds):
            fields[name] = make_field(name, annotation, default, text.get(name, Description()))
    return fields


def fold(title: str, content: QWidget, tooltip: str = "") -> QCollapsible:
    """Return a part that is folded away until a click on its button."""
    part = named(QCollapsible(title), title.lower(), tooltip)
    part.setDuration(0)
    part.setContent(content)
    close_up(part)
    part.collapse(animate=False)
    return part


def ask_form(
    parent: QWidget, title: str, form: Form, accept: str, act: Callable[..., object]
) -> QDialog:
    """Show a form in a dialog that does not block the window; `accept` calls `act`."""
    dialog = named(QDialog(parent), "agglo form")
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
    column(dialog, form, buttons, spacing=8).setContentsMargins(9, 9, 9, 9)
    dialog.resize(420, dialog.sizeHint().height())
    dialog.open()
    return dialog
