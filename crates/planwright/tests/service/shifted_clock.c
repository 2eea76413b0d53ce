/* A clock that can be set for one process: the seconds in the file that CLOCK_SHIFT names are added
   to the time of day. Timers are as they were. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long shift(void) {
    const char *path = getenv("CLOCK_SHIFT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32];
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    return atoll(text);
}

int clock_gettime(clockid_t id, struct timespec *at) {
    int result = (int)syscall(SYS_clock_gettime, id, at);
    if (result == 0 && id == CLOCK_REALTIME) at->tv_sec += shift();
    return result;
}
