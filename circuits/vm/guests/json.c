// Whether the private input is a JSON text (RFC 8259) of at most 64 levels: exit code 0 if it is, 1 if not. The output says
// how many objects, arrays, members, strings, numbers, and literals it has, and how deep it is; if it is none, where.
#include "hekaton.h"

enum { OBJECTS, ARRAYS, MEMBERS, STRINGS, NUMBERS, LITERALS, DEPTH, WRONG_AT };
enum { LEVELS = 64 };

static const u8 *at, *end;
static u32 counts[8];

static int is_digit(u32 c) { return c - '0' < 10; }

static u32 peek(void) { return at < end ? *at : 0x100; }

static void space(void) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
}

static int digits(void) {
    if (!is_digit(peek())) return 0;
    while (is_digit(peek())) at++;
    return 1;
}

static int number(void) {
    if (peek() == '-') at++;
    if (peek() == '0') at++;
    else if (!digits()) return 0;
    if (peek() == '.') {
        at++;
        if (!digits()) return 0;
    }
    if ((peek() | 0x20) == 'e') {
        at++;
        if (peek() == '+' || peek() == '-') at++;
        if (!digits()) return 0;
    }
    counts[NUMBERS]++;
    return 1;
}

static int is_hex(u32 c) { return is_digit(c) || (c | 0x20) - 'a' < 6; }

// One character of more than one byte, in UTF-8: no surrogates, nothing longer than it must be.
static int wide(u32 first) {
    u32 more, least;
    if (first < 0xc2 || first > 0xf4) return 0;
    if (first < 0xe0) more = 1, least = 0x80, first &= 0x1f;
    else if (first < 0xf0) more = 2, least = 0x800, first &= 0x0f;
    else more = 3, least = 0x10000, first &= 0x07;
    for (; more > 0; more--) {
        u32 next = peek();
        if ((next & 0x1c0) != 0x80) return 0;
        first = first << 6 | (next & 0x3f);
        at++;
    }
    return first >= least && first < 0x110000 && (first < 0xd800 || first > 0xdfff);
}

static int string(void) {
    at++;
    for (;;) {
        u32 c = peek();
        if (c < 0x20 || c == 0x100) return 0;
        at++;
        if (c == '"') break;
        if (c >= 0x80 && !wide(c)) return 0;
        if (c != '\\') continue;
        c = peek();
        if (c == 0x100) return 0;
        at++;
        if (c == 'u') {
            for (int i = 0; i < 4; i++, at++)
                if (!is_hex(peek())) return 0;
        } else if (c != '"' && c != '\\' && c != '/' && c != 'b' && c != 'f' && c != 'n' && c != 'r' && c != 't') {
            return 0;
        }
    }
    counts[STRINGS]++;
    return 1;
}

static int literal(const char *name) {
    for (; *name != 0; name++, at++)
        if (peek() != (u8)*name) return 0;
    counts[LITERALS]++;
    return 1;
}

static int value(u32 depth);

static int member(u32 depth) {
    space();
    if (peek() != '"' || !string()) return 0;
    space();
    if (peek() != ':') return 0;
    at++;
    counts[MEMBERS]++;
    return value(depth);
}

// What is between brackets, of either kind.
static int list(u32 depth, u8 close, int (*item)(u32)) {
    at++;
    if (depth > LEVELS) return 0;
    if (depth > counts[DEPTH]) counts[DEPTH] = depth;
    space();
    if (peek() == close) {
        at++;
        return 1;
    }
    for (;;) {
        if (!item(depth)) return 0;
        u32 c = peek();
        if (c != ',' && c != close) return 0;
        at++;
        if (c == close) return 1;
    }
}

static int value(u32 depth) {
    int ok;
    space();
    switch (peek()) {
    case '{':
        counts[OBJECTS]++;
        ok = list(depth + 1, '}', member);
        break;
    case '[':
        counts[ARRAYS]++;
        ok = list(depth + 1, ']', value);
        break;
    case '"': ok = string(); break;
    case 't': ok = literal("true"); break;
    case 'f': ok = literal("false"); break;
    case 'n': ok = literal("null"); break;
    default: ok = number();
    }
    space();
    return ok;
}

int main(void) {
    u32 length;
    at = private_input(0, &length);
    const u8 *start = at;
    end = at + length;
    int ok = value(0) && at == end;
    counts[WRONG_AT] = ok ? 0 : (u32)(at - start);
    for (u32 i = 0; i < sizeof counts / sizeof *counts; i++) OUTPUT[i] = counts[i];
    return !ok;
}
