#!/bin/sh
# What a newcomer meets: a fresh Debian with git, Go, Python and make, a clone, and the README's two commands, timed.
# usage: newcomer.sh DIR [lab|test]...      without a command both; DIR keeps the Debian for the next run
# As root on Debian or Ubuntu; elsewhere it says that it did not run. environment: GO; SUITE, DEBIAN_MIRROR; PIP_INDEX_URL and what the Go
# command obeys, as it is set here
set -eu

GO=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

# ---- the newcomer, in the fresh Debian

now() { date +%s; }
row() { printf '   %-46s %6s s   %5s MB on disk\n' "$1" "$2" "$(du -smc "$HOME" 2>/dev/null | tail -n 1 | cut -f1)"; }

# lab WHAT: make lab until JupyterLab answers to its token, then stopped.
lab() {
	began=$(now)
	setsid make lab >"$HOME/said" 2>&1 &
	lab=$!
	at=
	while [ -z "$at" ]; do
		kill -0 $lab 2>/dev/null || { cat "$HOME/said"; echo 'make lab ended'; exit 1; }
		[ $(($(now) - began)) -lt 1800 ] || { cat "$HOME/said"; echo 'make lab took too long'; exit 1; }
		sleep 0.5
		at=$(sed -n 's|.*\(http://127.0.0.1:[0-9]*/\)lab?\(token=[0-9a-f]*\).*|\1 \2|p' "$HOME/said" | tail -n 1)
	done
	python3 - ${at% *} ${at#* } <<-'END'
		import json, sys, time, urllib.request
		at, token = sys.argv[1:]
		for attempt in range(60):
		    try:
		        kernels = json.load(urllib.request.urlopen(f"{at}api/kernelspecs?{token}", timeout=60))
		        break
		    except OSError:
		        time.sleep(0.5)
		assert kernels["default"] == "gpunotes" and "gpunotes" in kernels["kernelspecs"], kernels
		page = urllib.request.urlopen(f"{at}lab/tree/00-tour.ipynb?{token}", timeout=60).read().decode()
		assert "jupyter-config-data" in page, page
	END
	row "$1" $(($(now) - began))
	kill -TERM -$lab
	wait $lab 2>/dev/null || true
}

if [ "${1:-}" = here ]; then
	shift
	cd "$HOME"
	git clone --quiet /gpunotes.git gpunotes
	cp -r /changed/. gpunotes/
	cd gpunotes
	while IFS= read -r f; do rm -f "$f"; done </deleted
	for step; do
		case $step in
		lab)
			lab 'make lab, the first time, until it answers'
			grep '^== ' "$HOME/said" | sed 's/^/      /'
			lab 'make lab, again'
			;;
		test)
			began=$(now)
			make test >"$HOME/said" 2>&1 || { tail -n 200 "$HOME/said"; echo 'make test failed'; exit 1; }
			row 'make test' $(($(now) - began))
			grep -E 'passed|failed' "$HOME/said" | sed 's/^/      /'
			;;
		*) echo "unknown: $step"; exit 2 ;;
		esac
	done
	exit
fi

# ---- root, on this machine

if [ "${1:-}" != inside ]; then
	what=newcomer
	. docker/root.sh
	needs_root
	git rev-parse --git-dir >/dev/null 2>&1 || not_run 'this is no clone'
	from_debian mmdebstrap
	dir=$1
	shift
	[ $# -gt 0 ] || set -- lab test
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	echo "== newcomer: a fresh Debian ${SUITE:-trixie} with git, make, python3, python3-venv and $("$GO" env GOVERSION)"
	docker/debian.sh "$dir/newcomer-${SUITE:-trixie}.tar" git make python3 python3-venv
	system=$(mktemp -d "$dir/newcomer.XXXXXX")
	trap 'rm -rf "$system"' EXIT
	tar xf "$dir/newcomer-${SUITE:-trixie}.tar" -C "$system"
	mkdir -p "$system/usr/local/go"
	tar c -C "$("$GO" env GOROOT)" . | tar x -C "$system/usr/local/go"
	cp -L /etc/resolv.conf /etc/hosts "$system/etc/"

	# The committed files, and over them what is changed here.
	git clone --quiet --bare --no-hardlinks . "$system/gpunotes.git"
	mkdir "$system/changed"
	if [ -n "$(git status --porcelain)" ]; then
		echo '   the clone gets the changes that are not committed here'
		git ls-files -co --exclude-standard | while IFS= read -r f; do [ ! -f "$f" ] || echo "$f"; done | tar c -T - | tar x -C "$system/changed"
	fi
	git ls-files -d >"$system/deleted"
	cp docker/newcomer.sh "$system/newcomer.sh"

	# Mirrors and the like.
	{
		for v in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE; do
			value=$("$GO" env $v)
			[ -z "$value" ] || echo "$v=$value"
		done
		env | grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|(https?|no|HTTPS?|NO)_(proxy|PROXY))=' || true
	} >"$system/environment"
	# All that is started in there ends with the shell that starts it.
	unshare --mount --pid --fork --kill-child "$0" inside "$system" "$@"
	exit
fi

system=$2
shift 2
mount --make-rprivate /
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
mount -t sysfs sysfs "$system/sys" 2>/dev/null || mount --rbind /sys "$system/sys"
chroot "$system" useradd --create-home --shell /bin/sh newcomer
chroot "$system" chown -R newcomer /changed /gpunotes.git
set -- sh /newcomer.sh here "$@"
# Nothing of this machine's environment but the above.
while IFS= read -r line; do set -- "$line" "$@"; done <"$system/environment"
exec chroot "$system" env -i PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin HOME=/home/newcomer LANG=C.UTF-8 \
	setpriv --reuid=newcomer --regid=newcomer --init-groups env "$@"
