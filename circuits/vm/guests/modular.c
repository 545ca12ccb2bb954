// a b + c mod m, twice: the second time, a is the first result. The private input has 0 for numbers
// of 256 bits and 1 for 384, then a, b, c, m. The output is the second result, and the exit code 1 if the input has another
// length. Linux does not have the calls: there, the program multiplies bit by bit.
#include "hekaton.h"

enum { MOST = 12 };

static u32 add(u32 *r, const u32 *a, const u32 *b, u32 words) {
    u32 carry = 0;
    for (u32 i = 0; i < words; i++) {
        u64 sum = (u64)a[i] + b[i] + carry;
        r[i] = (u32)sum;
        carry = (u32)(sum >> 32);
    }
    return carry;
}

static u32 subtract(u32 *r, const u32 *a, const u32 *b, u32 words) {
    u32 borrow = 0;
    for (u32 i = 0; i < words; i++) {
        u64 difference = (u64)a[i] - b[i] - borrow;
        r[i] = (u32)difference;
        borrow = (u32)(difference >> 32) & 1;
    }
    return borrow;
}

// r = r + a mod m, where r and a are below m.
static void add_mod(u32 *r, const u32 *a, const u32 *m, u32 words) {
    u32 less[MOST], carry = add(r, r, a, words), borrow = subtract(less, r, m, words);
    if (carry || !borrow) memcpy(r, less, 4 * words);
}

// a mod m
static void reduce(u32 *r, const u32 *a, const u32 *m, u32 words) {
    u32 one[MOST] = {1}, less[MOST] = {0};
    memset(r, 0, 4 * words);
    // 1 is not below m if m is 1.
    if (!subtract(less, one, m, words)) return;
    for (int bit = 32 * (int)words - 1; bit >= 0; bit--) {
        u32 same[MOST];
        memcpy(same, r, 4 * words);
        add_mod(r, same, m, words);
        if (a[bit / 32] >> (bit % 32) & 1) add_mod(r, one, m, words);
    }
}

static void by_instructions(u32 *r, const u32 *a, const u32 *b, const u32 *c, const u32 *m, u32 words) {
    u32 x[MOST], sum[MOST], same[MOST];
    reduce(x, a, m, words);
    memset(sum, 0, sizeof sum);
    for (int bit = 32 * (int)words - 1; bit >= 0; bit--) {
        memcpy(same, sum, 4 * words);
        add_mod(sum, same, m, words);
        if (b[bit / 32] >> (bit % 32) & 1) add_mod(sum, x, m, words);
    }
    reduce(x, c, m, words);
    add_mod(sum, x, m, words);
    memcpy(r, sum, 4 * words);
}

static void mul_add_mod(u32 *r, const u32 *a, const u32 *b, const u32 *c, const u32 *m, u32 words) {
    int missing = words == 8 ? mul_add_mod_256(r, a, b, c, m) : mul_add_mod_384(r, a, b, c, m);
    if (missing) by_instructions(r, a, b, c, m, words);
}

int main(void) {
    u32 length, r[MOST];
    const u32 *input = (const u32 *)private_input(0, &length);
    if (length < 4) return 1;
    u32 words = input[0] == 0 ? 8 : 12;
    if (length != 4 + 16 * words) return 1;
    const u32 *a = input + 1, *b = a + words, *c = b + words, *m = c + words;
    mul_add_mod(r, a, b, c, m, words);
    mul_add_mod(r, r, b, c, m, words);
    for (u32 i = 0; i < words; i++) OUTPUT[i] = r[i];
    return 0;
}
