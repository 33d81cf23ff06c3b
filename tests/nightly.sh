#!/usr/bin/env bash
# What takes longer than .ci/run may: hours in all, on a machine that does nothing else.
#
#   tests/nightly.sh                  # every part
#   tests/nightly.sh loom stress      # some
#
# A part that fails doesn't keep the others from running. The last lines say what failed, and
# what this machine could not run.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/steps.sh

PARTS="oracle loom shuttle faults mutants stress sanitizers thread_std fuzz durable postgres dashboards
    platforms versus"

# Whether rustup can install something here.
rustup_can() {
    timeout 120 rustup --quiet "$@" >/dev/null 2>&1
}

oracle() {
    PROPTEST_CASES=20000 cargo test --release --lib -- oracle
    PROPTEST_CASES=20000 cargo test --release --test oracle
}

loom() {
    RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 \
        cargo test --release -p tickwheel-loom-tests --target-dir target/loom
}

shuttle() {
    RUSTFLAGS="--cfg shuttle" SHUTTLE_ITERATIONS=100000 \
        cargo test --release -p tickwheel-shuttle-tests --target-dir target/shuttle
}

# Those that need a PostgreSQL server, too.
faults() {
    tests/plant.py
    tests/plant.py postgres
}

# A hundredth of all mutants of the library, another one each day.
mutants() {
    cargo mutants --version >/dev/null 2>&1 || cargo install --locked cargo-mutants
    PROPTEST_CASES=60 PROPTEST_MAX_SHRINK_ITERS=0 CARGO_INCREMENTAL=1 \
        cargo mutants --shard "$((10#$(date +%j) % 100))/100" --output target/mutants
}

stress() {
    cargo run --release -p tickwheel-stress -- --seconds 1200
    cargo run --release -p tickwheel-stress -- --busy --seconds 1200
}

sanitizers() {
    tests/sanitize.sh thread --all --seconds 600
    tests/sanitize.sh address --all --seconds 600
}

thread_std() {
    rustup_can component add rust-src --toolchain nightly || {
        echo "rustup has no source of the standard library here"
        return 77
    }
    tests/sanitize.sh thread-std --all --seconds 600
}

fuzz() {
    cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
    RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tests/fuzz wheel -- -max_total_time=3600
}

# A thousand kills, and a server that is away for a minute.
durable() {
    KILLS=1000 AWAY=60 durable/tests/postgres.sh cargo test -p tickwheel-durable \
        --features metrics,postgres,tracing
}

postgres() {
    durable/tests/postgres-versions.sh
}

dashboards() {
    tests/dashboards.sh
}

# Other systems, by rustup; the oldest compiler and the oldest dependencies.
platforms() {
    rustup_can target add aarch64-unknown-linux-gnu || {
        echo "rustup has no other systems' libraries here"
        return 77
    }
    tests/platforms.sh
}

versus() {
    cargo run --release -p tickwheel-versus -- --full
}

# shellcheck disable=SC2034
keep_going=yes
for part in ${*:-$PARTS}; do
    step "$part" "$part"
done
summary
