"""The hierarchy with the edits of the open session, followed to its top when a file is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate import vi_curve
from napari_agglo.policy import Policy
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import dense_labels
from napari_agglo.widgets._project import Project

if TYPE_CHECKING:
    import pandas as pd

EDITED = "edited"  # the name of the job
_WITHOUT = "as the policy merged it, without edits"


class Edited:
    """What was edited in a project, as a hierarchy and as a curve.

    Neither follows each edit: an edit changes all scales above it, and what is above is only looked
    at when it is asked for.
    """

    def __init__(self, project: Project) -> None:
        self._project = project

    @property
    def there(self) -> bool:
        """Whether there are edits."""
        session = self._project.session
        return session is not None and session.can_undo

    @property
    def words(self) -> str:
        """Say which hierarchy it is."""
        session = self._project.session
        if session is None or not session.can_undo:
            return _WITHOUT
        done = sum(not item.undone for item in session.history)
        return f"with the {done} {'edit' if done == 1 else 'edits'} of {session.path.name}"

    @property
    def policy(self) -> Policy | None:
        """The policy of the hierarchy; edits may have taught another."""
        session = self._project.session
        policy: Policy | None = self._project.tree_of[1]
        return policy if session is None or not self.there else session.policy

    @property
    def state(self) -> object:
        """Something that is another after each edit."""
        session = self._project.session
        if session is None:
            return None
        return session.path, [(item.number, item.undone) for item in session.history]

    def ask_tree(self, then: Callable[[MergeTree], object]) -> None:
        """Have the hierarchy with all edits, once it is there; if there are none, as it is."""
        project, session = self._project, self._project.session
        if session is None or not self.there:
            if project.tree is not None:
                then(project.tree)
            return
        job = project.jobs.start(EDITED, "Following the edits", session.edited_tree, then)
        if job is not None:
            project.hold()  # meanwhile nobody asks anything of the session, or the window waits
            job.ended.connect(project.release)

    def ask_curve(self, then: Callable[[pd.DataFrame], object]) -> None:
        """Have the errors at every threshold, with all edits."""
        project, gold = self._project, self._project.gold
        if not self.there:
            if project.curve is not None:
                then(project.curve)
            return

        def compare(tree: MergeTree) -> None:
            def work(progress: ProgressCallback) -> pd.DataFrame:
                return vi_curve(tree, dense_labels(np.asarray(gold), "gold"), progress=progress)

            project.jobs.start(f"{EDITED} curve", "Comparing the edits with gold", work, then)

        self.ask_tree(compare)
