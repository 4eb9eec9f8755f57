/*
 * auth.h: who may come in: the users of an auth-file.
 *
 * The file is memcached's: a line a user, `name:password`; empty lines are passed over. A check
 * takes the same time for every user and every wrong password: it is compared with every entry,
 * whole.
 *
 * Thread rule: load and destroy by anyone; check by any thread.
 */
#ifndef ROLLCALL_CONFIG_AUTH_H
#define ROLLCALL_CONFIG_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#define AUTH_USERS_MAX 64
#define AUTH_LINE_MAX  256 /* bytes of name, colon and password */
#define AUTH_FILE_MAX  (AUTH_USERS_MAX * (AUTH_LINE_MAX + 2))
#define AUTH_ERROR_MAX 512

struct auth;

/*
 * Reads the users of a file, or of its text. NULL with `error`, which names the file's line.
 * *exposed_mode: the file's permissions if they let every user of the machine read or write it,
 * else 0.
 */
struct auth *auth_load(const char *path, unsigned *exposed_mode, char error[AUTH_ERROR_MAX]);
struct auth *auth_parse_text(const char *text, size_t length, char error[AUTH_ERROR_MAX]);
void auth_destroy(struct auth *auth); /* NULL: no-op; what it held is wiped */

/* Writes the file's only user as text that logs in: "name password". False, with `error`: there are
 * more users, or the name has a blank. The caller wipes the text. */
bool auth_login(const struct auth *auth, char login[AUTH_LINE_MAX + 1], char error[AUTH_ERROR_MAX]);

bool auth_check(const struct auth *auth, const char *user, size_t user_length, const char *password,
                size_t password_length);

#endif
