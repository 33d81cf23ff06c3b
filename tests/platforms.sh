#!/usr/bin/env bash
# Checks the library on other systems, and runs its tests where a machine or an emulator
# for them is at hand:
#
#   tests/platforms.sh                   # everything, in this order; an hour
#   tests/platforms.sh check windows     # some parts
#   TARGETS=x86_64-pc-windows-gnu tests/platforms.sh check
#
#   check     compiles for the targets of docs/PLATFORMS.md
#   bare      compiles the wheel without std for targets without an operating system
#   msrv      runs the tests with the oldest compiler that Cargo.toml allows
#   minimal   compiles and runs them with the oldest dependencies that Cargo.toml allows
#   i686      runs the tests on 32 bits, natively
#   windows   runs them as Windows programs, under wine
#   aarch64   runs them as Arm programs, under qemu
#
# Needs Debian 12 on x86-64, and rustup, which installs compilers and libraries. Installs
# emulators and cross compilers with apt, which needs root. Builds under target/platforms,
# or CARGO_TARGET_DIR/platforms. A result is one line of the file `results` there.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${CARGO_TARGET_DIR:-$PWD/target}/platforms
unset CARGO_TARGET_DIR
export CARGO_INCREMENTAL=0
export CARGO_PROFILE_DEV_DEBUG=0
export CARGO_TERM_COLOR=never
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
export DEBIAN_FRONTEND=noninteractive

results=$out/results
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
mkdir -p "$out"

# The targets of `check`; another list may come from outside.
checked=${TARGETS:-x86_64-pc-windows-gnu aarch64-apple-darwin x86_64-unknown-freebsd
    aarch64-linux-android i686-unknown-linux-gnu aarch64-unknown-linux-gnu
    x86_64-unknown-linux-musl wasm32-unknown-unknown}

# Installs Debian's packages, unless they are.
packages() {
    dpkg -s "$@" >/dev/null 2>&1 && return
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "$@" >"$out/apt.log"
}

# Chooses the target $1, and installs its standard library.
target() {
    rustup --quiet target add "$1"
    build=(-p tickwheel --target "$1" --target-dir "$out/$1")
}

# Runs a command for the part $1 under the name $2, and notes what became of it. A part
# goes on after a failure; the script fails at its end.
note() {
    local part=$1 name=$2 log line begun=$SECONDS
    shift 2
    log=$out/$part-$(echo "$name" | tr -c 'a-zA-Z0-9_\n' '-').log
    if "$@" >"$log" 2>&1; then
        line=passed
    else
        line=FAILED
        failed=1
    fi
    line="$line$(passed "$log") in $((SECONDS - begun)) s"
    echo "$(date +%F) $part: $name: $line" | tee -a "$results"
}

# The sum of what the test programs of a log counted.
passed() {
    awk '/^test result/ { passed += $4; failed += $6; ignored += $8 }
        END { if (passed + failed) printf ": %d tests, %d failed, %d ignored", passed + failed, failed, ignored }' "$1"
}

# The tests that make sense on another system. The others count descriptors, allocations
# or instructions of Linux, or are models.
run_tests() {
    local part=$1 set
    shift
    for set in --lib "--test promises" "--test oracle" "--test compat" "--test liveness"; do
        # shellcheck disable=SC2086
        note "$part" "${set##*-}" cargo test "$@" --no-fail-fast $set
    done
    note "$part" await cargo test "${@/%tickwheel/tickwheel-await-tests}" --no-fail-fast
}

# Deletes what was built for the target or part $1.
clean() {
    rm -rf "${out:?}/$1"
}

check() {
    local target
    for target in $checked; do
        target "$target"
        note check "$target, all features" cargo check "${build[@]}" --all-features
        clean "$target"
    done
}

bare() {
    local target
    for target in thumbv6m-none-eabi thumbv7em-none-eabi x86_64-unknown-none; do
        target "$target"
        note bare "$target" cargo build "${build[@]}" --lib --no-default-features
        clean "$target"
    done
}

msrv() {
    rustup --quiet toolchain install "$oldest" --profile minimal >"$out/rustup.log" 2>&1
    export RUSTUP_TOOLCHAIN=$oldest
    build=(-p tickwheel --target-dir "$out/msrv")
    note msrv "check, all features" cargo check "${build[@]}" --all-features
    run_tests msrv "${build[@]}"
    clean msrv
}

# The oldest versions of the direct dependencies that Cargo.toml allows, then of all. The
# tests keep the direct ones, except where their own dependencies need newer ones.
minimal() {
    local copy=$out/minimal-source
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z | xargs -0 cp --parents -t "$copy"
    export RUSTC_BOOTSTRAP=1
    cd "$copy"
    rm Cargo.lock
    # The package alone, first without what only its tests need.
    perl -0pi -e 's/^(default-)?members = \[.*?\]\n//gms' Cargo.toml
    cp Cargo.toml with-tests.toml
    perl -0pi -e 's/^\[dev-dependencies\].*?(?=^\[\[test\]\])//gms' Cargo.toml
    note minimal "all dependencies" cargo update -Zminimal-versions
    note minimal "all dependencies, check" cargo check --lib --all-features --target-dir "$out/minimal"
    note minimal "direct dependencies" cargo update -Zdirect-minimal-versions
    note minimal "direct dependencies, check" cargo check --lib --all-features --target-dir "$out/minimal"
    cp with-tests.toml Cargo.toml
    for set in --lib "--test promises"; do
        # shellcheck disable=SC2086
        note minimal "${set##*-}" cargo test --target-dir "$out/minimal" --no-fail-fast $set
    done
    clean minimal
    clean minimal-source
}

i686() {
    # Unlike gcc-multilib, these do not conflict with other cross compilers.
    packages gcc-12-multilib libc6-dev-i386
    target i686-unknown-linux-gnu
    run_tests i686 "${build[@]}"
    clean i686-unknown-linux-gnu
}

windows() {
    packages gcc-mingw-w64-x86-64 wine64
    target x86_64-pc-windows-gnu
    export WINEPREFIX=$out/wine WINEDEBUG=-all
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=/usr/lib/wine/wine64
    randomness_for_wine
    run_tests windows "${build[@]}"
    clean x86_64-pc-windows-gnu
    clean wine
}

# Wine 8 lacks a DLL that Rust's standard library takes random numbers from. A program
# finds it beside itself.
randomness_for_wine() {
    local programs=$out/x86_64-pc-windows-gnu/x86_64-pc-windows-gnu/debug/deps
    mkdir -p "$programs"
    cat >"$out/bcryptprimitives.c" <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return SystemFunction036(data, (ULONG)length);
}
END
    x86_64-w64-mingw32-gcc -shared -o "$programs/bcryptprimitives.dll" \
        "$out/bcryptprimitives.c" -ladvapi32
}

# Property tests take a tenth of their usual cases: an emulator is slow.
aarch64() {
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    target aarch64-unknown-linux-gnu
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    export PROPTEST_CASES="${PROPTEST_CASES:-25}"
    run_tests aarch64 "${build[@]}"
    clean aarch64-unknown-linux-gnu
}

failed=0
[ $# -gt 0 ] || set -- check bare msrv minimal i686 windows aarch64
for part in "$@"; do
    case $part in
    check | bare | msrv | minimal | i686 | windows | aarch64) ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done
for part in "$@"; do
    # In a process of its own, because a part sets variables. It ends at the first command
    # that fails, which it would not do as part of a condition.
    set +e
    (
        set -e
        "$part"
        exit "$failed"
    )
    [ $? -eq 0 ] || failed=1
    set -e
done
exit "$failed"
