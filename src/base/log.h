/* One line to the user's log callback or, where there is none and GEMMEPI_LOG asks for it, to stderr. */
#ifndef GEMMEPI_BASE_LOG_H
#define GEMMEPI_BASE_LOG_H

#include "environment.h"

typedef struct gpi__log {
    gemmepi_log_function function; /* NULL: nobody listens                    */
    void *user;
    int most; /* no level beyond this one; 0: all */
} gpi__log;

static const char *const gpi__log_levels[] = {"", "error", "warning", "info", "debug"};

static void gpi__log_to_stderr(void *user, gemmepi_log_level level, const char *message) {
    (void)user;
    fprintf(stderr, "gemmepi %s: %s\n", gpi__log_levels[level], message);
}

/* The program's callback, else what GEMMEPI_LOG says: error, warning, info or debug. Other values say nothing, and it is not
   looked at in a program that runs with more rights than its user. */
static gpi__log gpi__choose_log(gemmepi_log_function function, void *user) {
    char value[16];
    gpi__log log;
    int level;
    log.function = function;
    log.user = user;
    log.most = 0;
    if (function || !gpi__environment("GEMMEPI_LOG", value, sizeof value))
        return log;
    for (level = GEMMEPI_LOG_ERROR; level <= GEMMEPI_LOG_DEBUG; level++)
        if (strcmp(value, gpi__log_levels[level]) == 0) {
            log.function = gpi__log_to_stderr;
            log.most = level;
        }
    return log;
}

GPI__PRINTF(3, 4)
static void gpi__say(const gpi__log *log, gemmepi_log_level level, const char *format, ...) {
    char text[2048], *at;
    va_list arguments;
    if (!log->function || (log->most && (int)level > log->most))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (at = text; *at; at++) /* what compilers say has several lines */
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    log->function(log->user, level, text);
}

#endif
