"""Units of length: the names that files use for them, and conversion between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from napari_agglo.errors import InvalidInput, SetOption

MICROMETRE = "micrometer"
ELEMENT_UNIT = "element_size_unit"  # "unknown" if the numbers of element_size_um have no unit
NO_UNIT = "reference frame"  # in OME-TIFF, where a size without a unit is in µm
# the name in OME-Zarr (UDUNITS-2) of each unit, its symbol in OME-TIFF, and its length in µm
_UNITS = {
    "angstrom": ("Å", 1e-4),
    "nanometer": ("nm", 1e-3),
    "micrometer": ("µm", 1.0),
    "millimeter": ("mm", 1e3),
    "centimeter": ("cm", 1e4),
    "inch": ("in", 25400.0),
    "meter": ("m", 1e6),
}
_SPELLINGS = {
    "å": "angstrom", "nm": "nanometer", "nanometre": "nanometer", "um": "micrometer",
    "µm": "micrometer", "μm": "micrometer", "\\u00b5m": "micrometer", "micron": "micrometer",
    "microns": "micrometer", "micrometre": "micrometer", "mm": "millimeter",
    "millimetre": "millimeter", "cm": "centimeter", "centimetre": "centimeter", "m": "meter",
    "metre": "meter",
    **{name: name for name in _UNITS},
}  # fmt: skip


def unit_name(unit: object) -> str | None:
    """Return the name of a unit of length as OME-Zarr spells it; None if it is not a known one.

    Examples
    --------
    >>> unit_name("nm"), unit_name("µm"), unit_name("second")
    ('nanometer', 'micrometer', None)
    >>> unit_name("nanometers")
    'nanometer'
    """
    text = str(unit).strip().lower() if unit else ""
    one = text.removesuffix("s") if len(text) > 4 else text  # "ms" is no length
    return _SPELLINGS.get(text) or _SPELLINGS.get(one)


def check_unit(unit: object) -> str:
    """Return the name of a unit of length; refuse anything else.

    Examples
    --------
    >>> check_unit("nm")
    'nanometer'
    """
    name = unit_name(unit)
    if name is None:
        raise InvalidInput(
            f"`unit` must be a unit of length, such as nm or µm, got {unit!r}",
            argument="unit",
            remedy=SetOption("unit", "nm"),
        )
    return name


def unit_symbol(unit: str) -> str:
    """Return the symbol of a unit, as OME-TIFF has it."""
    return _UNITS[unit][0]


def to_micrometres(value: object, unit: object) -> float:
    """Return a length in µm; one without a unit, or with one that is not a length, as it is."""
    name = unit_name(unit)
    number = float(value)  # type: ignore[arg-type]
    return convert(number, name, MICROMETRE) if name else number


def convert(value: float, unit: str, to: str) -> float:
    """Return a length in another unit, to 12 digits: 40 nm is 0.04 µm, not 0.0400...1.

    Examples
    --------
    >>> convert(40, "nanometer", "micrometer")
    0.04
    """
    if unit == to:
        return float(value)
    return float(f"{value * _UNITS[unit][1] / _UNITS[to][1]:.12g}")


def convert_all(spacing: Sequence[float], unit: str, to: str) -> tuple[float, ...]:
    """Return a spacing in another unit."""
    return tuple(convert(value, unit, to) for value in spacing)


class VoxelSize(NamedTuple):
    """Distances between voxels along each axis, with their unit.

    Attributes
    ----------
    spacing : tuple of float, optional
        The distances, if known.
    unit : str, optional
        Their unit, such as "micrometer", if known.
    """

    spacing: tuple[float, ...] | None
    unit: str | None = None

    def in_unit(self, unit: str | None) -> VoxelSize:
        """Return the size in a unit.

        Parameters
        ----------
        unit : str, optional
            The unit, such as "nm"; None leaves the size as it is.

        Returns
        -------
        VoxelSize
            Distances whose unit is not known are taken to be in `unit` already.

        Examples
        --------
        >>> VoxelSize((0.04, 0.004), "micrometer").in_unit("nm")
        VoxelSize(spacing=(40.0, 4.0), unit='nanometer')
        >>> VoxelSize((40.0, 4.0)).in_unit("nm")
        VoxelSize(spacing=(40.0, 4.0), unit='nanometer')
        """
        if unit is None:
            return self
        name = check_unit(unit)
        if self.spacing is None:
            return self
        return VoxelSize(convert_all(self.spacing, self.unit or name, name), name)

    def in_micrometres(self) -> VoxelSize:
        """Return the size in µm if its unit is known; else as it is.

        Returns
        -------
        VoxelSize
            The converted distances.
        """
        return self.in_unit(MICROMETRE if self.unit else None)


UNKNOWN = VoxelSize(None)
