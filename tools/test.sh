#!/bin/sh
# The everyday tests, on as many cores as there are. Arguments go to pytest: sh tools/test.sh -m slow
# With CASELEDGER_COVERAGE=1 the run is measured (coverage combine and report are the caller's).
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh dev
if [ -n "${CASELEDGER_COVERAGE:-}" ]; then
    exec .venv/bin/python -P -m coverage run -m pytest -q -n auto --dist loadfile "$@"
fi
exec .venv/bin/python -P -m pytest -q -n auto --dist loadfile "$@"
