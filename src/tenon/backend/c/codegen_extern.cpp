// SPDX-License-Identifier: Apache-2.0
// Generates C for calls of functions: of the program, of libraries, and of undeclared ones.
#include <array>

#include "tenon/backend/c/codegen.h"
#include "tenon/backend/dlpack_code.h"
#include "tenon/tir/analysis/element_places.h"
#include "tenon/tir/callee.h"

namespace tenon::c_backend {

using tir::BufferRegion;

// As in runtime/abi.h, which freestanding C does not include.
static constexpr int kErrorShape = 3, kErrorLibrary = 6;
enum ValueCode {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kPointer = 3,
  kNone = 4,
  kTensor = 7,
  kText = 11
};

// ---- functions of the program -------------------------------------------------------------------

void FunctionCodegen::check_facts(const std::vector<tir::CallFact>& facts,
                                  const tir::Callee& callee, const Origin& origin) {
  for (const tir::CallFact& fact : facts) {
    const Text actual = index(fact.actual);
    if (fact.kind == tir::CallFact::Kind::kScratch) {
      // What a library answers is a size_t.
      const Text asked = hoist(kInt64, index(fact.declared), "asked");
      fail_unless({fmt::format("(uint64_t){} <= (uint64_t){}", asked.at(Text::kUnary),
                               actual.at(Text::kUnary)),
                   Text::kAny},
                  kErrorShape, where(origin), backend::message_of(fact, callee), actual.s, asked.s);
      continue;
    }
    fail_unless(value(fact.condition()), kErrorShape, where(origin),
                backend::message_of(fact, callee), actual.s, index(fact.declared).s);
  }
}

// `result`: the variable that takes what the callee returns; empty where that is nothing.
void FunctionCodegen::call_function(const GlobalVar& name, const std::vector<NodePtr>& args,
                                    const Origin& origin, const std::string& result) {
  const FunctionInfo& callee = m_.callee(name.name, origin);
  const backend::CallArguments passed = backend::bind_arguments(name.name, args, origin, callee);
  check_facts(passed.unproved, tir::callee_of(name.name, callee.function), origin);
  std::vector<std::string> texts;
  for (const backend::CallArguments::Pointer& pointer : passed.pointers)
    texts.push_back(pointer_to(*pointer.buffer, pointer.minimum, origin));
  for (const Expr& symbol : passed.symbols) texts.push_back(index(symbol).s);
  for (const Expr& scalar : passed.scalars) texts.push_back(value(scalar).s);
  if (callee.uses_constants && m_.has_constants_pointer()) texts.push_back(use("constants"));
  if (!result.empty()) texts.push_back("&" + result);
  if (callee.can_fail) texts.push_back(use("error"));
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  if (is_entry_) comment_origin(origin ? origin : callee.function->origin);
  if (!callee.can_fail) return line("{}({});", callee.c_name, list);
  use("code");
  line("code = {}({});", callee.c_name, list);
  line("if (code != 0) return code;");
}

void FunctionCodegen::generate_call_tir(const tir::CallTir& call) {
  if (const auto library = m_.library_function(call.callee->name))
    return generate_call_library(call, *library);
  const DType returned = m_.callee(call.callee->name, call.origin).function->result;
  std::string unused;
  if (!returned.is_void()) {
    unused = names_.take("unused");
    line("{};", declare(returned, unused));
  }
  call_function(*call.callee, call.args, call.origin, unused);
}

// A kernel that returns a scalar.
Text FunctionCodegen::function_value(const Call& call) {
  const DType returned = m_.callee(call.callee->name, call.origin).function->result;
  if (returned.is_void())
    throw CompileError(kTypeMismatch, call.origin, "`{}` returns no value", call.callee->name);
  const std::string result = names_.take(call.callee->name + "_result");
  line("{};", declare(returned, result));
  call_function(*call.callee, call.args, call.origin, result);
  return {result, Text::kAtom};
}

// ---- library functions --------------------------------------------------------------------------

// A DLTensor that lives as long as the block around.
std::string FunctionCodegen::dl_tensor(const BufferRegion& region, const Origin& origin) {
  m_.use_tensors();
  std::vector<Expr> minimum;
  for (const tir::Range& range : region.region) minimum.push_back(range.min);
  const std::vector<Expr> extents = tir::kept_extents(region), strides = tir::kept_strides(region);
  const auto numbers = [&](const std::vector<Expr>& exprs) -> std::string {
    if (exprs.empty()) return "NULL";
    std::string list;
    for (const Expr& expr : exprs) list += (list.empty() ? "" : ", ") + index(expr).s;
    return "(int64_t[]){" + list + "}";
  };
  const DType dtype = region.buffer->dtype;
  const int code = backend::dlpack_code(dtype, origin);
  return fmt::format("&(DLTensor){{(void*)({}), {{1, 0}}, {}, {{{}, {}, 1}}, {}, {}, 0}}",
                     pointer_to(*region.buffer, minimum, origin), extents.size(), code,
                     static_cast<int>(dtype.bits), numbers(extents), numbers(strides));
}

// An array or a struct that lives as long as the block around.
std::string FunctionCodegen::group_literal(const backend::LibraryArgument& argument) {
  const tir::ParamGroup& group = *argument.group;
  size_t next = 0;
  const auto items = [&](int64_t count) {
    std::string list;
    for (int64_t k = 0; k < count; ++k)
      list += (list.empty() ? "" : ", ") + value(argument.items[next++]).s;
    return list;
  };
  if (!group.is_struct())
    return fmt::format("(const {}[]){{{}}}", argument.type.element, items(group.members[0].count));
  std::string list;
  for (const tir::ParamGroup::Member& member : group.members) {
    list += fmt::format("{}.{} = ", list.empty() ? "" : ", ", member.name);
    list += member.count == 0 ? items(1) : "{" + items(member.count) + "}";
  }
  return fmt::format("&(const {}){{{}}}", group.struct_type, list);
}

// Arguments as C's order has them; a code other than 0 stops the program.
void FunctionCodegen::generate_call_library(const tir::CallTir& call,
                                            const tir::ExternFunction& function) {
  check_facts(backend::unproved_facts(call, function),
              tir::callee_of(call.callee->name, ref_to(&function)), call.origin);
  if (function.is_packed) {
    std::vector<NodePtr> args, results;
    for (size_t i = 0; i < call.args.size(); ++i)
      (function.uses[i] == tir::ParamUse::kOut ? results : args).push_back(call.args[i]);
    if (is_entry_) comment_origin(call.origin);
    call_packed(function.symbol, args, results, call.origin);
    return;
  }
  std::string list;
  for (const backend::LibraryArgument& argument : backend::bind_library_arguments(call, function)) {
    const tir::CType& type = argument.type;
    std::string text;
    if (argument.group) {
      text = group_literal(argument);
    } else if (argument.scalar) {
      text = value(argument.scalar).s;
    } else if (type.kind == tir::CType::Kind::kTensor) {
      text = dl_tensor(*argument.region, call.origin);
    } else {
      const backend::CallArguments::Pointer& at = argument.pointer;
      text = pointer_to(*at.buffer, at.minimum, call.origin);
      if (type.element != "void" && type.element != c_type(at.buffer->dtype))
        text = fmt::format("({}{}*)({})", type.is_const ? "const " : "", type.element, text);
    }
    list += (list.empty() ? "" : ", ") + text;
  }
  if (is_entry_) comment_origin(call.origin);
  if (function.result.is_void()) return line("{}({});", function.symbol, list);
  use("code");
  line("code = {}({});", function.symbol, list);
  fail_unless({"code == 0", Text::kAny}, kErrorLibrary, where(call.origin),
              "library function `" + function.symbol + "` failed with code {value}", "code", "0");
}

// Calls the C function of that name. \returns the array that holds its results.
std::string FunctionCodegen::call_packed(const std::string& name, const std::vector<NodePtr>& args,
                                         const std::vector<NodePtr>& results,
                                         const Origin& origin) {
  m_.use_packed();
  const std::string symbol = backend::packed_symbol(name);
  const std::string stem = names_.take(symbol);
  const auto item = [&](const NodePtr& node) -> std::pair<std::string, ValueCode> {
    auto region = cast<BufferRegion>(node);
    if (const auto buffer = cast<tir::Buffer>(node)) region = BufferRegion::whole(buffer);
    if (region) return {".pointer = " + dl_tensor(*region, origin), kTensor};
    if (const auto* text = node.as<StringImm>()) return {".text = " + c_string(text->value), kText};
    const Expr scalar = downcast<ExprNode>(node);
    if (scalar->dtype.is_handle())
      return {".pointer = (void*)(" + pointer_value(scalar).s + ")", kPointer};
    const DType dtype = scalar->dtype;
    if (dtype.is_float()) return {".number = " + value(tenon::cast(kFloat64, scalar)).s, kFloat};
    return {".integer = " + value(tenon::cast(kInt64, scalar)).s, dtype.is_uint() ? kUInt : kInt};
  };
  std::string values, codes;
  for (const NodePtr& arg : args) {
    const auto [text, code] = item(arg);
    values += fmt::format("{}{{{}}}", values.empty() ? "" : ", ", text);
    codes += fmt::format("{}{}", codes.empty() ? "" : ", ", static_cast<int>(code));
  }
  const std::string in = names_.take(stem + "_args"), kinds = names_.take(stem + "_codes");
  line("TenonValue {}[] = {{{}}};", in, values.empty() ? "{.integer = 0}" : values);
  line("int32_t {}[] = {{{}}};", kinds, codes.empty() ? "4" : codes);
  std::vector<std::string> tensors;
  values = codes = "";
  for (const NodePtr& result : results) {
    tensors.push_back(names_.take(stem + "_tensor"));
    line("DLTensor* const {} = {};", tensors.back(), dl_tensor(*result.as<BufferRegion>(), origin));
    values += (values.empty() ? "" : ", ") + fmt::format("{{.pointer = {}}}", tensors.back());
    codes += fmt::format("{}{}", codes.empty() ? "" : ", ", static_cast<int>(kTensor));
  }
  const std::string out = names_.take(stem + "_results"),
                    out_codes = names_.take(stem + "_result_codes");
  line("TenonValue {}[] = {{{}}};", out, values.empty() ? "{.integer = 0}" : values);
  line("int32_t {}[] = {{{}}};", out_codes,
       codes.empty() ? std::to_string(static_cast<int>(kNone)) : codes);
  use("code");
  m_.declare_foreign(symbol, "int32_t",
                     {"TenonValue*", "int32_t*", "int32_t", "TenonValue*", "int32_t*", "void*"},
                     origin);
  line("code = {}({}, {}, {}, {}, {}, NULL);", symbol, in, kinds, args.size(), out, out_codes);
  fail_unless({"code == 0", Text::kAny}, kErrorLibrary, where(origin),
              "packed function `" + name + "` failed with code {value}", "code", "0");
  for (size_t i = 0; i < tensors.size(); ++i)
    fail_unless({fmt::format("{}[{}] == {} && {}[{}].pointer == {}", out_codes, i,
                             static_cast<int>(kTensor), out, i, tensors[i]),
                 Text::kAny},
                kErrorLibrary, where(origin),
                "packed function `" + name +
                    "` gave a tensor of its own, which a program in C cannot take over",
                "0", "0");
  memo_.clear();  // what was read before may have changed
  return out;
}

// ---- functions that nothing declares ------------------------------------------------------------

bool FunctionCodegen::is_foreign(const Call& call) {
  return call.is(IntrinsicId::kCallExtern) || call.is(IntrinsicId::kCallPureExtern) ||
         call.is(IntrinsicId::kCallPacked) || call.is(IntrinsicId::kCallCpacked);
}

// The call as C's text, with its prototype noted.
std::string FunctionCodegen::foreign_call(const Call& call) {
  const auto* symbol = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  if (!symbol || symbol->value.empty() || c_identifier(symbol->value) != symbol->value)
    throw CompileError(kBadArgument, call.origin, "`T.{}` without the name of a C function",
                       call.op->name);
  std::vector<std::string> types;
  std::string list;
  const auto add = [&](const std::string& type, const std::string& text) {
    types.push_back(type);
    list += (list.empty() ? "" : ", ") + text;
  };
  for (size_t i = 1; i < call.args.size(); ++i) {
    const Expr arg = call.arg(i);
    if (const auto* text = arg.as<StringImm>()) {
      add("const char*", c_string(text->value));
    } else if (arg->dtype.is_handle()) {
      const auto* var = arg.as<Var>();
      const auto known = var ? data_.find(var) : data_.end();
      const auto* address = arg.as<Call>();
      const auto* element = address && address->is(IntrinsicId::kAddressOf)
                                ? address->args.at(0).as<tir::BufferLoad>()
                                : nullptr;
      const bool has_type = address && address->is(IntrinsicId::kTvmAccessPtr);
      const std::string type = known != data_.end() ? c_type(known->second.element)
                               : element            ? c_type(element->buffer->dtype)
                               : has_type           ? c_type(tir::element_of_access_ptr(*address))
                                                    : "void";
      add(type + "*", fmt::format("({}*)({})", type, pointer_value(arg).s));
    } else {
      add(arg->dtype.is_bool() ? "_Bool" : c_type(arg->dtype), value(arg).s);
    }
  }
  const bool is_query = m_.is_scratch_query(symbol->value);
  const std::string result = is_query                 ? "size_t"
                             : call.dtype.is_void()   ? "void"
                             : call.dtype.is_handle() ? "void*"
                             : call.dtype.is_bool()   ? "_Bool"
                                                      : c_type(call.dtype);
  m_.declare_foreign(symbol->value, result, types, call.origin);
  if (is_query) return "(int64_t)" + symbol->value + "(" + list + ")";
  if (is_entry_) comment_origin(call.origin);
  return symbol->value + "(" + list + ")";
}

Text FunctionCodegen::packed_value(const Call& call) {
  const std::vector<NodePtr> args(call.args.begin() + 1, call.args.end());
  const std::string results = call_packed(*backend::packed_name(call), args, {}, call.origin);
  if (call.dtype.is_void()) return {"", Text::kAtom};
  const char* member = call.dtype.is_handle()  ? "pointer"
                       : call.dtype.is_float() ? "number"
                                               : "integer";
  return {fmt::format("({}){}[0].{}", call.dtype.is_handle() ? "void*" : c_type(call.dtype),
                      results, member),
          Text::kUnary};
}

// In a variable of its own: the text of an expression may stand twice, or later.
Text FunctionCodegen::foreign_value(const Call& call) {
  if (backend::packed_name(call)) return packed_value(call);
  const std::string text = foreign_call(call);
  memo_.clear();  // what was read before may have changed
  if (call.dtype.is_void()) {
    line("{};", text);
    return {"", Text::kAtom};
  }
  if (call.dtype.is_handle())
    throw CompileError(kUnsupported, call.origin,
                       "`T.{}` gives a pointer inside an expression, which has no C code",
                       call.op->name);
  return hoist(call.dtype, {text, Text::kAtom}, "returned");
}

void FunctionCodegen::evaluate_foreign(const Call& call) {
  if (backend::packed_name(call)) {
    packed_value(call);
    return;
  }
  const std::string text = foreign_call(call);
  line("{}{};", call.dtype.is_void() ? "" : "(void)", text);
}

// Functions of C's own library have prototypes, which differ from what a call shows.
static const char* standard_header(const std::string& symbol) {
  static const std::map<std::string_view, const char*> kHeaders = {
      {"printf", "stdio.h"},  {"puts", "stdio.h"},    {"putchar", "stdio.h"},
      {"memcpy", "string.h"}, {"memset", "string.h"}, {"memmove", "string.h"},
      {"memcmp", "string.h"}, {"strlen", "string.h"}, {"abort", "stdlib.h"},
      {"exit", "stdlib.h"},   {"rand", "stdlib.h"},   {"srand", "stdlib.h"},
      {"malloc", "stdlib.h"}, {"free", "stdlib.h"}};
  static const std::set<std::string_view> kMath = {
      "acos", "asin",   "atan",   "atan2", "cbrt",  "ceil",      "cos",     "cosh", "erf",  "erfc",
      "exp",  "exp2",   "expm1",  "fabs",  "floor", "fma",       "fmax",    "fmin", "fmod", "hypot",
      "log",  "log2",   "log10",  "log1p", "pow",   "round",     "sin",     "sinh", "sqrt", "tan",
      "tanh", "tgamma", "lgamma", "trunc", "rint",  "nearbyint", "copysign"};
  if (const auto found = kHeaders.find(symbol); found != kHeaders.end()) return found->second;
  const bool is_float = symbol.size() > 1 && symbol.back() == 'f';
  const std::string wide = is_float ? symbol.substr(0, symbol.size() - 1) : symbol;
  return kMath.count(symbol) || kMath.count(wide) ? "math.h" : nullptr;
}

void ModuleCodegen::declare_foreign(const std::string& symbol, const std::string& result,
                                    const std::vector<std::string>& types, const Origin& origin) {
  if (const char* header = standard_header(symbol)) {
    standard_headers_.insert(header);
    return;
  }
  std::string prototype = result + " " + symbol + "(";
  for (size_t i = 0; i < types.size(); ++i) prototype += (i ? ", " : "") + types[i];
  prototype += types.empty() ? "void)" : ")";
  for (const auto& [known, shown] : foreign_) {
    if (known != symbol) continue;
    if (shown == prototype) return;
    throw CompileError(kDTypeMismatch, origin,
                       "`{}` is called as `{}` here and as `{}` elsewhere; declare it as an extern "
                       "function of the module",
                       symbol, prototype, shown);
  }
  foreign_.emplace_back(symbol, prototype);
}

}  // namespace tenon::c_backend
