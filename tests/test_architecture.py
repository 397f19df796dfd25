"""The stream of imports, and rules for modules, names and docstrings. Sources are parsed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scripts import import_graph

PACKAGE = Path(__file__).parents[1] / "napari_agglo"
MODULES = import_graph.read_modules()
STREAM = {  # a stage imports only from those with a smaller number, and from itself
    "samples": 0,
    "volumes": 0,
    "superpixels": 1,
    "graph": 2,
    "features": 3,
    "shapes": 3,
    "policy": 4,
    "agglomeration": 5,
    "learning": 6,
    "partition": 7,
    "pixels": 7,
    "evaluate": 8,
    "compare": 9,
    "plots": 9,
    "movie": 10,
    "report": 10,
    "session": 11,
    "blocks": 12,  # a driver of the stages, which the other drivers may use
}
DRIVERS = {"widgets", "cli"}
COMMON = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"} | {"_numba"}
GUI = {"napari", "qtpy", "magicgui", "superqt", "pyqtgraph", "PyQt5", "PyQt6", "PySide2", "PySide6"}
RUNS_CODE = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}


def faults(source: str, module: str) -> list[str]:
    """Return what is wrong with a module, named like ``napari_agglo.graph._build_graph``."""
    own = module.split(".")[1]
    found = []
    for name in sorted(import_graph.imported_names(source, module.split(".")[:-1])):
        top, _, rest = name.partition(".")
        stage = rest.partition(".")[0]
        if top in GUI and own != "widgets":
            found.append(f"{module} imports {name}: only widgets may")
        if top in RUNS_CODE:
            found.append(f"{module} imports {name}: no file that we open may run code")
        if top != "napari_agglo":
            continue
        if own in STREAM or own in COMMON:
            if stage in DRIVERS:
                found.append(f"{module} imports {name}: no stage imports a driver")
            if stage in STREAM and not (
                own == stage or (own in STREAM and STREAM[stage] < STREAM[own])
            ):
                found.append(f"{module} imports {name}: against the stream")
            if stage not in STREAM.keys() | DRIVERS | COMMON:
                found.append(f"{module} imports {name}: through the front door, not from a stage")
        elif own in DRIVERS and stage in DRIVERS and stage != own:
            found.append(f"{module} imports {name}: drivers do not know each other")
    return found + _forbidden_keywords(source, module)


def _forbidden_keywords(source: str, module: str) -> list[str]:
    forbidden = {"allow_pickle": "runs code", "parallel": "aborts the process beside napari's own"}
    if not any(name in source for name in forbidden):  # parsing all sources takes seconds
        return []
    return [
        f"{module}: {keyword.arg}=... {forbidden[keyword.arg]}"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg in forbidden
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_every_module_keeps_to_the_stream(path):
    assert faults(path.read_text(encoding="utf-8"), module_name(path)) == []


def test_every_folder_has_its_place():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= STREAM.keys() | DRIVERS | COMMON
    assert "graph" in folders, "test invalid: nothing was found"


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("graph._build", "from napari_agglo.agglomeration import MergeTree", "against the stream"),
        ("graph._build", "from ..agglomeration import MergeTree", "against the stream"),
        ("graph._build", "from .. import agglomeration", "against the stream"),
        ("graph.__init__", "from ..agglomeration import MergeTree", "against the stream"),
        (
            "graph._build",
            "def f():\n    import napari_agglo.agglomeration._mean",
            "against the stream",
        ),
        (
            "graph._build",
            "import importlib\nimportlib.import_module('napari_agglo.agglomeration')",
            "stream",
        ),
        ("samples._a", "from napari_agglo.volumes import Volume", "against the stream"),
        ("errors", "from napari_agglo.volumes import Volume", "against the stream"),
        (
            "agglomeration._merge_tree",
            "from napari_agglo.cli import main",
            "no stage imports a driver",
        ),
        ("agglomeration._merge_tree", "import napari_agglo as agglo", "through the front door"),
        (
            "agglomeration._merge_tree",
            "from napari_agglo import region_graph",
            "through the front door",
        ),
        ("cli._main", "from napari_agglo.widgets import dock", "drivers do not know"),
        ("cli._main", "def f():\n    import napari", "only widgets may"),
        ("graph._build", "from qtpy.QtCore import QObject", "only widgets may"),
        ("graph._build", "import pickle", "run code"),
        ("policy._file", "from joblib import load", "run code"),
        ("policy._file", "np.load(f, allow_pickle=True)", "allow_pickle"),
        ("policy._file", "np.load(f, allow_pickle=flag)", "allow_pickle"),
        ("graph._build", "@njit(cache=True, parallel=True)\ndef f(): ...", "parallel"),
    ],
)
def test_import_rule_can_fail(module, source, complaint):
    found = faults(source, f"napari_agglo.{module}")
    assert any(complaint in fault for fault in found), found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("evaluate._curve", "from napari_agglo.agglomeration import MergeTree"),
        ("evaluate._curve", "from ._vi import split_vi"),
        ("graph._build", "from napari_agglo.errors import InvalidInput"),
        ("widgets._dock", "import napari"),
        ("cli._demo", "from napari_agglo.evaluate import vi_curve"),
        ("policy._file", "np.load(f, allow_pickle=False)"),
    ],
)
def test_import_rule_can_pass(module, source):
    assert faults(source, f"napari_agglo.{module}") == []


# Rules of the layout. Folders and files named in NOT_YET do not keep them yet; the lists shrink.

FIRST_WORDS = {"What", "Which", "Where", "How", "Who", "Whose", "Whom"}
NO_VERBS = {  # a property may begin so, as it reads like a value; a function or method has a verb
    "Whether", "If", "In", "Up", "When", "While", "For", "From", "With", "Without", "By", "At",
    "On", "To", "As", "Also", "All", "One", "Only", "It", "Its", "This", "That", "The", "A", "An",
}  # fmt: skip
REASON = re.compile(r"\bown file\b")  # "In its own file because ..."
NOT_YET = {
    "first words": set(),
    "single importer": set(),
    "repeated names": set(),
}


def of_stage(rule: str) -> list[import_graph.Module]:
    """Return the modules that a rule is checked for."""
    exempt = NOT_YET[rule]
    return [m for m in MODULES.values() if not {m.stage, m.path.stem} & exempt]


QUESTION = re.compile(r"(?:Hear|\w+ (?:what|which|where|how|who|whose))\b")  # "Return how many ..."


def bad_first_words(text: str) -> list[str]:
    """Return the docstrings that begin with a question, at its first or second word, or no verb."""
    firsts = re.findall(r'"""(\w+(?: \w+)?)', text)
    if not any(one.split()[0] in FIRST_WORDS | NO_VERBS or QUESTION.match(one) for one in firsts):
        return []
    bad = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words, is_question = FIRST_WORDS, False
            if not isinstance(node, ast.Module | ast.ClassDef):  # "Positions where ..." is a noun
                is_question = bool(QUESTION.match(ast.get_docstring(node) or ""))
                kinds = [ast.unparse(one).split(".")[-1] for one in node.decorator_list]
                words = words | (set() if "property" in "".join(kinds) else NO_VERBS)
            doc = ast.get_docstring(node) or ""
            if is_question or re.match(r"\w*", doc)[0] in words:
                bad.append(doc.splitlines()[0])
    return bad


def has_reason(text: str) -> bool:
    """Return whether a module is a kernel, or says why it is a file (docstring, first comment)."""
    if "from napari_agglo._numba import" in text:
        return True
    head = ast.get_docstring(ast.parse(text)) or ""
    head += next((line for line in text.splitlines() if line.startswith("#")), "")
    return bool(REASON.search(" ".join(head.split())))


def test_no_module_is_longer_than_600_lines():
    assert {m.name: m.lines for m in MODULES.values() if m.lines > 600} == {}


def test_a_file_name_occurs_once():
    assert set(import_graph.repeated_names(MODULES)) <= NOT_YET["repeated names"]
    names = "a._labels", "b._c.labels", "a._train", "cli._commands.train"
    modules = {
        name: import_graph.Module(
            f"napari_agglo.{name}", Path(*name.split(".")).with_suffix(".py"), "", frozenset()
        )
        for name in names
    }
    assert import_graph.repeated_names(modules) == ["labels"], "test invalid"


# The head of a module's name is a noun, or the name is a verb with its object: no gerund,
# participle or pronoun. `NOUNS` are those that look like one, with what they are.
HEAD = re.compile(r".*?([a-z0-9]+)(?:_(?:by|on|within)_\w+)?$")  # of `calls_by_address`: calls
NO_NOUN = re.compile(r"\w+(?:ing|ed)$|each|all|any|some|other|others|own|it|this|that|one|who|what")
NOUNS = {
    "covering": "a measure of segmentations: the overlap of each gold segment with its best match",
    "mapping": "a file of other programs: the segment of each superpixel",
    "matching": "in a graph: pairs of nodes that share none",
    "precomputed": "the name of a file format",
    "rescoring": "in agglomeration: a policy scores the boundaries of a new region again",
    "training": "the fit of a classifier",
    "watershed": "a segmentation by flooding",
}


def head_of(stem: str) -> str:
    """Return the word that the name of a module stands for, such as the last one."""
    match = HEAD.match(stem.strip("_"))
    return match[1] if match else ""


def test_names_of_modules_have_a_noun_for_head() -> None:
    heads = {m.name: head_of(m.path.stem) for m in MODULES.values()}
    strange = {name: head for name, head in heads.items() if NO_NOUN.fullmatch(head)}
    assert {name: head for name, head in strange.items() if head not in NOUNS} == {}
    assert NOUNS.keys() - set(strange.values()) == set(), "no module has this name any longer"
    found = {stem for stem in ("_oriented", "_each", "seeded") if NO_NOUN.fullmatch(head_of(stem))}
    assert found == {"_oriented", "_each", "seeded"}, "test invalid"
    assert head_of("_calls_by_address") == "calls"
    assert head_of("_oriented_cue") == "cue"


# Participles that say nothing of a value: a noun of the field says what was found or asked.
NO_NOUNS = {"found", "asked", "told", "said", "seen", "held"}


def participles(text: str) -> list[str]:
    """Return the names of variables, arguments and functions of a source that are in `NO_NOUNS`."""
    if not re.search(rf"\b_?({'|'.join(NO_NOUNS)})\b", text):
        return []
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.arg):
            names.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append(node.attr)
    return [name for name in names if name.strip("_") in NO_NOUNS]


def test_no_name_is_a_bare_participle() -> None:
    assert {m.name: names for m in MODULES.values() if (names := participles(m.text))} == {}
    for source in ("found = 1", "def f(asked): ...", "def told(): ...", "self._said = 1"):
        assert participles(source), "test invalid"
    assert participles("found_rows = rows_found = not_held(1)  # found") == []


def test_no_docstring_begins_with_a_question_word():
    assert {m.name: bad for m in of_stage("first words") if (bad := bad_first_words(m.text))} == {}
    for doc in ("What it is.", "Whether it is.", "Return how many.", "Yield what is."):
        assert bad_first_words(f'def f():\n    """{doc}"""') == [doc], "test invalid"
    assert bad_first_words('@property\ndef f(self):\n    """Whether it is."""') == []


def test_a_module_with_one_importer_in_its_folder_has_a_reason():
    singles = import_graph.single_importers(MODULES)
    checked = [m for m in of_stage("single importer") if m.name in singles]
    assert [m.name for m in checked if not has_reason(m.text)] == []
    assert has_reason('"""Do x. In its own file because of y."""'), "test invalid"
    assert not has_reason('"""Do x."""'), "test invalid"


def own_bases(texts: dict[str, str]) -> dict[str, list[str]]:
    """Return the classes of modules that inherit from another one of them, with its name.

    Exceptions, protocols and parts of windows are left out: they inherit as their libraries ask.
    """
    trees = [ast.parse(text) for text in texts.values()]
    classes = {n.name: n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}

    def bases(name: str) -> list[str]:
        return [ast.unparse(base).split("[")[0] for base in classes[name].bases]

    def is_exempt(name: str) -> bool:
        if name not in classes:
            is_qt = name.split(".")[-1].startswith("Q") or name.startswith("pg.")
            return is_qt or name.endswith(("Error", "Exception", "Warning")) or name == "Protocol"
        return any(map(is_exempt, bases(name)))

    own = {name: [base for base in bases(name) if base in classes] for name in classes}
    return {name: found for name, found in own.items() if found and not is_exempt(name)}


def test_no_class_inherits_from_another():
    assert own_bases({m.name: m.text for m in MODULES.values()}) == {}
    assert own_bases({"a": "class A: ...\nclass B(A): ..."}) == {"B": ["A"]}, "test invalid"
    assert own_bases({"a": "class A(ValueError): ...\nclass B(A): ..."}) == {}, "test invalid"
    assert own_bases({"a": "class A(QWidget): ...\nclass B(A): ..."}) == {}, "test invalid"


def test_the_page_on_the_architecture_is_up_to_date(capsys):
    assert import_graph.main(["--check"]) == 0, capsys.readouterr().out


def test_names_of_tests_have_a_subject() -> None:
    """The name of a test says of what it is, and what comes of it."""
    vague = re.compile(r"def (test_(?:it|nor|nobody|that|those|what|where|which|who)_\w+)")
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    assert {
        path.name: found for path, text in texts.items() if (found := vague.findall(text))
    } == {}


def test_the_files_that_the_page_names_exist():
    page = import_graph.PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page)
    assert len(named) > 40, "test invalid"
    missing = [p for p in named if not any((d / p).exists() for d in (PACKAGE, PACKAGE.parent))]
    assert missing == []


# The folders of tests are those of the package, and a file of tests begins with the name of a
# module of its folder or of one around it, or with the name of a folder: `test_gestures_3d.py`
# tests `_gestures.py`. These mirror nothing: stories across folders, and tests of the repository.
TESTS = Path(__file__).parent
SCENARIOS = {
    "": "api architecture benchmarks docs docstrings example_package headless import packaging "
    "pipeline site",
    "blocks/": "exact",
    "cli/": "before_the_work pages photographs",
    "widgets/": "interruptions keyboard manifest paint_story story",
    "widgets/proofread/": "call_paths",
}


def mirrored_folder(folder: Path) -> Path | None:
    """Return the folder of the package that a folder of tests mirrors, which may be private."""
    found = PACKAGE
    for name in folder.parts:
        places = [found / name, found / f"_{name}"]
        found = next((one for one in places if (one / "__init__.py").exists()), None)
        if found is None:
            return None
    return found


def subjects(folder: Path) -> set[str]:
    """Return the names with which the files of a folder of tests may begin."""
    package = mirrored_folder(folder)
    if package is None:
        return set()
    names = {folder.name} | {one.parent.name for one in package.glob("*/__init__.py")}
    around = [one for one in (package, *package.parents) if one.is_relative_to(PACKAGE)]
    names |= {one.stem for place in around for one in place.glob("*.py")}
    return {name.strip("_") for name in names if name and not name.startswith("__")}


def mirrors_a_module(name: str) -> bool:
    """Return whether a file of tests is named like a module or folder of the package."""
    path = Path(name)
    stem = path.stem.removeprefix("test_")
    return any(stem == one or stem.startswith(f"{one}_") for one in subjects(path.parent))


def test_files_of_tests_are_named_like_modules() -> None:
    names = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert len(names) > 200, "test invalid"
    strange = {name for name in names if not mirrors_a_module(name)}
    scenarios = {f"{at}test_{one}.py" for at, ones in SCENARIOS.items() for one in ones.split()}
    assert strange - scenarios == set(), "begin with the name of a module"
    assert scenarios - strange == set(), "these mirror a module, or are gone"


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("volumes/test_labels.py", True),
        ("volumes/test_labels_components.py", True),
        ("session/store/test_journal_crash.py", True),
        ("session/exports/test_exports_units.py", True),
        ("widgets/proofread/test_session_worker.py", True),
        ("volumes/test_relabel.py", False),
        ("volumes/test_labelsets.py", False),
        ("session/test_journal.py", False),
        ("somewhere/test_labels.py", False),
    ],
)
def test_names_of_modules_are_found(name: str, is_named: bool) -> None:
    assert mirrors_a_module(name) == is_named


# Tests go through public doors. These files do not, for the reason above them.
PRIVATE = re.compile(r"napari_agglo(\.\w+)*\._(?!_)\w+(\.\w+)*")
PRIVATE_IMPORTS = {
    "Kernels and their data structures have no other door.": """
        _numba/test_compiler_cache.py _numba/test_hash_tables.py _numba/test_heaps.py
        _numba/test_compiler_sources.py _numba/test_calls_by_address.py _numba/test_sums.py
        _numba/test_union_find.py agglomeration/test_mean.py blocks/test_piece_runs.py
        agglomeration/test_edge_lists.py learning/test_decision_tree.py pixels/test_filters.py
        policy/test_threshold_codes.py superpixels/test_boundary_cue.py
        superpixels/test_oriented_energy.py superpixels/test_flood_minima.py
        superpixels/test_gaussian.py superpixels/test_flood_queue.py volumes/test_labels.py
    """,
    "A slice, slab or table is made small, so that few pixels fill several.": """
        agglomeration/test_agglomerate.py agglomeration/test_lazy_rescoring.py blocks/conftest.py
        blocks/test_remote_copy.py blocks/test_dask_client.py blocks/test_run_files_formats.py
        blocks/test_block_graph_reduction.py cli/commands/test_blocks.py
        evaluate/test_vi_by_merge.py graph/test_region_graph.py learning/test_train.py
        pixels/test_pixel_classifier.py superpixels/test_oversegment.py volumes/test_contingency.py
        volumes/test_cues.py
    """,
    "A limit of size, time or memory is reached by replacing it.": """
        blocks/test_budget_memory.py blocks/test_stores.py blocks/test_volume_sample.py
        blocks/test_result_session.py cli/conftest.py cli/test_command_source.py
        cli/test_terminal.py session/test_edit_table.py widgets/evaluate/test_widget.py
        widgets/data/test_paint_classes.py widgets/proofread/test_open_run.py
        widgets/proofread/test_session_worker_checkpoint.py widgets/proofread/test_session_worker.py
    """,
    "Warnings of data are kept by interfaces only, in the thread of their work.": """
        test_errors.py
    """,
    "No progress is shown before a refusal: a test that no work has begun.": """
        cli/test_before_the_work.py
    """,
    "The hierarchy under edits, and its parts, against slow oracles.": """
        oracles/agglomerate.py oracles/edits.py oracles/histories.py oracles/moves.py
        oracles/proofreader.py oracles/repairs.py oracles/requirements.py oracles/sessions.py
        session/hierarchy/test_forest_cells.py session/hierarchy/test_hierarchy.py
        session/hierarchy/test_hierarchy_names.py session/test_incremental_vi.py
        session/hierarchy/test_replay.py session/test_state.py session/test_threshold_view.py
        session/relearn/test_transfer_edits.py
    """,
    "Steps of an algorithm against slow oracles, whose inputs no session or training would reach "
    "in the time of a test.": """
        evaluate/test_hold_out.py graph/test_hulls.py learning/test_questions.py
        pixels/test_train_pixels.py session/cut_methods/test_cut_methods.py
        session/cut_methods/test_cut_methods_refusals.py session/test_pair_features.py
        session/relearn/test_refit.py session/suggestions/test_rank.py
    """,
    "The store below the session: entries of any kind, faults of the disk, a killed process.": """
        blocks/test_engine_faults.py blocks/test_engine_kills.py blocks/test_engine_overlap.py
        blocks/test_final_merges.py
        blocks/test_run_files_damage.py oracles/appender.py oracles/disks.py
        session/store/test_journal.py session/store/test_journal_crash.py
        session/store/test_manifest.py session/test_marks.py
        session/store/test_sources.py session/store/test_store.py session/store/test_store_damage.py
        session/store/test_store_faults.py session/store/test_store_machine.py
    """,
    "The registry of exports has no other door: a kind is registered for the time of a test.": """
        session/exports/test_export_kinds.py
    """,
    "Arrays and tables of files before they are written: segments, ids and times of any kind.": """
        session/exports/test_exports.py volumes/test_store_location.py
    """,
    "Pictures and sections of a page before they are joined: a whole page takes a second.": """
        movie/test_frames.py report/test_pictures.py report/test_page.py
    """,
    "Parts of which samples are drawn, on shapes and classes that no sample has.": """
        samples/test_random_fields.py samples/test_random_fields_labels.py stored_samples.py
    """,
    "Registries and typed JSON of all stages; compilation, whose state is of the process.": """
        cli/test_main.py cli/test_provenance.py cli/commands/test_warm.py conftest.py
        test_registry.py test_typed_json.py widgets/test_background_compile.py
    """,
    "The doors of the tests to a window: the project, its layers, its forms.": """
        spare_window.py widgets/conftest.py widgets/proofread/conftest.py windows.py
    """,
    "Models, arrays and controls of a window, without the window.": """
        widgets/compare/test_comparison.py widgets/compare/test_controller.py
        widgets/compare/test_playback.py widgets/data/test_guess_roles.py
        widgets/evaluate/test_error_position.py widgets/hierarchy/test_build_tree.py
        widgets/hierarchy/test_threshold.py widgets/plots/test_drawn_curve.py
        widgets/proofread/test_input_layers.py
        widgets/proofread/test_open_session.py widgets/proofread/test_mode_text.py
        widgets/proofread/test_recent_sessions.py widgets/proofread/test_seeded_cut.py
        widgets/proofread/test_segment_table.py widgets/proofread/test_widget_steady.py
        widgets/test_colours.py widgets/test_dataset.py widgets/test_folded_text.py
        widgets/test_forms.py widgets/test_jobs.py widgets/test_keyboard.py
        widgets/test_layer_levels.py widgets/test_lut_array.py widgets/test_manifest.py
        widgets/test_lut_array_patched.py widgets/test_fixed_label.py widgets/test_qt_scroll_area.py
        widgets/test_progress_row.py
    """,
}


def private_names(text: str) -> list[str]:
    """Return the private names that a source imports, or names in a string, as a patch does."""
    if "napari_agglo" not in text:
        return []
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return sorted(name for name in names if PRIVATE.fullmatch(name))


def test_tests_that_import_private_modules_have_a_reason():
    listed = [name for names in PRIVATE_IMPORTS.values() for name in names.split()]
    assert len(set(listed)) == len(listed), "one reason is enough"
    sources = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("*.py")}
    found = {
        name: names
        for name, path in sources.items()
        if not name.startswith("example_package/")
        and (names := private_names(path.read_text(encoding="utf-8")))
    }
    new = {name: names for name, names in found.items() if name not in listed}
    assert new == {}, "go through a public door, or say above why there is none"
    assert set(listed) - found.keys() == set(), "these do so no longer: take them off the list"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from napari_agglo.graph import _build_graph, divide", ["graph._build_graph"]),
        ("from napari_agglo.graph._build_graph import f", ["graph._build_graph.f"]),
        ("import napari_agglo._numba.heaps", ["_numba.heaps"]),
        ("patch('napari_agglo.widgets._jobs.tell_error', f)", ["widgets._jobs.tell_error"]),
        ("from napari_agglo import Session, __version__", []),
        ("from napari_agglo.session import Session\nsession._view", []),
    ],
)
def test_private_names_are_found(source, names):
    assert private_names(source) == [f"napari_agglo.{name}" for name in names]
