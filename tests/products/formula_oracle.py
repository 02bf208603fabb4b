"""The language of formulas (docs/formulas.md) once more, for tests/products/formula_drawn.py: it reads a text, and computes each element in
double with a bound of what another arithmetic may be off. It shares no code with the library.

A number is an estimate: (value, bound). A field is (width, rows), rows of estimates; a width of 0 says that a row has one, for all its columns.
"""
import math
import re

LARGEST_F32, LARGEST_F64 = 3.4028234663852886e38, 1.7976931348623157e308

# >>the language: text to a list of (name, tree); a tree is a number, a name, or (operator or function, trees)

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\|\||&&|[<>=!]=|[-+*/<>!?:(),;=[\]]))")
LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/"]]


class Reader:
    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL).strip()
        self.tokens, at = [], 0
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found:
                raise ValueError("not of the language: " + text[at:])
            self.tokens.append(found.groups())
            at = found.end()

    def peek(self):
        return self.tokens[0][2] if self.tokens else None

    def take(self, *symbols):
        if self.tokens and self.tokens[0][2] in symbols:
            return self.tokens.pop(0)[2]
        return None

    def statements(self):
        result = []
        while self.tokens:
            name = self.tokens.pop(0)[1]
            assert name and self.take("=")
            result.append((name, self.expression()))
            assert self.take(";") or not self.tokens
        return result

    def expression(self):
        condition = self.level(0)
        if not self.take("?"):
            return condition
        yes = self.expression()
        assert self.take(":")
        return ("?:", [condition, yes, self.expression()])

    def level(self, depth):
        if depth == len(LEVELS):
            return self.unary()
        left = self.level(depth + 1)
        while self.peek() in LEVELS[depth]:
            symbol = self.take(*LEVELS[depth])
            left = (symbol, [left, self.level(depth + 1)])
        return left

    def unary(self):
        symbol = self.take("-", "!", "(")
        if symbol == "(":
            inside = self.expression()
            assert self.take(")")
            return inside
        if symbol:
            return ("negative" if symbol == "-" else "!", [self.unary()])
        number, name, _ = self.tokens.pop(0)
        if number:
            return float(number)
        if self.take("["):
            index = self.expression()
            assert self.take("]")
            return ("[]", [name, index])
        if not self.take("("):
            return name
        arguments = [self.expression()]
        while self.take(","):
            arguments.append(self.expression())
        assert self.take(")")
        return (name, arguments)


def parse(text):
    return Reader(text).statements()


# >>functions of one number, in double

def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_terms(x):
    c = math.sqrt(2 / math.pi)
    return logistic(2 * c * (x + 0.044715 * x ** 3)), c * (1 + 0.134145 * x * x)


def d_gelu_tanh(x):
    q, slope = gelu_tanh_terms(x)
    return q + 2 * x * q * (1 - q) * slope


def d_mish(x):
    t = math.tanh(softplus(x))
    return t + x * logistic(x) * (1 - t * t)


def swish_slope(x, z):
    return logistic(z) * (1 + z * logistic(-z))


# value and derivative, the parameter that it has unless given, and bounds of the slopes of both
ACTIVATIONS = {
    "relu": (lambda x, p: x if x > 0 else 0.0, lambda x, p: float(x > 0), None, 1, 0),
    "gelu_tanh": (lambda x, p: x * gelu_tanh_terms(x)[0], lambda x, p: d_gelu_tanh(x), None, 1.13, 1.2),
    "gelu_erf": (lambda x, p: x * normal(x), lambda x, p: normal(x) + x * density(x), None, 1.13, 1.2),
    "silu": (lambda x, p: x * logistic(x), lambda x, p: swish_slope(x, x), None, 1.1, 0.6),
    "sigmoid": (lambda x, p: logistic(x), lambda x, p: logistic(x) * logistic(-x), None, 0.25, 0.1),
    "tanh": (lambda x, p: math.tanh(x), lambda x, p: 1 - math.tanh(x) ** 2, None, 1, 0.8),
    "leaky_relu": (lambda x, p: x if x > 0 else p * x, lambda x, p: 1.0 if x > 0 else p, 0.01, 1, 0),
    "elu": (lambda x, p: x if x > 0 else p * math.expm1(x), lambda x, p: 1.0 if x > 0 else p * math.exp(x), 1.0, 1, 1),
    "squared_relu": (lambda x, p: x * x if x > 0 else 0.0, lambda x, p: 2 * x if x > 0 else 0.0, None, None, 2),
    "quick_gelu": (lambda x, p: x * logistic(1.702 * x), lambda x, p: swish_slope(x, 1.702 * x), None, 1.1, 1),
    "softplus": (lambda x, p: softplus(x), lambda x, p: logistic(x), None, 1, 0.25),
    "hardswish": (lambda x, p: x * min(max(x + 3, 0), 6) / 6, lambda x, p: 0.0 if x <= -3 else 1.0 if x >= 3 else x / 3 + 0.5,
                  None, 1.5, 0.34),
    "mish": (lambda x, p: x * math.tanh(softplus(x)), lambda x, p: d_mish(x), None, 1.1, 0.7),
    "hardsigmoid": (lambda x, p: min(max(x + 3, 0), 6) / 6, lambda x, p: 1 / 6 if -3 < x < 3 else 0.0, None, 0.17, 0),
}

MONOTONE = {
    "exp": math.exp, "exp2": lambda x: 2.0 ** x, "expm1": math.expm1, "log": math.log, "log2": math.log2, "log1p": math.log1p,
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "erf": math.erf, "floor": lambda x: float(math.floor(x)),
    "sign": lambda x: float((x > 0) - (x < 0)), "round": lambda x: float(round(x)),
}


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011)"""
    a, b, c, d = counter
    for turn in range(10):
        first, second = 0xd2511f53 * a, 0xcd9e8d57 * c
        a, b, c, d = (second >> 32) ^ b ^ key[0], second & 0xffffffff, (first >> 32) ^ d ^ key[1], first & 0xffffffff
        key = (key[0] + 0x9e3779b9 & 0xffffffff, key[1] + 0xbb67ae85 & 0xffffffff)
    return a, b, c, d


# >>estimates: (value, bound); an infinite bound says that it may be anything

ANYTHING = (math.nan, math.inf)


class Arithmetic:
    """unit: of the accumulator, 0 where bounds are not wanted; short: activations may take their short forms"""

    def __init__(self, unit, short):
        self.unit, self.short = unit, short
        self.tiny = 2.0 ** -126 if unit > 2.0 ** -50 else 0.0
        self.largest = LARGEST_F32 if unit > 2.0 ** -50 else LARGEST_F64

    def rounded(self, value, bound, units):
        if math.isnan(value) or math.isnan(bound) or abs(value) + bound > self.largest * 0.99:
            return ANYTHING if self.unit or math.isnan(bound) else (value, 0.0)
        if not self.unit:
            return value, 0.0
        return value, bound + (units * self.unit + 2.0 ** -52) * abs(value) + (self.tiny if units and value and abs(value) < 1e-30 else 0)

    def add(self, x, y):
        return self.rounded(x[0] + y[0], x[1] + y[1], 1)

    def subtract(self, x, y):
        return self.rounded(x[0] - y[0], x[1] + y[1], 1)

    def multiply(self, x, y):
        return self.rounded(x[0] * y[0], abs(x[0]) * y[1] + abs(y[0]) * x[1] + x[1] * y[1], 1)

    def divide(self, x, y):
        if abs(y[0]) <= y[1] or y[0] == 0:
            return ANYTHING
        quotient = x[0] / y[0]
        return self.rounded(quotient, (x[1] + abs(quotient) * y[1]) / (abs(y[0]) - y[1]), 4)

    def compare(self, symbol, x, y):
        if math.isinf(x[1]) or math.isinf(y[1]):
            return 0.0, 1.0
        result = {"<": x[0] < y[0], "<=": x[0] <= y[0], ">": x[0] > y[0], ">=": x[0] >= y[0], "==": x[0] == y[0],
                  "!=": x[0] != y[0]}[symbol]
        doubtful = x[1] + y[1] > 0 and abs(x[0] - y[0]) <= x[1] + y[1]
        return float(result), float(doubtful)

    def is_doubtful(self, x):
        return x[1] > 0 and not abs(x[0]) > x[1]

    def truth(self, symbol, x, y):
        decided = [v for v in (x, y) if not self.is_doubtful(v)]
        settles = symbol == "||"
        if any(bool(v[0]) == settles for v in decided):
            return float(settles), 0.0
        return float(not settles), float(len(decided) < 2)

    def select(self, c, x, y):
        if not self.is_doubtful(c):
            return x if c[0] else y
        if math.isinf(x[1]) or math.isinf(y[1]):
            return ANYTHING
        low, high = min(x[0] - x[1], y[0] - y[1]), max(x[0] + x[1], y[0] + y[1])
        return (low + high) / 2, (high - low) / 2 * (1 + 1e-15)

    def extreme(self, pick, x, y):
        if math.isinf(x[1]) or math.isinf(y[1]):
            return ANYTHING
        return pick(x[0], y[0]), max(x[1], y[1])

    def monotone(self, f, x, units):
        try:
            value = f(x[0])
            bound = max(abs(f(x[0] + x[1]) - value), abs(f(x[0] - x[1]) - value)) if x[1] else 0.0
        except (ValueError, OverflowError, ZeroDivisionError):
            return ANYTHING
        return self.rounded(value, bound, units)

    def power(self, x, y):
        corners = []
        try:
            for i in (-1, 0, 1):
                for j in (-1, 0, 1):
                    base = x[0] + i * x[1]
                    corners.append(math.pow(base, y[0] + j * y[1]))
                    if base <= 0:
                        return ANYTHING if x[1] or y[1] or base < 0 else self.rounded(math.pow(x[0], y[0]), 0.0, 10)
        except (ValueError, OverflowError):
            return ANYTHING
        return self.rounded(corners[4], max(abs(c - corners[4]) for c in corners), 10)

    def activation(self, row, is_derivative, x, parameter):
        if math.isinf(x[1]) or not abs(x[0]) < 1e4:
            return ANYTHING
        f, slope = (row[1], row[4]) if is_derivative else (row[0], row[3])
        p = parameter[0]
        try:
            points = [f(x[0] + side * x[1], p) for side in (0, -1, 1)]
        except OverflowError:
            return ANYTHING
        if slope is None:
            slope = 2 * (abs(x[0]) + x[1])
        moved = max(abs(points[1] - points[0]), abs(points[2] - points[0])) + slope * max(1, abs(p)) * x[1]
        if not self.unit:
            return points[0], 0.0
        form = 2.0 ** -15.5 if self.short else 2.0 ** -21 if self.unit > 2.0 ** -50 else 2.0 ** -49
        size = abs(points[0]) if row[0] in (ACTIVATIONS["relu"][0], ACTIVATIONS["leaky_relu"][0], ACTIVATIONS["squared_relu"][0]) else \
            max(1, abs(x[0]), abs(p))
        return points[0], moved + form * size

    def function(self, name, values):
        """of a name that is no activation's, elementwise"""
        x = values[0]
        if name in MONOTONE:
            return self.monotone(MONOTONE[name], x, 0 if name in ("sign", "floor", "round") else 6)
        if name in ("sin", "cos"):
            if math.isinf(x[1]) or not math.isfinite(x[0]):
                return ANYTHING
            value = getattr(math, name)(x[0])
            return value, min(x[1], 2) + 6 * self.unit * abs(value) + (self.tiny if self.unit else 0)
        if name in ("min", "max"):
            return self.extreme(min if name == "min" else max, x, values[1])
        if name == "clamp":
            return self.extreme(min, self.extreme(max, x, values[1]), values[2])
        if name == "fma":
            return self.add(self.multiply(x, values[1]), values[2])
        return {"abs": lambda: (abs(x[0]), x[1]), "pow": lambda: self.power(x, values[1]), "mod": lambda: self.remainder(x, values[1]),
                "isnan": lambda: (float(math.isnan(x[0])), float(math.isinf(x[1])))}[name]()

    @staticmethod
    def remainder(x, y):
        if y[1] or y[0] == 0 or math.isinf(x[1]):
            return ANYTHING
        value = math.fmod(x[0], y[0])
        jumps = math.trunc((x[0] - x[1]) / y[0]) != math.trunc((x[0] + x[1]) / y[0])
        return (value, abs(y[0])) if jumps else (value, x[1])


# >>evaluation: a field is (width, rows); a width of 0 says that a row has one number, for all its columns

WIDE = ("left", "right", "even", "odd", "pair", "interleave", "part", "parts")
REDUCTION = re.compile(r"(row|column|all)_(sum|max|min|logsumexp|argmax)$")


def group_of(name, width, group):
    """the columns of a half, of groups so wide"""
    if name in ("even", "odd"):
        return range(name == "odd", width, 2)
    half = group // 2
    return [start + (name == "right") * half + j for start in range(0, width, group) for j in range(half)]


class Evaluation:
    """One item of the batch. fields: of v, operands and indices; store: rounds a number as D does"""

    def __init__(self, arithmetic, fields, rows, indices, store=None):
        self.a, self.fields, self.rows, self.indices, self.store = arithmetic, dict(fields), rows, indices, store

    def each(self, f, *fields):
        width = max(field[0] for field in fields)
        assert all(field[0] in (0, width) for field in fields), "what is combined is equally wide"
        return width, [[f(*[field[1][i][j if field[0] else 0] for field in fields]) for j in range(width or 1)]
                       for i in range(self.rows)]

    def tree(self, tree):
        if isinstance(tree, float):
            return 0, [[(tree, 0.0)]] * self.rows
        if isinstance(tree, str):
            return self.fields[tree]
        name, arguments = tree
        if name == "uniform":
            return self.uniform([self.tree(each) for each in arguments])
        if name in WIDE:
            return self.halves(name, arguments)
        if name == "[]":
            return self.look_up(self.fields[arguments[0]], self.tree(arguments[1]))
        fields = [self.tree(each) for each in arguments]
        base = name[2:] if name.startswith("d_") else name
        if base in ACTIVATIONS:
            row = ACTIVATIONS[base]
            parameter = fields[1] if len(fields) > 1 else (0, [[(row[2] or 0.0, 0.0)]] * self.rows)
            return self.each(lambda x, p: self.a.activation(row, name != base, x, p), fields[0], parameter)
        if name == "rounded":
            return self.each(self.store, fields[0])
        return self.each(self.operator(name), *fields)

    def look_up(self, table, index):
        """of a table along rows all rows are one line; 0 where there is no such element"""
        def one(i, at):
            line = table[1][i] if table[0] else [row[0] for row in table[1]]
            return line[int(at[0])] if 0 <= at[0] < len(line) else (0.0, 0.0)

        return index[0], [[one(i, at) for at in row] for i, row in enumerate(index[1])]

    def operator(self, name):
        a = self.a
        if name in ("<", "<=", ">", ">=", "==", "!="):
            return lambda x, y: a.compare(name, x, y)
        if name in ("||", "&&"):
            return lambda x, y: a.truth(name, x, y)
        found = {"+": a.add, "-": a.subtract, "*": a.multiply, "/": a.divide, "?:": a.select,
                 "negative": lambda x: (-x[0], x[1]), "!": lambda x: (float(not x[0]), float(a.is_doubtful(x)))}.get(name)
        return found or (lambda *values: a.function(name, values))

    def parts(self, name, arguments):
        if name == "part":
            (width, rows), i, count = self.tree(arguments[0]), int(arguments[1]), int(arguments[2])
            part = width // count
            return part, [row[i * part:(i + 1) * part] for row in rows] if width else rows
        fields = [self.tree(each) for each in arguments]
        part = max(field[0] for field in fields) or self.indices["columns"] // len(fields)
        return part * len(fields), [[field[1][i][j if field[0] else 0] for field in fields for j in range(part)] for i in range(self.rows)]

    def halves(self, name, arguments):
        if name in ("part", "parts"):
            return self.parts(name, arguments)
        count = 2 if name in ("pair", "interleave") else 1
        group = [int(each) for each in arguments[count:]]
        fields = [self.tree(each) for each in arguments[:count]]
        if name in ("left", "right", "even", "odd"):
            width, rows = fields[0]
            columns = group_of(name, width, group[0] if group else width)
            return width // 2, [[row[j] for j in columns] for row in rows]
        width = 2 * max(field[0] for field in fields) or self.indices["columns"]
        first, second = ("even", "odd") if name == "interleave" else ("left", "right")
        result = [[None] * width for _ in range(self.rows)]
        for field, which in zip(fields, (first, second)):
            for place, j in enumerate(group_of(which, width, group[0] if group else width)):
                for i in range(self.rows):
                    result[i][j] = field[1][i][place if field[0] else 0]
        return width, result

    def uniform(self, fields):
        seed, number, width = int(fields[0][1][0][0][0]) & (1 << 64) - 1, int(fields[1][1][0][0][0]), self.indices["columns"]
        item, key = self.indices["item"], (seed & 0xffffffff, seed >> 32)
        return width, [[((philox((j // 4, i, item, number), key)[j % 4] >> 8) * 2.0 ** -24, 0.0) for j in range(width)]
                       for i in range(self.rows)]

    def by_chance(self, field, draw, spacing):
        """x as a multiple of what lies between its neighbours, whose magnitude is rounded down once a random number is added to it"""
        numbers = self.uniform([self.tree(each) for each in draw])[1]

        def one(x, u):
            if spacing is None or not math.isfinite(x):
                return x
            unit = spacing(abs(x))
            return math.copysign(math.floor(abs(x) / unit + u) * unit, x)

        def estimate(x, u):
            if x[1] == 0 or math.isinf(x[1]) or spacing is None:
                return one(x[0], u), x[1]
            value = one(x[0], u)
            return value, max(abs(one(x[0] + side * x[1], u) - value) for side in (-1, 1))

        return field[0], [[estimate(field[1][i][j if field[0] else 0], numbers[i][j][0]) for j in range(self.indices["columns"])]
                          for i in range(self.rows)]

    def lists(self, axis, field, width):
        """what a reduction goes over, for each of its results"""
        rows = [[row[j if field[0] else 0] for j in range(width)] for row in field[1]]
        return rows if axis == "row" else [list(c) for c in zip(*rows)] if axis == "column" else [[x for row in rows for x in row]]


def reduce(arithmetic, what, values):
    """An estimate; of argmax the places that may be the largest's."""
    if any(math.isinf(e) or math.isnan(x) for x, e in values):
        return None if what == "argmax" else ANYTHING
    if what == "argmax":
        least = max(x - e for x, e in values)
        places = [i for i, (x, e) in enumerate(values) if x + e >= least]
        return places[:1] if all(values[i][1] == 0 for i in places) else places
    if what == "max":
        return max(x for x, _ in values), max(e for _, e in values)
    if what == "min":
        return min(x for x, _ in values), max(e for _, e in values)
    if what == "sum":
        size = sum(abs(x) for x, _ in values)
        return math.fsum(x for x, _ in values), sum(e for _, e in values) + (len(values) + 4) * arithmetic.unit * size
    top = max(x for x, _ in values)
    value = top + math.log(math.fsum(math.exp(x - top) for x, _ in values))
    return value, max(e for _, e in values) + 40 * arithmetic.unit * (1 + abs(value) + abs(top))
