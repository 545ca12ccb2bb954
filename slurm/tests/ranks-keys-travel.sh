# shellcheck shell=bash source-path=SCRIPTDIR
# Keys copied once per node, and keys that only rank 0 has; a damaged copy is refused, and a second job reuses the copy.
. ./lib
"$HEKATON" prove "$WORK/x" --keys "$WORK/small-keys" --insecure-seed 5 --proof "$T/local" >"$T/local.log" 2>&1 || fail "proving locally"
for i in 1 2; do
    ranks 3 --keys "$WORK/small-keys" --stage-keys "$T/staged" --insecure-seed 5 --proof "$T/p" >"$T/s$i.log" 2>&1 || fail "proving with staged keys"
    cmp "$T/local" "$T/p" || fail "the bytes differ"
done
[ "$(find "$T/staged" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] || fail "expected one copy per node, found: $(ls -A "$T/staged")"
cat >"$T/program" <<P
#!/bin/bash
keys=/no/such/keys
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] && keys=$WORK/small-keys
exec "$HEKATON" "\$@" --keys "\$keys"
P
chmod +x "$T/program"
HEKATON=$T/program ranks 3 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/2.log" 2>&1 || fail "proving with keys sent by rank 0"
cmp "$T/local" "$T/p" || fail "the bytes differ"
for file in "$T"/sent/*/types/*.pk; do
    printf 'xyz' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 40)) conv=notrunc 2>/dev/null
done
HEKATON=$T/program ranks 2 --keys-from-root --stage-keys "$T/sent" --insecure-seed 5 --proof "$T/p" >"$T/3.log" 2>&1
expect 3 "damaged" "$T/3.log"
HEKATON=$T/program ranks 2 --insecure-seed 5 --proof "$T/p" >"$T/4.log" 2>&1
expect 3 "is not a key store" "$T/4.log"

# One reader a cluster: of five ranks only rank 0 opens key files where they are, each once, however many nodes there are.
cat >"$T/count.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int open64(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    int mode = va_arg(list, int);
    va_end(list);
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    const char *counted = getenv("COUNTED"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    size_t n = strlen(path);
    if (counted && rank && strncmp(path, counted, strlen(counted)) == 0 && n > 3 && strcmp(path + n - 3, ".pk") == 0) {
        char line[4096];
        int out = next(getenv("COUNTS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%s %s\n", rank, path);
        if (out < 0 || write(out, line, length) != length) abort();
        close(out);
    }
    return next(path, flags, mode);
}
C
cc -shared -fPIC -o "$T/count.so" "$T/count.c" -ldl || fail "compiling the counter"
cat >"$T/counted" <<P
#!/bin/bash
export COUNTED=$WORK/small-keys COUNTS=$T/counts LD_PRELOAD=$T/count.so
exec "$T/program" "\$@"
P
chmod +x "$T/counted"
HEKATON=$T/counted ranks 5 --keys-from-root --stage-keys "$T/counted-keys" --insecure-seed 5 --proof "$T/p" >"$T/5.log" 2>&1 || fail "proving on five ranks with keys sent by rank 0"
cmp "$T/local" "$T/p" || fail "the bytes differ"
[ "$(sort "$T/counts")" = "$(printf '0 %s\n' "$WORK"/small-keys/types/*.pk | sort)" ] || fail "key files were opened by: $(cat "$T/counts")"
