"""The steps of the guided dock, and how far each is."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from napari_agglo.policy import policy_record

if TYPE_CHECKING:
    from napari_agglo.widgets._project import Project


class Step(Enum):
    """The steps of the guided dock, in order; the value is the name of its job and its title."""

    DATA = "Data"
    TRAIN = "Train"
    HIERARCHY = "Hierarchy"
    EVALUATE = "Evaluate"
    PROOFREAD = "Proofread"


class Status(Enum):
    """How far a step is."""

    EMPTY = "empty"  # something is missing, and the hint says what
    READY = "ready"  # the first click works
    RUNNING = "running"
    DONE = "done"
    STALE = "stale"  # done, but what it was made from has changed since


def status_of(project: Project, step: Step) -> Status:
    """Return how far a step of a project is."""
    if project.jobs[step.value] is not None:
        return Status.RUNNING
    return _STATUS[step](project)


def _data(project: Project) -> Status:
    if project.built is None:
        if project.material is None:
            return Status.EMPTY if project.graph is None else Status.DONE  # an opened session
        return Status.READY
    if project.material is None or project.material is project.graph_of:
        return Status.DONE
    return Status.STALE


def _train(project: Project) -> Status:
    trained = policy_record(project.policy) is not None
    if trained:
        stale = project.policy_of is not None and (
            project.policy_of is not project.graph_of or project.gold_paint.since(Step.TRAIN.value)
        )
        return Status.STALE if stale else Status.DONE
    material = project.material
    ready = (material is not None and material.gold is not None) or bool(project.training)
    return Status.READY if ready else Status.EMPTY


def _hierarchy(project: Project) -> Status:
    if project.tree is None:
        has_data = project.material is not None or project.graph is not None
        return Status.READY if has_data else Status.EMPTY
    policy = project.tree_of[1]
    other = project.built_then is not project.built or policy is not project.policy
    if project.session is None and other:
        return Status.STALE
    return Status.DONE


def _evaluate(project: Project) -> Status:
    if project.curve is not None:
        painted = project.gold_paint.since(Step.EVALUATE.value)
        return Status.STALE if painted else Status.DONE
    return Status.READY if project.tree is not None and project.gold is not None else Status.EMPTY


def _proofread(project: Project) -> Status:
    if project.session is not None:
        return Status.DONE
    return Status.READY if project.tree is not None else Status.EMPTY


_STATUS = {
    Step.DATA: _data,
    Step.TRAIN: _train,
    Step.HIERARCHY: _hierarchy,
    Step.EVALUATE: _evaluate,
    Step.PROOFREAD: _proofread,
}
