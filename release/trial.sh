# shellcheck shell=bash
# trial.sh is for other scripts: source it, and call "trial FOLDER". It makes a copy of the repository in FOLDER/repo.git with the
# tags of a release, and lets the go command fetch each module by its tag into a proxy of files. From then on this shell gets the
# modules from there, and those of others as before. It sets path, version, copy (FOLDER/repo.git) and modules: all of
# them with their version.
trial() {
  local folder=$1 here=${BASH_SOURCE[0]%/*} cached proxy tag
  cached=$(go env GOMODCACHE)/cache/download proxy=$(go env GOPROXY)
  copy=$folder/repo.git
  git clone --quiet --bare "$here/.." "$copy"
  here=$(cd "$here" && pwd)
  path=github.com/ctxdir/ctxdir modules=()
  for tag in $(cd "$copy" && "$here/tag.sh" --trial); do
    version=${tag##*/}
    tag=${tag%"$version"}
    modules+=("$path${tag:+/${tag%/}}@$version")
  done
  export GOWORK=off GOFLAGS="-trimpath -modcacherw" GONOSUMDB="$path,$path/*"
  (cd "$folder" && GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$copy.insteadOf" GIT_CONFIG_VALUE_0="https://$path" \
    GOPROXY=direct GOMODCACHE=$folder/fetched go mod download "${modules[@]}")
  # What the machine has of other modules need not travel again.
  export GOPROXY="file://$folder/fetched/cache/download,file://$cached,$proxy" GOMODCACHE=$folder/modules
}

# tools installs what a release is made with, before "trial" changes where modules come from.
tools() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/ctxdir-release tool
  for tool in github.com/goreleaser/goreleaser/v2@v2.15.1 github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0; do
    local at=$folder/${tool##*@}
    mkdir -p "$at"
    [ -n "$(ls -A "$at")" ] || GOBIN=$at go install "$tool"
    PATH=$at:$PATH
  done
}

# release FOLDER makes the release of the trial in a clone of its own, FOLDER, and publishes nothing: the files are in FOLDER/dist.
# With --here, it makes only what runs on this platform.
release() {
  local folder=$1 config=.goreleaser.yaml
  # shellcheck disable=SC2154 # trial sets it
  git clone --quiet --branch "$version" -c advice.detachedHead=false "$copy" "$folder"
  if [ "${2:-}" = --here ]; then
    config=$folder.yaml
    sed -E "s/^( *goos:).*\[.*/\1 [$(go env GOOS)]/; s/^( *goarch:).*/\1 [$(go env GOARCH)]/" "$folder/.goreleaser.yaml" >"$config"
  fi
  (cd "$folder" && GORELEASER_CURRENT_TAG=$version goreleaser release --config "$config" --clean --parallelism 2 --skip=publish,announce,docker >"$folder.log" 2>&1) ||
    { tail -40 "$folder.log"; return 1; }
}
