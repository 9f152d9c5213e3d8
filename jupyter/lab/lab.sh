#!/bin/sh
# Starts JupyterLab on notebooks/ from .venv. Arguments go to JupyterLab.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)

[ "$(id -u)" = 0 ] && set -- --allow-root "$@" # JupyterLab refuses to run as root unless told
case $(uname -s) in
Darwin) ;;
*) [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && set -- --no-browser "$@" ;;
esac

cd "$root" # JupyterLab serves the current directory, unless told otherwise: notebooks link to pages beside theirs
case " $*" in
*root_dir* | *notebook-dir* | *preferred_dir*) ;;
*) set -- --ServerApp.preferred_dir="$root/notebooks" "$@" ;;
esac
# env before user: a kernel or setting of the same name in the home directory must not shadow this .venv
JUPYTER_PREFER_ENV_PATH=1 exec "$root/.venv/bin/python" -m jupyterlab \
	--MultiKernelManager.default_kernel_name=gpunotes \
	--LabApp.extension_manager=readonly \
	"$@"
