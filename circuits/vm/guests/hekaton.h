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

// Functions of the machine: calls, each in place of thousands of instructions. Pointers are to words, which must not
// overlap. They return 0 on this machine, and something else on one that does not have them.
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
