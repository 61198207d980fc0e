#ifndef SEMEL_CHIREDIS_SHIM_H
#define SEMEL_CHIREDIS_SHIM_H
#include <stdlib.h>
#include <hiredis/hiredis.h>
#endif
