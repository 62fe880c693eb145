// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/bind_options.h"

#include "tenon/driver/npy.h"
#include "tenon/graph/transforms.h"
#include "tenon/import/relay/params.h"
#include "tenon/ir/pass.h"
#include "tenon/script/constants.h"
#include "tenon/support/mapped_file.h"

namespace tenon {

namespace {

CompileError bad_option(const char* pass, const char* option, const AttrValue& value,
                        const char* wanted) {
  return {kBadOption,  {},    "option `{}` of `{}` is {}; expected {}", option, pass,
          value.str(), wanted};
}

// Numbers of a nested list, and its shape.
void flatten(const AttrValue& value, size_t depth, std::vector<int64_t>& shape,
             std::vector<AttrValue>& numbers) {
  constexpr size_t kMostDims = 16;
  const auto wrong = [&] {
    return bad_option("BindParams", "params", value, "numbers in lists of equal lengths");
  };
  if (const auto* list = value.as<AttrList>()) {
    const auto length = static_cast<int64_t>(list->size());
    if (depth == shape.size() && numbers.empty() && depth < kMostDims) shape.push_back(length);
    if (depth >= shape.size() || shape[depth] != length) throw wrong();
    for (const AttrValue& item : *list) flatten(item, depth + 1, shape, numbers);
    return;
  }
  if (depth != shape.size()) throw wrong();
  numbers.push_back(value);
}

// An integer stays one, whatever its size: nothing goes through double that is none.
bool append(const AttrValue& number, DType dtype, std::vector<std::byte>& out) {
  if (const auto* integer = number.as<int64_t>())
    return script::append_element(dtype, *integer, out);
  if (const auto* real = number.as<double>()) return script::append_element(dtype, *real, out);
  const auto* flag = number.as<bool>();
  return flag && script::append_element(dtype, int64_t{*flag}, out);
}

Ref<TensorData> literal(const AttrValue& value, DType dtype) {
  std::vector<int64_t> shape;
  std::vector<AttrValue> numbers;
  flatten(value, 0, shape, numbers);
  std::vector<std::byte> elements;
  for (const AttrValue& number : numbers)
    if (!append(number, dtype, elements))
      throw bad_option("BindParams", "params", number,
                       ("a number of " + dtype.str() + ", or a .npy file").c_str());
  return TensorData::owned(dtype, std::move(shape), std::move(elements));
}

// Of a parameter; float32 where there is none of the name, which is reported later.
DType dtype_of(const IRModule& module, const std::string& function, const std::string& name) {
  if (const auto found = module.find<graph::Function>(function))
    for (const Ref<graph::Var>& param : found->params)
      if (const auto* type = param->type.as<graph::TensorType>(); type && param->name == name)
        return type->dtype;
  return kFloat32;
}

}  // namespace

static std::string bound_function(const Attrs& options) {
  return options.get<std::string>("func_name").value_or("main");
}

std::map<std::string, Ref<TensorData>> bound_params(const IRModule& module, const Attrs& options) {
  const std::string function = bound_function(options);
  const AttrValue* given = options.find("params");
  std::map<std::string, Ref<TensorData>> params;
  if (const auto* path = given ? given->as<std::string>() : nullptr) {
    const auto file = MappedFile::open(*path);
    params = relay::read_params(file->bytes(), file, *path);
  } else if (const auto* map = given ? given->as<AttrValue::Map>() : nullptr) {
    for (const auto& [name, value] : *map) {
      const auto* npy = value.as<std::string>();
      params[name] = npy ? read_npy(*npy) : literal(value, dtype_of(module, function, name));
    }
  } else {
    throw bad_option("BindParams", "params", given ? *given : AttrValue(),
                     "a file of parameters, or {\"w\": \"w.npy\"}");
  }
  return params;
}

IRModule run_bind_params(IRModule module, const Attrs& options) {
  const auto params = bound_params(module, options);
  return graph::bind_params(std::move(module), params, bound_function(options));
}

IRModule run_bind_symbolic_vars(IRModule module, const Attrs& options) {
  const AttrValue* given = options.find("binding_map");
  const auto* map = given ? given->as<AttrValue::Map>() : nullptr;
  std::map<std::string, int64_t> dims;
  if (!map)
    throw bad_option("BindSymbolicVars", "binding_map", given ? *given : AttrValue(),
                     "sizes by name: {\"n\": 4}");
  for (const auto& [name, value] : *map) {
    const auto* size = value.as<int64_t>();
    if (!size || *size < 0)
      throw bad_option("BindSymbolicVars", "binding_map", *given, "sizes of at least 0");
    dims[name] = *size;
  }
  return graph::bind_symbolic_vars(std::move(module), dims, options.get<std::string>("func_name"));
}

IRModule run_lift_transform_params(IRModule module, const Attrs& options) {
  graph::SharedTransform shared;
  if (const AttrValue* given = options.find("shared_transform")) {
    shared.functions = options.strings("shared_transform");
    if (const auto* all = given->as<bool>())
      shared.all = *all;
    else if (!shared.functions && !given->is_none())
      throw bad_option("LiftTransformParams", "shared_transform", *given,
                       "True, False or a list of functions");
  }
  return graph::lift_transform_params(std::move(module), shared);
}

}  // namespace tenon
