/* Text in a buffer of fixed size, and in one that grows. */
#include "base/memory.h"

#include "base/text.h"

#include "test.h"

static void text_is_cut_where_its_end_has_no_room(void) {
    char data[16];
    int length;
    for (length = 0; length <= 20; length++) {
        gpi__text text;
        int i;
        memset(data, 'x', sizeof data);
        text = gpi__text_in(data, 9);
        CHECK(data[0] == 0 && text.length == 0, "it is not empty");
        for (i = 0; i < length; i++)
            gpi__append(&text, "%c", 'a' + i);
        CHECK(text.length == (size_t)length && strlen(data) == (size_t)(length < 8 ? length : 8) &&
                  data[9] == 'x',
              "%d characters: \"%.16s\"", length, data);
        CHECK(gpi__text_is_cut(&text) == (length > 8), "%d characters in 9", length);
    }
}

static void text_without_room_is_counted(void) {
    gpi__text text = gpi__text_in(NULL, 100);
    gpi__append(&text, "%s-%d", "seven", 7);
    gpi__append(&text, "%s", "");
    CHECK(text.length == 7 && text.size == 0 && gpi__text_is_cut(&text), "%d characters", (int)text.length);
}

/* Gives memory as often as user says. */
static void *limited_alloc(void *user, size_t size) {
    int *left = (int *)user;
    return (*left)-- > 0 ? malloc(size) : NULL;
}

static void limited_free(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static void text_grows_until_there_is_no_memory(void) {
    int given;
    for (given = 0; given < 8; given++) {
        int left = given, i, whole = 1;
        gemmepi_allocator allocator = {limited_alloc, limited_free, &left};
        gpi__text text = gpi__growing_text(&allocator);
        for (i = 0; i < 5000; i++)
            gpi__append(&text, "%07d,", i);
        for (i = 0; i < 5000 && text.data && whole; i++)
            whole = atoi(text.data + 8 * i) == i;
        CHECK(whole && (!text.data || strlen(text.data) == 40000), "what was appended is not there");
        CHECK((text.data != NULL) == (given > 2), "with %d blocks of memory there is %s text", given,
              text.data ? "a" : "no"); /* of 16 KB, and twice as much two times */
        gpi__delete(&allocator, text.data);
    }
}

static void words_are_of_small_letters_and_lines_below(void) {
    int c;
    for (c = 1; c < 128; c++)
        CHECK(!gpi__is_word((char)c) == !strchr("abcdefghijklmnopqrstuvwxyz_", c), "'%c'", c);
}

int main(void) {
    RUN(text_is_cut_where_its_end_has_no_room);
    RUN(text_without_room_is_counted);
    RUN(text_grows_until_there_is_no_memory);
    RUN(words_are_of_small_letters_and_lines_below);
    return test_finish();
}
