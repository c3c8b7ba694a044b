#!/usr/bin/env bash
# suites.sh runs the suites of all frameworks (suite.sh), builds the examples of the adapters' READMEs as other people would
# (consumer.sh), and writes to suites.sum which adapters and which API of the root passed. Where suites.sum
# has these already, it runs none, except with --all.
set -euo pipefail
cd "$(dirname "$0")/.."
sum() { { git ls-files -z contrib release/tag.sh release/trial.sh ':!contrib/suites.sum' | xargs -0 cat; go doc -all .; cat go.mod; } | sha256sum | cut -d' ' -f1; }
if [ "${1:-}" != --all ] && [ "$(cat contrib/suites.sum 2>/dev/null)" = "$(sum)" ]; then
  echo "the adapters and the API are those that passed"
  exit 0
fi
for suite in contrib/*/testdata/suite/suite.txt; do
  adapter=${suite#contrib/} adapter=${adapter%%/*}
  contrib/suite.sh "$adapter"
done
contrib/consumer.sh
sum >contrib/suites.sum
