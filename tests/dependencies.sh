#!/bin/sh
# Checks what a program that depends on tickwheel gets beside it. In the workspace:
#
#   - all packages come from crates.io;
#   - those of any feature, and of durable jobs, have a licence that permits any use;
#   - no two are versions of one package, apart from those of the models.
#
# In a crate made for this check:
#
#   - its lock file lists these packages and no others, and without `std` none;
#   - `--cfg loom` or `--cfg shuttle` without the feature is refused with a message;
#   - the feature `metrics` builds with the oldest version that Cargo.toml allows.
#
# Uses the network only for what cargo has not stored yet.
set -eu

licences="MIT Apache-2.0 BSD-2-Clause BSD-3-Clause ISC Zlib Unicode-3.0"
for_users="tracing,metrics,serde,stream,hyper,tower"
expected="crossbeam-channel crossbeam-utils libc tickwheel user"
root=$(cd "$(dirname "$0")/.." && pwd)
user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

only_from_crates_io() {
    ! grep '^source = ' "$root/Cargo.lock" | grep -v '"registry+https://github.com/rust-lang/crates.io-index"' ||
        fail "these sources are not crates.io"
}

# Every package with its licence: each part of the licence that an AND joins must offer,
# between its ORs, one of the permitted ones.
permitted_licences() {
    (cd "$root" && cargo tree -p tickwheel -p tickwheel-durable --all-features --target all -e normal,build --prefix none -f '{p}|{l}') |
        sed 's/ (\*)$//' | sort -u | awk -F'|' -v permitted="$licences" '
            BEGIN { n = split(permitted, names, " "); for (i = 1; i <= n; i++) ok[names[i]] = 1 }
            {
                gsub(/[()]/, "", $2); gsub(/ *\/ */, " OR ", $2)
                parts = split($2, part, / AND /)
                for (i = 1; i <= parts; i++) {
                    found = 0
                    alternatives = split(part[i], alternative, / OR /)
                    for (j = 1; j <= alternatives; j++) found += alternative[j] in ok
                    if (!found) { print $1 ": " $2; bad = 1 }
                }
                count++
            }
            END {
                if (!bad && count > 10) print count " packages have a permitted licence"
                else { print "these licences are not permitted"; exit 1 }
            }'
}

no_package_twice() {
    twice=$(cd "$root" && cargo tree -q -p tickwheel --features "$for_users" -e normal -d)
    [ -z "$twice" ] || fail "two versions of one package: $twice"
}

# The crate, with the features $1 of tickwheel and perhaps not the default one, $2.
make_user() {
    mkdir -p "$user/src"
    echo 'pub use tickwheel::Engine;' >"$user/src/lib.rs"
    cat >"$user/Cargo.toml" <<END
[package]
name = "user"
version = "0.0.0"
edition = "2024"

[dependencies]
tickwheel = { path = "$root", features = [$1], default-features = ${2:-true} }

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

nothing_without_std() {
    make_user "" false
    bare=$(sed -n 's/^name = "\(.*\)"/\1/p' "$user/Cargo.lock" | tr '\n' ' ')
    [ "$bare" = "tickwheel user " ] || fail "without std the lock file lists: $bare"
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

only_from_crates_io
permitted_licences
no_package_twice
lock_file
nothing_without_std
refused_without_feature loom
refused_without_feature shuttle
oldest_metrics
echo "a user's lock file: $listed"
