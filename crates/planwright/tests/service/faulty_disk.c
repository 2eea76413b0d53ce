/* A disk that fails on demand, preloaded into the program under test.
 *
 * FAULTY_DIR names the directory whose files are concerned. The first word of the file FAULTY_ORDER says
 * what fails: "full" lets every write fail with ENOSPC, "sync" every fsync with EIO, "readonly" every write
 * with EROFS, "pipes" every pipe, of any program, with EMFILE. Anything else, or no such file: nothing fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int ordered(const char *order) {
    const char *path = getenv("FAULTY_ORDER");
    char word[16] = {0};
    if (!path) return 0;
    int saved = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = syscall(SYS_read, fd, word, sizeof word - 1);
        (void)n;
        syscall(SYS_close, fd);
    }
    errno = saved;
    return strncmp(word, order, strlen(order)) == 0;
}

static int concerned_path(const char *path) {
    const char *dir = getenv("FAULTY_DIR");
    return dir && path && strstr(path, dir) != NULL;
}

static int concerned(int fd) {
    char link[64], path[4096];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (n <= 0) return 0;
    path[n] = 0;
    return concerned_path(path);
}

static int write_fails(int fd) {
    if (!concerned(fd)) return 0;
    if (ordered("full")) { errno = ENOSPC; return 1; }
    if (ordered("readonly")) { errno = EROFS; return 1; }
    return 0;
}

static int sync_fails(int fd) {
    if (!concerned(fd) || !ordered("sync")) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *b, size_t n) { return write_fails(fd) ? -1 : REAL(write)(fd, b, n); }
ssize_t writev(int fd, const struct iovec *v, int n) { return write_fails(fd) ? -1 : REAL(writev)(fd, v, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) { return write_fails(fd) ? -1 : REAL(pwrite)(fd, b, n, at); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) { return write_fails(fd) ? -1 : REAL(pwrite64)(fd, b, n, at); }
int pipe2(int fds[2], int flags) {
    if (ordered("pipes")) { errno = EMFILE; return -1; }
    return REAL(pipe2)(fds, flags);
}
int fsync(int fd) { return sync_fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return sync_fails(fd) ? -1 : REAL(fdatasync)(fd); }
