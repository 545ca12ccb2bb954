# shellcheck shell=bash source-path=SCRIPTDIR
# The disk of the run directory fills up during the run: the job ends, reports it, and resumes once there is space.
. ./lib
[ "$(id -u)" = 0 ] || exit 0
mkdir "$T/disk"
mount -t tmpfs -o size=96k tmpfs "$T/disk" || exit 0
trap 'end_jobs; umount -l "$T/disk"' EXIT
ranks 3 --keys "$WORK/keys" --run "$T/disk/run" >"$T/1.log" 2>&1
expect 4 "No space left" "$T/1.log"
all_gone 5
mount -o remount,size=8m "$T/disk"
ranks 2 --keys "$WORK/keys" --run "$T/disk/run" --resume >"$T/2.log" 2>&1 || fail "resuming"
# Not `verified`: some events were lost to the full disk. Logged answers are still not computed again.
"$HEKATON" verify "$T/disk/run/proof" --key "$WORK/keys/verifying.key" --public "$("$HEKATON" hash "$WORK/x" --keys "$WORK/keys")" \
    >/dev/null || fail "the proof does not verify"
