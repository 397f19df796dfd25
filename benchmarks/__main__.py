"""Measure the speed of the library and of others in one run; see docs/performance.md.

python -m benchmarks                  run all parts (``make bench`` installs the peers first)
python -m benchmarks engine sessions  run some parts
python -m benchmarks --write          put the results of the last runs into the documentation

The rows of all parts are one table, followed by notes and by the goals that were missed. Each part
is kept as JSON in bench-output as soon as it has run; ``--write`` runs nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import (
    bench_compare,
    bench_compile,
    bench_engine,
    bench_evaluate,
    bench_learning,
    bench_pixels,
    bench_session,
    bench_start,
    bench_superpixels,
    bench_window,
    experiment_growth,
    peers,
    results,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"
PARTS = {
    "start": bench_start.run,
    "engine": bench_engine.run,
    "large": bench_engine.run_large,
    "end-to-end": bench_engine.run_end_to_end,
    "oversegment": bench_engine.run_oversegment,
    "superpixels": bench_superpixels.run,
    "pixels": bench_pixels.run,
    "evaluation": bench_evaluate.run,
    "comparison": bench_compare.run,
    "learning": bench_learning.run,
    "training": bench_learning.run_training,
    "growth": experiment_growth.run,
    "sessions": bench_session.run,
    "compilation": bench_compile.run,
    "window": bench_window.run,
}
# Tables with a command of their own: benchmarks.bsds, benchmarks.stacks, benchmarks.rivals without
# and with --affinities, benchmarks.bench_window stalls --profile, benchmarks.experiment_numbering,
# and benchmarks.compare_revisions on two volumes.
TABLES = (
    "bsds", "stacks", "rivals", "mutex", "turns", "numbering", "revisions-sample", "revisions-mini",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the parts, or write the documentation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART",
                        help=f"{', '.join(PARTS)} (default: all)")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/")
    parser.add_argument("--small", action="store_true", help="try it on small volumes")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-output"))
    options = parser.parse_args(arguments)
    if options.write:
        print("Written:", ", ".join(results.write_pages(options.output, DOCS)) or "nothing")
        return 0
    print(results.machine() + peers.missing())
    print("CPU seconds unless a row says wall; one thread, least of several interleaved runs.\n")
    print(results.line(results.HEADER) + "\n" + "|---" * len(results.HEADER) + "|")
    whole = results.Table()
    for part in options.parts or PARTS:
        options.output.mkdir(parents=True, exist_ok=True)
        table = results.Table(folder=options.output)
        PARTS[part](table, options.small)
        results.save(options.output, part, table, options.small)
        whole.rows += table.rows
        whole.notes += table.notes
    print("\n" + "\n".join(f"- {note}" for note in whole.notes))
    missed = [sentence for row in whole.rows for sentence in row.missed()]
    goals = sum(len(row.goals) for row in whole.rows)
    print(f"\nGoals missed: {len(missed)} of {goals}")
    print("\n".join(f"- {sentence}" for sentence in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
