// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/generate.h"

#include <filesystem>
#include <span>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/c_sources.h"
#include "tenon/backend/plugin/object_file.h"
#include "tenon/backend/plugin/script_answer.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/unit_operators.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/names.h"
#include "tenon/support/plugin_codes.h"
#include "tenon/tir/extern_function.h"

namespace tenon::plugin {

namespace {

using graph::ExternalModule;
using graph::Value;
using tir::Buffer;
using tir::ExternFunction;
using tir::ParamUse;
using tir::PrimFunc;

constexpr int64_t kMostScratch = int64_t{1} << 40;
constexpr int64_t kAlignment = 64;

class UnitGenerator {
 public:
  UnitGenerator(const Descriptor& d, IRModule module, const std::string& name,
                const MatchContext& context)
      : d_(d),
        module_(std::move(module)),
        name_(name),
        function_(module_.find<graph::Function>(name)) {
    MatchContext named = context;
    if (named.symbol.empty()) named.symbol = unique_symbol();
    match_ = read_match(module_, function_, named);
    if (match_->has_symbolic_shapes && !d_.has_flag(TENON_TAKES_SYMBOLIC_SHAPES))
      throw CompileError(kUnsupported, function_->origin,
                         "`{}` has dimensions that are no numbers, and {} takes none", name_,
                         d_.words());
    for (size_t i = 0; i < function_->params.size(); ++i) {
      const Ref<graph::Var>& param = function_->params[i];
      params_.push_back(
          make<graph::Var>(param->name, match_->inputs[i]->tensor, false, param->origin));
    }
  }

  IRModule run() {
    pack();
    ask_scratch();
    take(ask_generate());
    if (scratch_ > 0) graph::record_scratch(name_, d_.name, scratch_, function_->origin);
    return std::move(module_);
  }

 private:
  void take(const TenonAnswer& answer) {
    if (answer.host_function) return add_host_function(*answer.host_function);
    if (answer.functions) return add_script("", answer.functions.get());
    const TenonAnswer::Emitted& body = body_of(answer);
    if (body.kind == TENON_TVMSCRIPT)
      add_script(body.bytes, nullptr);
    else
      add_function(answer, body);
  }

  std::string what(const char* callback) const {
    return fmt::format("callback `{}` of {}", callback, d_.words());
  }
  CompileError fault(const char* callback, const std::string& words) const {
    CompileError error(kBadBackend, function_->origin, "{}, asked about `{}` ({}), {}",
                       what(callback), name_, match_->pattern, words);
    return error;
  }

  // A symbol of the program: no two functions of a module have one.
  std::string unique_symbol() const {
    std::string symbol = d_.name + "_";
    for (const char c : name_) symbol += is_identifier(std::string("a") + c) ? c : '_';
    const auto all = graph::external_modules(module_);
    return fresh_name(symbol, [&](const std::string& name) {
      for (const ExternalModule& item : all)
        for (const std::string& known : item.symbols)
          if (known == name) return true;
      return module_.contains(name);
    });
  }

  TenonAnswer answer_for(TenonAnswer::Callback callback) const {
    TenonAnswer answer;
    answer.backend = d_.name;
    answer.callback = callback;
    answer.subject = name_;
    return answer;
  }

  void check_status(const char* callback, const TenonAnswer& answer, int32_t status) const {
    if (!answer.fault.empty()) throw fault(callback, answer.fault);
    if (answer.is_refused)
      throw graph::BackendRefusal(
          answer.code, answer.words,
          CompileError(kBackendRefused, function_->origin,
                       "{} refused `{}` ({}): {}; a back end says no in `check`", what(callback),
                       name_, answer.code, answer.words));
    if (status != 0)
      throw fault(callback,
                  fmt::format("returned {} without a reason; refuse() gives one", status));
  }

  // -- what the callbacks say --------------------------------------------------------------------

  void pack() {
    packed_.resize(match_->inputs.size());
    is_omitted_.resize(match_->inputs.size(), false);
    if (!d_.has(kHasPack)) return;
    for (size_t i = 0; i < match_->inputs.size(); ++i) {
      if (!match_->inputs[i]->data) continue;
      TenonAnswer answer = answer_for(TenonAnswer::Callback::kPack);
      const int32_t status = d_.hooks->pack(what("pack"), *match_, static_cast<int32_t>(i), answer);
      check_status("pack", answer, status);
      if (answer.emitted.size() > 1)
        throw fault("pack", fmt::format("gave {} answers for input {}; expected one",
                                        answer.emitted.size(), i));
      if (answer.emitted.empty()) continue;
      is_omitted_[i] = answer.emitted[0].kind == TENON_OMITTED;
      if (!is_omitted_[i]) packed_[i] = bytes_of(answer.emitted[0].bytes);
    }
  }

  static Ref<TensorData> bytes_of(const std::string& bytes) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    return TensorData::owned(kUInt8, {static_cast<int64_t>(bytes.size())},
                             {begin, begin + bytes.size()});
  }

  void ask_scratch() {
    if (!d_.has(kHasScratch)) return;
    scratch_ = d_.hooks->scratch(what("scratch"), *match_);
    if (scratch_ < 0 || scratch_ >= kMostScratch)
      throw fault("scratch",
                  fmt::format("asked for {} bytes; expected 0 to {}", scratch_, kMostScratch - 1));
  }

  TenonAnswer ask_generate() {
    TenonAnswer answer = answer_for(TenonAnswer::Callback::kGenerate);
    const int32_t status = d_.hooks->generate(what("generate"), *match_, answer);
    check_status("generate", answer, status);
    return answer;
  }

  const TenonAnswer::Emitted& body_of(const TenonAnswer& answer) const {
    const TenonAnswer::Emitted* body = nullptr;
    bool has_prelude = false;
    for (const TenonAnswer::Emitted& item : answer.emitted) {
      if (item.kind == TENON_C_PRELUDE) {
        has_prelude = true;
        continue;
      }
      if (body)
        throw fault("generate", fmt::format("emitted both {} and {}; expected one of them",
                                            name_of_kind(body->kind), name_of_kind(item.kind)));
      body = &item;
    }
    if (!body) throw fault("generate", "emitted nothing that could run");
    if (has_prelude && body->kind != TENON_C)
      throw fault("generate", fmt::format("emitted TENON_C_PRELUDE beside {}; it goes with TENON_C",
                                          name_of_kind(body->kind)));
    return *body;
  }

  // -- a C function ------------------------------------------------------------------------------

  void add_function(const TenonAnswer& answer, const TenonAnswer::Emitted& body) {
    std::string symbol = match_->symbol;
    if (body.kind == TENON_SYMBOL) symbol = body.bytes;
    if (symbol.size() > kMostSymbol || !is_identifier(symbol))
      throw fault("generate", fmt::format("emitted TENON_SYMBOL `{}`; expected a C identifier",
                                          printable(symbol.c_str(), 80)));
    const std::vector<std::string> link = libraries_of(answer);
    switch (body.kind) {
      case TENON_SYMBOL: add_libraries(link); break;
      case TENON_C: add_c(answer, body.bytes, link); break;
      case TENON_OBJECT: add_object(body.bytes, link); break;
      default: add_run(body.bytes, link); break;
    }
    call_extern(extern_function(symbol));
  }

  std::vector<std::string> libraries_of(const TenonAnswer& answer) const {
    std::vector<std::string> out;
    for (const std::string& library : answer.libraries) {
      if (library.find('/') != std::string::npos)
        throw fault("generate", fmt::format("links `{}`; expected a name that is found on every "
                                            "host, without a folder",
                                            library));
      // As -l does.
      const bool is_file = library.find(".so") != std::string::npos;
      out.push_back(is_file ? library : "lib" + library + ".so");
    }
    if (answer.links_itself) out.push_back(own_library("generate"));
    return out;
  }

  std::string own_library(const char* callback) const {
    if (d_.file.empty())
      throw fault(callback, "links its own library; it is linked into Tenon and has none");
    return std::filesystem::canonical(d_.file).filename().string();
  }

  void add_libraries(const std::vector<std::string>& link) {
    for (const std::string& library : link) {
      ExternalModule external;
      external.kind = ExternalModule::Kind::kShared;
      external.name = library;
      external.origin = d_.name;
      graph::add_external_module(module_, external);
    }
  }

  void add_c(const TenonAnswer& answer, const std::string& source,
             const std::vector<std::string>& link) {
    if (!mentions(source, match_->symbol))
      throw fault("generate",
                  fmt::format("emitted TENON_C that defines no function `{}`", match_->symbol));
    CFunction function{d_.name, match_->symbol, {}, source, {}};
    for (const TenonAnswer::Emitted& item : answer.emitted)
      if (item.kind == TENON_C_PRELUDE) function.preludes.push_back(item.bytes);
    for (const TenonAnswer::Emitted& item : answer.emitted)
      if (item.bytes.find('\0') != std::string::npos ||
          item.bytes.find(kEndOfPreludes) != std::string::npos)
        throw fault("generate", "emitted C source with bytes that no source has");
    add_libraries(link);
    add_c_function(module_, function);
  }

  // The name as a whole word in front of a parenthesis.
  static bool mentions(const std::string& source, const std::string& symbol) {
    const auto is_word = [](char c) { return is_identifier(std::string("a") + c); };
    for (size_t at = source.find(symbol); at != std::string::npos;
         at = source.find(symbol, at + 1)) {
      const size_t end = at + symbol.size();
      if (at > 0 && is_word(source[at - 1])) continue;
      const size_t next = source.find_first_not_of(" \t\r\n", end);
      if (next != std::string::npos && source[next] == '(') return true;
    }
    return false;
  }

  void add_object(const std::string& bytes, const std::vector<std::string>& link) {
    const std::string why = object_fault(bytes, match_->symbol);
    if (!why.empty())
      throw fault("generate",
                  fmt::format("emitted TENON_OBJECT of {} bytes: {}", bytes.size(), why));
    add_libraries(link);
    graph::add_external_module(module_, ExternalModule::of_bytes(ExternalModule::Kind::kObject,
                                                                 bytes, {match_->symbol}, d_.name));
  }

  // A function of this process, which the artefact keeps registered: whoever holds the module, or a
  // program made of it, can call it.
  void add_host_function(const TenonAnswer::HostFunction& function) {
    ExternalModule external;
    external.kind = ExternalModule::Kind::kHost;
    external.symbols = {function.name};
    external.origin = d_.name;
    struct Kept {
      std::string words;
      std::shared_ptr<const void> life;
    };
    const auto kept = std::make_shared<const Kept>(
        Kept{fmt::format("{}: {}", function.name, function.words), function.life});
    external.code =
        TensorData::view(kUInt8, {static_cast<int64_t>(kept->words.size())},
                         std::as_bytes(std::span(kept->words)), kept, function_->origin);
    graph::add_external_module(module_, external);
    call_extern(extern_function(function.name, true));
  }

  // The plugin's own entry, called by a few lines of C with all that it gets as one record.
  void add_run(const std::string& blob, std::vector<std::string> link) {
    if (d_.run_symbol.empty())
      throw fault("generate", "emitted TENON_RUN; the back end names no run_symbol");
    const std::string own = own_library("generate");
    if (std::find(link.begin(), link.end(), own) == link.end()) link.push_back(own);
    blob_ = bytes_of(blob.empty() ? std::string(1, '\0') : blob);
    size_t inputs = 0;
    std::string params = "const void* blob", in, out, dims;
    for (size_t i = 0; i < match_->inputs.size(); ++i) {
      if (is_omitted_[i]) continue;
      params += fmt::format(", const void* x{}", i);
      in += fmt::format("x{}, ", i);
      ++inputs;
    }
    for (size_t i = 0; i < match_->outputs.size(); ++i) {
      params += fmt::format(", void* y{}", i);
      out += fmt::format("y{}, ", i);
    }
    for (size_t i = 0; i < match_->symbols.size(); ++i) {
      params += fmt::format(", int64_t n{}", i);
      dims += fmt::format("n{}, ", i);
    }
    if (scratch_ > 0) params += ", void* scratch";
    const bool has_threads = d_.has_flag(TENON_PASS_THREADS);
    if (has_threads) params += ", int32_t threads";
    const std::string prelude = fmt::format(
        "#include <stddef.h>\n#include <stdint.h>\n"
        "typedef struct {{ size_t size; const void* blob; int64_t blob_bytes; int32_t num_inputs, "
        "num_outputs, num_symbols, threads; const void* const* inputs; void* const* outputs; "
        "const int64_t* symbols; void* scratch; }} tenon_run_record;\n"
        "extern int32_t {}(const tenon_run_record*);\n",
        d_.run_symbol);
    const std::string source = fmt::format(
        "int32_t {}({}) {{\n"
        "  const void* inputs[] = {{{}0}};\n"
        "  void* outputs[] = {{{}0}};\n"
        "  int64_t symbols[] = {{{}0}};\n"
        "  tenon_run_record run = {{sizeof run, blob, {}, {}, {}, {}, {}, inputs, outputs, "
        "symbols, "
        "{}}};\n"
        "  return {}(&run);\n}}\n",
        match_->symbol, params, in, out, dims, blob.size(), inputs, match_->outputs.size(),
        match_->symbols.size(), has_threads ? "threads" : "1", scratch_ > 0 ? "scratch" : "0",
        d_.run_symbol);
    add_libraries(link);
    add_c_function(module_, {d_.name, match_->symbol, {prelude}, source, {}});
  }

  // -- its declaration and the call --------------------------------------------------------------

  void add_buffer(ExternFunction::Parts& parts, const std::string& name, DType dtype,
                  std::vector<Expr> shape, int64_t alignment, ParamUse use) {
    Buffer::Options options;
    options.alignment = alignment;
    parts.buffers.push_back(make<Buffer>(name, dtype, std::move(shape), options));
    parts.params.push_back(make<tenon::Var>(name + "_handle", kHandle));
    parts.uses.push_back(use);
  }

  void add_tensor(ExternFunction::Parts& parts, const TenonMatch::Tensor& tensor,
                  const std::string& name, const Substitution& renamed, ParamUse use) {
    if (!tensor.tensor->shape)
      throw CompileError(kUnsupported, function_->origin,
                         "`{}` of `{}` has no shape; {} cannot be called for it", tensor.name,
                         name_, d_.words());
    std::vector<Expr> shape;
    for (const Expr& dim : *tensor.tensor->shape) shape.push_back(substitute(dim, renamed));
    const DType dtype = tensor.tensor->dtype;
    add_buffer(parts, name, dtype, std::move(shape), std::max<int64_t>(1, dtype.bytes()), use);
  }

  Ref<ExternFunction> extern_function(const std::string& symbol, bool is_packed = false) {
    ExternFunction::Parts parts;
    parts.is_packed = is_packed;
    Substitution renamed;
    std::vector<Ref<tenon::Var>> symbols;
    for (const auto& var : match_->symbols) {
      symbols.push_back(make<tenon::Var>(var->name, var->dtype));
      renamed.emplace(var.get(), symbols.back());
    }
    if (blob_) add_buffer(parts, "blob", kUInt8, to_exprs(blob_->shape), kAlignment, ParamUse::kIn);
    for (size_t i = 0; i < match_->inputs.size(); ++i) {
      if (is_omitted_[i]) continue;
      const std::string name = fmt::format("x{}", i);
      if (packed_[i])
        add_buffer(parts, name, kUInt8, to_exprs(packed_[i]->shape), kAlignment, ParamUse::kIn);
      else
        add_tensor(parts, *match_->inputs[i], name, renamed, ParamUse::kIn);
    }
    for (size_t i = 0; i < match_->outputs.size(); ++i)
      add_tensor(parts, *match_->outputs[i], fmt::format("y{}", i), renamed, ParamUse::kOut);
    for (const auto& var : symbols) {
      parts.params.push_back(var);
      parts.buffers.emplace_back();
      parts.uses.push_back(ParamUse::kIn);
    }
    if (scratch_ > 0)
      add_buffer(parts, "scratch", kUInt8, to_exprs(std::vector<int64_t>{scratch_}), kAlignment,
                 ParamUse::kScratch);
    if (d_.has_flag(TENON_PASS_THREADS)) {
      parts.params.push_back(make<tenon::Var>("threads", kInt32));
      parts.buffers.emplace_back();
      parts.uses.push_back(ParamUse::kIn);
    }
    parts.result = kInt32;
    parts.is_pure = !d_.has_flag(TENON_HAS_EFFECTS);
    parts.is_thread_safe =
        !d_.has_flag(TENON_NOT_THREAD_SAFE) && d_.threads == TENON_THREADS_CALLER;
    parts.works_in_place = d_.has_flag(TENON_WORKS_IN_PLACE);
    return make<ExternFunction>(symbol, std::move(parts), Attrs(), function_->origin);
  }

  // The last argument of functions that want it.
  void add_threads(std::vector<Value>& args) const {
    if (d_.has_flag(TENON_PASS_THREADS))
      args.push_back(make<graph::PrimValue>(tenon::call(IntrinsicId::kNumThreads, {}, kInt32)));
  }

  // The arguments that the generated function gets, in terms of the graph function.
  std::vector<Value> arguments() const {
    std::vector<Value> out;
    if (blob_) out.push_back(make<graph::Constant>(blob_));
    for (size_t i = 0; i < match_->inputs.size(); ++i) {
      if (is_omitted_[i]) continue;
      const TenonMatch::Tensor& input = *match_->inputs[i];
      if (packed_[i])
        out.push_back(make<graph::Constant>(packed_[i]));
      else if (input.data)
        out.push_back(make<graph::Constant>(input.data));
      else
        out.push_back(params_[i]);
    }
    return out;
  }

  std::vector<graph::Type> output_types() const {
    std::vector<graph::Type> types;
    for (const auto& output : match_->outputs) types.push_back(output->tensor);
    return types;
  }

  bool gives_tuple() const {
    const Value& body = function_->body->body;
    if (body.as<graph::Tuple>()) return true;
    return graph::type_of(body).as<graph::TupleType>() != nullptr;
  }

  // The graph function with the call as its body, lowered: parameters, then outputs.
  void set_caller(const graph::Call& call, const Value& result, const Ref<graph::Var>& var) {
    std::vector<Ref<graph::Binding>> bindings = {make<graph::Binding>(
        var, Value(Ref<graph::Call>(&call)), graph::Type(), function_->origin)};
    const auto block = make<graph::BindingBlock>(std::move(bindings), false);
    const auto body = make<graph::SeqExpr>(std::vector<Ref<graph::BindingBlock>>{block}, result);
    const auto caller =
        make<graph::Function>(params_, body, graph::Type(), Attrs(), true, function_->origin);
    const Ref<PrimFunc> lowered = graph::lower_function(module_, *caller);
    module_.set(name_, lowered->with_attr("tenon.inline", true));
  }

  void call_extern(const Ref<ExternFunction>& function) {
    const std::string callee = graph::add_extern_function(module_, function);
    const std::vector<graph::Type> types = output_types();
    const graph::Type type = gives_tuple() ? graph::Type(make<graph::TupleType>(types)) : types[0];
    const auto var = make<graph::Var>("output", type);
    std::vector<Value> args = arguments();
    add_threads(args);
    const auto call = make<graph::Call>(
        graph::find_op("call_dps_packed"),
        std::vector<Value>{make<graph::FuncRef>(callee), make<graph::Tuple>(args)}, Attrs(),
        std::vector<graph::Type>{type}, function_->origin);
    set_caller(*call, var, var);
  }

  // -- TensorIR ----------------------------------------------------------------------------------

  void add_script(const std::string& text, const IRModule* given) {
    const ScriptAnswer answer{d_, text, given, match_->symbol, function_->origin, what("generate")};
    std::vector<graph::Type> wanted;
    std::vector<Value> args = arguments();
    for (const Value& arg : args) wanted.push_back(graph::type_of(arg));
    std::vector<graph::Type> outputs = output_types();
    if (scratch_ > 0) outputs.push_back(graph::TensorType::of({scratch_}, kUInt8));
    for (const graph::Type& type : outputs) wanted.push_back(type);
    const std::string callee = add_script_functions(module_, answer, wanted);
    const bool is_tuple = outputs.size() > 1 || gives_tuple();
    const graph::Type type = is_tuple ? graph::Type(make<graph::TupleType>(outputs)) : outputs[0];
    const auto var = make<graph::Var>("output", type);
    const auto call = make<graph::Call>(
        graph::find_op("call_tir"),
        std::vector<Value>{make<graph::FuncRef>(callee), make<graph::Tuple>(args)}, Attrs(),
        outputs, function_->origin);
    Value result = var;
    if (scratch_ > 0) {
      // Scratch is an output that nobody needs: planned memory like the others.
      std::vector<Value> items;
      for (size_t i = 0; i + 1 < outputs.size(); ++i)
        items.push_back(make<graph::TupleGetItem>(Value(var), static_cast<int64_t>(i)));
      result = gives_tuple() ? Value(make<graph::Tuple>(items)) : items[0];
    }
    set_caller(*call, result, var);
  }

  const Descriptor& d_;
  IRModule module_;
  std::string name_;
  Ref<graph::Function> function_;
  std::unique_ptr<TenonMatch> match_;
  std::vector<Ref<graph::Var>> params_;  // with the dimensions that the match names
  std::vector<Ref<TensorData>> packed_;  // as inputs; null where one is not packed
  std::vector<bool> is_omitted_;
  Ref<TensorData> blob_;
  int64_t scratch_ = 0;
};

}  // namespace

IRModule generate_unit(const Descriptor& d, IRModule module, const std::string& function,
                       const MatchContext& context) {
  return UnitGenerator(d, std::move(module), function, context).run();
}

}  // namespace tenon::plugin
