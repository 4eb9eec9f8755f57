#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"

bool process_user_allowed(const char *user)
{
    if (geteuid() != 0 || user != NULL) {
        return true;
    }
    log_error("not as root: say which user to become, e.g. -u nobody");
    return false;
}

bool process_raise_descriptors(uint64_t wanted, uint64_t *allowed)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_error("cannot read the limit of open files: %s", strerror(errno));
        return false;
    }
    uint64_t may =
        limit.rlim_max < PROCESS_DESCRIPTORS_MOST ? limit.rlim_max : PROCESS_DESCRIPTORS_MOST;

    wanted = wanted > may ? wanted : may;
    *allowed = limit.rlim_cur;
    if (*allowed >= wanted) {
        return true;
    }
    struct rlimit raised = {.rlim_cur = wanted,
                            .rlim_max = limit.rlim_max > wanted ? limit.rlim_max : wanted};

    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        *allowed = wanted;
        return true;
    }
    raised.rlim_max = limit.rlim_max; /* not root: as far as it goes */
    raised.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        *allowed = raised.rlim_cur;
    }
    return true;
}

bool process_allow_core(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit(RLIMIT_CORE, &limit) == 0) {
        return true;
    }
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        if (limit.rlim_max > 0 && setrlimit(RLIMIT_CORE, &limit) == 0) {
            return true;
        }
    }
    log_error("-r: core files are not allowed here");
    return false;
}

void process_lock_memory(void)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || !memory_lock_all()) {
        log_warning("-k: memory is not locked: %s", strerror(errno));
    }
}

void process_refuse_privileges(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        log_warning("programs it might start could get more rights than it has: %s",
                    strerror(errno));
    }
}

bool process_becomes(const char *user, uid_t *uid, gid_t *gid)
{
    const struct passwd *entry = geteuid() == 0 && user != NULL ? getpwnam(user) : NULL;

    if (entry != NULL) {
        *uid = entry->pw_uid;
        *gid = entry->pw_gid;
    }
    return entry != NULL;
}

bool process_drop_to(const char *user)
{
    if (geteuid() != 0 || user == NULL) {
        return true;
    }
    const struct passwd *entry = getpwnam(user);

    if (entry == NULL) {
        log_error("-u %s: there is no such user", user);
        return false;
    }
    if (setgroups(1, &entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 ||
        setuid(entry->pw_uid) != 0) {
        log_error("-u %s: cannot become this user: %s", user, strerror(errno));
        return false;
    }
    if (entry->pw_uid != 0 && setuid(0) == 0) {
        log_error("-u %s: it could become root again", user);
        return false;
    }
    return true;
}

bool process_as(const char *user)
{
    if (geteuid() != 0 || user == NULL) {
        return true;
    }
    const struct passwd *entry = getpwnam(user);

    if (entry == NULL) {
        log_error("-u %s: there is no such user", user);
        return false;
    }
    if (setegid(entry->pw_gid) == 0 && seteuid(entry->pw_uid) == 0) {
        return true;
    }
    log_error("-u %s: cannot become this user: %s", user, strerror(errno));
    process_as_root();
    return false;
}

void process_as_root(void)
{
    if (getuid() == 0) {
        CHECK(seteuid(0) == 0 && setegid(0) == 0);
    }
}

bool process_write_pidfile(const char *path)
{
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        log_error("pidfile %s: %s", path, strerror(errno));
        return false;
    }
    bool written = fprintf(file, "%ld\n", (long)getpid()) > 0;

    if (fclose(file) != 0 || !written) {
        log_error("pidfile %s: cannot be written", path);
        return false;
    }
    return true;
}

void process_remove_pidfile(const char *path)
{
    if (path != NULL && unlink(path) != 0) {
        log_debug("pidfile %s stays: %s", path, strerror(errno)); /* the user may not remove it */
    }
}

/* The parent: waits for the child's byte, or its end. */
__attribute__((noreturn)) static void wait_for_child(int fd)
{
    char byte;
    ssize_t got;

    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    _exit(got == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

bool process_background(int *ready_fd)
{
    int pipes[2];

    if (pipe2(pipes, O_CLOEXEC) != 0) {
        log_error("cannot make a pipe: %s", strerror(errno));
        return false;
    }
    pid_t child = fork();

    if (child < 0) {
        log_error("cannot fork: %s", strerror(errno));
        close(pipes[0]);
        close(pipes[1]);
        return false;
    }
    if (child > 0) {
        close(pipes[1]);
        wait_for_child(pipes[0]);
    }
    close(pipes[0]);
    setsid();
    *ready_fd = pipes[1];
    return true;
}

void process_background_ready(int ready_fd)
{
    if (ready_fd < 0) {
        return;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    log_to_syslog();
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        dup2(null, fd);
    }
    if (null > STDERR_FILENO) {
        close(null);
    }
    ssize_t sent = write(ready_fd, "", 1);

    (void)sent; /* a parent that was killed hears nothing */
    close(ready_fd);
}
