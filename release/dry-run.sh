#!/usr/bin/env bash
# dry-run.sh makes the release of HEAD as the forge does, in a copy of the repository that has the tags, checks everything that it
# made, and publishes nothing. With --here, it makes only what runs on this platform.
#
#   release/dry-run.sh [--here] [FOLDER]      FOLDER gets what was made
set -euo pipefail
here=
[ "${1:-}" != --here ] || { here=--here; shift; }
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
. "$root/release/trial.sh"
tools
trial "$work"
release "$work/clone" "$here"
dist=$work/clone/dist
fail() { echo "$*" >&2; exit 1; }
has() { # has WHAT LIST PATH…: the list has the paths
  local what=$1 list=$2 path
  shift 2
  for path; do grep -qE "(^|[ /])$path\$" <<<"$list" || fail "$what has no $path"; done
}
host=$(go env GOOS)_$(go env GOARCH)

echo "== checksums"
(cd "$dist" && sha256sum --check --quiet checksums.txt && echo "$(wc -l <checksums.txt) files have the sums of checksums.txt")

echo "== archives"
for archive in "$dist"/*.tar.gz "$dist"/*.zip; do
  [ -e "$archive" ] || continue
  name=$(basename "$archive") into=$work/unpacked/$(basename "$archive")
  mkdir -p "$into"
  case $archive in *.zip) (cd "$into" && unzip -q "$archive") ;; *) tar -xzf "$archive" -C "$into" ;; esac
  command=${name%%_*} list=$(cd "$into" && find . -type f)
  has "$name" "$list" "$command(\.exe)?" LICENSE README.md "completions/$command.bash" "completions/_$command" "completions/$command.fish"
  [ "$command" = ctxserver ] || has "$name" "$list" man/ctxtool.1 man/ctxtool-append.1
  case $name in *"_$host."*)
    said=$("$into/${name%.tar.gz}/$command" --version)
    grep -qwF -- "$version" <<<"$said" || fail "$name says it is $said"
    echo "$name: $(wc -l <<<"$list") files; it says: $said" ;;
  *) echo "$name: $(wc -l <<<"$list") files" ;;
  esac
done

echo "== modules in the binaries"
for document in "$dist"/*.cdx.json; do
  name=$(basename "$document") n=0
  command=${name%%_*} platform=${name#*_*_}
  binary=$(ls "$dist/${command}_${platform%.cdx.json}"*/"$command"*)
  while read -r module its; do
    grep -qF "\"pkg:golang/$module@$its" "$document" || fail "$name lacks $module $its"
    n=$((n + 1))
  done < <(go version -m "$binary" | awk '$1 == "dep" { print $2, $3 }')
  [ "$n" -ge 20 ] || fail "$name: the binary has only $n modules"
  echo "$name: all $n modules of the binary, with their versions"
done

echo "== packages"
for package in "$dist"/*.deb "$dist"/*.rpm "$dist"/*.apk; do
  name=$(basename "$package")
  case $package in
  *.deb) list=$(dpkg-deb -c "$package") ;;
  *.rpm) command -v rpm >/dev/null || { echo "$name: skipped: there is no rpm here"; continue; }
    list=$(rpm -qlp "$package" 2>/dev/null) ;;
  *.apk) list=$(tar -tzf "$package" --ignore-zeros 2>/dev/null) ;;
  esac
  command=${name%%_*}
  has "$name" "$list" "usr/bin/$command" "usr/share/bash-completion/completions/$command" "usr/share/doc/$command/copyright"
  case $name in
  ctxtool*) has "$name" "$list" usr/share/man/man1/ctxtool.1.gz ;;
  *.deb | *.rpm) has "$name" "$list" usr/lib/systemd/system/ctxserver.service ;;
  esac
  case $name in *"_$host.deb")
    mkdir -p "$work/deb"
    dpkg-deb -x "$package" "$work/deb/$command"
    "$work/deb/$command/usr/bin/$command" --version >/dev/null ;;
  esac
  echo "$name: $(wc -l <<<"$list") files and folders"
done

echo "== install.sh, from these files"
(cd "$root" && GOFLAGS=-trimpath CTXDIR_DIST=$dist go test -count 1 -v -run TestInstallRelease ./release) | grep -vE '^(===|PASS)'

echo "== the formula for Homebrew"
if command -v ruby >/dev/null; then ruby -c "$work/clone/release/made/ctxtool.rb"; else echo "skipped: there is no ruby here"; fi
grep "url" "$work/clone/release/made/ctxtool.rb"

echo "== the image"
if command -v buildah >/dev/null && [ "$(id -u)" = 0 ] && [ "$(go env GOOS)" = linux ]; then
  "$root/release/image.sh" "$work/clone" "$work"
else
  echo "skipped: there is no buildah here, or this is not root"
fi

if [ -n "${1:-}" ]; then
  mkdir -p "$1"
  cp -r "$dist/." "$1"
fi
