/* One line to the user's log callback. */
#ifndef GEMMEPI_BASE_LOG_H
#define GEMMEPI_BASE_LOG_H

#include "platform.h"

typedef struct gemmepi__log {
    gemmepi_log_function function; /* NULL: nobody listens */
    void *user;
} gemmepi__log;

GEMMEPI__PRINTF(3, 4)
static void gemmepi__say(const gemmepi__log *log, gemmepi_log_level level, const char *format, ...) {
    char text[2048];
    va_list arguments;
    if (!log->function)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log->function(log->user, level, text);
}

#endif
