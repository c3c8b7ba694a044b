#!/usr/bin/env bash
# prepare.sh makes what a release has beside the binaries, in release/made: manual pages, completions, the Homebrew formula, and what
# the image has beside ctxserver. goreleaser runs it before the builds.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$PWD/release/made
rm -rf "$made"
mkdir -p "$made"/{ctxtool,ctxserver}/completions "$made/bin" "$made/image/data" "$made/image/certs"
go build -o "$made/bin/" ./cmd/ctxtool
(cd server && go build -o "$made/bin/" ./cmd/ctxserver)
for command in ctxtool ctxserver; do
  completions=$made/$command/completions
  "$made/bin/$command" completion bash >"$completions/$command.bash"
  "$made/bin/$command" completion fish >"$completions/$command.fish"
  "$made/bin/$command" completion zsh >"$completions/_$command"
  "$made/bin/$command" completion powershell >"$completions/$command.ps1"
done
"$made/bin/ctxtool" man "$made/ctxtool/man"
cp -r "$made/ctxtool/man" "$made/ctxtool/man.gz"
gzip -9n "$made/ctxtool/man.gz/"*
rm -r "${made:?}/bin"

# The certificates of the machine, which are those of Mozilla.
cp /etc/ssl/certs/ca-certificates.crt "$made/image/certs/"

tag=$(git describe --tags --exact-match --match 'v*' 2>/dev/null || echo v0.0.0)
sed "s/@TAG@/$tag/; s/@REVISION@/$(git rev-parse HEAD)/" release/ctxtool.rb >"$made/ctxtool.rb"
