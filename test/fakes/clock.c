/**
 * A wall clock for workerd in tests: loaded before the C library, it adds GSV_CLOCK_AHEAD_S seconds to the time of day. Durations are
 * measured by other clocks and stay as they are. See test/e2e/clock.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long long ahead(void) {
  static long long seconds = -1;
  if (seconds < 0) {
    const char *text = getenv("GSV_CLOCK_AHEAD_S");
    seconds = text ? atoll(text) : 0;
  }
  return seconds;
}
int clock_gettime(clockid_t id, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(id, at);
  if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += ahead();
  return status;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int status = real(at, zone);
  if (status == 0 && at) at->tv_sec += ahead();
  return status;
}
time_t time(time_t *out) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (out) *out = at.tv_sec;
  return at.tv_sec;
}
