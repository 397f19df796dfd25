"""A cue that could be used: a layer, or one channel of it, with a name and a range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._material import Placement
from napari_agglo.widgets.data._layers import channel_of, data_of, placement_of, shape_of

AUTOMATIC = "auto"  # what stands for the range of the type or the values


@dataclass
class CueRow:
    """One row of the list of cues.

    Attributes
    ----------
    layer : Image
        Where it comes from.
    channel : (int, int) or None
        Axis and index, of a layer with channels.
    name : str
        What the graph and the policy call it.
    used : bool
        Whether it is used.
    range_text : str
        ``LOW:HIGH`` as typed; empty for the range of its type or values.
    chosen, named : bool
        Whether the user said to use it or not, and how to call it.
    """

    layer: Any
    channel: tuple[int, int] | None
    name: str
    used: bool = False
    range_text: str = ""
    chosen: bool = False
    named: bool = False

    @property
    def key(self) -> tuple[int, tuple[int, int] | None]:
        """What stays the same when the layers are listed anew."""
        return id(self.layer), self.channel

    @property
    def source(self) -> str:
        """What the user knows it as."""
        return str(self.layer.name) + (f" [{self.channel[1]}]" if self.channel else "")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape without the axis of channels."""
        whole = shape_of(self.layer)
        axis = None if self.channel is None else self.channel[0]
        return tuple(n for a, n in enumerate(whole) if a != axis)

    @property
    def placement(self) -> Placement:
        """Where it lies."""
        return placement_of(self.layer, None if self.channel is None else self.channel[0])

    @property
    def data(self) -> Any:
        """Its pixels, still lazy."""
        return (
            data_of(self.layer) if self.channel is None else channel_of(self.layer, *self.channel)
        )

    @property
    def limits(self) -> tuple[float, float] | None:
        """The values that mean 0 and 1; None where the user did not say."""
        text = self.range_text.strip()
        if text in ("", AUTOMATIC):
            return None
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            low = high = math.nan
        if not math.isfinite(low + high) or low == high:
            raise InvalidInput(
                f"The range of “{self.name}” must be two numbers with a colon between, such as "
                f"0:255 (255:0 if dark is boundary), not “{text}”; clear it for the range of its "
                "type."
            )
        return low, high
