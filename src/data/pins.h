/*
 * pins.h: the files of a data directory in use that stay while a copy of it is made.
 *
 * A checkpoint deletes what its manifest does not name. A pin keeps the table files of one manifest
 * by their names, not by open descriptors: so a copy of any number of files needs one of these at a
 * time. What a checkpoint would have deleted goes with the last pin that names it, and after a kill
 * at the next start. Until then it takes room on the disk: the figures of table files have it, and
 * each checkpoint logs it.
 *
 * Cost: a pin holds the manifest and its text; a look-up in each pin for each file that is deleted.
 *
 * Thread rule: any thread that may wait for the disk.
 */
#ifndef ROLLCALL_DATA_PINS_H
#define ROLLCALL_DATA_PINS_H

#include <stddef.h>

#include "data/data.h"

/* To be read only. */
struct data_pin {
    struct data_pin *next;
    struct manifest *manifest;
    char *text; /* of it, as it stands on the disk */
    size_t text_length;
};

/* Pins the manifest that is on the disk: from here on all its files are there. After data_recover.
 * NULL with `error`: it cannot be read. */
struct data_pin *data_pin_take(struct data *data, char error[DATA_ERROR_MAX]);
/* Ends it. Before data_destroy. NULL: no-op. */
void data_pin_give(struct data *data, struct data_pin *pin);

#endif
