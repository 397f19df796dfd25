"""Embedded samples, made once for all parts of `make test`: a volume takes eight seconds.

The files are valid for the present sources of the samples, and the versions of what these use;
others are made anew.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import os
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy
import skimage

from napari_agglo.samples import Sample, _sample

FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "samples"


@functools.cache
def _state() -> str:
    """Return a digest of all that a sample depends on but for its name and seed."""
    hashed = hashlib.sha256(f"{np.__version__} {scipy.__version__} {skimage.__version__}".encode())
    for path in sorted(Path(_sample.__file__).parent.glob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def _stored(make, name, shape, seed):
    """Return a sample from its file; make the file if there is none."""
    path = FOLDER / f"{name}-{seed!r}-{_state()}.npz"
    if not path.is_file():
        made = make(name, shape, seed)
        cues = {f"cue_{cue}": values for cue, values in made.cues.items()}
        FOLDER.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(part, image=made.image, gold=made.gold, spacing=made.spacing, **cues)
        part.replace(path)  # whole, also where two parts make it at once
    with np.load(path) as arrays:
        cues = {key[4:]: arrays[key] for key in arrays if key.startswith("cue_")}
        spacing = tuple(arrays["spacing"].tolist())
        return Sample(name, arrays["image"], cues, arrays["gold"], spacing)


@contextmanager
def samples_from_disk():
    """Let all callers of `sample` get copies of samples that are read or made once in a process."""

    def kept(make):
        read = functools.cache(functools.partial(_stored, make))
        return lambda *arguments: copy.deepcopy(read(*arguments))

    kinds = {name: (shape, kept(make)) for name, (shape, make) in _sample._KINDS.items()}
    with patch.dict(_sample._KINDS, kinds):
        yield
