// SPDX-License-Identifier: Apache-2.0
// The syntax tree of the part of Python that TVMScript uses, before names have a meaning.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenon/script/lexer.h"

namespace tenon::script::ast {

/// Wide enough for every 64-bit integer, signed or not, and for sums of some.
__extension__ typedef __int128 Integer;

/// Nesting beyond this is refused, so that no walk can exhaust the stack.
inline constexpr int kMaxDepth = 400;
/// Operands of one chain (`a + b + c`), which is walked without recursion.
inline constexpr int kMaxChain = 2000;

enum class ExprKind : uint8_t {
  kName,     // text
  kInteger,  // integer
  kFloat,    // number
  kString,   // text
  kTrue,
  kFalse,
  kNone,
  kEllipsis,
  kTuple,      // items
  kList,       // items
  kDict,       // items: key, value, key, value
  kAttribute,  // items[0] . text
  kSubscript,  // items[0] [ items[1] ]; several indices are a kTuple
  kSlice,      // items[0]:items[1]:items[2], each may be null
  kCall,       // items[0] ( items[1..], keywords )
  kBinary,     // items[0] text items[1]
  kUnary,      // text items[0]: "-", "+", "~", "not"
  kCompare,    // items[0] operators[0] items[1] operators[1] items[2] ...
  kBool,       // text ("and" or "or") between all items
  kIfElse,     // items[1] if items[0] else items[2]
  kLambda,     // parameters in operators, defaults in keywords; items[0]
  kStarred,    // *items[0]
  kFormat,     // an f-string: items side by side, each a kString or what stands in braces
  kListOf,     // [items[0] for items[1] in items[2] if items[3]], which may be null
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;
  Place place;
  ExprPtr value;
};

struct Expr {
  ExprKind kind;
  Place place;
  std::string text = {};
  Integer integer = 0;
  double number = 0;
  std::vector<ExprPtr> items = {};
  std::vector<Keyword> keywords = {};
  std::vector<std::string> operators = {};  // of kCompare; parameters of kLambda: "x", "*rest"
  bool parenthesised = false;

  Expr(ExprKind kind, Place place) : kind(kind), place(place) {}
  ~Expr();  // without recursion along chains
};

enum class StmtKind : uint8_t {
  kExpr,       // value
  kAssign,     // target (: annotation) = value; a = b = value has several targets
  kAugmented,  // target text= value
  kDeclare,    // target: annotation
  kFor,        // target in value: body
  kWhile,      // value: body
  kIf,         // value: body, orelse
  kWith,       // items: body
  kReturn,     // value or null
  kAssert,     // value, message or null
  kPass,
  kBreak,
  kContinue,
  kFunction,  // a def
  kClass,     // a class
  kImport,    // parameters: a name, and as annotation (a kString) the path that it stands for
  kOther,     // `del` and the like, skipped
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct WithItem {
  ExprPtr context;
  ExprPtr target;  // may be null
};

struct Parameter {
  std::string name;
  Place place;
  ExprPtr annotation;  // may be null
  ExprPtr otherwise;   // its default; may be null
  bool starred = false;
};

struct Stmt {
  StmtKind kind;
  Place place;
  std::string text = {};  // the name of a def or class; the operator of an augmented assignment
  Place name_place = {};
  ExprPtr target = {}, annotation = {}, value = {}, message = {};
  std::vector<ExprPtr> more_targets = {};
  std::vector<WithItem> items = {};
  std::vector<ExprPtr> decorators = {};
  std::vector<Parameter> parameters = {};
  ExprPtr returns = {};
  Body body = {}, orelse = {};
  bool damaged = false;  // of a def: some of its statements are missing, for errors in them

  Stmt(StmtKind kind, Place place) : kind(kind), place(place) {}
};

/// The statements in these lines of a file. Errors inside of decorated functions and modules go to `diagnostics`,
/// and the statement that has one is left out; of other Python, what is not understood is left out
/// silently (of a compound statement its first line, so that what it encloses is found).
/// With kReported all that is wrong is reported.
enum class OtherPython : uint8_t { kLeftOut, kReported };
Body parse_file(const std::shared_ptr<const SourceFile>& file, Diagnostics& diagnostics,
                OtherPython other = OtherPython::kLeftOut, LineRange lines = {});

/// The expressions of a file, with commas or line ends between them; indentation says nothing.
/// \throws CompileError (kSyntax) at the first fault.
std::vector<ExprPtr> parse_expressions(const std::shared_ptr<const SourceFile>& file);

/// One expression that is all of `text`, as in a string dimension "n * 2"; its places are those of
/// `place`.
ExprPtr parse_expression(const std::shared_ptr<const SourceFile>& file, const std::string& text,
                         const Place& place);

}  // namespace tenon::script::ast
