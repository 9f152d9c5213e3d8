# Sourced by scripts that need root on Debian or Ubuntu; elsewhere they say that they did not run. $what is their name in messages.

not_run() {
	echo "== $what: not run, $*"
	exit 0
}

needs_root() {
	[ "$(uname -s)" = Linux ] || not_run 'this is no Linux'
	[ "$(id -u)" = 0 ] || not_run 'it needs root'
	command -v apt-get >/dev/null 2>&1 || not_run 'this is neither Debian nor Ubuntu'
	unshare --mount --pid --fork true 2>/dev/null || not_run 'this root may not mount anything'
}

# from_debian COMMAND... installs the packages of these names, unless all the commands are there.
from_debian() {
	for command; do
		if ! command -v "$command" >/dev/null 2>&1; then
			echo "== $* from Debian (once)"
			log=$(mktemp)
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } </dev/null >"$log" 2>&1 ||
				{ cat "$log"; rm -f "$log"; not_run "$* could not be installed"; }
			rm -f "$log"
			return
		fi
	done
}
