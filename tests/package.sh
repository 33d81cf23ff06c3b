#!/bin/sh
# Checks the package that a release would upload: it holds what a user builds, tests and
# reads, and nothing else; the registry's rules accept it; and by itself, outside of the
# repository, it builds and passes its unit tests. Arguments go to cargo: `--allow-dirty`
# checks a tree with changes.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# The second line is what the unit tests share with other tests; the third is Cargo's own.
allowed='^(src/.*\.rs|docs/([a-z]+/)?[A-Za-z_-]+\.(md|svg)|docs/dashboards/[a-z]+\.(json|yml)|[A-Z]+\.md|LICENSE-(MIT|APACHE))$
^tests/(oracle/wheel/[a-z]+|support/scripts)\.rs$
^(Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json)$'

strangers=$(cargo package -p tickwheel --list "$@" 2>/dev/null | grep -Evx "$allowed" || true)
[ -z "$strangers" ] || fail "the package holds files that no user needs:
$strangers"

cargo publish -p tickwheel --dry-run --no-verify "$@" 2>&1 |
    grep -v 'is not included in the published package' | tee "$target/package.log"
grep -q 'aborting upload due to dry run' "$target/package.log" || fail "the package was refused"

rm -f "$target"/package/tickwheel-*.crate
cargo package -p tickwheel --no-verify "$@" 2>/dev/null
tar -xzf "$target"/package/tickwheel-*.crate -C "$unpacked"
cd "$unpacked"/tickwheel-*
PROPTEST_CASES="${PROPTEST_CASES:-10}" cargo test --quiet --tests --target-dir "$target"
