/* Text in a buffer of fixed size. */
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

static void words_are_of_small_letters_and_lines_below(void) {
    int c;
    for (c = 1; c < 128; c++)
        CHECK(!gpi__is_word((char)c) == !strchr("abcdefghijklmnopqrstuvwxyz_", c), "'%c'", c);
}

int main(void) {
    RUN(text_is_cut_where_its_end_has_no_room);
    RUN(text_without_room_is_counted);
    RUN(words_are_of_small_letters_and_lines_below);
    return test_finish();
}
