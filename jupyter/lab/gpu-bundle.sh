#!/bin/sh
# What goes to a machine with an NVIDIA card and without Go.
# usage: gpu-bundle.sh build VENV         makes artefacts/gpu and artefacts/gpu.tar.gz
#        gpu-bundle.sh run test|bench ... runs them here, or on GPU_HOST=user@host; keeps the output in artefacts/
# environment: GO, PYTHON; GPU_HOST; GPU_FUZZ, how many times as many random functions as go test
set -eu

GO=${GO:-go}
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
out=artefacts/gpu

build() {
	venv=$(cd "$1" && pwd)
	header=$venv/cuda-header-12/nvidia/cuda_runtime/include
	rm -rf "$out" "$out.tar.gz"
	mkdir -p "$out/native" "$out/.src" "$out/gpubench"
	# gorgonia.org/cu names the folders of this machine's headers, which are those of another C library than zig's.
	cat >"$out/cc" <<-END
		#!/bin/sh
		for a do
			shift
			case \$a in -I/usr/include | -I/usr/local/* | -I/opt/* | -L/usr/local/* | -L/opt/*) ;; *) set -- "\$@" "\$a" ;; esac
		done
		exec "$venv/bin/python" "$venv/zig/ziglang/__main__.py" cc -target x86_64-linux-gnu.2.17 "\$@"
	END
	chmod +x "$out/cc"
	flags="-O2 -I$root/gpukit/internal/driver/cuda/shim/include -I$header -DGPUNOTES_CUDA_HEADER_$(cksum <"$header/cuda.h" | cut -d' ' -f1)"
	with() {
		env GOWORK=off GOFLAGS= GOOS=linux GOARCH=amd64 CGO_ENABLED=1 CC="$root/$out/cc" CGO_CPPFLAGS= CGO_CFLAGS="$flags" "$GO" "$@"
	}
	echo '== the programs for a card, for glibc 2.17 and later'
	with test -c -trimpath -ldflags=-w -tags cuda -o "$out/gpukit.test" ./gpukit
	with build -trimpath -ldflags=-w -tags cuda -o "$out/gpubench/gpubench" ./gpukit/gpubench
	rm "$out/cc"
	# Functions are compiled from their text, which programs look for where they were built. The folder's name hides it from
	# those who walk through this module.
	git ls-files -co --exclude-standard -- 'gpukit/*.go' 'gpukit/**/testdata/*' 'gpukit/testdata/*' go.mod go.sum LICENSE | while read -r f; do
		[ -f "$f" ] || continue
		mkdir -p "$out/.src/$(dirname "$f")"
		cp "$f" "$out/.src/$f"
	done
	cp gpukit/gpubench/*.py "$out/gpubench/"
	mkdir "$out/facts"
	cp gpukit/internal/driver/cuda/facts/facts.py gpukit/internal/driver/cuda/facts/facts*.ptx "$out/facts/"
	cp jupyter/lab/gpu-run.sh "$out/run.sh"
	chmod +x "$out/run.sh"
	echo "gpunotes $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes'), $("$GO" env GOVERSION), $(date +%F)" >"$out/version"
	echo "GPU_FUZZ=${GPU_FUZZ:-20}" >"$out/settings"
	echo '== what native Go answers to its tests'
	(cd "$out" && RECORD=1 ./run.sh test) >"$out.log" 2>&1 || { tail -n 40 "$out.log"; exit 1; }
	rm "$out.log"
	tar czf "$out.tar.gz" -C artefacts gpu
	echo "made $out.tar.gz, $(du -h "$out.tar.gz" | cut -f1): unpack it, then ./gpu/run.sh facts, test or bench; $(newest "$out/gpukit.test")"
}

# newest says which glibc a program asks for.
newest() {
	readelf --version-info "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1 | sed 's/GLIBC_/it needs glibc /'
}

run() {
	what=$1
	shift
	log=artefacts/gpu-$what-$(date +%Y%m%d-%H%M%S).md
	if [ -n "${GPU_HOST:-}" ]; then
		scp -q "$out.tar.gz" "$GPU_HOST:gpunotes-gpu.tar.gz"
		{ ssh "$GPU_HOST" "rm -rf gpunotes-gpu && mkdir gpunotes-gpu && tar xzf gpunotes-gpu.tar.gz -C gpunotes-gpu && gpunotes-gpu/gpu/run.sh $what $*" 2>&1; echo $? >"$log.status"; } | tee "$log"
	else
		{ "$out/run.sh" "$what" "$@" 2>&1; echo $? >"$log.status"; } | tee "$log"
	fi
	status=$(cat "$log.status")
	rm "$log.status"
	echo "(kept in $log)"
	exit "$status"
}

"$@"
