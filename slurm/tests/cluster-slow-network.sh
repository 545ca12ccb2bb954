# shellcheck shell=bash source-path=SCRIPTDIR
# 5 ms each way between all machines: the proof verifies, and the report shows where the time went.
. ./lib
. ./cluster
"$CLUSTER" net '* * delay 5' >/dev/null || fail "net"
job=$(submit "$T/run" LAUNCHER=srun)
ended "$job" 150
state "$job" COMPLETED
verified "$T/run" 0
"$HEKATON" report "$T/run" --json >"$T/report" || fail "report"
python3 - "$T/report" <<'P' || fail "the report does not show where the time went"
import json, sys
report = json.load(open(sys.argv[1]))
accounts = report["rank_accounts"]
assert {a["rank"] for a in accounts} == {0, 1, 2, 3}, accounts
assert {a["host"] for a in accounts} == {"node1", "node2", "node3", "node4"}
for phase in ("commit", "prove", "aggregate"):
    assert all(a["sent_bytes"] > 0 and a["received_bytes"] > 0 for a in accounts if a["phase"] == phase)
# with a round trip of 10 ms, remote workers wait for jobs of the commit round; rank 0's own worker does not
share = {a["rank"]: a["idle_seconds"] / (a["idle_seconds"] + a["busy_seconds"]) for a in accounts if a["phase"] == "commit"}
assert max(share[1], share[2], share[3]) > 0.05 and all(0 <= x < 1 for x in share.values()), share
assert sum(a["subcircuits"] for a in accounts if a["phase"] == "prove") == 200
P
