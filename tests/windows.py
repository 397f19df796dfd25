"""What a person does with a window, for tests: show, wait."""

from __future__ import annotations

import time
from typing import Any

import napari_agglo as agglo


def show(project: Any, material: Any, threshold: float = 0.3) -> None:
    """Bring a project to a mean hierarchy of `material`."""
    graph = material.graph()
    project.set_material(material)
    project.set_graph(graph, material)
    project.threshold = threshold
    tree = agglo.agglomerate(graph, "mean")
    project.set_tree(tree, graph, project.policy, material.gold)


def settle(project: Any, seconds: float = 60) -> None:
    """Process events until no job runs."""
    from qtpy.QtWidgets import QApplication

    until = time.monotonic() + seconds
    while True:
        QApplication.processEvents()
        if not project.jobs.running():
            break
        if time.monotonic() > until:
            raise TimeoutError(f"still running: {project.jobs.running()}")
        time.sleep(0.005)
    QApplication.processEvents()


def draw() -> None:
    """Let the window draw all that is due."""
    from qtpy.QtWidgets import QApplication

    for _ in range(6):
        QApplication.processEvents()
        time.sleep(0.005)
