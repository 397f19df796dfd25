"""Teach by answering: a policy without gold, from answers to "Same object?" on the canvas.

The policy learns in a worker after every few answers, and questions go on meanwhile.
"""

# In its own file: a mode of the canvas, apart from the training on gold labels.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from napari.utils.notifications import show_info
from psygnal import Signal
from qtpy.QtWidgets import QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import contact_point
from napari_agglo.learning import Question, Questions
from napari_agglo.policy import LearnedPolicy, MeanPolicy, graph_digest, policy_record
from napari_agglo.widgets._key_bindings import KeyBindings, answer_button
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._project import Project, Regions, Trained
from napari_agglo.widgets._qt import button, column, label, link, per_viewer, row, tell_error
from napari_agglo.widgets._remedies import window_sentence
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.hierarchy._build_tree import fitting
from napari_agglo.widgets.train._trainer import TRAIN, Trainer

TEACH = "teach"  # the name of the job
_EVERY = 5  # answers between two trainings


class QuestionMode:
    """The current question, and the answers; one object per viewer."""

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self.scene = per_viewer(viewer, Scene)
        self.project = self.scene.project
        self.trainer = per_viewer(viewer, Trainer)
        self.on = False
        self.current: Question | None = None
        self.message = ""  # the reason of the end
        self.questions: Questions | None = None
        self._regions: Regions | None = None
        self._kept: dict[str, Questions] = {}  # by the digest of their graph, until the end
        self._tried_at = 0  # number of answers when the last training began
        self._keys = KeyBindings()
        self.project.status_changed.connect(self._follow_data)
        self.project.hierarchy_changed.connect(self._follow_data)
        self.project.closing.connect(self._close)

    # Start and stop.

    def start(self, **options: Any) -> None:
        """Begin to ask about the regions of the project, or go on with former answers.

        The options are those of `Questions`; former questions keep their own.
        """
        regions = self.project.regions
        if self.on or regions is None or reason_against(self.project):
            return
        self.message = ""
        key = graph_digest(regions.graph)
        if key not in self._kept:
            mean = fitting(MeanPolicy(), regions.graph)
            try:
                self._kept[key] = Questions(regions.graph, every=_EVERY, start=mean, **options)
            except InvalidInput as error:
                self.message = window_sentence(error)
                self.changed.emit()
                return
        self.on, self._regions, self.questions = True, regions, self._kept[key]
        self._tried_at = self.questions.n_answers - self.questions.n_new
        actions = {"yes": self.yes, "no": self.no, "skip": self.skip, "undo": self.undo}
        viewer = self.scene.viewer  # keys of the active layer come before those of the viewer
        for owner in (viewer, viewer.layers.selection.active, self.scene.segmentation):
            self._keys.bind(owner, actions)
        self._ask()
        if self.current is None:
            self.learn()
        self.changed.emit()

    def stop(self) -> None:
        """Train the policy of the project on all answers, and stop asking."""
        questions, regions, epochs = self.questions, self._regions, self.trainer.options["epochs"]
        if not self.on or questions is None:
            return

        def work(progress: ProgressCallback) -> LearnedPolicy:
            return questions.train(epochs=epochs, progress=progress)

        def done(policy: LearnedPolicy) -> None:
            self.message = ""
            self.trainer.clear_errors()
            self.project.trained = Trained(policy, regions)

        def failed(error: Exception) -> None:
            if isinstance(error, InvalidInput):
                self.message = f"{window_sentence(error)} The policy is as before."
                self.changed.emit()
            else:
                tell_error(error)

        if not questions.n_answers:
            self._end("Nothing was answered. The policy is as before.")
        elif self.project.jobs.start(TRAIN, "Learning from your answers", work, done, failed):
            self._end(kept(questions))
        else:
            show_info("A training is running; stop again when it has finished.")

    def _end(self, message: str) -> None:
        self.on, self.current, self.message = False, None, message
        self.project.jobs.cancel(TEACH)
        self._keys.release()
        self.scene.hide_pair()
        self.changed.emit()

    def _follow_data(self) -> None:
        """Stop asking when the regions are no longer those of the project."""
        if not self.on or self.questions is None or self._regions is None:
            return
        regions, session = self.project.regions, self.project.session
        same = regions is not None and regions.graph is self._regions.graph
        if not same or reason_against(self.project):
            why = "the data have changed" if session is None else "a session was opened"
            self._end(f"Asking has ended: {why}. {kept(self.questions)}")

    def _close(self) -> None:
        self.on = False
        self._keys.release()

    # Answers.

    def yes(self) -> None:
        """Answer that both regions are one object."""
        self._answer(True)

    def no(self) -> None:
        """Answer that the regions are two objects."""
        self._answer(False)

    def skip(self) -> None:
        """Answer that it is unclear."""
        self._answer(None)

    def undo(self) -> None:
        """Take the last answer back, and ask again."""
        if self.on and self.questions is not None and self.questions.n_answers:
            self.questions.undo()
            self._tried_at = self.questions.n_answers - _EVERY  # an error is corrected at once
            self._ask()
            self.changed.emit()

    def _answer(self, same: bool | None) -> None:
        questions = self.questions
        if self.current is None or questions is None:
            self.scene.viewer.status = "There is no question to answer."
            return
        questions.answer(same)
        self._ask()
        waited = questions.n_answers - self._tried_at
        if waited and (self.current is None or (waited >= _EVERY and questions.is_due)):
            self.learn()
        self.changed.emit()

    # Questions.

    def learn(self) -> None:
        """Learn from the answers so far in a worker; questions go on."""
        questions = self.questions
        if not self.on or questions is None:
            return
        job = self.project.jobs.start(TEACH, "Learning", questions.learn, lambda _: None)
        if job is not None:
            self._tried_at = questions.n_answers
            job.ended.connect(lambda: self._on_learned(questions))

    def _on_learned(self, questions: Questions) -> None:
        if not self.on or self.questions is None:
            return
        if questions is not self.questions:  # of former data; the new ones wait for their turn
            self.learn()
            return
        if self.current is None:
            self._ask()
        if self.current is None and questions.n_answers != self._tried_at:  # answered meanwhile
            self.learn()
        elif self.current is None and questions.is_due:  # cancelled, or failed
            self._end(f"Asking has ended without a training. {kept(questions)}")
        self.changed.emit()

    def _ask(self) -> None:
        """Choose the question, and show both regions where they touch."""
        questions, regions = self.questions, self._regions
        assert questions is not None
        assert regions is not None
        try:
            self.current = questions.next(learn=False)
        except InvalidInput:
            self.current = None
            self.scene.hide_pair()
            return
        ids = questions.graph.ids
        pair = [np.searchsorted(ids, one) for one in (self.current.first, self.current.second)]
        sides = np.zeros(len(ids), np.int8)
        sides[pair[0]], sides[pair[1]] = 1, 2
        self.scene.show_pair(regions, *pair)
        place = contact_point(regions.graph, sides)
        if place is not None:
            self.scene.fly_to_question(place[1], regions.dataset.placement)


def reason_against(project: Project) -> str:
    """Return the reason that no question can be asked, as a sentence; empty if there is none."""
    regions, dataset = project.regions, project.dataset
    if regions is None or (dataset is not None and regions.dataset is not dataset):
        return "Questions need regions of the chosen data; build them in step 1, Data."
    if not regions.graph.n_boundaries:
        return "No two regions touch; compute smaller superpixels in step 1, Data."
    if project.session is not None:
        return "A session is open; close it in step 5, Proofread."
    return ""


def kept(questions: Questions) -> str:
    """Return a sentence on the answers."""
    n = questions.n_answers
    return f"{n} answer{' is' if n == 1 else 's are'} kept until the window is closed."


class TeachPanel(QWidget):
    """The button that starts the questions, the current one, its answers, and their number."""

    def __init__(self, mode: QuestionMode, options: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__()
        self.mode = mode
        self.run = RunRow(
            mode.project,
            TEACH,
            "Teach by answering…",
            "Train a policy without gold labels: answer whether two regions are the same object. "
            "From about 50 to 100 answers on, it is better than the mean.",
            lambda: mode.learn() if mode.on else mode.start(**options()),
        )
        self.question = label("same object", bold=True)
        self.yes = answer_button("yes", "Both regions are of one object", mode.yes)
        self.no = answer_button("no", "The regions are of two objects", mode.no)
        unclear = "Unclear, for instance because a region has parts of two objects"
        self.skip = answer_button("skip", unclear, mode.skip)
        back = "Take the last answer back (Ctrl + Z)"
        self.undo = button("Undo", back, mode.undo, "take back")
        end = "Train the policy on all answers, and stop asking"
        self.stop = button("Stop", end, mode.stop, "stop asking")
        self.line = label("answers")
        answers = (self.yes, self.no, self.skip)
        column(self, self.question, row(*answers), row(self.undo, self.stop), self.run, self.line)
        self._answers = answers
        link(self.follow, mode.changed, mode.project.status_changed)
        self.follow()

    def follow(self) -> None:
        """Show the current question, or the reason that there is none."""
        mode, questions = self.mode, self.mode.questions
        learns = mode.project.jobs[TEACH] is not None
        for part in (self.question, *self._answers, self.undo, self.stop):
            part.setVisible(mode.on)
        for answer in self._answers:
            answer.setEnabled(mode.current is not None)
        answered = questions is not None and questions.n_answers > 0
        self.undo.setEnabled(answered)
        if mode.current is not None:
            self.question.setText("Same object?")
        else:
            self.question.setText("Looking for questions…" if learns else "No more questions")
        reason = reason_against(mode.project)
        trains = mode.project.jobs[TRAIN] is not None  # which builds the regions too
        self.line.setText(
            self._progress(learns)
            if mode.on
            else f"{mode.message} {'' if trains else reason}".strip()
        )
        self.line.setVisible(bool(self.line.text()))
        go_on = "Continue answering…" if answered else "Teach by answering…"
        self.run.set_text("Learn now" if mode.on else go_on)
        if mode.on:
            self.run.set_ready(answered, "Answer a question first.")
        else:
            self.run.set_ready(not reason, reason)

    def _progress(self, learns: bool) -> str:
        """Return the numbers of answers, and whether the policy has learned from them."""
        questions = self.mode.questions
        assert questions is not None
        yes, no, skipped = questions.counts
        text = f"{questions.n_answers} answered: {yes} yes, {no} no, {skipped} skipped"
        if learns:
            return f"{text} · learning from them; continue answering"
        if policy_record(questions.policy) is None:
            return f"{text} · a policy needs answers of both kinds"
        return f"{text} · learned from {questions.n_answers - questions.n_new}"
