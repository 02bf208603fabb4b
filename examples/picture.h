/* Pictures for examples: read from a binary PPM, shrunk, compared, written as a PNG. A program defines PROGRAM, its name for messages, and
   includes this; an error ends the program. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why) {
    fprintf(stderr, PROGRAM ": %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        fail("memory", "there is not enough");
    return memory;
}

typedef struct picture {
    int width, height;
    unsigned char *rgb; /* row by row */
} picture;

static picture new_picture(int width, int height) {
    picture made = {width, height, NULL};
    made.rgb = allocate((size_t)width * (size_t)height, 3);
    return made;
}

/* A number of a PPM's head, behind blanks and comments; 0 if there is none. */
static int head_number(FILE *file) {
    int number = 0, c = getc(file);
    while (c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '#')
        if (c == '#')
            while (c != '\n' && c != EOF)
                c = getc(file);
        else
            c = getc(file);
    ungetc(c, file);
    return fscanf(file, "%5d", &number) == 1 ? number : 0;
}

static picture read_picture(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, "cannot be read; the path of a binary PPM may be given");
    const int is_ppm = getc(file) == 'P' && getc(file) == '6';
    const int width = is_ppm ? head_number(file) : 0, height = is_ppm ? head_number(file) : 0;
    if (width < 8 || height < 8 || width > 2048 || height > 2048 || head_number(file) != 255)
        fail(path, "it must be a binary PPM (P6) of 8 to 2048 pixels each way and 8 bits a channel");
    getc(file); /* the blank before the pixels */
    picture p = new_picture(width, height);
    if (fread(p.rgb, 3, (size_t)width * (size_t)height, file) != (size_t)width * (size_t)height)
        fail(path, "it ends before its last pixel");
    fclose(file);
    return p;
}

/* Each pixel the mean of factor x factor. */
static picture shrink(const picture *from, int factor) {
    picture to = new_picture(from->width / factor, from->height / factor);
    for (int y = 0; y < to.height; y++)
        for (int i = 0; i < 3 * to.width; i++) {
            int sum = factor * factor / 2;
            for (int j = 0; j < factor * factor; j++) {
                const int column = i / 3 * factor + j % factor, row = y * factor + j / factor;
                sum += from->rgb[(row * from->width + column) * 3 + i % 3];
            }
            to.rgb[y * to.width * 3 + i] = (unsigned char)(sum / (factor * factor));
        }
    return to;
}

/* The peak's ratio to the noise, in decibels: 255 over the root of the mean square of what differs. */
static double psnr(const picture *a, const picture *b) {
    const size_t count = (size_t)a->width * (size_t)a->height * 3;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += pow((double)a->rgb[i] - (double)b->rgb[i], 2);
    return 10 * log10(255.0 * 255.0 * (double)count / sum);
}

/* ---- the PNG ---- */

/* A file under way: the chunk's CRC and, of what the zlib stream holds, the Adler sum. */
typedef struct png {
    FILE *file;
    uint32_t crc, low, high;
} png;

static void put(png *to, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        to->crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            to->crc = to->crc >> 1 ^ (to->crc & 1 ? 0xedb88320u : 0);
    }
    fwrite(data, 1, size, to->file);
}

static void put32(png *to, uint32_t value) {
    const unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                    (unsigned char)(value >> 8), (unsigned char)value};
    put(to, bytes, 4);
}

static void start_chunk(png *to, const char *name, uint32_t size) {
    put32(to, size);
    to->crc = 0xffffffffu; /* the name is counted, the size is not */
    put(to, name, 4);
}

/* A row as a stored block: PNG wants zlib's form, but not that anything is compressed. */
static void put_row(png *to, const unsigned char *row, unsigned size, int is_last) {
    const unsigned length = size + 1;
    const unsigned char head[6] = {(unsigned char)is_last,        (unsigned char)length,
                                   (unsigned char)(length >> 8),  (unsigned char)~length,
                                   (unsigned char)(~length >> 8), 0}; /* 0: no filter */
    put(to, head, 6);
    put(to, row, size);
    to->high = (to->high + to->low) % 65521; /* of the filter's byte */
    for (unsigned i = 0; i < size; i++) {
        to->low = (to->low + row[i]) % 65521;
        to->high = (to->high + to->low) % 65521;
    }
}

static void write_png(const char *path, const picture *p) {
    png to = {fopen(path, "wb"), 0, 1, 0};
    const unsigned row = (unsigned)p->width * 3, rows = (unsigned)p->height;
    if (!to.file)
        fail(path, "cannot be written");
    put(&to, "\x89PNG\r\n\x1a\n", 8);
    start_chunk(&to, "IHDR", 13);
    put32(&to, (uint32_t)p->width), put32(&to, (uint32_t)p->height);
    put(&to, "\x08\x02\0\0\0", 5); /* 8 bits of RGB */
    put32(&to, ~to.crc);
    start_chunk(&to, "IDAT", 2 + rows * (row + 6) + 4);
    put(&to, "\x78\x01", 2);
    for (unsigned y = 0; y < rows; y++)
        put_row(&to, p->rgb + (size_t)y * row, row, y + 1 == rows);
    put32(&to, to.high << 16 | to.low);
    put32(&to, ~to.crc);
    start_chunk(&to, "IEND", 0);
    put32(&to, ~to.crc);
    const int broken = ferror(to.file);
    if (fclose(to.file) || broken)
        fail(path, "cannot be written");
}

/* The second picture into the first from a column on, each pixel `times` as large. */
static void paste(picture *to, const picture *from, int column, int times) {
    for (int y = 0; y < from->height * times; y++)
        for (int x = 0; x < from->width * times; x++)
            memcpy(&to->rgb[(y * to->width + column + x) * 3],
                   &from->rgb[(y / times * from->width + x / times) * 3], 3);
}
