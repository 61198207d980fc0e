#include "CICUData.h"

#ifdef SEMEL_WITHOUT_ICU_DATA
__attribute__((aligned(16))) const struct icu_package icudt76_dat = {
    .head_size = 32,
    .magic = {0xda, 0x27},
    .description_size = 20,
    .is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
    .size_of_char = 2,
    .format = {'C', 'm', 'n', 'D'},
    .format_version = {1},
};
#endif
