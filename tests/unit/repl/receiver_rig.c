#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiver_rig.h"

/* ---- the data directory ---- */

struct fake fake;

void data_position(struct data *data, struct data_position *position)
{
    (void)data;
    pthread_mutex_lock(&fake.lock);
    *position = fake.position;
    pthread_mutex_unlock(&fake.lock);
}

bool data_take_stream(struct data *data, const uint64_t stream[MANIFEST_STREAM_WORDS],
                      char error[DATA_ERROR_MAX])
{
    (void)data;
    (void)error;
    pthread_mutex_lock(&fake.lock);
    memcpy(fake.position.stream, stream, sizeof(fake.position.stream));
    pthread_mutex_unlock(&fake.lock);
    return true;
}

bool data_has_memory(const struct data *data, const struct manifest *manifest,
                     char error[DATA_ERROR_MAX])
{
    (void)data;
    assert_non_null(manifest);
    snprintf(error, DATA_ERROR_MAX, "too little memory");
    return !atomic_load(&fake.little_memory);
}

/* At most 24 bytes a call. */
enum data_taken data_take(struct data *data, uint64_t lsn, const void *bytes, size_t length,
                          size_t *taken, char error[DATA_ERROR_MAX])
{
    (void)data;
    pthread_mutex_lock(&fake.lock);
    enum data_taken result = fake.result;

    *taken = 0;
    fake.takes++;
    assert_int_equal(lsn, fake.position.lsn);
    if (fake.no_room > 0) {
        fake.no_room--;
        memcpy(error, fake.why, sizeof(fake.why));
        result = DATA_NO_ROOM;
    } else if (result == DATA_TAKEN) {
        *taken = length < 24 ? length : 24;
        memcpy(fake.taken + (lsn - RIG_LSN), bytes, *taken);
        fake.position.lsn += *taken;
    } else {
        snprintf(error, DATA_ERROR_MAX, "the record at LSN %llu has another checksum",
                 (unsigned long long)lsn);
    }
    pthread_mutex_unlock(&fake.lock);
    return result;
}

uint64_t data_applied(const struct data *data)
{
    (void)data;
    return atomic_load(&fake.applied);
}

bool data_sum(struct data *data, uint64_t from, uint64_t lsn, uint64_t *sum)
{
    (void)data;
    assert_true(from <= lsn);
    *sum = fake.sum;
    return fake.has_sum;
}

enum data_rewind data_can_rewind(struct data *data, uint64_t lsn)
{
    (void)data;
    (void)lsn;
    return fake.rewind;
}

bool data_has_room(struct data *data, bool starts, char error[DATA_ERROR_MAX])
{
    (void)data;
    assert_true(starts);
    snprintf(error, DATA_ERROR_MAX, "the disk is full");
    return !atomic_load(&fake.full);
}

struct vfs *data_vfs(const struct data *data)
{
    (void)data;
    return vfs_real();
}

struct journal *data_journal(struct data *data)
{
    return (struct journal *)data;
}

/* What was taken and is not written yet is part of it. */
uint64_t journal_head(const struct journal *journal)
{
    (void)journal;
    pthread_mutex_lock(&fake.lock);
    uint64_t head = fake.position.lsn;

    pthread_mutex_unlock(&fake.lock);
    return head;
}

uint64_t journal_written(const struct journal *journal)
{
    (void)journal;
    return atomic_load(&fake.written);
}

uint64_t journal_durable(const struct journal *journal)
{
    (void)journal;
    return atomic_load(&fake.durable);
}

static void begin_again(void *context, uint64_t cut_lsn, bool copied)
{
    assert_ptr_equal(context, &fake);
    fake.cut_lsn = cut_lsn;
    fake.copied = copied;
    atomic_store(&fake.again, true);
}

static void count_copy(void *context)
{
    assert_ptr_equal(context, &fake);
    atomic_fetch_add(&fake.copies, 1);
}

/* ---- the leader ---- */

struct rig rig;

int rig_begin(void **state)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(name);

    (void)state;
    memset(&rig, 0, sizeof(rig));
    memset(&fake, 0, sizeof(fake));
    pthread_mutex_init(&fake.lock, NULL);
    fake.position = (struct data_position){{7, 11}, 3, RIG_LSN};
    fake.written = fake.durable = fake.applied = RIG_LSN;
    rig.fd = -1;
    rig.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(rig.listener >= 0);
    assert_int_equal(bind(rig.listener, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(rig.listener, 8), 0);
    assert_int_equal(getsockname(rig.listener, (struct sockaddr *)&name, &length), 0);
    snprintf(rig.address, sizeof(rig.address), "127.0.0.1:%u", ntohs(name.sin_port));
    strcpy(rig.directory, "/tmp/test_receiver.XXXXXX");
    assert_non_null(mkdtemp(rig.directory));
    rig.settings = calloc(1, sizeof(*rig.settings));
    rig.settings->data = rig.directory;
    rig.settings->replication.follow = rig.address;
    rig.settings->replication.name = (char *)"two";
    rig.settings->replication.group = (char *)"rollcall";
    return 0;
}

void rig_hang_up(void)
{
    if (rig.fd >= 0) {
        close(rig.fd);
    }
    rig.fd = -1;
}

int rig_end(void **state)
{
    char command[128];

    (void)state;
    rig_hang_up();
    repl_receiver_stop(rig.receiver);
    repl_receiver_destroy(rig.receiver);
    close(rig.listener);
    free(rig.settings);
    snprintf(command, sizeof(command), "rm -r %s", rig.directory);
    return system(command);
}

void rig_go(void)
{
    const struct repl_receiver_owner owner = {
        .context = &fake, .again = begin_again, .copies = count_copy};

    rig.receiver = repl_receiver_create(rig.settings, (struct data *)&fake, &owner);
    assert_non_null(rig.receiver);
    assert_true(repl_receiver_start(rig.receiver));
}

void rig_pick_up(void)
{
    const struct timeval patience = {.tv_sec = RIG_ANSWER_S};

    rig_hang_up();
    rig.length = 0;
    assert_int_equal(setsockopt(rig.listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
                     0);
    rig.fd = accept(rig.listener, NULL, NULL);
    assert_true(rig.fd >= 0);
    assert_int_equal(setsockopt(rig.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
}

void rig_say_bytes(const void *bytes, size_t length)
{
    assert_int_equal(send(rig.fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

__attribute__((format(printf, 1, 2))) void rig_say(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text) - 2, format, arguments);

    va_end(arguments);
    memcpy(text + length, "\r\n", 2);
    rig_say_bytes(text, (size_t)length + 2);
}

/* The next line without its end. False: it has hung up. */
static bool hear(char line[512])
{
    char *end;

    while ((end = memchr(rig.in, '\n', rig.length)) == NULL) {
        ssize_t got = recv(rig.fd, rig.in + rig.length, sizeof(rig.in) - rig.length, 0);

        if (got <= 0) {
            return false;
        }
        rig.length += (size_t)got;
    }
    size_t length = (size_t)(end - rig.in);

    assert_true(length >= 1 && length < 512 && rig.in[length - 1] == '\r');
    memcpy(line, rig.in, length - 1);
    line[length - 1] = '\0';
    rig.length -= length + 1;
    memmove(rig.in, end + 1, rig.length);
    return true;
}

void rig_expect(const char *wanted)
{
    char line[512];

    assert_true(hear(line));
    assert_string_equal(line, wanted);
}

/* Whatever it says before. */
void rig_expect_hung_up(void)
{
    char line[512];

    while (hear(line)) {
        assert_memory_equal(line, "A ", 2);
    }
}

/* Until it says that it is so far. None falls on the way, nor goes beyond. */
void rig_expect_progress(uint64_t written, uint64_t durable, uint64_t applied)
{
    unsigned long long before[3] = {0}, now[3];
    char line[512];

    do {
        assert_true(hear(line));
        assert_int_equal(sscanf(line, "A %llu %llu %llu", &now[0], &now[1], &now[2]), 3);
        assert_true(now[1] <= now[0] && now[2] <= now[0]);
        assert_true(now[0] <= written && now[1] <= durable && now[2] <= applied);
        for (size_t i = 0; i < 3; i++) {
            assert_true(now[i] >= before[i]);
            before[i] = now[i];
        }
    } while (now[0] != written || now[1] != durable || now[2] != applied);
}

void rig_agree(uint64_t lsn)
{
    char line[128];

    rig_pick_up();
    snprintf(line, sizeof(line), "follow 1 rollcall two " RIG_STREAM " 3 %llu",
             (unsigned long long)lsn);
    rig_expect(line);
    rig_say("STREAM " RIG_STREAM " 3 %llu", (unsigned long long)lsn);
}

struct repl_receiver_stats rig_figures(void)
{
    struct repl_receiver_stats stats;

    repl_receiver_stats(rig.receiver, &stats);
    return stats;
}

void rig_await_trouble(const char *text)
{
    for (unsigned i = 0; strstr(rig_figures().trouble, text) == NULL; i++) {
        if (i == RIG_ANSWER_S * 1000u - 1) {
            print_error("trouble is \"%s\"\n", rig_figures().trouble);
        }
        assert_true(i < RIG_ANSWER_S * 1000u);
        usleep(1000);
    }
}

void rig_send_data(uint64_t lsn, size_t length)
{
    char bytes[256];

    for (size_t i = 0; i < length; i++) {
        bytes[i] = (char)(lsn + i);
    }
    rig_say("D %llu %zu", (unsigned long long)lsn, length);
    rig_say_bytes(bytes, length);
}

uint64_t rig_head(void)
{
    return journal_head(data_journal((struct data *)&fake));
}

void rig_expect_taken(size_t length)
{
    RIG_AWAIT(rig_head() >= RIG_LSN + length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal((unsigned char)fake.taken[i], (unsigned char)(RIG_LSN + i));
    }
}
