/* settings.c: the configuration of a run, from argv to a checked value. */
#include "config/settings.h"

#include <stdlib.h>
#include <string.h>

#include "config/auth.h"
#include "config/settings_draft.h"

void settings_destroy(struct settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; i < settings_top_rows.count; i++) {
        options_clear(&settings_top_rows.rows[i].option, settings);
    }
    for (size_t i = 0; i < settings->listen_count; i++) {
        free(settings->listen[i]);
    }
    if (settings->replication.login != NULL) {
        explicit_bzero(settings->replication.login, strlen(settings->replication.login));
        free(settings->replication.login);
    }
    auth_destroy(settings->auth);
    auth_destroy(settings->admin_auth);
    net_tls_context_release(settings->tls.context);
    free(settings);
}

/* Wishes that need no configuration. */
static bool grant_at_once(enum settings_wish wish, FILE *out)
{
    switch (wish) {
    case WISH_USAGE:
        settings_print_usage(out);
        return true;
    case WISH_HELP:
        settings_print_help(out);
        return true;
    case WISH_VERSION:
        settings_print_version(out);
        return true;
    case WISH_LICENSE:
        settings_print_license(out);
        return true;
    case WISH_PRINT_SAMPLE:
        settings_print_sample(out);
        return true;
    case WISH_PRINT_MAN:
        settings_print_man(out);
        return true;
    case WISH_PRINT_MAN_YAML:
        settings_print_man_yaml(out);
        return true;
    default:
        return false;
    }
}

/* Wishes that need a good one. */
static bool grant_when_good(enum settings_wish wish, const struct settings_draft *draft, FILE *out)
{
    switch (wish) {
    case WISH_CHECK_CONFIG:
        fprintf(out, "%s is good\n", draft->file_name);
        settings_memory_sum(draft->settings, out);
        return true;
    case WISH_PRINT_CONFIG:
        settings_print_config(draft->settings, out);
        return true;
    default:
        return false;
    }
}

enum settings_action settings_load(int argc, char **argv, FILE *out, FILE *err,
                                   struct settings **settings)
{
    struct settings_draft *draft = settings_draft_create();
    enum settings_action action = SETTINGS_EXIT_OK;
    enum settings_wish wish = settings_flags_read(draft, argc, argv);

    *settings = NULL;
    if (grant_at_once(wish, out)) {
        goto done;
    }
    settings_check(draft);
    settings_errors_print(draft, err);
    if (draft->error_count > 0) {
        action = SETTINGS_EXIT_ERROR;
        goto done;
    }
    if (!grant_when_good(wish, draft, out)) {
        *settings = settings_draft_take(draft);
        action = SETTINGS_RUN;
    }
done:
    settings_draft_destroy(draft);
    return action;
}

struct settings *settings_reload(int argc, char **argv, FILE *err)
{
    struct settings_draft *draft = settings_draft_create();
    struct settings *settings = NULL;

    settings_flags_read(draft, argc, argv);
    settings_check(draft);
    settings_errors_print(draft, err);
    if (draft->error_count == 0) {
        settings = settings_draft_take(draft);
    }
    settings_draft_destroy(draft);
    return settings;
}
