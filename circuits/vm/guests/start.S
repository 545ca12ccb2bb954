# Where programs begin: gp, tp and the stack, main, and the exit with what it returned.
#
# Symbols of the linker or of guest.ld are zero where there are none: then the stack is at the end of the memory that is zero
# at the beginning. Defining STACK_END puts it elsewhere; STACK_SIZE is what guest.ld has room for.
#ifndef STACK_SIZE
#define STACK_SIZE 0x10000
#endif

.weak __global_pointer$
.weak __tls_base
.weak __stack_top

.section .text.start, "ax"
.globl _start
.type _start, @function
_start:
    # GNU ld turns accesses to small data into accesses by gp, but must not do so with its first value.
    .option push
    .option norelax
    lui gp, %hi(__global_pointer$)
    addi gp, gp, %lo(__global_pointer$)
    .option pop
    lui tp, %hi(__tls_base)
    addi tp, tp, %lo(__tls_base)
#ifdef STACK_END
    li sp, STACK_END
#else
    lui sp, %hi(__stack_top)
    addi sp, sp, %lo(__stack_top)
    bnez sp, 1f
    li sp, 0x20000000
1:
#endif
    call main
    li a7, 93
    ecall

#ifndef STACK_END
.section .stack_room, "aw", @nobits
    .space STACK_SIZE
#endif
