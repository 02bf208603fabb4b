/* Answers in a file of text:

       gemmepi answers 2
       gemmepi 0.15.0, driver 13000, chip 90 of 132 multiprocessors, routes 0, engines 11, NVIDIA H100 80GB HBM3
       DIGEST ROUTE ENGINE shape S parts P copies A B inside I algorithm I tile T ... cluster C cublaslt V timed W
       left L nanoseconds N : the problem in words
       ...
       end of 1 answers, HASH

   HASH is SHA-256 of all before the last line. A file that is not exactly so is left. */
#ifndef GEMMEPI_AHEAD_ANSWER_FILE_H
#define GEMMEPI_AHEAD_ANSWER_FILE_H

#include "../product/answers.h"

#define GPI__ANSWERS_WORDS "gemmepi answers "
#define GPI__ANSWERS_FIRST GPI__ANSWERS_WORDS "2\n"
#define GPI__ANSWERS_MOST  ((size_t)64 << 20) /* bytes of a file that is read */
#define GPI__ANSWERS_LINE  1024               /* of the first and last lines, at most */

/* >>writing */

/* Where answers are collected: their lines, in order of their words. */
typedef struct gpi__answer_list {
    const gpi__answer **all;
    size_t count;
} gpi__answer_list;

static void gpi__list_answer(void *user, gpi__map_entry *entry) {
    gpi__answer_list *list = (gpi__answer_list *)user;
    list->all[list->count++] = (const gpi__answer *)entry->value;
}

static int gpi__compare_answers(const void *a, const void *b) {
    const gpi__answer *x = *(const gpi__answer *const *)a, *y = *(const gpi__answer *const *)b;
    int words = strcmp(x->words, y->words);
    return words ? words : memcmp(x->digest, y->digest, GPI__DIGEST_SIZE);
}

static void gpi__append_end(gpi__text *text, size_t count) {
    unsigned char digest[GPI__SHA256_SIZE];
    char hex[2 * GPI__SHA256_SIZE + 1];
    gpi__sha256_of(text->data, text->length, digest);
    gpi__sha256_hex(digest, hex);
    gpi__append(text, "end of %llu answers, %s\n", (gpi__ull)count, hex);
}

/* All answers as a file, from the allocator; with build_lock held. */
static gemmepi_status gpi__write_answers(gemmepi_context *context, gpi__text *text) {
    size_t room = (context->answers.count + 4) * GPI__ANSWERS_LINE, i;
    gpi__answer_list list;
    char *data = (char *)gpi__new(&context->allocator, room);
    list.count = 0;
    list.all =
        (const gpi__answer **)gpi__new(&context->allocator, (context->answers.count + 1) * sizeof *list.all);
    if (!data || !list.all) {
        gpi__delete(&context->allocator, data);
        gpi__delete(&context->allocator, (void *)list.all);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    gpi__map_each(&context->answers, gpi__list_answer, &list);
    qsort((void *)list.all, list.count, sizeof *list.all, gpi__compare_answers);
    *text = gpi__text_in(data, room);
    gpi__append(text, "%s", GPI__ANSWERS_FIRST);
    gpi__append_maker(text, context);
    gpi__append(text, "\n");
    for (i = 0; i < list.count; i++)
        gpi__append_answer(text, list.all[i]);
    gpi__append_end(text, list.count);
    gpi__delete(&context->allocator, (void *)list.all);
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_answers_save(gemmepi_context *context, const char *path) {
    char reason[256];
    gpi__text why = gpi__text_in(reason, sizeof reason), text;
    gpi__file_piece piece;
    gemmepi_status status = gpi__check_call(context, path, "path");
    int code;
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    status = gpi__write_answers(context, &text);
    gpi__unlock(&context->build_lock);
    if (status)
        return status;
    piece.data = text.data;
    piece.size = text.length;
    code = gpi__file_store_path(path, GPI__FILE_FOR_ALL, &piece, 1);
    gpi__delete(&context->allocator, text.data);
    if (!code)
        return GEMMEPI_OK;
    gpi__file_error(&why, code);
    return gpi__fail(GEMMEPI_FILE_ERROR, "no answers can be written to %.1000s: %s", path, reason);
}

/* >>reading */

/* Ends the line that begins at *at, and moves *at behind it; NULL where none ends. */
static char *gpi__next_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

/* Whether the last line is the right one for what stands before it. `text` ends with a zero. */
static int gpi__answers_are_whole(const char *text, size_t size, size_t *count) {
    char last[GPI__ANSWERS_LINE];
    gpi__text end;
    unsigned char digest[GPI__SHA256_SIZE];
    char hex[2 * GPI__SHA256_SIZE + 1];
    const char *at = text + size, *number;
    int64_t said;
    if (!size || strlen(text) != size || text[size - 1] != '\n')
        return 0;
    for (at--; at > text && at[-1] != '\n'; at--) {
    }
    number = at;
    said = gpi__read_number(&number, "end of ");
    if (said < 0)
        return 0;
    gpi__sha256_of(text, (size_t)(at - text), digest);
    gpi__sha256_hex(digest, hex);
    end = gpi__text_in(last, sizeof last);
    gpi__append(&end, "end of %llu answers, %s\n", (gpi__ull)said, hex);
    *count = (size_t)said;
    return strcmp(at, last) == 0;
}

static const char gpi__no_memory[] = "there is no memory for it";
static const char gpi__other_version[] = "it has another version of this format";
static const char gpi__other_maker[] = "it is of another GPU, driver or version of gemmepi";

/* Why the text, which it cuts into lines, is not taken; NULL: all of its answers are the list's. */
static const char *gpi__parse_answers(const gemmepi_context *context, char *text, size_t size,
                                      gpi__answer **answers, size_t *count) {
    char maker[GPI__ANSWERS_LINE], *line;
    gpi__text wanted = gpi__text_in(maker, sizeof maker);
    size_t i;
    if (strncmp(text, GPI__ANSWERS_WORDS, strlen(GPI__ANSWERS_WORDS)) != 0)
        return "the file does not begin as one of answers does";
    if (!gpi__answers_are_whole(text, size, count) || *count > size / 100 /* a line has more bytes */)
        return "the file is damaged";
    gpi__append_maker(&wanted, context);
    line = gpi__next_line(&text);
    if (!line || strncmp(line, GPI__ANSWERS_FIRST, strlen(line)) != 0 ||
        strlen(line) + 1 != strlen(GPI__ANSWERS_FIRST))
        return gpi__other_version;
    line = gpi__next_line(&text);
    if (!line || strcmp(line, maker) != 0)
        return gpi__other_maker;
    *answers = (gpi__answer *)gpi__new(&context->allocator, (*count + 1) * sizeof **answers);
    if (!*answers)
        return gpi__no_memory;
    for (i = 0; i < *count; i++) {
        line = gpi__next_line(&text);
        if (!line || !gpi__read_answer(line, &(*answers)[i]))
            return "a line of it is no answer";
    }
    line = gpi__next_line(&text);
    return line && !*text ? NULL : "it has another number of answers than it says";
}

/* All or, where there is no memory, some. */
static gemmepi_status gpi__keep_answers(gemmepi_context *context, const gpi__answer *answers, size_t count) {
    gemmepi_status status = GEMMEPI_OK;
    size_t i;
    gpi__lock(&context->build_lock);
    for (i = 0; i < count && !status; i++)
        status = gpi__keep_answer(context, &answers[i]);
    gpi__unlock(&context->build_lock);
    gpi__forget_all_kept(context);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_answers_load(gemmepi_context *context, const char *path) {
    char reason[256], *text;
    gpi__text why = gpi__text_in(reason, sizeof reason);
    unsigned char *data = NULL;
    gpi__answer *answers = NULL;
    const char *fault;
    size_t size = 0, count = 0;
    gemmepi_status status = gpi__check_call(context, path, "path");
    int code;
    if (status)
        return status;
    code = gpi__file_read_path(path, &context->allocator, GPI__ANSWERS_MOST, &data, &size);
    if (code) {
        gpi__file_error(&why, code);
        return gpi__fail(GEMMEPI_FILE_ERROR, "the answers %.1000s cannot be read: %s", path, reason);
    }
    text = (char *)gpi__new(&context->allocator, size + 1);
    if (text) {
        memcpy(text, data, size);
        text[size] = 0;
        fault = gpi__parse_answers(context, text, size, &answers, &count);
        if (fault == gpi__no_memory)
            status = GEMMEPI_OUT_OF_MEMORY;
        else if (fault == gpi__other_version || fault == gpi__other_maker)
            gpi__say(&context->log, GEMMEPI_LOG_WARNING, "the answers %.1000s change nothing: %s", path,
                     fault);
        else if (fault)
            status = gpi__fail(GEMMEPI_FILE_ERROR, "the answers %.1000s are refused: %s", path, fault);
        else
            status = gpi__keep_answers(context, answers, count);
    }
    gpi__delete(&context->allocator, data);
    gpi__delete(&context->allocator, answers);
    gpi__delete(&context->allocator, text);
    return text ? status : GEMMEPI_OUT_OF_MEMORY;
}

#endif
