#include "base/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"

void notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (path == NULL || (path[0] != '/' && path[0] != '@') ||
        strlen(path) >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* the abstract name space */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return;
    }
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));

    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0) {
        log_warning("NOTIFY_SOCKET %s: %s", path, strerror(errno));
    }
    close(fd);
}

static bool read_number(const char *name, uint64_t *number)
{
    const char *text = getenv(name);

    return text != NULL && num_parse(text, strlen(text), number);
}

uint64_t notify_watchdog_us(void)
{
    uint64_t us = 0, pid;

    if (!read_number("WATCHDOG_USEC", &us) ||
        (read_number("WATCHDOG_PID", &pid) && pid != (uint64_t)getpid())) {
        return 0;
    }
    return us;
}
