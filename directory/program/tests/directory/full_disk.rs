//! S7: a service on a full disk.

use super::{Directory, keys};
use crate::common::tool;

/// A tmpfs that is full: what was signed is looked up, the service is healthy and not ready, and a restart changes nothing; with room
/// again, it continues by itself.
const SCRIPT: &str = r#"
set -e
service=
trap '[ -z "$service" ] || kill -9 $service 2>/dev/null' EXIT
hekaton() { "$HEKATON" directory "$@" >>$OUT/log 2>&1; }
start() {
    rm -f $OUT/serving
    "$HEKATON" directory serve $DIR/d --listen 127.0.0.1:0 --interval 20ms --json >$OUT/serving 2>>$OUT/log &
    service=$!
    until [ -s $OUT/serving ]; do kill -0 $service || { cat $OUT/log; exit 90; }; sleep 0.1; done
    at=$(sed 's/.*"address":"\([^"]*\)".*/\1/' $OUT/serving)
}
status() { curl -s -o $OUT/body -w '%{http_code}' "$@"; }
says() { [ "$(status "$at$1")" = "$2" ] || { echo "$1 is not $2"; cat $OUT/body $OUT/log; exit 91; }; }
look_up() { hekaton lookup $at alice --parameters $OUT/parameters || { cat $OUT/log; exit 92; }; }
update() { status -H 'content-type: application/json' -d "{\"label\":\"$1\",\"value\":\"2\"}" $at/v1/updates; }
hekaton init $DIR/d --keys $KEYS
cp $DIR/d/parameters.json $OUT/parameters
start
hekaton insert $at alice 1
says /healthz 200; says /readyz 204
# Whatever is left is filled.
cat /dev/zero >$DIR/filler 2>/dev/null || true
n=0
until [ "$(update n$n)" = 503 ]; do n=$((n + 1)); [ $n -lt 2000 ] || { echo "never full"; exit 93; }; done
! grep -q "$DIR" $OUT/body || { echo "a path of the server is in an answer"; cat $OUT/body; exit 94; }
for restart in no yes killed; do
    case $restart in
        yes) kill $service; wait $service || true; start ;;
        killed) kill -9 $service; wait $service || true; start ;;
    esac
    says /healthz 200; says /readyz 503; says /v1/epochs 200; says /metrics 200; look_up
    [ "$(update later)" = 503 ] || exit 95
done
rm $DIR/filler
n=0
until [ "$(status $at/readyz)" = 204 ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat $OUT/log; exit 96; }; sleep 0.1; done
hekaton insert $at later 3 || { cat $OUT/log; exit 97; }
kill $service; wait $service || { cat $OUT/log; exit 98; }
service=
hekaton check $DIR/d || { cat $OUT/log; exit 89; }
"#;

#[test]
fn look_ups_need_no_room() {
    let directory = Directory::bare();
    let out = directory.path("out");
    std::fs::create_dir(&out).unwrap();
    let (code, said) = tool().with_tmpfs(SCRIPT, &[("KEYS", keys()), ("OUT", &out)]);
    assert_eq!(code, Some(0), "{said}");
}
