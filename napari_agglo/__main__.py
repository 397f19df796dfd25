"""Run the command line by ``python -m napari_agglo``."""

from __future__ import annotations

if __name__ == "__main__":
    try:
        from napari_agglo.cli import main
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(main())
