// SPDX-License-Identifier: Apache-2.0
// The tree of a Relay text, before its operators are known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir/attrs.h"
#include "tenon/script/lexer.h"

namespace tenon::relay {

using script::Place;

struct Tree;
using TreePtr = std::unique_ptr<Tree>;

// ---- types

struct Dimension {
  std::optional<int64_t> value;  // none: `?`, or a name
  std::string name;              // of a symbolic one that has a name
};

struct TypeTree {
  enum class Kind : uint8_t { kTensor, kTuple, kFunction, kOther };
  Kind kind = Kind::kOther;
  Place place;
  std::vector<Dimension> dims;  // kTensor
  std::string dtype;            // kTensor
  std::vector<TypeTree> items;  // of a tuple; parameters of a function, then its result
  std::string text;             // kOther: what it is called
};

// ---- values

struct Attribute {
  std::string name;
  Place place;
  AttrValue value;       // what a literal says
  bool is_none = false;  // `None` or `nullptr`
  bool opaque = false;  // no literal (a dictionary, a reference to metadata): `value` holds nothing
  TreePtr tree;         // an expression; null for literals
};

struct Parameter {
  std::string name;
  Place place;
  std::optional<TypeTree> type;  // none: as its comment or its call says
  std::string_view comment;
};

struct Binding {
  std::string name;
  Place place;
  std::optional<TypeTree> type;
  TreePtr value;
};

/// Bindings, then a result: the body of a function or of a branch.
struct Block {
  std::vector<Binding> bindings;
  TreePtr result;
};

struct FunctionTree {
  std::vector<Parameter> params;
  std::vector<Attribute> attrs;
  std::optional<TypeTree> result;
  Block body;
  Place place;
};

struct Tree {
  enum class Kind : uint8_t {
    kLocal,       // text: with projections, as it stands in the text
    kGlobal,      // text
    kConstant,    // dtype, number or integer
    kMeta,        // text: the kind of node; index
    kTuple,       // items
    kProjection,  // items[0], index
    kOperator,    // a call of operator `text`: items, attrs
    kCall,        // items[0] called with the others; attrs
    kFunction,    // function
    kIf,          // items[0], blocks
    kBlock,       // blocks[0]
  };
  Kind kind;
  Place place;
  std::string text = {};
  std::vector<TreePtr> items = {};
  std::vector<Attribute> attrs = {};
  int64_t index = 0;
  std::string dtype = {};
  double number = 0;
  int64_t integer = 0;
  std::unique_ptr<FunctionTree> function = {};
  std::vector<Block> blocks = {};
  std::string_view comment = {};  // that follows: `ty=... span=...`
  uint32_t height = 1;            // 1 + that of the highest part
};

// ---- modules

struct Definition {
  std::string name;
  Place place;
  bool generic = false;  // has type parameters: its body is not kept
  FunctionTree function;
  std::vector<std::string> callees;  // global names in its body
};

struct ModuleTree {
  std::vector<Definition> definitions;
  std::vector<std::pair<std::string_view, Place>> scripts;  // PrimFuncs in TVMScript
};

}  // namespace tenon::relay
