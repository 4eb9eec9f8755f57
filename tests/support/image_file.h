/*
 * image_file.h: the file of an engine's image, for tests that take checkpoints and dumps as the
 * server does: written as the image says, opened again, deleted. What the space is called matters
 * to none of them: "test".
 *
 * Expectations that do not hold end the test. Thread rule: each call touches only what it is given;
 * member and stop as image_write of row/row_log.h has them.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_IMAGE_FILE_H
#define ROLLCALL_TESTS_SUPPORT_IMAGE_FILE_H

#include "base/barrier.h"
#include "row/row_log.h"
#include "store/table_file.h"
#include "store/vfs.h"

/* Where it lies. The directory exists. */
struct image_file {
    struct vfs *vfs;
    const char *directory;
    const char *name;
};

/* table_file_info.layer of its file. */
uint32_t image_file_layer(const struct row_image *image);

/*
 * Writes what the engine has of the image to a new file of that name, durable when this is done.
 * There is no file if it is not done; error says why if it failed.
 */
enum engine_image image_file_write(const struct image_file *file, struct engine *engine,
                                   const struct row_image *image, struct barrier_member *member,
                                   const _Atomic bool *stop, char error[ENGINE_ERROR_MAX]);

/* The caller closes it. direct: as table_file_open(). NULL: it is not sound; error says why. */
struct table_file *image_file_open(const struct image_file *file, bool direct,
                                   char error[ENGINE_ERROR_MAX]);

/* It is there. */
void image_file_unlink(const struct image_file *file);

#endif
