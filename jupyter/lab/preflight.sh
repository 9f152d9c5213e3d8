#!/bin/sh
# Says everything that this machine lacks, at once, each with the command that brings it. Needs nothing but sh.
# usage: preflight.sh [browser]     environment: GO, PYTHON, CHROMIUM name the programs to look at
set -u

GO=${GO:-go}
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/../.." && pwd)
missing=0

system=$(uname -s)
if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo "; fi

# lacks WHAT APT BREW: one thing that is missing, with its cure here.
lacks() {
	missing=$((missing + 1))
	[ "$missing" = 1 ] && echo "This machine lacks something that gpunotes needs:" >&2
	echo "  - $1" >&2
	if [ "$system" = Darwin ]; then
		echo "      $3" >&2
	else
		echo "      $2" >&2
	fi
}

# older A B: is version A (1.22.3) older than B (1.21)?
older() {
	a1=${1%%.*}; ar=${1#*.}; a2=${ar%%.*}
	b1=${2%%.*}; br=${2#*.}; b2=${br%%.*}
	[ "$a1" -lt "$b1" ] || { [ "$a1" -eq "$b1" ] && [ "$a2" -lt "$b2" ]; }
}

get_go="${sudo}apt-get install golang-go    (Debian 13, Ubuntu 24.04 and later; before: https://go.dev/dl)"
wanted=$(sed -n 's/^go \([0-9.]*\).*/\1/p' "$root/go.mod")
if ! command -v "$GO" >/dev/null 2>&1; then
	lacks "Go 1.21 or later ($GO is not there)" "$get_go" "brew install go"
else
	# asked outside the module: inside, an older go would first fetch the newer toolchain
	have=$(cd / && "$GO" env GOVERSION 2>/dev/null | sed -n 's/^go\([0-9][0-9.]*\).*/\1/p')
	case $have in *.*) ;; *) have=0.0 ;; esac
	if older "$have" 1.21; then
		lacks "Go 1.21 or later ($GO is ${have})" "$get_go" "brew upgrade go"
	elif older "$have" "$wanted"; then
		case $(cd / && "$GO" env GOTOOLCHAIN) in
		auto | path | *+auto | *+path) echo "Go $have will fetch the toolchain go$wanted by itself (once)." >&2 ;;
		*) lacks "leave for Go $have to fetch the toolchain go$wanted (GOTOOLCHAIN forbids it)" \
			"$GO env -w GOTOOLCHAIN=auto    (and unset GOTOOLCHAIN, if it is set)" "$GO env -w GOTOOLCHAIN=auto" ;;
		esac
	fi
fi

if ! command -v "$PYTHON" >/dev/null 2>&1; then
	lacks "Python 3.10 or later ($PYTHON is not there)" "${sudo}apt-get install python3 python3-venv" "brew install python"
elif have=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
	if older "$have" 3.10; then
		lacks "Python 3.10 or later ($PYTHON is $have)" \
			"${sudo}apt-get install python3.11 python3.11-venv && make PYTHON=python3.11 ..." "brew install python"
	else
		"$PYTHON" -c 'import venv, ensurepip' >/dev/null 2>&1 ||
			lacks "Python's modules venv and ensurepip" "${sudo}apt-get install python3-venv" "brew reinstall python"
	fi
else
	lacks "a working Python ($PYTHON does not start)" "${sudo}apt-get install --reinstall python3" "brew reinstall python"
fi

if [ "${1:-}" = browser ]; then
	"$root/jupyter/lab/chromium.sh" >/dev/null ||
		lacks "Chromium or Chrome, for the browser test" "${sudo}apt-get install chromium" \
			"brew install --cask chromium    (or name one: make CHROMIUM=/path/to/chrome ...)"
fi

[ -w "$root" ] || lacks "leave to write into $root" "${sudo}chown -R $(id -un) '$root'" "sudo chown -R $(id -un) '$root'"

# room_for DIR GIB: a full disk would break off the install halfway.
room_for() {
	free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "${free:-$2}" -ge "$2" ] ||
		lacks "room: $1 has ${free} GiB free, $2 are needed" "df -h '$1'    (then remove what you can spare)" "df -h '$1'"
}
if [ ! -f "$root/.venv/.gpunotes-complete" ]; then
	room_for "$root" 2
fi
if command -v "$GO" >/dev/null 2>&1; then
	cache=$(cd / && "$GO" env GOCACHE 2>/dev/null)
	while [ -n "$cache" ] && [ "$cache" != / ] && [ ! -d "$cache" ]; do cache=$(dirname "$cache"); done
	[ -d "$cache" ] && room_for "$cache" 1
fi

if [ "$missing" != 0 ]; then
	echo "$missing missing. Then run the same command again." >&2
	exit 1
fi
