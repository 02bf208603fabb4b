/* Answers in a file of text:

       gemmepi answers 2
       gemmepi 0.15.0, driver 13000, chip 90 of 132 multiprocessors, routes 0, engines 11, NVIDIA H100 80GB HBM3
       DIGEST ROUTE ENGINE shape S parts P copies A B algorithm I tile T ... cluster C cublaslt V nanoseconds N : the problem in words
       ...
       end of 1 answers, HASH

   HASH is SHA-256 of all before the last line. A file that is not exactly so is left. */
#ifndef GEMMEPI_AHEAD_ANSWER_FILE_H
#define GEMMEPI_AHEAD_ANSWER_FILE_H

#include "../product/answers.h"

#define GEMMEPI__ANSWERS_FIRST "gemmepi answers 2\n"
#define GEMMEPI__ANSWERS_MOST  ((size_t)64 << 20) /* bytes of a file that is read */
#define GEMMEPI__ANSWERS_LINE  1024               /* of the first and last lines, at most */

/* >>writing */

/* Where answers are collected: their lines, in order of their words. */
typedef struct gemmepi__answer_list {
    const gemmepi__answer **all;
    size_t count;
} gemmepi__answer_list;

static void gemmepi__list_answer(void *user, gemmepi__map_entry *entry) {
    gemmepi__answer_list *list = (gemmepi__answer_list *)user;
    list->all[list->count++] = (const gemmepi__answer *)entry->value;
}

static int gemmepi__compare_answers(const void *a, const void *b) {
    const gemmepi__answer *x = *(const gemmepi__answer *const *)a, *y = *(const gemmepi__answer *const *)b;
    int words = strcmp(x->words, y->words);
    return words ? words : memcmp(x->digest, y->digest, GEMMEPI__DIGEST_SIZE);
}

static void gemmepi__append_end(gemmepi__text *text, size_t count) {
    unsigned char digest[GEMMEPI__SHA256_SIZE];
    char hex[2 * GEMMEPI__SHA256_SIZE + 1];
    gemmepi__sha256_of(text->data, text->length, digest);
    gemmepi__sha256_hex(digest, hex);
    gemmepi__append(text, "end of %llu answers, %s\n", (gemmepi__ull)count, hex);
}

/* All answers as a file, from the allocator; with build_lock held. */
static gemmepi_status gemmepi__write_answers(gemmepi_context *context, gemmepi__text *text) {
    size_t room = (context->answers.count + 4) * GEMMEPI__ANSWERS_LINE, i;
    gemmepi__answer_list list;
    char *data = (char *)gemmepi__new(&context->allocator, room);
    list.count = 0;
    list.all = (const gemmepi__answer **)gemmepi__new(&context->allocator,
                                                      (context->answers.count + 1) * sizeof *list.all);
    if (!data || !list.all) {
        gemmepi__delete(&context->allocator, data);
        gemmepi__delete(&context->allocator, (void *)list.all);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    gemmepi__map_each(&context->answers, gemmepi__list_answer, &list);
    qsort((void *)list.all, list.count, sizeof *list.all, gemmepi__compare_answers);
    *text = gemmepi__text_in(data, room);
    gemmepi__append(text, "%s", GEMMEPI__ANSWERS_FIRST);
    gemmepi__append_maker(text, context);
    gemmepi__append(text, "\n");
    for (i = 0; i < list.count; i++)
        gemmepi__append_answer(text, list.all[i]);
    gemmepi__append_end(text, list.count);
    gemmepi__delete(&context->allocator, (void *)list.all);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_answers_arguments(const gemmepi_context *context, const char *path) {
    if (!context || !path)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "path" : "context");
    return gemmepi__came_by_fork(context) ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_answers_save(gemmepi_context *context, const char *path) {
    char reason[256];
    gemmepi__text why = gemmepi__text_in(reason, sizeof reason), text;
    gemmepi__file_piece piece;
    gemmepi_status status = gemmepi__check_answers_arguments(context, path);
    int code;
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__write_answers(context, &text);
    gemmepi__unlock(&context->build_lock);
    if (status)
        return status;
    piece.data = text.data;
    piece.size = text.length;
    code = gemmepi__file_store_path(path, GEMMEPI__FILE_FOR_ALL, &piece, 1);
    gemmepi__delete(&context->allocator, text.data);
    if (!code)
        return GEMMEPI_OK;
    gemmepi__file_error(&why, code);
    return gemmepi__fail(GEMMEPI_FILE_ERROR, "no answers can be written to %.1000s: %s", path, reason);
}

/* >>reading */

/* Ends the line that begins at *at, and moves *at behind it; NULL where none ends. */
static char *gemmepi__next_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

/* Whether the last line is the right one for what stands before it. `text` ends with a zero. */
static int gemmepi__answers_are_whole(const char *text, size_t size, size_t *count) {
    char last[GEMMEPI__ANSWERS_LINE];
    gemmepi__text end;
    unsigned char digest[GEMMEPI__SHA256_SIZE];
    char hex[2 * GEMMEPI__SHA256_SIZE + 1];
    const char *at = text + size, *number;
    int64_t said;
    if (!size || strlen(text) != size || text[size - 1] != '\n')
        return 0;
    for (at--; at > text && at[-1] != '\n'; at--) {
    }
    number = at;
    said = gemmepi__read_number(&number, "end of ");
    if (said < 0)
        return 0;
    gemmepi__sha256_of(text, (size_t)(at - text), digest);
    gemmepi__sha256_hex(digest, hex);
    end = gemmepi__text_in(last, sizeof last);
    gemmepi__append(&end, "end of %llu answers, %s\n", (gemmepi__ull)said, hex);
    *count = (size_t)said;
    return strcmp(at, last) == 0;
}

static const char gemmepi__no_memory[] = "there is no memory for it";

/* Why the text, which it cuts into lines, is not taken; NULL: all of its answers are the list's. */
static const char *gemmepi__parse_answers(const gemmepi_context *context, char *text, size_t size,
                                          gemmepi__answer **answers, size_t *count) {
    char maker[GEMMEPI__ANSWERS_LINE], *line;
    gemmepi__text wanted = gemmepi__text_in(maker, sizeof maker);
    size_t i;
    if (!gemmepi__answers_are_whole(text, size, count) || *count > size / 100 /* a line has more bytes */)
        return "it is damaged, or no such file";
    gemmepi__append_maker(&wanted, context);
    line = gemmepi__next_line(&text);
    if (!line || strncmp(line, GEMMEPI__ANSWERS_FIRST, strlen(line)) != 0 ||
        strlen(line) + 1 != strlen(GEMMEPI__ANSWERS_FIRST))
        return "it is of another version of such files";
    line = gemmepi__next_line(&text);
    if (!line || strcmp(line, maker) != 0)
        return "it is of another GPU, driver or version of gemmepi";
    *answers = (gemmepi__answer *)gemmepi__new(&context->allocator, (*count + 1) * sizeof **answers);
    if (!*answers)
        return gemmepi__no_memory;
    for (i = 0; i < *count; i++) {
        line = gemmepi__next_line(&text);
        if (!line || !gemmepi__read_answer(line, &(*answers)[i]))
            return "a line of it is no answer";
    }
    line = gemmepi__next_line(&text);
    return line && !*text ? NULL : "it has another number of answers than it says";
}

/* All or, where there is no memory, some. */
static gemmepi_status gemmepi__take_answers(gemmepi_context *context, const gemmepi__answer *answers,
                                            size_t count) {
    gemmepi_status status = GEMMEPI_OK;
    size_t i;
    gemmepi__lock(&context->build_lock);
    for (i = 0; i < count && !status; i++)
        status = gemmepi__keep_answer(context, &answers[i]);
    gemmepi__unlock(&context->build_lock);
    gemmepi__forget_all_kept(context);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_answers_load(gemmepi_context *context, const char *path) {
    char reason[256], *text;
    gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
    unsigned char *data = NULL;
    gemmepi__answer *answers = NULL;
    const char *fault;
    size_t size = 0, count = 0;
    gemmepi_status status = gemmepi__check_answers_arguments(context, path);
    int code;
    if (status)
        return status;
    code = gemmepi__file_read_path(path, &context->allocator, GEMMEPI__ANSWERS_MOST, &data, &size);
    if (code) {
        gemmepi__file_error(&why, code);
        return gemmepi__fail(GEMMEPI_FILE_ERROR, "the answers %.1000s cannot be read: %s", path, reason);
    }
    text = (char *)gemmepi__new(&context->allocator, size + 1);
    if (text) {
        memcpy(text, data, size);
        text[size] = 0;
        fault = gemmepi__parse_answers(context, text, size, &answers, &count);
        if (fault == gemmepi__no_memory)
            status = GEMMEPI_OUT_OF_MEMORY;
        else if (fault)
            gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "the answers %.1000s change nothing: %s", path,
                         fault);
        else
            status = gemmepi__take_answers(context, answers, count);
    }
    gemmepi__delete(&context->allocator, data);
    gemmepi__delete(&context->allocator, answers);
    gemmepi__delete(&context->allocator, text);
    return text ? status : GEMMEPI_OUT_OF_MEMORY;
}

#endif
