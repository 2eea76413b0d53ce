/* A disk whose n-th operation fails, preloaded into the program under test.
 *
 * FAULTY_DIR names the directory whose files are concerned, FAULTY_KIND what happens to an operation: "eio",
 * "enospc" and "erofs" fail a write, "short" writes half of it, "sync" fails an fsync with EIO. FAULTY_AT is the
 * number of the operation, counted from 1 over those of this kind; with FAULTY_ON every later one fails too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static long passed;

static int is_kind(const char *kind) {
    const char *given = getenv("FAULTY_KIND");
    return given && strcmp(given, kind) == 0;
}

static int concerned(int fd) {
    char link[64], path[4096];
    const char *dir = getenv("FAULTY_DIR");
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (n <= 0 || !dir) return 0;
    path[n] = 0;
    return strstr(path, dir) != NULL;
}

/* Counts an operation, and returns whether it is one that fails. */
static int is_its_turn(int fd) {
    const char *at = getenv("FAULTY_AT");
    if (!at || !concerned(fd)) return 0;
    long number = __atomic_add_fetch(&passed, 1, __ATOMIC_SEQ_CST);
    return getenv("FAULTY_ON") ? number >= atol(at) : number == atol(at);
}

/* Returns how much of a write of n bytes is made, and -1 if it fails. */
static ssize_t allowed(int fd, size_t n) {
    if (is_kind("sync") || !is_its_turn(fd)) return (ssize_t)n;
    if (is_kind("short")) return n > 1 ? (ssize_t)(n / 2) : (ssize_t)n;
    errno = is_kind("enospc") ? ENOSPC : is_kind("erofs") ? EROFS : EIO;
    return -1;
}

static int sync_fails(int fd) {
    if (!is_kind("sync") || !is_its_turn(fd)) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *b, size_t n) {
    ssize_t some = allowed(fd, n);
    return some < 0 ? -1 : REAL(write)(fd, b, (size_t)some);
}
ssize_t writev(int fd, const struct iovec *v, int n) {
    return allowed(fd, 0) < 0 ? -1 : REAL(writev)(fd, v, n);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) {
    ssize_t some = allowed(fd, n);
    return some < 0 ? -1 : REAL(pwrite)(fd, b, (size_t)some, at);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
    ssize_t some = allowed(fd, n);
    return some < 0 ? -1 : REAL(pwrite64)(fd, b, (size_t)some, at);
}
int fsync(int fd) { return sync_fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return sync_fails(fd) ? -1 : REAL(fdatasync)(fd); }
