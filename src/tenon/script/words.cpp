// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/words.h"

#include <array>
#include <map>

#include "tenon/graph/op.h"
#include "tenon/ir/intrinsic.h"

namespace tenon::script {

using Kind = Word::Kind;

struct WordRow {
  std::string_view name, parameters, summary;
  Kind kind = Kind::kFunction;
};

// What is neither a dtype, an intrinsic nor an operator; those are tables of their own.
static constexpr auto kRows = std::to_array<WordRow>({
    {"I.ir_module", "", "Makes a module of a class of functions.", Kind::kDecorator},
    {"I.module_attrs", "attrs", "Attributes of the module."},
    {"I.module_global_infos", "infos", "Not supported: devices other than a CPU."},
    {"I.Range", "begin, end=None", "The range from `begin`, or 0, to before `end`."},

    {"R.function", "", "Reads a graph function.", Kind::kDecorator},
    {"R.rewriter", "", "Makes a rewriter of a class of `pattern` and `replacement`.",
     Kind::kDecorator},
    {"R.Tensor", "shape=None, dtype=None, *, ndim=-1", "The type of a tensor.", Kind::kType},
    {"R.Shape", "values=None, *, ndim=-1", "The type of a shape.", Kind::kType},
    {"R.Prim", "dtype=None, *, value=None", "The type of a scalar.", Kind::kType},
    {"R.Tuple", "*fields", "The type of a tuple.", Kind::kType},
    {"R.Object", "", "The type of anything.", Kind::kType},
    {"R.Callable", "params=None, ret=None, purity=None", "The type of a function.", Kind::kType},
    {"R.ExternFunc", "global_symbol, attrs=None, *, name=None, private=False",
     "A function of another library, by its symbol."},
    {"R.call_packed", "func, *args, sinfo_args=None, **attrs",
     "Calls a registered function that returns its result."},
    {"R.const", "value, dtype=None", "A constant: a number, nested lists, or an array."},
    {"R.const_ref", "hash, type", "A constant of the file of constants, by its content."},
    {"R.const_splat", "value, type", "A constant with one value everywhere."},
    {"R.dataflow", "", "A region without effects, which ends with R.output."},
    {"R.output", "*values", "What a dataflow region computes for what follows it."},
    {"R.dtype", "value", "A dtype as a value."},
    {"R.emit", "value", "The value itself."},
    {"R.func_attr", "attrs", "Attributes of the function."},
    {"R.match_cast", "value, type", "Checks a type when the program runs; names dimensions."},
    {"R.prim_value", "value", "A scalar as a value of the graph."},
    {"R.shape", "value", "A shape as a value of the graph."},
    {"R.str", "value", "A text as a value of the graph."},
    {"R.tuple", "*fields", "A tuple."},

    {"T.prim_func", "", "Reads a PrimFunc.", Kind::kDecorator},
    {"T.extern_func", "", "Declares a function of C or C++.", Kind::kDecorator},
    {"R.macro", "", "Makes a function of bindings that stand where it is called.",
     Kind::kDecorator},
    {"T.macro", "", "Makes a function of statements that stand where it is called.",
     Kind::kDecorator},
    {"T.Array", "length, dtype", "Of an extern function: scalars that C takes as one array."},
    {"T.Assert", "condition, message", "Stops the program where the condition does not hold."},
    {"T.Broadcast", "value, lanes", "A vector of one value."},
    {"T.Buffer",
     "shape, dtype=\"float32\", data=None, strides=None, elem_offset=None, scope=\"global\", "
     "align=0, offset_factor=0, buffer_type=\"\", axis_separators=None",
     "A parameter that is a buffer.", Kind::kType},
    {"T.Cast", "dtype, value", "The value converted to a dtype."},
    {"T.Let", "expr, where", "An expression with variables of its own."},
    {"T.Not", "a", "The negation of a condition."},
    {"T.Ramp", "base, stride, lanes", "The vector base, base + stride, ..."},
    {"T.Range", "begin, end=None", "The range from `begin`, or 0, to before `end`."},
    {"T.Select", "condition, true_value, false_value", "One of two values, both computed."},
    {"T.Shuffle", "vectors, indices", "Lanes of vectors."},
    {"T.SizeVar", "name, dtype", "A variable that is not negative."},
    {"T.StringImm", "value", "A text."},
    {"T.Struct", "name, **fields", "Of an extern function: scalars that C takes as one struct."},
    {"T.Var", "name, dtype", "A variable."},
    {"T.alloc_buffer",
     "shape, dtype=\"float32\", data=None, strides=None, elem_offset=None, "
     "scope=\"global\", align=-1, offset_factor=0, buffer_type=\"\", "
     "axis_separators=None",
     "A buffer of the block or function."},
    {"T.alloc_local", "shape, dtype=\"float32\", **options", "A buffer of scope \"local\"."},
    {"T.alloc_scalar", "dtype=\"int32\", scope=\"local\"", "A buffer of one element."},
    {"T.local_scalar", "dtype=\"int32\"", "A buffer of one element, of scope \"local\"."},
    {"T.allocate", "extents, dtype, scope=\"global\", condition=None, annotations=None",
     "Memory for the statements that follow."},
    {"T.allocate_const", "data, dtype, extents, annotations=None",
     "A constant for the statements that follow."},
    {"T.attr", "node, attr_key, value", "An attribute of the statements that follow."},
    {"T.axis.opaque", "dom, binding, dtype=\"int32\"", "An axis of a block, of no known kind."},
    {"T.axis.reduce", "dom, binding, dtype=\"int32\"", "An axis over which the block reduces."},
    {"T.axis.remap", "kinds, bindings, dtype=\"int32\"",
     "Axes that are the loops given, by kind: \"SSR\"."},
    {"T.axis.scan", "dom, binding, dtype=\"int32\"", "An axis in whose order the block runs."},
    {"T.axis.spatial", "dom, binding, dtype=\"int32\"", "An axis that runs in any order."},
    {"T.block", "name_hint=\"\", no_realize=False", "A block of computation."},
    {"T.block_attr", "attrs", "Annotations of the block."},
    {"T.call_intrin", "dtype, func_name, *args", "A call of an intrinsic by its name."},
    {"T.call_tir", "function, *args", "Calls a function of the module."},
    {"T.cast", "value, dtype", "The value converted to a dtype."},
    {"T.ceildiv", "lhs, rhs", "The quotient of integers, rounded up."},
    {"T.const", "value, dtype=None", "A constant of a dtype."},
    {"T.const_ref", "hash", "A constant of the file of constants, by its content."},
    {"T.const_splat", "value", "A constant with one value everywhere."},
    {"T.constexpr", "value", "A value of Python."},
    {"T.decl_buffer",
     "shape, dtype=\"float32\", data=None, strides=None, elem_offset=None, scope=\"global\", "
     "align=0, offset_factor=0, buffer_type=\"\", axis_separators=None",
     "A buffer over memory that is there."},
    {"T.dtype", "dtype", "A dtype as a value."},
    {"T.evaluate", "value", "Evaluates an expression for its effect."},
    {"T.func_attr", "attrs", "Attributes of the function."},
    {"T.grid", "*extents", "Nested serial loops."},
    {"T.init", "", "What the block does before its first reduction step."},
    {"T.let", "value, var=None", "A variable for the statements that follow."},
    {"T.llvm_lookup_intrinsic_id", "name", "An intrinsic of LLVM by its name."},
    {"T.match_buffer",
     "param, shape=None, dtype=\"float32\", data=None, strides=None, elem_offset=None, "
     "scope=\"global\", align=-1, offset_factor=0, buffer_type=\"default\", axis_separators=None",
     "The buffer of a parameter, or a view of a region."},
    {"T.meta_var", "value", "A value of Python."},
    {"T.parallel", "start, stop=None, *, annotations=None", "A loop whose steps run at once."},
    {"T.reads", "*regions", "What the block reads."},
    {"T.region", "region", "A region of a buffer."},
    {"T.serial", "start, stop=None, *, annotations=None", "A loop."},
    {"T.target", "target", "A target by its name or attributes."},
    {"T.thread_binding", "start, stop=None, *, thread, annotations=None",
     "A loop over threads of a GPU, which is serial here."},
    {"T.type_annotation", "dtype", "A dtype as an argument."},
    {"T.unroll", "start, stop=None, *, annotations=None", "A loop that is written out."},
    {"T.var", "dtype", "A variable."},
    {"T.vectorized", "start, stop=None, *, annotations=None", "A loop whose steps are lanes."},
    {"T.where", "predicate", "The condition under which the block runs."},
    {"T.writes", "*regions", "What the block writes."},
});

// Names of dtypes that scripts call: T.int32(x), T.float32x4.
static std::vector<std::string> dtype_names() {
  std::vector<std::string> out = {"bool", "handle", "void"};
  std::vector<std::string> scalars = {"float8_e4m3fn", "float8_e5m2", "bfloat16"};
  for (const int bits : {8, 16, 32, 64})
    for (const std::string_view kind : {"int", "uint", "float"})
      if (kind != "float" || bits > 8) scalars.push_back(fmt::format("{}{}", kind, bits));
  for (const std::string& scalar : scalars) {
    if (!DType::parse(scalar)) continue;
    out.push_back(scalar);
    for (const int lanes : {4, 8, 16, 32, 64})
      if (DType::parse(fmt::format("{}x{}", scalar, lanes)))
        out.push_back(fmt::format("{}x{}", scalar, lanes));
  }
  return out;
}

static std::string parameters_of(const Intrinsic& op) {
  std::string out = op.result == Intrinsic::Result::kGiven ? "dtype" : "";
  if (op.arguments < 0) return "*args, dtype=None";
  static constexpr std::array<std::string_view, 3> kNames = {"x", "y", "z"};
  for (int i = 0; i < op.arguments; ++i)
    out += (out.empty() ? "" : ", ") + (static_cast<size_t>(op.arguments) <= kNames.size()
                                            ? std::string(kNames[static_cast<size_t>(i)])
                                            : fmt::format("x{}", i));
  return out;
}

static std::string parameters_of(const graph::OpDef& op) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  bool is_optional = false, has_star = false;
  for (const graph::OpInput& input : op.inputs) {
    is_optional |= input.optional;
    has_star |= input.variadic;
    add(input.variadic ? "*" + input.name : input.name + (is_optional ? "=None" : ""));
  }
  for (const graph::OpAttr& attr : op.attrs) {
    const bool needs = !attr.default_value && !is_optional;
    if (attr.default_value && !has_star) is_optional = true;
    add(attr.name + (needs ? "" : "=None"));
  }
  const bool is_call = op.name.starts_with("call_");
  if (is_call) add("out_sinfo=None");
  if (is_call) add("**attrs");
  return out;
}

const std::unordered_map<std::string, std::string>& other_spellings() {
  static const std::unordered_map<std::string, std::string> kSpellings = {
      {"T.sblock", "T.block"},
      {"T.sblock_attr", "T.block_attr"},
      {"T.sblock_alloc_buffer", "T.alloc_buffer"},
      {"T.axis.S", "T.axis.spatial"},
      {"T.axis.R", "T.axis.reduce"},
      {"T.unrolled", "T.unroll"},
      {"T.vectorize", "T.vectorized"},
      {"R.Any", "R.Object"},
      {"R.op", "R"},
      {"R.extern", "R.ExternFunc"},
      {"R.add_", "R.add"},
      {"T.power", "T.pow"},
      {"T.Let_", "T.Let"},
      {"T.bind", "T.let"},
      {"T.LetStmt", "T.let"},
      {"T.Bind", "T.let"},
      {"T.ramp", "T.Ramp"},
      {"T.broadcast", "T.Broadcast"},
      {"T.Return", "T.ret"},
      {"T.buffer_decl", "T.decl_buffer"},
      {"T.Ptr", "T.handle"},
      {"T.ptr", "T.handle"},
      {"T.boolean", "T.bool"},
      {"T.f16", "T.float16"},
      {"T.f32", "T.float32"},
      {"T.f64", "T.float64"},
      {"T.bf16", "T.bfloat16"},
      {"T.i8", "T.int8"},
      {"T.i16", "T.int16"},
      {"T.i32", "T.int32"},
      {"T.i64", "T.int64"},
      {"T.u8", "T.uint8"},
      {"T.u16", "T.uint16"},
      {"T.u32", "T.uint32"},
      {"T.u64", "T.uint64"},
      {"typing.TypeVar", "py.TypeVar"},
  };
  return kSpellings;
}

std::vector<Word> all_words() {
  std::map<std::string, Word> words;  // of several tables the first says what a word is
  const auto add = [&](const std::string& name, std::string parameters, std::string_view summary,
                       Kind kind = Kind::kFunction) {
    words.emplace(name, Word{name, std::move(parameters), std::string(summary), kind});
  };
  for (const WordRow& row : kRows)
    add(std::string(row.name), std::string(row.parameters), row.summary, row.kind);
  for (const std::string& dtype : dtype_names())
    add("T." + dtype,
        dtype == "handle" ? "dtype=None, storage_scope=\"global\"" : "expr=None, is_size_var=False",
        "A value of this dtype; without one, a variable.", Kind::kType);
  for (int i = 0; i < kBinaryOpCount; ++i)
    add(fmt::format("T.{}", name_of(static_cast<BinaryOp>(i))), "a, b",
        "The operation of two scalars of one dtype.");
  for (const std::string_view name : {"min", "max", "floordiv", "floormod", "truncdiv", "truncmod",
                                      "add", "subtract", "multiply", "div"})
    add(fmt::format("T.{}", name), "a, b", "The operation of two scalars.");
  for (size_t i = 0; i < kIntrinsicCount; ++i) {
    const Intrinsic& op = intrinsic(static_cast<IntrinsicId>(i));
    add(fmt::format("T.{}", op.name), parameters_of(op), op.summary);
  }
  for (const graph::OpDef* op : graph::all_ops())
    add("R." + op->name, parameters_of(*op), op->summary);
  for (const auto& [other, name] : other_spellings()) {
    const auto found = words.find(name);
    if (found != words.end())
      add(other, found->second.parameters, found->second.summary, found->second.kind);
  }
  std::vector<Word> out;
  out.reserve(words.size());
  for (auto& [name, word] : words) out.push_back(std::move(word));
  return out;
}

}  // namespace tenon::script
