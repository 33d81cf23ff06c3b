#!/bin/sh
# Checks the wheels without the feature `std`:
#
#   - runs a program on `core` and `alloc` alone (tests/bare);
#   - builds the library for targets without an operating system. Uses the `core` of
#     rustup and installs it, or passes over the target if rustup cannot. Then
#     `tests/platforms.sh bare` builds it with a `core` of its own.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

# Without any compare-and-swap; with one of 32 bits; a kernel; a virtual machine.
targets="thumbv6m-none-eabi thumbv7em-none-eabi x86_64-unknown-none wasm32-unknown-unknown"

has_core() {
    [ -n "$(find "$(rustc --print target-libdir --target "$1")" -name 'libcore-*' 2>/dev/null)" ]
}

cargo run --quiet --manifest-path tests/bare/Cargo.toml --target-dir target/bare

for target in $targets; do
    has_core "$target" || timeout 60 rustup --quiet target add "$target" >/dev/null 2>&1 || true
    if has_core "$target"; then
        cargo build --quiet -p tickwheel --lib --no-default-features --target "$target" --target-dir target/bare
        echo "$target: builds"
    else
        echo "$target: not checked, as rustup does not have it here"
    fi
done
