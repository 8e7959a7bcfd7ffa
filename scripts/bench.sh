#!/usr/bin/env bash
# The comparisons of `make run` with more runs, recorded as results/first-light/NAME.json.
#   scripts/bench.sh [RUNS]     default 10
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/demo.sh --runs "${1:-10}" --json results/first-light
