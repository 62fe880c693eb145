#include "tenon/driver/library_call.h"

#include <cstring>
#include <map>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/ir/visit.h"

namespace tenon {

namespace {

using interp::ExternArgument;
using tir::Buffer;
using tir::ExternFunction;

/// What a call of one function with buffers of these shapes is compiled to.
class Thunk {
 public:
  Thunk(const ExternFunction& function, const std::vector<ExternArgument>& arguments,
        std::shared_ptr<const backend::Libraries> libraries) {
    IRModule module;
    const std::string name = function.symbol + "_";
    auto* declared = new ExternFunction(function);
    declared->body = {};
    finish_node(*declared);
    module.set(name, renew_definitions(Ref<ExternFunction>(declared)));
    std::vector<Ref<Buffer>> params;
    std::vector<NodePtr> args;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!function.buffers[i]) {  // a scalar is read from memory
        params.push_back(
            make<Buffer>(fmt::format("s{}", i), function.params[i]->dtype, std::vector<Expr>{}));
        args.push_back(tir::load(params.back(), {}));
        continue;
      }
      Buffer::Options options;
      options.strides = to_exprs(arguments[i].strides);
      options.alignment = std::max<int64_t>(1, function.buffers[i]->dtype.bytes());
      params.push_back(make<Buffer>(fmt::format("x{}", i), function.buffers[i]->dtype,
                                    to_exprs(arguments[i].shape), options));
      args.push_back(tir::BufferRegion::whole(params.back()));
    }
    const auto count = static_cast<int64_t>(params.size());
    std::vector<std::string> names;
    for (const Ref<Buffer>& param : params) names.push_back(param->name);
    const tir::Stmt call = make<tir::CallTir>(make<GlobalVar>(name), std::move(args));
    module.set("main", tir::PrimFunc::of_buffers(std::move(params), call,
                                                 {{"tenon.entry", true},
                                                  {"tenon.num_inputs", count},
                                                  {"input_names", names},
                                                  {"output_names", std::vector<std::string>{}}}));
    program_ = llvm_backend::link_in_process(
        llvm_backend::compile(module, llvm_backend::host_target(), {.name = function.symbol}),
        std::move(libraries));
  }

  void run(const ExternFunction& function, const std::vector<ExternArgument>& arguments) const {
    std::vector<int64_t> scalars(arguments.size());
    std::vector<void*> buffers;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (function.buffers[i]) {
        buffers.push_back(arguments[i].data);
        continue;
      }
      const DType dtype = function.params[i]->dtype;
      if (dtype == kFloat32) {
        const auto narrow = static_cast<float>(arguments[i].number);
        std::memcpy(&scalars[i], &narrow, sizeof narrow);
      } else if (dtype.is_float()) {
        std::memcpy(&scalars[i], &arguments[i].number, sizeof(double));
      } else {
        scalars[i] = arguments[i].integer;  // little endian: the low bytes come first
      }
      buffers.push_back(&scalars[i]);
    }
    int64_t code = 0;
    TenonContext context{};
    context.abi_version = TENON_ABI_VERSION;
    context.struct_size = sizeof context;
    context.state = &code;
    context.report = [](TenonContext* context, int32_t error, const char*, const char*,
                        int64_t value, int64_t) {
      *static_cast<int64_t*>(context->state) = value;
      return error;
    };
    if (program_->program()->run(&context, buffers.data(), nullptr, nullptr, nullptr) != TENON_OK)
      throw CompileError(kRunFailed, {}, "library function `{}` failed with code {}",
                         function.symbol, code);
  }

 private:
  std::unique_ptr<llvm_backend::LoadedProgram> program_;
};

}  // namespace

interp::CallLibrary library_caller(std::shared_ptr<const backend::Libraries> libraries) {
  // By the function and the shapes that it is called with.
  struct Known {
    Ref<ExternFunction> function;
    std::map<std::vector<std::vector<int64_t>>, std::unique_ptr<Thunk>> thunks;
  };
  const auto known = std::make_shared<std::map<const Node*, Known>>();
  return [libraries, known](const ExternFunction& function,
                            const std::vector<ExternArgument>& arguments) {
    // Two functions of one address cannot be mixed up: the first is kept.
    Known& found = (*known)[&function];
    if (!found.function) found.function = ref_to(&function);
    std::vector<std::vector<int64_t>> shapes;
    for (const ExternArgument& argument : arguments) {
      shapes.push_back(argument.shape);
      shapes.push_back(argument.strides);
    }
    std::unique_ptr<Thunk>& thunk = found.thunks[shapes];
    if (!thunk) thunk = std::make_unique<Thunk>(function, arguments, libraries);
    thunk->run(function, arguments);
  };
}

}  // namespace tenon
