/* What tuning found: for a problem the candidate that was fastest. The context keeps them, and a plan takes its problem's if it may. In
   text an answer is a line, which the cache folder and files hold. */
#ifndef GEMMEPI_PRODUCT_ANSWERS_H
#define GEMMEPI_PRODUCT_ANSWERS_H

#include "choose.h"
#include "../formula/key.h"

/* >>which problem */

/* The problem's bytes without the views that it does not have: the fewer, the sooner a plan is found. */
typedef struct gpi__plan_key {
    size_t size;
    unsigned char bytes[sizeof(gpi__problem)];
} gpi__plan_key;

static void gpi__make_plan_key(const gpi__problem *problem, gpi__plan_key *key) {
    int operand;
    key->size = offsetof(gpi__problem, views);
    memcpy(key->bytes, problem, key->size);
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        if (gpi__has_operand(problem, operand)) {
            memcpy(key->bytes + key->size, &problem->views[operand], sizeof(gpi__view));
            key->size += sizeof(gpi__view);
        }
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (problem->made[operand].view.dtype) {
            memcpy(key->bytes + key->size, &problem->made[operand], sizeof problem->made[operand]);
            key->size += sizeof problem->made[operand];
        }
}

#define GPI__DIGEST_SIZE 16 /* bytes of the key's SHA-256 */
#define GPI__ANSWER_LINE 640
#define GPI__WORDS_SIZE  256

typedef struct gpi__answer {
    unsigned char digest[GPI__DIGEST_SIZE];
    gpi__candidate candidate;    /* its estimate is what was measured */
    int cublaslt;                /* the version of the algorithm; 0: the candidate has none */
    int is_loaded;               /* else this process has measured it */
    int ways_timed, ways_left;   /* as gpi__tuned has them */
    char words[GPI__WORDS_SIZE]; /* the problem, for people */
} gpi__answer;

/* What its operands are, whatever they are called, where they lie, and, as the text may be cut, the nodes. */
static void gpi__digest_formula(gpi__sha256 *sha, const gpi__kept_formula *kept) {
    const gpi__placed_formula *placed = &kept->placed;
    char words[4096];
    gpi__text text = gpi__text_in(words, sizeof words);
    gpi__print_key(&text, placed->formula);
    gpi__sha256_update(sha, words, strlen(words));
    gpi__sha256_update(sha, placed->operands, sizeof placed->operands);
    gpi__sha256_update(sha, placed->formula->nodes,
                       (size_t)placed->formula->node_count * sizeof placed->formula->nodes[0]);
}

static void gpi__problem_digest(const gpi__problem *problem, unsigned char digest[GPI__DIGEST_SIZE]) {
    unsigned char whole[GPI__SHA256_SIZE];
    gpi__problem bare = *problem;
    gpi__plan_key key;
    gpi__sha256 sha;
    int i;
    for (i = 0; i < GPI__FORMULAS; i++)
        *gpi__formula_slot(&bare, i) = NULL; /* an address, which other processes do not have */
    gpi__make_plan_key(&bare, &key);
    gpi__sha256_init(&sha);
    gpi__sha256_update(&sha, key.bytes, key.size);
    for (i = 0; i < GPI__FORMULAS; i++)
        if (gpi__nth_formula(problem, i))
            gpi__digest_formula(&sha, gpi__nth_formula(problem, i));
    gpi__sha256_final(&sha, whole);
    memcpy(digest, whole, GPI__DIGEST_SIZE);
}

static void gpi__append_words(gpi__text *text, const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    gpi__append(text, "m %lld n %lld k %lld batch %lld %s%s x %s%s to %s ",
                (long long)gpi__callers_m(problem), (long long)gpi__callers_n(problem), (long long)problem->k,
                (long long)problem->batch, gpi__type(a->dtype), a->transposed ? "^T" : "",
                gpi__type(b->dtype), b->transposed ? "^T" : "", gpi__type(problem->views[GPI__D].dtype));
    gpi__append_epilogue(text, gpi__callers_epilogue(problem->epilogue, problem->exchanged));
    if (problem->flags & GEMMEPI_ACCUMULATE)
        gpi__append(text, " ACCUMULATE");
}

/* >>in text */

/* The whole numbers of a line, in their order, and the words before them. */
static const struct {
    const char *word;
    size_t at; /* of an int in an answer */
} gpi__answer_numbers[] = {{" shape ", offsetof(gpi__answer, candidate.shape)},
                           {" parts ", offsetof(gpi__answer, candidate.parts)},
                           {" copies ", offsetof(gpi__answer, candidate.copies[0])},
                           {" ", offsetof(gpi__answer, candidate.copies[1])},
                           {" inside ", offsetof(gpi__answer, candidate.is_inside)},
                           {" algorithm ", offsetof(gpi__answer, candidate.algorithm.id)},
                           {" tile ", offsetof(gpi__answer, candidate.algorithm.tile)},
                           {" stages ", offsetof(gpi__answer, candidate.algorithm.stages)},
                           {" split ", offsetof(gpi__answer, candidate.algorithm.split)},
                           {" reduction ", offsetof(gpi__answer, candidate.algorithm.reduction)},
                           {" swizzle ", offsetof(gpi__answer, candidate.algorithm.swizzle)},
                           {" custom ", offsetof(gpi__answer, candidate.algorithm.custom)},
                           {" inner ", offsetof(gpi__answer, candidate.algorithm.inner)},
                           {" cluster ", offsetof(gpi__answer, candidate.algorithm.cluster)},
                           {" cublaslt ", offsetof(gpi__answer, cublaslt)},
                           {" timed ", offsetof(gpi__answer, ways_timed)},
                           {" left ", offsetof(gpi__answer, ways_left)}};

static void gpi__append_answer(gpi__text *text, const gpi__answer *answer) {
    const gpi__candidate *c = &answer->candidate;
    size_t i;
    for (i = 0; i < GPI__DIGEST_SIZE; i++)
        gpi__append(text, "%02x", answer->digest[i]);
    gpi__append(text, " %s", gpi__route_names[c->route]);
    gpi__append(text, " %s", c->engine == GPI__ANY_ENGINE ? "-" : gpi__engines[c->engine]->name);
    for (i = 0; i < GPI__COUNT(gpi__answer_numbers); i++) {
        int number;
        memcpy(&number, (const char *)answer + gpi__answer_numbers[i].at, sizeof number);
        gpi__append(text, "%s%d", gpi__answer_numbers[i].word, number);
    }
    gpi__append(text, " nanoseconds %lld : %s\n", (long long)(c->microseconds * 1e3), answer->words);
}

static int gpi__hex_value(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int gpi__read_digest(const char *line, unsigned char digest[GPI__DIGEST_SIZE]) {
    int i;
    for (i = 0; i < GPI__DIGEST_SIZE; i++) {
        int high = gpi__hex_value(line[2 * i]), low = high < 0 ? -1 : gpi__hex_value(line[2 * i + 1]);
        if (low < 0)
            return 0;
        digest[i] = (unsigned char)(16 * high + low);
    }
    return line[2 * GPI__DIGEST_SIZE] == ' ';
}

/* The engine of this name, ANY_ENGINE for "-", or -2. */
static int gpi__engine_named(const char *name) {
    int i;
    for (i = 0; i < (int)GPI__COUNT(gpi__engines); i++)
        if (strcmp(gpi__engines[i]->name, name) == 0)
            return i;
    return strcmp(name, "-") == 0 ? GPI__ANY_ENGINE : -2;
}

static int gpi__route_named(const char *name) {
    int i;
    for (i = 0; i < (int)GPI__COUNT(gpi__told_routes); i++)
        if (strcmp(gpi__route_names[gpi__told_routes[i]], name) == 0)
            return (int)gpi__told_routes[i];
    return -1;
}

/* The next number, which `word` stands before, or -1; *at moves behind it. */
static int64_t gpi__read_number(const char **at, const char *word) {
    size_t length = strlen(word);
    int64_t value = 0;
    int digits = 0;
    if (strncmp(*at, word, length) != 0)
        return -1;
    for (*at += length; **at >= '0' && **at <= '9' && digits < 18; digits++, (*at)++)
        value = 10 * value + (**at - '0');
    return digits && digits < 18 ? value : -1;
}

/* The next word into `word`, up to the blank behind it; 0 where it is too long. */
static int gpi__read_word(const char **at, char word[16]) {
    size_t length = strcspn(*at, " \n");
    if (**at == 0 || length == 0 || length > 15 || (*at)[length] != ' ')
        return 0;
    memcpy(word, *at, length);
    word[length] = 0;
    *at += length;
    return 1;
}

/* All whole numbers of a line. */
static int gpi__read_answer_numbers(const char **at, gpi__answer *answer) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__answer_numbers); i++) {
        int64_t value = gpi__read_number(at, gpi__answer_numbers[i].word);
        int number = (int)value;
        if (value < 0 || value > 100000000)
            return 0;
        memcpy((char *)answer + gpi__answer_numbers[i].at, &number, sizeof number);
    }
    /* an algorithm is of a version */
    return (answer->candidate.algorithm.id > 0) == (answer->cublaslt > 0) && answer->candidate.is_inside <= 1;
}

/* A line, with or without its end. 0 where it is none, whatever it has instead. */
static int gpi__read_answer(const char *line, gpi__answer *answer) {
    gpi__candidate *c = &answer->candidate;
    const char *at = line;
    char route[16], engine[16];
    int64_t nanoseconds;
    size_t i, length;
    memset(answer, 0, sizeof *answer);
    if (strlen(line) < 2 * GPI__DIGEST_SIZE + 1 || !gpi__read_digest(line, answer->digest))
        return 0;
    at += 2 * GPI__DIGEST_SIZE + 1;
    if (!gpi__read_word(&at, route) || *at++ != ' ' || !gpi__read_word(&at, engine) ||
        gpi__route_named(route) < 0 || gpi__engine_named(engine) < GPI__ANY_ENGINE ||
        !gpi__read_answer_numbers(&at, answer))
        return 0;
    nanoseconds = gpi__read_number(&at, " nanoseconds ");
    if (nanoseconds < 0 || strncmp(at, " : ", 3) != 0)
        return 0;
    length = strcspn(at + 3, "\n");
    if (length >= sizeof answer->words)
        return 0;
    for (i = 0; i < length; i++)
        if ((unsigned char)at[3 + i] < 32 || at[3 + i] == 127)
            return 0;
    memcpy(answer->words, at + 3, length);
    c->route = (gemmepi_route)gpi__route_named(route);
    c->engine = gpi__engine_named(engine);
    c->microseconds = (double)nanoseconds / 1e3;
    answer->is_loaded = 1;
    return 1;
}

/* >>whether it may be taken */

/* One that is enumerated, with the same engine and copies, or NULL. */
static const gpi__candidate *gpi__candidate_like(const gpi__candidates *candidates,
                                                 const gpi__candidate *one) {
    int i;
    for (i = 0; i < candidates->count; i++) {
        const gpi__candidate *other = &candidates->list[i];
        if (!other->refusal && other->route == one->route && other->engine == one->engine &&
            other->copies[0] == one->copies[0] && other->copies[1] == one->copies[1])
            return other;
    }
    return NULL;
}

/* Says of one of them for which runs it is, which an answer's text does not. */
static void gpi__complete_way(const gpi__candidates *candidates, gpi__candidate *one) {
    one->unit_alpha = gpi__candidate_like(candidates, one)->unit_alpha;
}

/* Whether it is a way to run the problem, of which these are the candidates: an answer may come from anywhere. */
static int gpi__is_a_way(const gemmepi_context *context, const gpi__problem *problem,
                         const gpi__candidates *candidates, const gpi__candidate *one) {
    gpi__candidate own = *one;
    gpi__problem packed;
    if (!gpi__candidate_like(candidates, one))
        return 0;
    gpi__complete_way(candidates, &own);
    if (one->route != GEMMEPI_ROUTE_FUSED)
        return (one->route != GEMMEPI_ROUTE_PLAIN && problem->k) == (one->algorithm.id > 0);
    gpi__pack_views(problem, one->copies, &packed);
    return one->algorithm.id == 0 && one->shape >= 0 && one->shape < gpi__engines[one->engine]->shapes &&
           one->parts >= 1 && one->parts <= GPI__MOST_PARTS &&
           gpi__engines[one->engine]->estimate(context, &packed, &own) < GPI__NEVER;
}

/* >>what a context has; under its build_lock */

static gpi__answer *gpi__find_answer(const gemmepi_context *context,
                                     const unsigned char digest[GPI__DIGEST_SIZE]) {
    return (gpi__answer *)gpi__map_find(&context->answers, digest, GPI__DIGEST_SIZE);
}

/* Keeps it in place of another for the problem. */
static gemmepi_status gpi__keep_answer(gemmepi_context *context, const gpi__answer *answer) {
    gpi__answer *kept = gpi__find_answer(context, answer->digest);
    if (kept) {
        *kept = *answer;
        return GEMMEPI_OK;
    }
    kept = (gpi__answer *)gpi__new(&context->allocator, sizeof *kept);
    if (!kept)
        return GEMMEPI_OUT_OF_MEMORY;
    *kept = *answer;
    if (gpi__map_insert(&context->answers, answer->digest, GPI__DIGEST_SIZE, kept))
        return GEMMEPI_OK;
    gpi__delete(&context->allocator, kept);
    return GEMMEPI_OUT_OF_MEMORY;
}

/* >>in the cache folder */

/* What answers hold for, beside the problem. The version of cuBLASLt stands in the answer: it is not loaded to ask for it. */
static void gpi__append_maker(gpi__text *text, const gemmepi_context *context) {
    gpi__append(text,
                "gemmepi " GEMMEPI_VERSION_STRING
                ", driver %d, chip %d of %d multiprocessors, routes %x, engines %d%d, %s",
                context->driver.version, context->arch, context->multiprocessors, context->routes,
                GPI__HAS_SM80, GPI__HAS_SM90, context->name);
}

static size_t gpi__answer_key(const gemmepi_context *context, const unsigned char digest[GPI__DIGEST_SIZE],
                              char key[512]) {
    gpi__text text = gpi__text_in(key, 512);
    int i;
    gpi__append_maker(&text, context);
    gpi__append(&text, ": ");
    for (i = 0; i < GPI__DIGEST_SIZE; i++)
        gpi__append(&text, "%02x", digest[i]);
    return strlen(key);
}

static void gpi__store_answer(gemmepi_context *context, const gpi__answer *answer) {
    char key[512], line[GPI__ANSWER_LINE];
    size_t size = gpi__answer_key(context, answer->digest, key);
    gpi__text text = gpi__text_in(line, sizeof line);
    gpi__append_answer(&text, answer);
    gpi__disk_cache_put(&context->disk, "answer", key, size, line, strlen(line) + 1);
}

/* From the folder to the context, if there is one that can be read. */
static void gpi__fetch_answer(gemmepi_context *context, const unsigned char digest[GPI__DIGEST_SIZE]) {
    char key[512];
    size_t size = gpi__answer_key(context, digest, key), found = 0;
    void *line = NULL;
    gpi__answer answer;
    if (!gpi__disk_cache_get(&context->disk, "answer", key, size, &line, &found))
        return;
    if (found && ((char *)line)[found - 1] == 0 && gpi__read_answer((const char *)line, &answer) &&
        memcmp(answer.digest, digest, GPI__DIGEST_SIZE) == 0)
        (void)gpi__keep_answer(context, &answer);
    gpi__delete(&context->allocator, line);
}

#endif
