/* Whether strided tensors share a byte. The quick answers come first, since this is asked at every run of tensors whose
   ranges overlap: an empty tensor, and ranges apart. Else two elements share a byte where

       sum of step[i] x[i] = total,   0 <= x[i] <= most[i]

   has a solution in whole numbers, a term for each axis and one (of step 1) for the bytes of an element. Narrowing the
   terms settles all that comes of slicing one matrix, and three terms (the lines of two matrices, and bytes) are settled by
   Euclid's algorithm; what is left is searched, a bounded number of steps. */
#ifndef GEMMEPI_PROBLEM_OVERLAP_H
#define GEMMEPI_PROBLEM_OVERLAP_H

#include "../base/platform.h"

#define GPI__OVERLAP_STEPS 4000 /* a millisecond or two */

/* What layouts_share and layout_repeats answer. */
enum { GPI__APART, GPI__SHARED, GPI__UNDECIDED };

/* A strided tensor in bytes: element (i0, i1, ..) covers `size` bytes from i0 stride[0] + i1 stride[1] + .. on. It is
   empty where an extent or size is 0, and spans less than 2^62 bytes. Strides of extents of 1 do not count. */
typedef struct gpi__layout {
    int rank;
    int64_t size;
    int64_t shape[8], stride[8];
} gpi__layout;

/* step x, 0 <= x <= most; step is positive. */
typedef struct gpi__term {
    int64_t step, most;
} gpi__term;

typedef struct gpi__equation {
    int count;
    int64_t total;
    gpi__term terms[17]; /* the axes of two layouts, and the bytes of an element */
} gpi__equation;

static void gpi__add_term(gpi__equation *equation, int64_t step, int64_t most) {
    gpi__term *term = &equation->terms[equation->count];
    if (step == 0 || most == 0)
        return;
    term->step = step;
    term->most = most;
    equation->count++;
}

static void gpi__sort_terms(gpi__equation *equation) {
    int i, j;
    for (i = 1; i < equation->count; i++) {
        gpi__term term = equation->terms[i];
        for (j = i; j > 0 && equation->terms[j - 1].step > term.step; j--)
            equation->terms[j] = equation->terms[j - 1];
        equation->terms[j] = term;
    }
}

/* Sorts the terms, drops those that are always 0, and folds a term into a smaller one whose values reach from one of
   its values to the next: then both together are simply more values of the smaller one. So rows without padding become
   one line, and equal strides one term. */
static void gpi__fold_terms(gpi__equation *equation) {
    int i, j, kept = 0;
    gpi__sort_terms(equation);
    for (i = 0; i < equation->count; i++) {
        gpi__term term = equation->terms[i];
        for (j = 0; j < kept && term.most; j++) {
            gpi__term *inner = &equation->terms[j];
            int64_t ratio = term.step / inner->step;
            if (ratio - 1 <= inner->most && term.step % inner->step == 0) {
                inner->most += ratio * term.most;
                term.most = 0;
            }
        }
        if (term.most)
            equation->terms[kept++] = term;
    }
    equation->count = kept;
}

/* The greatest common divisor of a and b, not both 0; a * factor is the same modulo b. */
static int64_t gpi__common_divisor(int64_t a, int64_t b, int64_t *factor) {
    int64_t next = 0;
    *factor = 1;
    while (b) {
        int64_t ratio = a / b, rest = a % b, before = *factor;
        *factor = next;
        next = before - ratio * next;
        a = b;
        b = rest;
    }
    return a;
}

/* a * b modulo m without more than 63 bits; a and b are below m. */
static int64_t gpi__times_modulo(int64_t a, int64_t b, int64_t m) {
    int64_t product = 0;
    if (m <= INT32_MAX)
        return a * b % m;
    for (; b; b >>= 1) {
        if (b & 1)
            product = product < m - a ? product + a : product - (m - a);
        a = a < m - a ? a + a : a - (m - a);
    }
    return product;
}

/* Leaves term i only the values that it may have: no less than the other terms leave over, no more than total, and such
   that the others' common divisor divides what is left for them. The least goes into total. 0 where there is none. */
static int gpi__narrow_term(gpi__equation *equation, int i) {
    gpi__term *term = &equation->terms[i];
    int64_t others = 0, divisor = 0, apart = 1, least = 0, most = equation->total / term->step, factor;
    int j;
    for (j = 0; j < equation->count; j++) {
        if (j == i)
            continue;
        others += equation->terms[j].step * equation->terms[j].most;
        divisor = gpi__common_divisor(equation->terms[j].step, divisor, &factor);
    }
    if (most > term->most)
        most = term->most;
    if (equation->total > others)
        least = (equation->total - others - 1) / term->step + 1;
    if (least > most)
        return 0;
    equation->total -= term->step * least;
    most -= least;
    if (divisor) {
        int64_t common = gpi__common_divisor(term->step % divisor, divisor, &factor);
        if (equation->total % common)
            return 0;
        apart = divisor / common;
        factor = factor < 0 ? factor + apart : factor;
        least = gpi__times_modulo(equation->total / common % apart, factor % apart, apart);
        if (least > most)
            return 0;
        equation->total -= term->step * least;
        most -= least;
    }
    term->most = most / apart;
    if (term->most)
        term->step *= apart;
    return 1;
}

/* Folds and narrows while that changes more than bounds. 0 where there is no solution. One term or two are settled
   here: either there is none, or nothing is left of them. */
static int gpi__simplify(gpi__equation *equation) {
    int i, again;
    do {
        if (equation->total < 0)
            return 0;
        again = 0;
        gpi__fold_terms(equation);
        for (i = 0; i < equation->count; i++) {
            int64_t step = equation->terms[i].step;
            if (!gpi__narrow_term(equation, i))
                return 0;
            again |= equation->terms[i].step != step || equation->terms[i].most == 0;
        }
    } while (again);
    return equation->count > 0 || equation->total == 0;
}

/* The least t from 0 to `most` for which a t modulo m lies in low .. high, or -1; 0 <= a < m, 0 <= low <= high < m. Where
   no multiple of a lies in between, a t passes m so often that the rest, modulo a, does: Euclid's algorithm. */
static int64_t gpi__first_within(int64_t a, int64_t m, int64_t low, int64_t high, int64_t most) {
    int64_t t, rounds, least = low;
    if (low == 0)
        return 0;
    if (a == 0)
        return -1;
    if (a > m - a) { /* the same, backwards */
        a = m - a;
        low = m - high;
        high = m - least;
    }
    t = (low - 1) / a + 1;
    if (t > most)
        return -1;
    if (a * t <= high)
        return t;
    rounds = gpi__first_within((a - m % a) % a, a, low % a, high % a, (a * most - low) / m);
    t = rounds < 0 ? -1 : (low + m * rounds - 1) / a + 1;
    return t <= most ? t : -1;
}

/* Three terms of which the smallest step divides the others. They are simplified: so its values do not reach from one value
   of another term to the next, and for each x of the middle one there is one y of the last at most. */
static int gpi__three_terms_meet(const gpi__equation *equation) {
    const gpi__term *terms = equation->terms;
    int64_t unit = terms[0].step, width = terms[0].most, total = equation->total / unit;
    int64_t a = terms[1].step / unit, b = terms[2].step / unit, beyond = b * (terms[2].most + 1), rest;
    int64_t least = total >= beyond ? (total - beyond) / a + 1 : 0; /* x from which on y is not too large */
    int64_t most = total / a < terms[1].most ? total / a : terms[1].most;
    if (least > most)
        return 0;
    rest = (total - a * least) % b;
    return rest <= width || gpi__first_within(a, b, rest - width, rest, most - least) >= 0;
}

static int gpi__are_three_in_units(const gpi__equation *equation) {
    return equation->count == 3 && equation->terms[1].step % equation->terms[0].step == 0 &&
           equation->terms[2].step % equation->terms[0].step == 0;
}

/* Whether there is a solution: tries each value of the term that has the fewest. 1 also where `steps` run out. */
static int gpi__has_solution(gpi__equation equation, int *steps) {
    gpi__term term;
    int64_t x;
    int i, fewest = 0;
    if (--*steps < 0)
        return 1;
    if (!gpi__simplify(&equation))
        return 0;
    if (equation.count == 0)
        return 1;
    if (gpi__are_three_in_units(&equation))
        return gpi__three_terms_meet(&equation);
    for (i = 1; i < equation.count; i++)
        if (equation.terms[i].most <= equation.terms[fewest].most)
            fewest = i;
    term = equation.terms[fewest];
    equation.terms[fewest] = equation.terms[--equation.count];
    for (x = 0; x <= term.most && equation.total >= 0; x++, equation.total -= term.step)
        if (gpi__has_solution(equation, steps))
            return 1;
    return 0;
}

static int gpi__layout_is_empty(const gpi__layout *layout) {
    int i, empty = layout->size <= 0;
    for (i = 0; i < layout->rank; i++)
        empty |= layout->shape[i] <= 0;
    return empty;
}

/* A term for each axis. A negative stride is its positive one from the other end, so the layout covers bytes from
   *begin to *end. */
static void gpi__add_axes(gpi__equation *equation, const gpi__layout *layout, int64_t *begin, int64_t *end) {
    int i;
    *begin = 0;
    *end = layout->size;
    for (i = 0; i < layout->rank; i++) {
        int64_t stride = layout->stride[i], most = layout->shape[i] - 1;
        if (most == 0)
            continue;
        gpi__add_term(equation, stride < 0 ? -stride : stride, most);
        *(stride < 0 ? begin : end) += stride * most;
    }
}

/* The equation of a byte in p that is one in q, q counted from its end so that all terms have one sign. 0 where the
   ranges are apart. */
static int gpi__share_equation(const gpi__layout *p, const gpi__layout *q, int64_t distance,
                               gpi__equation *equation) {
    int64_t p_begin, p_end, q_begin, q_end;
    equation->count = 0;
    gpi__add_axes(equation, p, &p_begin, &p_end);
    gpi__add_axes(equation, q, &q_begin, &q_end);
    gpi__add_term(equation, 1, p->size - 1 + q->size - 1);
    if (distance >= p_end - q_begin || distance <= p_begin - q_end)
        return 0;
    equation->total = distance - (p_begin - q_end) - 1;
    return 1;
}

/* What follows a sentence that says that tensors overlap. */
static const char *gpi__if_undecided(int shares) {
    return shares == GPI__UNDECIDED
               ? ", or is between its lines in a way that would take too long to tell: give them ranges of their own"
               : "";
}

/* Whether the two, q's first element lying `distance` bytes after p's, have a byte in common. Not decided where that is not
   settled within a bounded number of steps. */
static int gpi__layouts_share(const gpi__layout *p, const gpi__layout *q, int64_t distance) {
    gpi__equation equation;
    int steps = GPI__OVERLAP_STEPS;
    if (gpi__layout_is_empty(p) || gpi__layout_is_empty(q) ||
        !gpi__share_equation(p, q, distance, &equation) || !gpi__has_solution(equation, &steps))
        return GPI__APART;
    return steps < 0 ? GPI__UNDECIDED : GPI__SHARED;
}

#ifndef GEMMEPI_NO_ELEMENTWISE
/* Whether two elements (different indices) of p have a byte in common. Likewise bounded. Their indices differ most
   outwardly along some axis: so for each axis whether what is inside it, moved along it, meets itself. That inside lies
   at both ends of the difference, so its terms count twice. */
static int gpi__layout_repeats(const gpi__layout *p) {
    gpi__equation axes, inside;
    int64_t begin, end, reach = p->size - 1;
    int i, steps = GPI__OVERLAP_STEPS;
    if (gpi__layout_is_empty(p))
        return 0;
    for (i = 0; i < p->rank; i++)
        if (p->shape[i] > 1 && p->stride[i] == 0)
            return 1;
    axes.count = inside.count = 0;
    gpi__add_axes(&axes, p, &begin, &end);
    gpi__sort_terms(&axes);
    gpi__add_term(&inside, 1, 2 * reach);
    for (i = 0; i < axes.count; i++) {
        gpi__term axis = axes.terms[i];
        if (axis.step <= reach) { /* else the inside is shorter than a step */
            gpi__equation moved = inside;
            moved.total = reach - axis.step;
            gpi__add_term(&moved, axis.step, axis.most - 1);
            if (gpi__has_solution(moved, &steps))
                return steps < 0 ? GPI__UNDECIDED : GPI__SHARED;
        }
        gpi__add_term(&inside, axis.step, 2 * axis.most);
        reach += axis.step * axis.most;
    }
    return 0;
}
#endif

#endif
