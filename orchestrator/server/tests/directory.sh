#!/usr/bin/env bash
# Epochs of a key directory, proven by an orchestrator and published in order: orchestrator/server/tests/directory.sh HEKATON
# ORCHESTRATOR. What was handed over is proven although the directory's process is stopped, and what is accepted is proven although any one
# of the processes dies.
set -euo pipefail
hekaton=$(realpath "$1")
orchestrator=$(realpath "$2")
T=$(mktemp -d -t hekaton-directory-XXXXXX)
service= server= worker=
# shellcheck disable=SC2317  # called by the trap
cleanup() {
    for process in $service $server $worker; do kill -KILL "$process" 2>/dev/null || true; done
    wait
    rm -rf "$T"
}
trap cleanup EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 20 "$T"/*.log >&2
    exit 1
}
# The directory finds the program in PATH.
mkdir "$T/bin"
ln -s "$orchestrator" "$T/bin/hekaton-orchestrator"
export PATH=$T/bin:$PATH
"$hekaton" setup epochs -p profile=compress -p steps=2 --up-to 132 --keys "$T/keys" >"$T/setup.log" 2>&1 || fail "setup"
cat >"$T/settings.toml" <<TOML
version = 1
[backends.epochs]
kind = "hekaton"
program = "$hekaton"
keys = "keys"
TOML
"$hekaton" directory init "$T/d" --keys "$T/keys" >"$T/init.log" 2>&1 || fail "init"
for label in alice bob; do
    "$hekaton" directory insert "$T/d" "$label" "the key of $label" >>"$T/insert.log" 2>&1 || fail "insert"
done
prove() { "$hekaton" directory prove "$T/d" --keys "$T/keys" --orchestrator "$address"; }
address=http://127.0.0.1:9
if prove >"$T/nobody.log" 2>&1; then fail "an unreachable service is not reported"; fi
grep -q "127.0.0.1:9" "$T/nobody.log" || fail "the error does not name the service"
# Without slots, jobs wait.
hekaton-orchestrator --json serve --data "$T/jobs" --settings "$T/settings.toml" --slots 0 --listen 127.0.0.1:0 >"$T/serving" 2>"$T/serve.log" &
service=$!
until [ -s "$T/serving" ]; do sleep 0.1; done
address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$T/serving")
"$hekaton" directory prove "$T/d" --keys "$T/keys" --orchestrator "$address" >"$T/stopped.log" 2>&1 &
prover=$!
live() { hekaton-orchestrator status --service "$address" --json | grep -q '"state":"live"'; }
until live 2>/dev/null; do sleep 0.1; done
kill -TERM "$prover"
code=0
wait "$prover" || code=$?
[ "$code" = 5 ] || fail "the stopped process exited with $code, not 5"
hekaton-orchestrator work --data "$T/jobs" --settings "$T/settings.toml" >"$T/work.log" 2>&1 &
worker=$!
prove >"$T/first.log" 2>&1 || fail "prove"
"$hekaton" directory insert "$T/d" carol "the key of carol" >>"$T/insert.log" 2>&1 || fail "insert"
prove >"$T/second.log" 2>&1 || fail "prove again"
kill "$worker"
wait "$worker"
worker=
"$hekaton" directory audit "$T/d" --keys "$T/keys" >"$T/audit.log" 2>&1 || fail "audit"
grep -q "from epoch 0 to 3" "$T/audit.log" || fail "the audit does not reach epoch 3"
published=$(hekaton-orchestrator proofs --service "$address" directory | cut -d' ' -f3 | paste -sd' ')
[ "$published" = "epoch-2 epoch-3" ] || fail "published: $published"
kill "$service"
wait "$service"
service=
hekaton-orchestrator check --data "$T/jobs" >"$T/check.log" 2>&1 || fail "check"

# Each component dies alone, with an epoch on its way, and is started again: everything accepted ends up in a proven epoch.
port=${address##*:}
orchestrate() {
    hekaton-orchestrator serve --data "$T/jobs" --settings "$T/settings.toml" --slots 0 --listen "127.0.0.1:$port" >>"$T/serve.log" 2>&1 &
    service=$!
}
work() {
    hekaton-orchestrator work --data "$T/jobs" --settings "$T/settings.toml" >>"$T/work.log" 2>&1 &
    worker=$!
}
directory() {
    rm -f "$T/answering"
    "$hekaton" directory serve "$T/d" --keys "$T/keys" --orchestrator "$address" --interval 50ms --listen 127.0.0.1:0 --json \
        >"$T/answering" 2>>"$T/directory.log" &
    server=$!
    until [ -s "$T/answering" ]; do
        kill -0 "$server" 2>/dev/null || fail "the directory does not start"
        sleep 0.1
    done
    at=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$T/answering")
}
accept() { "$hekaton" directory insert "$at" "$1" "the key of $1" "${@:2}" >>"$T/insert.log" 2>&1 || fail "insert $1"; }
ended() {
    kill -KILL "$1"
    wait "$1" 2>/dev/null || true
}
cp "$T/d/parameters.json" "$T/parameters"
orchestrate
work
directory
for dies in directory orchestrator worker prover; do
    accept "before the $dies dies" --wait accepted
    until live 2>/dev/null; do sleep 0.1; done
    case $dies in
        directory)
            ended "$server"
            directory
            ;;
        orchestrator)
            ended "$service"
            # The directory continues without it.
            accept "without the $dies" --wait accepted
            orchestrate
            ;;
        worker)
            ended "$worker"
            accept "without the $dies" --wait accepted
            work
            ;;
        prover)
            # It may have ended by now.
            prover=$(pgrep -f "$T/jobs.*prove|prove .*$T/jobs" | head -n 1 || true)
            [ -z "$prover" ] || kill -KILL "$prover" 2>/dev/null || true
            ;;
    esac
    # Once it is visible, so are those before it.
    accept "after the $dies died"
    "$hekaton" directory audit "$at" --parameters "$T/parameters" --keys "$T/keys" --wait --json >"$T/audit.json" 2>"$T/audit.log" ||
        fail "the audit after the death of the $dies"
    grep -q '"not_audited":0' "$T/audit.json" || fail "not all is proven after the death of the $dies"
    "$hekaton" directory lookup "$at" "after the $dies died" --parameters "$T/parameters" --json >"$T/found.json" 2>"$T/look-up.log" ||
        fail "a look-up after the death of the $dies"
    grep -q '"present":true' "$T/found.json" || fail "an update is lost with the $dies"
done
kill "$server"
wait "$server" || fail "the directory did not end well"
kill "$worker" "$service"
wait "$worker" "$service" || true
service=
server=
worker=
hekaton-orchestrator check --data "$T/jobs" >"$T/check.log" 2>&1 || fail "check after the deaths"
echo "ok: epochs by the orchestrator"
