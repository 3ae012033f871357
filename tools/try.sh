#!/bin/sh
# The main job on the example: sets up .venv once, analyses the bug, prints the report, verifies and exports.
set -eu
cd "$(dirname "$0")/.."
sh tools/setup.sh
example=docs/examples/parcel-returns
out=${1:-.caseledger}
mkdir -p "$out"
case=$out/example-$(date +%Y%m%d-%H%M%S)-$$.case
run() { echo "+ caseledger $*" >&2; .venv/bin/caseledger "$@"; }
run analyze $example/report.md --source $example/source --log $example/logs/app.log --db $example/db/app.db -o "$case"
run verify "$case"
run export "$case" -o "${case%.case}.zip"
