// SPDX-License-Identifier: Apache-2.0
// Schedules of kernels: the primitives of the compiler's table, applied to Python's values.
#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "common.h"
#include "function.h"
#include "operators.h"
#include "script_values.h"
#include "tenon/script/printer.h"
#include "tenon/script/trace_text.h"
#include "tenon/support/codes.h"
#include "tenon/support/nearest.h"
#include "tenon/tir/schedule/primitives.h"
#include "values.h"

namespace tenon::python {

namespace {

using tir::ArgumentKind;
using tir::BlockRV;
using tir::LoopRV;
using tir::Primitive;
using tir::TraceValue;

/// Kernels that tensorize may name, registered by Python.
tir::TensorIntrins& registered_intrins() {
  static tir::TensorIntrins intrins;
  return intrins;
}

std::vector<tir::TensorIntrin> intrin_list() {
  std::vector<tir::TensorIntrin> out;
  for (const auto& [name, intrin] : registered_intrins()) out.push_back(intrin);
  return out;
}

std::string described(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

template <typename... Args>
[[noreturn]] void bad_argument(fmt::format_string<Args...> format, Args&&... args) {
  throw CompileError(kBadArgument, {}, format, std::forward<Args>(args)...);
}

/// The PrimFuncs of a module under schedules of their own, of which one is worked on.
class Schedule {
 public:
  Schedule(const IRModule& module, std::optional<std::string> function)
      : module_(module), name_(function ? *function : only_function(module)) {
    (void)current();
  }

  void work_on(const std::string& name) {
    const std::string before = std::exchange(name_, name);
    try {
      (void)current();
    } catch (const CompileError&) {
      name_ = before;
      throw;
    }
  }
  const std::string& name() const { return name_; }

  tir::Schedule& current() {
    const auto known = schedules_.find(name_);
    if (known != schedules_.end()) return known->second;
    const auto function = module_.find<tir::PrimFunc>(name_);
    if (!function)
      bad_argument("the module has no PrimFunc `{}`{}", name_,
                   did_you_mean(name_, prim_funcs(module_)));
    return schedules_.emplace(name_, tir::Schedule(function)).first->second;
  }

  /// The module with the functions as they are now. What a primitive has changed is left as it is
  /// by the default schedule.
  IRModule module() const {
    IRModule out = module_;
    for (const auto& [name, schedule] : schedules_) {
      if (!schedule.has_changed()) continue;
      out.set(name, schedule.func()->with_attr("tir.is_scheduled", true));
      for (const auto& [callee, intrin] : schedule.trace().intrins)
        if (!out.contains(callee)) out.set(callee, intrin.implementation);
    }
    return out;
  }

  /// \throws CompileError with the loops and blocks of the function, those of `inputs` marked.
  template <typename Work>
  auto changed(const std::vector<TraceValue>& inputs, const Work& work) {
    tir::Schedule& schedule = current();
    const tir::Schedule before = schedule;
    try {
      return unlocked([&] { return work(schedule); });
    } catch (CompileError& error) {
      schedule = before;
      if (error.first().code.id == kScheduleIllegal.id) point_at(error, inputs);
      throw;
    } catch (...) {
      schedule = before;
      throw;
    }
  }

 private:
  static std::vector<std::string> prim_funcs(const IRModule& module) {
    std::vector<std::string> out;
    for (const auto& [name, function] : module.functions())
      if (function.as<tir::PrimFunc>()) out.push_back(name);
    return out;
  }
  static std::string only_function(const IRModule& module) {
    const std::vector<std::string> names = prim_funcs(module);
    if (names.size() == 1) return names[0];
    if (module.find<tir::PrimFunc>("main")) return "main";
    if (names.empty()) bad_argument("the module has no PrimFunc to schedule");
    bad_argument("the module has several PrimFuncs, {}; expected function= to say which",
                 fmt::join(names, ", "));
  }

  void point_at(CompileError& error, const std::vector<TraceValue>& inputs) {
    const tir::Schedule& schedule = current();
    std::vector<NodePtr> marked;
    for (const TraceValue& input : inputs) {
      if (const auto* loop = std::get_if<LoopRV>(&input))
        marked.push_back(loop->var);
      else if (const auto& block = std::get<BlockRV>(input); schedule.has_block(block.name))
        marked.push_back(schedule.get(block));
    }
    std::string nests = script::print_nests(schedule.func(), name_, marked);
    while (nests.ends_with('\n')) nests.pop_back();
    error.note({}, "the loops are\n{}", nests);
  }

  IRModule module_;
  std::string name_;
  std::map<std::string, tir::Schedule> schedules_;
};

// ---- arguments

// A block may be given by its name.
TraceValue input_of(const Primitive& primitive, size_t i, nb::handle value) {
  std::optional<TraceValue> given;
  if (nb::isinstance<LoopRV>(value)) given = nb::cast<LoopRV>(value);
  if (nb::isinstance<BlockRV>(value)) given = nb::cast<BlockRV>(value);
  if (nb::isinstance<nb::str>(value)) given = BlockRV{nb::cast<std::string>(value)};
  if (!given)
    bad_argument("`{}` is given {}; expected {}", primitive.name, described(value),
                 words_of(primitive.input_kind(i)));
  if (const auto misfit = misfit_of_input(primitive, i, *given)) bad_argument("{}", *misfit);
  return *given;
}

AttrValue any_of(nb::handle value) {
  if (nb::isinstance<PrimExpr>(value)) {
    const Expr& expr = nb::cast<const PrimExpr&>(value).node;
    if (const auto number = as_int(expr)) return *number;
    return NodePtr(expr);
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    AttrList out;
    for (const nb::handle item : nb::iter(value)) out.push_back(any_of(item));
    return out;
  }
  return attr_of(value);
}

// What a function of Python makes of variables for the indices.
AttrValue index_map_of(nb::handle function) {
  if (!PyCallable_Check(function.ptr()))
    bad_argument("`index_map` is {}; expected {}", described(function),
                 words_of(ArgumentKind::kIndexMap));
  AttrList from, to;
  nb::list variables;
  const nb::object parameters = imported("inspect").attr("signature")(function).attr("parameters");
  for (const nb::handle name : nb::iter(parameters)) {
    const Ref<Var> index = var(nb::cast<std::string>(name));
    from.push_back(NodePtr(index));
    variables.append(nb::cast(PrimExpr{index}));
  }
  const nb::object result = nb::borrow(function)(*nb::tuple(variables));
  const bool several = nb::isinstance<nb::list>(result) || nb::isinstance<nb::tuple>(result);
  const nb::object items = several ? result : nb::object(nb::make_tuple(result));
  for (const nb::handle item : nb::iter(items)) {
    if (nb::isinstance<nb::int_>(item))
      to.push_back(NodePtr(int64(nb::cast<int64_t>(item))));
    else if (nb::isinstance<PrimExpr>(item))
      to.push_back(NodePtr(nb::cast<const PrimExpr&>(item).node));
    else
      bad_argument("`index_map` gives {}; expected expressions of its parameters", described(item));
  }
  return AttrList{AttrValue(from), AttrValue(to)};
}

// A buffer may be given by its name.
AttrValue buffer_of(const tir::Schedule& schedule, const std::vector<TraceValue>& inputs,
                    nb::handle value) {
  if (!nb::isinstance<nb::str>(value)) return any_of(value);
  const auto name = nb::cast<std::string>(value);
  const Ref<tir::Block> block = schedule.get(std::get<BlockRV>(inputs.at(0)));
  std::vector<std::string> names;
  for (const bool writes : {true, false}) {
    const auto& regions = writes ? block->writes : block->reads;
    for (size_t i = 0; i < regions.size(); ++i) {
      names.push_back(regions[i]->buffer->name);
      if (names.back() == name)
        return AttrList{AttrValue(writes ? "write" : "read"), AttrValue(static_cast<int64_t>(i))};
    }
  }
  bad_argument("block `{}` uses no buffer `{}`{}", block->name, name, did_you_mean(name, names));
}

nb::object result_of(const Primitive& primitive, const std::vector<TraceValue>& results) {
  nb::list out;
  for (const TraceValue& result : results) {
    if (const auto* loop = std::get_if<LoopRV>(&result))
      out.append(nb::cast(*loop));
    else if (const auto* number = std::get_if<tir::NumberRV>(&result))
      out.append(nb::cast(PrimExpr{number->var}));
    else
      out.append(nb::cast(std::get<BlockRV>(result)));
  }
  if (primitive.gives_list()) return out;
  return out.size() == 0 ? nb::none() : nb::object(out[0]);
}

nb::object apply(Schedule& of, const std::string& name, const nb::list& given_inputs,
                 const nb::list& given_attrs) {
  const Primitive* primitive = tir::find_primitive(name);
  if (!primitive) bad_argument("`{}` is no primitive of schedules", name);
  std::vector<TraceValue> inputs;
  for (const nb::handle value : given_inputs)
    inputs.push_back(input_of(*primitive, inputs.size(), value));
  std::vector<AttrValue> attrs;
  for (const nb::handle value : given_attrs) {
    const ArgumentKind kind = primitive->attrs.at(attrs.size()).kind;
    attrs.push_back(kind == ArgumentKind::kIndexMap ? index_map_of(value)
                    : kind == ArgumentKind::kBuffer ? buffer_of(of.current(), inputs, value)
                                                    : any_of(value));
    if (const auto misfit = misfit_of_attr(*primitive, attrs.size() - 1, attrs.back()))
      bad_argument("{}", *misfit);
  }
  const tir::TensorIntrins intrins = registered_intrins();  // others may be added meanwhile
  const auto results = of.changed(inputs, [&](tir::Schedule& schedule) {
    return tir::apply(schedule, *primitive, inputs, attrs, intrins);
  });
  return result_of(*primitive, results);
}

const char* words_of(Primitive::Result result) {
  switch (result) {
    case Primitive::Result::kNone: return "None";
    case Primitive::Result::kLoop: return "LoopRV";
    case Primitive::Result::kLoops: return "list[LoopRV]";
    case Primitive::Result::kBlock: return "BlockRV";
    case Primitive::Result::kBlocks: return "list[BlockRV]";
    case Primitive::Result::kNumber: return "PrimExpr";
    case Primitive::Result::kNumbers: return "list[PrimExpr]";
  }
  unreachable("a kind of result that does not exist");
}

// (name, summary, parameters, how many of them are loops and blocks, any number of these, result);
// of a parameter (name, what it is, its meaning, has a default, the default).
nb::list primitive_table() {
  nb::list out;
  for (const Primitive& primitive : tir::all_primitives()) {
    nb::list parameters;
    const auto add = [&](const Primitive::Parameter& p) {
      parameters.append(nb::make_tuple(p.name, std::string(words_of(p.kind)), p.meaning,
                                       p.default_value.has_value(),
                                       to_python(p.default_value.value_or(AttrValue()))));
    };
    for (const auto& input : primitive.inputs) add(input);
    for (const auto& attr : primitive.attrs) add(attr);
    const char* result = words_of(primitive.result);
    out.append(nb::make_tuple(primitive.name, primitive.summary, parameters,
                              primitive.inputs.size(), primitive.is_variadic, result));
  }
  return out;
}

// ---- traces

struct Trace {
  tir::Trace trace;
};

void replay(Schedule& of, nb::handle what) {
  if (nb::isinstance<Trace>(what)) {
    const tir::Trace trace = nb::cast<const Trace&>(what).trace;
    of.changed({}, [&](tir::Schedule& schedule) {
      tir::replay(trace, schedule);
      return 0;
    });
    return;
  }
  if (!nb::isinstance<nb::str>(what))
    bad_argument("replay is given {}; expected a trace, or the text of one", described(what));
  const auto text = nb::cast<std::string>(what);
  const std::vector<tir::TensorIntrin> intrins = intrin_list();
  of.changed({}, [&](tir::Schedule& schedule) {
    tir::replay(script::parse_trace(text, schedule.func(), intrins), schedule);
    return 0;
  });
}

std::vector<std::string> lines_of(const Trace& trace) {
  std::vector<std::string> out;
  const std::string text = trace.trace.str();
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    out.push_back(text.substr(at, end - at));
  return out;
}

void bind_random_variables(nb::module_& m) {
  nb::class_<BlockRV>(m, "BlockRV", "A block of a schedule, by its name.")
      .def_ro("name", &BlockRV::name)
      .def("__eq__",
           [](const BlockRV& a, nb::handle b) {
             return nb::isinstance<BlockRV>(b) && a == nb::cast<const BlockRV&>(b);
           })
      .def("__hash__", [](const BlockRV& rv) { return std::hash<std::string>()(rv.name); })
      .def("__repr__", [](const BlockRV& rv) { return "<tenon.tir.BlockRV `" + rv.name + "`>"; });
  nb::class_<LoopRV>(m, "LoopRV", "A loop of a schedule, by its variable.")
      .def_prop_ro("name", [](const LoopRV& rv) { return rv.var->name; })
      .def("__eq__",
           [](const LoopRV& a, nb::handle b) {
             return nb::isinstance<LoopRV>(b) && a == nb::cast<const LoopRV&>(b);
           })
      .def("__hash__", [](const LoopRV& rv) { return std::hash<const void*>()(rv.var.get()); })
      .def("__repr__",
           [](const LoopRV& rv) { return "<tenon.tir.LoopRV `" + rv.var->name + "`>"; });
  nb::class_<Trace>(m, "Trace",
                    "The primitives that were applied to a function, in order. Its text is Python "
                    "that applies them to a schedule `sch`.")
      .def("as_python", &lines_of, "A line for each primitive.")
      .def(
          "apply_to_schedule",
          [](const Trace& trace, Schedule& to) { replay(to, nb::cast(trace)); }, nb::arg("sch"),
          "Applies the primitives after those that `sch` has.")
      .def("__len__", [](const Trace& trace) { return trace.trace.instructions().size(); })
      .def("__str__", [](const Trace& trace) { return trace.trace.str(); })
      .def("__repr__", [](const Trace& trace) { return trace.trace.str(); });
}

nb::object value_of(Schedule& of, nb::handle rv) {
  const tir::Schedule& schedule = of.current();
  if (nb::isinstance<LoopRV>(rv)) return nb::cast(Stmt{schedule.get(nb::cast<LoopRV>(rv))});
  if (nb::isinstance<BlockRV>(rv)) return nb::cast(Stmt{schedule.get(nb::cast<BlockRV>(rv))});
  if (nb::isinstance<PrimExpr>(rv)) {
    const AttrValue value = any_of(rv);
    return to_python(schedule.with_numbers(value).value_or(value));
  }
  throw nb::type_error((described(rv) + " is no block, loop or number of a schedule").c_str());
}

}  // namespace

void bind_schedule(nb::module_& m) {
  nb::class_<Schedule> schedule(m, "_Schedule");
  bind_random_variables(m);
  schedule
      .def(nb::init<const IRModule&, std::optional<std::string>>(), nb::arg("module"),
           nb::arg("function").none())
      .def(nb::init<const Schedule&>(), nb::arg("of"), "A copy.")
      .def("_apply", &apply, nb::arg("name"), nb::arg("inputs"), nb::arg("attrs"))
      .def("work_on", &Schedule::work_on, nb::arg("func_name"),
           "Makes another PrimFunc of the module the one that primitives change.")
      .def_prop_ro("func_working_on", &Schedule::name)
      .def_prop_ro("mod", &Schedule::module,
                   "The module with the functions as they are now. Those that a primitive has "
                   "changed have attribute `tir.is_scheduled`: compiling leaves their loops alone.")
      .def_prop_ro(
          "func",
          [](const Schedule& of) {
            auto module = std::make_shared<const IRModule>(of.module());
            return Function{of.name(), module->find(of.name()), module};
          },
          "The function that is worked on.")
      .def_prop_ro(
          "trace", [](Schedule& of) { return Trace{of.current().trace()}; },
          "What has been applied to the function that is worked on.")
      .def_prop_ro(
          "symbols",
          [](Schedule& of) {
            nb::dict out;
            for (const Ref<Var>& symbol : of.current().trace().symbols)
              out[symbol->name.c_str()] = PrimExpr{symbol};
            return out;
          },
          "The symbolic dimensions of the function by name, for factors.")
      .def_prop_ro(
          "blocks", [](Schedule& of) { return of.current().blocks(); },
          "All blocks below the root, in program order.")
      .def(
          "get", [](Schedule& of, nb::handle rv) { return value_of(of, rv); }, nb::arg("rand_var"),
          "What a random variable is now: the statement of a loop or block, the number of an "
          "expression of numbers.")
      .def(
          "seed", [](Schedule& of, uint64_t seed) { of.current().seed(seed); }, nb::arg("seed"),
          "Of the numbers that are drawn from now on. The same seed draws the same everywhere.")
      .def(
          "fork_seed", [](Schedule& of) { return of.current().fork_seed(); },
          "A seed for another schedule.")
      .def(
          "replay", [](Schedule& of, nb::handle trace) { replay(of, trace); }, nb::arg("trace"),
          "Applies a trace, or the text of one, after what has been applied.");
  m.def("_primitives", &primitive_table);
  m.def(
      "_register_intrin",
      [](const std::string& name, const Function& description, const Function& implementation) {
        const auto desc = cast<tir::PrimFunc>(description.node);
        const auto impl = cast<tir::PrimFunc>(implementation.node);
        if (!desc || !impl)
          bad_argument(
              "tensor intrinsic `{}` is described by `{}` and computed by `{}`; expected "
              "two PrimFuncs",
              name, description.name, implementation.name);
        registered_intrins()[name] = {description.name, name, desc, impl};
      },
      nb::arg("name"), nb::arg("desc"), nb::arg("impl"));
}

}  // namespace tenon::python
