#!/bin/sh
# Makes a root file system of Debian, as the images debian:...-slim are: no documentation. As root on Debian or Ubuntu.
# usage: debian.sh TAR PACKAGE...      a TAR that is there already is left as it is
# environment: SUITE (trixie); DEBIAN_MIRROR, where from
# Certificates that this machine trusts beyond Debian's are trusted in there, too.
set -eu

tar=$1
shift
[ ! -f "$tar" ] || exit 0
packages=$(echo "$*" | tr ' ' ,)
mkdir -p "$(dirname "$tar")"
part=$tar.part.tar
log=$(mktemp)
trap 'rm -f "$part" "$log"' EXIT
set --
for f in /usr/local/share/ca-certificates/*.crt; do
	[ ! -f "$f" ] || set -- "$@" --customize-hook="copy-in '$f' /usr/local/share/ca-certificates"
done
[ $# = 0 ] || set -- "$@" --customize-hook='chroot "$1" update-ca-certificates'
mmdebstrap --mode=root --variant=minbase --include="ca-certificates,$packages" \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-include=/usr/share/doc/*/copyright' "$@" \
	"${SUITE:-trixie}" "$part" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" </dev/null >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
mv "$part" "$tar"
