// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/prelude.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "tenon/backend/c/names.h"
#include "tenon/backend/c/scalar_functions.h"

namespace tenon::c_backend {

DType value_dtype(DType dtype) {
  if (dtype.is_bool() && dtype.is_vector()) return kInt32.with_lanes(dtype.lanes);
  return dtype.storage();
}

std::string fill(const std::string& pattern, const std::vector<std::string>& args) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '$' && i + 1 < pattern.size() && pattern[i + 1] >= '0' &&
        pattern[i + 1] <= '9') {
      out += args.at(static_cast<size_t>(pattern[++i] - '0'));
      continue;
    }
    out += pattern[i];
  }
  return out;
}

std::string Prelude::type(DType dtype) {
  dtype = value_dtype(dtype);
  if (dtype.is_scalar()) {
    if (dtype.is_bool()) return "int";
    if (dtype.is_handle()) return "void*";
    return c_type(dtype);
  }
  const std::string name = short_name(dtype);
  types_.emplace(name, dtype);
  return name;
}

std::string Prelude::function(const std::string& name) {
  if (known_.count(name)) return name;
  known_.emplace(name, 0);
  const ScalarFunction made = scalar_function(name);
  for (const std::string& needed : made.needs) function(needed);
  functions_.push_back(name);
  uses_memcpy_ |= made.uses_memcpy;
  uses_math_ |= made.definition.find("fmod") != std::string::npos;
  return name;
}

static std::string argument_name(size_t i) { return std::string(1, static_cast<char>('a' + i)); }

std::string Prelude::lanewise(const std::string& stem, DType result, const std::vector<DType>& args,
                              const std::string& scalar, const std::vector<Form>& forms) {
  std::string name = stem;
  for (const DType& arg : args) {
    const std::string part = "_" + short_name(value_dtype(arg));
    if (name.size() < part.size() || name.substr(name.size() - part.size()) != part) name += part;
  }
  if (value_dtype(result) != value_dtype(args[0])) name += "_" + short_name(value_dtype(result));
  if (known_.count(name)) return name;
  std::string parameters;
  std::vector<std::string> lanes;
  bool has_gnu = is_gnu(result);
  for (size_t i = 0; i < args.size(); ++i) {
    parameters += (i > 0 ? ", " : "") + type(args[i]) + " " + argument_name(i);
    lanes.push_back(args[i].is_scalar() ? argument_name(i) : lane(args[i], argument_name(i), "i"));
    has_gnu = has_gnu && (args[i].is_scalar() || is_gnu(args[i]));
  }
  const std::string body = fmt::format(
      "  {0} r = {{0}};\n  int i;\n  for (i = 0; i < {1}; ++i) {2} = {3};\n  return r;\n",
      type(result), result.lanes, lane(result, "r", "i"), fill(scalar, lanes));
  return custom(name, type(result), parameters, body, has_gnu ? forms : std::vector<Form>{});
}

std::string Prelude::custom(const std::string& name, const std::string& result,
                            const std::string& parameters, const std::string& body,
                            const std::vector<Form>& forms) {
  if (known_.emplace(name, operations_.size()).second)
    operations_.push_back({name, result, parameters, body, forms});
  return name;
}

bool Prelude::is_gnu(DType dtype) { return std::has_single_bit(unsigned{dtype.lanes}); }

std::string Prelude::lane(DType dtype, const std::string& vector, const std::string& i) {
  return fmt::format("{}({}, {})", is_gnu(dtype) ? "LANE" : "ITEM", vector, i);
}

// Names of the parameters: the last word of each.
static std::vector<std::string> names_of(const std::string& parameters) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : parameters + ",") {
    if (c == ',') out.push_back(word);
    if (c == ',' || c == ' ' || c == '*') {
      word.clear();
    } else {
      word += c;
    }
  }
  return out;
}

// Whether an argument stands in `pattern` more than once: then it must not be a macro's.
static bool repeats(const std::string& pattern, size_t arguments) {
  for (size_t i = 0; i < arguments; ++i) {
    const std::string mark = fmt::format("${}", i);
    const size_t first = pattern.find(mark);
    if (first != std::string::npos && pattern.find(mark, first + 1) != std::string::npos)
      return true;
  }
  return false;
}

static bool is_of_a_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// `text` with `prefix` in front of each of `names`.
static std::string prefixed(const std::string& text, const std::vector<std::string>& names,
                            const std::string& prefix) {
  std::string out, word;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && is_of_a_name(text[i])) {
      word += text[i];
      continue;
    }
    if (std::find(names.begin(), names.end(), word) != names.end()) out += prefix;
    out += word;
    word.clear();
    if (i < text.size()) out += text[i];
  }
  return out;
}

// A macro of GNU C that evaluates each argument once. A function would do, but GCC has a note or a
// warning for each that takes or returns vectors which the processor that is compiled for lacks
// (-Wpsabi, which no pragma silences). Its variables have names of the operation, so that they are
// not those of an argument.
static std::string macro_text(const std::string& name, const std::string& parameters,
                              const std::string& body) {
  const std::vector<std::string> names = names_of(parameters);
  std::string list, out;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  out = fmt::format("#define {}({}) __extension__({{ \\\n", name, list);
  size_t begin = 0;
  for (const std::string& each : names) {
    const size_t end = std::min(parameters.find(',', begin), parameters.size());
    const std::string declared =
        parameters.substr(begin, end - begin - each.size());  // "const float* "
    out += fmt::format("  {}{}_{} = ({}); \\\n", declared, name, each, each);
    begin = end + 2;
  }
  std::string line;
  for (const char c : prefixed(body, names, name + "_")) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (const size_t at = line.find("return "); at != std::string::npos) line.erase(at, 7);
    out += line + " \\\n";
    line.clear();
  }
  return out + "})\n";
}

static std::string function_text(const std::string& result, const std::string& name,
                                 const std::string& parameters, const std::string& body) {
  return fmt::format("INLINE {} {}({}) {{\n{}}}\n", result, name, parameters, body);
}

std::string Prelude::types_text() const {
  std::string out = fmt::format("#if {}\n#define LANE(vector, lane) ((vector)[lane])\n", macro_);
  const auto as_struct = [](const std::string& name, DType t) {
    return fmt::format("typedef struct {{\n  {} v[{}];\n}} {};\n", c_type(t), t.lanes, name);
  };
  bool has_structs = false;
  for (const auto& [name, dtype] : types_) {
    has_structs |= !is_gnu(dtype);
    if (!is_gnu(dtype)) continue;
    out += fmt::format("typedef {} {} __attribute__((vector_size({})));\n", c_type(dtype), name,
                       dtype.bytes());
    // As it lies in memory: an array of elements, aligned as they are.
    out +=
        fmt::format("typedef {} {}_m __attribute__((vector_size({}), aligned({}), may_alias));\n",
                    c_type(dtype), name, dtype.bytes(), dtype.element().bytes());
  }
  out += "#else\n#define LANE(vector, lane) ((vector).v[lane])\n";
  for (const auto& [name, dtype] : types_)
    if (is_gnu(dtype)) out += as_struct(name, dtype);
  out += "#endif\n";
  if (has_structs) out += "#define ITEM(vector, lane) ((vector).v[lane])\n";
  for (const auto& [name, dtype] : types_)
    if (!is_gnu(dtype)) out += as_struct(name, dtype);
  return out + "\n";
}

std::string Prelude::text() const {
  std::string out;
  for (const std::string& name : functions_) out += scalar_function(name).definition + "\n";
  if (types_.empty()) return out;
  out += types_text();
  for (const Operation& op : operations_) {
    const std::vector<std::string> names = names_of(op.parameters);
    std::vector<std::string> args;
    for (const std::string& name : names) args.push_back("(" + name + ")");
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    const char* begin = "#if";
    bool always = false;
    for (const Form& form : op.forms) {
      out += fmt::format("{} {}{}{}\n", begin, macro_, form.condition.empty() ? "" : " && ",
                         form.condition);
      begin = "#elif";
      always |= form.condition.empty();
      if (repeats(form.text, names.size())) {
        out += macro_text(op.name, op.parameters, "  " + fill(form.text, names) + ";\n");
      } else {
        out += fmt::format("#define {}({}) {}\n", op.name, list, fill(form.text, args));
      }
    }
    if (!always)
      out += fmt::format("{} {}\n", begin, macro_) + macro_text(op.name, op.parameters, op.body);
    out += "#else\n" + function_text(op.result, op.name, op.parameters, op.body) + "#endif\n\n";
  }
  return out;
}

}  // namespace tenon::c_backend
