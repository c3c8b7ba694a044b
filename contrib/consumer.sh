#!/usr/bin/env bash
# consumer.sh looks whether other people can use the modules of this repository. It gives a copy of the repository the tags of
# a release, lets the go command fetch each module by its tag into a module proxy of files (release/trial.sh), installs both
# commands from it, and builds the examples of each adapter's README in a module elsewhere, from that proxy alone, without
# workspace or replace. contrib/NAME/testdata/consumer has the program around them: "//README 2" is the second block of Go.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
. "$root/release/trial.sh"
trial "$work"
cd "$work"

# The commands install by their version, too.
for command in cmd/ctxtool server/cmd/ctxserver; do
  GOBIN=$work/bin go install "$path/$command@$version" 2>"$work/out" || { cat "$work/out"; exit 1; }
  said=$("$work/bin/${command##*/}" --version)
  grep -qwF -- "$version" <<<"$said" || { echo "$command@$version says it is $said"; exit 1; }
  echo "go install $path/$command@$version: $said"
done
for consumer in "$root"/contrib/*/testdata/consumer/consumer.go; do
  adapter=${consumer%/testdata/*}
  name=${adapter##*/}
  mkdir "$work/$name"
  awk -v readme="$adapter/README.md" '
    BEGIN { while ((getline line < readme) > 0) { if (line == "```") go = 0; if (go) block[n] = block[n] line "\n"; if (line == "```go") { go = 1; n++ } } }
    /^[[:space:]]*\/\/README [0-9]+$/ { used[$2]; printf "%s", block[$2]; next } { print }
    END { for (i = 1; i <= n; i++) if (!(i in used) && block[i] !~ /^import /) { print "block " i " of " readme " is not used" > "/dev/stderr"; exit 1 } }
  ' "$consumer" >"$work/$name/consumer.go"
  (cd "$work/$name" && go mod init example.com/consumer && go get "$path/contrib/$name@$version" && go build -mod=mod .) >"$work/out" 2>&1 ||
    { cat "$work/out"; exit 1; }
  grep -q "replace" "$work/$name/go.mod" && exit 1
  echo "$name: its README's examples build with $version"
done
