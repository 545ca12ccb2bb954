# Where programs begin: the stack, main, and the exit with what it returned.
#ifndef STACK_END
#define STACK_END 0x20000000
#endif

.section .text.start, "ax"
.globl _start
_start:
    li sp, STACK_END
    call main
    li a7, 93
    ecall
