#!/bin/sh
# Makes the project's own environment in .venv, once, from pinned versions.
#   sh tools/setup.sh         what the program needs
#   sh tools/setup.sh dev     also what the tests need
set -eu
cd "$(dirname "$0")/.."
what=${1:-run}
stamp=.venv/.made-$what
if [ -f "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ] && [ ! constraints.txt -nt "$stamp" ]; then
    exit 0
fi
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "caseledger needs Python 3.11 or newer; set PYTHON to one" >&2
    exit 2
}
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "Setting up .venv (once, about a minute) ..." >&2
target=.
[ "$what" = dev ] && target='.[dev]'
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e "$target"
touch "$stamp"
[ "$what" != dev ] || touch .venv/.made-run
