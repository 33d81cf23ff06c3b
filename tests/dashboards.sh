#!/usr/bin/env bash
# Checks with the tools of Prometheus what docs/dashboards promises:
#
#   - Prometheus accepts the exposition of a snapshot (`promtool check metrics`);
#   - it parses the queries of the alarms (`promtool check rules`);
#   - each alarm fires when it must and not before (dashboards/*-test.yml);
#   - a server that scrapes a busy engine and a busy node has an answer to each query.
#
# The tools are in Debian's package `prometheus`. If they are not installed, the package is
# unpacked into target/promtool, because an installation would start a server.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "$*" >&2
    exit 1
}

unpacked=target/promtool
if ! command -v promtool >/dev/null || ! command -v prometheus >/dev/null; then
    if [ ! -x $unpacked/usr/bin/promtool ]; then
        mkdir -p $unpacked
        package() { (cd $unpacked && apt-get download -qq prometheus 2>/dev/null); }
        package || { apt-get update -qq && package; }
        dpkg -x $unpacked/prometheus_*.deb $unpacked
        rm $unpacked/prometheus_*.deb
    fi
    PATH=$PATH:$PWD/$unpacked/usr/bin
fi

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cargo build --quiet -p tickwheel-prometheus
program=${CARGO_TARGET_DIR:-target}/debug/tickwheel-prometheus

"$program" exposition | promtool check metrics
promtool check rules {docs,durable}/dashboards/*alarms.yml
promtool test rules tests/dashboards/*-test.yml

# The tests of the alarms must find thresholds that are too high.
for file in {docs,durable}/dashboards/*alarms.yml; do
    alarms=$(basename "$file" .yml)
    sed 's/> 0\.01$/> 10/; s/> 0\.5$/> 10/; s/behind_seconds > [0-9]*/behind_seconds > 1600/' "$file" >"$work/$alarms.yml"
    sed 's|\.\./\.\./[a-z]*/dashboards/||' tests/dashboards/$alarms-test.yml >"$work/$alarms-test.yml"
    ! promtool test rules "$work/$alarms-test.yml" >"$work/log" 2>&1 ||
        fail "the tests of $alarms pass with wrong thresholds"
done

# On this machine only, and until the script ends.
engine=127.0.0.1:$((20000 + RANDOM % 5000))
server=127.0.0.1:$((25000 + RANDOM % 5000))
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: test
    static_configs: [{ targets: ["$engine"] }]
END
"$program" serve "$engine" &
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
    --web.listen-address="$server" >"$work/log" 2>&1 &

# A query has an answer if it returns a number.
answered() {
    promtool query instant "http://$server" "$1" 2>/dev/null | grep -qE '=> [0-9.e+-]+ @'
}
for second in {1..60}; do
    ! answered 'rate(tickwheel_durations_firings_total{within="+Inf"}[1m]) > 0' || break
    [ "$second" -lt 60 ] || fail "nothing was scraped: $(tail -5 "$work/log")"
    sleep 1
done
while read -r query; do
    answered "$query" || fail "no answer to $query"
done < <("$program" queries)
echo "$("$program" queries | wc -l) queries have answers from a server"
