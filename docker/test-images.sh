#!/bin/sh
# Builds both images and runs them, without a Docker engine: podman on base images made from Debian's packages and the Go of this machine.
# usage: test-images.sh DIR      DIR keeps what the next run can use again
# As root on Debian or Ubuntu; elsewhere it says that it did not run. environment: GO; DEBIAN_MIRROR; PIP_INDEX_URL
set -eu

GO=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

# The files that must agree do, wherever this runs.
same() {
	diff -u "$@" || { echo "these must be the same" >&2; exit 1; }
}

if [ "${1:-}" != inside ]; then
	final=$(mktemp)
	trap 'rm -f "$final"' EXIT
	same docker/Dockerfile .binder/Dockerfile
	same docker/Dockerfile.dockerignore docker/Dockerfile.cuda.dockerignore
	sed -n '/^FROM ${BASE_IMAGE}/,$p' docker/Dockerfile >"$final"
	sed -n '/^FROM ${BASE_IMAGE}/,$p' docker/Dockerfile.cuda | grep -v NVIDIA | same "$final" -
	for tag in $(sed -n 's/^ARG GO_IMAGE=golang:\([0-9.]*\)-.*/\1/p' docker/Dockerfile*); do
		wanted=$(sed -n 's/^go //p' go.mod)
		[ "$(printf '%s\n' "$wanted" "$tag" | sort -V | head -n 1)" = "$wanted" ] || { echo "the images are built by Go $tag, go.mod wants $wanted" >&2; exit 1; }
	done

	what=images
	. docker/root.sh
	needs_root
	from_debian podman crun mmdebstrap
	mkdir -p "$1"
	rm -f "$final"
	# All that is started in there, and mounted, ends with it.
	exec unshare --mount --pid --fork --kill-child --mount-proc "$0" inside "$(cd "$1" && pwd)"
fi

dir=$2
began=$(date +%s)
# crun takes no mixture of both kinds of control groups, and needs none; podman's locks are kept from those of another podman.
mount -t tmpfs tmpfs /dev/shm
[ -f /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || true

# Overlays make layers cheap; where they cannot be had, each layer is a copy, so none are kept.
mkdir -p "$dir/probe/l" "$dir/probe/u" "$dir/probe/w" "$dir/probe/m" "$dir/run"
if mount -t overlay overlay -o "lowerdir=$dir/probe/l,upperdir=$dir/probe/u,workdir=$dir/probe/w" "$dir/probe/m" 2>/dev/null; then
	umount "$dir/probe/m"
	driver=overlay layers=--layers
else
	driver=vfs layers=--layers=false
fi
rm -rf "$dir/probe"

podman="podman --root $dir/storage --runroot $dir/run --tmpdir $dir/run/libpod --storage-driver $driver --cgroup-manager cgroupfs --events-backend file --runtime crun"
pod() { $podman "$@"; }
lap() {
	echo "   $1: $(($(date +%s) - since)) s"
	since=$(date +%s)
}
said=$dir/said
quietly() { "$@" >"$said" 2>&1 || { tail -n 60 "$said"; echo "failed: $*" >&2; exit 1; }; }

since=$(date +%s)
pod rm --all --force >/dev/null 2>&1 || true # of a run that was broken off
echo '== images: bases'
SUITE=$(sed -n 's/^ARG GO_IMAGE=.*-//p' docker/Dockerfile)
export SUITE
quietly docker/debian.sh "$dir/base.tar" tzdata
pod image exists localhost/stand-in || quietly pod import \
	-c 'ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' "$dir/base.tar" localhost/stand-in
lap 'a stand-in for debian and golang'

# build NAME DOCKERFILE. The Go of this machine takes the place of golang's. Its caches spare the network; what is built does not depend on them.
build() {
	set -- "$@" --build-arg GO_IMAGE=localhost/stand-in --build-arg BASE_IMAGE=localhost/stand-in
	for v in GOPROXY GOSUMDB GONOSUMDB; do
		value=$("$GO" env $v)
		[ -z "$value" ] || set -- "$@" --build-arg "$v=$value"
	done
	[ -z "${PIP_INDEX_URL:-}" ] || set -- "$@" --build-arg "PIP_INDEX_URL=$PIP_INDEX_URL"
	name=$1 file=$2
	shift 2
	quietly pod build --isolation chroot --network host --format docker $layers -f "docker/$file" -t "localhost/$name" \
		-v "$("$GO" env GOROOT):/usr/local/go:ro" -v "$("$GO" env GOMODCACHE):/root/go/pkg/mod" -v "$("$GO" env GOCACHE):/root/.cache/go-build" "$@" .
	lap "$name built"
}

"$GO" mod download
echo '== images: docker/Dockerfile'
build gpunotes Dockerfile
echo '== images: docker/Dockerfile.cuda'
build gpunotes:cuda Dockerfile.cuda

# A libcuda that simulates, in the place of the host's driver.
set --
if command -v gcc >/dev/null 2>&1; then
	quietly "$GO" run -tags cuda ./gpukit/internal/driver/cuda/mock -o "$dir/mock"
	set -- --libcuda "$dir/mock"
fi
python3 docker/check_images.py "$@" --podman "$podman"
lap 'run'
pod image prune -f --filter until=24h >/dev/null 2>&1 || true
echo "== images: $(($(date +%s) - began)) s altogether, $(du -sh "$dir" | cut -f1) in $dir"
