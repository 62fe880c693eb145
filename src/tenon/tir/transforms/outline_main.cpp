// SPDX-License-Identifier: Apache-2.0
// OutlineMain: cuts a long entry function into private functions, since many algorithms of code
// generators are worse than linear in a function's length.

#include <set>
#include <unordered_map>

#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

class Outliner {
 public:
  Outliner(const Ref<PrimFunc>& main, size_t most)
      : main_(main), stmts_(stmts_of(main->body)), most_(most) {}

  /// Whether `main` is long, and everything that it defines can be defined again elsewhere.
  bool applies() const {
    if (stmts_.size() <= most_) return false;
    for (const Stmt& stmt : stmts_) {
      if (stmt.as<AllocBuffer>()) return false;  // memory belongs to the function that allocates it
      // What a number is read from may be overwritten later.
      if (const auto* bind = stmt.as<Bind>(); bind && reads_memory(bind->value)) return false;
    }
    return true;
  }

  IRModule run(IRModule module, const std::string& name) {
    for (size_t i = 0; i < stmts_.size(); ++i) note_definitions(i);
    std::vector<Stmt> calls;
    std::vector<size_t> chunk;
    const auto flush = [&] {
      if (chunk.empty()) return;
      const std::string part = module.add_unique(name + "_part", outline(chunk));
      std::vector<NodePtr> args;
      for (size_t p = 0; p < main_->params.size(); ++p)
        args.push_back(main_->buffers[p] ? NodePtr(BufferRegion::whole(main_->buffers[p]))
                                         : NodePtr(main_->params[p]));
      calls.push_back(make<CallTir>(make<GlobalVar>(part), std::move(args)));
      chunk.clear();
    };
    for (size_t i = 0; i < stmts_.size(); ++i) {
      if (is_definition(stmts_[i])) continue;
      chunk.push_back(i);
      if (chunk.size() == most_) flush();
    }
    flush();
    module.set(name, main_->with_body(make<Seq>(std::move(calls))));
    return module;
  }

 private:
  static bool reads_memory(const Expr& value) {
    bool reads = false;
    walk<BufferLoad>(value, [&](const BufferLoad&) { reads = true; });
    return reads;
  }
  static bool is_definition(const Stmt& stmt) {
    return stmt.as<DeclBuffer>() || stmt.as<AllocConst>() || stmt.as<Bind>();
  }

  void note_definitions(size_t i) {
    const Stmt& stmt = stmts_[i];
    const auto note = [&](const Ref<Buffer>& buffer) {
      defined_at_[buffer.get()] = i;
      defined_at_[buffer->data.get()] = i;
    };
    if (const auto* view = stmt.as<DeclBuffer>()) note(view->buffer);
    if (const auto* constant = stmt.as<AllocConst>()) note(constant->buffer);
    if (const auto* bind = stmt.as<Bind>()) defined_at_[bind->var.get()] = i;
  }

  /// The definitions that the statements of `chunk` need, and those that these need, by their
  /// places in `main`. They may lead to one another in a chain as long as `main`.
  std::set<size_t> needed_by(const std::vector<size_t>& chunk) const {
    std::set<size_t> needed;
    std::vector<size_t> open = chunk;
    while (!open.empty()) {
      const size_t user = open.back();
      open.pop_back();
      walk(stmts_[user], [&](const NodePtr& node) {
        const auto it = defined_at_.find(node.get());
        if (it == defined_at_.end() || it->second == user) return;
        if (needed.insert(it->second).second) open.push_back(it->second);
      });
    }
    return needed;
  }

  Ref<PrimFunc> outline(const std::vector<size_t>& chunk) const {
    std::vector<Stmt> body;
    for (const size_t i : needed_by(chunk)) body.push_back(stmts_[i]);
    for (const size_t i : chunk) body.push_back(stmts_[i]);
    return renew_definitions(
        with(make<PrimFunc>(main_->params, main_->buffers, make<Seq>(std::move(body)),
                            Attrs{{"tenon.part", true}, {"tir.noalias", true}}, main_->origin),
             [&](PrimFunc& made) { made.is_private = true; }));
  }

  Ref<PrimFunc> main_;
  std::vector<Stmt> stmts_;
  size_t most_;
  std::unordered_map<const Node*, size_t> defined_at_;
};

}  // namespace

IRModule outline_main(IRModule module, int64_t most_statements) {
  // A C compiler takes long lists of calls as they are, and people read them.
  if (is_c_target(module)) return module;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<PrimFunc>(base);
    if (!function || !function->attrs.flag("tenon.entry")) continue;
    Outliner outliner(function, static_cast<size_t>(most_statements));
    if (outliner.applies()) module = outliner.run(std::move(module), name);
  }
  return module;
}

}  // namespace tenon::tir
