#!/bin/sh
# Checks the package that a release would upload: it holds what a user builds, runs and
# reads, and nothing else; it builds by itself; and the registry's rules accept it.
# Arguments go to cargo: `--allow-dirty` checks a tree with changes.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

fail() {
    echo "$*" >&2
    exit 1
}

# Cargo adds the files named in the second line.
allowed='^(src/.*\.rs|docs/([a-z]+/)?[A-Za-z_-]+\.(md|svg)|docs/dashboards/[a-z]+\.(json|yml)|[A-Z]+\.md|LICENSE-(MIT|APACHE))$
^(Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json)$'

strangers=$(cargo package -p tickwheel --list "$@" 2>/dev/null | grep -Evx "$allowed" || true)
[ -z "$strangers" ] || fail "the package holds files that no user needs:
$strangers"

cargo publish -p tickwheel --dry-run "$@" 2>&1 | grep -v 'is not included in the published package' |
    tee target/package.log
grep -q 'aborting upload due to dry run' target/package.log || fail "the package was refused"
