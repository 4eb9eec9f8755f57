/*
 * adopt.h: puts a whole copy of another node's data directory (data/copy_dir.h) in the place of
 * what is in DIR. Before anything of DIR is read, under its lock.
 *
 * It begins when DIR/MANIFEST is deleted, and has ended when DIR/copy/MANIFEST is, each durable
 * before the next step. Between the two nothing is taken from DIR/copy: its files get a second name
 * in DIR, so whatever a kill or a power cut leaves, the next start does the same again. A DIR whose
 * MANIFEST is gone is refused by all else that reads one.
 *
 * Thread rule: one thread, that may wait for the disk.
 */
#ifndef ROLLCALL_DATA_ADOPT_H
#define ROLLCALL_DATA_ADOPT_H

#include <stdbool.h>

#include "data/data.h"
#include "store/vfs.h"

/*
 * True: done, or there is nothing to do: no copy, one that is not whole, or nobody follows and it
 * has not begun. False with `error`: it has begun and cannot be ended.
 */
bool data_adopt(struct vfs *vfs, const char *directory, bool follows, char error[DATA_ERROR_MAX]);

#endif
