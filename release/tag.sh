#!/usr/bin/env bash
# tag.sh makes the tags of a release in the repository of the current folder: one for the root, and one for each module that
# other people import or install. Without an argument it says what it would do.
#
#   release/tag.sh            what would be tagged, and what is in the way
#   release/tag.sh --make     make the commit and its tags; prints the command that publishes them
#   release/tag.sh --trial    the same in a copy of the repository, whatever tags and the changelog say; prints the tags
#
# The tags are on a commit of their own behind HEAD. In it, no module has a replace or an exclude: with one, the go command
# refuses "go install .../server/cmd/ctxserver@VERSION". The commit follows from HEAD alone, so everybody makes the same one.
set -euo pipefail
path=github.com/ctxdir/ctxdir
make=${1:-}
case $make in "" | --make | --trial) ;; *) echo "usage: release/tag.sh [--make | --trial]" >&2; exit 2 ;; esac

work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" HEAD
repo=$PWD

# All modules require one version of the others, which becomes the tag.
version=$(cd "$work/tree" && git ls-files '*go.mod' | xargs sed -nE "s#^(require)?[[:space:]]*$path(/[a-z0-9/]+)? (v[^ ]+).*#\3#p" | sort -u)
[ "$(wc -l <<<"$version")" = 1 ] || { echo "the modules require several versions of one another:" "$version" >&2; exit 1; }
mapfile -t nested < <(cd "$work/tree" && dirname contrib/*/go.mod clients/go/go.mod server/go.mod)
tags=("${nested[@]/%//$version}")

wrong='' force=--force
if [ "$make" != --trial ]; then
  force=''
  grep -qE "^## ${version#v}, [0-9]{4}-[0-9]{2}-[0-9]{2}$" "$work/tree/CHANGELOG.md" || wrong+="CHANGELOG.md gives no date for ${version#v}; "
  [ -z "$(git status --porcelain)" ] || wrong+="there are changes that are not committed; "
  for tag in "${tags[@]}" "$version"; do
    ! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || wrong+="the tag $tag exists; "
  done
fi
if [ -z "$make" ]; then
  printf 'on a commit behind %s, whose modules have no replace:\n' "$(git rev-parse --short HEAD)"
  printf '  %s\n' "$version" "${tags[@]}"
  [ -z "$wrong" ] || printf 'in the way: %s\n' "${wrong%; }"
  exit 0
fi
[ -z "$wrong" ] || { echo "${wrong%; }" >&2; exit 1; }

# The checksums of the root for the go.sum of the others. The root module has none of the folders that change below.
git clone --quiet --bare "$repo" "$work/root.git"
git -C "$work/root.git" tag "$version" "$(git rev-parse HEAD)"
root=$(cd "$work" && GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/root.git.insteadOf" GIT_CONFIG_VALUE_0="https://$path" \
  GOPROXY=direct GONOSUMDB=$path GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$work/modules go mod download -json "$path@$version")
sum() { sed -nE "s/^[[:space:]]*\"$1\": \"(.*)\",?$/\1/p" <<<"$root"; }

cd "$work/tree"
for module in "${nested[@]}"; do
  sed -i -E '/^(replace|exclude) [^(]/d; /^(replace|exclude) \($/,/^\)/d' "$module/go.mod"
  sed -i '/^\/\/ Only tests of .* ask for it/d' "$module/go.mod"
  printf '%s %s %s\n' "$path" "$version" "$(sum Sum)" "$path" "$version/go.mod" "$(sum GoModSum)" >>"$module/go.sum"
  go mod edit -fmt "$module/go.mod"
done
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
GIT_AUTHOR_NAME=$(git show -s --format=%an) GIT_AUTHOR_EMAIL=$(git show -s --format=%ae) GIT_AUTHOR_DATE=$(git show -s --format=%aI)
GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
git -c commit.gpgsign=false commit --quiet --no-verify -am "Release $version"
for tag in "${tags[@]}" "$version"; do git -c tag.gpgsign=false tag ${force:+"$force"} "$tag"; done
if [ "$make" = --trial ]; then
  printf '%s\n' "${tags[@]}" "$version"
else
  echo "made the tags; this publishes them, the root's last, since it starts the release:"
  printf '  git push origin'
  printf ' %s' "${tags[@]}" && echo
  echo "  git push origin $version"
fi
