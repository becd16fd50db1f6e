/* A clock that can be set: preloaded into a program, it moves the time of day by as many milliseconds as the file says
 * that SKEW_FILE names. The monotonic clock stays as it is. It allocates nothing and takes no lock, because allocators
 * ask for the time before they are ready. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skew(void)
{
    static int file = -2;
    char text[24] = {0};
    if (file == -2) {
        const char *name = getenv("SKEW_FILE");
        file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    }
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0)
        return 0;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long nanoseconds = now->tv_nsec + (skew() % 1000) * 1000000L;
        now->tv_sec += skew() / 1000 + (nanoseconds < 0 ? -1 : nanoseconds / 1000000000L);
        now->tv_nsec = nanoseconds < 0 ? nanoseconds + 1000000000L : nanoseconds % 1000000000L;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &time) != 0)
        return -1;
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now)
        *now = time.tv_sec;
    return time.tv_sec;
}
