#!/bin/sh
# Checks that the models pass, and then plants each bug of planted/ in a copy of
# the crate and checks that whatever its patch names finds it: models of loom
# (`model: file::test`), tests under shuttle (`shuttle: file::test`), or both.
#
#   loom-tests/plant.sh [--sample n] [name...]    e.g. loom-tests/plant.sh no-second-scan
#
# With a sample, so many of them are drawn at random. The copy and its build are
# thrown away, or kept in PLANT_DIR if that is set.
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
work=${PLANT_DIR:-$(mktemp -d)}
[ -n "${PLANT_DIR:-}" ] || trap 'rm -rf "$work"' EXIT
copy=$work/crate
log=$work/log
# A planted line is built in a second where the rest of the crate is kept.
export CARGO_INCREMENTAL=1 RUST_BACKTRACE=0
# The copy is no repository, even where it lies inside of one: `git apply`
# would skip its files.
export GIT_CEILING_DIRECTORIES="$work"

make_copy() {
    rm -rf "$copy"
    mkdir -p "$copy"
    for part in Cargo.toml Cargo.lock README.md src loom-tests tests benches examples; do
        [ ! -e "$root/$part" ] || cp -R "$root/$part" "$copy"
    done
}

# Runs tests of scheduler $1: loom or shuttle.
tests() {
    scheduler=$1
    shift
    (cd "$copy" && RUSTFLAGS="--cfg $scheduler" timeout 900 cargo test -q --release \
        --target-dir "$work/$scheduler" -p "tickwheel-$scheduler-tests" "$@") >"$log" 2>&1
}

# Says what became of the bug in patch $1; fails unless it was found by all that
# should.
plant() {
    git -C "$copy" apply "$1" || return 1
    unfound=0
    for finder in $(sed -n 's/^model: /loom::/p; s/^shuttle: /shuttle::/p' "$1"); do
        test=${finder#*::}
        find_it "${finder%%::*}" "${test%%::*}" "${test#*::}" || unfound=1
    done
    # Takes it out again; the new time of the file makes cargo build it anew.
    git -C "$copy" apply -R "$1" && return $unfound
}

find_it() {
    tests "$1" --test "$2" --no-run || { echo "does not build"; return 1; }
    tests "$1" --test "$2" -- --exact "$3" --nocapture
    case $? in
    0) echo "NOT FOUND by $2::$3 ($1)"; return 1 ;;
    124) echo "no answer from $2::$3 ($1)"; return 1 ;;
    *) echo "found by $2::$3 ($1): $(complaint)" ;;
    esac
}

complaint() {
    sed -n '/panicked at/{n;p;q;}' "$log" | cut -c1-60
}

sample=
if [ "${1:-}" = --sample ]; then
    sample=$2
    shift 2
fi
[ $# -gt 0 ] || set -- $(cd "$here/planted" && ls | sed 's/\.patch$//')
[ -z "$sample" ] || set -- $(printf '%s\n' "$@" | shuf -n "$sample")

make_copy
for scheduler in loom shuttle; do
    SHUTTLE_ITERATIONS=500 tests $scheduler ||
        { cat "$log"; echo "the models fail before anything is planted"; exit 1; }
done
missed=0
for name in "$@"; do
    printf '%s: ' "$name"
    plant "$here/planted/$name.patch" || missed=$((missed + 1))
done
echo "$# planted, $missed not found"
[ $missed -eq 0 ]
