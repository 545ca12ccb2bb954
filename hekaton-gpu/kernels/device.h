// What differs between a device and the host.
//
// The kernels are one source. Clang compiles it to PTX without CUDA's headers, and a C++ compiler to functions that run blocks and threads
// one after the other, which is how tests run every kernel where there is no device. A kernel is a sequence of phases: the threads of a
// block meet after each, and what one thread keeps from phase to phase is in the block's shared memory. So on the host a phase is a loop.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "limbs have 32 bits");

#if defined(__CUDA__) || defined(__CUDACC__)
#define ON_DEVICE 1
#ifndef __CUDACC__
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#elif defined(__clang__)
#error "compile with -nocudainc"
#endif
#define FN static __device__ inline __attribute__((always_inline))
// A function that is called: in one place of the instruction cache, and compiled once.
#define CALLED static __device__ __attribute__((noinline))
#define INLINE __attribute__((always_inline))
// 128 bits are read and written at once.
#define ALIGNED __attribute__((aligned(16)))
#define SHARED(type, name, count) __shared__ type name[count]

FN u32 block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
FN u32 block_size() { return __nvvm_read_ptx_sreg_ntid_x(); }
FN u32 thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
FN u32 atomic_add(u32 *at, u32 x) {
    u32 before;
    asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(x) : "memory");
    return before;
}
FN void atomic_min(u32 *at, u32 x) { asm volatile("red.global.min.u32 [%0], %1;" ::"l"(at), "r"(x) : "memory"); }
FN void atomic_max(u32 *at, u32 x) { asm volatile("red.global.max.u32 [%0], %1;" ::"l"(at), "r"(x) : "memory"); }

template <class Phase> FN void phase(const Phase &run) {
    run(thread_index());
    __syncthreads();
}

#define KERNEL(name, Arguments, threads) extern "C" __global__ void __launch_bounds__(threads) hekaton_##name(const Arguments k)
#else
#define FN static inline
#define CALLED static
#define INLINE
#define ALIGNED
#define SHARED(type, name, count) static thread_local type name[count]

struct Position {
    u32 block, size;
};
static thread_local Position position;
FN u32 block_index() { return position.block; }
FN u32 block_size() { return position.size; }
FN u32 atomic_add(u32 *at, u32 x) {
    u32 before = *at;
    *at += x;
    return before;
}
FN void atomic_min(u32 *at, u32 x) { *at = *at > x ? x : *at; }
FN void atomic_max(u32 *at, u32 x) { *at = *at < x ? x : *at; }

template <class Phase> FN void phase(const Phase &run) {
    for (u32 thread = 0; thread < position.size; thread++) run(thread);
}

// On the host a kernel gets a pointer to its arguments and the sizes of grid and block.
#define KERNEL(name, Arguments, threads)                                                                                                   \
    static void name##_block(const Arguments &k);                                                                                          \
    extern "C" void hekaton_##name(const void *arguments, u32 blocks, u32 size) {                                                          \
        position.size = size;                                                                                                              \
        for (u32 block = 0; block < blocks; block++) {                                                                                     \
            position.block = block;                                                                                                        \
            name##_block(*(const Arguments *)arguments);                                                                                   \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static void name##_block(const Arguments &k)
#endif

// Runs `run` for each index below `count`, one index a thread, as all that a kernel does.
template <class Run> FN void each(u32 count, const Run &run) {
#if ON_DEVICE
    u32 i = block_index() * block_size() + thread_index();
    if (i < count) run(i);
#else
    u32 first = block_index() * block_size();
    for (u32 i = first; i < first + block_size() && i < count; i++) run(i);
#endif
}
