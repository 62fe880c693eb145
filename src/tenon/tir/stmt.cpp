// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/stmt.h"

#include <unordered_set>

namespace tenon::tir {

BufferStore::BufferStore(Ref<Buffer> buffer, Expr value, std::vector<Expr> indices, Origin origin)
    : NodeOf(std::move(origin)),
      buffer(std::move(buffer)),
      value(std::move(value)),
      indices(std::move(indices)) {
  finish_node(*this);
}
void BufferStore::finish() {
  if (indices.size() != buffer->ndim())
    throw CompileError(kIndexRank, origin,
                       "buffer `{}` is indexed with {} indices; it has {} dimensions", buffer->name,
                       indices.size(), buffer->ndim());
  int lanes = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]->dtype.is_integer())
      throw CompileError(kDTypeMismatch, origin,
                         "index {} of buffer `{}` has dtype {}; expected an integer", i,
                         buffer->name, indices[i]->dtype.str());
    if (indices[i]->dtype.lanes > 1 && i + 1 != indices.size())
      throw CompileError(kBadArgument, origin,
                         "index {} of buffer `{}` is a vector; only the last may be", i,
                         buffer->name);
    lanes = indices[i]->dtype.lanes;
  }
  const DType expected = buffer->dtype.with_lanes(buffer->dtype.lanes * lanes);
  if (value->dtype != expected)
    throw CompileError(kDTypeMismatch, origin,
                       "a value of dtype {} is stored into buffer `{}`; expected {}",
                       value->dtype.str(), buffer->name, expected.str());
}
std::vector<FieldInfo> BufferStore::fields() {
  return {field<&BufferStore::buffer>("buffer"), field<&BufferStore::value>("value"),
          field<&BufferStore::indices>("indices")};
}

Evaluate::Evaluate(Expr value, Origin origin) : NodeOf(std::move(origin)), value(std::move(value)) {
  finish_node(*this);
}
std::vector<FieldInfo> Evaluate::fields() { return {field<&Evaluate::value>("value")}; }

Bind::Bind(Ref<Var> var, Expr value, Origin origin)
    : NodeOf(std::move(origin)), value(std::move(value)), var(std::move(var)) {
  finish_node(*this);
}
void Bind::finish() {
  if (var->dtype != value->dtype)
    throw CompileError(kDTypeMismatch, origin, "`{}` of dtype {} is bound to a value of dtype {}",
                       var->name, var->dtype.str(), value->dtype.str());
}
std::vector<FieldInfo> Bind::fields() {
  return {field<&Bind::value>("value"), field<&Bind::var>("var", FieldRole::kDefinition)};
}

AllocBuffer::AllocBuffer(Ref<Buffer> buffer, Attrs annotations, Origin origin)
    : NodeOf(std::move(origin)), buffer(std::move(buffer)), annotations(std::move(annotations)) {
  finish_node(*this);
}
std::vector<FieldInfo> AllocBuffer::fields() {
  return {field<&AllocBuffer::buffer>("buffer", FieldRole::kDefinition),
          field<&AllocBuffer::annotations>("annotations")};
}

AllocConst::AllocConst(Ref<Buffer> buffer, Ref<TensorData> data, Origin origin)
    : NodeOf(std::move(origin)), buffer(std::move(buffer)), data(std::move(data)) {
  finish_node(*this);
}
void AllocConst::finish() {
  const auto shape = as_ints(buffer->shape);
  if (!shape || checked_elements(*shape) != data->elements() || buffer->dtype != data->dtype)
    throw CompileError(kShapeMismatch, origin, "buffer `{}` of shape {} and type {} holds {}",
                       buffer->name, str(buffer->shape), buffer->dtype.str(),
                       FieldTraits<Ref<TensorData>>::text(data));
}
std::vector<FieldInfo> AllocConst::fields() {
  return {field<&AllocConst::buffer>("buffer", FieldRole::kDefinition),
          field<&AllocConst::data>("data")};
}

DeclBuffer::DeclBuffer(Ref<Buffer> buffer, Expr data, Origin origin)
    : NodeOf(std::move(origin)), data(std::move(data)), buffer(std::move(buffer)) {
  finish_node(*this);
}
void DeclBuffer::finish() {
  if (!data->dtype.is_handle())
    throw CompileError(kDTypeMismatch, origin,
                       "data of buffer `{}` has dtype {}; expected a pointer", buffer->name,
                       data->dtype.str());
}
std::vector<FieldInfo> DeclBuffer::fields() {
  return {field<&DeclBuffer::data>("data"),
          field<&DeclBuffer::buffer>("buffer", FieldRole::kDefinition)};
}

Seq::Seq(std::vector<Stmt> stmts, Origin origin)
    : NodeOf(std::move(origin)), stmts(std::move(stmts)) {
  finish();
  set_height(*this);
}
void Seq::finish() {
  std::vector<Stmt> flat;
  bool nested = false;
  for (const Stmt& stmt : stmts) nested |= !stmt || stmt.as<Seq>();
  if (!nested) return;
  for (const Stmt& stmt : stmts) {
    if (!stmt) continue;
    if (const auto* inner = stmt.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(stmt);
    }
  }
  stmts = std::move(flat);
}
std::vector<FieldInfo> Seq::fields() { return {field<&Seq::stmts>("stmts")}; }

Stmt seq(std::vector<Stmt> stmts) {
  auto sequence = make<Seq>(std::move(stmts));
  return sequence->stmts.size() == 1 ? sequence->stmts[0] : Stmt(sequence);
}

std::vector<Stmt> stmts_of(const Stmt& stmt) {
  if (const auto* sequence = stmt.as<Seq>()) return sequence->stmts;
  return stmt ? std::vector<Stmt>{stmt} : std::vector<Stmt>{};
}

// A body that a rewrite dropped becomes an empty sequence.
static void keep_body(Stmt& body) {
  if (!body) body = make<Seq>(std::vector<Stmt>{});
}

For::For(Ref<Var> loop_var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs annotations,
         Origin origin)
    : NodeOf(std::move(origin)),
      min(std::move(min)),
      extent(std::move(extent)),
      kind(kind),
      loop_var(std::move(loop_var)),
      body(std::move(body)),
      annotations(std::move(annotations)) {
  finish_node(*this);
}
Ref<For> For::with(Expr min, Expr extent, Stmt body) const {
  return tenon::with(*this, [&](For& copy) {
    copy.min = std::move(min);
    copy.extent = std::move(extent);
    copy.body = std::move(body);
  });
}
void For::finish() {
  keep_body(body);
  if (!loop_var->dtype.is_integer() || min->dtype != loop_var->dtype ||
      extent->dtype != loop_var->dtype)
    throw CompileError(
        kDTypeMismatch, origin,
        "loop `{}` of dtype {} has bounds of dtypes {} and {}; expected one integer dtype",
        loop_var->name, loop_var->dtype.str(), min->dtype.str(), extent->dtype.str());
}
std::vector<FieldInfo> For::fields() {
  return {field<&For::min>("min"),
          field<&For::extent>("extent"),
          field<&For::kind>("kind"),
          field<&For::thread_tag>("thread_tag"),
          field<&For::annotations>("annotations"),
          field<&For::loop_var>("loop_var", FieldRole::kDefinition),
          field<&For::body>("body")};
}

While::While(Expr condition, Stmt body, Origin origin)
    : NodeOf(std::move(origin)), condition(std::move(condition)), body(std::move(body)) {
  finish_node(*this);
}
static void check_condition(const Expr& condition, std::string_view what, const Origin& origin) {
  if (condition->dtype != kBool)
    throw CompileError(kDTypeMismatch, origin, "condition of `{}` has dtype {}; expected bool",
                       what, condition->dtype.str());
}
void While::finish() {
  keep_body(body);
  check_condition(condition, "while", origin);
}
std::vector<FieldInfo> While::fields() {
  return {field<&While::condition>("condition"), field<&While::body>("body")};
}

IfThenElse::IfThenElse(Expr condition, Stmt then_case, Stmt else_case, Origin origin)
    : NodeOf(std::move(origin)),
      condition(std::move(condition)),
      then_case(std::move(then_case)),
      else_case(std::move(else_case)) {
  finish_node(*this);
}
void IfThenElse::finish() {
  keep_body(then_case);
  check_condition(condition, "if", origin);
}
std::vector<FieldInfo> IfThenElse::fields() {
  return {field<&IfThenElse::condition>("condition"), field<&IfThenElse::then_case>("then_case"),
          field<&IfThenElse::else_case>("else_case")};
}

Assert::Assert(Expr condition, std::string message, Origin origin)
    : NodeOf(std::move(origin)), condition(std::move(condition)), message(std::move(message)) {
  finish_node(*this);
}
void Assert::finish() { check_condition(condition, "assert", origin); }
std::vector<FieldInfo> Assert::fields() {
  return {field<&Assert::condition>("condition"), field<&Assert::message>("message")};
}

AttrStmt::AttrStmt(NodePtr subject, std::string key, AttrValue value, Stmt body, Origin origin)
    : NodeOf(std::move(origin)),
      key(std::move(key)),
      subject(std::move(subject)),
      value(std::move(value)),
      body(std::move(body)) {
  finish_node(*this);
}
std::vector<FieldInfo> AttrStmt::fields() {
  return {field<&AttrStmt::key>("key"), field<&AttrStmt::subject>("subject"),
          field<&AttrStmt::value>("value"), field<&AttrStmt::body>("body")};
}

Block::Block(Parts parts, Origin origin) : NodeOf(std::move(origin)), BlockParts(std::move(parts)) {
  finish_node(*this);
}
void Block::finish() {
  keep_body(body);
  bool changed = false;
  for (IterVar& iter : iter_vars)
    for (Expr* side : {&iter.domain.min, &iter.domain.extent}) {
      if ((*side)->dtype == iter.var->dtype) continue;
      *side = cast(iter.var->dtype, *side);
      changed = true;
    }
  if (changed) set_height(*this);
}
namespace {

// An axis defines its variable and uses what its domain names; a view defines its buffer and uses
// the region.
struct AxisDomains : FieldTraits<std::vector<Expr>> {
  static void visit(const std::vector<IterVar>& m, const NodeVisitor& v) {
    for (const IterVar& iter : m) FieldTraits<Range>::visit(iter.domain, v);
  }
  static bool map(std::vector<IterVar>& m, const NodeMapper& f) {
    bool changed = false;
    for (IterVar& iter : m) changed |= FieldTraits<Range>::map(iter.domain, f);
    return changed;
  }
  static bool equal(const std::vector<IterVar>& a, const std::vector<IterVar>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i].kind != b[i].kind) return false;
    return true;
  }
  static uint64_t hash(const std::vector<IterVar>& m) {
    uint64_t h = m.size();
    for (const IterVar& iter : m) h = hash_combine(h, static_cast<uint64_t>(iter.kind));
    return h;
  }
  static std::string text(const std::vector<IterVar>& m) {
    return fmt::format("{} axes", m.size());
  }
};
struct AxisVars : AxisDomains {
  static void visit(const std::vector<IterVar>& m, const NodeVisitor& v) {
    for (const IterVar& iter : m) v(iter.var);
  }
  static bool map(std::vector<IterVar>& m, const NodeMapper& f) {
    bool changed = false;
    for (IterVar& iter : m) changed |= FieldTraits<Ref<Var>>::map(iter.var, f);
    return changed;
  }
};
struct ViewSources : FieldTraits<std::vector<Expr>> {
  static void visit(const std::vector<MatchBuffer>& m, const NodeVisitor& v) {
    for (const MatchBuffer& match : m) v(match.source);
  }
  static bool map(std::vector<MatchBuffer>& m, const NodeMapper& f) {
    bool changed = false;
    for (MatchBuffer& match : m) changed |= FieldTraits<Ref<BufferRegion>>::map(match.source, f);
    return changed;
  }
  static bool equal(const std::vector<MatchBuffer>& a, const std::vector<MatchBuffer>& b) {
    return a.size() == b.size();
  }
  static uint64_t hash(const std::vector<MatchBuffer>& m) { return m.size(); }
  static std::string text(const std::vector<MatchBuffer>& m) {
    return fmt::format("{} views", m.size());
  }
};
struct ViewBuffers : ViewSources {
  static void visit(const std::vector<MatchBuffer>& m, const NodeVisitor& v) {
    for (const MatchBuffer& match : m) v(match.buffer);
  }
  static bool map(std::vector<MatchBuffer>& m, const NodeMapper& f) {
    bool changed = false;
    for (MatchBuffer& match : m) changed |= FieldTraits<Ref<Buffer>>::map(match.buffer, f);
    return changed;
  }
};

}  // namespace

template <auto Member, typename Traits = FieldTraits<typename MemberOf<decltype(Member)>::Type>>
static FieldInfo block_field(std::string_view name, FieldRole role = FieldRole::kUse) {
  return field<Member, Traits, Block>(name, role);
}
std::vector<FieldInfo> Block::fields() {
  return {block_field<&Block::name>("name", FieldRole::kIgnored),
          block_field<&Block::iter_vars, AxisDomains>("domains"),
          block_field<&Block::iter_vars, AxisVars>("iter_vars", FieldRole::kDefinition),
          block_field<&Block::alloc_buffers>("alloc_buffers", FieldRole::kDefinition),
          block_field<&Block::reads>("reads"),
          block_field<&Block::writes>("writes"),
          block_field<&Block::match_buffers, ViewSources>("match_sources"),
          block_field<&Block::match_buffers, ViewBuffers>("match_buffers", FieldRole::kDefinition),
          block_field<&Block::annotations>("annotations"),
          block_field<&Block::init>("init"),
          block_field<&Block::body>("body")};
}

BlockRealize::BlockRealize(std::vector<Expr> iter_values, Expr predicate, Ref<Block> block,
                           Origin origin)
    : NodeOf(std::move(origin)),
      iter_values(std::move(iter_values)),
      predicate(std::move(predicate)),
      block(std::move(block)) {
  finish_node(*this);
}
void BlockRealize::finish() {
  if (iter_values.size() != block->iter_vars.size())
    throw CompileError(kBadBlock, origin, "block `{}` has {} axes; {} values are bound",
                       block->name, block->iter_vars.size(), iter_values.size());
  check_condition(predicate, "T.where", origin);
}
std::vector<FieldInfo> BlockRealize::fields() {
  return {field<&BlockRealize::iter_values>("iter_values"),
          field<&BlockRealize::predicate>("predicate"), field<&BlockRealize::block>("block")};
}

CallTir::CallTir(Ref<GlobalVar> callee, std::vector<NodePtr> args, Attrs annotations, Origin origin)
    : NodeOf(std::move(origin)),
      callee(std::move(callee)),
      args(std::move(args)),
      annotations(std::move(annotations)) {
  finish_node(*this);
}
void CallTir::finish() {
  for (const NodePtr& arg : args)
    if (!arg.as<BufferRegion>() && !arg.as<ExprNode>())
      throw CompileError(kBadArgument, origin,
                         "an argument of a call of `{}` is neither a region nor a scalar",
                         callee->name);
}
std::vector<FieldInfo> CallTir::fields() {
  return {field<&CallTir::callee>("callee"), field<&CallTir::args>("args"),
          field<&CallTir::annotations>("annotations")};
}

PrimFunc::PrimFunc(std::vector<Ref<Var>> params, std::vector<Ref<Buffer>> buffers, Stmt body,
                   Attrs attrs, Origin origin)
    : NodeOf(std::move(origin)),
      params(std::move(params)),
      buffers(std::move(buffers)),
      body(std::move(body)) {
  this->attrs = std::move(attrs);
  finish_node(*this);
}
Ref<PrimFunc> PrimFunc::of_buffers(std::vector<Ref<Buffer>> buffers, Stmt body, Attrs attrs,
                                   Origin origin) {
  std::vector<Ref<Var>> params;
  for (const Ref<Buffer>& buffer : buffers)
    params.push_back(make<Var>(buffer->name + "_handle", kHandle));
  return make<PrimFunc>(std::move(params), std::move(buffers), std::move(body), std::move(attrs),
                        std::move(origin));
}
Ref<PrimFunc> PrimFunc::with_body(Stmt body) const {
  return with(*this, [&](PrimFunc& copy) { copy.body = std::move(body); });
}
Ref<PrimFunc> PrimFunc::with_attr(const std::string& name, AttrValue value) const {
  return with(*this, [&](PrimFunc& copy) { copy.attrs.set(name, std::move(value)); });
}
void PrimFunc::finish() {
  keep_body(body);
  check(params.size() == buffers.size(),
        "a PrimFunc with another number of buffers than parameters");
}
std::vector<FieldInfo> PrimFunc::fields() {
  return {field<&PrimFunc::params>("params", FieldRole::kDefinition),
          field<&PrimFunc::buffers>("buffers", FieldRole::kDefinition),
          field<&PrimFunc::result>("result"), field<&PrimFunc::attrs>("attrs"),
          field<&PrimFunc::body>("body")};
}

std::vector<Ref<Var>> symbolic_vars(const PrimFunc& function) {
  std::vector<Ref<Var>> out;
  std::unordered_set<const Node*> seen;
  for (const Ref<Var>& param : function.params) seen.insert(param.get());
  for (const Ref<Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    const auto collect = [&](const Expr& expr) {
      if (const auto* var = expr.as<Var>(); var && seen.insert(var).second)
        out.push_back(ref_to(var));
    };
    for (const Expr& dim : buffer->shape) collect(dim);
    for (const Expr& stride : buffer->strides) collect(stride);
    if (buffer->elem_offset) collect(buffer->elem_offset);
  }
  return out;
}

Stmt nest(const std::vector<Ref<Var>>& vars, const std::vector<Expr>& extents, Stmt body) {
  check(vars.size() == extents.size(), "a loop nest with another number of extents than variables");
  for (size_t i = vars.size(); i-- > 0;)
    body = make<For>(vars[i], imm(vars[i]->dtype, int64_t{0}),
                     tenon::cast(vars[i]->dtype, extents[i]), ForKind::kSerial, std::move(body));
  return body;
}

const Block* root_block(const PrimFunc& function) {
  const auto* realize = function.body.as<BlockRealize>();
  if (!realize || !realize->block->iter_vars.empty()) return nullptr;
  return realize->block.get();
}

}  // namespace tenon::tir
