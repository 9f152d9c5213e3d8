#!/bin/sh
# Prints the path of a Chromium or Chrome; exit 1 if there is none. $CHROMIUM, if set, is the only one looked at.
# usage: chromium.sh [install]     install: as root on Debian or Ubuntu, fetch it first if there is none
set -eu

find_one() {
	if [ -n "${CHROMIUM:-}" ]; then
		command -v "$CHROMIUM"
		return
	fi
	for name in chromium chromium-browser google-chrome google-chrome-stable \
		/Applications/Chromium.app/Contents/MacOS/Chromium \
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
		command -v "$name" && return
	done
	return 1
}

find_one && exit 0
[ "${1:-}" = install ] && [ -z "${CHROMIUM:-}" ] || exit 1
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 1

echo "no Chromium here: installing Debian's package chromium" >&2
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } </dev/null >"$log" 2>&1; then
	rm -f "$log"
else
	cat "$log" >&2
	rm -f "$log"
	exit 1
fi
find_one
