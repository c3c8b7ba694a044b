#!/usr/bin/env bash
# image.sh CLONE FOLDER makes the image of a release without a Docker engine, as an OCI archive in FOLDER, and runs its program in its
# file system as the user of the image. It needs buildah and root. dry-run.sh calls it.
set -euo pipefail
clone=$1 folder=$2
arch=$(go env GOARCH)
tree=$folder/image
mkdir -p "$tree/linux/$arch" "$tree/release/made"
cp "$clone/dist/ctxserver_linux_$arch"*/ctxserver "$tree/linux/$arch/"
cp -r "$clone/release/made/image" "$tree/release/made/"
buildah=(buildah --storage-driver vfs --root "$folder/storage" --runroot "$folder/run")
"${buildah[@]}" bud --quiet --isolation chroot --build-arg "TARGETPLATFORM=linux/$arch" --file "$clone/release/Dockerfile" --tag ctxserver "$tree" >/dev/null
"${buildah[@]}" push --quiet ctxserver "oci-archive:$folder/ctxserver.oci.tar"
config=$("${buildah[@]}" inspect --type image ctxserver)
grep -q '"User": "65532:65532"' <<<"$config" || { echo "the image runs as root" >&2; exit 1; }
container=$("${buildah[@]}" from ctxserver)
files=$("${buildah[@]}" mount "$container")
(cd "$files" && find . -type f -o -type d -name data | sort | xargs ls -ld | awk '{ print $1, $3, $4, $5, $NF }')
in_image() { chroot --userspec=65532:65532 "$files" /usr/bin/env true 2>/dev/null && exit 1; chroot --userspec=65532:65532 "$files" /ctxserver "$@"; }
echo "as user 65532: $(in_image --version)"
in_image --dir /data user add ada
in_image --dir /data user ls
