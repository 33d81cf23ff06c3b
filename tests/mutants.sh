#!/bin/sh
# Tries cargo-mutants on what has changed since a revision: it changes one expression of
# these lines at a time and asks whether a test sees it.
#
#   tests/mutants.sh [revision] [minutes]
#
# The revision is by default where the branch left the main branch, and the limit half an
# hour. A mutant costs about a minute of processor time, most of it for compiling. The tests
# are those of .cargo/mutants.toml: what they miss, another suite may find. Fails if a
# mutant is missed. Says so if time was up first. Needs a network if cargo-mutants is missing.
set -eu

cd "$(dirname "$0")/.."
main=$(git rev-parse -q --verify origin/main || git rev-parse -q --verify main)
base=${1:-$(git merge-base HEAD "$main")}
minutes=${2:-30}
cargo mutants --version >/dev/null 2>&1 || cargo install --locked cargo-mutants
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git diff "$base" -- src durable/src >"$work/diff"
[ -s "$work/diff" ] || { echo "no source has changed since $base"; exit 0; }
status=0
PROPTEST_CASES=${PROPTEST_CASES:-60} PROPTEST_MAX_SHRINK_ITERS=0 CARGO_INCREMENTAL=1 RUST_BACKTRACE=0 \
    timeout -s INT "${minutes}m" cargo mutants --in-diff "$work/diff" --output "$work" --colors never || status=$?
[ $status -ne 124 ] || echo "time was up after $minutes minutes: $(wc -l <"$work/mutants.out/caught.txt") mutants found"
[ ! -s "$work/mutants.out/missed.txt" ] || exit 1
# 3: tests ran for too long, which counts as found. 124: the limit.
case $status in 0 | 2 | 3 | 124) ;; *) exit $status ;; esac
