// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>
#include <map>
#include <set>

#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct MatmulAttrs {
  DType out_dtype = kVoid;
  static auto table() {
    return std::tuple{attr<&MatmulAttrs::out_dtype>(
        "out_dtype", "of the result and of the sums; void: that of the inputs")};
  }
};

DType product_dtype(const Call& call) {
  const DType asked = attrs_as<MatmulAttrs>(call).out_dtype;
  const DType a = tensor_arg(call, 0)->dtype, b = tensor_arg(call, 1)->dtype;
  if (!a.is_void() && !b.is_void() && a != b && asked.is_void())
    throw CompileError(kDTypeMismatch, call.origin,
                       "operands of `{}` have dtypes {} and {}, and no out_dtype is given",
                       call.op->name, a.str(), b.str());
  return asked.is_void() ? (a.is_void() ? b : a) : asked;
}

// ---- matmul -------------------------------------------------------------------------------------

using Shape = std::vector<Expr>;

Type infer_matmul(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
  const DType dtype = product_dtype(call);
  if (a->ndim == 0 || b->ndim == 0)
    throw CompileError(kRankMismatch, call.origin,
                       "`matmul` of {} and {}; expected at least one dimension each", str(a),
                       str(b));
  if (a->ndim < 0 || b->ndim < 0) return make<TensorType>(dtype, -1);
  const int64_t dropped = (a->ndim == 1) + (b->ndim == 1);
  const int64_t ndim = std::max({a->ndim, b->ndim, int64_t{2}}) - dropped;
  if (!a->shape || !b->shape) return make<TensorType>(dtype, ndim);
  const Expr inner_a = a->dim(-1), inner_b = b->ndim == 1 ? b->dim(0) : b->dim(-2);
  if (!may_agree(inner_a, inner_b))
    throw CompileError(kShapeMismatch, call.origin, "`matmul` inner dimensions differ: {} and {}",
                       tenon::str(inner_a), tenon::str(inner_b))
        .note(call.args[0]->origin, "left operand is {}", str(a))
        .note(call.args[1]->origin, "right operand is {}", str(b));
  const auto batch = [](const TensorType& t) {
    return Shape(t.shape->begin(), t.shape->end() - std::min<int64_t>(t.ndim, 2));
  };
  auto shape = broadcast_shapes(batch(*a), batch(*b), call.op->name, call.origin);
  if (!shape) return make<TensorType>(dtype, ndim);
  if (a->ndim > 1) shape->push_back(a->dim(-2));
  if (b->ndim > 1) shape->push_back(b->dim(-1));
  return make<TensorType>(std::move(*shape), dtype);
}

Value lower_matmul(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = kernel.buffer_arg(0), b = kernel.buffer_arg(1);
  const bool row = a.ndim() > 1, column = b.ndim() > 1;  // whether the result has rows, columns
  return kernel.emit_contraction(
      {a.shape.back()}, [&](const Indices& i, const Indices& k, DType dtype) {
        Indices at_a(i.begin(), i.end() - row - column), at_b = at_a;
        if (row) at_a.push_back(i[i.size() - 1 - column]);
        at_a.push_back(k[0]);
        at_b.push_back(k[0]);
        if (column) at_b.push_back(i.back());
        // Batch dimensions are aligned at the right of each operand's own.
        const auto own = [](const Operand& x, const Indices& at) {
          return Indices(at.end() - static_cast<std::ptrdiff_t>(x.ndim()), at.end());
        };
        const auto element = [&](const Operand& x, const Indices& at, size_t matrix) {
          Indices index = own(x, at);
          for (size_t d = 0; d + matrix < x.ndim(); ++d)
            if (is_int(x.shape[d], 1)) index[d] = int64(0);
          return tenon::cast(dtype, x(index));
        };
        return element(a, at_a, row ? 2 : 1) * element(b, at_b, column ? 2 : 1);
      });
}

std::optional<double> matmul_macs(const std::vector<KnownShape>& args, const KnownShape& result) {
  if (!result || !args[0] || args[0]->empty()) return std::nullopt;
  return product_of(*result) * args[0]->back();
}

OpDef matmul() {
  OpDef op;
  op.name = "matmul";
  op.summary =
      "Matrix product of the last two axes; batch axes are broadcast, vectors are rows "
      "(left) or columns (right).";
  op.inputs = {{"x1", "(..., m, k) or (k,)"}, {"x2", "(..., k, n) or (k,)"}};
  op.attrs = attrs_of<MatmulAttrs>();
  op.infer_type = infer_matmul;
  op.lower = lower_matmul;
  op.fusion = FusionKind::kContraction;
  op.layout = LayoutRule::kProduct;
  op.macs = matmul_macs;
  op.source = "Python array API standard 2023.12, matmul";
  return op;
}

// ---- gemm ---------------------------------------------------------------------------------------

struct GemmAttrs {
  double alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
  static auto table() {
    return std::tuple{attr<&GemmAttrs::alpha>("alpha", "scale of the product"),
                      attr<&GemmAttrs::beta>("beta", "scale of x3"),
                      attr<&GemmAttrs::transpose_a>("transpose_a", "of x1"),
                      attr<&GemmAttrs::transpose_b>("transpose_b", "of x2")};
  }
};

Type infer_gemm(const Call& call) {
  const DType dtype = tensor_arg(call, 0)->dtype;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    check_rank(call, i, 2);
    if (!dtype.is_void()) check_dtype(call, i, dtype);
  }
  const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
  if (!a->shape || !b->shape) return make<TensorType>(dtype, 2);
  const auto attrs = attrs_as<GemmAttrs>(call);
  const bool flips_a = attrs.transpose_a, flips_b = attrs.transpose_b;
  const Expr inner_a = a->dim(flips_a ? 0 : 1), inner_b = b->dim(flips_b ? 1 : 0);
  if (!may_agree(inner_a, inner_b))
    throw CompileError(kShapeMismatch, call.origin, "`nn.gemm` inner dimensions differ: {} and {}",
                       tenon::str(inner_a), tenon::str(inner_b))
        .note(call.args[0]->origin, "left operand is {}", str(a))
        .note(call.args[1]->origin, "right operand is {}", str(b));
  const Shape shape = {a->dim(flips_a ? 1 : 0), b->dim(flips_b ? 0 : 1)};
  if (arg_or_null(call, 2)) {
    const Ref<TensorType> c = tensor_arg(call, 2);
    if (!dtype.is_void()) check_dtype(call, 2, dtype);
    if (c->shape) {
      const auto joined = broadcast_shapes(*c->shape, shape, call.op->name, call.origin);
      if (joined && shapes_agree(*joined, shape) == DimsAgree::kNo)
        throw CompileError(kShapeMismatch, call.origin,
                           "`nn.gemm` adds {}; expected what broadcasts to {}", str(c),
                           str(make<TensorType>(shape, dtype)));
    }
  }
  return make<TensorType>(shape, dtype);
}

Value lower_gemm(BlockBuilder& builder, const Call& call) {
  const DType dtype = shaped_arg(call, 0)->dtype;
  const auto attrs = attrs_as<GemmAttrs>(call);
  const auto operand = [&](size_t i, bool transposed) {
    if (!transposed) return call.args[i];
    return builder.op("permute_dims", {call.args[i]}, {{"axes", std::vector<int64_t>{1, 0}}});
  };
  const auto scaled = [&](const Value& x, double number) {
    if (number == 1) return x;
    const Value wide = make<Constant>(TensorData::of<double>(kFloat64, {}, {number}));
    return builder.op("multiply", {x, builder.op("astype", {wide}, {{"dtype", dtype}})});
  };
  const bool narrow = dtype.is_float() && dtype.bits < 32;  // summed in float32
  Value y = builder.op("matmul", {operand(0, attrs.transpose_a), operand(1, attrs.transpose_b)},
                       {{"out_dtype", narrow ? kFloat32 : kVoid}});
  if (narrow) y = builder.op("astype", {y}, {{"dtype", dtype}});
  y = scaled(y, attrs.alpha);
  const Value c = arg_or_null(call, 2);
  if (!c || attrs.beta == 0) return y;
  return builder.op("add", {y, scaled(c, attrs.beta)});
}

OpDef gemm() {
  OpDef op;
  op.name = "nn.gemm";
  op.summary = "alpha * x1 @ x2 + beta * x3 of matrices.";
  op.inputs = {{"x1", "(m, k), or (k, m) where transposed"},
               {"x2", "(k, n), or (n, k) where transposed"},
               {"x3", "what broadcasts to (m, n)", true}};
  op.attrs = attrs_of<GemmAttrs>();
  op.infer_type = infer_gemm;
  op.lower = lower_gemm;
  op.parts = {"matmul", "multiply", "add", "permute_dims"};
  op.onnx = {"Gemm", {{"transA", "transpose_a"}, {"transB", "transpose_b"}}};
  op.source = "ONNX, Gemm";
  return op;
}

// ---- outer --------------------------------------------------------------------------------------

OpDef outer() {
  OpDef op;
  op.name = "outer";
  op.summary = "All products of two vectors.";
  op.inputs = {{"x1", "(m,)"}, {"x2", "(n,)"}};
  op.infer_type = [](const Call& call) -> Type {
    check_rank(call, 0, 1);
    check_rank(call, 1, 1);
    const Ref<TensorType> a = tensor_arg(call, 0), b = tensor_arg(call, 1);
    check_dtype(call, 1, a->dtype);
    if (!a->shape || !b->shape) return make<TensorType>(a->dtype, 2);
    return make<TensorType>(Shape{a->dim(0), b->dim(0)}, a->dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand a = kernel.arg(0), b = kernel.arg(1);
    return kernel.emit_compute([&](const Indices& i) { return a({i[0]}) * b({i[1]}); });
  };
  op.fusion = FusionKind::kBroadcast;
  return op;
}

// ---- einsum -------------------------------------------------------------------------------------

struct EinsumAttrs {
  std::string subscripts;
  static auto table() {
    return std::tuple{required<&EinsumAttrs::subscripts>(
        "subscripts", "of the operands and, after `->`, the result")};
  }
};

// `subscripts` split and checked: letters of each operand and of the result. An ellipsis stands for
// as many upper-case marks ('\1', '\2', ... from the right) as its operand has dimensions left.
struct Einsum {
  std::vector<std::string> inputs;
  std::string output;

  Einsum(const Call& call, const std::vector<Ref<TensorType>>& operands) {
    std::string text = attrs_as<EinsumAttrs>(call).subscripts;
    std::erase(text, ' ');
    const auto fail = [&](std::string why) {
      return CompileError(kBadAttribute, call.origin, "`einsum` subscripts \"{}\": {}", text, why);
    };
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    std::vector<std::string> terms(1);
    for (const char c : left) {
      if (c == ',') {
        terms.emplace_back();
      } else {
        terms.back() += c;
      }
    }
    if (terms.size() != operands.size())
      throw fail(fmt::format("{} terms for {} operands", terms.size(), operands.size()));
    int widest = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
      const std::string letters = expand(terms[i], operands[i]->ndim, widest, fail);
      if (static_cast<int64_t>(letters.size()) != operands[i]->ndim)
        throw fail(fmt::format("{} subscripts for {}", letters.size(), str(operands[i])));
      inputs.push_back(letters);
    }
    if (arrow != std::string::npos) {
      std::string term = text.substr(arrow + 2);
      const size_t dots = term.find("...");
      if (dots != std::string::npos) term.replace(dots, 3, marks(widest));
      output = term;
    } else {
      output = marks(widest);
      for (char c = 'A'; c <= 'z'; ++c) {
        int uses = 0;
        for (const std::string& letters : inputs)
          uses += static_cast<int>(std::count(letters.begin(), letters.end(), c));
        if (uses == 1) output += c;
      }
    }
    for (size_t i = 0; i < output.size(); ++i) {
      if (output.find(output[i], i + 1) != std::string::npos)
        throw fail("a subscript stands twice in the result");
      if (!std::any_of(inputs.begin(), inputs.end(), [&](const std::string& letters) {
            return letters.find(output[i]) != std::string::npos;
          }))
        throw fail("a subscript of the result is in no operand");
    }
  }

  // The extent of each letter. Dimensions of 1 are broadcast.
  std::map<char, Expr> extents(const Call& call,
                               const std::vector<Ref<TensorType>>& operands) const {
    std::map<char, Expr> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t d = 0; d < inputs[i].size(); ++d) {
        const Expr& dim = (*operands[i]->shape)[d];
        Expr& known = out[inputs[i][d]];
        if (!known || is_int(known, 1)) {
          known = dim;
        } else if (!is_int(dim, 1) && dims_agree(known, dim) == DimsAgree::kNo) {
          throw CompileError(kShapeMismatch, call.origin,
                             "`einsum` subscript `{}` has extents {} and {}", inputs[i][d],
                             tenon::str(known), tenon::str(dim));
        }
      }
    }
    return out;
  }

 private:
  static std::string marks(int count) {
    std::string out;
    for (int i = count; i > 0; --i) out += static_cast<char>(i);
    return out;
  }
  template <typename Fail>
  static std::string expand(std::string term, int64_t ndim, int& widest, const Fail& fail) {
    const size_t dots = term.find("...");
    if (dots != std::string::npos) {
      const auto covered = static_cast<int>(ndim - static_cast<int64_t>(term.size() - 3));
      if (covered < 0 || covered > 30) throw fail("an operand has too few dimensions");
      widest = std::max(widest, covered);
      term.replace(dots, 3, marks(covered));
    }
    for (const char c : term)
      if (c > 30 && !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        throw fail(fmt::format("`{}` is no subscript", c));
    return term;
  }
};

DType einsum_dtype(const Call& call, const std::vector<Ref<TensorType>>& operands) {
  for (const Ref<TensorType>& operand : operands)
    if (operand->dtype != operands[0]->dtype)
      throw CompileError(kDTypeMismatch, call.origin, "operands of `einsum` have dtypes {} and {}",
                         operands[0]->dtype.str(), operand->dtype.str());
  return operands.empty() ? kVoid : operands[0]->dtype;
}

// The letters of `terms`, each once, as text that may stand in subscripts: the marks of an ellipsis
// become letters that nobody uses. Empty where there are too few.
std::map<char, char> plain_letters(const Einsum& plan) {
  std::string free;
  for (char c = 'a'; c <= 'z'; ++c) free += c;
  for (char c = 'A'; c <= 'Z'; ++c) free += c;
  std::map<char, char> out;
  for (const std::string& term : plan.inputs)
    for (const char c : term)
      if (c > 30) {
        out[c] = c;
        std::erase(free, c);
      }
  for (const std::string& term : plan.inputs)
    for (const char c : term)
      if (c <= 30 && !out.count(c)) {
        if (free.empty()) return {};
        out[c] = free.back();
        free.pop_back();
      }
  return out;
}

// More than two operands, two at a time: each time the pair whose subscripts are the fewest, so that
// the whole takes the sum of the steps of pairs and not their product. The order does not depend on
// extents: results are the same where these are symbols.
std::optional<Value> by_pairs(BlockBuilder& builder, const Call& call, const Einsum& plan) {
  const auto letters = plain_letters(plan);
  if (letters.empty()) return std::nullopt;
  std::vector<Value> values = tuple_values(call.args[0]);
  std::vector<std::string> terms = plan.inputs;
  const auto text = [&](const std::string& term) {
    std::string out;
    for (const char c : term) out += letters.at(c);
    return out;
  };
  const auto loops = [](const std::string& a, const std::string& b) {
    const std::string both = a + b;
    return std::set<char>(both.begin(), both.end()).size();
  };
  while (values.size() > 1) {
    size_t first = 0, second = 1;
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i + 1; j < terms.size(); ++j)
        if (loops(terms[i], terms[j]) < loops(terms[first], terms[second])) {
          first = i;
          second = j;
        }
    std::string kept;
    const bool last = values.size() == 2;
    for (const char c : terms[first] + terms[second]) {
      bool wanted = plan.output.find(c) != std::string::npos;
      for (size_t i = 0; i < terms.size(); ++i)
        wanted = wanted || (i != first && i != second && terms[i].find(c) != std::string::npos);
      if (wanted && kept.find(c) == std::string::npos) kept += c;
    }
    if (last) kept = plan.output;
    const std::string subscripts =
        text(terms[first]) + "," + text(terms[second]) + "->" + text(kept);
    const Value pair = make<Tuple>(std::vector<Value>{values[first], values[second]});
    values[first] =
        builder.emit(call_op("einsum", {pair}, to_attrs(EinsumAttrs{subscripts}), call.origin));
    terms[first] = kept;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(second));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return values[0];
}

OpDef einsum() {
  OpDef op;
  op.name = "einsum";
  op.summary = "Sums of products by subscripts: \"bij,bjk->bik\".";
  op.inputs = {{"operands", "a tuple of tensors"}};
  op.attrs = attrs_of<EinsumAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    const auto operands = tensors_arg(call, 0);
    const DType dtype = einsum_dtype(call, operands);
    for (const auto& operand : operands)
      if (!operand->shape) return make<TensorType>(dtype, -1);
    const Einsum plan(call, operands);
    const auto extents = plan.extents(call, operands);
    Shape shape;
    for (const char c : plan.output) shape.push_back(extents.at(c));
    return make<TensorType>(std::move(shape), dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    const auto types = tensors_arg(call, 0);
    const Einsum plan(call, types);
    const auto extents = plan.extents(call, types);
    if (types.size() > 2)
      if (const auto value = by_pairs(builder, call, plan)) return *value;
    KernelOf kernel(builder, call);
    std::vector<Operand> operands;
    for (const Value& value : tuple_values(call.args[0]))
      operands.push_back(KernelOf::wide(kernel.value(value, fmt::format("x{}", operands.size()))));
    std::string summed;
    Shape sums;
    for (const auto& [c, extent] : extents) {
      if (plan.output.find(c) != std::string::npos) continue;
      summed += c;
      sums.push_back(extent);
    }
    return kernel.emit({kernel.reduce(
        kernel.out_name(), kernel.shape(), sums, tir::sum_reducer(),
        [&](const Indices& i, const Indices& k) {
          Expr product;
          for (size_t o = 0; o < operands.size(); ++o) {
            Indices at;
            for (size_t d = 0; d < operands[o].ndim(); ++d) {
              const char c = plan.inputs[o][d];
              const size_t out = plan.output.find(c);
              const Expr& index = out != std::string::npos ? i[out] : k[summed.find(c)];
              at.push_back(is_int(operands[o].shape[d], 1) ? int64(0) : index);
            }
            product = product ? product * operands[o](at) : operands[o](at);
          }
          return product;
        })});
  };
  op.fusion = FusionKind::kContraction;
  op.source = "NumPy, einsum";
  return op;
}

}  // namespace

std::vector<OpDef> linear_algebra_ops() { return {matmul(), gemm(), outer(), einsum()}; }

}  // namespace tenon::graph
