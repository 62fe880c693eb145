// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/scalar_functions.h"

#include <fmt/core.h>

#include "tenon/backend/c/names.h"
#include "tenon/support/check.h"

namespace tenon::c_backend {

std::string short_name(DType dtype) {
  std::string text;
  dtype = dtype.storage();
  switch (dtype.code) {
    case DType::Code::kInt: text = fmt::format("i{}", dtype.bits); break;
    case DType::Code::kUInt: text = fmt::format("u{}", dtype.bits); break;
    case DType::Code::kBool: text = dtype.is_vector() ? "i32" : "b"; break;
    case DType::Code::kBFloat: text = "b16"; break;
    case DType::Code::kFloat:
      text = dtype.bits == 16 ? "h16" : fmt::format("f{}", dtype.bits);
      break;
    default: text = "p"; break;
  }
  return dtype.is_vector() ? fmt::format("{}x{}", text, dtype.lanes) : text;
}

static DType dtype_of(const std::string& name) {
  const int bits = std::stoi(name.substr(1));
  switch (name[0]) {
    case 'i': return {DType::Code::kInt, static_cast<uint8_t>(bits)};
    case 'u': return {DType::Code::kUInt, static_cast<uint8_t>(bits)};
    case 'f': return {DType::Code::kFloat, static_cast<uint8_t>(bits)};
    case 'h': return kFloat16;
    case 'b': return kBFloat16;
    default: unreachable("a short name of a type");
  }
}

// A function of one line: `static inline R name(parameters) { body }`.
static std::string function(const std::string& result, const std::string& name,
                            const std::string& parameters, const std::string& body) {
  return fmt::format("INLINE {} {}({}) {{\n{}}}\n", result, name, parameters, body);
}

static std::string unsigned_type(DType t) { return fmt::format("uint{}_t", t.bits); }

static ScalarFunction of_integers(const std::string& op, const std::string& name, DType t) {
  const std::string c = c_type(t), u = unsigned_type(t);
  const std::string two = fmt::format("{0} a, {0} b", c);
  const auto simple = [&](const std::string& body) {
    return ScalarFunction{function(c, name, two, body), {}, false};
  };
  if (op == "max") return simple("  return a > b ? a : b;\n");
  if (op == "min") return simple("  return a < b ? a : b;\n");
  if (op == "abs")
    return {function(c, name, c + " a",
                     fmt::format("  return a < 0 ? ({0})(0u - ({1})a) : a;\n", c, u)),
            {},
            false};
  // Quotients: least value / -1 wraps.
  if (op == "div")
    return simple(fmt::format("  return b == -1 ? ({0})(0u - ({1})a) : ({0})(a / b);\n", c, u));
  if (op == "mod") return simple(fmt::format("  return b == -1 ? ({0})0 : ({0})(a % b);\n", c));
  if (op == "floordiv")
    return simple(
        fmt::format("  {0} q;\n  if (b == -1) return ({0})(0u - ({1})a);\n  q = ({0})(a / b);\n"
                    "  return ({0})(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);\n",
                    c, u));
  if (op == "floormod")
    return simple(
        fmt::format("  {0} r;\n  if (b == -1) return 0;\n  r = ({0})(a % b);\n"
                    "  return ({0})(r != 0 && (r < 0) != (b < 0) ? r + b : r);\n",
                    c));
  const int bits = t.bits;
  if (op == "shl")
    return simple(fmt::format("  return b {2} {3} ? ({0})0 : ({0})(({1})a << b);\n", c, u,
                              t.is_int() ? "< 0 || b >=" : ">=", bits));
  if (op == "shr") {
    if (!t.is_int())
      return simple(fmt::format("  return b >= {1} ? ({0})0 : ({0})(a >> b);\n", c, bits));
    return simple(
        fmt::format("  return ({0})(a >> (b < 0 || b >= {1} ? {1} : b));\n", c, bits - 1));
  }
  if (op == "popcount")
    return {
        function(c, name, c + " a",
                 fmt::format("  {1} x = ({1})a;\n  {0} n = 0;\n  for (; x != 0; x = ({1})(x & (x "
                             "- 1u))) n = ({0})(n + 1);\n  return n;\n",
                             c, u)),
        {},
        false};
  if (op == "clz")
    return {
        function(c, name, c + " a",
                 fmt::format("  {1} x = ({1})a;\n  {0} n = {2};\n  for (; x != 0; x = ({1})(x >> "
                             "1)) n = ({0})(n - 1);\n  return n;\n",
                             c, u, bits)),
        {},
        false};
  unreachable("a scalar function of integers: " + name);
}

static ScalarFunction of_floats(const std::string& op, const std::string& name, DType t) {
  const std::string c = c_type(t);
  const std::string two = fmt::format("{0} a, {0} b", c);
  const char* suffix = t.bits == 32 ? "f" : "";
  const auto simple = [&](const std::string& body) {
    return ScalarFunction{function(c, name, two, body), {}, false};
  };
  // NaN where either is; the first operand's goes on. In this order: clang 19 gets `a != a ? a :
  // ...` wrong where `a` is an absolute value and `b` is 0.
  if (op == "max") return simple("  return a == a ? (a > b ? a : b) : a;\n");
  if (op == "min") return simple("  return a == a ? (a < b ? a : b) : a;\n");
  // The second where either is NaN.
  if (op == "above") return simple("  return a > b ? a : b;\n");
  if (op == "below") return simple("  return a < b ? a : b;\n");
  if (op == "floormod")
    return simple(
        fmt::format("  const {0} r = fmod{1}(a, b);\n"
                    "  return (r > 0 || r < 0) && (r < 0) != (b < 0) ? r + b : r;\n",
                    c, suffix));
  unreachable("a scalar function of floats: " + name);
}

// Towards zero, saturating; NaN gives 0.
static ScalarFunction float_to_integer(const std::string& name, DType from, DType to) {
  const std::string c = c_type(to), f = c_type(from);
  const char* suffix = from.bits == 32 ? "f" : "";
  if (to.is_uint())
    return {function(c, name, f + " x",
                     fmt::format("  if (!(x > 0)) return 0;\n"
                                 "  return x >= {2}{1} ? ({0})-1 : ({0})x;\n",
                                 c, suffix, fmt::format("0x1p{}", to.bits))),
            {},
            false};
  const std::string limit = fmt::format("0x1p{}{}", to.bits - 1, suffix);
  return {function(c, name, f + " x",
                   fmt::format("  if (x != x) return 0;\n"
                               "  if (x >= {1}) return INT{2}_MAX;\n"
                               "  return x < -{1} ? INT{2}_MIN : ({0})x;\n",
                               c, limit, to.bits)),
          {},
          false};
}

static ScalarFunction small_float(const std::string& name, DType small, bool widens) {
  const bool brain = small == kBFloat16;
  ScalarFunction out;
  out.needs = {widens ? "bits_u32_f32" : "bits_f32_u32"};
  if (brain && widens) {
    out.definition =
        function("float", name, "uint16_t x", "  return bits_u32_f32((uint32_t)x << 16);\n");
  } else if (brain) {
    out.definition = function(
        "uint16_t", name, "float x",
        "  const uint32_t bits = bits_f32_u32(x), high = bits >> 16;\n"
        "  if (x != x) return (uint16_t)(high | 0x40u);\n"
        "  return (uint16_t)((bits + (high & 1u) + 0x7fffu) >> 16);  /* to nearest, even */\n");
  } else if (widens) {
    // The exponent's bias changes by a product, which makes denormals normal.
    out.needs.push_back("bits_f32_u32");
    out.definition = function(
        "float", name, "uint16_t x",
        "  const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;\n"
        "  const uint32_t magnitude = (uint32_t)(x & 0x7fffu) << 13;\n"
        "  if (magnitude >= 0x0f800000u) return bits_u32_f32(sign | magnitude | 0x7f800000u);\n"
        "  return bits_u32_f32(sign | bits_f32_u32(bits_u32_f32(magnitude) * 0x1p112f));\n");
  } else {
    out.needs.push_back("bits_u32_f32");
    out.definition = function(
        "uint16_t", name, "float x",
        "  const uint32_t bits = bits_f32_u32(x), sign = (bits >> 16) & 0x8000u;\n"
        "  const uint32_t magnitude = bits & 0x7fffffffu;\n"
        "  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);\n"
        "  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);\n"
        "  if (magnitude < 0x38800000u)  /* denormal: its last place is that of this sum */\n"
        "    return (uint16_t)(sign | (bits_f32_u32(bits_u32_f32(magnitude) + 0.5f) - "
        "0x3f000000u));\n"
        "  return (uint16_t)(sign | ((magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> "
        "13));\n");
  }
  return out;
}

ScalarFunction scalar_function(const std::string& name) {
  const size_t first = name.find('_');
  check(first != std::string::npos, "a scalar function without a type: " + name);
  const std::string op = name.substr(0, first);
  const std::string types = name.substr(first + 1);
  const size_t second = types.find('_');
  const DType from = dtype_of(types.substr(0, second));
  if (second == std::string::npos)
    return from.is_float() ? of_floats(op, name, from) : of_integers(op, name, from);
  const DType to = dtype_of(types.substr(second + 1));
  if (op == "bits") {
    const std::string c = c_type(to);
    return {function(c, name, c_type(from) + " x",
                     fmt::format("  {} y;\n  memcpy(&y, &x, sizeof(y));\n  return y;\n", c)),
            {},
            true};
  }
  check(op == "cast", "an unknown scalar function: " + name);
  if (from.is_float() && from.bits == 16) return small_float(name, from, true);
  if (to.is_float() && to.bits == 16) return small_float(name, to, false);
  return float_to_integer(name, from, to);
}

}  // namespace tenon::c_backend
