#include "CMalloc.h"

#include <malloc.h>

size_t semel_used_memory(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void semel_return_memory(void) { malloc_trim(0); }
