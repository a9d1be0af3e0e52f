PYTHON ?= python3
BIN := .venv/bin
# Brings what a target needs into .venv, and has nothing to do when it is there.
PREPARE := @$(PYTHON) tools/prepare.py

# Whoever asks Python to keep nothing it compiles would compile all this anew hundreds of times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test quick types tests torture mutants bench bench-large accuracy docs picture lint format clean

help:
	@echo 'make demo      make up a log and go through all the steps, to demo/report.html'
	@echo 'make test      style, types and tests: what must pass, in some fifteen minutes'
	@echo 'make quick     style, types and the tests that are quick: no Spark, no browser'
	@echo 'make torture   damage, kill and starve everything, for up to MINUTES=60, by SEED=1'
	@echo 'make mutants   break the core in small ways and see that tests notice, for MINUTES=60'
	@echo 'make bench     time and memory, beside the obvious ways to do the same'
	@echo 'make bench-large  a harvest of ROWS=1000000000 beside a scan; some 14 GB of disk'
	@echo 'make accuracy  bias, errors and coverage in worlds of known truth, beside the peers'
	@echo 'make docs      the documentation as a site, under build/site'
	@echo 'make lint      style, types and the direction of imports only'
	@echo 'make picture   draw the pictures of README.md and docs/architecture.md anew'
	@echo 'make format    put the code into the common style'
	@echo 'make clean     remove everything the other targets made'

demo:
	$(PREPARE) demo
	$(BIN)/rankdrift demo

test:
	$(PREPARE) test
	$(STYLE)
	@$(MAKE) --no-print-directory -j 2 types tests TESTS='-n 6'

quick:
	$(PREPARE) quick
	$(STYLE)
	@$(MAKE) --no-print-directory -j 2 types tests \
		TESTS="-n 2 -m 'not spark and not browser and not slow'"

ROWS ?= 1000000000
MINUTES ?= 60
SEED ?= 1
torture:
	$(PREPARE) test
	cd tests && ../$(BIN)/python -m torture --minutes $(MINUTES) --seed $(SEED)

mutants:
	$(PREPARE) quick
	$(BIN)/python tools/mutants.py --minutes $(MINUTES) --seed $(SEED)

bench:
	$(PREPARE) bench
	$(BIN)/python -m benchmarks

bench-large:
	$(PREPARE) bench
	$(BIN)/python -m benchmarks.large $(ROWS)

accuracy:
	$(PREPARE) bench
	$(BIN)/python -m benchmarks.accuracy --peers
	$(BIN)/python -m benchmarks.accuracy.verdicts
	$(BIN)/python -m benchmarks.accuracy.adjusting
	$(BIN)/python -m benchmarks.accuracy.drift years
	$(BIN)/python -m benchmarks.accuracy.drift changes

docs:
	$(PREPARE) docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

picture:
	$(PREPARE) picture
	$(BIN)/python tools/draw_packages.py
	$(BIN)/python tools/draw_pictures.py

lint:
	$(PREPARE) lint
	$(STYLE)
	$(BIN)/mypy

format:
	$(PREPARE) lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo build dist benchmarks/.data benchmarks/results.json
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks spark-warehouse
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

define STYLE
$(BIN)/ruff check .
$(BIN)/ruff format --check .
$(BIN)/lint-imports --no-logo
endef

# The parts of `make test` that take long, side by side.
types:
	$(BIN)/mypy

# They are compiled once, and not by every worker.
tests:
	@$(BIN)/pytest --collect-only -q >/dev/null 2>&1 || true
	$(BIN)/pytest -q --dist loadgroup --no-loadscope-reorder $(TESTS)
