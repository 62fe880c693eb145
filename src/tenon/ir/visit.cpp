// SPDX-License-Identifier: Apache-2.0
#include "tenon/ir/visit.h"

#include <unordered_set>

#include "tenon/ir/module.h"
#include "tenon/ir/node_table.h"

namespace tenon {

void each_member(const NodePtr& node, FunctionRef<void(const NodePtr&, FieldRole)> visitor) {
  for (const FieldInfo& field : node.get()->type().fields) {
    if (!field.ops->holds_nodes) continue;
    field.ops->visit(field.address(*node.get()),
                     [&](const NodePtr& member) { visitor(member, field.role); });
  }
}

// ---- walk ---------------------------------------------------------------------------------------

namespace {

class Walker {
 public:
  explicit Walker(FunctionRef<bool(const NodePtr&)> enter) : enter_(enter) {}

  void visit(const NodePtr& node, bool definition) {
    const bool identity = node.get()->type().identity;
    const bool first = (!identity && !node.get()->is_shared()) || seen_.insert(node.get());
    if (identity && !definition) {
      if (first) enter_(node);
      return;
    }
    if (identity ? !entered_.insert(node.get()) : !first) return;
    if (first || identity) {
      const bool enter = first ? enter_(node) : true;
      if (!enter) return;
    }
    each_member(node, [&](const NodePtr& member, FieldRole role) {
      visit(member, role == FieldRole::kDefinition);
    });
  }

 private:
  FunctionRef<bool(const NodePtr&)> enter_;
  NodeSet seen_, entered_;
};

}  // namespace

void walk_if(const NodePtr& root, FunctionRef<bool(const NodePtr&)> enter) {
  if (root) Walker(enter).visit(root, true);
}

void walk(const NodePtr& root, NodeVisitor visitor) {
  walk_if(root, [&](const NodePtr& node) {
    visitor(node);
    return true;
  });
}

// ---- rewrite ------------------------------------------------------------------------------------

namespace {

// Members that are rewritten, of all nodes on the way down: one stack for a thread.
thread_local std::vector<NodePtr> rewritten_members;

/// Those of one field, taken off the stack at the end, also where rewriting fails.
class RewrittenField {
 public:
  RewrittenField() : begin_(rewritten_members.size()) {}
  ~RewrittenField() { rewritten_members.resize(begin_); }
  RewrittenField(const RewrittenField&) = delete;
  RewrittenField& operator=(const RewrittenField&) = delete;

  void add(NodePtr member) { rewritten_members.push_back(std::move(member)); }
  /// They are taken in the order in which they were added.
  NodePtr take() { return std::move(rewritten_members[begin_ + taken_++]); }

 private:
  size_t begin_, taken_ = 0;
};

}  // namespace

NodePtr Rewriter::operator()(const NodePtr& node) {
  if (!node) return node;
  if (node.get()->type().identity) {
    const NodePtr* known = replaced_.find(node.get());
    return known ? *known : rewrite_use(node);
  }
  // What has no members costs less to see again than to remember.
  if (!memoise_ || node.get()->height() == 1) return rewrite(node);
  if (const NodePtr* known = memo_.find(node.get())) return *known;
  NodePtr next = rewrite(node);
  memo_.insert_or_assign(node, next);
  return next;
}

void Rewriter::replace(const NodePtr& definition, NodePtr value) {
  check(definition.get()->type().identity, "only variables and buffers can be replaced");
  replaced_.insert_or_assign(definition, std::move(value));
}

NodePtr Rewriter::rewrite_member(const NodePtr& member, FieldRole role) {
  const bool defines = role == FieldRole::kDefinition || (closed_ && role == FieldRole::kSymbolic);
  if (!defines || !member.get()->type().identity) return (*this)(member);
  // A definition replaced by something that is no definition (a constant) cannot stand here.
  if (const NodePtr* known = replaced_.find(member.get()))
    return *known && known->get()->type().identity ? *known : member;
  NodePtr next = rewrite_definition(member);
  if (!next.same_as(member)) replace(member, next);
  return next;
}

NodePtr Rewriter::rewrite_members(const NodePtr& node) {
  const NodeType& type = node.get()->type();
  Node* copy = nullptr;
  NodePtr holder;
  for (const FieldInfo& field : type.fields) {
    if (!field.ops->holds_nodes) continue;
    // Each member is rewritten once, in order; copied only where something changes.
    RewrittenField results;
    bool changed = false;
    field.ops->visit(field.address(*node.get()), [&](const NodePtr& member) {
      NodePtr next = rewrite_member(member, field.role);
      changed |= !next.same_as(member);
      results.add(std::move(next));
    });
    if (!changed) continue;
    if (!copy) {
      copy = type.clone(*node.get());
      holder = NodePtr(copy);
    }
    field.ops->map(const_cast<void*>(field.address(*copy)),
                   [&](const NodePtr&) { return results.take(); });
  }
  if (!copy) return node;
  set_height(*copy);
  type.finish(*copy);
  return holder;
}

namespace {

class FunctionRewriter final : public Rewriter {
 public:
  explicit FunctionRewriter(FunctionRef<std::optional<NodePtr>(const NodePtr&)> f) : f_(f) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    NodePtr next = rewrite_members(node);
    if (!next) return next;
    auto replacement = f_(next);
    return replacement ? *replacement : next;
  }

 private:
  FunctionRef<std::optional<NodePtr>(const NodePtr&)> f_;
};

// Looks values up where they are: there may be many more than `root` uses.
class Substituter final : public Rewriter {
 public:
  explicit Substituter(const Substitution& values) : values_(values) {}

 protected:
  NodePtr rewrite_use(const NodePtr& node) override {
    const auto known = values_.find(node.get());
    return known == values_.end() ? node : known->second;
  }
  // A definition replaced by something that is no definition (a constant) cannot stand here.
  NodePtr rewrite_definition(const NodePtr& node) override {
    const auto known = values_.find(node.get());
    if (known == values_.end()) return rewrite_members(node);
    return known->second && known->second.get()->type().identity ? known->second : node;
  }

 private:
  const Substitution& values_;
};

class Renewer final : public Rewriter {
 public:
  explicit Renewer(const NodePtr& root) { closed_ = root.as<FunctionNode>() != nullptr; }

 protected:
  NodePtr rewrite_definition(const NodePtr& node) override {
    NodePtr next = rewrite_members(node);
    return next.same_as(node) ? NodePtr(node.get()->type().clone(*node.get())) : next;
  }

  // A dimension may be used (`n * 2` in an earlier parameter) before the bare Var that defines it;
  // in a whole function nothing is free, so the first sight of it is the new one either way.
  NodePtr rewrite_use(const NodePtr& node) override {
    if (!closed_ || !node.as<Var>()) return node;
    NodePtr next(node.get()->type().clone(*node.get()));
    replace(node, next);
    return next;
  }
};

}  // namespace

NodePtr rewrite(const NodePtr& root, FunctionRef<std::optional<NodePtr>(const NodePtr&)> f) {
  FunctionRewriter rewriter(f);
  return rewriter(root);
}

NodePtr substitute(const NodePtr& root, const Substitution& values) {
  if (values.empty() || !root) return root;
  return Substituter(values)(root);
}

NodePtr renew_definitions(const NodePtr& root) {
  Renewer renewer(root);
  return renewer(root);
}

// ---- equality -----------------------------------------------------------------------------------

namespace {

struct PairHash {
  size_t operator()(const std::pair<const Node*, const Node*>& p) const {
    return hash_combine(reinterpret_cast<uintptr_t>(p.first),
                        reinterpret_cast<uintptr_t>(p.second));
  }
};

class Comparer {
 public:
  Comparer(const NodePtr& root, EqualOptions options)
      : options_(options), closed_(root.as<FunctionNode>() != nullptr) {}

  bool equal(const NodePtr& a, const NodePtr& b, bool definition) {
    if (!a || !b) return a.same_as(b) || differ("one is missing");
    const NodeType& type = a.get()->type();
    if (&type != &b.get()->type())
      return differ(fmt::format("{} and {}", type.name, b.get()->type().name));
    if (type.identity) {
      const auto forward = forward_.find(a.get());
      const auto backward = backward_.find(b.get());
      if (forward != forward_.end() || backward != backward_.end()) {
        if (forward != forward_.end() && forward->second == b.get() && backward != backward_.end())
          return true;
        return differ("different variables");
      }
      // A dimension may be used before the bare Var that defines it (see Renewer).
      const bool early = closed_ && a.as<Var>();
      if (!definition && !early && !options_.map_free)
        return a.same_as(b) || differ("different free variables");
      bind(a.get(), b.get());
      return members_equal(a, b);
    }
    if (a.same_as(b) && all_identity_) return true;
    const std::pair key(a.get(), b.get());
    if (known_.count(key)) return true;
    if (!members_equal(a, b)) return false;
    known_.insert(key);
    return true;
  }

  Difference difference() {
    Difference out;
    for (auto it = path_.rbegin(); it != path_.rend(); ++it)
      out.where += (out.where.empty() ? "" : ".") + *it;
    out.message = message_;
    return out;
  }

 private:
  bool defines(FieldRole role) const {
    return role == FieldRole::kDefinition || (closed_ && role == FieldRole::kSymbolic);
  }

  void bind(const Node* a, const Node* b) {
    if (a != b) all_identity_ = false;
    forward_[a] = b;
    backward_[b] = a;
  }

  bool differ(std::string message) {
    message_ = std::move(message);
    return false;
  }

  bool members_equal(const NodePtr& a, const NodePtr& b) {
    for (const FieldInfo& field : a.get()->type().fields) {
      if (field.role == FieldRole::kIgnored) continue;
      const void* x = field.address(*a.get());
      const void* y = field.address(*b.get());
      if (!field.ops->equal(x, y)) {
        path_.assign(1, std::string(field.name));
        return differ(field.ops->text(x) + " and " + field.ops->text(y));
      }
      if (!field.ops->holds_nodes) continue;
      std::vector<NodePtr> xs, ys;
      field.ops->visit(x, [&](const NodePtr& m) { xs.push_back(m); });
      field.ops->visit(y, [&](const NodePtr& m) { ys.push_back(m); });
      if (xs.size() != ys.size()) {
        path_.assign(1, std::string(field.name));
        return differ(fmt::format("{} and {} nodes", xs.size(), ys.size()));
      }
      for (size_t i = 0; i < xs.size(); ++i) {
        if (equal(xs[i], ys[i], defines(field.role))) continue;
        path_.push_back(xs.size() > 1 ? fmt::format("{}[{}]", field.name, i)
                                      : std::string(field.name));
        return false;
      }
    }
    return true;
  }

  EqualOptions options_;
  bool closed_;
  std::unordered_map<const Node*, const Node*> forward_, backward_;
  std::unordered_set<std::pair<const Node*, const Node*>, PairHash> known_;
  bool all_identity_ = true;
  std::vector<std::string> path_;
  std::string message_;
};

class Hasher {
 public:
  explicit Hasher(const NodePtr& root) : closed_(root.as<FunctionNode>() != nullptr) {}

  uint64_t hash(const NodePtr& node, bool definition) {
    const NodeType& type = node.get()->type();
    if (type.identity) {
      const auto it = numbers_.find(node.get());
      if (it != numbers_.end()) return it->second;
      const uint64_t name = hash_bytes(type.name.data(), type.name.size());
      if (!definition) return name;  // a free variable: its identity has no stable number
      numbers_.emplace(node.get(), hash_combine(name, numbers_.size() + 1));
      return hash_combine(members(node), numbers_.at(node.get()));
    }
    return members(node);
  }

 private:
  uint64_t members(const NodePtr& node) {
    const NodeType& type = node.get()->type();
    uint64_t h = hash_bytes(type.name.data(), type.name.size());
    for (const FieldInfo& field : type.fields) {
      if (field.role == FieldRole::kIgnored) continue;
      h = hash_combine(h, field.ops->hash(field.address(*node.get())));
      if (!field.ops->holds_nodes) continue;
      field.ops->visit(field.address(*node.get()), [&](const NodePtr& member) {
        const bool defines =
            field.role == FieldRole::kDefinition || (closed_ && field.role == FieldRole::kSymbolic);
        h = hash_combine(h, hash(member, defines));
      });
    }
    return h;
  }

  bool closed_;
  std::unordered_map<const Node*, uint64_t> numbers_;
};

}  // namespace

std::optional<Difference> structural_difference(const NodePtr& a, const NodePtr& b,
                                                EqualOptions options) {
  Comparer comparer(a, options);
  if (comparer.equal(a, b, false)) return std::nullopt;
  return comparer.difference();
}

bool structural_equal(const NodePtr& a, const NodePtr& b, EqualOptions options) {
  if (a.same_as(b)) return true;
  Comparer comparer(a, options);
  return comparer.equal(a, b, false);
}

uint64_t structural_hash(const NodePtr& node) { return node ? Hasher(node).hash(node, false) : 0; }

}  // namespace tenon
