// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/match_graph.h"

namespace tenon::backend {

int MatchGraph::Operator::value_arg(size_t i) const {
  if (i >= args.size() || args[i].kind != Argument::Kind::kValue)
    throw Refusal{"operand", "argument " + std::to_string(i) + " of `" + name + "` is no tensor"};
  return args[i].value;
}

double MatchGraph::Operator::number_arg(size_t i) const {
  if (i >= args.size() || args[i].kind != Argument::Kind::kNumber)
    throw Refusal{"operand", "argument " + std::to_string(i) + " of `" + name +
                                 "` is not known at compile time"};
  return args[i].number;
}

int64_t MatchGraph::Operator::integer(const std::string& key, int64_t fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() || found->second.ints.size() != 1 ? fallback
                                                                     : found->second.ints[0];
}

double MatchGraph::Operator::number(const std::string& key, double fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? fallback : found->second.number;
}

std::string MatchGraph::Operator::text(const std::string& key, const std::string& fallback) const {
  const auto found = attributes.find(key);
  return found == attributes.end() || found->second.text.empty() ? fallback : found->second.text;
}

std::vector<int64_t> MatchGraph::Operator::ints(const std::string& key) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? std::vector<int64_t>() : found->second.ints;
}

int MatchGraph::Part::operator[](const std::string& name) const {
  const auto found = bound.find(name);
  return found == bound.end() ? -1 : found->second;
}

bool MatchGraph::is_scalar(int value, float* number) const {
  const Value& v = (*this)[value];
  if (!v.data || v.dtype != "float32" || elements(value) != 1) return false;
  *number = *static_cast<const float*>(v.data);
  return true;
}

int64_t MatchGraph::elements(int value) const {
  int64_t count = 1;
  for (const int64_t extent : (*this)[value].shape) count *= extent;
  return count;
}

namespace {

MatchGraph::Value value_of(const TenonTensor& tensor) {
  MatchGraph::Value value;
  if (tensor.rank < 0)
    throw Refusal{"rank", "the rank of `" + std::string(tensor.name) + "` is not known"};
  value.dtype = tensor.dtype ? tensor.dtype : "";
  if (tensor.rank > 0) {
    value.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    value.symbols.assign(tensor.symbols, tensor.symbols + tensor.rank);
  }
  return value;
}

class Reader {
 public:
  Reader(const TenonHost* host, std::span<const char* const> names) : host_(host), names_(names) {}

  MatchGraph read(const TenonMatch* match) {
    std::vector<int> inputs;
    for (int32_t i = 0; i < host_->num_inputs(match); ++i) {
      const TenonTensor* tensor = host_->input(match, i);
      MatchGraph::Value value = value_of(*tensor);
      value.input = i;
      value.data = tensor->data;
      inputs.push_back(add(std::move(value)));
    }
    graph_.inputs = inputs;
    graph_.symbols = host_->num_symbols(match);
    graph_.outputs = outputs(match, operators(match, inputs), inputs);
    for (const int output : graph_.outputs)
      if (graph_[output].input >= 0) throw Refusal{"output", "an output is an input"};
    return std::move(graph_);
  }

 private:
  using Results = std::vector<std::vector<int>>;  // values, for each operator and field

  int add(MatchGraph::Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<int>(graph_.values.size()) - 1;
  }

  static int value_at(const Results& results, const TenonOperand& operand,
                      const std::vector<int>& inputs) {
    if (operand.kind == TENON_OPERAND_INPUT) return inputs.at(static_cast<size_t>(operand.index));
    const std::vector<int>& fields = results.at(static_cast<size_t>(operand.index));
    if (static_cast<size_t>(operand.field) >= fields.size())
      throw Refusal{"operand", "a later member of a tuple is used"};
    return fields[static_cast<size_t>(operand.field)];
  }

  std::vector<int> outputs(const TenonMatch* match, const Results& results,
                           const std::vector<int>& inputs) {
    std::vector<int> out;
    for (int32_t i = 0; i < host_->num_outputs(match); ++i)
      out.push_back(value_at(results, *host_->output_source(match, i), inputs));
    return out;
  }

  Results operators(const TenonMatch* match, const std::vector<int>& inputs) {
    Results results;
    for (int32_t op = 0; op < host_->num_operators(match); ++op) {
      if (const TenonMatch* part = host_->part(match, op)) {
        std::vector<int> given;
        for (int32_t i = 0; i < host_->num_operands(match, op); ++i)
          given.push_back(value_at(results, *host_->operand(match, op, i), inputs));
        const size_t inner = graph_.values.size();
        results.push_back(outputs(part, operators(part, given), given));
        for (size_t v = inner; v < graph_.values.size(); ++v) graph_.values[v].symbols.clear();
        continue;
      }
      MatchGraph::Operator made = read_operator(match, op, results, inputs);
      made.result = add(value_of(*host_->result(match, op, 0)));
      results.push_back({made.result});
      graph_.operators.push_back(std::move(made));
    }
    add_part(match, results, inputs);
    return results;
  }

  void add_part(const TenonMatch* match, const Results& results, const std::vector<int>& inputs) {
    MatchGraph::Part part;
    for (const char* name : names_)
      if (const TenonOperand* operand = host_->annotated(match, name))
        part.bound[name] = value_at(results, *operand, inputs);
    if (part.bound.empty()) return;
    part.results = outputs(match, results, inputs);
    graph_.parts.push_back(std::move(part));
  }

  MatchGraph::Operator read_operator(const TenonMatch* match, int32_t op, const Results& results,
                                     const std::vector<int>& inputs) {
    using Kind = MatchGraph::Argument::Kind;
    MatchGraph::Operator made;
    made.name = host_->operator_name(match, op);
    if (made.name.starts_with("relax.")) made.name = made.name.substr(6);
    for (int32_t i = 0; i < host_->num_operands(match, op); ++i) {
      const TenonOperand& operand = *host_->operand(match, op, i);
      MatchGraph::Argument argument;
      switch (operand.kind) {
        case TENON_OPERAND_INPUT:
        case TENON_OPERAND_OPERATOR:
          argument.kind = Kind::kValue;
          argument.value = value_at(results, operand, inputs);
          break;
        case TENON_OPERAND_INTS:
          argument.kind = Kind::kInts;
          argument.ints.assign(operand.ints, operand.ints + operand.count);
          break;
        case TENON_OPERAND_NUMBER:
          argument.kind = Kind::kNumber;
          argument.number = operand.number;
          break;
        case TENON_OPERAND_TEXT:
          argument.kind = Kind::kText;
          argument.text = operand.text ? operand.text : "";
          break;
        default: break;
      }
      made.args.push_back(std::move(argument));
    }
    for (int32_t i = 0; i < host_->num_attributes(match, op); ++i) {
      const char* name = host_->attribute_name(match, op, i);
      MatchGraph::Attribute attribute;
      int32_t count = 0;
      if (const int64_t* ints = host_->attribute_ints(match, op, name, &count)) {
        attribute.is_ints = true;
        attribute.ints.assign(ints, ints + count);
      } else if (const int64_t known = host_->attribute_int(match, op, name, INT64_MIN);
                 known != INT64_MIN) {
        attribute.ints = {known};  // a truth value
      }
      attribute.number = host_->attribute_number(match, op, name, 0);
      if (const char* text = host_->attribute_text(match, op, name)) attribute.text = text;
      made.attributes[name] = std::move(attribute);
    }
    return made;
  }

  const TenonHost* host_;
  std::span<const char* const> names_;
  MatchGraph graph_;
};

}  // namespace

MatchGraph read_match(const TenonHost* host, const TenonMatch* match,
                      std::span<const char* const> names) {
  return Reader(host, names).read(match);
}

}  // namespace tenon::backend
