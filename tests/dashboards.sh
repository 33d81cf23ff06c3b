#!/usr/bin/env bash
# Checks with promtool what docs/dashboards promises: Prometheus accepts the exposition of a
# snapshot and the queries of the dashboard, and each alarm fires when it must and not
# before (dashboards/alarms-test.yml).
#
# promtool is in Debian's package `prometheus`. If it is not installed, the package is
# unpacked into target/promtool, because an installation would start a server.
set -euo pipefail
cd "$(dirname "$0")/.."

unpacked=target/promtool
if ! command -v promtool >/dev/null; then
    if [ ! -x $unpacked/usr/bin/promtool ]; then
        mkdir -p $unpacked
        package() { (cd $unpacked && apt-get download -qq prometheus 2>/dev/null); }
        package || { apt-get update -qq && package; }
        dpkg -x $unpacked/prometheus_*.deb $unpacked
        rm $unpacked/prometheus_*.deb
    fi
    PATH=$PATH:$PWD/$unpacked/usr/bin
fi

cargo build --quiet -p tickwheel-prometheus
print() { cargo run --quiet -p tickwheel-prometheus -- "$1"; }
print exposition | promtool check metrics
print queries >target/panels.yml
promtool check rules target/panels.yml docs/dashboards/alarms.yml
promtool test rules tests/dashboards/alarms-test.yml

# The tests of the alarms must find a threshold that is ten times too high.
mkdir -p target/dashboards
sed 's/> 0\.01$/> 10/; s/behind_seconds > 1/behind_seconds > 600/' docs/dashboards/alarms.yml >target/dashboards/alarms.yml
sed 's|\.\./\.\./docs/dashboards/||' tests/dashboards/alarms-test.yml >target/dashboards/alarms-test.yml
if promtool test rules target/dashboards/alarms-test.yml >target/dashboards/log 2>&1; then
    echo "the tests of the alarms pass with wrong thresholds" >&2
    exit 1
fi
