#include "tools/rollcall/wire_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/tls.h"
#include "tools/rollcall/dial.h"

void wire_target_init(struct wire_target *target)
{
    const char *file = getenv(WIRE_AUTH_FILE);
    bool named = file != NULL && *file != '\0';

    *target = (struct wire_target){.auth_file = named ? memory_strdup(file) : NULL};
}

/* ---- files ---- */

static bool peer_read_login(struct wire_peer *peer, char error[WIRE_ERROR_MAX])
{
    FILE *file = fopen(peer->auth_file, "re");

    if (file == NULL) {
        return fail_with(error, WIRE_ERROR_MAX, "%.200s: %s", peer->auth_file, strerror(errno));
    }
    if (fgets(peer->login, sizeof(peer->login), file) == NULL) {
        peer->login[0] = '\0';
    }
    fclose(file);
    peer->login[strcspn(peer->login, "\r\n")] = '\0';
    if (strchr(peer->login, ':') == NULL) {
        return fail_with(error, WIRE_ERROR_MAX, "%.200s: its first line must be name:password",
                         peer->auth_file);
    }
    return true;
}

static bool peer_read_tls(struct wire_peer *peer, const struct wire_target *target,
                          char error[WIRE_ERROR_MAX])
{
    const struct net_tls_options options = {.certificate = target->tls_cert,
                                            .key = target->tls_key != NULL ? target->tls_key
                                                                           : target->tls_cert,
                                            .ca = target->tls_ca,
                                            .ca_system = target->tls_ca == NULL};
    char why[NET_TLS_ERROR_MAX];

    peer->tls = net_tls_context_create(&options, why);
    if (peer->tls == NULL) {
        snprintf(error, WIRE_ERROR_MAX, "%s", why);
    }
    return peer->tls != NULL;
}

static bool peer_ready(struct wire_peer *peer, const struct wire_target *target,
                       char error[WIRE_ERROR_MAX])
{
    bool files = target->tls_ca != NULL || target->tls_cert != NULL || target->tls_key != NULL;

    if (peer->auth_file != NULL && !peer_read_login(peer, error)) {
        return false;
    }
    if (files && !target->tls) {
        return fail_with(error, WIRE_ERROR_MAX, "--tls-ca, --tls-cert and --tls-key need --tls");
    }
    if (target->tls_key != NULL && target->tls_cert == NULL) {
        return fail_with(error, WIRE_ERROR_MAX, "--tls-key needs --tls-cert");
    }
    return peer->address[0] == '/' || !target->tls || peer_read_tls(peer, target, error);
}

struct wire_peer *wire_peer_create(const struct wire_target *target, const char *port,
                                   char error[WIRE_ERROR_MAX])
{
    struct wire_peer *peer = memory_zalloc(sizeof(*peer));

    peer->address = memory_strdup(target->server != NULL ? target->server : WIRE_SERVER);
    peer->port = memory_strdup(port);
    peer->auth_file = target->auth_file != NULL ? memory_strdup(target->auth_file) : NULL;
    dial_host(peer->address, peer->host, sizeof(peer->host));
    if (peer_ready(peer, target, error)) {
        return peer;
    }
    wire_peer_destroy(peer);
    return NULL;
}

void wire_peer_destroy(struct wire_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    explicit_bzero(peer->login, sizeof(peer->login));
    net_tls_context_release(peer->tls);
    free(peer->address);
    free(peer->port);
    free(peer->auth_file);
    free(peer);
}
