# Two commands do all the set-up from a clean clone: `make demo` and `make test`.
#
#   VENV=DIR     where the virtual environment goes (default .venv)
#   PYTHON=EXE   the interpreter to make it with (default python3; 3.11 or newer)
#   OUT=DIR      where `make demo` writes (default demo-output)
#   VERSION=N    of napari, for `make test-napari` (default 0.7.1, the oldest that is supported)
#   VIEWS=NAME   what `make test-orthogonal` installs beside napari (default napari-orthogonal-views)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
OUT ?= demo-output

# setup.sh leaves the compiling of the requirements to the first use, whose result is kept also where
# the environment says otherwise: without it each process of the tests compiles 2,500 modules, 10 s.
export PYTHONDONTWRITEBYTECODE :=

# Recipes quote every path, and no target is a path outside this folder: it may have spaces in its name.
BIN := $(VENV)/bin
SETUP := VENV="$(VENV)" PYTHON="$(PYTHON)" bash scripts/setup.sh

.PHONY: help demo test test-full test-pyside test-napari test-orthogonal check compile library commands sessions windows-proofread windows-steps jitless bench bench-blocks docs clean setup

help:  ## list these targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do \
		printf '  make %-10s %s\n' "$$name" "$$text"; done

# With a display a Qt binding is installed too, and napari opens.
demo:  ## open napari with the embedded sample; without a display, learn, compare, write a report
	@$(SETUP) $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),all,movie)
	@"$(BIN)/napari-agglo" demo -o "$(OUT)"

# There are two cores nearly everywhere; a third part runs while the others wait for a window or a
# program of their own. What needs no compiled kernels runs beside the compiling; of the others the
# longest begin first, so that the last to end is short.
PARTS := check compile jitless commands windows-steps windows-proofread library sessions
# One thread of BLAS and OpenMP in each: more would only wait for the cores, and wait by spinning.
test test-full $(PARTS): export OMP_NUM_THREADS := 1
test test-full $(PARTS): export OPENBLAS_NUM_THREADS := 1
test:  ## everything that must pass: style, types, tests, doctests, windows, kernels without JIT
	@$(SETUP) test
	@echo "Running $(words $(PARTS)) parts, three at a time; what each says comes when it has ended (minutes)."
	@$(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target $(PARTS)

test-full: export AGGLO_EXAMPLES := all
test-full:  ## the same with the slow tests, and all examples of the properties
	@$(SETUP) test
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check compile
	@"$(BIN)/python" -m pytest -q -m "slow or not slow"
	@$(MAKE) --no-print-directory jitless SLOW_KERNELS=test_session.py

# Windows with the other Qt binding, or an older napari: jobs, a dock, all steps, clicks, surfaces.
WINDOWS := test_jobs.py test_progress_row.py test_dock.py test_story.py data/test_widget.py hierarchy evaluate \
	train compare \
	$(addprefix proofread/test_,gestures.py shapes.py correct_labels.py input_layers.py)
SETUP_WINDOWS = PYTHON="$(PYTHON)" bash scripts/setup.sh test-windows
# PySide6 6.12.0 loses references to None in overridden methods: before Python 3.12 that ends the process.
test-pyside:  ## some windows with PySide6, in an environment of its own
	@VENV="$(VENV)-pyside" $(SETUP_WINDOWS) "PySide6!=6.12.0"
	@"$(VENV)-pyside/bin/python" tests/kernels.py
	@QT_API=pyside6 "$(VENV)-pyside/bin/python" -m pytest -q -o qt_api=pyside6 $(addprefix tests/widgets/,$(WINDOWS))

VERSION ?= 0.7.1
test-napari:  ## the same windows with one version of napari, VERSION=0.7.1, in an environment of its own
	@VENV="$(VENV)-napari-$(VERSION)" $(SETUP_WINDOWS) PyQt6 "napari==$(VERSION)"
	@"$(VENV)-napari-$(VERSION)/bin/python" tests/kernels.py
	@"$(VENV)-napari-$(VERSION)/bin/python" -m pytest -q $(addprefix tests/widgets/,$(WINDOWS))

# It needs OpenCV, 60 MB, so it is in no extra.
VIEWS ?= napari-orthogonal-views>=0.5
test-orthogonal:  ## proofreading beside napari-orthogonal-views, in an environment of its own
	@VENV="$(VENV)-orthogonal" $(SETUP_WINDOWS) PyQt6 "$(VIEWS)"
	@"$(VENV)-orthogonal/bin/python" -m pytest -q -m slow tests/widgets/proofread/test_gestures_orthogonal.py

check:
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"

# Once, for all parts: a part that compiled for itself would do what the part beside it does.
compile:
	@"$(BIN)/python" tests/kernels.py

# Commands, pages of the docs, block-wise runs, and packages: much of it in processes of its own.
COMMANDS := blocks cli test_docs.py test_example_package.py test_headless.py test_import.py
commands: compile
	@"$(BIN)/python" -m pytest -q $(addprefix tests/,$(COMMANDS))

library: compile
	@"$(BIN)/python" -m pytest -q $(addprefix --ignore=tests/,widgets session $(COMMANDS)) \
		--ignore=napari_agglo/widgets

sessions: compile
	@"$(BIN)/python" -m pytest -q tests/session

# napari in real windows, on a virtual display where there is none; in two parts, to run side by side.
PROOFREAD := proofread test_interruptions.py test_scene.py test_story.py
windows-proofread: compile
	@"$(BIN)/python" -m pytest -q $(addprefix tests/widgets/,$(PROOFREAD))

windows-steps: compile
	@"$(BIN)/python" -m pytest -q $(addprefix --ignore=tests/widgets/,$(PROOFREAD)) \
		tests/widgets napari_agglo/widgets

# Bounds are checked and lines are seen only when the kernels run as plain Python: the tests of what
# has kernels of its own.
KERNELS := _numba agglomeration compare evaluate features graph learning pixels policy superpixels \
	$(addprefix volumes/test_,contingency.py labels.py labels_components.py word_cue.py)
SESSION_KERNELS := $(addprefix hierarchy/test_,hierarchy.py hierarchy_names.py forest_cells.py replay.py) \
	cut_methods suggestions/test_rank.py \
	$(addprefix test_,plan_cuts_islands.py incremental_vi.py threshold_view.py) $(SLOW_KERNELS)
jitless:
	@echo "Again with NUMBA_DISABLE_JIT=1:"
	@NUMBA_DISABLE_JIT=1 "$(BIN)/python" -m pytest -q -m "not slow and not compiled" \
		$(addprefix tests/,$(KERNELS)) $(addprefix tests/session/,$(SESSION_KERNELS))

bench:  ## measure the speed beside other libraries, as one table; list the goals that were missed
	@$(SETUP) bench
	@"$(BIN)/python" -m benchmarks

# Without a wheel of another tool the rest is measured; what is missing is named and left out.
bench-blocks: export OMP_NUM_THREADS := 1
bench-blocks: export OPENBLAS_NUM_THREADS := 1
bench-blocks: OUT := $(if $(filter demo-output,$(OUT)),bench-output,$(OUT))
bench-blocks:  ## measure block-wise runs of a large volume; OUT=DIR is where it is made (12 GB), ARGS=--large adds a larger one
	@$(SETUP) bench-blocks || { echo "Going on without the other tools."; $(SETUP) cluster; }
	@"$(BIN)/python" -m benchmarks.bench_blocks all "$(OUT)" $(ARGS)

docs:  ## build the documentation into site/
	@$(SETUP) docs
	@rm -rf docs/reference site
	@"$(BIN)/python" -m sphinx --quiet --fail-on-warning --keep-going -b html docs site
	@echo "The documentation is in site/index.html"

setup:  ## only make the virtual environment
	@$(SETUP) test

clean:  ## remove what the other targets made, the virtual environment too
	@rm -rf "$(VENV)" "$(VENV)"-pyside "$(VENV)"-napari-* "$(VENV)"-orthogonal "$(OUT)" "$(OUT).json" bench-output build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rm -rf *.egg-info
