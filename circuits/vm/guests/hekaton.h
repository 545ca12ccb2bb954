// What a program has in place of an operating system: input, output, and the value that main returns as its exit code.
// Everything else between the program and 0x20000000 is memory that is zero at the beginning.
#ifndef HEKATON_H
#define HEKATON_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

// Other machines, to compare with, have less memory.
#ifndef INPUT_AT
#define INPUT_AT 0x20000000
#define OUTPUT_AT 0x30000000
#endif

// The words that verifiers see. How many there are is an agreement between the program and who proves it.
#define PUBLIC_INPUT ((const u32 *)INPUT_AT)

// The sixteen words of the output. The last one decides how verifiers read the others: from 0x4f4b4800 to 0x4f4b48ff, they are bytes
// or a digest, as Rust programs write them. A program whose input decides about its last word must not let it be one of these.
#define OUTPUT ((volatile u32 *)OUTPUT_AT)

// The bytes that verifiers do not see, behind the words that they see.
static inline const u8 *private_input(u32 public_words, u32 *length) {
    const u32 *words = PUBLIC_INPUT + public_words;
    *length = words[0];
    return (const u8 *)(words + 1);
}

// Shows text: `hekaton vm run` prints it on standard error. A proof does not contain it.
static inline void hekaton_print(const char *text, u32 length) {
    register const char *a0 __asm__("a0") = text;
    register u32 a1 __asm__("a1") = length;
    __asm__ volatile("slti x0, a0, 0x481" : : "r"(a0), "r"(a1) : "memory");
}

// Functions of the machine: each call does the work of thousands of instructions. Pointers are to words. A call reads
// everything before it writes, so words may overlap. It returns 0 on this machine, and something else on one that does not have it.
static inline int hekaton_call(u32 number, void *changed, const void *read) {
    register u32 a0 __asm__("a0") = (u32)changed;
    register u32 a1 __asm__("a1") = (u32)read;
    register u32 a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a7) : "memory");
    return (int)a0;
}

// SHA-256's compression function: changes the state by a block of 64 bytes, as they are in the message.
static inline int sha256_compress(u32 state[8], const u32 block[16]) { return hekaton_call(1001, state, block); }

// Keccak-f[1600], in place.
static inline int keccak_f(u64 state[25]) { return hekaton_call(1002, state, 0); }

static inline int hekaton_call5(u32 number, u32 *r, const u32 *a, const u32 *b, const u32 *c, const u32 *m) {
    register u32 a0 __asm__("a0") = (u32)r;
    register const u32 *a1 __asm__("a1") = a;
    register const u32 *a2 __asm__("a2") = b;
    register const u32 *a3 __asm__("a3") = c;
    register const u32 *a4 __asm__("a4") = m;
    register u32 a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a7) : "memory");
    return (int)a0;
}

// r = a b + c mod m, on numbers of 256 and 384 bits: 32-bit words, the lowest one first. The result is below m. The run traps
// if m is zero or if the quotient has more bits than the numbers; it never has if a or b is below m. Sums are a 1 + c,
// differences c + a (m - 1), and remainders a 1 + 0.
static inline int mul_add_mod_256(u32 r[8], const u32 a[8], const u32 b[8], const u32 c[8], const u32 m[8]) {
    return hekaton_call5(1003, r, a, b, c, m);
}
static inline int mul_add_mod_384(u32 r[12], const u32 a[12], const u32 b[12], const u32 c[12], const u32 m[12]) {
    return hekaton_call5(1004, r, a, b, c, m);
}

#if !__STDC_HOSTED__
// Compilers write calls of these even where the program has none. Weak, because several files of a program may include this
// one, and a C library has its own.
__attribute__((weak, used)) void *memcpy(void *to, const void *from, u32 length) {
    u8 *t = to;
    const u8 *f = from;
    if ((((u32)t | (u32)f) & 3) == 0)
        for (; length >= 4; length -= 4, t += 4, f += 4) *(u32 *)t = *(const u32 *)f;
    while (length--) *t++ = *f++;
    return to;
}

__attribute__((weak, used)) void *memset(void *to, int value, u32 length) {
    u8 *t = to;
    while (length--) *t++ = (u8)value;
    return to;
}
#else
void *memcpy(void *, const void *, __SIZE_TYPE__);
void *memset(void *, int, __SIZE_TYPE__);
#endif

#endif
