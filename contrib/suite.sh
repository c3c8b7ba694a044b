#!/usr/bin/env bash
# suite.sh ADAPTER runs the tests of a framework with the adapter in place of the framework's own stores. It copies the
# framework from the module cache to a temporary folder, lays contrib/ADAPTER/testdata/suite over the copy, and prints how
# many tests pass. It fails if a test fails that suite.txt does not list, or if a listed one passes.
#
# Lines of suite.txt: "module PATH" names the framework; "test ARGUMENTS" are those of go test; "remove FILES" are removed
# from the copy; "edit FILES SCRIPT" is a sed script for
# files; "differs TEST REASON" lists a test that cannot pass.
set -euo pipefail
adapter=$1
contrib=$(cd "$(dirname "$0")" && pwd)
suite=$contrib/$adapter/testdata/suite
value() { sed -n "s/^$1 //p" "$suite/suite.txt"; }
module=$(value module)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With -trimpath, the build cache serves later runs, although the folder is another one.
export TMPDIR=$work/tmp GOFLAGS="-trimpath -mod=mod" GOWORK=off
mkdir -p "$TMPDIR" "$work/run"

# The module that runs the tests has the requirements of the adapter, and the copy in place of the framework.
cd "$work/run"
(cd "$contrib/$adapter" && go mod download "$module" && cp go.mod go.sum "$work/run" &&
  cp -r "$(go list -m -f '{{.Dir}}' "$module")" "$work/copy")
chmod -R u+w "$work/copy"
value remove | while read -r files; do (cd "$work/copy" && rm $files); done
# shellcheck disable=SC2086
value edit | while read -r files script; do (cd "$work/copy" && sed -i -E "$script" $files); done
(cd "$suite" && find . -name '*.go' -exec cp --parents {} "$work/copy" \;)
go mod edit -module=suite -replace="github.com/ctxdir/ctxdir=$contrib/.." -replace="$module=../copy" \
  -require="github.com/ctxdir/ctxdir/contrib/$adapter@v0.1.0" -replace="github.com/ctxdir/ctxdir/contrib/$adapter=$contrib/$adapter"

status=0
# shellcheck disable=SC2046
go test -v $(value test | sed "s# \./# $module/#g; s#^\./#$module/#") >"$work/out" 2>&1 || status=$?
passed=$(grep -c '^ *--- PASS' "$work/out" || true)
sed -n 's/^ *--- FAIL: \([^ ]*\).*/\1/p' "$work/out" | sort -u >"$work/failed"
value differs | cut -d' ' -f1 | sort >"$work/listed"
count=$((passed + $(wc -l <"$work/failed")))
if [ "$passed" = 0 ] || ! diff "$work/listed" "$work/failed" >"$work/diff" || grep -q '\[build failed\]\|^panic:' "$work/out"; then
  grep -v '^ *--- PASS\|^=== \|INFO\|DEBUG\|WARN' "$work/out" | tail -n 60
  echo "$adapter: tests that fail (>) are not those that suite.txt lists (<):"
  [ ! -f "$work/diff" ] || cat "$work/diff"
  exit 1
fi
echo "$adapter: $passed of $count tests of $module pass"
value differs | sed 's/^/  not: /'
