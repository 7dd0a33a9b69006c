# Everything runs inside .venv, which `make` builds itself from requirements.lock.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready
CHAIN_VERSION ?= 0.2.16

.PHONY: setup check test test-all test-chain sim bench demo demo-baseline proto lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "gonka-trainer needs Python 3.11: install it, or say PYTHON=/path/to/python3.11"; exit 1; }
	@echo "installing into .venv: some minutes, a few gigabytes"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not gpu"

test-all: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m "not gpu"

# CHAIN_GRPC=host:port CHAIN_RPC=host:port CHAIN_KEYS=file [CHAIN_DENOM=...] asks a real node instead of the devnet.
test-chain: $(READY)
	$(BIN)/pytest -rs tests/contract/chain/test_node_*.py

sim: $(READY)
	$(BIN)/python -m tests.sim --seeds 0-999 --coverage

bench: $(READY)
	$(BIN)/python bench/outer_step.py
	$(BIN)/python bench/codecs.py

demo: $(READY)
	$(BIN)/gonka-trainer demo --chain-version $(CHAIN_VERSION) $(if $(DATA),--data "$(DATA)")

demo-baseline: $(READY)
	$(BIN)/gonka-trainer demo-baseline $(if $(DATA),--data "$(DATA)")

proto: $(READY)
	$(BIN)/python proto/generate.py
	$(BIN)/python chain/proto/generate.py
	$(BIN)/python chain/proto/inference/generate.py

lock:
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu//' > requirements.lock

clean:
	rm -rf .venv demo-out
