#!/bin/bash
# Gets the user and the home directory ready, then runs the command given (without one: bash).
# Started as root (docker run --user root) it obeys the variables of Jupyter's docker-stacks, then gives up being root:
#   NB_USER NB_UID NB_GID   who is to work here; files of the image's user in the home directory become theirs, mounted ones stay as they are
#   CHOWN_HOME=yes, CHOWN_HOME_OPTS=-R; CHOWN_EXTRA=/a,/b, CHOWN_EXTRA_OPTS=-R   what else to give them
#   NB_UMASK                the umask, for any user
# Files in /usr/local/bin/start-notebook.d and before-notebook.d are run first: *.sh in this shell, programs as such.
set -e

log() { echo "start.sh: $*" >&2; }

hooks() {
	local f
	for f in "$1"/*; do
		if [[ $f = *.sh ]]; then
			# shellcheck disable=SC1090
			. "$f"
		elif [ -f "$f" ] && [ -x "$f" ]; then
			"$f"
		fi || log "$f failed"
	done
}

[ $# -gt 0 ] || set -- bash
users_path=$PATH
# What root runs here must not come from a folder that users can write to.
[ "$(/usr/bin/id -u)" != 0 ] || PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hooks /usr/local/bin/start-notebook.d
as_user=()

if [ "$(id -u)" = 0 ] && [ "$NB_USER" != root ] && [ "$NB_UID" != 0 ]; then
	case $NB_USER in '' | *[!a-zA-Z0-9._-]*) log "NB_USER='$NB_USER' is no name of a user"; exit 1 ;; esac
	case $NB_UID in '' | *[!0-9]*) log "NB_UID='$NB_UID' is no number"; exit 1 ;; esac
	case $NB_GID in '' | *[!0-9]*) log "NB_GID='$NB_GID' is no number"; exit 1 ;; esac
	[ -z "$GRANT_SUDO" ] || log "GRANT_SUDO has no effect: there is no sudo in this image"
	IFS=: read -r name _ uid gid _ home _ < <(getent passwd | grep ':/home/' | head -n 1)
	if [ "$NB_USER" != "$name" ]; then
		old=$home home=/home/$NB_USER
		usermod --login "$NB_USER" --home "$home" "$name"
		if ! mountpoint -q "$home"; then # a folder of it may be one, and then it exists
			mkdir -p "$home"
			chown --reference="$old" "$home"
			chmod --reference="$old" "$home"
			for f in "$old"/* "$old"/.[!.]*; do
				[ -e "$home/${f##*/}" ] || mountpoint -q "$f" || cp -a "$f" "$home"
			done
		fi
		case $PWD/ in "$old"/*) cd "$home${PWD#"$old"}" 2>/dev/null || cd "$home" ;; esac
	fi
	if [ "$NB_UID:$NB_GID" != "$uid:$gid" ]; then
		getent group "$NB_GID" >/dev/null || groupadd --gid "$NB_GID" "${NB_GROUP:-$NB_USER}"
		# usermod --uid would also take over files on mounted volumes
		sed -i "s/^\($NB_USER:[^:]*\):[0-9]*:[0-9]*:/\1:$NB_UID:$NB_GID:/" /etc/passwd
		mounted=() # -xdev would miss a folder of the same disk
		while read -r _ _ _ _ at _; do
			case $at in "$home"/*) mounted+=(-path "$(printf %b "$at")" -prune -o) ;; esac
		done </proc/self/mountinfo
		find "$home" "${mounted[@]}" -uid "$uid" -exec chown -h "$NB_UID:$NB_GID" {} +
	fi
	usermod --append --groups users "$NB_USER"
	# shellcheck disable=SC2086
	case $CHOWN_HOME in 1 | yes) chown $CHOWN_HOME_OPTS "$NB_UID:$NB_GID" "$home" ;; esac
	# shellcheck disable=SC2086
	[ -z "$CHOWN_EXTRA" ] || chown $CHOWN_EXTRA_OPTS "$NB_UID:$NB_GID" ${CHOWN_EXTRA//,/ }
	export HOME=$home USER=$NB_USER LOGNAME=$NB_USER
	as_user=(setpriv "--reuid=$NB_UID" "--regid=$NB_GID" --init-groups --)
elif [ "$(id -u)" = 0 ]; then
	export HOME=/root USER=root LOGNAME=root
	log "running as root, as was asked for; Jupyter wants --allow-root then"
else
	[ "$(id -u)" = "$NB_UID" ] || log "running as $(id -u):$(id -g), not as $NB_UID: that needs --user root"
	export USER=${USER:-$NB_USER} LOGNAME=${LOGNAME:-$NB_USER}
fi

if ! "${as_user[@]}" test -w "$HOME"; then
	home=/tmp/home-${NB_UID:-$(id -u)}
	[ ${#as_user[@]} -gt 0 ] || home=/tmp/home-$(id -u)
	log "$HOME cannot be written to (with --user, say --group-add users too); the home directory is $home, which goes with the container"
	"${as_user[@]}" mkdir -p "$home"
	export HOME=$home
	cd "$home"
fi
# A volume mounted over the home directory hides what was in it.
[ -e "$HOME/notebooks" ] && [ -e "$HOME/gpukit" ] || "${as_user[@]}" cp -rn /usr/local/share/gpunotes/home/. "$HOME" || log "the notebooks are in /usr/local/share/gpunotes/home"

[ -z "$NB_UMASK" ] || umask "$NB_UMASK"
hooks /usr/local/bin/before-notebook.d
PATH=$users_path exec "${as_user[@]}" "$@"
