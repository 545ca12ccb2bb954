// The n-th Fibonacci number modulo 2^64, for a public n: the loop that everybody measures.
#include "hekaton.h"

int main(void) {
    u64 a = 0, b = 1;
    for (u32 n = PUBLIC_INPUT[0]; n > 0; n--) {
        u64 next = a + b;
        a = b;
        b = next;
    }
    OUTPUT[0] = (u32)a;
    OUTPUT[1] = (u32)(a >> 32);
    return 0;
}
