"""The table of cues: a check box, a name, a layer and a range for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import check_offsets, read_offsets
from napari_agglo.widgets._dataset import AffinityArray, Placement
from napari_agglo.widgets._qt import ROW_HEIGHT, style_table
from napari_agglo.widgets.data._guess_roles import BOUNDARY, cue_name, is_high_inside
from napari_agglo.widgets.data._layers import (
    ALL,
    channel_of,
    data_of,
    directions_of,
    offsets_of,
    placement_of,
    shape_of,
)

if TYPE_CHECKING:
    from napari_agglo.widgets.data._selection import Selection


AUTOMATIC = "auto"  # the range of the type or of the values
AFFINITY = "affinity"  # the name of affinities as a cue


@dataclass
class CueRow:
    """A possible cue: an Image layer, or one of its channels, with a name and a range."""

    layer: Any
    channel: tuple[int, int] | None  # axis and index, or `ALL`, of a layer with channels
    name: str  # in the graph and the policy
    used: bool = False
    range_text: str = ""  # ``LOW:HIGH`` as typed; empty for the range of its type or values
    offsets_text: str = ""  # of affinities, as typed; empty for those of the layer
    chosen: bool = False  # the user has ticked or unticked it
    named: bool = False  # the user has named it
    guessed: bool = False  # it is named the boundary, though its layer is not called so

    @classmethod
    def of(cls, layer: Any, channel: tuple[int, int] | None) -> CueRow:
        """Return the row of a layer or channel, by its own name."""
        row = cls(layer, channel, "")
        row.name = row._own_name()
        return row

    def _own_name(self) -> str:
        if self.is_affinities:
            return AFFINITY
        return cue_name(self.layer) + ("" if self.channel is None else f"_{self.channel[1]}")

    def guess_boundary(self) -> None:
        """Name the cue the boundary until another one is."""
        self.name, self.guessed = BOUNDARY, True

    def drop_guess(self) -> None:
        """Give the cue its own name again if it was guessed to be the boundary."""
        if self.guessed:
            self.name, self.guessed = self._own_name(), False

    @property
    def key(self) -> tuple[int, tuple[int, int] | None]:
        """The identity of the row in a new list of layers."""
        return id(self.layer), self.channel

    @property
    def source(self) -> str:
        """The name of the layer, with the channel."""
        if self.channel is None or self.is_affinities:
            return str(self.layer.name)
        return f"{self.layer.name} [{self.channel[1]}]"

    @property
    def is_affinities(self) -> bool:
        """Whether the row has all channels of a layer, as affinities."""
        return self.channel is not None and self.channel[1] == ALL

    @property
    def note(self) -> str:
        """A sentence on values that are high inside of objects by the name of the layer."""
        if not self.used or not is_high_inside(self.layer):
            return ""
        if self.is_affinities:
            n, n_used = shape_of(self.layer)[0], self._n_offsets()
            part = f"the first {n_used} of {n} channels" if n_used < n else f"{n} channels"
            if n_used < n:
                part += " (to use all, type their offsets in the field above)"
            text = f"“{self.source}” was recognised as affinities: {part}, high inside of objects"
            return f"{text} (range {self.range_text or AUTOMATIC})."
        low, _, high = self.range_text.partition(":")
        if self.limits is None or float(low) < float(high):
            return (
                f"By its name, “{self.source}” may be high inside of objects. It is not inverted; "
                "to invert it, type a descending range."
            )
        return (
            f"By its name, “{self.source}” is high inside of objects, so it is inverted (range "
            f"{self.range_text})."
        )

    @property
    def channel_text(self) -> str | None:
        """The axis and index of the channel, for a file; None for a whole layer."""
        return None if self.channel is None else f"{self.channel[0]}:{self.channel[1]}"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the axis of channels."""
        whole = shape_of(self.layer)
        axis = None if self.channel is None else self.channel[0]
        return tuple(n for a, n in enumerate(whole) if a != axis)

    @property
    def placement(self) -> Placement:
        """The placement of the cue in the world."""
        return placement_of(self.layer, None if self.channel is None else self.channel[0])

    @property
    def data(self) -> Any:
        """The pixels, not read yet; of affinities, with their offsets."""
        if self.is_affinities:
            return AffinityArray(data_of(self.layer), self.offsets)
        if self.channel is not None:
            return channel_of(self.layer, *self.channel)
        directions = directions_of(self.layer)
        return data_of(self.layer) if directions is None else directions

    @property
    def offsets(self) -> tuple[tuple[int, ...], ...]:
        """The offsets of the first channels of affinities; refuse a text that has others."""
        text = self.offsets_text.strip()
        if text in ("", AUTOMATIC):
            return offsets_of(self.layer)
        typed, shape = read_offsets(text), shape_of(self.layer)
        if len(typed) > shape[0]:
            raise InvalidInput(
                f"“{self.source}” has {shape[0]} channels, and {len(typed)} offsets are typed",
                argument="offsets",
                remedy="type one for each channel, or clear them",
            )
        return check_offsets(typed, (len(typed), *shape[1:]))

    def _n_offsets(self) -> int:
        try:
            return len(self.offsets)
        except InvalidInput:  # which the box of problems shows
            return len(offsets_of(self.layer))

    @property
    def limits(self) -> tuple[float, float] | None:
        """The values that mean 0 and 1; None for the automatic range."""
        text = self.range_text.strip()
        if text in ("", AUTOMATIC):
            return None
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            low = high = math.nan
        if not math.isfinite(low + high) or low == high:
            raise InvalidInput(
                f"The range of “{self.name}” must be two numbers with a colon between them, such "
                f"as 0:255 (255:0 if boundaries are dark), not “{text}”",
                argument=f"ranges[{self.name!r}]",
                remedy="clear it to use the automatic range",
            )
        return low, high


USED, LAYER, RANGE = range(3)
_TITLES = ("Cue", "Layer", "Range")
_TIPS = (
    "A cue is evidence for each pixel, from 0 to 1. Tick those to use. “boundary” is high on "
    "boundaries, and defines superpixels and the mean policy. Double-click to rename; a trained "
    "policy finds its cues by these names.",
    "The layer of the cue.",
    "The values of “no boundary” and “boundary”, such as 0:255; 255:0 if boundaries are dark. "
    "Automatic: 0:255 for bytes, 0:1 for floats, the range of the values for other whole numbers.",
)
_MOST_ROWS = 5  # visible without scrolling


class CueTable(QTableWidget):
    """An editable table of the cues of a selection."""

    def __init__(self, selection: Selection) -> None:
        super().__init__(0, len(_TITLES))
        style_table(self, "cues")
        self._selection = selection
        self._rows: list[CueRow] = []
        self.setHorizontalHeaderLabels(list(_TITLES))
        for column, tip in enumerate(_TIPS):
            header_item = self.horizontalHeaderItem(column)
            if header_item is not None:
                header_item.setToolTip(tip)
        header = self.horizontalHeader()
        assert header is not None
        header.setSectionResizeMode(USED, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(LAYER, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(RANGE, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(RANGE, 66)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setShowGrid(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names of layers begin alike
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemChanged.connect(self._on_changed)

    def sizeHint(self) -> QSize:
        """Return the height of the rows, up to a few."""
        header = self.horizontalHeader()
        top = 26 if header is None else header.sizeHint().height()
        rows = min(max(1, self.rowCount()), _MOST_ROWS)
        return QSize(300, top + ROW_HEIGHT * rows + 4)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Update the height, as the header has its style only now."""
        super().showEvent(event)
        self.setFixedHeight(self.sizeHint().height())

    def follow(self) -> None:
        """Show the rows of the selection."""
        if self.state() == QAbstractItemView.State.EditingState:
            return  # the user is typing; an update follows
        self._rows = list(self._selection.rows)
        self.blockSignals(True)
        try:
            self.setRowCount(len(self._rows))
            for number, row in enumerate(self._rows):
                self._show(number, row)
        finally:
            self.blockSignals(False)
        self.setFixedHeight(self.sizeHint().height())

    def _show(self, number: int, row: CueRow) -> None:
        flags = Qt.ItemFlag.ItemIsEnabled
        texts = (row.name, row.source, row.range_text.strip() or AUTOMATIC)
        for column, text in enumerate(texts):
            item = self.item(number, column)
            if item is None:
                item = QTableWidgetItem()
                self.setItem(number, column, item)
            item.setText(text)
            item.setToolTip(_TIPS[column] if column != LAYER else row.source)
            item.setFlags(flags if column == LAYER else flags | Qt.ItemFlag.ItemIsEditable)
        used = self.item(number, USED)
        if used is not None:
            used.setFlags(used.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            used.setCheckState(Qt.CheckState.Checked if row.used else Qt.CheckState.Unchecked)

    def _on_changed(self, item: QTableWidgetItem) -> None:
        row = self._rows[item.row()]
        if item.column() == RANGE:
            self._selection.set_cue(row, range_text=item.text())
        else:
            ticked = item.checkState() == Qt.CheckState.Checked
            self._selection.set_cue(row, used=ticked, name=item.text().strip())
