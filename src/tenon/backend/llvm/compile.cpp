// SPDX-License-Identifier: Apache-2.0
// Runs LLVM's passes and emits objects, IR and assembly.
#include "tenon/backend/llvm/compile.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopStrengthReduce.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include <algorithm>

#include "tenon/backend/llvm/advance_pointers.h"
#include "tenon/backend/llvm/codegen.h"
#include "tenon/backend/llvm/machine.h"
#include "tenon/backend/llvm/parts.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/parallel.h"
#include "tenon/tir/transforms.h"

// In a build with ThreadSanitizer generated code is watched like the rest of the process.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TENON_WATCHES_THREADS 1
#endif
#endif

namespace tenon::llvm_backend {

// LLVM itself says no more than a line on stderr, and goes on without what it does not know.
static void check_target(const llvm::Target& found, const std::string& triple,
                         const Target& target) {
  const std::unique_ptr<llvm::MCSubtargetInfo> known(found.createMCSubtargetInfo(triple, "", ""));
  check(known != nullptr, "LLVM has no table of processors");
  if (!known->isCPUStringValid(target.cpu))
    throw CompileError(kBadOption, {}, "processor `{}` is not known to LLVM", target.cpu);
  for (std::string_view rest = target.features; !rest.empty();) {
    const std::string_view feature = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), feature.size() + 1));
    const std::string_view name = feature.substr(feature.find_first_not_of("+-") == 1 ? 1 : 0);
    const bool is_known =
        std::ranges::any_of(known->getAllProcessorFeatures(),
                            [&](const llvm::SubtargetFeatureKV& one) { return name == one.Key; });
    if (!is_known)
      throw CompileError(kBadOption, {}, "feature `{}` of the target is not known to LLVM", name);
  }
}

static std::unique_ptr<llvm::TargetMachine> target_machine(const Target& target, int level) {
  const std::string triple = triple_of(target);
  const llvm::Target& found = llvm_target(target);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // multiply-adds are explicit in TensorIR
  check_target(found, triple, target);
  std::unique_ptr<llvm::TargetMachine> machine(found.createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default));
  check(machine != nullptr, "LLVM made no target machine");
  return machine;
}

// Generated code is flat and its loops are rotated already, so a short list does. Scheduled
// kernels: clean up, keep accumulators in registers, hoist what is invariant, and nothing that
// would change the schedule's loops. The others also get LLVM's vectorisers and unrolling.
namespace {

/// InstCombine of LLVM 19 takes `|x| > 0` for `x > 0` where it joins it with another question of
/// x's class, such as isnan(|x|) of two selects: before it sees them, |x| goes from comparisons
/// with 0.
struct ComparesOfAbsoluteValues : llvm::PassInfoMixin<ComparesOfAbsoluteValues> {
  static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
    using Compare = llvm::CmpInst;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block) {
        auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
        if (!compare) continue;
        llvm::Value* x = nullptr;
        const auto is_absolute = llvm::PatternMatch::m_FAbs(llvm::PatternMatch::m_Value(x));
        if (llvm::PatternMatch::match(compare->getOperand(1), is_absolute)) compare->swapOperands();
        if (!llvm::PatternMatch::match(compare->getOperand(0), is_absolute) ||
            !llvm::PatternMatch::match(compare->getOperand(1), llvm::PatternMatch::m_AnyZeroFP()))
          continue;
        switch (compare->getPredicate()) {
          case Compare::FCMP_OGT: compare->setPredicate(Compare::FCMP_ONE); break;
          case Compare::FCMP_UGT: compare->setPredicate(Compare::FCMP_UNE); break;
          case Compare::FCMP_OLE: compare->setPredicate(Compare::FCMP_OEQ); break;
          case Compare::FCMP_ULE: compare->setPredicate(Compare::FCMP_UEQ); break;
          case Compare::FCMP_OGE: compare->setPredicate(Compare::FCMP_ORD); break;
          case Compare::FCMP_ULT: compare->setPredicate(Compare::FCMP_UNO); break;
          case Compare::FCMP_OLT:
          case Compare::FCMP_UGE: continue;  // decided
          default: break;                    // of x as of |x|
        }
        compare->setOperand(0, x);
      }
    llvm::PreservedAnalyses kept;
    kept.preserveSet<llvm::CFGAnalyses>();
    return kept;
  }
};

/// LLVM's code generation without its loop strength reduction, and without the pass that only prepares
/// for it: function_passes has one where it is wanted. They are not added, rather than skipped when
/// they would run, as the analyses that a pass asks for are made in either case.
class CodeGenPasses final : public llvm::legacy::PassManager {
 public:
  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    if (name == "Loop Strength Reduction" || name == "Canonicalize Freeze Instructions in Loops")
      delete pass;  // a manager owns what it is given
    else
      llvm::legacy::PassManager::add(pass);
  }
};

void add_inst_combine(llvm::FunctionPassManager& passes) {
  passes.addPass(ComparesOfAbsoluteValues());
  passes.addPass(llvm::InstCombinePass());
}

}  // namespace

static llvm::FunctionPassManager function_passes(bool scheduled) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  add_inst_combine(passes);
  passes.addPass(llvm::SimplifyCFGPass());
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
    if (!scheduled) loops.addPass(llvm::IndVarSimplifyPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), true));
  }
  if (scheduled) {
    passes.addPass(llvm::EarlyCSEPass(true));  // loads that a schedule repeats are in one block
  } else {
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::GVNPass());
  }
  passes.addPass(llvm::DSEPass());
  if (!scheduled) {
    passes.addPass(llvm::CorrelatedValuePropagationPass());
    add_inst_combine(passes);
    passes.addPass(llvm::LoopVectorizePass());
    passes.addPass(llvm::SLPVectorizerPass());
    passes.addPass(llvm::LoopUnrollPass());
    passes.addPass(llvm::EarlyCSEPass());
  }
  add_inst_combine(passes);
  passes.addPass(llvm::SimplifyCFGPass());
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), true));
  }
  passes.addPass(llvm::DCEPass());
  {
    llvm::LoopPassManager loops;
    if (scheduled)
      loops.addPass(AdvancePointers());
    else
      loops.addPass(llvm::LoopStrengthReducePass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), false));
  }
  return passes;
}

// The vectorisers compare memory accesses in pairs: what is as long as this is not for them.
static bool is_long(const llvm::Function& function) {
  constexpr int64_t kMostAccesses = 2048;
  int64_t accesses = 0;
  for (const llvm::BasicBlock& block : function)
    for (const llvm::Instruction& instruction : block)
      accesses += instruction.mayReadOrWriteMemory();
  return accesses > kMostAccesses;
}

static void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager scheduled = function_passes(true), plain = function_passes(false);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    check_interrupt();
    const bool is_scheduled = function.hasFnAttribute(kScheduledAttribute) || is_long(function);
    (is_scheduled ? scheduled : plain).run(function, functions);
    functions.clear(function, function.getName());
  }
}

#ifdef TENON_WATCHES_THREADS
static void watch_threads(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::FunctionAnalysisManager functions;
  llvm::PassBuilder(&machine).registerFunctionAnalyses(functions);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::SanitizeThread);
    llvm::ThreadSanitizerPass().run(function, functions);
    functions.clear(function, function.getName());
  }
}
#endif

static Instructions instructions_of(const Target& target, const llvm::MCSubtargetInfo& machine) {
  const auto has = [&](const char* feature) {
    return machine.checkFeatures("+" + std::string(feature));
  };
  if (!target.is_x86())
    return {.halves = true, .arm_bytes = has("dotprod"), .arm_mixed_bytes = has("i8mm")};
  // LLVM does not divide instructions of vectors that are wider than the function's attributes say.
  const bool is_wide = target.vector_bits >= 512;
  return {.halves = has("f16c"),
          .floats_512 = is_wide && has("avx512f"),
          .floats_256 = has("avx"),
          .bytes_512 = is_wide && has("avx512vnni"),
          .bytes_256 = has("avxvnni") || (has("avx512vnni") && has("avx512vl")),
          .pairs_512 = is_wide && has("avx512bw"),
          .pairs_256 = has("avx2")};
}

// What the code of `lowered` is generated from.
static ProgramFacts facts_of(const IRModule& lowered, const Target& target,
                             const CompileOptions& options) {
  if (target.kind != "llvm")
    throw CompileError(kBadOption, {}, "target `{}` is not one of LLVM", target.kind);
  const auto machine = target_machine(target, options.optimize);
  return {lowered, target, options, instructions_of(target, *machine->getMCSubtargetInfo())};
}

static void optimize(llvm::Module& module, llvm::TargetMachine& machine, int level) {
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  const bool broken = llvm::verifyModule(module, &stream);
  check(!broken, "generated LLVM IR is malformed: " + stream.str());
  if (level > 0) run_passes(module, machine);
#ifdef TENON_WATCHES_THREADS
  watch_threads(module, machine);
#endif
}

static std::string emit(llvm::Module& module, llvm::TargetMachine& machine,
                        llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  CodeGenPasses passes;
  const bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, type);
  check(!unsupported, "LLVM cannot write this kind of file");
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

CompiledProgram compile(const IRModule& lowered, const Target& target,
                        const CompileOptions& options) {
  const IRModule bounded = tir::bound_unrolling(lowered);  // changes nothing that the pass has seen
  ProgramFacts facts = facts_of(bounded, target, options);
  facts.divide();
  CompiledProgram out;
  out.name = options.name;
  out.target = target;
  std::vector<std::string> objects(facts.parts);
  for_each_in_parallel(facts.parts, [&](size_t part) {
    llvm::LLVMContext context;           // is for one thread, as is the machine
    context.setDiscardValueNames(true);  // nobody reads them in an object
    const auto machine = target_machine(target, options.optimize);
    ModuleCodegen codegen(facts, part, context);
    const std::unique_ptr<llvm::Module> module = codegen.run();
    module->setDataLayout(machine->createDataLayout());
    optimize(*module, *machine, options.optimize);
    objects[part] = emit(*module, *machine, llvm::CodeGenFileType::ObjectFile);
    if (part != 0) return;
    out.libraries = codegen.libraries();
    out.registered = codegen.registered();
  });
  out.object = joined_objects(std::move(objects));
  out.constants = std::move(facts.constants).take();
  return out;
}

namespace {

/// A program as one module.
struct Whole {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;

  Whole(const IRModule& lowered, const Target& target, const CompileOptions& options)
      : machine(target_machine(target, options.optimize)) {
    const IRModule bounded = tir::bound_unrolling(lowered);
    const ProgramFacts facts = facts_of(bounded, target, options);
    module = ModuleCodegen(facts, 0, context).run();
    module->setDataLayout(machine->createDataLayout());
    optimize(*module, *machine, options.optimize);
  }
};

}  // namespace

std::string emit_llvm(const IRModule& lowered, const Target& target,
                      const CompileOptions& options) {
  const Whole whole(lowered, target, options);
  std::string text;
  llvm::raw_string_ostream stream(text);
  whole.module->print(stream, nullptr);
  return text;
}

std::string emit_assembly(const IRModule& lowered, const Target& target,
                          const CompileOptions& options) {
  const Whole whole(lowered, target, options);
  return emit(*whole.module, *whole.machine, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace tenon::llvm_backend
