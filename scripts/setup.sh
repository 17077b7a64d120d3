#!/bin/sh
# Create the virtual environment and install the locked dependencies. Usage: setup.sh VENV
set -eu
venv=$1
python=${PYTHON:-python3}

say() { printf '%s\n' "nova setup: $*" >&2; }

if ! command -v "$python" >/dev/null 2>&1; then
    say "no $python found; install Python 3.11 or newer, or call make with PYTHON=/path/to/python"
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "$python is older than 3.11; call make with PYTHON=/path/to/a/newer/python"
    exit 1
fi

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    if ! "$python" -m venv --clear "$venv" 2>/dev/null; then
        # Debian ships venv apart from Python.
        if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
            say "installing python3-venv"
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
        else
            say "Python's venv module is missing; on Debian: sudo apt-get install python3-venv"
            exit 1
        fi
        "$python" -m venv --clear "$venv"
    fi
fi

say "installing locked dependencies"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
