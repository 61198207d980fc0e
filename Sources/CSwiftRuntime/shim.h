#ifndef SEMEL_CSWIFTRUNTIME_SHIM_H
#define SEMEL_CSWIFTRUNTIME_SHIM_H
#include <stdbool.h>

// A flag of Swift's runtime (include/swift/Runtime/Exclusivity.h). While true, no access is tracked.
extern bool _swift_disableExclusivityChecking;

static inline void semel_disableExclusivityChecking(void) { _swift_disableExclusivityChecking = true; }

#endif
