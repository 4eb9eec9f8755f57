/* image_file.c: the file of an engine's image, for tests. */
#include "tests/support/image_file.h"

#include <stdio.h>

#include "base/check.h"
#include "row/row_data.h"

uint32_t image_file_layer(const struct row_image *image)
{
    return row_file_number(image->layer, image->kind == ROW_IMAGE_OVERLAY);
}

static void fill_info(const struct engine *engine, const struct row_image *image,
                      struct table_file_info *info)
{
    *info = (struct table_file_info){
        .serial = image->serial,
        .layer = image_file_layer(image),
        .start_lsn = image->start_lsn,
        .sections = image->sections,
        .description = image->table,
        .description_bytes = image->table_bytes,
    };
    snprintf(info->kind, sizeof(info->kind), "%s", engine->functions->kind);
    snprintf(info->space, sizeof(info->space), "test");
    for (unsigned i = 0; i < image->sections; i++) {
        info->section[i].value_bytes = image->section_value_bytes[i];
    }
}

enum engine_image image_file_write(const struct image_file *file, struct engine *engine,
                                   const struct row_image *image, struct barrier_member *member,
                                   const _Atomic bool *stop, char error[ENGINE_ERROR_MAX])
{
    struct table_file_info info;
    fill_info(engine, image, &info);
    struct table_file_writer *writer =
        table_file_create(file->vfs, file->directory, file->name, &info, error);
    if (!writer) {
        return ENGINE_IMAGE_FAILED;
    }
    enum engine_image result = row_image_write(engine->row, image, member, writer, stop);
    if (result != ENGINE_IMAGE_DONE) {
        table_file_abandon(writer);
        return result;
    }
    return table_file_commit(writer, info.start_lsn, NULL, error) ? ENGINE_IMAGE_DONE
                                                                  : ENGINE_IMAGE_FAILED;
}

struct table_file *image_file_open(const struct image_file *file, bool direct,
                                   char error[ENGINE_ERROR_MAX])
{
    char path[VFS_PATH_MAX];
    struct table_file *opened = NULL;
    CHECK(vfs_path(path, file->directory, file->name));
    return table_file_open(file->vfs, path, direct, &opened, error) == TABLE_FILE_DONE ? opened
                                                                                       : NULL;
}

void image_file_unlink(const struct image_file *file)
{
    char path[VFS_PATH_MAX];
    CHECK(vfs_path(path, file->directory, file->name));
    CHECK(file->vfs->functions->unlink(file->vfs, path) == 0);
}
