#include "tls_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct tls_rig tls_rig;
const char *const tls_any_port[1] = {"127.0.0.1:0"};

int tls_rig_make(void **unused)
{
    struct tls_rig *rig = &tls_rig;
    (void)unused;
    strcpy(rig->folder, "/tmp/test_net_tls.XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    tls_party_init(&rig->ca, rig->folder, "ca", NULL);
    tls_party_init(&rig->server, rig->folder, "server", &rig->ca);
    tls_party_init(&rig->renewed, rig->folder, "renewed", &rig->ca);
    tls_party_init(&rig->client, rig->folder, "client", &rig->ca);
    tls_party_init(&rig->other_ca, rig->folder, "other_ca", NULL);
    tls_party_init(&rig->stranger, rig->folder, "stranger", &rig->other_ca);
    return 0;
}

int tls_rig_delete(void **unused)
{
    struct tls_rig *rig = &tls_rig;
    struct tls_party *const all[] = {&rig->ca,     &rig->server,   &rig->renewed,
                                     &rig->client, &rig->other_ca, &rig->stranger};
    (void)unused;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        tls_party_fini(all[i]);
    }
    assert_int_equal(rmdir(rig->folder), 0);
    return 0;
}

struct net_tls_context *tls_context_of(const struct tls_party *party, enum net_tls_verify verify)
{
    const struct net_tls_options options = {.certificate = party->certificate,
                                            .key = party->key,
                                            .ca = tls_rig.ca.certificate,
                                            .verify = verify};
    char error[NET_TLS_ERROR_MAX];
    struct net_tls_context *context = net_tls_context_create(&options, error);
    assert_non_null(context);
    return context;
}

void tls_start(struct echo *echo, struct net_options *options, enum net_tls_verify verify)
{
    options->tls = tls_context_of(&tls_rig.server, verify);
    assert_true(echo_start(echo, options));
    net_tls_context_release(options->tls); /* net has its own */
    assert_true(net_address_tls(echo->net, options->address_count - 1));
}

void tls_start_usual(struct echo *echo)
{
    struct net_options options = echo_options(echo, tls_any_port);
    tls_start(echo, &options, NET_TLS_VERIFY_NONE);
}

void tls_open_peer(const struct echo *echo, struct tls_peer *peer)
{
    tls_peer_init(peer, client_open(echo), &tls_rig.ca, NULL);
    assert_true(tls_peer_agree(peer));
}
