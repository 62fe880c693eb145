// SPDX-License-Identifier: Apache-2.0
// The base of every IR node, and the member tables from which walking, rewriting, equality and
// hashing derive.
//
// A node is immutable once it is shared, counted intrusively, and states its kind and its members
// once:
//
//   struct Select final : NodeOf<Select, ExprNode> {
//     Expr condition, true_value, false_value;
//     Select(Expr condition, Expr true_value, Expr false_value, Origin origin = {});
//     void finish();
//     static constexpr ExprKind kKind = ExprKind::kSelect;
//     static constexpr std::string_view kName = "Select";
//     static std::vector<FieldInfo> fields();  // {field<&Select::condition>("condition"), ...}
//   };
//
// finish() checks members (it throws CompileError) and sets derived ones; constructors end with
// `finish_node(*this)`, and `with` and rewriting run it again on the copy that they change. Nodes
// are made by `make`, changed copies by `with`; no other code can allocate one.
//
// Members are listed in the order in which definitions come before uses. A kind with `static
// constexpr bool kIdentity = true` (Var, Buffer) is itself: two are equal only where their
// definitions stand in the same place, and a walk enters one only where it is defined. The table
// of a kind is compiled once, in one place; no walk is a template over node kinds.
//
// Code that must know every kind of a family (printers, code generators, the interpreter) is a
// switch over kind_of(node) without a default, so a new kind does not compile until each of them
// has a case for it. Code that looks for one kind asks `as<T>()`; code to which most kinds are
// alike goes through the member table (visit.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/support/check.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/dtype.h"
#include "tenon/support/function_ref.h"

namespace tenon {

class Node;
struct NodeType;

/// What a node is of. The kinds of a family are an enum of its own: ExprKind (ir/expr.h), StmtKind
/// (tir/stmt.h), ValueKind (graph/expr.h), TypeKind (graph/type.h), FunctionKind (ir/module.h),
/// PatternKind (graph/patterns/pattern_nodes.h), PartKind below.
enum class NodeFamily : uint8_t { kPart, kExpr, kStmt, kValue, kType, kFunction, kPattern };

/// Kinds of nodes that are only parts of others.
enum class PartKind : uint8_t { kTensorData, kBuffer, kBufferRegion, kBinding, kBindingBlock };

/// A counted pointer to an immutable node; may be null. `Ref<T>` adds the node's type.
class NodePtr {
 public:
  NodePtr() = default;
  NodePtr(std::nullptr_t) {}
  explicit NodePtr(const Node* node);
  NodePtr(const NodePtr& other);
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();

  const Node* get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool same_as(const NodePtr& other) const { return node_ == other.node_; }

  /// The node as a T, or null where it is another kind (or there is none).
  template <typename T>
  const T* as() const;
  /// The node as a T, which it is: in a case of a switch over its kind.
  template <typename T>
  const T& to() const;

 protected:
  const Node* node_ = nullptr;
};

template <typename T>
class Ref : public NodePtr {
 public:
  using Type = T;
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* node) : NodePtr(static_cast<const Node*>(node)) {}
  template <typename U>
    requires(!std::is_same_v<U, T> && std::is_convertible_v<const U*, const T*>)
  Ref(const Ref<U>& other) : NodePtr(other) {}

  const T* get() const { return static_cast<const T*>(node_); }
  const T* operator->() const { return get(); }
  const T& operator*() const { return *get(); }
};

/// A handle of T to `node` itself, which must already be shared (`this` inside a visitor, the
/// result of `as`).
template <typename T>
Ref<T> ref_to(const T* node) {
  return Ref<T>(node);
}

/// How structural comparison and rewriting treat a member.
enum class FieldRole : uint8_t {
  kUse,         // compared by meaning; variables inside refer to definitions elsewhere
  kDefinition,  // a Var or Buffer that this node defines, for its other members or what follows it
  kSymbolic,    // dimensions: in a whole function, a bare Var first seen here is defined here
  kIgnored,     // names and the like: no part of the meaning, but printed
};

/// Sees a member node. Null handles are not visited.
using NodeVisitor = FunctionRef<void(const NodePtr&)>;
/// Returns the node to stand in the place of its argument (often the same one).
using NodeMapper = FunctionRef<NodePtr(const NodePtr&)>;

/// What the generic algorithms need of a member's type; one static object for each type.
struct FieldOps {
  bool holds_nodes;
  void (*visit)(const void* member, const NodeVisitor& visitor);
  bool (*map)(void* member, const NodeMapper& mapper);  // true where something changed
  bool (*equal)(const void* a, const void* b);          // of what is not a node in it
  uint64_t (*hash)(const void* member);                 // of what is not a node in it
  std::string (*text)(const void* member);              // of what is not a node in it, for messages
};

struct FieldInfo {
  std::string_view name;
  FieldRole role;
  const FieldOps* ops;
  const void* (*address)(const Node& node);
};

/// A node kind: its name, its members, and how a changed copy is made.
struct NodeType {
  std::string_view name;
  bool identity;
  std::vector<FieldInfo> fields;
  Node* (*clone)(const Node& node);  // a fresh copy, not yet shared
  void (*finish)(Node& node);        // checks and derived members, run again after a rebuild
};

/// The base of all nodes. Allocated by `make`, copied by `with` and NodeType::clone alone.
class Node {
 public:
  using Kind = PartKind;  // of nodes that derive from Node itself
  static constexpr NodeFamily kFamily = NodeFamily::kPart;

  virtual ~Node() = default;
  virtual const NodeType& type() const = 0;

  /// Where it came from; no part of its meaning.
  Origin origin;

  /// 1 + the greatest height of its members: bounds every recursive walk (see kMaxHeight).
  uint32_t height() const { return height_; }
  /// False where one handle alone refers to it: a walk comes to it once, by that handle.
  bool is_shared() const { return references_.load(std::memory_order_relaxed) > 1; }

 protected:
  explicit Node(Origin origin) : origin(std::move(origin)) {}
  Node(const Node& other) : origin(other.origin), height_(other.height_), tag_(other.tag_) {}
  Node& operator=(const Node&) = delete;

 private:
  friend class NodePtr;
  friend void set_height(Node& node);
  template <typename T, typename Base>
  friend struct NodeOf;
  template <typename T, typename... Args>
  friend Ref<T> make(Args&&... args);
  template <typename T, typename Change>
  friend Ref<T> with(Ref<T> node, const Change& change);
  template <typename Base>
  friend typename Base::Kind kind_of(const Base& node);

  // Private, so that every node is finished: see `make` and `with`.
  static void* operator new(size_t bytes) { return ::operator new(bytes); }

  mutable std::atomic<uint32_t> references_{0};
  uint16_t height_ = 1;
  uint16_t tag_ = 0;  // family and kind
};

/// Constructors refuse what nests deeper, so that recursive walks cannot exhaust the stack. What is
/// as long as the input (bindings, statements of a sequence) is a flat list and does not add
/// height.
inline constexpr uint32_t kMaxHeight = 1024;

inline NodePtr::NodePtr(const Node* node) : node_(node) {
  if (node_) node_->references_.fetch_add(1, std::memory_order_relaxed);
}
inline NodePtr::NodePtr(const NodePtr& other) : NodePtr(other.node_) {}
inline NodePtr::~NodePtr() {
  if (node_ && node_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
}

/// Sets a node's height from its members. \throws CompileError (kTooDeep) beyond kMaxHeight.
void set_height(Node& node);

// ---- member types -------------------------------------------------------------------------------

inline uint64_t hash_combine(uint64_t seed, uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 12) + (seed >> 4);
  return seed * 0xff51afd7ed558ccdULL;
}
uint64_t hash_bytes(const void* data, size_t bytes);  // the same on every host and run

/// How a member of type M behaves; specialise it for a new member type.
template <typename M>
struct FieldTraits;

template <typename T>
struct FieldTraits<Ref<T>> {
  static constexpr bool kHoldsNodes = true;
  static void visit(const Ref<T>& m, const NodeVisitor& v) {
    if (m) v(m);
  }
  static bool map(Ref<T>& m, const NodeMapper& f) {
    if (!m) return false;
    NodePtr next = f(m);
    if (next.same_as(m)) return false;
    check(!next || next.as<T>() != nullptr, "a rewrite returned a node of the wrong kind");
    m = Ref<T>(static_cast<const T*>(next.get()));
    return true;
  }
  static bool equal(const Ref<T>& a, const Ref<T>& b) {
    return static_cast<bool>(a) == static_cast<bool>(b);
  }
  static uint64_t hash(const Ref<T>& m) { return m ? 1 : 0; }
  static std::string text(const Ref<T>& m) { return m ? "a node" : "nothing"; }
};

template <>
struct FieldTraits<NodePtr> {
  static constexpr bool kHoldsNodes = true;
  static void visit(const NodePtr& m, const NodeVisitor& v) {
    if (m) v(m);
  }
  static bool map(NodePtr& m, const NodeMapper& f) {
    if (!m) return false;
    NodePtr next = f(m);
    if (next.same_as(m)) return false;
    m = std::move(next);
    return true;
  }
  static bool equal(const NodePtr& a, const NodePtr& b) {
    return static_cast<bool>(a) == static_cast<bool>(b);
  }
  static uint64_t hash(const NodePtr& m) { return m ? 1 : 0; }
  static std::string text(const NodePtr& m) { return m ? "a node" : "nothing"; }
};

template <typename E>
struct FieldTraits<std::vector<E>> {
  using Item = FieldTraits<E>;
  static constexpr bool kHoldsNodes = Item::kHoldsNodes;
  static void visit(const std::vector<E>& m, const NodeVisitor& v) {
    if constexpr (kHoldsNodes)
      for (const E& e : m) Item::visit(e, v);
  }
  static bool map(std::vector<E>& m, const NodeMapper& f) {
    bool changed = false;
    if constexpr (kHoldsNodes)
      for (E& e : m) changed |= Item::map(e, f);
    return changed;
  }
  static bool equal(const std::vector<E>& a, const std::vector<E>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!Item::equal(a[i], b[i])) return false;
    return true;
  }
  static uint64_t hash(const std::vector<E>& m) {
    uint64_t h = m.size();
    for (const E& e : m) h = hash_combine(h, Item::hash(e));
    return h;
  }
  static std::string text(const std::vector<E>& m) {
    if constexpr (kHoldsNodes) return fmt::format("{} items", m.size());
    std::string text = "[";
    for (const E& e : m) text += (text.size() > 1 ? ", " : "") + Item::text(e);
    return text + "]";
  }
};

template <typename E>
struct FieldTraits<std::optional<E>> {
  using Item = FieldTraits<E>;
  static constexpr bool kHoldsNodes = Item::kHoldsNodes;
  static void visit(const std::optional<E>& m, const NodeVisitor& v) {
    if (m) Item::visit(*m, v);
  }
  static bool map(std::optional<E>& m, const NodeMapper& f) { return m && Item::map(*m, f); }
  static bool equal(const std::optional<E>& a, const std::optional<E>& b) {
    return a.has_value() == b.has_value() && (!a || Item::equal(*a, *b));
  }
  static uint64_t hash(const std::optional<E>& m) {
    return m ? hash_combine(1, Item::hash(*m)) : 0;
  }
  static std::string text(const std::optional<E>& m) { return m ? Item::text(*m) : "nothing"; }
};

/// Members without nodes: compared, hashed and printed as values.
template <typename M>
struct PlainTraits {
  static constexpr bool kHoldsNodes = false;
  static void visit(const M&, const NodeVisitor&) {}
  static bool map(M&, const NodeMapper&) { return false; }
  static bool equal(const M& a, const M& b) { return a == b; }
};
template <typename M>
  requires(std::is_integral_v<M> || std::is_enum_v<M>)
struct FieldTraits<M> : PlainTraits<M> {
  static uint64_t hash(M m) { return static_cast<uint64_t>(m); }
  static std::string text(M m) { return std::to_string(static_cast<int64_t>(m)); }
};
template <>
struct FieldTraits<double> : PlainTraits<double> {
  static bool equal(double a, double b);  // bit for bit: NaN equals NaN, 0 differs from -0
  static uint64_t hash(double m);
  static std::string text(double m);
};
template <>
struct FieldTraits<std::string> : PlainTraits<std::string> {
  static uint64_t hash(const std::string& m) { return hash_bytes(m.data(), m.size()); }
  static std::string text(const std::string& m) { return '"' + m + '"'; }
};
template <>
struct FieldTraits<DType> : PlainTraits<DType> {
  static uint64_t hash(DType m) { return std::hash<DType>{}(m); }
  static std::string text(DType m) { return m.str(); }
};

template <typename M, typename Traits = FieldTraits<M>>
const FieldOps* field_ops() {
  static constexpr FieldOps kOps = {
      Traits::kHoldsNodes,
      [](const void* m, const NodeVisitor& v) { Traits::visit(*static_cast<const M*>(m), v); },
      [](void* m, const NodeMapper& f) { return Traits::map(*static_cast<M*>(m), f); },
      [](const void* a, const void* b) {
        return Traits::equal(*static_cast<const M*>(a), *static_cast<const M*>(b));
      },
      [](const void* m) -> uint64_t { return Traits::hash(*static_cast<const M*>(m)); },
      [](const void* m) -> std::string { return Traits::text(*static_cast<const M*>(m)); },
  };
  return &kOps;
}

template <typename T>
struct MemberOf;
template <typename Owner, typename M>
struct MemberOf<M Owner::*> {
  using Class = Owner;
  using Type = M;
};

/// One row of a node's member table. A member that holds definitions and uses has two rows, each
/// with traits that see its part. Class is the node where the member is of another base of it.
template <auto Member, typename Traits = FieldTraits<typename MemberOf<decltype(Member)>::Type>,
          typename Class = typename MemberOf<decltype(Member)>::Class>
FieldInfo field(std::string_view name, FieldRole role = FieldRole::kUse) {
  using Type = typename MemberOf<decltype(Member)>::Type;
  return {name, role, field_ops<Type, Traits>(), [](const Node& node) -> const void* {
            return &(static_cast<const Class&>(node).*Member);
          }};
}

// ---- defining node kinds ------------------------------------------------------------------------

template <typename T>
constexpr bool has_identity() {
  if constexpr (requires { T::kIdentity; }) return T::kIdentity;
  return false;
}

/// Family and kind of T in one number, unlike that of any other kind.
template <typename T>
constexpr uint16_t tag_of() {
  static_assert(std::is_same_v<std::remove_cv_t<decltype(T::kKind)>, typename T::Kind>,
                "a kind of another family");
  return static_cast<uint16_t>(static_cast<unsigned>(T::kFamily) << 8 |
                               static_cast<unsigned>(T::kKind));
}
/// Fails where two kinds have one tag.
void claim_tag(uint16_t tag, std::string_view name);

/// Derived node kinds inherit from this: `struct Select final : NodeOf<Select, ExprNode>`.
template <typename T, typename Base>
struct NodeOf : Base {
  template <typename... Args>
    requires(sizeof...(Args) > 0 && !(std::is_base_of_v<Node, std::remove_cvref_t<Args>> || ...))
  explicit NodeOf(Args&&... args) : Base(std::forward<Args>(args)...) {
    this->tag_ = tag_of<T>();
  }
  const NodeType& type() const override { return static_type(); }
  static const NodeType& static_type() {
    static const NodeType kType = [] {
      claim_tag(tag_of<T>(), T::kName);
      return NodeType{
          T::kName,
          has_identity<T>(),
          T::fields(),
          [](const Node& node) -> Node* { return new T(static_cast<const T&>(node)); },
          [](Node& node) { static_cast<T&>(node).finish(); },
      };
    }();
    return kType;
  }
};

/// What every constructor of a node ends with.
template <typename T>
void finish_node(T& node) {
  set_height(node);
  node.finish();
}

template <typename T, typename... Args>
Ref<T> make(Args&&... args) {
  static_assert(!(std::is_base_of_v<T, std::remove_cvref_t<Args>> || ...),
                "copies of nodes are made by `with`");
  return Ref<T>(new T(std::forward<Args>(args)...));
}

/// `node` as `change` makes it: `with(loop, [&](For& copy) { copy.body = body; })`. A copy, but
/// where nobody else holds the node; checks and derived members are done again.
template <typename T, typename Change>
Ref<T> with(Ref<T> node, const Change& change) {
  const bool is_own = node->references_.load(std::memory_order_acquire) == 1;
  if (!is_own) node = Ref<T>(static_cast<const T*>(node->type().clone(*node)));
  T& changed = const_cast<T&>(*node);  // this handle is the only one
  change(changed);
  set_height(changed);
  node->type().finish(changed);
  return node;
}
template <typename T, typename Change>
  requires(std::is_base_of_v<Node, T>)
Ref<T> with(const T& node, const Change& change) {
  return with(Ref<T>(&node), change);
}

/// The kind of a node within its family, to switch over.
template <typename Base>
typename Base::Kind kind_of(const Base& node) {
  return static_cast<typename Base::Kind>(node.tag_ & 0xff);
}
template <typename Base>
typename Base::Kind kind_of(const Ref<Base>& node) {
  return kind_of(*node);
}

template <typename T>
const T* NodePtr::as() const {
  if constexpr (requires { T::kKind; }) {
    return node_ && node_->tag_ == tag_of<T>() ? static_cast<const T*>(node_) : nullptr;
  } else if constexpr (std::is_same_v<T, Node>) {
    return node_;
  } else {  // the base of a family: ExprNode, StmtNode, TypeNode, ...
    return node_ && node_->tag_ >> 8 == static_cast<unsigned>(T::kFamily)
               ? static_cast<const T*>(node_)
               : nullptr;
  }
}

template <typename T>
const T& NodePtr::to() const {
  const T* node = as<T>();
  check(node != nullptr, "a node is of another kind than its case says");
  return *node;
}

/// `pointer` as a handle of T, null where it is another kind.
template <typename T>
Ref<T> cast(const NodePtr& pointer) {
  return Ref<T>(pointer.as<T>());
}

/// `pointer` as a handle of T; it must be one.
template <typename T>
Ref<T> downcast(const NodePtr& pointer) {
  const T* node = pointer.as<T>();
  check(node != nullptr, "downcast to another kind of node");
  return Ref<T>(node);
}

}  // namespace tenon
