#ifndef SEMEL_CZSTD_SHIM_H
#define SEMEL_CZSTD_SHIM_H
#include <zstd.h>
#endif
