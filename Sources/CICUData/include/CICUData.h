// An empty package of the data of ICU, which Foundation brings along: 34 MB, a third of a binary.
//
// The data are names of languages, calendars, currencies and time zones, collations, and code pages. Semel reads none of
// them: without them a `DateFormatter` ends the process and a URL has no international host, while regular expressions,
// cases, numbers and ISO 8601 work. `deploy/checks/tidy` keeps formatters and locales out of the
// modules. With a symbol of this name the linker
// does not take the one of the static library. Other versions of Foundation name theirs otherwise, and link it.
#pragma once

#include <stdint.h>

/// The head of a package, as `udata.h` of ICU describes it, and an empty table of contents.
struct icu_package {
  uint16_t head_size;
  uint8_t magic[2];
  uint16_t description_size, reserved;
  uint8_t is_big_endian, charset_family, size_of_char, reserved_too;
  uint8_t format[4], format_version[4], data_version[4];
  uint8_t padding[8];
  uint32_t count;
  uint32_t end[3];
};

#ifdef SEMEL_WITHOUT_ICU_DATA
extern const struct icu_package icudt76_dat;
#endif
