#!/bin/bash
# Runs a command beside a PostgreSQL server of its own:
#
#   durable/tests/postgres.sh cargo test -p tickwheel-durable --features postgres
#
# The server lies in a temporary folder, listens on a socket in it and nowhere else, and is
# ended with the command, even if this script is killed. TICKWHEEL_POSTGRES tells the command
# how to connect. POSTGRES_OPTIONS is added to the server's command line.
#
# Debian's package is installed if there is no server.
set -euo pipefail

binaries() {
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1
}

[ -n "$(binaries)" ] || {
    apt-get update -qq
    # The package is not to start a server of its own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql
} >&2
bin=$(binaries)
folder=$(mktemp -d /tmp/postgres.XXXXXX)

# The server refuses to be run by root.
user=()
if [ "$(id -u)" -eq 0 ]; then
    chown postgres "$folder"
    user=(setpriv --reuid postgres --regid postgres --clear-groups --reset-env)
fi
"${user[@]}" "$bin/initdb" -D "$folder/data" -U tickwheel -A trust -E UTF8 --locale C --no-sync >"$folder.log" 2>&1 ||
    { cat "$folder.log" >&2; exit 1; }
rm -f "$folder.log"

# `setpriv` has become the server, so its number is known. A second process waits for the end of
# this script, however it comes, and ends the server then.
cd "$folder"
# shellcheck disable=SC2086
"${user[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=200 \
    -c logging_collector=off ${POSTGRES_OPTIONS:-} </dev/null >"$folder/log" 2>&1 &
server=$!
cd - >/dev/null
setsid bash -c '
    while kill -0 "$1" 2>/dev/null; do sleep 0.2; done
    kill -QUIT "$2" 2>/dev/null
    # It may be a zombie for as long as nobody waits for it.
    while grep -q "^State:.[^Z]" "/proc/$2/status" 2>/dev/null; do sleep 0.1; done
    rm -rf "$3"
' watch $$ $server "$folder" </dev/null >/dev/null 2>&1 &

for _ in $(seq 300); do
    if "$bin/pg_isready" -q -h "$folder" -U tickwheel; then
        export TICKWHEEL_POSTGRES="host=$folder user=tickwheel dbname=postgres"
        export TICKWHEEL_POSTGRES_SERVER=$server
        status=0
        "$@" || status=$?
        exit $status
    fi
    kill -0 $server || break
    sleep 0.1
done
echo "the server did not start:" >&2
cat "$folder/log" >&2
exit 1
