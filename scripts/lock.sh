#!/bin/sh
# Resolve the dependencies anew and write both lock files. Usage: lock.sh VENV_BIN
set -eu
"$1/python" -m pip install --quiet uv
for name in runtime dev; do
    group=""
    [ "$name" = dev ] && group="--group dev"
    # shellcheck disable=SC2086
    "$1/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --upgrade --extra postgres $group pyproject.toml -o "requirements/$name.lock"
done
