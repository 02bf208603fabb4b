/* Statuses and this thread's sentence about the last failure. */
#ifndef GEMMEPI_BASE_STATUS_H
#define GEMMEPI_BASE_STATUS_H

#include "platform.h"

#define GPI__ERROR_TEXT_SIZE 2048

static GPI__THREAD_LOCAL char gpi__error_text[GPI__ERROR_TEXT_SIZE];

/* Notes the sentence and returns the status, so that a failing function ends in `return gpi__fail(...)`.
   The arguments may include the current sentence itself. */
GPI__PRINTF(2, 3)
static gemmepi_status gpi__fail(gemmepi_status status, const char *format, ...) {
    char text[GPI__ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(gpi__error_text, text, sizeof text);
    return status;
}

/* Returns from a function that checks, with the sentence, where the condition holds. */
#define GPI__REFUSE_IF(condition, status, ...)     \
    do {                                           \
        if (condition)                             \
            return gpi__fail(status, __VA_ARGS__); \
    } while (0)
#define GPI__INVALID_IF(condition, ...)     GPI__REFUSE_IF(condition, GEMMEPI_INVALID_ARGUMENT, __VA_ARGS__)
#define GPI__UNSUPPORTED_IF(condition, ...) GPI__REFUSE_IF(condition, GEMMEPI_UNSUPPORTED, __VA_ARGS__)

GEMMEPI_API const char *gemmepi_last_error(void) {
    return gpi__error_text;
}

GEMMEPI_API int gemmepi_version(void) {
    return GEMMEPI_VERSION;
}

GEMMEPI_API const char *gemmepi_status_name(gemmepi_status status) {
    switch (status) {
#define GEMMEPI_STATUS_CASE(name, value, text) \
    case name:                                 \
        return #name;
        GEMMEPI_STATUS_LIST(GEMMEPI_STATUS_CASE)
#undef GEMMEPI_STATUS_CASE
    default:
        return "unknown status";
    }
}

#endif
