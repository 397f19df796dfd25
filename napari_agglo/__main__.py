"""Let ``python -m napari_agglo`` be the command line."""

from __future__ import annotations

from napari_agglo.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
