// SPDX-License-Identifier: Apache-2.0
// The report as JSON.
#include <nlohmann/json.hpp>

#include "tenon/driver/report/report.h"

namespace tenon {

using Json = nlohmann::ordered_json;

template <typename T>
static Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// A number where it is one, otherwise its text.
static Json size_json(const Expr& expr) {
  if (!expr) return {};
  const auto number = as_int(expr);
  return number ? Json(*number) : Json(str(expr));
}

static Json ports(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) list.push_back({{"name", port.name}, {"type", port.str()}});
  return list;
}

static Json plan_json(const Report& report) {
  const memory::Picture picture = picture_of(report.plan, report.dims);
  Json allocations = Json::array();
  for (const ProgramPlan::Allocation& each : report.plan.allocations)
    allocations.push_back({{"name", each.name},
                           {"type", each.type},
                           {"memory", each.memory},
                           {"bytes", size_json(each.bytes)},
                           {"offset", size_json(each.offset)},
                           {"lower", each.lower},
                           {"upper", each.upper},
                           {"node", each.origin ? each.origin.name() : ""}});
  return {{"bytes", size_json(report.plan.bytes)},
          {"peak", picture.peak},
          {"lower_bound", picture.bound},
          {"steps", report.plan.steps},
          {"constant_bytes", report.constant_bytes},
          {"use", json_of(report.memory)},
          {"allocations", std::move(allocations)}};
}

static Json calls_json(const Report& report) {
  Json calls = Json::array();
  for (size_t i = 0; i < report.calls.size(); ++i) {
    const Report::Call& call = report.calls[i];
    const ProgramPlan::Call& planned = report.plan.calls[i];
    Json operators = Json::array();
    for (const Report::Operator& op : call.operators)
      operators.push_back({{"node", op.node}, {"type", op.type}});
    calls.push_back({{"function", planned.callee},
                     {"symbol", planned.symbol},
                     {"provider", call.provider},
                     {"step", planned.step},
                     {"operators", std::move(operators)},
                     {"flop", optional(call.flop)},
                     {"ms", optional(call.milliseconds)},
                     {"runs", call.runs}});
  }
  return calls;
}

Json json_of(const Report& report) {
  Json json = {{"model", report.model},
               {"compiler", report.compiler},
               {"target", report.target},
               {"inputs", ports(report.signature.inputs)},
               {"outputs", ports(report.signature.outputs)},
               {"dims", report.dims},
               {"operators", report.operators},
               {"gflop", report.gflop},
               {"account", report.account},
               {"passes", Json::array()},
               {"memory", plan_json(report)},
               {"calls", calls_json(report)},
               {"edges", Json::array()},
               {"kernels", Json::array()},
               {"c", Json::array()},
               {"stories", Json::array()},
               {"remarks", Json::array()},
               {"run", nullptr},
               {"not_run", report.not_run}};
  for (const Report::Step& step : report.steps)
    json["passes"].push_back({{"pass", step.name}, {"seconds", step.seconds}});
  const auto place = [](int64_t call) { return call < 0 ? Json() : Json(call); };
  for (const Report::Edge& edge : report.edges)
    json["edges"].push_back({{"from", place(edge.from)},
                             {"to", place(edge.to)},
                             {"memory", report.plan.memories[edge.memory].name},
                             {"type", report.plan.memories[edge.memory].type}});
  for (const Report::Kernel& kernel : report.kernels)
    json["kernels"].push_back({{"function", kernel.function},
                               {"symbol", kernel.symbol},
                               {"calls", kernel.calls},
                               {"tensor_ir", kernel.tensor_ir},
                               {"scheduled", kernel.scheduled},
                               {"assembly", kernel.assembly},
                               {"c", kernel.c}});
  for (const Report::CText& text : report.c)
    json["c"].push_back({{"name", text.name}, {"text", text.text}});
  for (const Story& story : report.stories) json["stories"].push_back(json_of(story));
  for (const Remark& remark : report.remarks) json["remarks"].push_back(json_of(remark));
  if (report.run)
    json["run"] = {{"threads", report.run->threads},
                   {"runs", report.run->runs},
                   {"min_ms", report.run->fastest * 1e3},
                   {"median_ms", report.run->median * 1e3}};
  return json;
}

}  // namespace tenon
