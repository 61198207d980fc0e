#ifndef SEMEL_CZLIB_SHIM_H
#define SEMEL_CZLIB_SHIM_H
#include <zlib.h>

// A macro, which Swift does not import.
static inline int semel_inflate_init(z_stream *stream, int window_bits) {
  return inflateInit2(stream, window_bits);
}
#endif
