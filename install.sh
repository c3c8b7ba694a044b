#!/bin/sh
# install.sh installs ctxtool, or "install.sh ctxserver" the server, from the files of a release. It verifies the checksum.
#
#   PREFIX=DIR            install into DIR/bin, instead of ~/.local/bin
#   CTXDIR_VERSION=v0.1.0 install this version, instead of the newest
#   CTXDIR_URL=URL        take the files from this folder
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

command=${1:-ctxtool}
case $command in ctxtool | ctxserver) ;; *) fail "there is no command $command: give ctxtool or ctxserver" ;; esac

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no archive for $(uname -s) here: see https://github.com/ctxdir/ctxdir/releases" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no archive for $(uname -m): build it with Go, \"go install github.com/ctxdir/ctxdir/cmd/ctxtool@latest\"" ;;
esac

releases=https://github.com/ctxdir/ctxdir/releases
if [ -n "${CTXDIR_VERSION:-}" ]; then url=$releases/download/$CTXDIR_VERSION; else url=$releases/latest/download; fi
url=${CTXDIR_URL:-$url}
bin=${PREFIX:-$HOME/.local}/bin

if command -v curl >/dev/null; then
  get() { curl -fsSL --retry 3 -o "$2" "$1"; }
elif command -v wget >/dev/null; then
  get() { wget -q -O "$2" "$1"; }
else
  fail "it needs curl or wget"
fi
if command -v sha256sum >/dev/null; then
  sum() { sha256sum "$1"; }
elif command -v shasum >/dev/null; then
  sum() { shasum -a 256 "$1"; }
else
  fail "it needs sha256sum or shasum, to verify what it downloads"
fi

# In a function, so that a script that was cut off while it was downloaded does nothing.
install_command() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  get "$url/checksums.txt" "$work/checksums.txt" || fail "cannot download $url/checksums.txt"
  line=$(grep -E "^[0-9a-f]{64}  ${command}_[0-9A-Za-z.+-]+_${os}_${arch}\.tar\.gz\$" "$work/checksums.txt" | head -n 1) ||
    fail "$url has no archive of $command for $os $arch"
  [ -n "$line" ] || fail "$url has no archive of $command for $os $arch"
  want=${line%% *} name=${line##* }
  get "$url/$name" "$work/archive.tar.gz" || fail "cannot download $url/$name"
  got=$(sum "$work/archive.tar.gz")
  [ "${got%% *}" = "$want" ] || fail "$name has another checksum than checksums.txt says; nothing was installed"

  folder=${name%.tar.gz}
  tar -xzf "$work/archive.tar.gz" -C "$work" "$folder/$command" || fail "$name has no $command"
  mkdir -p "$bin"
  # Replaced by a rename: a program that runs keeps its file.
  cp "$work/$folder/$command" "$bin/.$command.new"
  chmod 755 "$bin/.$command.new"
  mv -f "$bin/.$command.new" "$bin/$command"
  echo "installed $bin/$command: $("$bin/$command" --version)"
  case :$PATH: in *:"$bin":*) ;; *) echo "$bin is not in your PATH" ;; esac
}
install_command
