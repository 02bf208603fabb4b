/* Measures gemmepi on this machine: each operation by turns with what it is held against, and both on the same data.
   --help lists the options. Ends with 0, also where a row is beyond its bound; 1 where something did not run; 77 where
   there is no GPU. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <ctype.h>

#include "bench.h"
#include "elementwise.c"
#include "formulas.c"
#include "fp8.c"
#include "grouped.c"
#include "linear.c"
#include "network.c"
#include "products.c"
#include "random.c"
#include "report.h"
#include "weights.c"

#include "formula_race.c"

enum { NOTHING_MEASURED = 77, MOST_REPORTS = 64, MOST_RANDOM = 1000000 };

static struct {
    int rounds, warm, size, device; /* warm in milliseconds; size in MiB; 0: as main says */
    int host, list, help;
    const char *only, *csv, *svg;
    int random, seed; /* problems to draw; 0: --random was not given */
    int famous, tuned, formulas, answers, ampere, card;
    const char *rows, *modes, *seconds;    /* NULL: not given */
    const char *candidates;                /* NULL: not given */
    const char *reports[MOST_REPORTS + 1]; /* up to the first NULL */
    const char *problems[NAMED_MOST + 1];
} wanted = {15, 300, 0, 0, 0, 0, 0,    "",   NULL, NULL, 0,      1,
            0,  0,   0, 0, 0, 0, NULL, NULL, NULL, NULL, {NULL}, {NULL}};

typedef struct option {
    const char *name, *value, *help; /* value NULL: a flag */
    int *number;
    int least, most; /* with text: least is how many there may be, 0 for one that the next replaces */
    const char **text;
} option;

static const option options[] = {
    {"--rounds", "N", "rounds of each row, 15 unless given", &wanted.rounds, 1, BENCH_MOST_ROUNDS, NULL},
    {"--warm", "MS",
     "milliseconds of rounds ahead of those of a row of products, 300 unless given: until a GPU's clock"
     "\n                 has come down to its power limit",
     &wanted.warm, 0, 60000, NULL},
    {"--size", "MIB", "size of a main tensor, 256 MiB unless given, on the host 1; products have their own",
     &wanted.size, 1, 1 << 15, NULL},
    {"--only", "TEXT", "the rows whose 'name dtype' has TEXT in it", NULL, 0, 0, &wanted.only},
    {"--csv", "FILE",
     "writes every round to FILE; copy_us of a call is an empty launch's, of dB only the product's;"
     "\n                 of products products_us is the bare one's",
     NULL, 0, 0, &wanted.csv},
    {"--svg", "FILE",
     "draws some of the products to FILE; of --random, --famous and --report all ratios, sorted", NULL, 0, 0,
     &wanted.svg},
    {"--device", "I", "the CUDA device, 0 unless given", &wanted.device, 0, 1 << 10, NULL},
    {"--random", "N",
     "in place of the rows above N products drawn at random, raced in four modes against cuBLASLt's epilogue"
     "\n                 and its product with one pass behind it; with --list shows them, with --csv adds lines to FILE",
     &wanted.random, 1, MOST_RANDOM, NULL},
    {"--famous", NULL,
     "the same races of the products of Llama-3-8B, Qwen2.5-0.5B and GPT-2 124M; --only picks some, as"
     "\n                 'llama', 'gpt2 dW', 'decode'; --rows are of those picked",
     &wanted.famous, 0, 0, NULL},
    {"--problem", "LIST",
     "the same races of products by name, as --list and reports have them, with commas between:"
     "\n                 '8192x3072x768 NT BF16 GELU_TANH|BIAS|AUX,512x64x77 NN F16 NONE a+3'",
     NULL, NAMED_MOST, 0, wanted.problems},
    {"--formulas", NULL,
     "races of the rows of formulas in graph and burst, or --modes, against the bare product and a copy of as"
     "\n                 many bytes as all tensors have; --only picks some",
     &wanted.formulas, 0, 0, NULL},
    {"--tuned", NULL,
     "of --random and --famous: gemmepi_tune goes first, whose answers the cache folder keeps for later runs,"
     "\n                 also for those without this option",
     &wanted.tuned, 0, 0, NULL},
    {"--ampere", NULL,
     "of --random, --famous and --problem, on Hopper: ours without the kernels that only Hopper has, by the routes fused"
     "\n                 and plain, against those of 200 of cuBLASLt's answers that have none either, or where it names none"
     "\n                 the best of its other algorithms, listed by number, tile and stages, and against Triton's kernels for 8.0 where"
     "\n                 python3 has Triton",
     &wanted.ampere, 0, 0, NULL},
    {"--seed", "S", "of --random, 1 unless given", &wanted.seed, 0, 1 << 30, NULL},
    {"--rows", "A..B", "of the N from A to before B", NULL, 0, 0, &wanted.rows},
    {"--candidates", "FILE",
     "of --random, --famous and --problem: in place of races writes to FILE the time of every route, kernel and shape of ours in a CUDA graph",
     NULL, 0, 0, &wanted.candidates},
    {"--answers", NULL,
     "of --candidates: the time of cuBLASLt's first answers alone, which plans do not ask for, of products of 10^9"
     "\n                 operations or more",
     &wanted.answers, 0, 0, NULL},
    {"--modes", "LIST", "graph,spaced,burst,stream or some of them", NULL, 0, 0, &wanted.modes},
    {"--seconds", "X", "for the races of one problem, about 4 unless given", NULL, 0, 0, &wanted.seconds},
    {"--report", "FILE",
     "the report of what --csv has written of --random and --famous; again for more files, or FILE,FILE",
     NULL, MOST_REPORTS, 0, wanted.reports},
    {"--card", NULL, "what there is to measure: the GPU, its driver and libraries, and nothing more",
     &wanted.card, 0, 0, NULL},
    {"--host", NULL, "measures the host in place of a GPU, against memcpy", &wanted.host, 0, 0, NULL},
    {"--list", NULL, "lists the rows with their bounds, measures nothing", &wanted.list, 0, 0, NULL},
    {"--help", NULL, "this", &wanted.help, 0, 0, NULL},
};

#ifdef GEMMEPI_NO_SM90
static const int has_hopper = 0;
#else
static const int has_hopper = 1;
#endif

static bench_list all, rows;
static bench_result result;

static int is_number(const option *o, const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || value < o->least || value > o->most)
        return 0;
    *o->number = (int)value;
    return 1;
}

/* Adds a text to a list that may hold o->least of them, divided at its commas. */
static int add_texts(const option *o, char *text) {
    int count = 0;
    char *rest = text;
    while (o->text[count])
        count++;
    while (rest && count < o->least)
        o->text[count++] = outcome_field(&rest);
    return !rest;
}

/* Takes the option at argv[0]. Returns how many arguments it has, 0 where that is no option. */
static int take_option(char **argv) {
    const option *o = options;
    while (o < options + COUNT(options) && strcmp(argv[0], o->name) != 0)
        o++;
    if (o == options + COUNT(options)) {
        fprintf(stderr, "%s is no option, --help lists them\n", argv[0]);
        return 0;
    }
    if (!o->value) {
        *o->number = 1;
        return 1;
    }
    if (argv[1] && o->text && o->least)
        return add_texts(o, argv[1]) ? 2 : 0;
    if (argv[1] && o->text) {
        *o->text = argv[1];
        return 2;
    }
    if (argv[1] && is_number(o, argv[1]))
        return 2;
    fprintf(stderr, "%s needs %s", o->name, o->value);
    if (o->number)
        fprintf(stderr, ", %d to %d", o->least, o->most);
    fprintf(stderr, "\n");
    return 0;
}

static int take_options(char **argv) {
    int taken;
    for (argv++; *argv; argv += taken) {
        taken = take_option(argv);
        if (!taken)
            return 0;
    }
    return 1;
}

static void print_help(void) {
    char name[32];
    int i;
    printf(
        "Times planned runs by turns with plain copies of as many bytes, and what a run costs the host; layers\n"
        "by turns with their bare products and a copy; formulas with the bare product; products by weights in I8 with a copy of as\n"
        "many bytes as these have; grouped products with a loop of cuBLASLt's; products by turns with cuBLASLt's, bare, with its own\n"
        "epilogue and with a pass of ours. --random draws products in place of those rows, --famous has those of\n"
        "well-known models.\n");
    for (i = 0; i < COUNT(options); i++) {
        snprintf(name, sizeof name, "%s %s", options[i].name, options[i].value ? options[i].value : "");
        printf("  %-14s %s\n", name, options[i].help);
    }
    printf("Status 0: everything ran; 1: something did not; %d: no GPU, nothing measured.\n",
           NOTHING_MEASURED);
}

/* Whether text has part in it, capital or not. */
static int contains(const char *text, const char *part) {
    for (;; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return 1;
        if (!*text)
            return 0;
    }
}

/* The bounds are those of a GPU, and the host launches nothing and has no cuBLASLt, so that a call, a layer or a product has
   nothing to be held against. */
static void choose_rows(void) {
    char text[96];
    int i;
    elementwise_rows(&all);
    linear_rows(&all);
    network_rows(&all);
    formula_rows(&all);
    fp8_rows(&all);
    weights_rows(&all);
    grouped_rows(&all);
    products_rows(&all);
    for (i = 0; i < all.count; i++) {
        snprintf(text, sizeof text, "%s %s", all.rows[i].name, all.rows[i].dtype);
        if (contains(text, wanted.only) && !(wanted.host && all.rows[i].kind != BENCH_SPEED))
            rows.rows[rows.count++] = all.rows[i];
    }
    for (i = 0; wanted.host && i < rows.count; i++)
        rows.rows[i].bound = 0;
}

static void print_list(void) {
    int i;
    for (i = 0; i < rows.count; i++) {
        const bench_row *row = rows.rows + i;
        printf("%-20s %-51s %-10s", row->group, row->name, row->dtype);
        if (row->bound > 0)
            printf(" %s %.2f", row->kind == BENCH_SPEED ? "at least" : "at most ", row->bound);
        printf("\n");
    }
}

static int has_products(void) {
    int i;
    for (i = 0; i < rows.count; i++)
        if (rows.rows[i].kind == BENCH_PRODUCT)
            return 1;
    return 0;
}

static size_t most_memory(size_t size) {
    size_t most = 0;
    int i;
    for (i = 0; i < rows.count; i++) {
        size_t memory = rows.rows[i].memory(rows.rows + i, size);
        if (memory > most)
            most = memory;
    }
    return most;
}

static void measure(bench *b, report *r) {
    int i;
    progress_begin(&r->progress, "rows", rows.count);
    for (i = 0; i < rows.count; i++) {
        const bench_row *row = rows.rows + i;
        progress_show(&r->progress, row->name);
        if (bench_measure(b, row, &result)) {
            report_row(r, row, &result);
            report_rounds(r, row, &result);
        } else
            report_failure(r, row, b->fault);
        r->progress.done++;
    }
    progress_show(&r->progress, "");
}

/* Before the time is spent. */
static int open_files(report *r) {
    int csv = !wanted.csv || report_open_csv(r, wanted.csv),
        svg = !wanted.svg || report_open_svg(r, wanted.svg);
    if (!csv || !svg)
        fprintf(stderr, "%s cannot be written\n", csv ? wanted.svg : wanted.csv);
    return csv && svg;
}

static int close_file(FILE *file, const char *path) {
    int whole = !file || report_close(file);
    if (!whole)
        fprintf(stderr, "%s could not be written whole\n", path);
    return whole;
}

static int close_files(report *r, const bench *b) {
    int csv = close_file(r->csv, wanted.csv);
    if (r->svg)
        chart_write(&r->chart, r->svg, b->details.name);
    return close_file(r->svg, wanted.svg) && csv;
}

/* "A..B" within the N */
static int take_rows(random_wishes *w) {
    int length = 0;
    w->from = 0, w->to = w->count;
    if (!wanted.rows)
        return 1;
    if (sscanf(wanted.rows, "%d..%d%n", &w->from, &w->to, &length) == 2 && !wanted.rows[length] &&
        w->from >= 0 && w->from < w->to && w->to <= w->count)
        return 1;
    fprintf(stderr, "--rows needs A..B, from 0 to %d, A below B\n", w->count);
    return 0;
}

static int take_modes(random_wishes *w) {
    const char *at = wanted.modes;
    int mode;
    for (mode = 0; mode < RACE_MODES; mode++)
        w->modes[mode] = !at;
    while (at && *at) {
        size_t length = strcspn(at, ",");
        for (mode = 0; mode < RACE_MODES; mode++)
            if (strlen(race_mode_names[mode]) == length && strncmp(race_mode_names[mode], at, length) == 0)
                break;
        if (mode == RACE_MODES) {
            fprintf(stderr, "--modes needs graph, spaced, burst and stream, with commas between\n");
            return 0;
        }
        w->modes[mode] = 1;
        at += length + (at[length] == ',');
    }
    return 1;
}

static int take_seconds(random_wishes *w) {
    char *end = NULL;
    double seconds = wanted.seconds ? strtod(wanted.seconds, &end) : 4;
    w->scale = seconds / 4;
    if (seconds > 0.01 && seconds < 1000 && (!end || !*end))
        return 1;
    fprintf(stderr, "--seconds needs a number\n");
    return 0;
}

/* The rows of famous.h whose name has the text of --only in it. */
static int take_famous(random_wishes *w) {
    static int chosen[FAMOUS_MOST];
    char name[FAMOUS_NAME];
    int row;
    for (row = 0; famous_name(row, name, sizeof name); row++)
        if (contains(name, wanted.only))
            chosen[w->count++] = row;
    w->famous = chosen, w->seed = FAMOUS_SEED;
    if (w->count)
        return 1;
    fprintf(stderr, "no product of --famous has '%s' in its name\n", wanted.only);
    return 0;
}

/* The products of --problem. */
static int take_named(random_wishes *w) {
    static draw_problem named[NAMED_MOST];
    gemmepi_epilogue_needs needs;
    w->named = named, w->seed = NAMED_SEED;
    for (; wanted.problems[w->count]; w->count++) {
        gemmepi_matmul_desc desc;
        if (!named_problem(wanted.problems[w->count], &named[w->count])) {
            fprintf(
                stderr,
                "--problem: '%s' is no product's name. One is '8192x3072x768 NT BF16 GELU_TANH|BIAS|AUX'\n",
                wanted.problems[w->count]);
            return 0;
        }
        desc = draw_desc(&named[w->count]);
        if (gemmepi_epilogue_info(&desc, &needs)) {
            fprintf(stderr, "--problem: '%s': %s\n", wanted.problems[w->count], gemmepi_last_error());
            return 0;
        }
    }
    return 1;
}

static int take_products(random_wishes *w) {
    int named = wanted.problems[0] != NULL;
    w->count = wanted.random, w->seed = wanted.seed;
    if ((wanted.random != 0) + wanted.famous + named > 1) {
        fprintf(stderr, "one of --random, --famous and --problem\n");
        return 0;
    }
    if (named)
        w->count = 0;
    return named ? take_named(w) : !wanted.famous || take_famous(w);
}

static int take_wishes(random_wishes *w) {
    memset(w, 0, sizeof *w);
    w->csv = wanted.csv, w->svg = wanted.svg;
    w->candidates = wanted.candidates, w->tuned = wanted.tuned, w->answers = wanted.answers;
    if (w->answers && !w->candidates) {
        fprintf(stderr, "--answers goes with --candidates\n");
        return 0;
    }
    if (w->candidates && w->tuned) {
        fprintf(stderr, "--candidates times every way, and --tuned goes only with races\n");
        return 0;
    }
    if (w->candidates && w->svg) {
        fprintf(stderr, "--svg draws races, and --candidates has none\n");
        return 0;
    }
    if (w->candidates && wanted.ampere) {
        fprintf(stderr, "--ampere goes with races, and --candidates has none\n");
        return 0;
    }
    return take_products(w) && take_rows(w) && take_modes(w) && take_seconds(w);
}

/* With the context created. Returns the program's status. */
static int run(bench *b, int argc, char **argv) {
    static report r;
    size_t memory = most_memory(b->size);
    int opened = bench_open(b, memory) && bench_warm_up(b, memory);
    if (!opened) {
        fprintf(stderr, "%s\n(%lu MiB of memory are used; --size makes it less)\n", b->fault,
                (unsigned long)(memory >> 20));
        return 1;
    }
    if (!open_files(&r))
        return 1;
    measure(b, &r);
    report_end(&r, b, argc, argv);
    return !close_files(&r, b) || r.failed != 0;
}

static int create(bench *b) {
    gemmepi_config config;
    gemmepi_status status;
    memset(&config, 0, sizeof config);
    config.device = wanted.host ? GEMMEPI_DEVICE_HOST : GEMMEPI_DEVICE(wanted.device);
    if (b->is_ampere)
        config.routes = 1u << GEMMEPI_ROUTE_FUSED | 1u << GEMMEPI_ROUTE_PLAIN;
    status = gemmepi_create(&config, &b->context);
    if (status == GEMMEPI_OK)
        return 0;
    if (status == GEMMEPI_NO_DEVICE || status == GEMMEPI_LIBRARY_NOT_FOUND) {
        printf("nothing measured, there is no GPU to use (--host measures the host): %s\n",
               gemmepi_last_error());
        return NOTHING_MEASURED;
    }
    fprintf(stderr, "%s\n", gemmepi_last_error());
    return 1;
}

/* Products of --random, --famous or --problem, from the options to the report, or --card. Returns the program's status. */
static int run_random(bench *b) {
    random_wishes wishes;
    int status;
    if (!wanted.card && !take_wishes(&wishes))
        return 1;
    if (wanted.list && !wanted.card)
        return random_list(&wishes);
    if (wanted.host) {
        fprintf(stderr, "--random, --famous, --problem and --card measure a GPU, and not the host\n");
        return 1;
    }
    b->rounds = wanted.rounds;
    b->is_ampere = wanted.ampere;
    status = create(b);
    if (status)
        return status;
    if (bench_open(b, RANDOM_WARM_BYTES) && (wanted.card || bench_warm_up(b, RANDOM_WARM_BYTES)))
        status = wanted.card ? random_card(b) : random_run(b, &wishes);
    else {
        fprintf(stderr, "%s\n", b->fault);
        status = 1;
    }
    bench_close(b);
    return status;
}

/* Those of --only, in graph and burst unless --modes says others. Returns the program's status. */
static int run_formulas(bench *b) {
    random_wishes wishes;
    int chosen[COUNT(formula_forms)], count = 0, i, status;
    char name[FORMULA_NAME];
    memset(&wishes, 0, sizeof wishes);
    if (!wanted.modes)
        wanted.modes = "graph,burst";
    for (i = 0; i < COUNT(formula_forms); i++)
        if (contains(formula_name(formula_forms + i, name), wanted.only))
            chosen[count++] = i;
    if (!count)
        fprintf(stderr, "no formula has '%s' in its name\n", wanted.only);
    if (!count || !take_modes(&wishes) || !take_seconds(&wishes))
        return 1;
    status = create(b);
    if (status)
        return status;
    b->rounds = wanted.rounds;
    status = formula_race_all(b, &wishes, chosen, count);
    bench_close(b);
    return status;
}

static int run_rows(bench *b, int argc, char **argv) {
    int status;
    choose_rows();
    if (wanted.list && rows.count)
        print_list();
    if (!rows.count)
        fprintf(stderr, "no row has '%s' in its name and dtype\n", wanted.only);
    if (wanted.list || !rows.count)
        return !rows.count;
    if (wanted.svg && !has_products()) {
        fprintf(stderr, "--svg draws products, and none of the rows is one\n");
        return 1;
    }
    b->rounds = wanted.rounds;
    b->warm = wanted.host ? 0 : wanted.warm / 1e3;
    b->size = (size_t)(wanted.size ? wanted.size : wanted.host ? 1 : 256) << 20;
    status = create(b);
    if (status)
        return status;
    status = run(b, argc, argv);
    products_close();
    bench_close(b);
    return status;
}

int main(int argc, char **argv) {
    static bench b;
    int reports = 0;
    if (!take_options(argv))
        return 1;
    if (wanted.help) {
        print_help();
        return 0;
    }
    while (wanted.reports[reports])
        reports++;
    if (reports)
        return random_report(wanted.reports, reports, wanted.svg);
    if (wanted.ampere && has_hopper) {
        fprintf(
            stderr,
            "--ampere needs a program with GEMMEPI_NO_SM90 defined: make bench BENCH='--ampere ...' compiles it\n");
        return 1;
    }
    if (wanted.formulas && !wanted.list && !wanted.host)
        return run_formulas(&b);
    return wanted.random || wanted.famous || wanted.problems[0] || wanted.card ? run_random(&b)
                                                                               : run_rows(&b, argc, argv);
}
