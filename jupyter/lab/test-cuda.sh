#!/bin/sh
# Tests of the build with CUDA on a machine without a GPU: with the cuda.h of several releases, on a libcuda that simulates.
# usage: test-cuda.sh VENV, in which there are cuda-header-11, -12 and -13
set -u

GO=${GO:-go}
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$(cd "$1" && pwd)
cd "$root" || exit 1
binding=./gpukit/internal/driver/cuda
mock=$venv/mock

# step WHAT COMMAND...: one line if it works, with its time, else what it said.
step() {
	what=$1
	shift
	began=$(date +%s)
	said=$("$@" 2>&1) || { echo "== $what: failed after $(($(date +%s) - began)) s"; echo "$said"; exit 1; }
	echo "== $what: $(($(date +%s) - began)) s"
	echo "$said" | grep -E '^(ok|---|    .*:.*)' | grep -v 'no test files' | head -n 40
}

# with RELEASE go-arguments...: the go command, with that cuda.h. The cache does not see another text behind the same path.
with() {
	header=$(echo "$venv/cuda-header-$1"/nvidia/*/include)
	release=$1
	shift
	env GOWORK=off GOFLAGS= CGO_ENABLED=1 CGO_CPPFLAGS= \
		CGO_CFLAGS="-O2 -g -I$root/$binding/shim/include -I$header -DGPUNOTES_CUDA_HEADER_${release}_$(cksum <"$header/cuda.h" | cut -d' ' -f1)" \
		"$GO" "$@"
}

# Without the tag nothing asks for a C compiler, and nothing of CUDA is compiled.
default_build() {
	c=$(CGO_ENABLED=1 GOFLAGS= "$GO" list -deps -f '{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}' ./gpukit/... ./plots/... ./jupyter/...) || return 1
	[ -z "$c" ] || { echo "C in the default build: $c"; return 1; }
	cu=$("$GO" list -deps ./gpukit ./plots ./jupyter/... | grep -F gorgonia.org/cu) && { echo "in the default build: $cu"; return 1; }
	CGO_ENABLED=0 CC=/nowhere "$GO" build ./gpukit/... ./plots/... ./jupyter/...
}

# A program with the tag asks the loader for no libcuda, and starts and computes where there is none.
no_libcuda() {
	with 12 build -tags cuda,netgo,osusergo -o "$mock/gpubench" ./gpukit/gpubench || return 1
	readelf -d "$mock/gpubench" >"$mock/needed" || return 1
	grep NEEDED "$mock/needed" | grep -i cuda && { echo 'it needs libcuda to start'; return 1; }
	request='{"form":"t15","elements":20000,"reps":1,"host":true}'
	echo "$request" | env -u GPUNOTES_LIBCUDA "$mock/gpubench" -device parallel >"$mock/said" || return 1
	grep '"call_ms"' "$mock/said" >/dev/null || { cat "$mock/said"; return 1; }
	# Without it, and without any, cuda:0 is an error in words.
	for lib in '' /nowhere/libcuda.so.1; do
		GPUNOTES_LIBCUDA=$lib "$mock/gpubench" -device cuda:0 </dev/null >"$mock/said" 2>&1 && { echo 'cuda:0 was opened without a libcuda'; return 1; }
		grep -q 'gpukit.Open("cuda:0")' "$mock/said" || { cat "$mock/said"; return 1; }
	done
}

# The same program finds the cards when there is a libcuda.
with_libcuda() {
	echo '{"form":"t15","elements":20000,"reps":1,"host":true}' | GPUNOTES_LIBCUDA=$mock/libcuda.so.1 "$mock/gpubench" -device cuda:0 >"$mock/said" || return 1
	grep '"call_ms"' "$mock/said" >/dev/null || { cat "$mock/said"; return 1; }
}

# The comparison with numba and CuPy runs without them, and says so.
comparison() {
	GPUNOTES_MOCK_FAST=1 GPUNOTES_LIBCUDA=$mock/libcuda.so.1 "$venv/bin/python" gpukit/gpubench/bench.py "$mock/gpubench" \
		--device cuda:0 --quick --rounds 1 --reps 1 --out "$mock/bench.md" >"$mock/said" || { cat "$mock/said"; return 1; }
	grep -q 'left out: numba' "$mock/bench.md" && grep -qE '^\| t15 \| 20000 \| [0-9.]+ \|$' "$mock/bench.md" || { cat "$mock/bench.md"; return 1; }
}

facts() {
	(cd gpukit/internal/driver/cuda/facts && cp facts.py "$mock/" && cp facts*.ptx "$mock/") || return 1
	"$venv/bin/python" "$mock/facts.py" --write || return 1
	for f in "$mock"/facts*.ptx; do
		cmp "$f" "gpukit/internal/driver/cuda/facts/$(basename "$f")" || { echo 'run facts.py --write'; return 1; }
	done
	for cards in h200 quadro-k2000; do
		GPUNOTES_MOCK_CARDS=$cards GPUNOTES_LIBCUDA=$mock/libcuda.so.1 "$venv/bin/python" "$mock/facts.py" --cases 150 >"$mock/said" || { grep -v ' same |' "$mock/said"; return 1; }
		grep -q 'A mock answered' "$mock/said" || { echo 'it does not say that a mock answered'; return 1; }
		echo "--- $cards: $(tail -n 1 "$mock/said")"
	done
}

# What a card has to pass (make gpu-test), on a simulated one: the calls are tried by it, not the bits.
conformance() {
	suite=$(sed -n "s/^suite='\(.*\)'$/\1/p" jupyter/lab/gpu-run.sh)
	[ -n "$suite" ] || return 1
	(export GPUNOTES_MOCK_FAST=1 ENGINES=cuda:0 && with 12 test -count=1 -timeout 10m -tags cuda -v -run "$suite" ./gpukit) >"$mock/said" 2>&1 || { grep -v -e "^=== " -e PASS "$mock/said" | head -n 200; return 1; }
	n=$(grep -c "PASS: Test.*/cuda:0" "$mock/said")
	[ "$n" -ge 15 ] || { echo "only $n tests ran on cuda:0"; return 1; }
	echo "--- $n tests on cuda:0"
}

# The kernel with CUDA inside, without libcuda, is the kernel without.
kernel() {
	prefix=$mock/prefix
	rm -rf "$prefix"
	CUDA_HOME=$(dirname "$(echo "$venv"/cuda-header-12/nvidia/*/include)") GPUNOTES_LIBCUDA=$mock/libcuda.so.1 \
		"$GO" run ./jupyter install --prefix "$prefix" --cuda=yes >"$mock/said" || { cat "$mock/said"; return 1; }
	grep -q '^with CUDA: cuda.h of 12' "$mock/said" || { cat "$mock/said"; return 1; }
	program=$prefix/share/jupyter/kernels/gpunotes/gophernotes
	GPUNOTES_LIBCUDA=$mock/libcuda.so.1 "$program" --devices | grep -q '"cuda":true,"devices":\[{"name":"cuda:0"' || { echo 'it does not see the card'; return 1; }
	GPUNOTES_LIBCUDA= "$program" --devices | grep -q '"cuda":true,"devices":null,"error"' || { echo 'it sees a card where there is none'; return 1; }
	GPUNOTES_LIBCUDA= GPUNOTES_KERNEL_PREFIX=$prefix "$venv/bin/python" -m pytest -q -p no:cacheprovider jupyter/kerneltest/test_kernel.py
}

# Every notebook with "cuda:0" in its first cell: every cell and every solution runs there. What they show is not compared,
# since a card has no counters and other times.
notebooks() {
	GPUNOTES_MOCK_FAST=1 GPUNOTES_KERNEL_PREFIX=$mock/prefix \
		"$venv/bin/python" jupyter/lab/notebooks.py run --device cuda:0 --artefacts "$mock/notebooks" >"$mock/said" || { cat "$mock/said"; return 1; }
	cat "$mock/said"
}

mkdir -p "$mock"
step 'the default build is without C and CUDA' default_build
step 'a libcuda that simulates' with 12 run -tags cuda $binding/mock -o "$mock"
export GPUNOTES_LIBCUDA="$mock/libcuda.so.1"
for v in 11 12 13; do
	step "build, cuda.h of CUDA $v" with $v build -tags cuda ./gpukit
	step "vet, cuda.h of CUDA $v" with $v vet -tags cuda $binding/...
	step "tests of the binding, cuda.h of CUDA $v" with $v test -count=1 -timeout 3m -tags cuda $binding/...
done
step 'vet of all' with 13 vet -tags cuda ./gpukit/...
step 'it starts without libcuda' no_libcuda
step 'it finds libcuda' with_libcuda
step 'facts of a card, rehearsed' facts
step 'the comparison on a card, rehearsed' comparison
step 'conformance of cuda:0' conformance
step 'the kernel with CUDA' kernel
step 'the notebooks on cuda:0' notebooks
