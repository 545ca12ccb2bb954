# What a C library expects of an operating system, for programs that have one: the end of a program, as in start.S, and the
# ends that are mistakes, which trap.
.section .text.library, "ax"

.weak _exit
.type _exit, @function
_exit:
    li a7, 93
    ecall

.macro trap name
.weak \name
.type \name, @function
\name:
    unimp
.endm
trap abort
trap __assert_func
trap __stack_chk_fail
