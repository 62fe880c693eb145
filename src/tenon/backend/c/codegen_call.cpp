// SPDX-License-Identifier: Apache-2.0
// Generates C for calls of intrinsics.

#include "tenon/backend/c/codegen.h"
#include "tenon/backend/c/scalar_functions.h"
#include "tenon/backend/c/vectors.h"
#include "tenon/backend/limits.h"

namespace tenon::c_backend {

static bool is_small_float(DType t) { return t.is_float() && t.bits == 16; }

Text FunctionCodegen::unary(const Call& call, const std::string& function) {
  const DType dtype = call.dtype;
  Text x = value(call.arg(0));
  const DType wide = is_small_float(dtype) ? kFloat32.with_lanes(dtype.lanes) : dtype;
  if (wide != dtype) x = widened(dtype, x);
  m_.prelude().use_math();
  const Text result = dtype.is_vector() ? apply(vector_unary(m_.prelude(), function, wide), {x})
                                        : apply(function + (wide.bits == 32 ? "f" : ""), {x});
  return wide == dtype ? result : narrowed(dtype, result);
}

Text FunctionCodegen::bitwise(const Call& call) {
  const DType dtype = call.dtype;
  const DType element = dtype.element();
  const std::string suffix = "_" + short_name(element.is_bool() ? kUInt8 : element);
  std::vector<Text> args;
  for (size_t i = 0; i < call.args.size(); ++i) args.push_back(value(call.arg(i)));
  std::string stem, pattern, form;
  if (call.is("shift_left") || call.is("shift_right")) {
    const bool left = call.is("shift_left");
    stem = left ? "shl" : "shr";
    const auto count = as_int(call.arg(1));
    if (count && *count >= 0 && *count < dtype.bits) {
      // By a constant: the operator alone. Of a negative number the bits move.
      const std::string c = c_type(element);
      const std::string operand =
          left ? fmt::format("(uint{}_t)$0", std::max<int>(32, element.bits)) : "$0";
      pattern = fmt::format("({})({} {} {})", c, operand, left ? "<<" : ">>", *count);
      if (dtype.is_vector()) {
        const std::string t = m_.prelude().type(dtype);
        const std::string u = m_.prelude().type({DType::Code::kUInt, dtype.bits, dtype.lanes});
        form = left ? fmt::format("(({})(({})$0 << {}))", t, u, *count)
                    : fmt::format("($0 >> {})", *count);
        return apply(m_.prelude().lanewise(fmt::format("{}{}", stem, *count), dtype, {dtype},
                                           pattern, {{"", form}}),
                     {args[0]});
      }
      return scalar(pattern, {args[0]});
    }
    pattern = m_.prelude().function(stem + suffix) + "($0, $1)";
  } else if (call.is("bitwise_not")) {
    stem = "bitnot";
    pattern = fmt::format("({})~$0", c_type(element));
    form = "(~$0)";
  } else if (call.is("popcount") || call.is("clz") || call.is("abs") || call.is("fabs")) {
    stem = call.is("fabs") ? "abs" : std::string(call.op->name);
    pattern = m_.prelude().function(stem + suffix) + "($0)";
  } else {
    const char* sign = call.is("bitwise_and") ? "&" : call.is("bitwise_or") ? "|" : "^";
    stem = call.is("bitwise_and") ? "bitand" : call.is("bitwise_or") ? "bitor" : "bitxor";
    pattern = element.bits < 32 ? fmt::format("({})($0 {} $1)", c_type(element), sign)
                                : fmt::format("$0 {} $1", sign);
    form = fmt::format("($0 {} $1)", sign);
  }
  if (dtype.is_scalar()) return scalar(pattern, args);
  std::vector<Prelude::Form> forms;
  if (!form.empty()) forms.push_back({"", form});
  return apply(
      m_.prelude().lanewise(stem, dtype, std::vector<DType>(args.size(), dtype), pattern, forms),
      args);
}

// isnan, isinf, isfinite.
Text FunctionCodegen::classify(const Call& call) {
  const DType from = call.arg(0)->dtype;
  const bool nan = call.is("isnan"), finite = call.is("isfinite");
  Text x = value(call.arg(0));
  if (!from.is_float()) {
    const Text all{finite ? "1" : "0", Text::kAtom};
    if (from.is_scalar()) return all;
    return apply(vector_splat(m_.prelude(), call.dtype), {{finite ? "-1" : "0", Text::kUnary}});
  }
  DType wide = from;
  if (is_small_float(from)) {
    wide = kFloat32.with_lanes(from.lanes);
    x = widened(from, x);
  }
  const std::string greatest = wide.bits == 32 ? "3.4028235e+38f" : "1.7976931348623157e+308";
  const std::string inside = fmt::format("$0 <= {0} && $0 >= -{0}", greatest);
  const std::string pattern = nan      ? "$0 != $0"
                              : finite ? inside
                                       : fmt::format("$0 > {0} || $0 < -{0}", greatest);
  if (from.is_scalar()) {
    if (x.level < Text::kAtom) x = hoist(wide, x);
    std::string text;
    text = fill(pattern, {x.s});
    return {text, Text::kAny};
  }
  const DType mask = kBool.with_lanes(from.lanes);
  std::vector<Prelude::Form> forms;
  if (nan && wide.bits == 32)
    forms.push_back({"", fmt::format("(({})($0 != $0))", m_.prelude().type(mask))});
  return apply(m_.prelude().lanewise(std::string(call.op->name), mask, {wide},
                                     "(" + pattern + ") ? -1 : 0", forms),
               {x});
}

// min_value, max_value, infinity.
Text FunctionCodegen::limit(const Call& call) {
  const DType dtype = call.dtype;
  if (dtype.is_float()) return value(imm(dtype, backend::float_limit(call)));
  const int64_t stated = backend::integer_limit(call);
  if (dtype.is_scalar()) return integer(dtype, stated);
  return apply(vector_splat(m_.prelude(), dtype), {integer(dtype.element(), stated)});
}

Text FunctionCodegen::reinterpret(const Call& call) {
  const DType from = call.arg(0)->dtype, to = call.dtype;
  if (from.is_bool() || to.is_bool() || from.is_handle() || to.is_handle() ||
      from.bits != to.bits || from.lanes != to.lanes)
    throw CompileError(kUnsupported, call.origin, "`T.reinterpret` from {} to {}", from.str(),
                       to.str());
  const Text x = value(call.arg(0));
  // A 16-bit float is its bits already.
  const auto bits = [](DType t) { return is_small_float(t) ? kUInt16.with_lanes(t.lanes) : t; };
  if (bits(from) == bits(to)) return x;
  if (to.is_vector()) return apply(vector_bits(m_.prelude(), bits(from), bits(to)), {x});
  if (bits(from).is_integer() && bits(to).is_integer())
    return {fmt::format("({}){}", c_type(to), x.at(Text::kUnary)), Text::kUnary};
  return apply(m_.prelude().function("bits_" + short_name(bits(from)) + "_" + short_name(bits(to))),
               {x});
}

// T.check_index: the index, once it is shown to lie in its extent.
Text FunctionCodegen::checked_index(const Call& call) {
  static constexpr int kErrorIndex = 2;  // as in runtime/abi.h
  const auto* message = call.arg(2).as<StringImm>();
  if (call.dtype.is_vector() || !message)
    throw CompileError(kUnsupported, call.origin,
                       "`T.check_index` takes a scalar, its extent and a constant text");
  Text at = value(call.arg(0));
  if (at.level < Text::kAtom) at = hoist(call.dtype, at);
  const Text extent = value(call.arg(1));
  // One comparison of unsigned numbers: an extent is not negative.
  const auto number = as_int(call.arg(1));
  const std::string bound =
      number ? fmt::format("{}u", *number) : fmt::format("(uint64_t){}", extent.at(Text::kUnary));
  fail_unless({fmt::format("(uint64_t){} < {}", at.at(Text::kUnary), bound), Text::kAny},
              kErrorIndex, where(call.origin), message->value, at.s, extent.s);
  return at;
}

Text FunctionCodegen::call(const Call& call) {
  if (!call.op) return function_value(call);
  if (call.is("check_index")) return checked_index(call);
  const DType dtype = call.dtype;
  const std::string_view name = call.op->name;
  static const std::map<std::string_view, const char*> kUnary = {
      {"sqrt", "sqrt"},  {"floor", "floor"},    {"ceil", "ceil"}, {"trunc", "trunc"},
      {"round", "rint"}, {"nearbyint", "rint"}, {"fabs", "fabs"}, {"abs", "fabs"}};
  if (const auto it = kUnary.find(name); it != kUnary.end()) {
    if (dtype.is_float()) return unary(call, it->second);
    const bool magnitude = (name == "abs" || name == "fabs") && dtype.is_int();
    return magnitude ? bitwise(call) : value(call.arg(0));  // integers are whole already
  }
  if (name == "rsqrt") {
    const Expr root =
        make<Call>(find_intrinsic("sqrt"), std::vector<NodePtr>{call.arg(0)}, kVoid, call.origin);
    if (!is_small_float(dtype)) return value(make<Binary>(BinaryOp::kDiv, imm(dtype, 1.0), root));
    const DType wide = kFloat32.with_lanes(dtype.lanes);
    const Expr x =
        make<Call>(find_intrinsic("sqrt"), std::vector<NodePtr>{make<Cast>(wide, call.arg(0))},
                   kVoid, call.origin);
    return value(make<Cast>(dtype, make<Binary>(BinaryOp::kDiv, imm(wide, 1.0), x)));
  }
  if (name == "copysign" || name == "fma") {
    const DType wide = is_small_float(dtype) ? kFloat32.with_lanes(dtype.lanes) : dtype;
    std::vector<Text> args;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Text x = value(call.arg(i));
      args.push_back(wide == dtype ? x : widened(dtype, x));
    }
    m_.prelude().use_math();
    const std::string function = std::string(name) + (wide.bits == 32 ? "f" : "");
    Text result;
    if (dtype.is_scalar()) {
      result = apply(function, args);
    } else if (name == "fma") {
      result = apply(vector_fma(m_.prelude(), wide), args);
    } else {
      result = apply(vector_copysign(m_.prelude(), wide), args);
    }
    return wide == dtype ? result : narrowed(dtype, result);
  }
  if (name == "isnan" || name == "isinf" || name == "isfinite") return classify(call);
  static const std::unordered_set<std::string_view> kBitwise = {
      "shift_left",  "shift_right", "bitwise_and", "bitwise_or",
      "bitwise_xor", "bitwise_not", "popcount",    "clz"};
  if (kBitwise.count(name)) return bitwise(call);
  if (name == "min_value" || name == "max_value" || name == "infinity") return limit(call);
  if (name == "if_then_else") return conditional(call.arg(0), call.arg(1), call.arg(2), true);
  if (name == "num_threads") return value(imm(dtype, int64_t{1}));  // C runs on its caller's
  if (name == "likely") return value(call.arg(0));
  if (name == "assume") return {"", Text::kAtom};
  if (name == "undef") {
    if (dtype.is_handle()) return {"NULL", Text::kAtom};
    return value(dtype.is_float() ? imm(dtype, 0.0) : imm(dtype, int64_t{0}));
  }
  if (name == "ret") {
    if (!info_.function->result.is_void() && !call.args.empty()) {
      const Text result = value(call.arg(0));
      line("*{} = {};", use("result"), result.s);
    }
    line("{}", info_.can_fail || is_entry_ ? "return 0;" : "return;");
    return {"", Text::kAtom};
  }
  if (name == "reinterpret") return reinterpret(call);
  if (name == "address_of" || name == "tvm_access_ptr") return pointer_value(ref_to(&call));
  if (name == "prefetch") {
    const auto* node = call.args.at(0).as<tir::BufferLoad>();
    const auto write = as_int(call.arg(1)), locality = as_int(call.arg(2));
    if (!node || !write || !locality)
      throw CompileError(kBadArgument, call.origin, "`T.prefetch` with a mode that is no constant");
    m_.prelude().use_prefetch();
    line("PREFETCH({}, {}, {});", pointer_to(*node->buffer, node->indices, call.origin),
         *write != 0 ? 1 : 0, *locality & 3);
    return {"", Text::kAtom};
  }
  if (name == "isnullptr") return {value(call.arg(0)).at(Text::kUnary) + " == NULL", Text::kAny};
  if (name == "vectorlow" || name == "vectorhigh") {
    const int lanes = call.arg(0)->dtype.lanes, half = dtype.lanes;
    std::vector<int64_t> picked;
    for (int i = 0; i < half; ++i) picked.push_back(name == "vectorlow" ? i : lanes - half + i);
    return apply(vector_pick(m_.prelude(), {call.arg(0)->dtype}, picked), {value(call.arg(0))});
  }
  if (name == "vectorcombine") {
    std::vector<int64_t> picked;
    for (int i = 0; i < dtype.lanes; ++i) picked.push_back(i);
    return apply(vector_pick(m_.prelude(), {call.arg(0)->dtype, call.arg(1)->dtype}, picked),
                 {value(call.arg(0)), value(call.arg(1))});
  }
  if (name == "masked_load") return masked(call);
  if (name == "masked_store") {
    masked_store_to(call);
    return {"", Text::kAtom};
  }
  if (is_foreign(call)) return foreign_value(call);
  throw CompileError(kUnsupported, call.origin, "`T.{}` of {} has no C code", name, dtype.str());
}

}  // namespace tenon::c_backend
