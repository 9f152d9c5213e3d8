#!/bin/bash
# JupyterLab, or under JupyterHub the server for one user. Arguments, and NOTEBOOK_ARGS, go to it.
# DOCKER_STACKS_JUPYTER_CMD=notebook or server starts that in its place.
set -e

[ -z "$JUPYTERHUB_API_TOKEN" ] || exec start-singleuser.sh "$@"
# shellcheck disable=SC2086
exec jupyter "${DOCKER_STACKS_JUPYTER_CMD:-lab}" $NOTEBOOK_ARGS "$@"
