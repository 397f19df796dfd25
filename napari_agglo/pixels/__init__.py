"""Pixel classifier: from a few strokes, or a gold standard, to probabilities of classes."""

from napari_agglo.pixels._filters import FilterBank
from napari_agglo.pixels._live_training import LiveTraining
from napari_agglo.pixels._pixel_classifier import (
    PixelClass,
    PixelClassifier,
    check_classes,
    load_pixel_classifier,
)
from napari_agglo.pixels._train_pixels import train_pixels

__all__ = [
    "FilterBank",
    "LiveTraining",
    "PixelClass",
    "PixelClassifier",
    "check_classes",
    "load_pixel_classifier",
    "train_pixels",
]
