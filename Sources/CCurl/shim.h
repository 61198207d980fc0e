#ifndef SEMEL_CCURL_SHIM_H
#define SEMEL_CCURL_SHIM_H
#include <curl/curl.h>
#endif
