#!/bin/bash
# Runs a command beside a PostgreSQL server of its own:
#
#   durable/tests/postgres.sh cargo test -p tickwheel-durable --features postgres
#
# The server lies in a temporary folder, listens on a socket in it and nowhere else, and is
# ended with the command, even if this script is killed. TICKWHEEL_POSTGRES tells the command
# how to connect. POSTGRES_OPTIONS is added to the server's command line.
#
# The command may start servers of its own, to stop and to kill them: it finds this script in
# TICKWHEEL_POSTGRES_SCRIPT, and calls
#
#   durable/tests/postgres.sh --serve FOLDER [option...]
#
# which becomes a server on the data in that folder, and creates them first if there are none, with
# a certificate for localhost if POSTGRES_TLS is set.
#
# Debian's package is installed if there is no server. POSTGRES_BIN is the folder of another one's
# programs.
set -euo pipefail

binaries() {
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1
}

{ [ -n "${POSTGRES_BIN:-$(binaries)}" ] && command -v openssl >/dev/null; } || {
    apt-get update -qq
    # The package is not to start a server of its own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql openssl
} >&2
bin=${POSTGRES_BIN:-$(binaries)}

# The server refuses to be run by root.
user=()
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid postgres --regid postgres --clear-groups --reset-env)

# Creates the data in $folder.
create() {
    [ ${#user[@]} -eq 0 ] || chown -R postgres "$folder"
    "${user[@]}" "$bin/initdb" -D "$folder/data" -U tickwheel -A trust -E UTF8 --locale C --no-sync >"$folder.log" 2>&1 ||
        { cat "$folder.log" >&2; exit 1; }
    rm -f "$folder.log"
    [ -z "${POSTGRES_TLS:-}" ] || certify
}

# Makes a certificate, which is its own authority.
certify() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost \
        -keyout "$folder/key.pem" -out "$folder/certificate.pem" 2>/dev/null
    chmod 600 "$folder/key.pem"
    [ "$(id -u)" -ne 0 ] || chown postgres "$folder/key.pem" "$folder/certificate.pem"
    printf '%s\n' "ssl = on" "ssl_cert_file = '$folder/certificate.pem'" "ssl_key_file = '$folder/key.pem'" >>"$folder/data/postgresql.conf"
}

# Becomes the server on the data in $folder.
serve() {
    cd "$folder"
    exec "${user[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=200 \
        -c logging_collector=off "$@" </dev/null >>"$folder/log" 2>&1
}

if [ "${1:-}" = --serve ]; then
    folder=$2
    [ -e "$folder/data" ] || create
    # It ends with the command, however that ends.
    [ ${#user[@]} -gt 0 ] || user=(setpriv)
    user+=(--pdeathsig KILL)
    serve "${@:3}"
fi

folder=$(mktemp -d /tmp/postgres.XXXXXX)
create

# `setpriv` has become the server, so its number is known. A second process waits for the end of
# this script, however it comes, and ends the server then.
# shellcheck disable=SC2086
serve ${POSTGRES_OPTIONS:-} &
server=$!
setsid bash -c '
    while kill -0 "$1" 2>/dev/null; do sleep 0.2; done
    kill -QUIT "$2" 2>/dev/null
    # It may be a zombie for as long as nobody waits for it.
    while grep -q "^State:.[^Z]" "/proc/$2/status" 2>/dev/null; do sleep 0.1; done
    rm -rf "$3"
' watch $$ $server "$folder" </dev/null >/dev/null 2>&1 &

TICKWHEEL_POSTGRES_SCRIPT=$(realpath "$0")
for _ in $(seq 300); do
    if grep -q ready "$folder/data/postmaster.pid" 2>/dev/null; then
        export TICKWHEEL_POSTGRES="host=$folder user=tickwheel dbname=postgres"
        export TICKWHEEL_POSTGRES_SERVER=$server TICKWHEEL_POSTGRES_SCRIPT
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
