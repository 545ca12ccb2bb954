# Where programs begin: the stack, main, and the exit with what it returned.
.section .text.start, "ax"
.globl _start
_start:
    lui sp, 0x20000
    call main
    li a7, 93
    ecall
