#!/usr/bin/env bash
# Checks the library on other systems, and runs its tests where a machine or an emulator
# for them is at hand:
#
#   tests/platforms.sh                   # everything, in this order; two hours
#   tests/platforms.sh check windows     # some parts
#   TARGETS=x86_64-pc-windows-gnu tests/platforms.sh check
#
#   check     compiles for the targets of docs/PLATFORMS.md
#   bare      compiles the wheel without std for targets without an operating system
#   i686      runs the tests on 32 bits, natively
#   windows   runs them as Windows programs, under wine
#   aarch64   runs them as Arm programs, under qemu
#   msrv      runs them with the oldest compiler that Cargo.toml allows
#   minimal   compiles and runs them with the oldest dependencies that Cargo.toml allows
#   tsan      runs them under ThreadSanitizer, with an instrumented standard library
#
# Needs Debian 12 on x86-64. Installs emulators and cross compilers with apt, which needs
# root; takes Rust compilers and the sources of the standard library from Debian, too, and
# unpacks them under target/platforms. A result is one line of target/platforms/results.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_INCREMENTAL=0
export CARGO_TERM_COLOR=never
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
export DEBIAN_FRONTEND=noninteractive

out=$PWD/target/platforms
results=$out/results
newest=1.96
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

# The newest version of the package $1 that begins with $2.
version_of() {
    apt-cache madison "$1" | awk -v begin="$2" 'index($3, begin) == 1 && !found++ { print $3 }'
}

# Unpacks Debian's Rust compiler, version $1, with the sources of the standard library,
# and makes cargo use it. It conflicts with rustup as a package.
compiler() {
    local root=$out/rust-$1
    [ -x "$root/rustc" ] || unpack_compiler "$1" "$root"
    export RUSTC=$root/rustc
    export RUSTC_BOOTSTRAP=1
}

unpack_compiler() {
    local full package sources
    full=$(version_of rustc-web "$1.")
    if [ -z "$full" ]; then
        apt-get update -qq
        full=$(version_of rustc-web "$1.")
    fi
    mkdir -p "$2/debs"
    for package in rustc-web libstd-rust-web-dev rust-web-src "libstd-rust-web-$1"; do
        (cd "$2/debs" && apt-get download -qq "$package=$full")
    done
    package=$(dpkg -I "$2/debs/libstd-rust-web-$1"_*.deb | grep -o 'libllvm[0-9]*' | head -1)
    (cd "$2/debs" && apt-get download -qq "$package")
    for package in "$2"/debs/*.deb; do
        dpkg -x "$package" "$2"
    done
    rm -r "$2/debs"
    sources=$(cd "$2/usr/src" && echo rustc-*)
    mkdir -p "$2/usr/lib/rustlib/src"
    ln -sfn "../../../src/$sources" "$2/usr/lib/rustlib/src/rust"
    rm -rf "$2/usr/src/$sources/compiler" "$2/usr/src/$sources/src"
    cat >"$2/rustc" <<END
#!/bin/sh
LD_LIBRARY_PATH="$2/usr/lib/x86_64-linux-gnu:$2/usr/lib" exec "$2/usr/bin/rustc" "\$@"
END
    chmod +x "$2/rustc"
}

# Runs a command for the part $1 under the name $2, and notes what became of it. A part
# goes on after a failure; the script fails at its end.
note() {
    local part=$1 name=$2 log line begun=$SECONDS
    shift 2
    log=$out/$part-$(echo "$name" | tr -c 'a-zA-Z0-9_\n' '-').log
    if nice "$@" >"$log" 2>&1; then
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

# The options that build the standard library for the target $1, with $2.
built_std() {
    build=(-Zbuild-std="$2" --target "$1" --target-dir "$out/$1")
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
    note "$part" await cargo test "$@" --no-fail-fast -p tickwheel-await-tests
}

# Deletes what was built for the target or part $1: a gigabyte and more.
clean() {
    rm -rf "${out:?}/$1"
}

check() {
    local target
    compiler $newest
    for target in $checked; do
        built_std "$target" std,panic_abort
        note check "$target, all features" cargo check "${build[@]}" --all-features
        clean "$target"
    done
}

bare() {
    local target
    compiler $newest
    for target in thumbv6m-none-eabi thumbv7em-none-eabi x86_64-unknown-none; do
        built_std "$target" core,alloc
        note bare "$target" cargo build "${build[@]}" -p tickwheel --lib --no-default-features
        clean "$target"
    done
}

std_with_tests=std,panic_unwind,proc_macro,test

i686() {
    compiler $newest
    # Unlike gcc-multilib, these do not conflict with other cross compilers.
    packages gcc-12-multilib libc6-dev-i386
    built_std i686-unknown-linux-gnu $std_with_tests
    run_tests i686 "${build[@]}"
    clean i686-unknown-linux-gnu
}

windows() {
    compiler $newest
    packages gcc-mingw-w64-x86-64 wine64
    built_std x86_64-pc-windows-gnu $std_with_tests
    export WINEPREFIX=$out/wine WINEDEBUG=-all
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=/usr/lib/wine/wine64
    randomness_for_wine
    run_tests windows "${build[@]}"
    clean x86_64-pc-windows-gnu
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

aarch64() {
    compiler $newest
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    built_std aarch64-unknown-linux-gnu $std_with_tests
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    run_tests aarch64 "${build[@]}"
    clean aarch64-unknown-linux-gnu
}

msrv() {
    compiler "$oldest"
    note msrv "check, all features" cargo check --all-features --target-dir "$out/msrv"
    run_tests msrv --target-dir "$out/msrv"
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
}

# Every part of the program is instrumented, so neither suppressions nor annotations of
# the standard library are needed.
tsan() {
    local target=x86_64-unknown-linux-gnu
    compiler $newest
    build=(-Zbuild-std=$std_with_tests --target $target --target-dir "$out/tsan" --release)
    export RUSTFLAGS="-Zsanitizer=thread"
    export TSAN_OPTIONS="allocator_may_return_null=1:halt_on_error=1"
    export PROPTEST_CASES="${PROPTEST_CASES:-20}"
    run_tests tsan "${build[@]}"
    note tsan stress cargo run "${build[@]}" -p tickwheel-stress -- --seconds 30
    clean tsan
}

failed=0
[ $# -gt 0 ] || set -- check bare i686 windows aarch64 msrv minimal tsan
for part in "$@"; do
    case $part in
    check | bare | i686 | windows | aarch64 | msrv | minimal | tsan) ;;
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
