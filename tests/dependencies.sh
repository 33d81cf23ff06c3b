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

root=$(cd "$(dirname "$0")/.." && pwd)
user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT
cd "$root"

fail() {
    echo "$*" >&2
    exit 1
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

# The packages in the lock file of a user with default features, or without, $1, must be $2.
lock_file_lists() {
    make_user "" "$1"
    listed=$(sed -n 's/^name = "\(.*\)"/\1/p' "$user/Cargo.lock" | tr '\n' ' ')
    [ "$listed" = "$2 " ] || fail "expected in the lock file: $2; listed: $listed"
}

others=$(grep '^source = ' Cargo.lock | grep -v '"registry+https://github.com/rust-lang/crates.io-index"' || true)
[ -z "$others" ] || fail "these sources are not crates.io: $others"

# A licence that offers MIT or Apache-2.0, or is that of a few more; Unicode-3.0 beside it.
licences=$(cargo tree -p tickwheel -p tickwheel-durable --all-features --target all -e normal,build \
    --prefix none -f '{p}|{l}' | sed 's/ (\*)$//' | sort -u)
permitted='\|(.* |.*/|\()?(MIT|Apache-2\.0|BSD-[23]-Clause|ISC|Zlib)( OR .*|/.*| / .*|\) AND Unicode-3\.0)?$'
refused=$(echo "$licences" | grep . | grep -vE "$permitted" || true)
[ -z "$refused" ] || fail "these licences are not permitted: $refused"
! echo "$licences" | grep ' AND ' | grep -v 'AND Unicode-3\.0' || fail "these licences join others"

twice=$(cargo tree -q -p tickwheel --features tracing,metrics,serde,stream,hyper,tower -e normal -d)
[ -z "$twice" ] || fail "two versions of one package: $twice"

lock_file_lists false "tickwheel user"
lock_file_lists true "crossbeam-channel crossbeam-utils libc slab tickwheel user"
for model in loom shuttle; do
    ! RUSTFLAGS="--cfg $model" in_user cargo check --quiet 2>"$user/errors" ||
        fail "--cfg $model was built without its feature"
    grep -m1 '^error' "$user/errors" | grep -q "features = \[\"$model\"\]" ||
        fail "--cfg $model was refused without a hint: $(grep -m1 '^error' "$user/errors")"
done

make_user '"metrics"'
oldest=$(sed -n 's/^metrics = { version = "\([^"]*\)".*/\1/p' Cargo.toml)
in_user cargo update --quiet -p metrics --precise "$oldest"
in_user cargo check --quiet || fail "does not build with metrics $oldest"
echo "$(echo "$licences" | grep -c .) packages have a permitted licence; a user gets: $listed"
