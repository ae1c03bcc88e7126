# `make demo` and `make test` work on a fresh machine; everything else assumes one of them ran.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SYSTEM_PACKAGES := git bubblewrap python3-venv

.PHONY: help demo test quick gates format system setup setup-dev lock bench-setup bench clean \
	fuzz-lisp lisp-clojure

help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: setup  ## run the main job offline: a goal, a SIGKILL, a resume, why, undo
	@$(BIN)/holdfast demo

test: setup-dev gates  ## everything CI runs: gates, tests, coverage
	@rm -rf .coverage && mkdir -p .coverage
	$(BIN)/coverage run -m pytest -n 2
	@$(BIN)/coverage combine -q
	$(BIN)/coverage report

quick: setup-dev  ## the tests without the slow ones
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

gates: setup-dev  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup-dev  ## rewrite the source as the gates want it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

system:
	@sh scripts/system-packages $(SYSTEM_PACKAGES)

$(VENV)/.run: requirements/run.txt pyproject.toml | system
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned packages of requirements/run.txt into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/run.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "installing the pinned packages of requirements/dev.txt into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	@touch $@

setup: $(VENV)/.run
setup-dev: $(VENV)/.dev

lock:  ## pin the dependencies anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" pyproject.toml requirements/build.in -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" --extra dev --extra anthropic -c requirements/run.txt pyproject.toml -o requirements/dev.txt

bench-setup: setup-dev  ## install the peers that benchmarks measure beside us
	@test -x benchmarks/.peers/bin/python || $(PYTHON) -m venv benchmarks/.peers
	@benchmarks/.peers/bin/python -m pip install -q --disable-pip-version-check -r benchmarks/peers.txt

bench: bench-setup  ## every benchmark beside its peers
	$(BIN)/python benchmarks/lisp.py

fuzz-lisp: setup-dev  ## ten minutes of fuzzing the reader and the analyser
	HOLDFAST_FUZZ_S=600 $(BIN)/python -m pytest -q tests/lang/test_fuzz.py

lisp-clojure: setup-dev  ## 20,000 new programs against Clojure on the JVM
	@sh scripts/system-packages clojure
	HOLDFAST_ORACLE=clojure HOLDFAST_DIFFERENTIAL=20000 $(BIN)/python -m pytest -q tests/differential

clean:  ## forget environments and caches
	rm -rf $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
