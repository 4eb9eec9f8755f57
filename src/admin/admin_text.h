/*
 * admin_text.h: numbers as people read them, for the page and its sentences. Each writes to `text`
 * and returns it. Pure.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_TEXT_H
#define ROLLCALL_ADMIN_ADMIN_TEXT_H

#include <stdint.h>

#define ADMIN_TEXT_MAX 32

char *admin_text_count(char text[ADMIN_TEXT_MAX], double count);  /* 812, 41.2 k, 1.24 M */
char *admin_text_bytes(char text[ADMIN_TEXT_MAX], double bytes);  /* 12.0 GiB */
char *admin_text_span(char text[ADMIN_TEXT_MAX], double seconds); /* 40 seconds, 3.1 days */
char *admin_text_time(char text[ADMIN_TEXT_MAX], double seconds); /* 41 µs, 1.2 ms */
char *admin_text_share(char text[ADMIN_TEXT_MAX], double share);  /* 0.12 % */
/* 1 table, 2 tables; noun: at most ten letters */
char *admin_text_many(char text[ADMIN_TEXT_MAX], uint64_t count, const char *noun);

#endif
