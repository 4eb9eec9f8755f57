/*
 * readable.h: numbers as people read them, on pages and terminals. Each writes to `text`
 * and returns it. Pure.
 */
#ifndef ROLLCALL_BASE_READABLE_H
#define ROLLCALL_BASE_READABLE_H

#include <stdint.h>

#define READABLE_MAX 32

char *readable_count(char text[READABLE_MAX], double count);  /* 812, 41.2 k, 1.24 M */
char *readable_bytes(char text[READABLE_MAX], double bytes);  /* 12.0 GiB */
char *readable_span(char text[READABLE_MAX], double seconds); /* 40 seconds, 3.1 days */
char *readable_time(char text[READABLE_MAX], double seconds); /* 41 µs, 1.2 ms */
char *readable_share(char text[READABLE_MAX], double share);  /* 0.12 % */
/* 1 table, 2 tables; noun: at most ten letters */
char *readable_many(char text[READABLE_MAX], uint64_t count, const char *noun);

#endif
