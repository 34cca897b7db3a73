# Two commands for newcomers: `make quickstart` and `make test`. Both need only Python 3.10+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
JOBS ?= 2
# What is tested with the lowest versions: all that does not need tools of its own.
LOWEST ?= tests/arrays tests/storage tests/recipes tests/runs tests/losses tests/calibration tests/selection tests/geometry \
  tests/theory tests/randomness tests/data tests/claims tests/predictions tests/models tests/training tests/studies

# A version of torch for `make test-torch`, and the Triton that comes with it on a GPU.
TORCH ?= 2.9.1
TRITON ?= 3.5.1

.PHONY: help quickstart test test-lowest test-lowest-integrations test-torch docs dist mutations pictures check-pictures atlas check-atlas install install-test lint format clean

help:
	@echo "make quickstart  install, train on real digits, print the path of an HTML report"
	@echo "make test        install what tests need, lint, type-check, run every test"
	@echo "make docs        build the documentation site in build/site; no network, links checked, notebooks executed"
	@echo "make dist        build wheel and sdist, check them, and try the wheel in an empty environment"
	@echo "make test-lowest test with the lowest versions of all dependencies; Python 3.10, several gigabytes"
	@echo "make test-lowest-integrations  test with the lowest versions of other people's trainers"
	@echo "make test-torch TORCH=2.9.1 TRITON=3.5.1  test with another version of torch and the Triton that belongs to it"
	@echo "make mutations   break the code in many places, one at a time, and see that tests notice"
	@echo "make pictures    make the pictures of the README again; check-pictures fails where they are stale"
	@echo "make atlas       put all results on one page and their counts into the README; check-atlas fails where stale"
	@echo "make format      format the code"
	@echo "make clean       remove the virtual environment and caches"

quickstart: install
	$(BIN)/softtargets study run quickstart

test: install-test lint
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

docs: install-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

# An environment of its own, without anything that only tests need.
dist: install-test
	rm -rf dist build/bare
	$(PIP) build twine
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/bare
	build/bare/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd build && bare/bin/softtargets --version && bare/bin/python ../tests/bare.py

test-lowest:
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
	  --editable . pytest pytest-xdist hypothesis pyarrow tokenizers sacrebleu
	build/lowest/bin/python -m pytest -n $(JOBS) --dist worksteal -p no:cacheprovider $(LOWEST)

# torchvision for a CPU is not to be had with every torch, so that timm is tested by hand (docs/integrations.md).
test-lowest-integrations:
	$(PYTHON) -m venv build/lowest-integrations
	build/lowest-integrations/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints-lowest-integrations.txt --editable '.[huggingface,lightning,torchmetrics,tensorboard]' pytest
	build/lowest-integrations/bin/python -m pytest -p no:cacheprovider tests/integrations

# Triton before 3.7 interprets our kernels only with numpy before 2.4; with a newer one those tests are skipped.
test-torch:
	$(PYTHON) -m venv build/torch-$(TORCH)
	build/torch-$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check \
	  torch==$(TORCH) triton==$(TRITON) 'numpy<2.4' --editable '.[test]'
	build/torch-$(TORCH)/bin/python -m pytest -n $(JOBS) --dist worksteal -p no:cacheprovider $(LOWEST) \
	  tests/integrations tests/translation tests/inspection tests/cli

mutations: install-test
	$(BIN)/python tests/mutations/run.py --jobs $(JOBS)

pictures: install
	$(BIN)/python docs/pictures.py

check-pictures: install
	$(BIN)/python docs/pictures.py --check

atlas: install
	$(BIN)/softtargets results --out results

check-atlas: install
	$(BIN)/softtargets results --out results --check

lint: install-test
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/ruff format --check src tests benchmarks docs examples
	$(BIN)/mypy

format: install-test
	$(BIN)/ruff check --fix src tests benchmarks docs examples
	$(BIN)/ruff format src tests benchmarks docs examples

install: $(VENV)/installed
install-test: $(VENV)/installed-test

$(VENV)/python-ok:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "softtargets needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/python-ok pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/python-ok pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src tests benchmarks -name __pycache__ -type d -exec rm -rf {} +
