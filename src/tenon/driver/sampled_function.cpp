// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/sampled_function.h"

#include <algorithm>

#include "tenon/graph/infer.h"
#include "tenon/graph/shape.h"
#include "tenon/import/onnx/node_function.h"

namespace tenon {

using graph::Value;

namespace {

std::vector<double> floats_of(const AttrList& list) {
  std::vector<double> out;
  for (const AttrValue& item : list) out.push_back(graph::number_of(item).value_or(0));
  return out;
}

bool is_whole(const AttrValue& value) { return value.as<int64_t>() || value.as<bool>(); }

onnx::Attribute attribute_of(const AttrValue& value) {
  onnx::Attribute out;
  if (const auto* text = value.as<std::string>()) {
    out.value = *text;
  } else if (const auto* list = value.as<AttrList>()) {
    const bool whole = std::all_of(list->begin(), list->end(), is_whole);
    if (const auto numbers = Attrs{{"v", value}}.ints("v"); whole && numbers)
      out.value = *numbers;
    else
      out.value = floats_of(*list);
  } else if (is_whole(value)) {
    out.value = static_cast<int64_t>(*graph::number_of(value));
  } else {
    out.value = graph::number_of(value).value_or(0);
  }
  return out;
}

// A value that an attribute of this name and kind may have.
int64_t drawn(const std::string& attr, const AttributeWishes& wishes) {
  if (attr == "pads" || attr == "padding") return wishes.pick({0, 1, 2});
  if (attr == "axis" || attr == "axes") return wishes.pick({-1, 0, 1, 2});
  return wishes.pick({1, 2, 3});
}
AttrValue drawn_like(const std::string& attr, const AttrValue& like,
                     const AttributeWishes& wishes) {
  const auto real = [&] { return static_cast<double>(wishes.pick({-3, 1, 2, 5, 7})) / 8; };
  if (const auto* list = like.as<AttrList>()) {
    AttrList out;
    for (const AttrValue& item : *list) out.push_back(drawn_like(attr, item, wishes));
    return out;
  }
  if (like.as<bool>()) return wishes.pick({0, 1}) != 0;
  if (like.as<double>()) return real();
  return drawn(attr, wishes);
}

// `strides_1`: `strides` and 1.
std::pair<std::string, std::optional<size_t>> split(const std::string& name) {
  const size_t cut = name.rfind('_');
  if (cut == std::string::npos || cut + 1 == name.size() ||
      name.find_first_not_of("0123456789", cut + 1) != std::string::npos || name.size() - cut > 4)
    return {name, std::nullopt};
  return {name.substr(0, cut), std::stoul(name.substr(cut + 1))};
}

// Operands of ONNX's operators that are numbers known now, by their places; "" is a tensor.
const std::vector<std::string>& number_operands(const std::string& op_type) {
  static const std::map<std::string, std::vector<std::string>> kNames = {
      {"Clip", {"", "min", "max"}}, {"CumSum", {"", "axis"}},
      {"Expand", {"", "shape"}},    {"Pad", {"", "pads", "constant_value", "axes"}},
      {"ReduceL1", {"", "axes"}},   {"ReduceL2", {"", "axes"}},
      {"ReduceMax", {"", "axes"}},  {"ReduceMean", {"", "axes"}},
      {"ReduceMin", {"", "axes"}},  {"ReduceProd", {"", "axes"}},
      {"ReduceSum", {"", "axes"}},  {"Slice", {"", "starts", "ends", "axes", "steps"}},
      {"Squeeze", {"", "axes"}},    {"Tile", {"", "repeats"}},
      {"TopK", {"", "K"}},          {"Unsqueeze", {"", "axes"}},
  };
  static const std::vector<std::string> kNone;
  const auto found = kNames.find(op_type);
  return found == kNames.end() ? kNone : found->second;
}

class NodeSample {
 public:
  NodeSample(const std::string& op, const std::vector<Ref<graph::Var>>& inputs, size_t outputs,
             const AttributeWishes& wishes, const Origin& origin)
      : op_(op), wishes_(wishes), origin_(origin) {
    node_.op_type = op.substr(op.find("::") + 2);
    row_ = onnx::find_operator("", node_.op_type);
    if (!row_)
      throw CompileError(kUnknownOperator, origin, "the importer has no operator `{}`", op);
    for (size_t i = 0; i < outputs; ++i) node_.outputs.push_back(fmt::format("y{}", i));
    for (const Ref<graph::Var>& input : inputs) {
      auto item = std::make_shared<onnx::Item>();
      item->value = input;
      tensors_.emplace_back(input->name, std::move(item));
    }
  }

  Ref<graph::Function> run() {
    // As the operator is without attributes, where it needs none: their kinds and lengths.
    try {
      defaults_ = converted()->attrs.get<AttrValue::Map>("op_values").value_or(AttrValue::Map());
    } catch (const importers::Unsupported&) {
    } catch (const CompileError&) {
    }
    for (const auto& [name, value] : wishes_.pinned) set(name, value);
    for (const auto& [name, dtype] : wishes_.parameters) draw(name, dtype);
    try {
      return converted();
    } catch (const importers::Unsupported& what) {
      throw CompileError(kUnsupported, origin_, "`{}`: {}", op_, what.form);
    }
  }

 private:
  // ONNX's name of an attribute that a kernel calls as the graph's operator does.
  std::string onnx_name(const std::string& name) const {
    if (defaults_.count(name)) return name;
    for (const graph::OpDef* own : graph::operators_named(node_.op_type))
      for (const auto& [known, value] : defaults_)
        if (graph::own_attribute(own->name, known) == name) return known;
    return name;
  }

  void set(const std::string& given, AttrValue value) {
    const std::string name = onnx_name(given);
    const auto known = defaults_.find(name);
    const auto* list = known == defaults_.end() ? nullptr : known->second.as<AttrList>();
    const auto* values = value.as<AttrList>();
    if (list && (!values || (values->size() == 1 && list->size() > 1)))
      value = AttrList(list->size(), values ? values->front() : value);
    values_[name] = std::move(value);
  }

  void draw(const std::string& param, DType dtype) {
    const auto [base, index] = split(param);
    const bool is_item = index && !defaults_.count(onnx_name(param));
    const std::string name = onnx_name(is_item ? base : param);
    const auto known = defaults_.find(name);
    if (!is_item && known != defaults_.end()) {
      values_[name] = drawn_like(name, known->second, wishes_);
      return;
    }
    if (is_item && known != defaults_.end()) {
      if (drawn_.insert(name).second) values_[name] = drawn_like(name, known->second, wishes_);
      return;
    }
    const AttrValue one = dtype.is_float() ? AttrValue(0.5) : AttrValue(1);
    if (!is_item) {
      values_[name] = drawn_like(name, one, wishes_);
      return;
    }
    const auto* list = values_[name].as<AttrList>();
    AttrList items = list ? *list : AttrList();
    while (items.size() <= *index) items.push_back(drawn_like(name, one, wishes_));
    values_[name] = std::move(items);
  }

  Ref<graph::Function> converted() {
    onnx::Node node = node_;
    const std::vector<std::string>& places = number_operands(node.op_type);
    std::vector<onnx::ItemRef> items;
    size_t next = 0;
    for (size_t i = 0; i < places.size() || next < tensors_.size(); ++i) {
      const std::string place = i < places.size() ? places[i] : std::string();
      const auto value = place.empty() ? values_.end() : values_.find(place);
      if (value != values_.end()) {
        node.inputs.push_back(place);
        items.push_back(number(value->second, place));
      } else if (next < tensors_.size() && (place.empty() || places.size() <= tensors_.size())) {
        node.inputs.push_back(tensors_[next].first);
        items.push_back(tensors_[next++].second);
      } else {
        node.inputs.emplace_back();
        items.push_back(nullptr);
      }
    }
    while (!items.empty() && !items.back()) {
      items.pop_back();
      node.inputs.pop_back();
    }
    for (const auto& [name, value] : values_)
      if (std::find(places.begin(), places.end(), name) == places.end())
        node.attributes[name] = attribute_of(value);
    const auto given = static_cast<int>(items.size());
    if (given < row_->least_inputs || (row_->most_inputs >= 0 && given > row_->most_inputs))
      throw CompileError(kBadArgument, origin_, "`{}` has not {} tensors", op_, given);
    auto made = onnx::node_function(node, *row_, items, onnx::kNewestOpset, nullptr, origin_);
    if (!made || made->operands.size() != tensors_.size())
      throw CompileError(kBadArgument, origin_, "`{}` is no function of {} tensors by itself", op_,
                         tensors_.size());
    return made->function;
  }

  // A scalar has the element type of the first tensor where it is a value (`min`), else int64.
  onnx::ItemRef number(const AttrValue& value, const std::string& place) const {
    const bool is_value = place == "min" || place == "max" || place == "constant_value";
    const DType dtype = is_value && !tensors_.empty() ? tensors_[0].second->type()->dtype : kInt64;
    const auto* list = value.as<AttrList>();
    importers::Elements elements{dtype, {}, {}};
    const bool is_scalar = is_value || place == "axis";
    const AttrList all = list ? *list : AttrList{value};
    if (!is_scalar) elements.shape = {static_cast<int64_t>(all.size())};
    for (const AttrValue& item : all) {
      const double number = graph::number_of(item).value_or(0);
      elements.values.push_back(dtype.is_float() ? imm(dtype, number)
                                                 : int64(static_cast<int64_t>(number)));
    }
    auto out = std::make_shared<onnx::Item>();
    out->elements = std::move(elements);
    out->elements_asked = true;
    return out;
  }

  const std::string& op_;
  const AttributeWishes& wishes_;
  const Origin& origin_;
  onnx::Node node_;
  const onnx::OperatorRow* row_ = nullptr;
  std::vector<std::pair<std::string, onnx::ItemRef>> tensors_;
  AttrValue::Map defaults_, values_;
  std::set<std::string> drawn_;
};

class GroupSample {
 public:
  GroupSample(const IRModule& module, const std::string& name, const graph::Function& pattern,
              const std::vector<Ref<graph::Var>>& inputs, const AttributeWishes& wishes)
      : name_(name),
        pattern_(pattern),
        inputs_(inputs),
        wishes_(wishes),
        attributes_(graph::OperatorAttributes::of(module, pattern)) {}

  Ref<graph::Function> run() {
    if (inputs_.size() != pattern_.params.size())
      throw CompileError(kBadArgument, pattern_.origin, "pattern `{}` has {} parameters", name_,
                         pattern_.params.size());
    choose();
    std::vector<Ref<graph::Var>> params;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      params.push_back(make<graph::Var>(pattern_.params[i]->name, inputs_[i]->type));
      stands_.emplace(pattern_.params[i].get(), params.back());
    }
    IRModule scratch;
    graph::BlockBuilder builder(scratch);
    builder.begin_function(params);
    size_t position = 0;
    for (const Ref<graph::BindingBlock>& block : pattern_.body->blocks)
      for (const Ref<graph::Binding>& binding : block->bindings) {
        const auto* call = binding->value.as<graph::Call>();
        Value value;
        if (call && call->op)
          value = builder.emit(this->call(builder, *call, position++), binding->var->name);
        else
          value = builder.emit(stand_in(binding->value), binding->var->name);
        stands_.emplace(binding->var.get(), value);
      }
    const Value result = builder.emit(stand_in(pattern_.body->body));
    return with(builder.end_function(result, {{"Composite", name_}}, true, pattern_.origin),
                [&](graph::Function& made) { made.is_private = true; });
  }

 private:
  // Values for the attributes that the kernel names, by operator.
  void choose() {
    const auto bindings = graph::operator_bindings(pattern_);
    const auto each = [&](const std::string& name, const auto& use) {
      auto places = attributes_.places(name);
      if (places.empty()) {
        // An item of a list that the pattern writes shorter, or leaves open.
        const auto [base, index] = split(name);
        places = attributes_.places(base);
        for (auto& place : places) place.index = index;
      }
      for (const auto& place : places)
        use(*bindings[place.position]->value.as<graph::Call>(), place);
    };
    for (const auto& [name, value] : wishes_.pinned)
      each(name, [&](const graph::Call& call, const auto& place) {
        const AttrValue* written = call.attrs.find(place.attr);
        const bool is_list = written && written->template as<AttrList>();
        values_[place.position][place.attr] =
            is_list && !value.template as<AttrList>() ? AttrValue(AttrList{value}) : value;
      });
    for (const auto& [name, dtype] : wishes_.parameters)
      each(name, [&, d = dtype](const graph::Call& call, const auto& place) {
        AttrValue& value = values_[place.position][place.attr];
        const AttrValue* written = call.attrs.find(place.attr);
        const auto* list = written ? written->template as<AttrList>() : nullptr;
        const AttrValue one = d.is_float() ? AttrValue(0.5) : AttrValue(1);
        if (!list) {
          value = drawn_like(place.attr, written ? *written : one, wishes_);
          return;
        }
        constexpr size_t kSides = 4;  // begins and ends of two axes
        const auto* had = value.template as<AttrList>();
        AttrList items = had ? *had : AttrList();
        size_t length = std::max(items.size(), place.index.value_or(0) + 1);
        if (place.attr == "padding" && length > 2) length = std::max(length, kSides);
        while (items.size() < length)
          items.push_back(drawn_like(place.attr, list->empty() ? one : list->front(), wishes_));
        value = std::move(items);
      });
  }

  Value call(graph::BlockBuilder& builder, const graph::Call& call, size_t position) {
    Attrs attrs = call.attrs;
    std::vector<Value> args;
    for (const Value& arg : call.args) args.push_back(stand_in(arg));
    const auto chosen = values_.find(position);
    if (chosen != values_.end())
      for (const auto& [name, value] : chosen->second) {
        size_t input = 0;
        while (input < call.op->inputs.size() && call.op->inputs[input].name != name) ++input;
        if (input == call.op->inputs.size() || input >= args.size()) {
          attrs.set(name, value);
          continue;
        }
        const DType dtype = graph::tensor_type(args[0])->dtype;
        const double number = graph::number_of(value).value_or(0);
        args[input] = make<graph::PrimValue>(
            dtype.is_float() ? imm(dtype, number) : imm(dtype, static_cast<int64_t>(number)));
      }
    if (call.op->fusion == graph::FusionKind::kBroadcast && args.size() == 2) {
      args[0] = along_channels(builder, args[0], args[1]);
      args[1] = along_channels(builder, args[1], args[0]);
    }
    return graph::call_op(call.op->name, std::move(args), std::move(attrs), call.origin);
  }

  // A parameter of rank 1 stands for one that the network reshapes to be broadcast.
  static Value along_channels(graph::BlockBuilder& builder, const Value& vector,
                              const Value& other) {
    const auto type = graph::tensor_type(vector), wide = graph::tensor_type(other);
    if (type->ndim != 1 || wide->ndim < 3 || !wide->shape || !type->shape ||
        graph::dims_agree(type->dim(0), wide->dim(1)) != graph::DimsAgree::kYes)
      return vector;
    std::vector<Expr> shape(static_cast<size_t>(wide->ndim), int64(1));
    shape[1] = type->dim(0);
    return builder.emit(
        graph::call_op("reshape", {vector, make<graph::ShapeExpr>(std::move(shape))}), "view");
  }

  Value stand_in(const Value& value) const {
    if (!value) return value;
    if (const auto* tuple = value.as<graph::Tuple>()) {
      std::vector<Value> items;
      for (const Value& item : tuple->values) items.push_back(stand_in(item));
      return make<graph::Tuple>(std::move(items));
    }
    if (const auto* item = value.as<graph::TupleGetItem>())
      return make<graph::TupleGetItem>(stand_in(item->tuple), item->index, item->origin);
    const auto found = stands_.find(value.get());
    return found == stands_.end() ? value : found->second;
  }

  const std::string& name_;
  const graph::Function& pattern_;
  const std::vector<Ref<graph::Var>>& inputs_;
  const AttributeWishes& wishes_;
  const graph::OperatorAttributes attributes_;
  std::map<size_t, AttrValue::Map> values_;  // by position among the operators
  std::map<const Node*, Value> stands_;      // looked up only
};

}  // namespace

Ref<graph::Function> sampled_node(const std::string& op, const std::vector<Ref<graph::Var>>& inputs,
                                  size_t outputs, const AttributeWishes& wishes,
                                  const Origin& origin) {
  return NodeSample(op, inputs, outputs, wishes, origin).run();
}

Ref<graph::Function> sampled_group(const IRModule& module, const std::string& name,
                                   const graph::Function& pattern,
                                   const std::vector<Ref<graph::Var>>& inputs,
                                   const AttributeWishes& wishes) {
  return GroupSample(module, name, pattern, inputs, wishes).run();
}

}  // namespace tenon
