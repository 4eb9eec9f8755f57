/* admin_page.h: parts of the status page, for admin_page*.c. */
#ifndef ROLLCALL_ADMIN_ADMIN_PAGE_H
#define ROLLCALL_ADMIN_ADMIN_PAGE_H

#include "admin/admin_private.h"

/* A colour, by its class of the style, and what it means. */
void admin_page_key(struct evbuffer *out, const char *class, const char *words);

/* A section for each space of which there is room in so many bytes, and the names of the others. */
void admin_page_spaces(const struct admin_figures *figures, size_t bytes, struct evbuffer *out);

/* A section each. */
void admin_page_latency(const struct admin_view *view, struct evbuffer *out);
void admin_page_hot(const struct admin_figures *figures, struct evbuffer *out);
void admin_page_nodes(const struct admin_figures *figures, struct evbuffer *out); /* or none */
void admin_page_slow(const struct admin_figures *figures, struct evbuffer *out);  /* or none */

#endif
