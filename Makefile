# `make` alone lists the goals.

GO ?= go
PYTHON ?= python3
LAB_ARGS ?=
NOTEBOOKS ?=
ACCURACY_POINTS ?=
ACCURACY_RUN ?=
FUZZ ?= 50
PLANTED ?=
FLOAT32 ?=
export GO PYTHON CHROMIUM

VENV := .venv
PY := $(VENV)/bin/python
LAB := jupyter/lab
LIBM := gpukit/internal/libm
GO_ROOMS := $(wildcard gpukit plots jupyter docker)

# A stamp is written last, so it stands for a whole environment: whatever an interrupted install left is built anew.
VENV_STAMP := $(VENV)/.gpunotes-complete
BROWSER_STAMP := $(VENV)/.gpunotes-browser-complete
KERNEL_STAMP := $(VENV)/.gpunotes-kernel-complete
ACCURACY_STAMP := $(VENV)/.gpunotes-accuracy-complete

# Directories too: their time changes when a file is removed.
KERNEL_SOURCES := go.mod go.sum $(shell find gpukit plots jupyter \( -path jupyter/lab -o -path jupyter/kerneltest -o -path $(LIBM)/accuracy -o -name testdata \) -prune \
	-o \( -type d -o -type f ! -name '*_test.go' ! -name '*.md' \) -print 2>/dev/null)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab test test-all notebooks notebooks-update bench clean
.PHONY: preflight preflight-browser kernel test-go test-bindings test-kernel test-browser test-amd64-v3 test-ptxas
.PHONY: fuzz planted accuracy test-accuracy test-float32 FORCE

help:
	@echo 'make lab               install what is missing, start JupyterLab on notebooks/   (LAB_ARGS="--port 9999")'
	@echo 'make test              everything that needs no root and no browser'
	@echo 'make test-all          what make test leaves out: real browser, NVIDIA assembler, GOAMD64=v3, accuracy of libm'
	@echo 'make notebooks         execute the notebooks, compare with the committed outputs (NOTEBOOKS="05 06": only these)'
	@echo 'make notebooks-update  execute the notebooks, write their outputs'
	@echo 'make accuracy          measure libm against MPFR, write $(LIBM)/ACCURACY.md (minutes; ACCURACY_RUN='^J': only these)'
	@echo 'make test-float32      float32 functions on all 2^32 numbers (minutes each; FLOAT32=Sin: only this one)'
	@echo 'make fuzz              random functions on every engine against the Go compiler (FUZZ=50: 50 times as many as make test; SEED=7)'
	@echo 'make planted           deliberate faults that the tests must find (PLANTED=regexp: only those whose description it matches)'
	@echo 'make bench             benchmarks'
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
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $(LAB)/requirements.txt || \
		{ echo 'The Python packages could not be installed (network?). Run the same command again: it starts afresh.' >&2; exit 1; }
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp $(LAB)/overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

$(BROWSER_STAMP): $(LAB)/requirements-browser.txt $(VENV_STAMP) | preflight-browser
	@echo '== playwright into $(VENV) (once)'
	@rm -f $@
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $(LAB)/requirements-browser.txt || \
		{ echo 'playwright could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

# The two versions install to the same place inside a package folder, so each has a folder of its own.
$(VENV)/ptxas-%/.complete: $(LAB)/requirements-ptxas-%.txt $(VENV_STAMP)
	@echo "== NVIDIA's assembler of CUDA $* into $(VENV) (once)"
	@rm -rf $(@D)
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes --target $(@D) -r $< || \
		{ echo 'ptxas could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

$(ACCURACY_STAMP): $(LIBM)/accuracy/requirements.txt $(VENV_STAMP)
	@echo '== MPFR for Python into $(VENV) (once)'
	@rm -f $@
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r $(LIBM)/accuracy/requirements.txt || \
		{ echo 'gmpy2 could not be installed (network?). Run the same command again.' >&2; exit 1; }
	@touch $@

FORCE:

kernel: $(KERNEL_STAMP)

$(KERNEL_STAMP): $(KERNEL_SOURCES) $(VENV_STAMP) | preflight
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

test-all: test-amd64-v3 test-ptxas test-accuracy test-browser

# Every kind of PTX that we write, through the assemblers that NVIDIA ships for Linux on x86-64 and arm64.
test-ptxas: $(VENV)/ptxas-11/.complete $(VENV)/ptxas-12/.complete
	@for v in 11 12; do \
		echo "== go test, PTX through ptxas of CUDA $$v"; \
		GPUNOTES_PTXAS="$(CURDIR)/$(VENV)/ptxas-$$v/nvidia/cuda_nvcc/bin/ptxas" \
			$(GO) test -timeout 5m ./gpukit/internal/ptx ./gpukit/internal/codegen/nvptx || exit 1; \
		GPUNOTES_PTXAS="$(CURDIR)/$(VENV)/ptxas-$$v/nvidia/cuda_nvcc/bin/ptxas" \
			$(GO) test -timeout 5m -run ThroughPtxas ./gpukit || exit 1; \
	done

# amd64-v3 lets the Go compiler fuse x*y+z: results must not change by it.
test-amd64-v3: preflight
	@echo '== go test, GOAMD64=v3'
	@for flag in avx2 bmi1 bmi2 f16c fma abm movbe; do \
		grep -qw $$flag /proc/cpuinfo 2>/dev/null || { echo "not run: this CPU has no $$flag (or is not Linux on amd64)"; exit 0; }; \
	done; GOAMD64=v3 $(GO) test -timeout 10m ./gpukit/...

test-browser: $(BROWSER_STAMP) kernel
	@echo '== JupyterLab in a real browser'
	@CHROMIUM="$$($(LAB)/chromium.sh)" $(PY) -m pytest -q -p no:cacheprovider $(LAB)/browser_test.py

accuracy: $(ACCURACY_STAMP)
	@echo '== libm against MPFR'
	@$(GO) run ./$(LIBM)/accuracy -python $(PY) -run '$(ACCURACY_RUN)' $(if $(ACCURACY_POINTS),-points $(ACCURACY_POINTS),-table $(LIBM)/ACCURACY.md)

test-accuracy: $(ACCURACY_STAMP)
	@echo '== libm against MPFR, a part of the points'
	@$(GO) run ./$(LIBM)/accuracy -python $(PY) -points $(or $(ACCURACY_POINTS),100000)

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

clean:
	rm -rf $(VENV) artefacts .cache
