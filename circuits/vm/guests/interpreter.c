// Interprets a private program of a machine with a stack: programs inside of programs. The output has what is on top of its
// stack at the end, and the number of steps.
//
// A program is a list of words: an instruction in the lower byte, its operand in the upper three. The exit code is 1 if it
// leaves its stack or its code, or takes more than 2^24 steps.
#include "hekaton.h"

enum { HALT, PUSH, ADD, SUB, MUL, DIV, AND, XOR, SHIFT_RIGHT, LESS, LOAD, STORE, JUMP, JUMP_IF, COPY, DROP, LAST };
enum { STACK = 256, LOCALS = 64, STEPS = 1 << 24 };

static u32 stack[STACK], locals[LOCALS];

// How many values an instruction takes from the stack, and how many it leaves there.
static const u8 takes[LAST] = {1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1, 0, 1, 1, 1};
static const u8 leaves[LAST] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 0};

int main(void) {
    u32 length;
    const u32 *code = (const u32 *)private_input(0, &length);
    u32 count = length / 4, pc = 0, depth = 0;
    for (u32 step = 1; step <= STEPS; step++) {
        if (pc >= count) return 1;
        u32 op = code[pc] & 0xff, operand = code[pc] >> 8;
        if (op >= LAST || depth < takes[op] || depth - takes[op] + leaves[op] > STACK) return 1;
        u32 *top = stack + depth - 1;
        depth += (u32)leaves[op] - takes[op];
        pc++;
        switch (op) {
        case HALT:
            OUTPUT[0] = *top;
            OUTPUT[1] = step;
            return 0;
        case PUSH: stack[depth - 1] = operand; break;
        case ADD: top[-1] += *top; break;
        case SUB: top[-1] -= *top; break;
        case MUL: top[-1] *= *top; break;
        case DIV: top[-1] = *top != 0 ? top[-1] / *top : 0; break;
        case AND: top[-1] &= *top; break;
        case XOR: top[-1] ^= *top; break;
        case SHIFT_RIGHT: top[-1] >>= *top & 31; break;
        case LESS: top[-1] = top[-1] < *top; break;
        case LOAD:
            if (operand >= LOCALS) return 1;
            stack[depth - 1] = locals[operand];
            break;
        case STORE:
            if (operand >= LOCALS) return 1;
            locals[operand] = *top;
            break;
        case JUMP: pc = operand; break;
        case JUMP_IF:
            if (*top != 0) pc = operand;
            break;
        case COPY: top[1] = *top; break;
        case DROP: break;
        }
    }
    return 1;
}
