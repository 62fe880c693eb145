// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/vectors.h"

#include <fmt/core.h>

#include "tenon/backend/c/names.h"
#include "tenon/backend/c/scalar_functions.h"

namespace tenon::c_backend {

using Form = Prelude::Form;

static constexpr const char* kGccOnX86 = "defined(__GNUC__) && !defined(__clang__)";

static std::string on_gcc(const char* feature) {
  return fmt::format("{} && defined({})", kGccOnX86, feature);
}

static const char* sign_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSub: return "-";
    case BinaryOp::kMul: return "*";
    case BinaryOp::kDiv: return "/";
    case BinaryOp::kEQ: return "==";
    case BinaryOp::kNE: return "!=";
    case BinaryOp::kLT: return "<";
    case BinaryOp::kLE: return "<=";
    case BinaryOp::kGT: return ">";
    case BinaryOp::kGE: return ">=";
    case BinaryOp::kAnd: return "&&";
    case BinaryOp::kOr: return "||";
    default: return nullptr;
  }
}

static std::string float_pattern(Prelude& prelude, BinaryOp op, DType t, BinaryTraits traits) {
  const std::string suffix = t.bits == 32 ? "f" : "";
  switch (op) {
    case BinaryOp::kMod: prelude.use_math(); return "fmod" + suffix + "($0, $1)";
    case BinaryOp::kFloorDiv: prelude.use_math(); return "floor" + suffix + "($0 / $1)";
    case BinaryOp::kFloorMod: return prelude.function("floormod_" + short_name(t)) + "($0, $1)";
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      // An operand that cannot be NaN goes first and one comparison is exact.
      const bool is_max = op == BinaryOp::kMax;
      if (traits.no_nan < 0)
        return prelude.function((is_max ? "max_" : "min_") + short_name(t)) + "($0, $1)";
      return prelude.function((is_max ? "above_" : "below_") + short_name(t)) +
             (traits.no_nan == 0 ? "($0, $1)" : "($1, $0)");
    }
    default: return fmt::format("$0 {} $1", sign_of(op));
  }
}

std::string binary_pattern(Prelude& prelude, BinaryOp op, DType element, BinaryTraits traits) {
  if (is_comparison(op) || is_logical(op)) return fmt::format("$0 {} $1", sign_of(op));
  if (element.is_float()) return float_pattern(prelude, op, element, traits);
  const std::string c = c_type(element);
  const std::string name = short_name(element.is_bool() ? kUInt8 : element);
  if (op == BinaryOp::kMin || op == BinaryOp::kMax)
    return prelude.function((op == BinaryOp::kMax ? "max_" : "min_") + name) + "($0, $1)";
  const bool is_unsigned = element.is_uint() || element.is_bool();
  if (op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod) {
    const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
    const char* sign = quotient ? "/" : "%";
    if (is_unsigned || traits.nonnegative)
      return element.bits < 32 ? fmt::format("({})($0 {} $1)", c, sign)
                               : fmt::format("$0 {} $1", sign);
    const bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
    return prelude.function((floors ? "floor" : "") + std::string(quotient ? "div_" : "mod_") +
                            name) +
           "($0, $1)";
  }
  const char* sign = sign_of(op);
  if ((traits.index && !is_unsigned) || (is_unsigned && element.bits >= 32))
    return fmt::format("$0 {} $1", sign);
  if (element.bits >= 32)
    return fmt::format("({0})((uint{1}_t)$0 {2} (uint{1}_t)$1)", c, element.bits, sign);
  return fmt::format("({})((unsigned)$0 {} (unsigned)$1)", c, sign);
}

std::string cast_pattern(Prelude& prelude, DType from, DType to) {
  from = from.element();
  to = to.element();
  if (from == to) return "$0";
  const auto is_small = [](DType t) { return t.is_float() && t.bits == 16; };
  if (is_small(from)) {
    const std::string wide = prelude.function("cast_" + short_name(from) + "_f32") + "($0)";
    return to == kFloat32 ? wide : fill(cast_pattern(prelude, kFloat32, to), {wide});
  }
  if (is_small(to)) {
    const std::string narrow = prelude.function("cast_f32_" + short_name(to)) + "($0)";
    return from == kFloat32 ? narrow : fill(narrow, {cast_pattern(prelude, from, kFloat32)});
  }
  if (to.is_bool()) return "($0 != 0)";
  if (from.is_float() && to.is_integer())
    return prelude.function("cast_" + short_name(from) + "_" + short_name(to)) + "($0)";
  return fmt::format("({})$0", c_type(to));
}

// ---- vectors ------------------------------------------------------------------------------------

// The type of the mask that a comparison of GNU vectors gives: integers as wide as the elements.
static DType mask_of(DType dtype) { return DType{DType::Code::kInt, dtype.bits, dtype.lanes}; }

static std::string to_mask(Prelude& prelude, DType dtype, const std::string& comparison) {
  const std::string mask = prelude.type(kInt32.with_lanes(dtype.lanes));
  if (dtype.bits == 32) return fmt::format("(({})({}))", mask, comparison);
  return fmt::format("__builtin_convertvector({}, {})", comparison, mask);
}

static std::string choose(Prelude& prelude, DType dtype, const std::string& wide_mask,
                          const std::string& a, const std::string& b) {
  const std::string t = prelude.type(dtype), m = prelude.type(mask_of(dtype));
  return fmt::format("(({0})(({2} & ({1}){3}) | (~{2} & ({1}){4})))", t, m, wide_mask, a, b);
}

static std::vector<Form> extreme_forms(Prelude& prelude, bool is_max, DType dtype, int no_nan) {
  const char* sign = is_max ? ">" : "<";
  const std::string t = prelude.type(dtype), m = prelude.type(mask_of(dtype));
  if (!dtype.is_float())
    return {{"", choose(prelude, dtype, fmt::format("(({})($0 {} $1))", m, sign), "$0", "$1")}};
  const char* first = no_nan == 1 ? "$1" : "$0";
  const char* second = no_nan == 1 ? "$0" : "$1";
  std::vector<Form> forms;
  const std::string pick = choose(
      prelude, dtype, fmt::format("(({})({} {} {}))", m, first, sign, second), first, second);
  const auto whole = [&](const std::string& picked) {
    return no_nan >= 0 ? picked
                       : choose(prelude, dtype, fmt::format("(({})($0 == $0))", m), picked, "$0");
  };
  const char* op = is_max ? "max" : "min";
  // The processor's own, which gives the second operand where either is NaN.
  if (dtype == kFloat32.with_lanes(16))
    forms.push_back(
        {on_gcc("__AVX512F__"), whole(fmt::format("__builtin_ia32_{}ps512_mask({}, {}, {}, -1, 4)",
                                                  op, first, second, first))});
  if (dtype == kFloat32.with_lanes(8))
    forms.push_back({on_gcc("__AVX__"),
                     whole(fmt::format("__builtin_ia32_{}ps256({}, {})", op, first, second))});
  if (dtype == kFloat32.with_lanes(4))
    forms.push_back(
        {on_gcc("__SSE__"), whole(fmt::format("__builtin_ia32_{}ps({}, {})", op, first, second))});
  forms.push_back({"", whole(pick)});
  return forms;
}

std::string vector_binary(Prelude& prelude, BinaryOp op, DType dtype, BinaryTraits traits) {
  const DType mask = kBool.with_lanes(dtype.lanes);
  if (is_logical(op))
    return prelude.lanewise(op == BinaryOp::kAnd ? "and" : "or", mask, {mask, mask},
                            op == BinaryOp::kAnd ? "$0 & $1" : "$0 | $1",
                            {{"", op == BinaryOp::kAnd ? "($0 & $1)" : "($0 | $1)"}});
  static constexpr const char* kStems[] = {"add",      "sub",      "mul", "div", "mod",
                                           "floordiv", "floormod", "min", "max", "eq",
                                           "ne",       "lt",       "le",  "gt",  "ge"};
  std::string name = kStems[static_cast<int>(op)];
  const DType element = value_dtype(dtype).element();
  if (is_comparison(op))
    return prelude.lanewise(
        name, mask, {dtype, dtype}, fmt::format("$0 {} $1 ? -1 : 0", sign_of(op)),
        {{"", to_mask(prelude, value_dtype(dtype), fmt::format("$0 {} $1", sign_of(op)))}});
  std::vector<Form> forms;
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
    if (dtype.is_float() && traits.no_nan >= 0) name += traits.no_nan == 0 ? "_n" : "_m";
    forms = extreme_forms(prelude, op == BinaryOp::kMax, value_dtype(dtype), traits.no_nan);
  } else if (op <= BinaryOp::kMul || (op == BinaryOp::kDiv && dtype.is_float())) {
    std::string text = fmt::format("($0 {} $1)", sign_of(op));
    if (dtype.is_int()) {  // wraps
      const std::string u = prelude.type({DType::Code::kUInt, dtype.bits, dtype.lanes});
      text = fmt::format("(({0})(({1})$0 {2} ({1})$1))", prelude.type(dtype), u, sign_of(op));
    }
    forms.push_back({"", text});
  } else if (traits.nonnegative) {
    name += "_n";
  }
  return prelude.lanewise(name, dtype, {dtype, dtype}, binary_pattern(prelude, op, element, traits),
                          forms);
}

std::string vector_splat(Prelude& prelude, DType dtype) {
  dtype = value_dtype(dtype);
  const std::string t = prelude.type(dtype);
  std::string all;
  for (int i = 0; i < dtype.lanes; ++i) all += i > 0 ? ", $0" : "$0";
  const std::string body =
      fmt::format("  {0} r = {{0}};\n  int i;\n  for (i = 0; i < {1}; ++i) {2} = x;\n  return r;\n",
                  t, dtype.lanes, Prelude::lane(dtype, "r", "i"));
  std::vector<Form> forms;
  if (Prelude::is_gnu(dtype)) forms.push_back({"", fmt::format("(({}){{{}}})", t, all)});
  return prelude.custom("splat_" + t, t, c_type(dtype) + " x", body, forms);
}

std::string vector_ramp(Prelude& prelude, DType dtype) {
  const std::string t = prelude.type(dtype), c = c_type(dtype);
  return prelude.custom(
      "ramp_" + t, t, fmt::format("{0} base, {0} stride", c),
      fmt::format(
          "  {0} r = {{0}};\n  int i;\n  for (i = 0; i < {1}; ++i) {2} = ({3})(base + stride * "
          "({3})i);\n  return r;\n",
          t, dtype.lanes, Prelude::lane(dtype, "r", "i"), c));
}

std::string vector_select(Prelude& prelude, DType dtype) {
  const DType value = value_dtype(dtype);
  const DType mask = kBool.with_lanes(dtype.lanes);
  std::string wide = "$0";
  if (value.bits != 32)
    wide = fmt::format("__builtin_convertvector($0, {})", prelude.type(mask_of(value)));
  return prelude.lanewise("select", value, {mask, value, value}, "$0 ? $1 : $2",
                          {{"", choose(prelude, value, wide, "$1", "$2")}});
}

std::string vector_not(Prelude& prelude, int lanes) {
  const DType mask = kBool.with_lanes(lanes);
  return prelude.lanewise("not", mask, {mask}, "~$0", {{"", "(~$0)"}});
}

std::string vector_fma(Prelude& prelude, DType dtype) {
  prelude.use_math();
  const bool single = dtype.bits == 32;
  std::vector<Form> forms = {{"HAS_ELEMENTWISE_FMA", "__builtin_elementwise_fma($0, $1, $2)"}};
  const char* kind = single ? "ps" : "pd";
  const int bits = dtype.bits * dtype.lanes;
  if (bits == 512)
    forms.push_back({on_gcc("__AVX512F__"),
                     fmt::format("__builtin_ia32_vfmadd{}512_mask($0, $1, $2, -1, 4)", kind)});
  if (bits == 256)
    forms.push_back(
        {on_gcc("__FMA__"), fmt::format("__builtin_ia32_vfmadd{}256($0, $1, $2)", kind)});
  if (bits == 128)
    forms.push_back({on_gcc("__FMA__"), fmt::format("__builtin_ia32_vfmadd{}($0, $1, $2)", kind)});
  return prelude.lanewise("fma", dtype, {dtype, dtype, dtype},
                          single ? "fmaf($0, $1, $2)" : "fma($0, $1, $2)", forms);
}

std::string vector_copysign(Prelude& prelude, DType dtype) {
  prelude.use_math();
  const bool single = dtype.bits == 32;
  const std::string u = prelude.type({DType::Code::kUInt, dtype.bits, dtype.lanes});
  return prelude.lanewise(
      "copysign", dtype, {dtype, dtype}, single ? "copysignf($0, $1)" : "copysign($0, $1)",
      {{"", fmt::format("(({0})((({1})$0 & {2}) | (({1})$1 & {3})))", prelude.type(dtype), u,
                        single ? "0x7fffffffu" : "0x7fffffffffffffffu",
                        single ? "0x80000000u" : "0x8000000000000000u")}});
}

std::string vector_cast(Prelude& prelude, DType from, DType to) {
  const auto is_small = [](DType t) { return t.is_float() && t.bits == 16; };
  std::vector<Form> forms;
  std::string scalar = cast_pattern(prelude, from, to);
  if (to.is_bool()) {
    if (from.is_bool()) return "";
    scalar = is_small(from) ? fill(scalar, {"$0"}) + " ? -1 : 0" : "$0 != 0 ? -1 : 0";
  } else if (from.is_bool()) {  // a mask
    scalar = fill(cast_pattern(prelude, kBool, to), {"($0 != 0)"});
  } else if (!is_small(from) && !is_small(to) && !(from.is_float() && to.is_integer())) {
    forms.push_back({"", fmt::format("__builtin_convertvector($0, {})", prelude.type(to))});
  }
  return prelude.lanewise(from.is_bool() || to.is_bool() ? "truth" : "cast", to, {from}, scalar,
                          forms);
}

std::string vector_bits(Prelude& prelude, DType from, DType to) {
  const std::string name =
      prelude.function("bits_" + short_name(from.element()) + "_" + short_name(to.element()));
  return prelude.lanewise("bits", to, {from}, name + "($0)",
                          {{"", fmt::format("(({})$0)", prelude.type(to))}});
}

// Rounds to nearest by adding what has no bits below one, and the others by that. $0 keeps its
// sign.
static std::string rounding_form(Prelude& prelude, const std::string& name, DType dtype) {
  const std::string t = prelude.type(dtype), m = prelude.type(mask_of(dtype));
  const std::string u = prelude.type({DType::Code::kUInt, dtype.bits, dtype.lanes});
  const bool single = dtype.bits == 32;
  const std::string sign = single ? "0x80000000u" : "0x8000000000000000u";
  const std::string magnitude =
      fmt::format("(({0})(({1})$0 & {2}))", t, u, single ? "0x7fffffffu" : "0x7fffffffffffffffu");
  const auto signed_as_0 = [&](const std::string& value) {
    return fmt::format("(({0})(({1})({2}) | (({1})$0 & {3})))", t, u, value, sign);
  };
  if (name == "rint") {
    const std::string limit = single ? "0x1p23f" : "0x1p52";
    const std::string rounded = signed_as_0(fmt::format("({0} + {1}) - {1}", magnitude, limit));
    return choose(prelude, dtype, fmt::format("(({})({} < {}))", m, magnitude, limit), rounded,
                  "$0");
  }
  const std::string nearest = vector_unary(prelude, "rint", dtype);
  const std::string of = name == "trunc" ? magnitude : "$0";
  const std::string whole = fmt::format("{}({})", nearest, of);
  // 1.0 where the nearest lies on the wrong side.
  const std::string step =
      fmt::format("(({0})((({1})({2} {3} {4})) & ({1})({5}{{0}} + {6})))", t, m, whole,
                  name == "ceil" ? "<" : ">", of, "(" + t + ")", single ? "1.0f" : "1.0");
  return signed_as_0(fmt::format("{} {} {}", whole, name == "ceil" ? "+" : "-", step));
}

std::string vector_unary(Prelude& prelude, const std::string& name, DType dtype) {
  prelude.use_math();
  const std::string suffix = dtype.bits == 32 ? "f" : "";
  std::vector<Form> forms;
  if (name == "fabs") {
    const std::string u = prelude.type({DType::Code::kUInt, dtype.bits, dtype.lanes});
    forms.push_back({"", fmt::format("(({0})(({1})$0 & {2}))", prelude.type(dtype), u,
                                     dtype.bits == 32 ? "0x7fffffffu" : "0x7fffffffffffffffu")});
  } else if (name == "sqrt") {
    forms.push_back({"HAS_ELEMENTWISE_FMA", "__builtin_elementwise_sqrt($0)"});
    if (dtype == kFloat32.with_lanes(16))
      forms.push_back({on_gcc("__AVX512F__"), "__builtin_ia32_sqrtps512_mask($0, $0, -1, 4)"});
    if (dtype == kFloat32.with_lanes(8))
      forms.push_back({on_gcc("__AVX__"), "__builtin_ia32_sqrtps256($0)"});
    if (dtype == kFloat32.with_lanes(4))
      forms.push_back({on_gcc("__SSE__"), "__builtin_ia32_sqrtps($0)"});
  } else if (Prelude::is_gnu(dtype)) {
    forms.push_back({"", rounding_form(prelude, name, dtype)});
  }
  return prelude.lanewise(name, dtype, {dtype}, name + suffix + "($0)", forms);
}

// ---- memory -------------------------------------------------------------------------------------

static std::string for_lanes(DType dtype, const std::string& statement) {
  return fmt::format("  int i;\n  for (i = 0; i < {}; ++i) {}\n", dtype.lanes, statement);
}

// A bool in memory is a byte 0 or 1, in a mask 0 or -1.
static std::string from_byte(DType dtype, const std::string& element) {
  return dtype.is_bool() ? element + " ? -1 : 0" : element;
}
static std::string to_byte(DType dtype, const std::string& lane) {
  return dtype.is_bool() ? fmt::format("(uint8_t)({} != 0)", lane) : lane;
}

static std::string memory_name(const std::string& stem, Prelude& prelude, DType dtype) {
  const std::string t = prelude.type(dtype);
  return dtype.is_bool() ? stem + "_bool_" + t : stem + "_" + t;
}

static std::string loading(Prelude& prelude, DType dtype, const std::string& value) {
  return fmt::format("  {} r = {{0}};\n", prelude.type(dtype)) +
         for_lanes(dtype, fmt::format("{} = {};", Prelude::lane(dtype, "r", "i"), value)) +
         "  return r;\n";
}

static bool direct(DType dtype) { return !dtype.is_bool() && Prelude::is_gnu(dtype); }

std::string vector_load(Prelude& prelude, DType dtype) {
  std::vector<Form> forms;
  if (direct(dtype))
    forms.push_back({"", fmt::format("(({0})*(const {0}_m*)$0)", prelude.type(dtype))});
  return prelude.custom(memory_name("load", prelude, dtype), prelude.type(dtype),
                        fmt::format("const {}* p", c_type(dtype)),
                        loading(prelude, dtype, from_byte(dtype, "p[i]")), forms);
}

std::string vector_store(Prelude& prelude, DType dtype) {
  std::vector<Form> forms;
  if (direct(dtype)) forms.push_back({"", fmt::format("(*({}_m*)$0 = $1)", prelude.type(dtype))});
  return prelude.custom(
      memory_name("store", prelude, dtype), "void",
      fmt::format("{}* p, {} v", c_type(dtype), prelude.type(dtype)),
      for_lanes(dtype, fmt::format("p[i] = {};", to_byte(dtype, Prelude::lane(dtype, "v", "i")))),
      forms);
}

std::string vector_load_every(Prelude& prelude, DType dtype) {
  std::vector<Form> forms;
  std::string all;
  for (int i = 0; i < dtype.lanes; ++i) all += fmt::format("{}$0[{} * $1]", i > 0 ? ", " : "", i);
  if (direct(dtype)) forms.push_back({"", fmt::format("(({}){{{}}})", prelude.type(dtype), all)});
  return prelude.custom(memory_name("load_every", prelude, dtype), prelude.type(dtype),
                        fmt::format("const {}* p, int64_t stride", c_type(dtype)),
                        loading(prelude, dtype, from_byte(dtype, "p[i * stride]")), forms);
}

std::string vector_store_every(Prelude& prelude, DType dtype) {
  return prelude.custom(
      memory_name("store_every", prelude, dtype), "void",
      fmt::format("{}* p, int64_t stride, {} v", c_type(dtype), prelude.type(dtype)),
      for_lanes(dtype, fmt::format("p[i * stride] = {};",
                                   to_byte(dtype, Prelude::lane(dtype, "v", "i")))));
}

std::string vector_gather(Prelude& prelude, DType dtype, DType index) {
  return prelude.custom(
      memory_name("gather", prelude, dtype) + "_" + prelude.type(index), prelude.type(dtype),
      fmt::format("const {}* p, {} at", c_type(dtype), prelude.type(index)),
      loading(prelude, dtype,
              from_byte(dtype, fmt::format("p[{}]", Prelude::lane(index, "at", "i")))));
}

std::string vector_scatter(Prelude& prelude, DType dtype, DType index) {
  return prelude.custom(
      memory_name("scatter", prelude, dtype) + "_" + prelude.type(index), "void",
      fmt::format("{}* p, {} at, {} v", c_type(dtype), prelude.type(index), prelude.type(dtype)),
      for_lanes(dtype, fmt::format("p[{}] = {};", Prelude::lane(index, "at", "i"),
                                   to_byte(dtype, Prelude::lane(dtype, "v", "i")))));
}

std::string masked_load(Prelude& prelude, DType dtype) {
  const DType mask = kInt32.with_lanes(dtype.lanes);
  return prelude.custom(memory_name("masked_load", prelude, dtype), prelude.type(dtype),
                        fmt::format("const {}* p, {} mask, {} otherwise", c_type(dtype),
                                    prelude.type(mask), prelude.type(dtype)),
                        loading(prelude, dtype,
                                fmt::format("{} ? {} : {}", Prelude::lane(mask, "mask", "i"),
                                            dtype.is_bool() ? "(p[i] ? -1 : 0)" : "p[i]",
                                            Prelude::lane(dtype, "otherwise", "i"))));
}

std::string masked_store(Prelude& prelude, DType dtype) {
  const DType mask = kInt32.with_lanes(dtype.lanes);
  return prelude.custom(
      memory_name("masked_store", prelude, dtype), "void",
      fmt::format("{}* p, {} mask, {} v", c_type(dtype), prelude.type(mask), prelude.type(dtype)),
      for_lanes(dtype, fmt::format("if ({}) p[i] = {};", Prelude::lane(mask, "mask", "i"),
                                   to_byte(dtype, Prelude::lane(dtype, "v", "i")))));
}

std::string vector_pick(Prelude& prelude, const std::vector<DType>& from,
                        const std::vector<int64_t>& lanes) {
  std::string name = "pick", parameters, body;
  std::vector<std::string> all;
  const DType element = value_dtype(from[0]).element();
  for (size_t k = 0; k < from.size(); ++k) {
    const std::string variable(1, static_cast<char>('a' + k));
    const std::string t = prelude.type(from[k]);
    name += "_" + t;
    parameters += (k > 0 ? ", " : "") + t + " " + variable;
    for (int i = 0; i < from[k].lanes; ++i)
      all.push_back(from[k].is_scalar() ? variable
                                        : Prelude::lane(from[k], variable, std::to_string(i)));
  }
  const DType result = element.with_lanes(static_cast<int>(lanes.size()));
  const std::string t = prelude.type(result);
  body = fmt::format("  {} r{};\n", t, result.is_scalar() ? "" : " = {0}");
  for (size_t i = 0; i < lanes.size(); ++i) {
    name += fmt::format("_{}", lanes[i]);
    const std::string to = result.is_scalar() ? "r" : Prelude::lane(result, "r", std::to_string(i));
    body += fmt::format("  {} = {};\n", to, all.at(static_cast<size_t>(lanes[i])));
  }
  return prelude.custom(name, t, parameters, body + "  return r;\n");
}

std::string any_zero(Prelude& prelude, DType dtype) {
  return prelude.custom(
      "any_zero_" + prelude.type(dtype), "int", prelude.type(dtype) + " v",
      "  int found = 0;\n" +
          for_lanes(dtype, fmt::format("found |= {} == 0;", Prelude::lane(dtype, "v", "i"))) +
          "  return found;\n");
}

}  // namespace tenon::c_backend
