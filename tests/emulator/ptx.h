// PTX, as NVRTC writes it, to lists of operations, one for each kernel; there are no calls. What each operation does is looked up
// in the tables of decode.h; a name that is not there is an error, never a guess.
#ifndef EMULATOR_PTX_H
#define EMULATOR_PTX_H

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

enum { LANES = 32, CONSTANT_BYTES = 65536 };

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
static void
fail(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw std::runtime_error(text);
}

struct warp;
struct op;
typedef void (*handler)(warp &, const op &, u32 lanes);

// Where a register lies in a warp's file: LANES numbers of `bytes` each, or, of a predicate (bytes 0), one word of bits.
// Immediate numbers, special registers and addresses of symbols are registers that the kernel never writes.
struct place {
    u32 at;
    u8 bytes;
};

enum op_kind {
    STRAIGHT, // the next one follows
    BRANCH,   // to target
    EXIT,
    TOGETHER, // waits for all lanes that take part
    POLLED,   // is done again as long as it sets the warp's `again`
    POLLED_TOGETHER,
};

struct op {
    handler run;
    op_kind kind;
    bool guarded, negated; // by a predicate
    place guard;
    std::vector<place> x; // destinations first, lists flattened
    s64 offset;           // of an address
    u32 target;           // of a branch
    s32 members;          // where in x the lanes stand that take part; -1: all lanes do
    u16 count, bytes;     // of a list; of one of its elements
    bool is_signed;
    s64 numbers[4]; // immediates that are no operands of lanes
    u32 line;       // of the text
};

// What is told apart when the warp's file is filled.
enum constant_kind { NUMBER, PARAMETERS, DYNAMIC_SHARED, SPECIAL };

struct constant {
    constant_kind kind;
    place to;
    u64 value;        // of a NUMBER
    std::string name; // SPECIAL
};

struct program {
    std::string name;
    std::vector<op> ops;
    std::vector<constant> constants;
    std::shared_ptr<const std::vector<std::string>> lines; // of the text, for messages
    std::shared_ptr<std::vector<u8>> constant_memory;      // of the text
    u32 file_bytes = 0;                                    // of a warp's registers
    u32 parameter_bytes = 0;
    u32 static_shared = 0;      // bytes; what the launch asks for lies behind them
    u32 dynamic_alignment = 16; // of that
    u32 cluster = 1;            // blocks
    u32 threads = 0;            // of a block, at most; 0: not said

    u32 dynamic_begin() const {
        return (static_shared + dynamic_alignment - 1) / dynamic_alignment * dynamic_alignment;
    }
};

// What stands between commas: a word, or a list of words in braces or brackets.
struct operand {
    std::string word;
    std::vector<operand> list;
    char bracket = 0; // '{' or '[' of a list
};

struct statement {
    std::string guard; // "%p1" or "!%p1", else empty
    std::string name;
    std::vector<operand> operands;
    u32 line;
};

class parser {
  public:
    std::vector<program> kernels;

    explicit parser(const std::string &text) : text(text) {
        std::vector<std::string> all(1);
        for (char c : text)
            if (c == '\n')
                all.push_back("");
            else
                all.back() += c;
        lines = std::make_shared<const std::vector<std::string>>(all);
        constant_memory = std::make_shared<std::vector<u8>>();
        constant_memory->reserve(CONSTANT_BYTES); // it stays where it is
        scopes.resize(1);
    }

    void parse();

    // >>for the decoders

    // The register or constant that a word names; bytes is how wide a constant has to be.
    place take(const operand &of, int bytes) {
        const std::string &word = of.word;
        if (of.bracket)
            fail("a list where a register belongs");
        for (size_t i = scopes.size(); i-- > 0;) {
            std::map<std::string, place>::const_iterator found = scopes[i].registers.find(word);
            if (found != scopes[i].registers.end())
                return found->second;
        }
        if (word == "_")
            return new_register(bytes);
        if (word[0] == '%')
            return take_constant(SPECIAL, 0, word, 4);
        if (shared.count(word))
            return take_constant(NUMBER, shared[word], "", bytes);
        if (constant_arrays.count(word))
            return take_constant(NUMBER, constant_arrays[word], "", bytes);
        if (word == dynamic_shared)
            return take_constant(DYNAMIC_SHARED, 0, "", bytes);
        if (word == parameters)
            return take_constant(PARAMETERS, 0, "", 8);
        return take_constant(NUMBER, number(word), "", bytes);
    }

    // The same, where a register has to be as wide as what is read or written.
    place take_exact(const operand &of, int bytes) {
        place taken = take(of, bytes);
        if (taken.bytes != bytes)
            fail("%s has %d bytes and not %d", of.word.c_str(), taken.bytes, bytes);
        return taken;
    }

    // An address in brackets: its register goes behind x, its offset to the op.
    void take_address(op &of, const operand &address) {
        std::string word = address.list.at(0).word;
        size_t plus = word.find('+');
        operand base;
        if (address.bracket != '[')
            fail("an address belongs in brackets");
        if (plus != std::string::npos) {
            of.offset += (s64)number(word.substr(plus + 1));
            word.erase(plus);
        }
        base.word = word;
        of.x.push_back(take(base, 8));
    }

    static u64 number(const std::string &word) {
        char *end;
        u64 value;
        if (word.size() > 2 && word[0] == '0' &&
            (word[1] == 'f' || word[1] == 'F' || word[1] == 'd' || word[1] == 'D'))
            return strtoull(word.c_str() + 2, NULL, 16);
        value = strtoull(word.c_str(), &end, 0);
        if (word.empty() || end == word.c_str() || (*end && strcmp(end, "U")))
            fail("'%s' is neither a register nor a number", word.c_str());
        return value;
    }

  private:
    struct scope {
        std::map<std::string, place> registers;
        std::map<std::string, u32> labels;
        std::vector<std::pair<u32, std::string>> branches; // ops, and where they go
    };

    const std::string &text;
    std::shared_ptr<const std::vector<std::string>> lines;
    program out; // the kernel that is being read
    size_t at = 0;
    u32 line = 0;
    std::vector<scope> scopes;
    std::map<std::string, u32> shared; // arrays and where they lie
    std::map<std::string, u64> constant_arrays;
    std::shared_ptr<std::vector<u8>> constant_memory;
    std::string dynamic_shared = "?"; // the array whose size the launch tells
    u32 dynamic_alignment = 16;
    std::string parameters = "?";
    std::map<std::pair<std::string, int>, place> constants;

    place new_register(int bytes) {
        place made = {out.file_bytes, (u8)bytes};
        out.file_bytes += bytes ? (u32)(bytes * LANES + 63) / 64 * 64 : 64;
        return made;
    }

    place take_constant(constant_kind kind, u64 value, const std::string &name, int bytes) {
        std::string key = std::to_string((int)kind) + name + ':' + std::to_string(value);
        std::map<std::pair<std::string, int>, place>::iterator found =
            constants.find(std::make_pair(key, bytes));
        if (found != constants.end())
            return found->second;
        constant made = {kind, new_register(bytes), value, name};
        out.constants.push_back(made);
        constants[std::make_pair(key, bytes)] = made.to;
        return made.to;
    }

    bool skip_blanks() {
        for (; at < text.size(); at++) {
            if (text[at] == '\n')
                line++;
            else if (text.compare(at, 2, "//") == 0)
                at = text.find('\n', at) - 1;
            else if (!isspace((unsigned char)text[at]))
                return true;
        }
        return false;
    }

    // all up to one of `ends`, which is taken and left out
    std::string until(const char *ends) {
        std::string word;
        for (; at < text.size() && !strchr(ends, text[at]); at++) {
            line += text[at] == '\n';
            word += text[at];
        }
        line += at < text.size() && text[at] == '\n';
        at++;
        return word;
    }

    std::string take_word() {
        std::string word;
        skip_blanks();
        while (at < text.size() && !isspace((unsigned char)text[at]) && !strchr(",;{}[]()|", text[at]))
            word += text[at++];
        return word;
    }

    std::vector<operand> take_operands(char end) {
        std::vector<operand> all;
        for (;;) {
            skip_blanks();
            if (at >= text.size())
                fail("the text ends within a statement");
            char c = text[at];
            if (c == end) {
                at++;
                return all;
            } else if (c == ',' || c == '|') {
                at++;
            } else if (c == '{' || c == '[') {
                operand made;
                at++;
                made.bracket = c;
                made.list = take_operands(c == '{' ? '}' : ']');
                all.push_back(made);
            } else {
                operand made;
                made.word = take_word();
                if (made.word.empty())
                    fail("'%c' is out of place", c);
                all.push_back(made);
            }
        }
    }

    static int width_of(const std::string &type) { // bytes; 0: a predicate
        if (type == ".pred")
            return 0;
        int bits = type.size() > 2 ? atoi(type.c_str() + 2) : 0;
        if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
            fail("the type %s is unknown", type.c_str());
        return bits / 8;
    }

    void take_registers() { // .reg .b32 %r<12>;   .reg .pred done;
        int bytes = width_of(take_word());
        std::string names = until(";"), name;
        for (size_t i = 0; i <= names.size(); i++) {
            char c = i < names.size() ? names[i] : ',';
            if (c != ',') {
                if (!isspace((unsigned char)c))
                    name += c;
                continue;
            }
            size_t less = name.find('<');
            if (less == std::string::npos)
                scopes.back().registers[name] = new_register(bytes);
            else
                for (int n = 0; n < atoi(name.c_str() + less + 1); n++)
                    scopes.back().registers[name.substr(0, less) + std::to_string(n)] = new_register(bytes);
            name.clear();
        }
    }

    // The word before the bracket of ".align 16 .b8 name[512]", the number in it, and that of the alignment.
    static void take_array(const std::string &declaration, std::string *name, u32 *size, u32 *alignment) {
        size_t bracket = declaration.find('['), blank = declaration.find_last_of(" \t", bracket),
               align = declaration.find(".align ");
        if (bracket == std::string::npos || align == std::string::npos)
            fail("not an array of a known alignment: %s", declaration.c_str());
        *name = declaration.substr(blank + 1, bracket - blank - 1);
        *size = (u32)atoi(declaration.c_str() + bracket + 1);
        *alignment = (u32)atoi(declaration.c_str() + align + 7);
    }

    void take_shared(const std::string &declaration) {
        std::string name;
        u32 size, alignment;
        take_array(declaration, &name, &size, &alignment);
        if (!size) {
            dynamic_shared = name;
            dynamic_alignment = alignment;
            return;
        }
        out.static_shared = (out.static_shared + alignment - 1) / alignment * alignment;
        shared[name] = out.static_shared;
        out.static_shared += size;
    }

    // .const .align 4 .b8 name[8] = {1, 0, 0, 0, 2, 0, 0, 0};
    void take_constants(const std::string &declaration) {
        std::string name;
        u32 size, alignment;
        std::vector<u8> &memory = *constant_memory;
        take_array(declaration, &name, &size, &alignment);
        memory.resize((memory.size() + alignment - 1) / alignment * alignment);
        if (declaration.find(" .b8 ") == std::string::npos || memory.size() + size > CONSTANT_BYTES)
            fail("constants that are no bytes, or too many");
        constant_arrays[name] = (u64)(memory.data() + memory.size());
        const char *from = strchr(declaration.c_str(), '{');
        for (u32 i = 0; i < size; i++) {
            memory.push_back(from ? (u8)atoi(from + 1) : 0);
            from = from ? strchr(from + 1, ',') : NULL;
        }
    }

    void take_entry() {
        u32 alignment;
        out = program();
        shared.clear();
        constants.clear();
        out.lines = lines;
        out.constant_memory = constant_memory;
        out.dynamic_alignment = dynamic_alignment;
        out.name = take_word();
        until("(");
        std::string declaration = until(")");
        if (declaration.find(',') != std::string::npos)
            fail("the kernel takes more than one struct");
        take_array(declaration, &parameters, &out.parameter_bytes, &alignment);
    }

    void take_directive(const std::string &word) {
        if (word == ".reg") {
            take_registers();
        } else if (word == ".shared") {
            take_shared(until(";"));
        } else if (word == ".extern") {
            std::string kind = take_word();
            if (kind != ".shared")
                fail(".extern %s is unknown", kind.c_str());
            take_shared(until(";"));
        } else if (word == ".const") {
            take_constants(until(";"));
        } else if (word == ".pragma" || word == ".global") {
            // .global: constants of the source, which operations have as numbers; an address of one is an unknown word
            until(";");
        } else if (word == ".visible") {
            if (take_word() != ".entry")
                fail(".visible without .entry");
            take_entry();
        } else if (word == ".reqnctapercluster") {
            out.cluster = (u32)atoi(until("\n").c_str());
        } else if (word == ".maxntid") {
            std::string sizes = until("\n");
            const char *from = sizes.c_str();
            out.threads = 1;
            while (from) {
                out.threads *= (u32)atoi(from);
                from = strchr(from, ',');
                from = from ? from + 1 : NULL;
            }
        } else if (word == ".version" || word == ".target" || word == ".address_size" ||
                   word == ".minnctapersm" || word == ".explicitcluster") {
            until("\n");
        } else {
            fail("the directive %s is unknown", word.c_str());
        }
    }

    // Branches whose label is not of this scope are one's further out.
    void close_scope() {
        scope &closing = scopes.back();
        for (std::pair<u32, std::string> &branch : closing.branches) {
            std::map<std::string, u32>::const_iterator found = closing.labels.find(branch.second);
            if (found != closing.labels.end())
                out.ops[branch.first].target = found->second;
            else
                scopes[scopes.size() - 2].branches.push_back(branch);
        }
        scopes.pop_back();
    }

    void take_statement(const std::string &first);
    void decode(const statement &of, op &made);
};

inline void parser::take_statement(const std::string &first) {
    statement made;
    op decoded = op();
    made.line = line;
    made.name = first;
    if (first[0] == '@') {
        made.guard = first.substr(1);
        made.name = take_word();
    }
    made.operands = take_operands(';');
    if (!made.guard.empty()) {
        operand guard;
        decoded.guarded = true;
        decoded.negated = made.guard[0] == '!';
        guard.word = made.guard.substr(decoded.negated);
        decoded.guard = take(guard, 0);
    }
    decoded.line = made.line;
    decoded.members = -1;
    if (made.name == "bra" || made.name == "bra.uni") {
        decoded.kind = BRANCH;
        scopes.back().branches.push_back(std::make_pair((u32)out.ops.size(), made.operands.at(0).word));
    } else if (made.name == "ret" || made.name == "exit") {
        decoded.kind = EXIT;
    } else {
        decode(made, decoded);
    }
    out.ops.push_back(decoded);
}

inline void parser::parse() {
    try {
        while (skip_blanks()) {
            if (text[at] == '{') {
                at++;
                scopes.push_back(scope());
            } else if (text[at] == '}') {
                at++;
                if (scopes.size() == 1)
                    fail("a brace closes what none opened");
                close_scope();
                if (scopes.size() == 1) {
                    if (!scopes[0].branches.empty())
                        fail("the label %s is nowhere", scopes[0].branches[0].second.c_str());
                    kernels.push_back(out);
                }
            } else if (text[at] == ';') {
                at++;
            } else {
                std::string word = take_word();
                if (word.empty())
                    fail("'%c' is out of place", text[at]);
                if (word[0] == '.')
                    take_directive(word);
                else if (word[word.size() - 1] == ':')
                    scopes.back().labels[word.substr(0, word.size() - 1)] = (u32)out.ops.size();
                else
                    take_statement(word);
            }
        }
        if (scopes.size() != 1)
            fail("a brace is not closed");
    } catch (const std::exception &error) {
        std::string here = line < lines->size() ? (*lines)[line] : "";
        throw std::runtime_error("PTX, line " + std::to_string(line + 1) + ": " + error.what() + "\n    " +
                                 here);
    }
}

#endif
