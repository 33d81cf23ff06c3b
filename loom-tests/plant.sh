#!/bin/sh
# Checks that the models pass, and then plants each bug of planted/ in a copy of
# the crate and checks that the model which its patch names finds it.
#
#   loom-tests/plant.sh [name...]    e.g. loom-tests/plant.sh no-second-scan
#
# The copy and its build are thrown away, or kept in PLANT_DIR if that is set.
set -u

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
work=${PLANT_DIR:-$(mktemp -d)}
[ -n "${PLANT_DIR:-}" ] || trap 'rm -rf "$work"' EXIT
copy=$work/crate
log=$work/log
# The copy is no repository, even where it lies inside of one: `git apply`
# would skip its files.
export CARGO_TARGET_DIR="$work/target" RUSTFLAGS="--cfg loom" GIT_CEILING_DIRECTORIES="$work"

make_copy() {
    rm -rf "$copy"
    mkdir -p "$copy"
    for part in Cargo.toml Cargo.lock README.md src loom-tests tests benches examples; do
        [ ! -e "$root/$part" ] || cp -R "$root/$part" "$copy"
    done
}

models() {
    (cd "$copy" && timeout 300 cargo test -q -p tickwheel-loom-tests --release "$@") >"$log" 2>&1
}

# Says what became of the bug in patch $1; fails unless its model found it.
plant() {
    model=$(sed -n 's/^model: //p' "$1")
    git -C "$copy" apply "$1" || return 1
    find_it "${model%%::*}" "${model#*::}"
    found=$?
    # Takes it out again; the new time of the file makes cargo build it anew.
    git -C "$copy" apply -R "$1" && return $found
}

find_it() {
    models --test "$1" --no-run || { echo "does not build"; return 1; }
    models --test "$1" -- --exact "$2" --nocapture
    case $? in
    0) echo "NOT FOUND by $1::$2"; return 1 ;;
    124) echo "no answer from $1::$2"; return 1 ;;
    *) echo "found by $1::$2: $(complaint)" ;;
    esac
}

complaint() {
    sed -n '/panicked at/{n;p;q;}' "$log" | cut -c1-60
}

make_copy
models || { cat "$log"; echo "the models fail before anything is planted"; exit 1; }
[ $# -gt 0 ] || set -- $(cd "$here/planted" && ls | sed 's/\.patch$//')
missed=0
for name in "$@"; do
    printf '%s: ' "$name"
    plant "$here/planted/$name.patch" || missed=$((missed + 1))
done
echo "$# planted, $missed not found"
[ $missed -eq 0 ]
