# Each target sets up what it needs; after its first time it needs no network.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
# Without the bytecode that Python keeps, each program that a test starts compiles all of its modules.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all:

.PHONY: run demo federated-demo browser-demo test test-long test-cluster test-slow client lint package oldest pythons pins accuracy continual auditors mutants bench reproduce docs proofs clean

run: $(VENV)/.run
	mkdir -p build
	$(BIN)/panprivacy run examples/flights.parquet --user aircraft_day --stat distinct \
	  --epsilon 1 --nulls skip --demo > build/flights.txt
	@cat build/flights.txt
	$(BIN)/panprivacy run examples/flights.parquet --user aircraft_day \
	  --stat incidence,bound=8,expected=300_000,exactly=1:6 \
	  --epsilon 1 --nulls skip --demo > build/legs.txt
	@cat build/legs.txt
	$(BIN)/panprivacy run examples/departures.parquet --user aircraft_day --delta delta \
	  --stat incidence,bound=8,expected=300_000,exactly=1:4 \
	  --epsilon 1 --demo > build/late.txt
	@cat build/late.txt
	$(BIN)/panprivacy run examples/departures.parquet --user flight --delta delta \
	  --stat distinct,deletions=strict,expected=10_000:1_000_000,memory=125_000 \
	  --epsilon 1 --demo > build/flights-late.txt
	@cat build/flights-late.txt
	$(BIN)/python examples/flights_picture.py build/flights.png \
	  $(addprefix build/,flights.txt legs.txt late.txt flights-late.txt)

demo: $(VENV)/.demo
	$(BIN)/python examples/live_demo.py

# Two servers, ten devices, one of which lies: a histogram, and a picture of who sees what.
federated-demo: $(VENV)/.federated
	$(BIN)/python examples/two_servers.py

# Three headless browsers, of which two use a feature: a count, and a picture of what is in each.
browser-demo: $(VENV)/.test clients/js/node_modules/.package-lock.json
	npm --prefix clients/js run --silent build
	$(BIN)/python examples/browser/demo.py

# Threads of linear algebra wait for each other in loops: a tenth of the time of three workers on two processors.
test test-long test-slow: export OPENBLAS_NUM_THREADS := 1

# Each worker keeps to neighbouring modules, whose fixtures and plans are made once, and takes over
# from the others when it is through.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not long and not ray"

# Programs that are killed again and again, searches of memory, browsers, and laws of many runs.
test-long: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "long and not slow and not ray"

test-cluster: $(VENV)/.test
	$(BIN)/python -m pytest -m ray tests/cluster tests/forensic

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

# The device in JavaScript: builds it and tests it. Its tests beside Python are among the long ones.
client: clients/js/node_modules/.package-lock.json
	@node -e 'process.exit(+(parseInt(process.versions.node) < 20))' \
	  || { echo "the client needs Node 20.19 or newer"; exit 1; }
	npm --prefix clients/js test

clients/js/node_modules/.package-lock.json: clients/js/package.json clients/js/package-lock.json
	npm --prefix clients/js ci --ignore-scripts --no-audit --no-fund
	@touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Builds what is installed, and tries it where nothing else is: it counts, has types, and no plots.
package: $(VENV)/.package
	rm -rf build/dist build/clean
	$(BIN)/python -m build --outdir build/dist
	$(BIN)/twine check --strict build/dist/*
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet --only-binary :all: build/dist/*.whl
	cd build && clean/bin/panprivacy run ../examples/flights.parquet --user aircraft_day --nulls skip \
	  --stat distinct --epsilon 1
	cd build && ! clean/bin/python -c "import matplotlib" 2>/dev/null
	cd build && ../$(BIN)/mypy --config-file= --strict --disable-error-code import-untyped \
	  --python-executable clean/bin/python ../tests/typing/public.py

# What counts, resumes, reads bodies, and answers: tried with other libraries, and other Pythons.
TRIED := tests/contract/test_contract.py tests/contract/test_resume.py tests/unit/test_bodies.py \
  tests/unit/test_cli_run.py tests/unit/test_explain.py tests/service/test_app.py tests/service/test_store.py
TRIED_CLUSTER := $(addprefix tests/cluster/test_,broker.py connection.py gateway.py messages.py releaser.py \
  routing.py transport.py worker.py)

# With the oldest versions of all libraries that pyproject.toml admits. What these need in turn is new,
# and warns of how it is used. A cluster asks for newer ones than the rest.
oldest: $(VENV)/.package
	$(call with_oldest,plot service postgresql published federated,$(TRIED))
	$(call with_oldest,federated cluster,$(TRIED_CLUSTER))

define with_oldest
	rm -rf build/oldest
	$(PYTHON) -m venv build/oldest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-annotate --no-header \
	  $(addprefix --extra ,$(1)) pyproject.toml -o build/oldest.txt
	$(BIN)/uv pip install --quiet --python build/oldest/bin/python --constraints build/oldest.txt \
	  --requirements build/oldest.txt --editable . \
	  httpx hypothesis pandas polars pytest pytest-timeout pytest-xdist pyyaml
	build/oldest/bin/python -m pytest -n auto -m "not slow and not ray" -W ignore::DeprecationWarning $(2)
endef

# With the other Pythons that are here, and the newest libraries.
pythons: $(foreach one,python3.12 python3.13,$(shell $(one) --version >/dev/null 2>&1 && echo with-$(one)))

with-python%: $(VENV)/.package
	rm -rf build/python$*
	python$* -m venv build/python$*
	$(BIN)/uv pip install --quiet --python build/python$*/bin/python --editable ".[test]"
	build/python$*/bin/python -m pytest -n auto -m "not slow" $(TRIED)

# Writes down the code that the proofs speak of as it is now: after they were read again.
pins: | $(BIN)/python
	$(BIN)/python -m tests.docs.pins

accuracy: $(VENV)/.run
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.counters
	$(BIN)/python -m benchmarks.laws
	$(BIN)/python -m benchmarks.distinct
	$(BIN)/python -m benchmarks.intrusions
	$(BIN)/python -m benchmarks.strict
	$(BIN)/python -m benchmarks.moments

continual: $(VENV)/.continual
	$(BIN)/python -m benchmarks.continual
	$(BIN)/python -m benchmarks.running_distinct
	$(BIN)/python -m benchmarks.online
	$(BIN)/python -m benchmarks.moves
	$(BIN)/python -m benchmarks.running_sketches

auditors: $(VENV)/.auditors
	$(BIN)/python examples/auditors/with_privacy_estimates.py
	$(BIN)/python examples/auditors/with_pystatdp.py

mutants: $(VENV)/.mutants
	$(BIN)/python -m benchmarks.mutants

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.planning
	$(BIN)/python -m benchmarks.counting
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.log_lines
	$(BIN)/python -m benchmarks.hygiene
	$(BIN)/python -m benchmarks.elgamal
	$(BIN)/python -m benchmarks.prio3
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.collecting
	$(BIN)/python -m benchmarks.queues
	$(BIN)/python -m benchmarks.cluster

reproduce: $(VENV)/.reproduce
	$(BIN)/python -m reproductions.log_steps
	$(BIN)/python -m reproductions.intrusions
	$(BIN)/python -m reproductions.every_step_seen
	$(BIN)/python -m reproductions.two_looks
	$(BIN)/python -m reproductions.accurate_counts
	$(BIN)/python -m reproductions.devices
	$(BIN)/python -m reproductions.devices_seen
	$(BIN)/python -m reproductions.list_update
	$(BIN)/python -m reproductions.digalakis

# The site, in build/site: read it with `python -m http.server -d build/site`.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The theorems of docs/proofs.md, checked by Coq: about a minute.
proofs:
	$(MAKE) --no-print-directory -C proofs

clean:
	rm -rf $(VENV) build
	$(MAKE) --no-print-directory -C proofs clean

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "panprivacy needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The kernels are compiled here, so that no test and no benchmark waits for that.
$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable ".[plot]"
	$(BIN)/python -c "import panprivacy.cli.run; panprivacy.cli.run.compile_kernels()"
	@touch $@

$(VENV)/.demo: $(VENV)/.run
	$(INSTALL) --editable ".[dashboard]"
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(INSTALL) --editable ".[test]"
	@touch $@

$(VENV)/.package: $(VENV)/.test
	$(INSTALL) --editable ".[package]"
	@touch $@

# dpcrpy has no wheel.
$(VENV)/.continual: $(VENV)/.run
	$(INSTALL) --no-binary dpcrpy --editable ".[continual-peers]"
	@touch $@

$(VENV)/.auditors: $(VENV)/.run
	$(INSTALL) --editable ".[auditors]"
	@touch $@

# Two small packages that cosmic-ray needs for its reports have no wheels.
$(VENV)/.mutants: $(VENV)/.test
	$(INSTALL) --no-binary exit-codes,yattag --editable ".[mutants]"
	@touch $@

$(VENV)/.federated: $(VENV)/.run
	$(INSTALL) --editable ".[federated]"
	@touch $@

$(VENV)/.bench: $(VENV)/.run
	$(INSTALL) --editable ".[bench]"
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(INSTALL) --editable ".[docs]"
	@touch $@

$(VENV)/.reproduce: $(VENV)/.run
	$(INSTALL) --editable ".[reproduce]"
	@touch $@
