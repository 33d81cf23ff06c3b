#!/bin/sh
# Checks what a program that depends on tickwheel gets beside it, in a crate made
# for this check:
#
#   - its lock file lists these packages and no others;
#   - `--cfg loom` or `--cfg shuttle` without the feature is refused with a message;
#   - the feature `metrics` builds with the oldest version that Cargo.toml allows.
#
# Uses the network only for what cargo has not stored yet.
set -eu

expected="crossbeam-channel crossbeam-utils libc slab tickwheel user"
root=$(cd "$(dirname "$0")/.." && pwd)
user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# The crate, with the features $1 of tickwheel.
make_user() {
    mkdir -p "$user/src"
    echo 'pub use tickwheel::Engine;' >"$user/src/lib.rs"
    cat >"$user/Cargo.toml" <<END
[package]
name = "user"
version = "0.0.0"
edition = "2024"

[dependencies]
tickwheel = { path = "$root", features = [$1] }

[workspace]
END
    rm -f "$user/Cargo.lock"
    in_user cargo generate-lockfile --offline 2>/dev/null || in_user cargo generate-lockfile
}

in_user() {
    (cd "$user" && CARGO_TARGET_DIR="$user/target" "$@")
}

lock_file() {
    make_user ""
    listed=$(sed -n 's/^name = "\(.*\)"/\1/p' "$user/Cargo.lock" | tr '\n' ' ')
    [ "$listed" = "$expected " ] || fail "expected in the lock file: $expected
listed: $listed"
}

# Whether a build with `--cfg $1` says first what to add.
refused_without_feature() {
    make_user ""
    ! RUSTFLAGS="--cfg $1" in_user cargo check --quiet 2>"$user/errors" ||
        fail "--cfg $1 was built without its feature"
    grep -m1 '^error' "$user/errors" | grep -q "features = \[\"$1\"\]" ||
        fail "--cfg $1 was refused without a hint: $(grep -m1 '^error' "$user/errors")"
}

oldest_metrics() {
    make_user '"metrics"'
    oldest=$(sed -n 's/^metrics = { version = "\([^"]*\)".*/\1/p' "$root/Cargo.toml")
    in_user cargo update --quiet -p metrics --precise "$oldest"
    in_user cargo check --quiet || fail "does not build with metrics $oldest"
}

lock_file
refused_without_feature loom
refused_without_feature shuttle
oldest_metrics
echo "a user's lock file: $listed"
