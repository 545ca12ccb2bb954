// What programs expect of a C library; toolchains.rs knows the results.
#include "hekaton.h"
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

u32 crc32(const char *text);

static int compare(const void *a, const void *b) {
    u32 x = *(const u32 *)a, y = *(const u32 *)b;
    return (x > y) - (x < y);
}

static u32 sorted(void) {
    u32 numbers[100], sum = 0;
    for (u32 i = 0; i < 100; i++) numbers[i] = i * 2654435761u >> 8;
    qsort(numbers, 100, sizeof numbers[0], compare);
    for (u32 i = 0; i < 100; i++) sum += (i + 1) * numbers[i];
    return sum;
}

static jmp_buf back;

static void leave(int depth) {
    if (depth == 0) longjmp(back, 1);
    leave(depth - 1);
}

// The compiler must not compute these itself.
static volatile u64 dividend = 0x0123456789abcdef, divisor = 12345;
static volatile long long negative = -987654321987, modulus = 1000003;
static volatile double two = 2.0, one = 1.0, pi = 3.14159;
static volatile int minus = -42, hex = 42;

int main(void) {
    OUTPUT[0] = crc32("123456789");
    OUTPUT[1] = sorted();
    u64 quotient = dividend / divisor;
    OUTPUT[2] = (u32)quotient;
    OUTPUT[3] = (u32)(quotient >> 32);
    OUTPUT[4] = (u32) - (negative % modulus);
    OUTPUT[5] = (u32)(sqrt(two) * 1e9);
    OUTPUT[6] = (u32)round(sin(one) * 1e9);

    char text[64];
    snprintf(text, sizeof text, "%d %x %5.2f %c", minus, hex, pi, 'x');
    u32 hash = 0;
    for (char *c = text; *c; c++) hash = hash * 31 + (unsigned char)*c;
    OUTPUT[7] = hash;

    if (setjmp(back) == 0)
        leave(3);
    else
        OUTPUT[8] = 7;

    char words[] = "one two three";
    u32 count = 0;
    for (char *word = strtok(words, " "); word; word = strtok(0, " ")) count++;
    OUTPUT[9] = count;

    u32 total = 0;
    for (u32 i = 1; i <= 3; i++) {
        u32 *some = malloc(i * 400);
        memset(some, 0, i * 400);
        some[i * 100 - 1] = i * 100;
        u32 *moved = realloc(some, i * 800);
        total += moved[i * 100 - 1];
        if (i % 2 == 0) free(moved);
    }
    OUTPUT[10] = total;

    char overlapping[] = "abcdefgh";
    memmove(overlapping + 2, overlapping, 6);
    OUTPUT[11] = strlen(overlapping) - (memcmp(overlapping, "ababcdef", 8) == 0 ? 2 : 0);
    return 0;
}
