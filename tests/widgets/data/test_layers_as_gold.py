"""Label files that napari opened as images, and labels of several people, by one click each."""

from __future__ import annotations

import numpy as np
from napari.layers import Labels
from windows import draw, project_of, selection_of, settle

import napari_agglo as agglo
from napari_agglo.widgets import DataWidget


def test_label_files_become_labels_by_one_click(layers_only, crop):
    """Gold of one person and superpixels, both opened as images by napari."""
    viewer, chosen = layers_only, selection_of(layers_only)
    project, step = project_of(viewer), DataWidget(viewer)
    viewer.add_image(crop.image, name="em")
    viewer.add_image(crop.cues["boundary"], name="membrane")
    assert project.dataset is not None
    superpixels = agglo.oversegment(crop.cues["boundary"]).astype(np.uint16)
    for role, data in (("gold", crop.gold), ("superpixels", superpixels)):
        image = viewer.add_image(data.astype(np.uint16), name=f"em_{role}")
        assert chosen.image.name == "em", "a label file is no picture"
        assert getattr(chosen, role) is image, "its name says what it is"
        assert project.dataset is None
        assert [step.trouble.button.text(), step.trouble.second.text()] == [
            "Use it as labels", "Continue without it",
        ]  # fmt: skip
        place = viewer.layers.index(image)
        step.trouble.button.click()
        settle(project, 300)
        assert image not in viewer.layers, "no second layer of the same thing"
        assert isinstance(viewer.layers[place], Labels)
        assert viewer.layers[place].name == f"em_{role}"
        np.testing.assert_array_equal(getattr(project.dataset, role), data)
    image = viewer.add_image(crop.gold.astype(np.uint16), name="other truth")
    chosen.choose("gold", image)
    step.trouble.second.click()
    assert project.dataset.gold is None
    step.close()


def test_layers_that_cannot_be_gold_are_left_out_by_one_click(layers_only, crop):
    """Grey values, and labels of another shape."""
    viewer, chosen = layers_only, selection_of(layers_only)
    project, step = project_of(viewer), DataWidget(viewer)
    viewer.add_image(crop.cues["boundary"], name="membrane")
    grey = viewer.add_image((np.asarray(crop.image) * 255).astype(np.uint8), name="raw")
    other = viewer.add_labels(crop.gold[:50], name="half")
    whole = viewer.add_image(crop.gold.astype(np.float32), name="saved as numbers")
    for layer in (grey, other):
        chosen.choose("gold", layer)
        assert project.dataset is None
        assert step.trouble.button.text() == "Continue without it"
        assert not step.trouble.second.isVisibleTo(step)
        step.trouble.button.click()
        assert project.dataset.gold is None
    chosen.choose("gold", whole)
    assert step.trouble.button.text() == "Use it as labels"
    step.close()


def test_labels_of_several_people_teach_together(layers_only, crop):
    viewer, chosen = layers_only, selection_of(layers_only)
    project, step = project_of(viewer), DataWidget(viewer)
    viewer.add_image(crop.cues["boundary"], name="boundary")
    people = np.stack([crop.gold, np.roll(crop.gold, 2, axis=0), crop.gold]).astype(np.uint16)
    # As napari opens a stack: an image. One click makes it labels, and of three people.
    stack = viewer.add_image(people, name="human truth")
    draw()
    assert chosen.gold is stack
    assert "3 people" in step.trouble.message.text()
    step.trouble.button.click()
    settle(project, 300)
    assert len(project.dataset.golds) == 3
    np.testing.assert_array_equal(project.dataset.gold, people[0])
    assert step.people.isVisibleTo(step)
    before = project.dataset
    draw()
    assert project.dataset is before, "the parts of the stack are the same at every look"
    step.people.person.setValue(2)
    np.testing.assert_array_equal(project.dataset.gold, people[1])
    # All of them teach, as a list does in the library.
    graph = project.dataset.graph()
    golds = project.dataset.training_gold
    policy = agglo.train(graph, golds, strategy="flat", preset="minimal")
    same = agglo.train(graph, list(people), strategy="flat", preset="minimal")
    assert policy.record["to_merge"] == same.record["to_merge"]
    # Labels of several people that are labels already need a click as well.
    labels = viewer.add_labels(people, name="by hand")
    chosen.choose("gold", labels)
    assert "3 gold standards" in step.trouble.button.text()
    step.trouble.button.click()
    assert len(project.dataset.golds) == 3
    chosen.choose("gold", None)
    assert project.dataset.golds == ()
    step.close()
