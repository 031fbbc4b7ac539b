# make up      sets everything up and starts the embedded engine
# make test    sets everything up and runs every test that this machine can run
PYTHON ?= python3
UV := 0.13.7
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# The certificates that the machine trusts, as pip does.
export UV_SYSTEM_CERTS ?= 1

.PHONY: setup up check test test-quick simulation bench guest crds roles terminal lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "herder needs Python 3.11 or newer; name one with: make PYTHON=...")'
	@echo "setting up $(VENV), which takes a minute" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode requirements.lock
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q herder
	@touch $@

up: setup
	@$(BIN)/herder up $(ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m herder.api.crds --check deploy/crds
	$(BIN)/python -m herder.api.roles --check deploy/roles
	$(BIN)/pyright

# Everything: unit, behaviour on both engines, kubectl, crashes, QEMU. The real Kubernetes is built once, into a cache outside the tree.
test: setup
	-@tools/kube/build.sh >/dev/null
	-@tools/metrics_server/build.sh >/dev/null
	-@tools/qemu/install.sh
	-@tools/qemu/linux.sh >/dev/null
	-@command -v go >/dev/null && $(BIN)/python -m tests.unit.api.oracle
	$(BIN)/pytest tests --engine all -n $(JOBS) --dist loadscope --no-loadscope-reorder --by-module -q $(ARGS)

# Unit tests with a fifth of their made examples, behaviour on the embedded engine, and one seed of the simulation.
test-quick: setup
	$(BIN)/pytest tests/unit tests/behaviour tests/simulation --engine embedded --examples 20 -n $(JOBS) --dist worksteal -q -m "not slow" $(ARGS)

# The simulation with many seeds: make simulation SEEDS=100
SEEDS ?= 20
simulation: setup
	$(BIN)/pytest tests/simulation --seeds $(SEEDS) -n $(JOBS) --dist worksteal -q $(ARGS)

bench: setup
	-@tools/kube/build.sh etcd kube-apiserver >/dev/null
	$(BIN)/python -m bench $(ARGS)

# The tiny guest that tests and tours run in QEMU; prints where it is.
guest: setup
	@$(BIN)/python -m tools.guest.build

crds: setup
	$(BIN)/python -m herder.api.crds deploy/crds

roles: setup
	$(BIN)/python -m herder.api.roles deploy/roles

# The picture of the README, with the program as it is. Takes a kubectl of 1.32 or newer.
terminal: setup
	$(BIN)/python -m tools.terminal.draw docs/terminal.svg

# After a change of the dependencies in pyproject.toml.
lock: setup
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet \
		--group dev --group build pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
