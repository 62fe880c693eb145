// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/read_relay.h"

#include <algorithm>

#include "tenon/import/names.h"
#include "tenon/import/relay/metadata.h"
#include "tenon/import/relay/parser.h"
#include "tenon/import/relay/translator.h"
#include "tenon/script/parser.h"
#include "tenon/support/names.h"
#include "tenon/tir/stmt.h"

namespace tenon::relay {

using graph::Function;

// ---- the module

IRModule Translator::run() {
  add_scripts();
  for (const Definition& definition : tree_.definitions) {
    if (module_.contains(definition.name))
      fail(kRedefined, definition.place, "function `@{}` is defined twice", definition.name);
    definitions_.emplace(definition.name, &definition);
  }
  find_entry();
  for (const Definition* next : callees_first())
    if (!next->generic) definition(*next);
  refuse_if_any();
  check_params_used();
  return in_order_of_text();
}

// PrimFuncs stand among the functions as TVMScript; the text around each is blanked, so that places
// stay what they are.
void Translator::add_scripts() {
  for (const auto& [text, place] : tree_.scripts) {
    auto alone = std::make_shared<SourceFile>();
    alone->name = file_->name;
    alone->text = std::string(place.line - 1, '\n') + std::string(text);
    const IRModule functions = script::parse_module(std::shared_ptr<const SourceFile>(alone));
    for (const auto& [name, function] : functions.functions()) {
      if (module_.contains(name)) fail(kRedefined, place, "function `@{}` is defined twice", name);
      module_.set(name, function);
    }
  }
}

// The function that programs call: `main`, or the only one that no other calls.
void Translator::find_entry() {
  if (definitions_.count("main")) {
    entry_ = "main";
    return;
  }
  std::set<std::string> called;
  for (const Definition& definition : tree_.definitions)
    called.insert(definition.callees.begin(), definition.callees.end());
  int64_t count = 0;
  for (const Definition& definition : tree_.definitions) {
    if (definition.generic || called.count(definition.name)) continue;
    entry_ = definition.name;
    ++count;
  }
  if (count != 1) entry_.clear();
}

// Definitions after those that they call. \throws CompileError (kRecursion).
std::vector<const Definition*> Translator::callees_first() const {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::map<const Definition*, State> states;
  std::vector<const Definition*> order;
  for (const Definition& root : tree_.definitions) {
    std::vector<std::pair<const Definition*, size_t>> open;
    const auto enter = [&](const Definition* d) {
      states[d] = State::kOpen;
      open.emplace_back(d, 0);
    };
    if (states[&root] == State::kNew) enter(&root);
    while (!open.empty()) {
      auto& [at, next] = open.back();
      if (next == at->callees.size()) {
        states[at] = State::kDone;
        order.push_back(at);
        open.pop_back();
        continue;
      }
      const auto callee = definitions_.find(at->callees[next++]);
      if (callee == definitions_.end() || callee->second->generic) continue;
      const State state = states[callee->second];
      if (state == State::kOpen && !at->generic)
        fail(kRecursion, at->place, "function `@{}` calls `@{}`, which calls it in turn", at->name,
             callee->first);
      if (state == State::kNew) enter(callee->second);
    }
  }
  return order;
}

// One diagnostic for all that is not read, and below it each place.
void Translator::refuse_if_any() {
  if (refusals_.empty()) return;
  CompileError error(kUnsupportedOperator, refusals_.all().front().origin, "{}",
                     refusals_.str("call", "read"));
  constexpr size_t kMostNotes = 100;
  for (size_t i = 0; i < std::min(refusals_.all().size(), kMostNotes); ++i) {
    const Refusal& refusal = refusals_.all()[i];
    error.note(refusal.origin, "`{}`: {}", refusal.name, refusal.form);
  }
  throw error;
}

void Translator::check_params_used() const {
  if (!options_.params || options_.params->empty() || !used_params_.empty()) return;
  if (entry_.empty())
    throw CompileError(
        kBadInput, {},
        "parameters are given for a module without an entry: no function is `@main`, "
        "and not exactly one is called by no other");
  std::string names;
  for (const auto& [name, value] : *options_.params) {
    if (names.size() > 100) break;
    names += (names.empty() ? "`" : ", `") + name + "`";
  }
  throw CompileError(kBadInput, origin(definitions_.at(entry_)->place),
                     "none of the parameters given is one of `@{}`: {}", entry_, names);
}

IRModule Translator::in_order_of_text() const {
  IRModule out;
  out.attrs = module_.attrs;
  for (const auto& [name, function] : module_.functions())
    if (function.as<tir::PrimFunc>()) out.set(name, function);
  for (const Definition& definition : tree_.definitions) {
    const auto inner = lifted_.find(definition.name);
    if (inner != lifted_.end())
      for (const std::string& name : inner->second) out.set(name, module_.find(name));
    if (const BaseFunc function = module_.find(definition.name)) out.set(definition.name, function);
  }
  return out;
}

// ---- functions

void Translator::definition(const Definition& definition) {
  current_ = definition.name;
  bool poisoned = false;
  const auto function = this->function(definition.function, definition.name,
                                       definition.name == entry_, {}, {}, poisoned);
  if (poisoned) poisoned_functions_.insert(definition.name);
  module_.set(definition.name, function);
}

Attrs Translator::attributes(const FunctionTree& tree, const std::string& name,
                             bool is_public) const {
  Attrs attrs;
  for (const Attribute& attr : tree.attrs) {
    if (attr.opaque || attr.tree || attr.is_none) continue;  // targets, devices
    if (attr.name == "global_symbol" && is_public) {
      const auto* symbol = attr.value.as<std::string>();
      if (symbol && *symbol == name) continue;  // implied
    }
    attrs.set(attr.name, attr.value);
  }
  return attrs;
}

static bool is_constant(const Value& value) {
  if (value.as<graph::Constant>() || value.as<graph::FuncRef>()) return true;
  const auto* tuple = value.as<graph::Tuple>();
  return tuple && std::all_of(tuple->values.begin(), tuple->values.end(), is_constant);
}

Ref<TensorData> Translator::given(const Parameter& parameter, const graph::Type& declared) {
  if (!options_.params) return nullptr;
  const auto it = options_.params->find(parameter.name);
  if (it == options_.params->end()) return nullptr;
  used_params_.insert(parameter.name);
  const auto have = graph::TensorType::of(it->second->shape, it->second->dtype);
  const auto* want = declared.as<graph::TensorType>();
  bool fits = want && want->dtype == have->dtype && want->ndim == have->ndim && want->shape;
  for (size_t d = 0; fits && d < want->shape->size(); ++d) {
    const auto known = as_int((*want->shape)[d]);
    fits = !known || *known == it->second->shape[d];
  }
  if (!fits)
    fail(kBadInput, parameter.place,
         "parameter `%{}` is declared as {}; the value given for it is {}", parameter.name,
         graph::str(declared), graph::str(have));
  return it->second;
}

Ref<Function> Translator::function(const FunctionTree& tree, const std::string& name, bool is_entry,
                                   std::vector<std::pair<std::string, Item>> visible,
                                   std::vector<Ref<graph::Var>> captures, bool& poisoned) {
  std::vector<Ref<graph::Var>> params;
  std::vector<std::string> input_names;
  Names dims;
  std::set<std::string> names;
  NameSupply taken;
  Scope scope;
  for (const auto& [key, item] : visible) scope[key] = item;
  for (const Ref<graph::Var>& capture : captures) taken.reserve(capture->name);
  bool renamed = false;
  for (const Parameter& parameter : tree.params) {
    if (!names.insert(parameter.name).second)
      fail(kRedefined, parameter.place, "two parameters are named `%{}`", parameter.name);
    auto written = parameter.type;
    if (!written) written = type_in(parameter.comment);
    if (!written)
      fail(kUnsupported, parameter.place,
           "parameter `%{}` has no type; expected `%{}: Tensor[...]`", parameter.name,
           parameter.name);
    const graph::Type declared = type(*written, dims);
    if (is_entry) {
      if (Ref<TensorData> data = given(parameter, declared)) {
        scope[parameter.name] = {make<graph::Constant>(std::move(data), origin(parameter.place))};
        continue;
      }
    }
    const std::string unique = taken.take(identifier(parameter.name));
    renamed = renamed || unique != parameter.name;
    input_names.push_back(parameter.name);
    params.push_back(make<graph::Var>(unique, declared, false, origin(parameter.place)));
    scope[parameter.name] = {params.back()};
  }
  params.insert(params.end(), captures.begin(), captures.end());

  builder_.begin_function(params);
  std::vector<Scope> outer;
  outer.swap(scopes_);
  scopes_.push_back(std::move(scope));
  Item result = block(tree.body);
  scopes_.swap(outer);
  if (!result.poisoned && (result.value.as<graph::FuncRef>() || !result.captured.empty()))
    fail(kUnsupported, tree.body.result->place, "a function as the result of a function");
  if (!result.poisoned && tree.result)
    check_type(*tree.result, result.value, fmt::format("function `{}` returns", name));
  poisoned = result.poisoned;
  Attrs attrs = attributes(tree, name, definitions_.count(name) != 0);
  if (is_entry && renamed) attrs.set("input_names", input_names);
  const Value leaf = poisoned ? Value(make<graph::PrimValue>(int64(0))) : result.value;
  return builder_.end_function(leaf, std::move(attrs), true, origin(tree.place));
}

// ---- functions within functions

std::string Translator::new_name(const FunctionTree& tree, const std::string& hint) {
  std::string base = hint;
  for (const char* key : {"global_symbol", "Composite"})
    for (const Attribute& attr : tree.attrs)
      if (const auto* text = attr.value.as<std::string>(); text && attr.name == key) base = *text;
  base = identifier(base);
  const auto is_taken = [&](const std::string& name) {
    return module_.contains(name) || definitions_.count(name);
  };
  return fresh_name(base, is_taken, next_name_[base]);
}

// A `fn` becomes a function of the module; values of the function around it that it uses become
// parameters behind its own.
Item Translator::lift(const Tree& tree, const std::string& hint) {
  const FunctionTree& inner = *tree.function;
  std::set<std::string> bound, free;
  for (const Parameter& parameter : inner.params) bound.insert(parameter.name);
  free_names(inner.body, bound, free);

  std::vector<std::pair<std::string, Item>> visible;
  std::vector<Value> captured;
  std::vector<Ref<graph::Var>> params;
  std::map<const Node*, Ref<graph::Var>> param_of;
  NameSupply names;
  const auto capture = [&](const Value& value, const std::string& name) -> Value {
    if (is_constant(value)) return value;
    Ref<graph::Var>& param = param_of[value.get()];
    if (!param) {
      param = make<graph::Var>(names.take(identifier(name) + "_captured"), graph::type_of(value),
                               false, value->origin);
      params.push_back(param);
      captured.push_back(value);
    }
    return param;
  };
  for (const std::string& text : free) {
    std::vector<int64_t> projections;
    std::string base;
    const Item* item = resolve(text, projections, base);
    if (!item) continue;  // reported where it is used
    if (item->poisoned) return {nullptr, {}, true};
    Item inside{capture(item->value, base)};
    for (const Value& value : item->captured) inside.captured.push_back(capture(value, base));
    visible.emplace_back(base, std::move(inside));
  }
  const std::string name = new_name(inner, hint == "lv" ? "function" : hint);
  bool poisoned = false;
  Ref<Function> function = this->function(inner, name, false, std::move(visible), params, poisoned);
  if (poisoned) return {nullptr, {}, true};
  if (!params.empty()) function = renew_definitions(function);
  const_cast<Function*>(function.get())->is_private = true;  // not shared yet
  module_.set(name, function);
  lifted_[current_].push_back(name);
  return {make<graph::FuncRef>(name, origin(tree.place)), std::move(captured)};
}

void Translator::free_names(const Block& block, std::set<std::string> bound,
                            std::set<std::string>& out) {
  for (const Binding& binding : block.bindings) {
    free_names(*binding.value, bound, out);
    bound.insert(binding.name);
  }
  free_names(*block.result, bound, out);
}

void Translator::free_names(const Tree& tree, const std::set<std::string>& bound,
                            std::set<std::string>& out) {
  if (tree.kind == Tree::Kind::kLocal) {
    // Bound by a prefix too: `x.0`.
    std::string_view name = tree.text;
    while (!bound.count(std::string(name))) {
      const size_t dot = name.rfind('.');
      if (dot == std::string_view::npos) {
        out.insert(tree.text);
        return;
      }
      name = name.substr(0, dot);
    }
    return;
  }
  for (const TreePtr& item : tree.items) free_names(*item, bound, out);
  for (const Block& block : tree.blocks) free_names(block, bound, out);
  if (tree.function) {
    std::set<std::string> inner = bound;
    for (const Parameter& parameter : tree.function->params) inner.insert(parameter.name);
    free_names(tree.function->body, inner, out);
  }
}

// ---- reading

static bool refers_to_metadata(const std::vector<Token>& tokens) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [](const Token& token) { return token.is_name("relay.Constant"); });
}

IRModule read_relay(const std::shared_ptr<const SourceFile>& file, const ReadOptions& options) {
  const TokenText text = tokenize(file);
  const ModuleTree tree = parse(file, text);
  std::vector<Ref<TensorData>> constants;
  if (text.metadata.data() != nullptr && refers_to_metadata(text.tokens))
    constants = read_metadata(file, text.metadata, text.metadata_place);
  return Translator(file, tree, std::move(constants), options).run();
}

IRModule read_relay(const std::string& text, const ReadOptions& options) {
  return read_relay(std::make_shared<const SourceFile>(SourceFile{"<relay>", text}), options);
}

}  // namespace tenon::relay
