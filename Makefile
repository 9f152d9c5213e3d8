# `make` alone lists the targets.

GO ?= go
PYTHON ?= python3
LAB_ARGS ?=
NOTEBOOKS ?=
ACCURACY_POINTS ?=
ACCURACY_RUN ?=
FUZZ ?= 50
PLANTED ?=
FLOAT32 ?=
GPU_HOST ?=
GPU_ARGS ?=
PEERS_ARGS ?=
export GO PYTHON CHROMIUM GPU_HOST

VENV := .venv
PY := $(VENV)/bin/python
PIP := pip install --quiet --disable-pip-version-check --no-input --require-hashes
LAB := jupyter/lab
LIBM := gpukit/internal/libm
GO_ROOMS := $(wildcard gpukit plots jupyter)

# A stamp is written last, so it stands for a whole environment: whatever an interrupted install left is built anew.
VENV_STAMP := $(VENV)/.gpunotes-complete
BROWSER_STAMP := $(VENV)/.gpunotes-browser-complete
KERNEL_STAMP := $(VENV)/.gpunotes-kernel-complete
ACCURACY_STAMP := $(VENV)/.gpunotes-accuracy-complete
DRIVER_STAMP := $(VENV)/.gpunotes-driver
FACTS := gpukit/internal/driver/cuda/facts
EXPERIMENTS := gpukit/internal/experiments
CPUBENCH := gpukit/cpubench

NOT_IN_KERNEL := $(LAB) jupyter/kerneltest $(CPUBENCH) gpukit/gpubench $(EXPERIMENTS) $(LIBM)/accuracy

# Directories too: their time changes when a file is removed.
KERNEL_SOURCES := go.mod go.sum $(shell find gpukit plots jupyter \( $(foreach d,$(NOT_IN_KERNEL),-path $(d) -o) -name testdata -o -name __pycache__ \) -prune \
	-o \( -type d -o -type f ! -name '*_test.go' ! -name '*.md' \) -print 2>/dev/null)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab test test-all notebooks notebooks-update bench clean gpu-facts gpu-test gpu-bench gpu-bundle
.PHONY: preflight preflight-browser kernel test-engines test-go test-bindings test-kernel test-browser test-amd64-v3 test-ptxas test-cuda
.PHONY: test-images test-newcomer test-newcomer-lab
.PHONY: test-long test-notebooks
.PHONY: fuzz planted accuracy test-accuracy test-float32 experiments test-experiments bench-peers bench-peers-quick FORCE

help:
	@echo 'make lab               install what is missing, start JupyterLab on notebooks/   (LAB_ARGS="--port 9999")'
	@echo 'make test              what every change must pass; no root and no browser needed'
	@echo 'make test-all          what make test leaves out: real browser, NVIDIA assembler, build with CUDA, GOAMD64=v3, accuracy of libm, images'
	@echo 'make test-images       build the images of docker/ and run them, without a Docker engine (root on Debian or Ubuntu)'
	@echo 'make test-newcomer     make lab and make test in a fresh Debian with git, Go, Python and make, timed (root on Debian or Ubuntu)'
	@echo 'make notebooks         execute the notebooks, compare with the committed outputs (NOTEBOOKS="05 06": only these)'
	@echo 'make notebooks-update  execute the notebooks, write their outputs'
	@echo 'make experiments       the public threads on simulated cards, beside their own times; writes $(EXPERIMENTS)/EXPERIMENTS.md'
	@echo 'make accuracy          measure libm against MPFR, write $(LIBM)/ACCURACY.md (minutes; ACCURACY_RUN='^J': only these)'
	@echo 'make test-float32      float32 functions on all 2^32 numbers (minutes each; FLOAT32=Sin: only this one)'
	@echo 'make fuzz              random functions on every engine against the Go compiler (FUZZ=50: 50 times as many as make test; SEED=7)'
	@echo 'make test-long         the long forms of tests of which make test runs a part (an hour)'
	@echo 'make planted           deliberate faults that the tests must find (PLANTED=regexp: only those whose description it matches)'
	@echo 'make bench             benchmarks'
	@echo 'make bench-peers       gpukit against numba, numpy, numexpr, C and plain Go on this CPU; ten minutes, writes $(CPUBENCH)/PEERS.md'
	@echo 'make bench-peers-quick a glance at the same, three pairs of each; writes nothing'
	@echo 'make gpu-facts         what an NVIDIA card does where our code relies on it; needs only its driver and Python'
	@echo 'make gpu-test          the tests, on an NVIDIA card                     (GPU_HOST=user@host: on that machine)'
	@echo 'make gpu-bench         gpukit against numba and CuPy, on an NVIDIA card (GPU_HOST=user@host: on that machine)'
	@echo 'make gpu-bundle        artefacts/gpu: all three for a machine without Go'
	@echo 'make clean             remove .venv and build outputs'

lab: kernel
	@$(LAB)/lab.sh $(LAB_ARGS)

preflight:
	@$(LAB)/preflight.sh

preflight-browser:
	@$(LAB)/chromium.sh install >/dev/null || true
	@$(LAB)/preflight.sh browser

# A Python that was upgraded or removed leaves a .venv that does not start: then the stamp counts for nothing.
$(VENV_STAMP): $(LAB)/requirements.txt $(LAB)/overrides.json $(shell $(PY) -c '' 2>/dev/null || echo FORCE) | preflight
	@echo '== Python packages into $(VENV) (once; about a minute)'
	@rm -f $@
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PY) -m $(PIP) -r $(LAB)/requirements.txt || \
		{ echo 'The Python packages could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp $(LAB)/overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

$(BROWSER_STAMP): $(LAB)/requirements-browser.txt $(VENV_STAMP) | preflight-browser
	@echo '== playwright into $(VENV) (once)'
	@rm -f $@
	@$(PY) -m $(PIP) -r $(LAB)/requirements-browser.txt || \
		{ echo 'playwright could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

# The versions install to the same place inside a package folder, so each has a folder of its own.
$(VENV)/ptxas-%/.complete: $(LAB)/requirements-ptxas-%.txt $(VENV_STAMP)
	@echo "== NVIDIA's assembler of CUDA $* into $(VENV) (once)"
	@rm -rf $(@D)
	@$(PY) -m $(PIP) --no-deps --target $(@D) -r $< || \
		{ echo 'ptxas could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

$(VENV)/cuda-header-%/.complete: $(LAB)/requirements-cuda-%.txt $(VENV_STAMP)
	@echo '== cuda.h of CUDA $* into $(VENV) (once)'
	@rm -rf $(@D)
	@$(PY) -m $(PIP) --no-deps --target $(@D) -r $< || \
		{ echo "cuda.h of CUDA $* could not be installed (network?). Run the same command again." >&2; exit 1; }
	@touch $@

$(VENV)/zig/.complete: $(LAB)/requirements-zig.txt $(VENV_STAMP)
	@echo '== a C compiler that links for older systems into $(VENV) (once)'
	@rm -rf $(@D)
	@$(PY) -m $(PIP) --no-deps --target $(@D) -r $< || \
		{ echo 'ziglang could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

$(ACCURACY_STAMP): $(LIBM)/accuracy/requirements.txt $(VENV_STAMP)
	@echo '== MPFR for Python into $(VENV) (once)'
	@rm -f $@
	@$(PY) -m $(PIP) -r $(LIBM)/accuracy/requirements.txt || \
		{ echo 'gmpy2 could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

# Two folders, for one version of numba each; neither is for the interpreter of VENV.
$(VENV)/peers-%/.complete: $(CPUBENCH)/requirements-peers-%.txt | preflight
	@echo '== $(notdir $(@D)): Python packages to compare with (once)'
	@rm -f $@
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m $(PIP) -r $< || \
		{ echo 'They could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

FORCE:

kernel: $(KERNEL_STAMP)

# Says where the driver is; a kernel that was built before there was one is built anew. Written only if it changed.
$(DRIVER_STAMP): FORCE | $(VENV_STAMP)
	@now="$$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's/.*=> \(.*libcuda\.so\.1\)$$/\1/p') $(GPUNOTES_LIBCUDA) $(CUDA_HOME)"; \
		[ -f $@ ] && [ "$$now" = "$$(cat $@)" ] || echo "$$now" >$@

# A machine with driver and compiler may lack no more than cuda.h. Without it the kernel is built without CUDA.
$(KERNEL_STAMP): $(KERNEL_SOURCES) $(VENV_STAMP) $(DRIVER_STAMP) $(if $(wildcard $(VENV)/share/jupyter/kernels/gpunotes/kernel.json),,FORCE) | preflight
	@case "$$($(GO) run ./jupyter cuda --prefix $(VENV))" in \
		*'cuda.h is all that is missing'*) $(MAKE) --no-print-directory $(VENV)/cuda-header-12/.complete || true ;; \
	esac
	@echo '== the kernel into $(VENV)'
	@$(GO) run ./jupyter install --prefix $(VENV)
	@touch $@

test: preflight test-go test-bindings test-kernel notebooks

test-go: preflight
	@echo '== gofmt, go vet'
	@bad=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $(GO_ROOMS)) && [ -z "$$bad" ] || { echo "not formatted: run gofmt -w on"; echo "$$bad"; exit 1; }
	@$(GO) vet ./...
	@echo '== go test'
	@$(GO) test -timeout 10m ./...

test-bindings: preflight
	@echo '== generated bindings are current'
	@$(GO) run ./jupyter/bindings/gen -check

test-kernel: kernel
	@echo '== the kernel, and what make itself uses'
	@$(PY) -m pytest -q -p no:cacheprovider jupyter/kerneltest $(LAB)/test_*.py

notebooks: kernel
	@echo '== notebooks'
	@$(PY) $(LAB)/notebooks.py compare $(NOTEBOOKS)

notebooks-update: kernel
	@$(PY) $(LAB)/notebooks.py update $(NOTEBOOKS)

test-all: test-engines test-amd64-v3 test-ptxas test-cuda test-accuracy test-experiments test-notebooks test-browser test-images

# Every kind of PTX that we write, through the assemblers that NVIDIA ships for Linux on x86-64 and arm64, and through the
# compiler in the driver, where there is one (GPUNOTES_PTXJIT=file names it, or several; no GPU is needed).
test-ptxas: $(VENV)/ptxas-11/.complete $(VENV)/ptxas-12/.complete $(VENV)/ptxas-13/.complete
	@through() { \
		echo "== go test, PTX through $$1"; \
		GPUNOTES_PTXAS="$$2" $(GO) test -count=1 -timeout 5m -run 'Assembler|Registers' ./gpukit/internal/ptx ./gpukit/internal/codegen/nvptx && \
		GPUNOTES_PTXAS="$$2" $(GO) test -count=1 -timeout 5m -run ThroughPtxas ./gpukit && \
		for f in $(FACTS)/facts*.ptx; do "$$2" -arch=sm_80 -o /dev/null $$f 2>$(VENV)/said || { cat $(VENV)/said; return 1; }; done; \
	}; \
	for v in 11 12 13; do \
		through "ptxas of CUDA $$v" "$$(echo '$(CURDIR)/$(VENV)'/ptxas-$$v/nvidia/cu*/bin/ptxas)" || exit 1; \
	done; \
	for lib in $${GPUNOTES_PTXJIT:-""}; do \
		if which=$$(GPUNOTES_PTXJIT=$$lib $(PY) $(LAB)/ptxjit.py --library 2>&1); then \
			(export GPUNOTES_PTXJIT=$$lib; through "the driver's compiler, $$which" '$(CURDIR)/$(LAB)/ptxjit.py') || exit 1; \
		elif [ -n "$$lib" ]; then \
			echo "$$which" >&2; exit 1; \
		else \
			echo "== PTX through the driver's compiler: not run, there is none here ($$which)"; \
		fi; \
	done

# The build with CUDA, with the oldest and newest cuda.h, on a libcuda that simulates.
ifeq ($(shell uname -sm),Linux x86_64)
test-cuda: $(VENV)/cuda-header-11/.complete $(VENV)/cuda-header-12/.complete $(VENV)/cuda-header-13/.complete | preflight
	@$(LAB)/test-cuda.sh $(VENV)
else
test-cuda:
	@echo '== the build with CUDA: not run, this is no Linux on x86-64 (its packages of cuda.h are for that)'
endif

# What package cpu tests on the portable engine, on the machine code of this CPU.
test-engines: preflight
	@for engine in 1 2; do \
		echo "== go test, package cpu on engine $$engine"; \
		$(GO) test -count=1 -timeout 10m ./gpukit/internal/cpu -args -engine $$engine || exit 1; \
	done

# amd64-v3 lets the Go compiler fuse x*y+z: results must not change by it.
test-amd64-v3: preflight
	@echo '== go test, GOAMD64=v3'
	@for flag in avx2 bmi1 bmi2 f16c fma abm movbe; do \
		grep -qw $$flag /proc/cpuinfo 2>/dev/null || { echo "not run: this CPU has no $$flag (or is not Linux on amd64)"; exit 0; }; \
	done; GOAMD64=v3 $(GO) test -timeout 10m ./gpukit/...

# A processor copies nothing and counts nothing: notebooks must not rely on either.
test-notebooks: kernel
	@echo '== notebooks on "parallel"'
	@$(PY) $(LAB)/notebooks.py run --device parallel 00 01 02 03 04 08 10 # the quick ones

# The long forms of tests of which make test runs a part.
test-long: preflight
	WIDE=1 FAULTS=all PIPELINE=5000 $(GO) test -count=1 -timeout 2h -run 'TwoToThe31|DriverFaults|Pipeline' ./gpukit
	AMD64_SEEDS=10000 $(GO) test -count=1 -timeout 1h -run TestRandom ./gpukit/internal/codegen/amd64
	NESTS=10000 SEED=1 $(GO) test -count=1 -timeout 1h -run TestSpreadNests ./gpukit/internal/ir
	$(GO) test -count=1 -timeout 1h -run TestStress ./gpukit/internal/cpu -args -stress 5m

test-browser: $(BROWSER_STAMP) kernel
	@echo '== JupyterLab in a real browser'
	@CHROMIUM="$$($(LAB)/chromium.sh)" $(PY) -m pytest -q -p no:cacheprovider $(LAB)/browser_test.py

test-images: preflight
	@docker/test-images.sh $(VENV)/images

# Minutes of downloads and of compiling: before a release, and not in test-all. The second is the first of the two commands alone.
test-newcomer: preflight
	@docker/newcomer.sh $(VENV)/images lab test

test-newcomer-lab: preflight
	@docker/newcomer.sh $(VENV)/images lab

accuracy: $(ACCURACY_STAMP)
	@echo '== libm against MPFR'
	@$(GO) run ./$(LIBM)/accuracy -python $(PY) -run '$(ACCURACY_RUN)' $(if $(ACCURACY_POINTS),-points $(ACCURACY_POINTS),-table $(LIBM)/ACCURACY.md)

test-accuracy: $(ACCURACY_STAMP)
	@echo '== libm against MPFR, a part of the points'
	@$(GO) run ./$(LIBM)/accuracy -python $(PY) -points $(or $(ACCURACY_POINTS),100000)

experiments: preflight
	@$(GO) run ./$(EXPERIMENTS) -o $(EXPERIMENTS)/EXPERIMENTS.md

test-experiments: preflight
	@echo '== the table of the experiments is current'
	@$(GO) run ./$(EXPERIMENTS) -check $(EXPERIMENTS)/EXPERIMENTS.md

# In go test a part of the numbers is tried.
test-float32: preflight
	@echo '== float32 functions on all numbers'
	@GPUNOTES_FLOAT32=all $(GO) test -count=1 -timeout 2h -v -run '^TestFloat32$$/$(FLOAT32)' ./$(LIBM)

# Another seed each time, unless one is given.
fuzz: preflight
	@echo '== random functions on every engine'
	@FUZZ=$(FUZZ) SEED=$${SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 12h -v -run 'TestRandomFunctions' ./gpukit

planted: preflight
	@echo '== planted faults'
	@PLANTED='$(PLANTED)' $(GO) test -count=1 -timeout 12h -tags planted -v -run TestPlantedFaults ./gpukit

bench: preflight
	$(GO) test -run '^$$' -bench . -benchmem ./gpukit/...

# What is not here (packages, gcc) is left out, and said so.
bench-peers: BENCH_PEERS = --out $(CPUBENCH)/PEERS.md --samples artefacts/peers/samples.json
bench-peers-quick: BENCH_PEERS = --pairs 3 --minutes 3
bench-peers bench-peers-quick: preflight
	@for numba in current svml; do $(MAKE) --no-print-directory $(VENV)/peers-$$numba/.complete || true; done
	@$(GO) build -o artefacts/peers/ ./$(CPUBENCH)/...
	@$(PYTHON) $(CPUBENCH)/bench.py --cpubench artefacts/peers/cpubench --t16a artefacts/peers/t16a --t16ago artefacts/peers/t16ago \
		--peers $(VENV)/peers-current --svml $(VENV)/peers-svml --build artefacts/peers --command 'make $@' $(BENCH_PEERS) $(PEERS_ARGS)

gpu-facts:
ifeq ($(GPU_HOST),)
	@$(PYTHON) $(FACTS)/facts.py $(GPU_ARGS)
else
	@tar cz -C $(FACTS) . | ssh '$(GPU_HOST)' 'd=$$(mktemp -d) && trap "rm -rf $$d" EXIT && tar xz -C $$d && python3 $$d/facts.py $(GPU_ARGS)'
endif

gpu-test gpu-bench: gpu-bundle
	@$(LAB)/gpu-bundle.sh run $(@:gpu-%=%) $(GPU_ARGS)

# For the compiler, which needs cuda.h; the one in VENV serves where there is no toolkit.
gpu-bundle: $(VENV)/cuda-header-12/.complete $(VENV)/zig/.complete | preflight
	@$(LAB)/gpu-bundle.sh build $(VENV)

clean:
	rm -rf $(VENV) artefacts
