#!/bin/sh
# Runs what was put together for a machine with an NVIDIA card: needs sh, Python 3.8 and the card's driver.
# usage: run.sh facts|test|bench [arguments of facts.py, of the test program, of bench.py]
# environment: GPU_DEVICE (cuda:0)
set -u

here=$(cd "$(dirname "$0")" && pwd)
what=${1:-}
[ $# = 0 ] || shift
device=${GPU_DEVICE:-cuda:0}
python=${PYTHON:-python3}
GPU_FUZZ=1
. "$here/settings"

# Tests of what devices compute, not of the text of the house.
suite='^Test(Card.*|CloseEndsACall|GUVectorize|Library|LinspaceEnds|Numbers|Operators|Out|PrintStopped|PutEmptyFree|RandomFunctions|Reports|SelfCheck.*|StopLaunch|Tables.*|Threads|Trouble|VectorizeMatchesNativeGo|ViewsAndDTypes|WarpsAfterSomeLeft)$'

card() {
	"$python" "$here/facts/facts.py" --card --device "${device#cuda:}" || exit 2
	echo
	cat "$here/version"
	echo
}

case $what in
facts)
	exec "$python" "$here/facts/facts.py" --device "${device#cuda:}" "$@"
	;;
test)
	cd "$here/.src/gpukit" || exit 1
	export GPUNOTES_SOURCES="$here/.src" GPUNOTES_NATIVE="$here/native" FUZZ="$GPU_FUZZ" SEED=1
	if [ -n "${RECORD:-}" ]; then # where Go is, without a card
		GPUNOTES_NATIVE_RECORD=1 ENGINES=portable exec "$here/gpukit.test" -test.timeout=20m -test.run='^Test(Library|Operators|RandomFunctions|Numbers)$'
	fi
	card
	ENGINES=$device GPUNOTES_CARD=$device exec "$here/gpukit.test" -test.v -test.timeout=60m -test.run="$suite" "$@"
	;;
bench)
	card
	exec "$python" "$here/gpubench/bench.py" "$here/gpubench/gpubench" --device "$device" --sources "$here/.src" "$@"
	;;
*)
	echo 'usage: run.sh facts|test|bench' >&2
	exit 2
	;;
esac
