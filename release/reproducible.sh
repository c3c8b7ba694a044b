#!/usr/bin/env bash
# reproducible.sh makes the release of HEAD twice, in clones in different folders, and compares every file. With --here, only what
# runs on this platform.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
. "$root/release/trial.sh"
tools
trial "$work"
release "$work/one" "${1:-}"
mkdir "$work/elsewhere"
release "$work/elsewhere/another" "${1:-}"
sums() { (cd "$1/dist" && sha256sum ./*.tar.gz ./*.zip ./*.deb ./*.rpm ./*.apk ./*.json checksums.txt ./*/ctx* 2>/dev/null | grep -vE 'artifacts.json|metadata.json|config'; cd ../release/made && sha256sum ctxtool.rb); }
sums "$work/one" >"$work/sums"
diff "$work/sums" <(sums "$work/elsewhere/another") || { echo "the files that are listed differ" >&2; exit 1; }
echo "both clones made the same $(wc -l <"$work/sums") files"
