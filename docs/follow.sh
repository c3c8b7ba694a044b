#!/usr/bin/env bash
# Follows the documentation by copy and paste, and stops with file:line at the first block that fails.
#
#   docs/follow.sh                 as root: README, tutorials, FRAMEWORKS and SERVER in a fresh system made by debootstrap,
#                                  with nothing but Go, a checkout, and what the pages tell to install
#   docs/follow.sh --here FILE…    the pages FILE, each in a new folder of this system
#
# Blocks of the languages sh, bash and console are run, those of a page in one shell. A comment "<!-- not run: REASON -->" before a
# block leaves it out, and the reason is printed. README is followed in the checkout, and the ctxtool that it builds there is the
# one of later pages that make none. The new system reaches modules as the caller does: GOPROXY, GOFLAGS and other
# settings of Go are passed on.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
pages=(README.md docs/tutorials/history.md docs/tutorials/framework.md docs/TUTORIAL.md "docs/tutorials/team.md docs/SERVER.md" docs/FRAMEWORKS.md)

# script prints the blocks of a page as one script, which names each block before it runs it.
script() {
  cat <<'END'
set -euo pipefail
at=
ended() {
  status=$?
  [ $status = 0 ] || echo "$at: failed with exit status $status" >&2
  kill $(jobs -p) 2>/dev/null || true
  exit $status
}
trap ended EXIT
END
  for page; do
    awk -v page="$page" '
      function quoted(s) { gsub(/\047/, "\047\\\047\047", s); return "\047" s "\047" }
      /^<!-- not run: .* -->$/ { reason = substr($0, 15, length($0) - 18); next }
      !inside && /^```(sh|bash|console)$/ {
        inside = 1; console = ($0 == "```console"); skipped = (reason != ""); where = page ":" NR + 1
        if (skipped) print "echo " quoted(where ": not run: " reason) " >&2"
        else print "at=" quoted(where) "; echo \"== $at\""
        reason = ""; next
      }
      !inside && /^```/ { inside = 1; skipped = 1; next }
      inside && /^```$/ { if (console && held != "") print held; held = ""; inside = console = skipped = 0; end = ""; next }
      !inside || skipped { next }
      !console { print; next }
      end != "" { print; if ($0 == end) end = ""; next }
      /^\$ / {
        command = substr($0, 3)
        if (command == "echo $?" && held != "") { print "set +e"; print held; print command; print "set -e"; held = ""; next }
        if (held != "") print held
        held = command
        if (match(command, /<<\047?[A-Z]+\047?$/)) {
          end = substr(command, RSTART + 2); gsub(/\047/, "", end)
          print held; held = ""
        }
      }' "$repository/$page"
  done
}

# here follows pages in a new folder, beside a checkout that is named ctxdir.
here() {
  local folder status=0
  folder=$(mktemp -d)
  ln -s "$repository" "$folder/ctxdir"
  script "$@" >"$folder/.script"
  (cd "$folder" && bash .script) || status=$?
  rm -rf "$folder"
  return $status
}

if [ "${1:-}" = --here ]; then
  shift
  here "$@"
  exit
fi

[ "$(id -u)" = 0 ] || { echo "skipped: it needs root"; exit 0; }
command -v debootstrap >/dev/null || { echo "skipped: it needs debootstrap"; exit 0; }
system=$(mktemp -d)
trap 'umount "$system/proc" "$system/dev" 2>/dev/null || true; rm -rf --one-file-system "$system"' EXIT
mirror=$(sed -nE 's/^(deb +(\[[^]]*\] +)?|URIs: *)(https?:[^ ]+).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  grep -v security | head -1 || true)
echo "== a fresh Debian 12, with curl, for which the tutorials ask"
debootstrap --variant=minbase --include=ca-certificates,curl bookworm "$system" ${mirror:+"$mirror"} >"$system.log" 2>&1 ||
  { tail -20 "$system.log"; rm -f "$system.log"; exit 1; }
rm -f "$system.log"
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev" && mount --make-rslave "$system/dev"
trap 'umount "$system/proc"; umount -l "$system/dev"; rm -rf --one-file-system "$system"' EXIT
# Links of the new system must not lead out of it, so what is copied replaces them.
cp -L --remove-destination /etc/resolv.conf /etc/hosts "$system/etc/"
cp -L --remove-destination /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/"
[ -z "${SSL_CERT_FILE:-}" ] || install -D -m 644 "$SSL_CERT_FILE" "$system$SSL_CERT_FILE"
cp -r "$(go env GOROOT)" "$system/usr/local/go"
mkdir -p "$system/home/you"
git clone -q "$repository" "$system/home/you/ctxdir"
settings=()
for name in GOPROXY GOFLAGS GONOSUMDB GONOSUMCHECK GOSUMDB GOPRIVATE GOINSECURE http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
  SSL_CERT_FILE; do
  value=$(go env "$name" 2>/dev/null || true)
  value=${value:-${!name:-}}
  [ -z "$value" ] || settings+=("$name=$value")
done
for page in "${pages[@]}"; do
  echo "== $page"
  script $page >"$system/home/you/script"
  folder=/home/you/follow
  [ "$page" != README.md ] || folder=/home/you/ctxdir
  chroot "$system" env -i HOME=/home/you USER=you TERM=dumb LANG=C.UTF-8 PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin:/home/you/ctxdir \
    "${settings[@]}" bash -c "rm -rf /home/you/follow; mkdir /home/you/follow; ln -s /home/you/ctxdir /home/you/follow/ctxdir
      cd $folder && exec bash /home/you/script"
done
