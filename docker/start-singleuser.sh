#!/bin/bash
# The server that JupyterHub starts for a user, with JupyterLab in it.
set -e

# shellcheck disable=SC2086
exec jupyter labhub $NOTEBOOK_ARGS "$@"
