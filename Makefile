# `make demo` and `make test` are the whole set-up: both build .venv first, and `make test` adds what tests need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEMO := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed-test

# What of the tests runs on the reference engine, too (docs/engine.md): what clauses do when they fire.
ENGINES := reference
ENGINE_TESTS := $(addprefix tests/trapline/framework/, test_firing.py buffers/test_buffers.py test_accounting.py)

.PHONY: demo test test-exhaustive test-debian test-new-examples test-arm64 coverage engines lint testbins debian programs bench sweep toolchains encodings lengths check course fuzz docs picture clean kernels release test-pythons release-check

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	touch $@

$(DEMO): pyproject.toml $(VENV)/.created
	$(INSTALL) -e '.[fast]'
	touch $@

# It holds what a demo needs, too.
$(STAMP): pyproject.toml $(VENV)/.created
	$(INSTALL) -e '.[fast,test]'
	touch $(DEMO) $@

demo: $(DEMO)
	$(BIN)/trapline demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests start hundreds of Pythons: what one of them compiles is kept for the others, also where the
# environment asks for no bytecode in the tree.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/bytecode

# Three workers on two cores take a fifth more: measured.
test: lint
	$(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal -m "not debian and not exhaustive"

# Every probe of a kernel at once, every instruction, built-in and benchmark: minutes, which `make test` leaves out.
test-exhaustive: $(STAMP)
	$(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal -m exhaustive

# Real Debian programs, from busybox to PostgreSQL: half an hour, which `make test` leaves out.
test-debian: $(STAMP) debian
	$(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal -m debian

# The tests that draw examples (Hypothesis), with other examples than `make test`, and ten times as many.  The same SEED
# draws the same ones.
SEED ?= $(shell date +%s)
test-new-examples: $(STAMP)
	@echo "Again: make test-new-examples SEED=$(SEED)"
	HYPOTHESIS_PROFILE=new-examples $(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal --hypothesis-seed=$(SEED) \
		-m "hypothesis and not debian"

# The lines of emu, providers and trapline that `make test` runs, also in processes that tests start: build/coverage.
# Tests that measure time may fail below a tracer; `make test` judges them.
COVERAGE := $(BIN)/python -m coverage
coverage: $(STAMP)
	$(INSTALL) -e '.[fast,test,coverage]'
	rm -rf build/coverage
	mkdir -p build/coverage
	-$(BYTECODE) $(COVERAGE) run -m pytest -n 2 --dist worksteal -m "not debian and not exhaustive"
	$(COVERAGE) combine --quiet
	$(COVERAGE) html --quiet --directory build/coverage/html
	$(COVERAGE) report --format markdown > build/coverage/report.md
	$(COVERAGE) report --format total

# A part of the tests on an arm64 host, on one or below qemu-aarch64 (docs/hosts.md): the calibrated layout, machine code for
# arm64, and a check whose report must be this host's.
ARM64 := .arm64
ARM64_PYTHON = PYTHONPATH=$(CURDIR) PYTHONDONTWRITEBYTECODE=1 $(ARM64)/python
ARM64_TESTS := tests/emu/unicorn_layout tests/emu/native tests/emu/engine tests/emu/test_engine.py \
	tests/emu/test_native_firing.py tests/emu/probe/test_trap.py tests/trapline/framework/test_firing.py \
	tests/trapline/lab/check/native/test_layout.py \
	tests/trapline/lab/check/native/test_batch.py::test_both_find_the_same
ARM64_CHECK := -m trapline check testbins:zoo --no-run --every-instruction --function main --states 40
ifneq ($(filter aarch64 arm64,$(shell uname -m)),)
test-arm64: $(STAMP)
	$(BIN)/trapline doctor
	$(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal $(ARM64_TESTS)
else
test-arm64: $(STAMP)
	testbins/arm64-root $(ARM64) $(BIN)/python
	$(ARM64_PYTHON) -m trapline doctor
	$(ARM64_PYTHON) -m pytest -p no:cacheprovider $(ARM64_TESTS)
	$(BIN)/python $(ARM64_CHECK) --report $(ARM64)/here.txt
	$(ARM64_PYTHON) $(ARM64_CHECK) --report $(ARM64)/there.txt
	sed -i 's/ in .* per second//' $(ARM64)/here.txt $(ARM64)/there.txt
	diff $(ARM64)/here.txt $(ARM64)/there.txt
endif

engines: $(STAMP)
	for engine in $(ENGINES); do $(BYTECODE) TRAPLINE_ENGINE=$$engine $(BIN)/python -m pytest -n 2 $(ENGINE_TESTS) || exit 1; done

testbins:
	$(MAKE) -C testbins

# Real Debian programs, for `make test-debian`, `make programs`, and some tests that are skipped without them.
debian:
	testbins/linux/get-debian .debian

# Debian's Linux kernels for the tests that boot them; those are skipped where they are not.
kernels: $(DEMO)
	for isa in riscv64 aarch64 x86_64; do $(BIN)/trapline kernel get $$isa || exit 1; done

# The tests on every Python of PYTHONS that is installed; the others are named.
PYTHONS := 3.11 3.12 3.13 3.14
test-pythons:
	@for version in $(PYTHONS); do \
		if command -v python$$version > /dev/null; then \
			$(MAKE) test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
		else \
			echo "python$$version is not installed: not tested"; \
		fi; \
	done

# dist/: a wheel and a source archive whose bytes can be reproduced, and the bill of materials.
release: $(STAMP)
	rm -rf dist build/release
	$(INSTALL) cyclonedx-bom
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m build --outdir build/release/again
	cd build/release/again && for file in *; do cmp $$file ../../../dist/$$file || exit 1; done
	$(PYTHON) -m venv --without-pip build/release/clean
	$(BIN)/python -m pip --python build/release/clean/bin/python install --quiet --disable-pip-version-check dist/*.whl
	$(BIN)/cyclonedx-py environment --output-reproducible -o dist/trapline.cdx.json build/release/clean
	cd build/release && clean/bin/trapline demo
	TRAPLINE_WHEEL=all $(BIN)/python -m pytest -n 2 tests/test_wheel.py
	cd dist && sha256sum *

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Real programs on four ISAs against qemu-user, with and without probes: some minutes.
programs: $(STAMP) debian
	$(BIN)/python -m benchmarks.programs

# Every instruction of every test program probed: some minutes; stopped, it goes on where it was.
sweep: $(STAMP)
	$(BIN)/python -m benchmarks.sweep

# Programs of gcc, clang, rustc and Go, by four linkers, with every function probed, for each ISA (Debian: gcc, its cross
# compilers, clang, lld, mold, rustc, golang-go, qemu-user, systemtap-sdt-dev): some minutes; stopped, it goes on where it was.
toolchains: $(STAMP)
	$(BIN)/python -m benchmarks.toolchains

# Every lab sheet on every ISA, with wrong answers, and every command of the sheets: some minutes.
course: $(STAMP)
	TRAPLINE_COURSE=all $(BIN)/python -m pytest tests/trapline/lab/course/test_sheets.py

# Every encoding of every ISA against capstone: an hour or so; stopped, it goes on where it was.
encodings: $(STAMP)
	$(BIN)/python -m benchmarks.encodings

# The lengths of x86 instructions against iced-x86, LLVM and objdump: a million strings, and this system's programs.
lengths: $(STAMP)
	$(INSTALL) -e '.[fast,test,decoders]'
	$(BIN)/python -m benchmarks.lengths

# Every instruction of the kernel guest's programs, of busybox and of Linux kernels, each in many states: hours; stopped,
# it goes on where it was.
check: $(STAMP)
	$(BIN)/python -m benchmarks.check

# The long checks one after the other, then docs/evidence.md: a night.  Stopped, they go on where they were.
# MINUTES=2 bounds them; DASK=tcp://host:8786 uses a cluster.
release-check: $(STAMP)
	$(BIN)/python -m benchmarks.release $(if $(MINUTES),--minutes $(MINUTES)) $(if $(DASK),--dask $(DASK))

# Hostile input of every kind, a million cases each: many hours; stopped, it goes on where it was.
# MINUTES=30 bounds it; FIRST=7000000 begins with that case of each kind, and leaves the totals as they are.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz $(if $(FIRST),--first $(FIRST)) $(if $(MINUTES),--minutes $(MINUTES))

# The site: pages, notebooks with their results, reference.  Warnings are errors.
docs: $(STAMP)
	$(INSTALL) -e '.[fast,test,docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# docs/player.png, the picture of the README, by Chromium (CHROMIUM=...).
picture: $(STAMP)
	$(BIN)/python docs/site/player.py

clean:
	rm -rf $(VENV) .venv-3.* build dist site
