#!/usr/bin/env bash
# consumer.sh looks whether other people can use the modules of this repository. It gives a copy of the repository the tags of
# a release, lets the go command fetch each module by its tag into a module proxy of files, and builds the examples of each
# adapter's README in a module elsewhere, from that proxy alone, without workspace or replace. contrib/NAME/testdata/consumer
# has the program around them: "//README 2" is the second block of Go.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
path=github.com/ctxdir/ctxdir
cd "$root"

# All modules require one version of the others, which becomes the tag.
version=$(git ls-files '*go.mod' | xargs sed -nE "s#^(require)?[[:space:]]*$path(/[a-z0-9/]+)? (v[^ ]+).*#\3#p" | sort -u)
[ "$(wc -l <<<"$version")" = 1 ] || { echo "the modules require several versions of one another:" $version; exit 1; }

git clone --quiet --bare . "$work/repo.git"
modules=()
for folder in . contrib/*/go.mod clients/go; do
  folder=${folder%/go.mod}
  name=${folder#.}
  git -C "$work/repo.git" tag "${name:+$name/}$version"
  modules+=("$path${name:+/$name}@$version")
done

cached=$(go env GOMODCACHE)/cache/download proxy=$(go env GOPROXY)
export GOWORK=off GOFLAGS="-trimpath -modcacherw" GONOSUMDB="$path,$path/*"
cd "$work"
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/repo.git.insteadOf" GIT_CONFIG_VALUE_0="https://$path" \
  GOPROXY=direct GOMODCACHE=$work/fetched go mod download "${modules[@]}"

# What the machine has of other modules need not travel again.
export GOPROXY="file://$work/fetched/cache/download,file://$cached,$proxy" GOMODCACHE=$work/modules
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
