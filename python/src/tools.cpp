// SPDX-License-Identifier: Apache-2.0
// The interpreter, the memory planner and the command line alone, and modules as HTML.
#include "tools.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "arrays.h"
#include "tenon/driver/command_line.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/probe.h"
#include "tenon/memory/csv.h"
#include "tenon/memory/picture.h"
#include "tenon/memory/pools.h"
#include "tenon/memory/report.h"
#include "tenon/script/highlight.h"
#include "tenon/script/printer.h"
#include "tenon/support/nearest.h"
#include "values.h"

namespace tenon::python {

std::vector<Ref<TensorData>> inputs_of(const Signature& signature, const nb::tuple& args,
                                       const nb::dict& kwargs) {
  std::vector<Ref<TensorData>> inputs(signature.inputs.size());
  if (args.size() > inputs.size())
    throw nb::type_error(
        fmt::format("the function takes {} inputs; {} were given", inputs.size(), args.size())
            .c_str());
  for (size_t i = 0; i < args.size(); ++i)
    inputs[i] = tensor_of(args[i], signature.inputs[i].dtype);
  for (const auto& [key, value] : kwargs) {
    const auto name = nb::cast<std::string>(key);
    std::vector<std::string> names;
    for (const Port& port : signature.inputs) names.push_back(port.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw nb::type_error(
          fmt::format("the function has no input `{}`{}", name, did_you_mean(name, names)).c_str());
    Ref<TensorData>& input = inputs[static_cast<size_t>(found - names.begin())];
    if (input) throw nb::type_error(fmt::format("input `{}` is given twice", name).c_str());
    input = tensor_of(value, signature.inputs[static_cast<size_t>(found - names.begin())].dtype);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i])
      throw nb::type_error(fmt::format("the function needs input `{}`, {}",
                                       signature.inputs[i].name, signature.inputs[i].str())
                               .c_str());
  return inputs;
}

nb::object interpret(const IRModule& module, const std::string& function,
                     const std::vector<std::string>& link, const nb::tuple& args,
                     const nb::dict& kwargs) {
  std::unique_ptr<Executable> program = unlocked([&] {
    const IRModule entered = with_entry(module, function);
    return interpreted(entered, open_libraries(entered, link));
  });
  const std::vector<Ref<TensorData>> inputs = inputs_of(program->signature(), args, kwargs);
  const auto outputs = unlocked([&] { return program->run(inputs); });
  nb::list arrays;
  for (const Ref<TensorData>& output : outputs) arrays.append(to_numpy(output));
  if (arrays.size() == 1) return arrays[0];
  return nb::tuple(arrays);
}

namespace {

// As `tenon plan --json` tells it, and a picture of each pool.
std::pair<std::string, std::vector<std::string>> plan(const std::vector<nb::tuple>& buffers,
                                                      const std::vector<std::string>& pools,
                                                      std::optional<int64_t> capacity,
                                                      std::optional<int64_t> work_limit) {
  memory::Problem problem;
  for (const nb::tuple& row : buffers) {
    if (row.size() < 4)
      throw nb::type_error(
          "a buffer is (name, first step, step after the last, bytes[, alignment])");
    memory::Allocation& buffer = problem.buffers.emplace_back();
    buffer.name = nb::cast<std::string>(nb::str(row[0]));
    buffer.lower = nb::cast<int64_t>(row[1]);
    buffer.upper = nb::cast<int64_t>(row[2]);
    buffer.bytes = nb::cast<int64_t>(row[3]);
    if (row.size() > 4) buffer.alignment = nb::cast<int64_t>(row[4]);
  }
  return unlocked([&] {
    problem.pools[0].capacity = capacity;
    if (!pools.empty()) problem.pools = memory::writable_pools(pools);
    memory::PlanOptions options;
    if (work_limit) options.work_limit = *work_limit;
    const memory::Plan plan = memory::plan_pools(problem, options);
    std::vector<std::string> pictures;
    for (int pool = 0; pool < static_cast<int>(problem.pools.size()); ++pool)
      pictures.push_back(picture_svg(picture_of(problem, plan, pool)));
    return std::pair(
        plan_json(problem, plan).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
        std::move(pictures));
  });
}

std::vector<nb::tuple> read_problem(const std::string& path) {
  const memory::Problem problem = unlocked([&] { return memory::read_csv(path).problem; });
  std::vector<nb::tuple> out;
  for (const memory::Allocation& buffer : problem.buffers)
    out.push_back(
        nb::make_tuple(buffer.name, buffer.lower, buffer.upper, buffer.bytes, buffer.alignment));
  return out;
}

// Arguments are bytes, since names of files need be no text. `own`: the words that start this again,
// for commands that run others.
int run_command_line(const std::vector<nb::bytes>& arguments, std::vector<std::string> own) {
  set_own_command(std::move(own));
  std::vector<std::string> words = {"tenon"};
  for (const nb::bytes& word : arguments) words.emplace_back(word.c_str(), word.size());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int count = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  const nb::gil_scoped_release unlocked;
  return command_line(count, argv.data());
}

}  // namespace

void bind_tools(nb::module_& m) {
  m.def("_interpret", &interpret, nb::arg("module"), nb::arg("function"), nb::arg("link"),
        nb::arg("args"), nb::arg("kwargs"));
  m.def("_plan", &plan, nb::arg("buffers"), nb::arg("pools"), nb::arg("capacity").none(),
        nb::arg("work_limit").none());
  m.def("_read_problem", &read_problem, nb::arg("path"));
  m.def("_command_line", &run_command_line, nb::arg("arguments"), nb::arg("own"),
        "What the program `tenon` does with these arguments; its exit status.");
  m.def(
      "_html_of", [](const std::string& text) { return script::html_of(text); }, nb::arg("text"),
      "A text of Python as HTML, coloured.");
}

}  // namespace tenon::python
