"""Policies taught by answers to questions: a table and the plot of docs/learning.md.

    python -m benchmarks.experiment_questions [--seeds 3] [--only NAME,...] [-o DIR]

A simulated person, who knows the gold standard of the training volume, answers 200 questions, in
the order of `Questions` and in random order. After some of them a policy is trained from the
answers and tested on the other volume, beside the mean and a policy of the full gold standard.
Volumes of the data folder are left out where it is absent.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.experiment_little_gold import NAMES, errors
from benchmarks.lessons import lessons
from napari_agglo.errors import InvalidInput
from napari_agglo.learning import Questions, answer_by_gold

ANSWERS = (20, 50, 100, 200)
KEPT = Path("bench-output") / "questions"  # the runs of each volume; all of them are plotted


def experiment(name: str, seeds: int) -> pd.DataFrame:
    """Return a row for each order, number of answers and seed, and for the mean and full gold."""
    training, test = lessons()[name]()
    person = answer_by_gold(*training)
    rows = [{"set": name, "order": "mean", "answers": 0, "seed": 0, **errors(test, "mean")}]
    for seed in range(seeds):
        full = agglo.train(*training, seed=seed)
        rows.append({"set": name, "order": "full gold", "answers": 0, "seed": seed,
                     **errors(test, full)})  # fmt: skip
        for order in ("doubt", "random"):
            questions = Questions(training[0], order=order, seed=seed)
            unclear = 0
            for n in range(1, ANSWERS[-1] + 1):
                same = person(questions.next())
                unclear += same is None
                questions.answer(same)
                if n in ANSWERS:
                    row = {"set": name, "order": order, "answers": n, "seed": seed}
                    row["unclear"] = unclear
                    try:
                        rows.append({**row, **errors(test, questions.train())})
                    except InvalidInput:  # answers of one kind only
                        rows.append({**row, "at_half": np.nan, "best": np.nan})
            print(".", end="", flush=True)
    return pd.DataFrame(rows)


def table(runs: pd.DataFrame) -> str:
    """Return means over seeds as Markdown: VI at 0.5 / at the best threshold."""
    heads = [f"{n} answers" for n in ANSWERS]
    lines = ["| | " + " | ".join([*heads, "full gold", "mean"]) + " |", "|---" * 7 + "|"]

    def cell(rows: pd.DataFrame) -> str:
        text = f"{rows['at_half'].mean():.2f} / {rows['best'].mean():.2f}"
        failed = int(rows["best"].isna().sum())
        return text + f" ({failed} failed)" * bool(failed)

    for name, rows in runs.groupby("set", sort=False):
        for order in ("doubt", "random"):
            mine = rows[rows["order"] == order]
            cells = [cell(mine[mine["answers"] == n]) for n in ANSWERS]
            for other in ("full gold", "mean"):
                cells.append(cell(rows[rows["order"] == other]) if order == "doubt" else "")
            lines.append(f"| {NAMES[str(name)]}, {order} | " + " | ".join(cells) + " |")
    unclear = runs[runs["answers"] == ANSWERS[-1]].groupby(["set", "order"])["unclear"].mean()
    return "\n".join(lines) + f"\n\nAnswers that were None, of {ANSWERS[-1]}:\n{unclear}"


def plot(runs: pd.DataFrame, path: Path) -> None:
    """Draw VI at the best threshold against the number of answers, with its range over seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sets = list(runs["set"].unique())
    figure = Figure((4.6 * len(sets), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(sets))), sets, strict=True):
        mine = runs[runs["set"] == name]
        for order, colour in (("doubt", "#009e73"), ("random", "#d55e00")):
            rows = mine[mine["order"] == order]
            stats = rows.groupby("answers")["best"].agg(["mean", "min", "max"])
            label = "most doubtful first" if order == "doubt" else "random"
            axes.plot(stats.index, stats["mean"], "o-", color=colour, label=label)
            axes.fill_between(
                stats.index, stats["min"], stats["max"], color=colour, alpha=0.15, lw=0
            )
        full = mine[mine["order"] == "full gold"]["best"].mean()
        mean = mine[mine["order"] == "mean"]["best"].mean()
        for level, dashes, label in (
            (full, "-", "full gold"),
            (1.15 * full, ":", "full gold + 15 %"),
            (mean, "--", "mean policy"),
        ):
            axes.axhline(level, ls=dashes, lw=1, color="#555555", label=label)
        axes.set_title(NAMES[name])
        axes.set_xlabel("answers")
        axes.set_ylim(0, None)
        axes.grid(alpha=0.25)
    figure.axes[0].set_ylabel("VI at the best threshold, other volume (bits)")
    figure.axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=72)


def main() -> None:
    """Run the experiment, print the table, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    names = given.only.split(",") if given.only else [n for n in NAMES if n in lessons()]
    given.output.mkdir(parents=True, exist_ok=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in names:
        experiment(name, given.seeds).to_csv(KEPT / f"{name}.csv", index=False)
    files = [KEPT / f"{name}.csv" for name in NAMES]
    runs = pd.concat([pd.read_csv(file) for file in files if file.exists()])
    print("\n\n" + table(runs))
    plot(runs, given.output / "questions.png")


if __name__ == "__main__":
    main()
