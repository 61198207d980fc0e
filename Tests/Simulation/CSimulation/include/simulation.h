#pragma once
#include <stdint.h>

// The clocks of the calling thread, in nanoseconds: its process sees these in the place of the machine's, as do all
// libraries that it has loaded.
void simulation_set_clocks(int64_t monotonic, int64_t boot, int64_t wall);

// Leaves the calling thread its real clocks, and the system's random numbers.
void simulation_end(void);

// Seeds the random numbers that the calling thread gets from the system.
void simulation_set_seed(uint64_t seed);

// Keeps the memory that worlds give back for those that follow: the kernel would clear it again each time.
void simulation_keep_memory(void);

// The machine's own monotonic clock, in nanoseconds.
int64_t simulation_real_time(void);
