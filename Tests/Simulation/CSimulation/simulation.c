// The system's clocks and random numbers as a simulation has them.
//
// The linker binds the program and the libraries that it loads to the functions of this file instead of the C
// library's. Only the thread that has begun a simulation is served so: others keep the machine's.
#define _GNU_SOURCE
#include "simulation.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

static _Thread_local int is_simulated;
static _Thread_local int64_t monotonic_time, boot_time, wall_time;
static _Thread_local uint64_t random_state;

static long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "the simulation knows the system calls of x86-64 and AArch64"
#endif
}

static long checked(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

static uint64_t next_random(void) {
  uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static void fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  while (count > 0) {
    uint64_t word = next_random();
    size_t part = count < sizeof word ? count : sizeof word;
    memcpy(next, &word, part);
    next += part;
    count -= part;
  }
}

void simulation_set_clocks(int64_t monotonic, int64_t boot, int64_t wall) {
  monotonic_time = monotonic;
  boot_time = boot;
  wall_time = wall;
  is_simulated = 1;
}

void simulation_keep_memory(void) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void simulation_end(void) { is_simulated = 0; }

void simulation_set_seed(uint64_t seed) { random_state = seed; }

static int real_clock(clockid_t clock, struct timespec *time) {
  return (int)checked(raw_syscall(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0));
}

int64_t simulation_real_time(void) {
  struct timespec time = {0, 0};
  real_clock(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!is_simulated) return real_clock(clock, time);
  int64_t now;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: now = wall_time; break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW: now = monotonic_time; break;
    case CLOCK_BOOTTIME: now = boot_time; break;
    default: return real_clock(clock, time);
  }
  time->tv_sec = now / 1000000000;
  time->tv_nsec = now % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

ssize_t getrandom(void *bytes, size_t count, unsigned int flags) {
  if (!is_simulated) return checked(raw_syscall(SYS_getrandom, (long)bytes, (long)count, flags, 0, 0, 0));
  fill(bytes, count);
  return (ssize_t)count;
}

int getentropy(void *bytes, size_t count) {
  while (count > 0) {
    ssize_t got = getrandom(bytes, count, 0);
    if (got < 0) return -1;
    bytes = (char *)bytes + got;
    count -= (size_t)got;
  }
  return 0;
}

// Swift's generator calls the kernel by this.
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long values[6];
  for (int i = 0; i < 6; i++) values[i] = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_getrandom) return getrandom((void *)values[0], (size_t)values[1], (unsigned int)values[2]);
  return checked(raw_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]));
}
