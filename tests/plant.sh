#!/bin/sh
# Checks that the tests pass, then plants the bugs of tests/planted in a copy of
# the crate, one after the other, and checks that each test that a bug's patch
# names finds it: a model of loom (`model: file::test`), a test under shuttle
# (`shuttle: file::test`), a test of awaited timers (`await: file::test`), a test of
# durable jobs (`durable: --lib module`, `durable: --test file name`) or of their tool
# (`tool: file::test`, `tool: --bins module`), of the reminder service
# (`reminders: file::test`) or beside a PostgreSQL server (`postgres: --test file name`), a
# test of the public interface (`api: file::test`), or a test
# of the crate itself (`test: --lib module`, `test: --test file name`).
#
#   tests/plant.sh [--sample n] [folder or name...]
#   tests/plant.sh --table | --check | --build
#
#   tests/plant.sh                    all of them
#   tests/plant.sh wheel              those in tests/planted/wheel
#   tests/plant.sh no-second-scan     one
#   tests/plant.sh --table            writes tests/planted/TABLE.md
#   tests/plant.sh --check            checks that each patch applies and names
#                                     tests that exist, and that the table is
#                                     current; builds nothing
#   tests/plant.sh --build            checks that the library builds with each of
#                                     them; plants many at a time
#
# A sample is drawn at random. The copy and its builds are deleted at the end, or
# kept in PLANT_DIR if that is set.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
planted=$root/tests/planted
work=${PLANT_DIR:-$(mktemp -d)}
[ -n "${PLANT_DIR:-}" ] || trap 'rm -rf "$work"' EXIT
copy=$work/crate
sound=$work/sound
log=$work/log
# With incremental builds a planted line takes a second.
export CARGO_INCREMENTAL=1 RUST_BACKTRACE=0
# Finding a bug is enough: the smallest script that shows it is not needed.
export PROPTEST_MAX_SHRINK_ITERS=0
# The copy is no repository. Inside of one, `git apply` would skip its files.
export GIT_CEILING_DIRECTORIES="$work"

make_copy() {
    rm -rf "$copy" "$sound"
    mkdir -p "$copy" "$sound"
    for part in Cargo.toml Cargo.lock README.md CONTRIBUTING.md docs src loom-tests durable tests benches examples; do
        [ ! -e "$root/$part" ] || cp -R "$root/$part" "$copy"
    done
    cp -R "$root/src" "$root/docs" "$root/loom-tests" "$root/durable" "$root/examples" "$sound"
}

# Builds tests in the way $1, with a limit that no busy machine needs.
build() {
    limit=7200
    tests "$@" --no-run
}

# Runs them. A bug whose test never ends says so by a limit of its own, in
# seconds.
run() {
    limit=${endless:-900}
    tests "$@"
}

# Runs cargo for the models (loom or shuttle), for awaited timers, or plainly.
tests() {
    way=$1
    shift
    flags=${RUSTFLAGS:-} beside=
    case $way in
    # Assertions as in debug, and ten times as fast: for the crate's own tests and the
    # oracle, which search. The others take longer to compile than to run.
    plain) set -- -p tickwheel --config profile.dev.opt-level=1 "$@" ;;
    debug) set -- -p tickwheel "$@" ;;
    await) set -- -p tickwheel-await-tests --config profile.dev.opt-level=1 "$@" ;;
    api) set -- -p tickwheel-api "$@" ;;
    tool) set -- -p tickwheel-jobs "$@" ;;
    reminders) set -- -p tickwheel-reminders "$@" ;;
    durable) set -- -p tickwheel-durable --features metrics,tracing --config profile.dev.opt-level=1 "$@" ;;
    postgres)
        set -- -p tickwheel-durable --features postgres "$@"
        case " $* " in *" --no-run "*) ;; *) beside=durable/tests/postgres.sh ;; esac
        ;;
    *)
        flags="$flags --cfg $way"
        set -- -p "tickwheel-$way-tests" --release "$@"
        ;;
    esac
    (cd "$copy" && RUSTFLAGS=$flags timeout $limit $beside cargo test -q --target-dir "$work/$way" "$@") >"$log" 2>&1
}

# The finders of patch $1, one a line: way|target|test.
finders() {
    sed -n 's/^model: \([^:]*\)::\(.*\)/loom|--test \1|--exact \2/p
        s/^shuttle: \([^:]*\)::\(.*\)/shuttle|--test \1|--exact \2/p
        s/^await: \([^:]*\)::\(.*\)/await|--test \1|--exact \2/p
        s/^api: \([^:]*\)::\(.*\)/api|--test \1|--exact \2/p
        s/^durable: \(.*\) \(.*\)/durable|\1|\2/p
        s/^postgres: \(.*\) \(.*\)/postgres|\1|\2/p
        s/^tool: \([^ ]*\)::\([^ ]*\)$/tool|--test \1|--exact \2/p
        s/^tool: \(-.*\) \(.*\)/tool|\1|\2/p
        s/^reminders: \(.*\)::\(.*\)/reminders|--test \1|--exact \2/p
        s/^test: \(--test oracle\) \(.*\)/plain|\1|\2/p
        s/^test: \(--test .*\) \(.*\)/debug|\1|\2/p
        s/^test: \(.*\) \(.*\)/plain|\1|\2/p' "$1"
}

# Plants the bug in patch $1 and prints who finds it; fails unless all named tests
# do. Afterwards the files are restored with a new time, so that cargo builds them
# again. (`git apply -R` may take another place for the bug's.)
plant() {
    git -C "$copy" apply --recount -C1 "$1" || return 1
    unfound=0
    endless=$(sed -n 's/^limit: //p' "$1")
    while IFS='|' read -r way target test <&3; do
        find_it "$way" "$target" "$test" || unfound=1
    done 3<<EOF
$(finders "$1")
EOF
    sed -n 's|^--- a/||p' "$1" | while read -r file; do
        cp "$sound/$file" "$copy/$file"
    done
    return $unfound
}

# Target and test are words for cargo, each perhaps more than one. A test whose
# threads meet as they like may miss a bug, so it gets several tries.
find_it() {
    finder="${2#--test } ${3#--exact } ($1)"
    build "$1" $2 || { echo "does not build: $(grep -m1 "^error" "$log")"; return 1; }
    for try in 1 2 3 4 5; do
        run_limited "$@"
        found=$?
        [ $found -eq 0 ] || break
        echo "missed by $finder, try $try"
    done
    case $found in
    0) echo "NOT FOUND by $finder"; return 1 ;;
    124) [ -n "$endless" ] && echo "found by $finder: never ends" || { echo "no answer from $finder"; return 1; } ;;
    *) echo "found by $finder: $(complaint)" ;;
    esac
}

run_limited() (
    # Seconds of processor time: many times what a sound wheel needs. Models count
    # their steps themselves.
    case $1 in
    plain | debug | await | durable) ulimit -S -t 12 ;;
    esac
    run "$1" $2 -- $3 --nocapture
)

complaint() {
    ! grep -q SIGXCPU "$log" || echo "never ends"
    sed -n '/panicked at/{n;p;q;}' "$log" | cut -c1-60
}

# A table of the tests, each with the bugs that it must find.
table() {
    echo "<!-- Written by tests/plant.sh --table. -->"
    echo "# Planted bugs, by the test that must find them"
    (cd "$planted" && awk '
        FNR == 1 { delete finders; count = 0; fault = fails = "" }
        /^model: / { finders[++count] = "threads loom `" $2 "`" }
        /^shuttle: / { finders[++count] = "threads shuttle `" $2 "`" }
        /^await: / { finders[++count] = "await `" $2 "`" }
        /^api: / { finders[++count] = "api `" $2 "`" }
        /^tool: / { finders[++count] = "tool `" $NF "`" }
        /^reminders: / { finders[++count] = "reminders `" $2 "`" }
        /^durable: / { finders[++count] = "durable `" $NF "`" }
        /^postgres: / { finders[++count] = "postgres `" $NF "`" }
        /^test: --lib / {
            folder = $3 ~ /^wheel/ ? "wheel" : "units"
            finders[++count] = folder " `" $3 "`"
        }
        /^test: --test / { finders[++count] = $3 " `" $NF "`" }
        /^fault: / { fault = substr($0, 8) }
        /^fails: / { fails = " (" substr($0, 8) ")" }
        /^--- / {
            for (i = 1; i <= count; i++)
                if (!seen[FILENAME, i]++)
                    print finders[i] "|[" fault "](" FILENAME ")" fails
        }' */*.patch) | LC_ALL=C sort | awk -F'|' '
        {
            folder = test = $1
            sub(/ .*/, "", folder)
            sub(/^[^ ]* /, "", test)
        }
        folder != last_folder { print "\n## " folder "\n\n| test | bugs |\n|---|---|" }
        test != last_test || folder != last_folder { printf "| %s | %s |\n", test, $2 }
        test == last_test && folder == last_folder { printf "| | %s |\n", $2 }
        { last_folder = folder; last_test = test }'
}

# Whether the headers of each patch are whole, and lead to tests that exist.
check() {
    (
        cd "$root" || exit
        table | cmp -s - "$planted/TABLE.md" || echo "the table is old: tests/plant.sh --table"
        functions=$(grep -rhoE '\b(fn|mod) \w+' src tests loom-tests durable examples --include='*.rs')
        for patch in "$planted"/*/*.patch; do
            name=$(basename "$patch")
            git apply --check --recount -C1 "$patch" 2>/dev/null || echo "$name: does not apply"
            grep -q '^fault: ' "$patch" || echo "$name: no fault"
            [ -n "$(finders "$patch")" ] || echo "$name: no test"
            finders "$patch" | sed 's/.*[ |:]//' | while read -r test; do
                case $functions in
                *"fn $test"* | *"mod $test"*) ;;
                *) echo "$name: no test $test" ;;
                esac
            done
        done
    ) | { ! grep .; }
}

# Whether the library builds with all bugs planted: as many together as apply, then
# the rest, until none is left.
build_all() {
    make_copy
    left=$(patches .)
    while [ -n "$left" ]; do
        rm -rf "$copy/src" "$copy/durable"
        cp -R "$sound/src" "$sound/durable" "$copy"
        together=$left left=
        for patch in $together; do
            git -C "$copy" apply --recount -C1 "$patch" 2>/dev/null || left="$left $patch"
        done
        [ "$left" != "$together" ] || { echo "these do not apply: $left"; return 1; }
        (cd "$copy" && cargo check -q -p tickwheel -p tickwheel-durable --features tickwheel-durable/postgres --lib --message-format short --target-dir "$work/check") 2>&1 |
            { ! grep error; } || return 1
    done
}

# The patches that an argument stands for: a folder's, or one by its name.
patches() {
    if [ -d "$planted/$1" ]; then
        find "$planted/$1" -name '*.patch' | sort
    else
        ls "$planted"/*/"$1.patch"
    fi
}

# Whether the tests of one way pass while nothing is planted.
sound() {
    case $1 in
    plain | durable | postgres) build "$1" --lib && run "$1" --lib ;;
    debug) build "$1" --test promises && run "$1" --test promises ;;
    *) build "$1" && SHUTTLE_ITERATIONS=500 run "$1" ;;
    esac
}

sample=
endless=
case ${1:-} in
--table) table >"$planted/TABLE.md"; exit ;;
--check) check; exit ;;
--build) build_all; exit ;;
--sample)
    sample=$2
    shift 2
    ;;
esac
[ $# -gt 0 ] || set -- .
chosen=$(for each in "$@"; do patches "$each" || exit 1; done) || exit 1
[ -z "$sample" ] || chosen=$(echo "$chosen" | shuf -n "$sample")

make_copy
for way in $(for patch in $chosen; do finders "$patch"; done | cut -d'|' -f1 | sort -u); do
    sound "$way" || { cat "$log"; echo "tests fail before anything is planted"; exit 1; }
done
count=0 missed=0
for patch in $chosen; do
    printf '%s: ' "$(basename "$patch" .patch)"
    plant "$patch" || missed=$((missed + 1))
    count=$((count + 1))
done
echo "$count planted, $missed not found"
[ $missed -eq 0 ]
