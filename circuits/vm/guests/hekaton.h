// What a program has in place of an operating system: input, output, and the value that main returns as its exit code.
// Everything else between the program and 0x20000000 is memory that is zero at the beginning; the stack is at its end.
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

// The sixteen words of the output.
#define OUTPUT ((volatile u32 *)OUTPUT_AT)

// The bytes that verifiers do not see, behind the words that they see.
static inline const u8 *private_input(u32 public_words, u32 *length) {
    const u32 *words = PUBLIC_INPUT + public_words;
    *length = words[0];
    return (const u8 *)(words + 1);
}

// Compilers write calls of these even where the program has none.
__attribute__((used)) void *memcpy(void *to, const void *from, u32 length) {
    u8 *t = to;
    const u8 *f = from;
    if ((((u32)t | (u32)f) & 3) == 0)
        for (; length >= 4; length -= 4, t += 4, f += 4) *(u32 *)t = *(const u32 *)f;
    while (length--) *t++ = *f++;
    return to;
}

__attribute__((used)) void *memset(void *to, int value, u32 length) {
    u8 *t = to;
    while (length--) *t++ = (u8)value;
    return to;
}

#endif
