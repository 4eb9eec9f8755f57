#include "config/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/memory.h"

/* "name:password", then zeros, so that all entries take the same time to compare. */
struct entry {
    char text[AUTH_LINE_MAX];
    size_t length;
};

struct auth {
    size_t count;
    struct entry entries[AUTH_USERS_MAX];
};

static bool auth_refuse(char error[AUTH_ERROR_MAX], size_t line, const char *what)
{
    return fail_with(error, AUTH_ERROR_MAX, "line %zu: %s", line, what);
}

static bool auth_add(struct auth *auth, const char *text, size_t length, size_t line,
                     char error[AUTH_ERROR_MAX])
{
    const char *colon = memchr(text, ':', length);

    if (length > AUTH_LINE_MAX) {
        return auth_refuse(error, line, "longer than 256 bytes");
    }
    if (colon == NULL || colon == text) {
        return auth_refuse(error, line, "not name:password");
    }
    if (memchr(text, '\0', length) != NULL) {
        return auth_refuse(error, line, "has a zero byte");
    }
    if (auth->count == AUTH_USERS_MAX) {
        return auth_refuse(error, line, "more than 64 users");
    }
    struct entry *entry = &auth->entries[auth->count++];

    memcpy(entry->text, text, length);
    entry->length = length;
    return true;
}

struct auth *auth_parse_text(const char *text, size_t length, char error[AUTH_ERROR_MAX])
{
    struct auth *auth = memory_zalloc(sizeof(*auth));
    const char *end = text + length;

    for (size_t line = 1; text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;
        size_t bytes = (size_t)(stop - text);

        if (bytes > 0 && text[bytes - 1] == '\r') {
            bytes--;
        }
        if (bytes > 0 && !auth_add(auth, text, bytes, line, error)) {
            auth_destroy(auth);
            return NULL;
        }
        text = newline != NULL ? newline + 1 : end;
    }
    if (auth->count == 0) {
        snprintf(error, AUTH_ERROR_MAX, "no user: a line is name:password");
        auth_destroy(auth);
        return NULL;
    }
    return auth;
}

static unsigned exposed_mode_of(int fd)
{
    struct stat file;

    return fstat(fd, &file) == 0 && (file.st_mode & (S_IROTH | S_IWOTH)) != 0 ? file.st_mode & 07777
                                                                              : 0;
}

struct auth *auth_load(const char *path, unsigned *exposed_mode, char error[AUTH_ERROR_MAX])
{
    struct auth *auth = NULL;
    FILE *file = fopen(path, "re");

    *exposed_mode = 0;
    if (file == NULL) {
        snprintf(error, AUTH_ERROR_MAX, "%s: %s", path, strerror(errno));
        return NULL;
    }
    *exposed_mode = exposed_mode_of(fileno(file));
    char *text = memory_zalloc(AUTH_FILE_MAX + 1);
    char why[AUTH_ERROR_MAX];
    size_t length = fread(text, 1, AUTH_FILE_MAX + 1, file);

    if (ferror(file)) {
        snprintf(error, AUTH_ERROR_MAX, "%s: %s", path, strerror(errno));
    } else if (length > AUTH_FILE_MAX) {
        snprintf(error, AUTH_ERROR_MAX, "%s: larger than %d bytes", path, AUTH_FILE_MAX);
    } else {
        auth = auth_parse_text(text, length, why);
        if (auth == NULL) {
            snprintf(error, AUTH_ERROR_MAX, "%.128s: %.256s", path, why);
        }
    }
    explicit_bzero(text, AUTH_FILE_MAX + 1);
    free(text);
    fclose(file);
    return auth;
}

void auth_destroy(struct auth *auth)
{
    if (auth != NULL) {
        explicit_bzero(auth, sizeof(*auth));
        free(auth);
    }
}

bool auth_login(const struct auth *auth, char login[AUTH_LINE_MAX + 1], char error[AUTH_ERROR_MAX])
{
    const struct entry *entry = &auth->entries[0];
    const char *colon = memchr(entry->text, ':', entry->length);
    size_t name_length = (size_t)(colon - entry->text);

    if (auth->count != 1) {
        return fail_with(error, AUTH_ERROR_MAX, "has %zu users: one is needed", auth->count);
    }
    if (memchr(entry->text, ' ', name_length) != NULL) {
        return fail_with(error, AUTH_ERROR_MAX, "has a user with a blank in its name");
    }
    memcpy(login, entry->text, entry->length);
    login[name_length] = ' ';
    login[entry->length] = '\0';
    return true;
}

bool auth_check(const struct auth *auth, const char *user, size_t user_length, const char *password,
                size_t password_length)
{
    struct entry given = {.length = user_length + 1 + password_length};
    unsigned right = 0;

    if (user_length >= AUTH_LINE_MAX || password_length >= AUTH_LINE_MAX ||
        given.length > AUTH_LINE_MAX || memchr(user, ':', user_length) != NULL) {
        return false;
    }
    memcpy(given.text, user, user_length);
    given.text[user_length] = ':';
    memcpy(given.text + user_length + 1, password, password_length);
    for (size_t i = 0; i < auth->count; i++) {
        unsigned different = auth->entries[i].length != given.length;

        for (size_t at = 0; at < AUTH_LINE_MAX; at++) {
            different |= (unsigned char)(auth->entries[i].text[at] ^ given.text[at]);
        }
        right |= different == 0;
    }
    explicit_bzero(&given, sizeof(given));
    return right != 0;
}
