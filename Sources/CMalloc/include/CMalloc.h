// What <malloc.h> of glibc declares beyond C. Swift cannot import that header beside its own module of the C library.
#pragma once

#include <stddef.h>

/// The bytes that malloc has given out.
size_t semel_used_memory(void);

/// Gives the system all pages that malloc holds and nobody uses.
void semel_return_memory(void);
