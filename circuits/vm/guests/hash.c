// The SHA-256 digest (FIPS 180-4) and the Keccak-256 digest (Ethereum's) of the private input, by the functions of the
// machine; the first byte of each is the lowest one of words 0 and 8 of the output. Linux does not have these functions:
// there, the program goes on without them.
#include "sha256.h"

static u32 swap(u32 x) { return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24; }

static void sha256_block(u32 state[8], const u32 block[16]) {
    if (sha256_compress(state, block) != 0) sha256_by_instructions(state, (const u8 *)block);
}

static u64 rotate_left(u64 x, int n) { return n == 0 ? x : x << n | x >> (64 - n); }

// FIPS 202, section 3.2.
static void keccak_by_instructions(u64 a[25]) {
    static const u8 rotations[25] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                     25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};
    u32 lfsr = 1;
    for (int round = 0; round < 24; round++) {
        u64 c[5], b[25];
        for (int x = 0; x < 5; x++) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        for (int i = 0; i < 25; i++) a[i] ^= c[(i + 4) % 5] ^ rotate_left(c[(i + 1) % 5], 1);
        for (int x = 0; x < 5; x++)
            for (int y = 0; y < 5; y++) b[y + 5 * ((2 * x + 3 * y) % 5)] = rotate_left(a[x + 5 * y], rotations[x + 5 * y]);
        for (int x = 0; x < 5; x++)
            for (int y = 0; y < 25; y += 5) a[x + y] = b[x + y] ^ (~b[(x + 1) % 5 + y] & b[(x + 2) % 5 + y]);
        for (int j = 0; j < 7; j++) {
            a[0] ^= (u64)(lfsr & 1) << ((1 << j) - 1);
            lfsr = ((lfsr << 1) ^ ((lfsr >> 7) * 0x171)) & 0xff;
        }
    }
}

static void keccak(u64 state[25]) {
    if (keccak_f(state) != 0) keccak_by_instructions(state);
}

static void sha256(u32 digest[8], const u8 *bytes, u32 length) {
    u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    u32 left = length, last[32];
    // The input begins at a word.
    for (; left >= 64; left -= 64, bytes += 64) sha256_block(state, (const u32 *)bytes);
    u32 end = left < 56 ? 64 : 128;
    memset(last, 0, end);
    memcpy(last, bytes, left);
    ((u8 *)last)[left] = 0x80;
    last[end / 4 - 2] = swap(length >> 29);
    last[end / 4 - 1] = swap(length << 3);
    for (u32 at = 0; at < end / 4; at += 16) sha256_block(state, last + at);
    for (int i = 0; i < 8; i++) digest[i] = swap(state[i]);
}

static void keccak256(u32 digest[8], const u8 *bytes, u32 length) {
    enum { RATE = 136 };
    u64 state[25] = {0};
    u8 *s = (u8 *)state;
    for (; length >= RATE; length -= RATE, bytes += RATE) {
        // Words of the input, which begins at one.
        const u32 *words = (const u32 *)bytes;
        for (int i = 0; i < RATE / 8; i++) state[i] ^= words[2 * i] | (u64)words[2 * i + 1] << 32;
        keccak(state);
    }
    for (u32 i = 0; i < length; i++) s[i] ^= bytes[i];
    s[length] ^= 0x01;
    s[RATE - 1] ^= 0x80;
    keccak(state);
    memcpy(digest, state, 32);
}

int main(void) {
    u32 length, digest[8];
    const u8 *bytes = private_input(0, &length);
    sha256(digest, bytes, length);
    for (int i = 0; i < 8; i++) OUTPUT[i] = digest[i];
    keccak256(digest, bytes, length);
    for (int i = 0; i < 8; i++) OUTPUT[8 + i] = digest[i];
    return 0;
}
