/* Files and folders as both systems have them. A folder is opened first, and what is in it is then reached through the opened folder: so
   what was checked is what is used, whatever happens to the path meanwhile. (On Windows an opened folder is its path.)

   Functions that can fail return 0, or the system's error code (errno; GetLastError on Windows), or NOT_REGULAR, which is none of
   the system's. */
#ifndef GEMMEPI_BASE_FILE_TYPES_H
#define GEMMEPI_BASE_FILE_TYPES_H

#include "environment.h"
#include "text.h"

typedef struct gpi__folder {
    const char *path; /* borrowed */
#if !GPI__WINDOWS
    int descriptor;
#endif
} gpi__folder;

typedef struct gpi__file_info {
    int is_regular;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    long modified_nanoseconds;
} gpi__file_info;

/* One stretch of bytes of a file to be written. */
typedef struct gpi__file_piece {
    const void *data;
    size_t size;
} gpi__file_piece;

#define GPI__FILE_NOT_REGULAR (-1)

/* Who may read a new file, as POSIX's mode has it; the umask takes from it. Windows does not look at it. */
#define GPI__FILE_FOR_USER 0600
#define GPI__FILE_FOR_ALL  0666

#endif
