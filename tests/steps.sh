# shellcheck shell=bash
# Sourced by .ci/run and tests/nightly.sh: runs steps one after the other, and says at the end
# what became of them.

export CARGO_TERM_COLOR=never RUST_BACKTRACE="${RUST_BACKTRACE:-0}"
# Nobody needs them here, and they take the compiler time.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

passed=0 failed=() not_run=() keep_going=

# Prints the seconds of processors that the ended commands of the shell $1 have used, which are
# the same on a busy machine.
processor_time() {
    awk -v per_second="$(getconf CLK_TCK)" '{ printf "%d", ($16 + $17) / per_second }' "/proc/$1/stat"
}

# Runs the command $2… as the step $1. A step that can't run on this machine says why and
# returns 77: it counts as not run, and not as failed. After one that failed, the script ends,
# unless `keep_going` is set. No `||` may follow instead: bash would then ignore `set -e` in the
# step, and only its last command could fail it.
step() {
    local name=$1 begun=$SECONDS shell status
    shift
    echo "=== $name"
    # In a subshell, which ends where a command fails.
    set +e
    (
        set -e
        shell=$BASHPID
        "$@"
        echo "=== $name: $((SECONDS - begun)) s, $(processor_time "$shell") s of processors"
    )
    status=$?
    set -e
    case $status in
    0) passed=$((passed + 1)) ;;
    77) not_run+=("$name") && echo "=== $name: could not run here" ;;
    *) failed+=("$name") && echo "=== $name: failed after $((SECONDS - begun)) s" && [ -n "$keep_going" ] ;;
    esac
}

# Begins to run the steps in the function $1 beside those that follow, with a lower priority: they
# are for the time in which those wait. `join` waits for them, and prints what they printed. They
# must be able to run on any machine.
aside() {
    mkdir -p target
    # As a group, which can be ended as one.
    set -m
    (
        renice -n 5 -p "$BASHPID"
        "$1"
    ) >target/aside.log 2>&1 &
    set +m
    aside=$!
    trap 'kill -- -$aside 2>/dev/null || true' EXIT
}

join() {
    local status=0
    wait "$aside" || status=$?
    trap - EXIT
    cat target/aside.log
    passed=$((passed + $(grep -c ' s of processors$' target/aside.log)))
    return $status
}

summary() {
    echo "=== $SECONDS s: $passed steps passed, ${#failed[@]} failed, ${#not_run[@]} could not run"
    [ ${#not_run[@]} -eq 0 ] || printf 'could not run: %s\n' "${not_run[@]}"
    [ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
    [ ${#failed[@]} -eq 0 ]
}

# Installs Debian's packages.
packages() {
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
}
