# The FlashAttention course. `make` lists what there is; `make lab` is all a learner needs.

PYTHON  ?= python3
TORCH   ?= $(shell cat .venv/torch 2>/dev/null)
CHAPTER ?=
REFRESH ?=
MODELS  ?=
# Your copies of the chapters: make lab WORKSPACE=~/flashattention. A variable of the shell of this name changes nothing.
WORKSPACE = workspace
# Where the source is, for the links of the site: https://github.com/OWNER/NAME
REPOSITORY ?=
# A folder with Pyodide's release, to make the site from it; else it is fetched into .venv/pyodide
PYODIDE ?=
ARGS    ?=

# Under it Python runs no `assert`, and tests and notebooks are made of them.
unexport PYTHONOPTIMIZE

# pip installs everything, and into .venv, even if the shell or a pip.conf asks for another place or for less.
export PIP_USER := 0
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON PIP_DRY_RUN PIP_NO_DEPS

ifeq ($(OS),Windows_NT)
PY := .venv/Scripts/python
else
PY := .venv/bin/python
endif

ifneq ($(filter-out cpu,$(TORCH)),)
$(error TORCH is "$(TORCH)"; accepted are TORCH=cpu, or nothing for the build with CUDA)
endif

# Holds the folder it was made in: after a move the editable install points nowhere and is made again. So is all of
# .venv when the Python it was made with is gone.
STAMP := .venv/installed
ifneq ($(shell test -x $(PY) && cat $(STAMP) 2>/dev/null),$(CURDIR))
MOVED := moved
endif

PIP_FAILED := { echo; echo "The installation failed (see pip's message above): it needs a network and a Python" \
  "from 3.11 to 3.14 on Linux, Windows or a Mac with Apple silicon; then run the same make command again."; exit 1; } >&2

NOT_WRITTEN := { echo "No file can be written in $(CURDIR)/.venv, where packages are installed: clone the course into" \
  "a folder of your own, or ask the owner of this one to run make setup, and then run" \
  "make lab WORKSPACE=~/flashattention"; exit 1; } >&2

COPIES = $(patsubst ~/%,$(HOME)/%,$(WORKSPACE))
# Progress is kept in a folder named workspace, or where this variable says.
PROGRESS = $(if $(filter-out workspace,$(WORKSPACE)),FLASHLIB_PROGRESS="$${FLASHLIB_PROGRESS:-$$(cd "$(COPIES)" && pwd)/progress.json}" )

# What real models need beside the course's own packages, and what the tests need beside both.
FOR_MODELS := .venv/installed-models
TESTS := .venv/installed-tests

# What only `make site` needs.
SITE := .venv/installed-site

# Pyodide and NumPy's wheel for it, for Python in the pages of the site.
LIVE := .venv/installed-pyodide

# TypeScript, which checks the JavaScript of the widgets, as it is; and Pyodide's core.
NODE := node_modules/installed
TSC := node node_modules/typescript/bin/tsc
UV := uv==0.13.9

NBVAL := --nbval --nbval-current-env --nbval-sanitize-with=tests/nbval.cfg --nbval-cell-timeout=120

.PHONY: help setup lab models fresh before for-tests test test-all notebooks site check fix test-gpu test-dao test-flashinfer bench \
        vllm deepspeed measure film lock clean moved

help:
	@echo "The FlashAttention course. Start with: make lab"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with all the course needs (TORCH=cpu: without CUDA; PYTHON=python3.12)

lab: setup $(if $(MODELS),models) ## open the course in JupyterLab, on your own copies in workspace/ (WORKSPACE=folder; MODELS=1: make models too)
	@$(PY) tools/workspace.py copy --workspace "$(COPIES)"
	@$(PROGRESS)$(PY) -m jupyterlab --config=tools/jupyter_lab_config.py --ServerApp.root_dir="$(COPIES)" $(ARGS)

models: $(FOR_MODELS) ## install transformers, and fetch the weights of a small model (93 MB) into a cache
	@$(PY) -m tools.models

fresh: setup ## set your copy of a chapter aside and bring a new one: make fresh CHAPTER=05
	@$(PY) tools/workspace.py fresh "$(CHAPTER)" --workspace "$(COPIES)"

before: setup ## move your copies from an earlier version to workspace/before/, and bring today's chapters
	@$(PY) tools/workspace.py before --workspace "$(COPIES)"

# As many processes as conftest.py says, with one thread in each; all that start Python need its bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -p tests.early -n auto $(NBVAL)

for-tests: $(TESTS) $(NODE) $(LIVE) models

test: for-tests ## run the short tests and every chapter (ARGS="-k tiled" or ARGS="tests/test_tiled.py" for some)
	@$(PYTEST) -m "not long" $(ARGS)

test-all: for-tests ## run everything, in reverse order, and each file alone
	@$(PYTEST) --backwards $(ARGS)

notebooks: setup ## execute all notebooks and store their outputs (CHAPTER=05: one; REFRESH=1: all outputs)
	@$(PY) -m tools.notebooks $(if $(CHAPTER),--chapter "$(CHAPTER)") $(if $(REFRESH),--refresh)

site: $(SITE) $(if $(PYODIDE),,$(LIVE)) models ## build the course as web pages, in site/ (CHAPTER=05: one; REPOSITORY=https://...; PYODIDE=folder)
	@PYODIDE="$(PYODIDE)" $(PY) -m web site --repository "$(REPOSITORY)" $(if $(CHAPTER),--chapter "$(CHAPTER)")

check: $(TESTS) $(NODE) ## check code and notebooks: style, format, types, the widgets' JavaScript; changes no file
	@status=0; $(PY) -m ruff check --no-cache . || status=1; \
	$(PY) -m ruff format --no-cache --check . || status=1; \
	$(PY) -m mypy --no-error-summary || status=1; \
	$(dir $(PY))oxlint flashlib/widgets web/page tests/widgets/js || status=1; \
	test ! -e $(NODE) || $(TSC) || status=1; exit $$status

fix: $(TESTS) ## repair what `make check` complains about, where a tool can
	@$(PY) -m ruff check --no-cache --fix --exit-zero .
	@$(PY) -m ruff format --no-cache .

test-gpu: setup ## run the tests that need a CUDA device
	@$(PY) -c "import torch, sys; torch.cuda.is_available() or sys.exit('torch finds no CUDA device here')"
	@$(PY) -m pytest -m gpu tests $(ARGS)

test-dao: $(TESTS) ## run 6,000 of flash_attn's own tests on a GPU, fetched by hash (ARGS="--cpu 2": some without one)
	@$(PY) -m pip install -q einops==0.8.1
	@$(PY) -m tools.dao_tests $(ARGS)

test-flashinfer: $(TESTS) ## run 1,200 of FlashInfer's own tests on a GPU, fetched by hash (ARGS="--cpu 1": some without one)
	@$(PY) -m pip install -q einops==0.8.1
	@$(PY) -m tools.flashinfer_tests $(ARGS)

bench: setup ## verify and time attention: the kernels on a GPU, else NumPy on the CPU (ARGS="--quick")
	@$(PY) -m flashlib.bench $(ARGS)

vllm: models ## let vLLM write text with its own attention and with ours (its environment takes 1.6 GB)
	@$(PY) -m tools.with_vllm

deepspeed: $(FOR_MODELS) ## run DeepSpeed's Ulysses with our attention in 4 processes, beside our own (25 MB)
	@$(PY) -m tools.with_deepspeed

measure: $(TESTS) ## measure in Chromium how fast the widgets answer and play, against the limits (ARGS=RingPlayer: one)
	@$(PY) tools/measure_widgets.py $(ARGS)

film: $(TESTS) ## film the player in Chromium for the README
	@$(PY) tools/film.py

clean: ## remove .venv, node_modules and caches; never workspace/, which holds your work
	@rm -rf .venv node_modules build *.egg-info .pytest_cache .ruff_cache
	@find . -name workspace -prune -o -name .git -prune -o \
	  \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
	@echo "Removed .venv, node_modules and caches. Kept workspace/, which holds your work."

lock: setup ## pin again in constraints.txt all that requirements*.txt bring along
	@$(PY) -m venv .venv/lock && .venv/lock/bin/python -m pip install -q "$(UV)" && .venv/lock/bin/uv pip compile -q \
	  --universal --python-version 3.11 --no-header --no-annotate --no-emit-package flashlib \
	  requirements.txt requirements-test.txt requirements-models.txt requirements-site.txt \
	  -o constraints.txt
	@rm -rf .venv/lock

$(FOR_MODELS): $(STAMP) requirements-models.txt constraints.txt
	@$(PY) -m pip install -r requirements-models.txt -c constraints.txt || $(PIP_FAILED)
	@touch $(FOR_MODELS)

$(TESTS): $(FOR_MODELS) $(SITE) requirements-test.txt constraints.txt
	@$(PY) -m pip install -r requirements-test.txt -c constraints.txt || $(PIP_FAILED)
	@touch $(TESTS)

$(SITE): $(STAMP) requirements-site.txt constraints.txt
	@$(PY) -m pip install -r requirements-site.txt -c constraints.txt || $(PIP_FAILED)
	@touch $(SITE)

# Without it the site is made without Python in its pages, and says so.
$(LIVE): $(SITE) $(NODE) tools/pyodide.py
	@{ $(PY) -m tools.pyodide && touch $(LIVE); } || test -z "$$REQUIRE_TOOLS"

$(NODE): package.json package-lock.json
	@{ command -v npm >/dev/null && npm ci --no-audit --no-fund --loglevel=error && touch $(NODE); } || { \
	  echo "TypeScript needs npm and a network, so the types of the widgets' JavaScript are not checked." >&2; \
	  test -z "$$REQUIRE_TOOLS"; }

$(STAMP): requirements.txt constraints.txt $(MOVED)
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "$(PYTHON) was not found: install Python 3.11 or later, or name one: make lab PYTHON=python3.12"; exit 1; } >&2
	@"$(PYTHON)" tools/check_python.py
	@{ mkdir -p .venv && touch .venv/writable && rm .venv/writable; } 2>/dev/null || $(NOT_WRITTEN)
	@rm -f $(STAMP)
	@test -x $(PY) || rm -rf .venv
	@echo "Installing into .venv; the first time this takes some minutes."
	@"$(PYTHON)" -m venv .venv
ifeq ($(TORCH),cpu)
	@$(PY) -m pip install --index-url https://download.pytorch.org/whl/cpu \
	  "$$(sed -n 's/^\(torch==[^; ]*\).*/\1/p' requirements.txt)" || $(PIP_FAILED)
endif
	@$(PY) -m pip install -r requirements.txt -c constraints.txt || $(PIP_FAILED)
	@$(PY) -c "import matplotlib.font_manager"
	@echo "$(TORCH)" > .venv/torch
	@echo "$(CURDIR)" > $(STAMP)
