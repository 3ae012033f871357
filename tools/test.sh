#!/bin/sh
# The everyday tests, on as many cores as there are. Arguments go to pytest: sh tools/test.sh -m slow
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh dev
exec .venv/bin/python -P -m pytest -q -n auto "$@"
