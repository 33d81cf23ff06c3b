#!/usr/bin/env bash
# Runs tests, and for data races the stress program, under a sanitizer:
#
#   tests/sanitize.sh thread                  # data races, in the tests of promises
#   tests/sanitize.sh address                 # bad accesses and leaks, in the unit tests
#   tests/sanitize.sh thread-std              # data races, the standard library's included
#   tests/sanitize.sh thread --all            # in unit tests, promises, compat and stress
#   tests/sanitize.sh thread --seconds 600    # arguments for the stress program, at the end;
#                                             # it runs for 30 s by default
#
# The first two work with any toolchain, whose standard library comes without
# instrumentation. sanitize/std_order.c tells ThreadSanitizer which of its calls order
# memory; sanitize/thread.supp lists the rest, with a reason each. The third compiles the
# standard library, too, with a nightly toolchain, which rustup installs, and needs neither.
# ThreadSanitizer does not model fences: loom checks those of the ticker's sleep.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizer=${1:-thread}
shift || true
case $sanitizer in
thread | address | thread-std) ;;
*)
    echo "usage: $0 [thread|address|thread-std] [arguments of the stress program]" >&2
    exit 2
    ;;
esac

target=x86_64-unknown-linux-gnu
out=$PWD/target
[ -z "${CARGO_TARGET_DIR:-}" ] || out=$CARGO_TARGET_DIR
# One folder for all, because the procedural macros, which no sanitizer watches, are the same.
out=$out/sanitize
mkdir -p "$out"

# The one symbol of the standard library that ends in $1.
symbol() {
    nm -D --defined-only "$(rustc --print target-libdir)"/libstd-*.so |
        awk -v end="$1" '$3 ~ end "$" && !found++ { print $3 }'
}

# Compiles std_order.c for this toolchain, and has the linker use it.
tell_order() {
    local name found
    local -a defines=()
    for name in LOCK_CONTENDED:5futexNtB2_5Mutex14lock_contended \
        WAIT:5futexNtB2_7Condvar4wait WAIT_TIMEOUT:5futexNtB2_7Condvar12wait_timeout \
        THREAD_ENDED:9ScopeData29decrement_num_running_threads; do
        found=$(symbol "${name#*:}")
        [ -n "$found" ] || {
            echo "the toolchain's std has no ${name#*:}: see tests/sanitize/std_order.c" >&2
            exit 2
        }
        defines+=("-D${name%%:*}=\"$found\"")
        RUSTFLAGS+=" -Clink-arg=-Wl,--wrap=$found"
    done
    for name in __tsan_atomic64_fetch_sub __tsan_atomic_thread_fence; do
        RUSTFLAGS+=" -Clink-arg=-Wl,--wrap=$name"
    done
    cc -O1 -c "${defines[@]}" tests/sanitize/std_order.c -o "$out/std_order.o"
    RUSTFLAGS+=" -Clink-arg=$out/std_order.o"
}

run() {
    echo "=== $*"
    "$@"
}

# Compiles the standard library with the program.
instrument_std() {
    rustup component add rust-src --toolchain nightly 2>/dev/null ||
        rustup toolchain install nightly --profile minimal --component rust-src
    export RUSTUP_TOOLCHAIN=nightly
    RUSTFLAGS=-Zsanitizer=thread
    build+=(-Zbuild-std=std,panic_unwind,test,proc_macro)
}

case $sanitizer in
address) suites=(--lib) ;;
*) suites=(--test promises) ;;
esac
if [ "${1:-}" = --all ]; then
    suites=(--lib --test promises --test compat)
    shift
fi

build=(--target "$target" --target-dir "$out")
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer"
export CARGO_INCREMENTAL=0
export RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
export PROPTEST_CASES="${PROPTEST_CASES:-20}"
# A test requests more memory than there is, and expects a refusal.
export TSAN_OPTIONS="allocator_may_return_null=1:${TSAN_OPTIONS:-halt_on_error=1}"
export ASAN_OPTIONS="allocator_may_return_null=1:${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=1}"
export LSAN_OPTIONS="suppressions=$PWD/tests/sanitize/address.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
case $sanitizer in
thread)
    tell_order
    TSAN_OPTIONS+=:suppressions=$PWD/tests/sanitize/thread.supp
    ;;
thread-std) instrument_std ;;
esac
[ $# -gt 0 ] || set -- --seconds 30

# Not optimised: then no access that could be wrong is removed, and it compiles faster.
run cargo test "${build[@]}" "${suites[@]}"
[ "${suites[*]}" = --lib ] || run cargo run --release "${build[@]}" -p tickwheel-stress -- "$@"
echo "=== $sanitizer: nothing found"
