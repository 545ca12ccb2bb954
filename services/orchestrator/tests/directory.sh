#!/usr/bin/env bash
# Epochs of a key directory, proven by an orchestrator and published in order: services/orchestrator/tests/directory.sh HEKATON
# ORCHESTRATOR. What was handed over is proven although the directory's process is stopped.
set -euo pipefail
hekaton=$(realpath "$1")
orchestrator=$(realpath "$2")
T=$(mktemp -d -t hekaton-directory-XXXXXX)
service=
# shellcheck disable=SC2317  # called by the trap
cleanup() {
    [ -z "$service" ] || kill "$service" 2>/dev/null || true
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
[ "$code" = 5 ] || fail "it was stopped, and ends with $code"
hekaton-orchestrator work --data "$T/jobs" --settings "$T/settings.toml" >"$T/work.log" 2>&1 &
worker=$!
prove >"$T/first.log" 2>&1 || fail "prove"
"$hekaton" directory insert "$T/d" carol "the key of carol" >>"$T/insert.log" 2>&1 || fail "insert"
prove >"$T/second.log" 2>&1 || fail "prove again"
kill "$worker"
wait "$worker"
"$hekaton" directory audit "$T/d" --keys "$T/keys" >"$T/audit.log" 2>&1 || fail "audit"
grep -q "from epoch 0 to 3" "$T/audit.log" || fail "the audit does not reach epoch 3"
published=$(hekaton-orchestrator proofs --service "$address" directory | cut -d' ' -f3 | paste -sd' ')
[ "$published" = "epoch-2 epoch-3" ] || fail "published: $published"
kill "$service"
wait "$service"
service=
hekaton-orchestrator check --data "$T/jobs" >"$T/check.log" 2>&1 || fail "check"
echo "ok: epochs by the orchestrator"
