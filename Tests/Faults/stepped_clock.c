// A wall clock that a test sets: preloaded into a process, it adds an offset in seconds to the system's time, read from
// the file that STEPPED_CLOCK names. If a second number follows there, the clock stands still at that time, in
// microseconds since 1970.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(0, 2 * sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) offset = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int code = syscall(SYS_clock_gettime, clock, now);
  if (code || clock != CLOCK_REALTIME || !offset) return code;
  int64_t stands = offset[1];
  if (stands) {
    now->tv_sec = stands / 1000000;
    now->tv_nsec = stands % 1000000 * 1000;
  } else {
    now->tv_sec += *offset;
  }
  return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  int code = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return code;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
