// SPDX-License-Identifier: Apache-2.0
#include "looks.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tenon/driver/report/page.h"
#include "tenon/driver/report/report.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/time_kernels.h"
#include "tenon/support/markup.h"
#include "tools.h"
#include "values.h"

namespace tenon::python {

using Dims = std::optional<std::map<std::string, int64_t>>;

static const BuiltModel& built_of(const Program& program) {
  if (!program.built())
    throw CompileError(kUnsupported, {},
                       "`{}` was loaded from a library; expected a program that was compiled here",
                       program.name());
  return *program.built();
}

static InputOptions random_inputs(const BuiltModel& built, const Dims& dims) {
  InputOptions options;
  if (dims) options.dims = *dims;
  options.meanings = named_meanings(built.prepared);
  return options;
}

Story explain(const Program& program, const std::string& node) {
  const BuiltModel& built = built_of(program);
  return unlocked([&] {
    Storyteller teller(node, built.prepared);
    CompileRequest request = built.request;
    request.pipeline.after = [&](const Pass& pass, const IRModule& module) {
      teller.after(pass, module);
    };
    const LoweredModule lowered = lower(with_pools(built.prepared, program.options()->c), request);
    return teller.finish(lowered.pipeline.remarks, request.target).at(0);
  });
}

nb::list time_per_kernel(const Program& program, const nb::args& args, int repeat, const Dims& dims,
                         const nb::kwargs& kwargs) {
  const BuiltModel& built = built_of(program);
  const Signature& signature = program.signature();
  std::vector<Ref<TensorData>> inputs;
  if (args.size() + kwargs.size() > 0)
    inputs = inputs_of(signature, args, kwargs);
  else
    inputs = unlocked([&] { return make_inputs(signature, random_inputs(built, dims)); });
  const TimedKernels timed = unlocked(
      [&] { return time_kernels(built, inputs, std::max(repeat, 1), program.options()->threads); });
  std::vector<size_t> order(timed.calls.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto milliseconds = [&](size_t i) {
    return milliseconds_of(timed.times[i], timed.runs.size());
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-milliseconds(a), a) < std::pair(-milliseconds(b), b);
  });
  nb::list out;
  for (const size_t i : order) {
    const InstrumentedCall& call = timed.calls[i];
    out.append(nb::make_tuple(
        call.kernel, call.origin ? nb::object(text(call.origin.name())) : nb::object(nb::none()),
        timed.times[i].runs / static_cast<int64_t>(timed.runs.size()), milliseconds(i)));
  }
  return out;
}

std::string report(const Program& program, int repeat, const Dims& dims) {
  const BuiltModel& built = built_of(program);
  return unlocked([&] {
    ReportOptions options;
    options.model = program.name();
    options.compiler = "Tenon " TENON_VERSION;
    options.repeat = repeat;
    options.threads = program.options()->threads;
    options.inputs = random_inputs(built, dims);
    options.link = program.options()->model.link;
    options.c = program.options()->c;
    return page_of(make_report(with_pools(built.prepared, program.options()->c), built.request,
                               built.request.libraries, options));
  });
}

std::string memory_svg(const Program& program, const std::map<std::string, int64_t>& dims) {
  if (!program.built()) return "";
  return unlocked(
      [&] { return memory::picture_svg(picture_of(program.built()->lowered.plan, dims)); });
}

void bind_looks(nb::module_& m) {
  nb::class_<Story>(m, "Story",
                    "What became of a node of a model, from pass to pass, down to the functions, "
                    "buffers and symbols of the program. Its text tells it.")
      .def_prop_ro("node", [](const Story& story) { return text(story.node); })
      .def_prop_ro(
          "steps",
          [](const Story& story) {
            nb::list out;
            for (const Story::Step& step : story.steps) {
              nb::list lines;
              for (const std::string& line : step.lines) lines.append(text(line));
              out.append(nb::make_tuple(step.pass, lines));
            }
            return out;
          },
          "(pass, lines that it left); the first without a pass: as imported.")
      .def_ro("kernels", &Story::kernels, "That `main` calls for it in the end.")
      .def_ro("libraries", &Story::libraries, "Symbols of foreign functions.")
      .def_ro("symbols", &Story::symbols, "In the artefact.")
      .def_ro("remarks", &Story::remarks, "What the passes decided about it.")
      .def_prop_ro(
          "data",
          [](const Story& story) {
            return imported("json").attr("loads")(text(
                json_of(story).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
          },
          "All of it, as `tenon explain --json` has it.")
      .def("_repr_html_",
           [](const Story& story) { return text("<pre>" + markup(text_of(story)) + "</pre>"); })
      .def("__str__", [](const Story& story) { return text(text_of(story)); })
      .def("__repr__",
           [](const Story& story) { return text("<tenon.Story of `" + story.node + "`>"); });
}

}  // namespace tenon::python
