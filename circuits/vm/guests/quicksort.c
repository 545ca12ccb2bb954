// Sorts the private words: the output has their number, the smallest one, the median, the largest one, and a checksum of
// the sorted list.
#include "hekaton.h"

static void sort(u32 *list, int low, int high) {
    while (low < high) {
        u32 pivot = list[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (list[i] < pivot) i++;
            while (list[j] > pivot) j--;
            if (i <= j) {
                u32 other = list[i];
                list[i++] = list[j];
                list[j--] = other;
            }
        }
        // The shorter part by recursion, so that the stack stays small.
        if (j - low < high - i) {
            sort(list, low, j);
            low = i;
        } else {
            sort(list, i, high);
            high = j;
        }
    }
}

static u32 list[1 << 16];

int main(void) {
    u32 length;
    const u32 *words = (const u32 *)private_input(0, &length);
    u32 count = length / 4;
    if (count == 0 || count > sizeof list / sizeof *list || length % 4 != 0) return 1;
    memcpy(list, words, length);
    sort(list, 0, (int)count - 1);
    u32 sum = 0;
    for (u32 i = 0; i < count; i++) sum = sum * 31 + list[i];
    OUTPUT[0] = count;
    OUTPUT[1] = list[0];
    OUTPUT[2] = list[count / 2];
    OUTPUT[3] = list[count - 1];
    OUTPUT[4] = sum;
    return 0;
}
