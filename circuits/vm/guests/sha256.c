// The SHA-256 digest of the private input (FIPS 180-4), in the order in which it is written: the first byte is the lowest
// one of the first word of the output.
#include "hekaton.h"
#include "sha256.h"

static u32 swap(u32 x) { return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24; }

int main(void) {
    u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    u32 length;
    const u8 *bytes = private_input(0, &length);
    u32 left = length;
    for (; left >= 64; left -= 64, bytes += 64) sha256_by_instructions(state, bytes);
    u8 last[128];
    u32 end = left < 56 ? 64 : 128;
    for (u32 i = 0; i < end; i++) last[i] = i < left ? bytes[i] : 0;
    last[left] = 0x80;
    u64 bits = (u64)length * 8;
    for (int i = 0; i < 8; i++) last[end - 1 - i] = (u8)(bits >> 8 * i);
    for (u32 at = 0; at < end; at += 64) sha256_by_instructions(state, last + at);
    for (int i = 0; i < 8; i++) OUTPUT[i] = swap(state[i]);
    return 0;
}
