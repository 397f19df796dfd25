"""Make the moving picture of the landing page: ``python scripts/hierarchy_gif.py [FILE]``.

A policy is trained on one sample; another sample is shown from fine to coarse, by the mean of the
boundary map and by the learned policy.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

import napari_agglo as agglo

KIND = "neuropil2d"
CORNER = (slice(0, 160), slice(0, 160))
COLOURS = 28  # few, so that the file stays small


def regions(sample: agglo.Sample) -> agglo.RegionGraph:
    """Return the superpixels of a sample, with their statistics."""
    superpixels = agglo.oversegment(sample.cues["boundary"], spacing=sample.spacing)
    return agglo.region_graph(superpixels, sample.cues, spacing=sample.spacing)


def corner(sample: agglo.Sample) -> agglo.Sample:
    """Return a corner of a sample, which is all that fits on a page."""
    cues = {name: cue[CORNER] for name, cue in sample.cues.items()}
    return agglo.Sample(
        sample.name, sample.image[CORNER], cues, sample.gold[CORNER], sample.spacing
    )


def main(path: Path) -> None:
    """Train, agglomerate both ways, and write the picture."""
    lesson, shown = agglo.sample(KIND), corner(agglo.sample(KIND, seed=1))
    policy = agglo.train(regions(lesson), lesson.gold)
    graph = regions(shown)
    panels = {name: agglo.agglomerate(graph, rule) for name, rule in
              (("mean", "mean"), ("learned", policy))}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames"
        options = {"gold": shown.gold, "spacing": shown.spacing, "image": shown.image}
        agglo.write_movie(frames, panels, frames=15, size=320, **options)
        pictures = [Image.open(frame).convert("RGB") for frame in sorted(frames.iterdir())]
        few = [one.quantize(COLOURS, dither=Image.Dither.NONE) for one in pictures]
        few[0].save(path, save_all=True, append_images=few[1:], duration=250, loop=0, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/hierarchy.gif"))
