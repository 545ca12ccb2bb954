// A second file that includes hekaton.h.
#include "hekaton.h"
#include <string.h>

u32 crc32(const char *text) {
    char copy[16];
    memcpy(copy, text, strlen(text) + 1);
    u32 crc = 0xffffffff;
    for (char *c = copy; *c; c++) {
        crc ^= (unsigned char)*c;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}
