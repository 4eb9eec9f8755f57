/* settings_tls.c: the keys of tls: as a whole, and what they name. */
#include "config/settings_draft.h"

#include <stdio.h>
#include <string.h>

static const char group[] = "tls.";

/* TLS that was meant and is not on would be an open door, and -Z is easily forgotten. */
static void refuse_forgotten(struct settings_draft *draft)
{
    if (settings_draft_place(draft, "tls.enabled")->given) {
        return;
    }
    for (size_t i = 0; i < settings_top_rows.count; i++) {
        const char *name = settings_top_rows.rows[i].option.name;

        if (strncmp(name, group, strlen(group)) != 0 || !draft->top[i].given) {
            continue;
        }
        settings_error(draft, &draft->top[i],
                       "%s is given, and TLS is not enabled: say tls.enabled: yes (-Z) or no",
                       name);
        return;
    }
}

/* Most errors begin with the key whose value is at fault. */
static void settings_tls_refuse(struct settings_draft *draft, const char *error)
{
    char name[OPTIONS_NAME_MAX];

    snprintf(name, sizeof(name), "%s%.*s", group, (int)strcspn(error, " "), error);
    if (settings_rows_find(&settings_top_rows, name) < 0) {
        settings_error(draft, settings_draft_place(draft, "tls.enabled"), "tls: %s", error);
    } else {
        settings_error(draft, settings_draft_place(draft, name), "%s%s", group, error);
    }
}

static bool lacks(struct settings_draft *draft, const char *value, const char *name,
                  const char *option)
{
    if (value != NULL || settings_draft_place(draft, name)->bad) {
        return value == NULL;
    }
    settings_error(draft, settings_draft_place(draft, "tls.enabled"), "TLS needs %s (-o %s=FILE)",
                   name, option);
    return true;
}

static bool settings_tls_complete(struct settings_draft *draft)
{
    const struct settings *settings = draft->settings;
    bool lacking = lacks(draft, settings->tls.certificate, "tls.certificate", "ssl_chain_cert");

    lacking = lacks(draft, settings->tls.key, "tls.key", "ssl_key") || lacking;
    if (settings->tls.verify == SETTINGS_VERIFY_NONE || settings->tls.ca != NULL) {
        return !lacking;
    }
    settings_error(draft, settings_draft_place(draft, "tls.verify"),
                   "tls.verify needs tls.ca (-o ssl_ca_cert=FILE): who signs clients' "
                   "certificates");
    return false;
}

bool settings_tls_verifies(const struct settings *settings)
{
    return settings->tls.enabled && settings->tls.verify >= SETTINGS_VERIFY_REQUIRE;
}

void settings_tls_check(struct settings_draft *draft)
{
    static const enum net_tls_verify verify[] = {
        [SETTINGS_VERIFY_NONE] = NET_TLS_VERIFY_NONE,
        [SETTINGS_VERIFY_REQUEST] = NET_TLS_VERIFY_REQUEST,
        [SETTINGS_VERIFY_REQUIRE] = NET_TLS_VERIFY_REQUIRE,
        [SETTINGS_VERIFY_ONCE] = NET_TLS_VERIFY_REQUIRE,
    };
    struct settings *settings = draft->settings;
    const struct net_tls_options options = {
        .certificate = settings->tls.certificate,
        .key = settings->tls.key,
        .key_der = settings->tls.key_format == SETTINGS_KEY_DER,
        .ca = settings->tls.ca,
        .ciphers = settings->tls.ciphers,
        .verify = verify[settings->tls.verify],
        .version_min = settings->tls.version_min,
    };
    char error[NET_TLS_ERROR_MAX];

    if (!settings->tls.enabled) {
        refuse_forgotten(draft);
        return;
    }
    if (!settings_tls_complete(draft)) {
        return;
    }
    settings->tls.context = net_tls_context_create(&options, error);
    if (settings->tls.context == NULL) {
        settings_tls_refuse(draft, error);
    }
}
