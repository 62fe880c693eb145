// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/advance_pointers.h"

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tenon::llvm_backend {

namespace {

/// An access through a pointer that advances.
struct Access {
  llvm::Use* pointer;
  int64_t offset;  // bytes from what its place has in common
};

/// Pointers that differ by constants.
struct Place {
  const llvm::SCEV* start;  // where the outermost loop of the walk is entered
  std::vector<Access> accesses;
};

/// A loop, and the bytes by which a pointer advances in each of its iterations.
using Step = std::pair<const llvm::Loop*, int64_t>;

/// Pointers into one object that advance alike, in the innermost loop and those around it.
struct Walk {
  const llvm::SCEV* object;
  std::vector<Step> steps;  // innermost first
  std::vector<Place> places;
};

// Takes the constant off `sum`, and off its terms: of those over the iterations of a loop the first
// may have one.
int64_t take_constant(const llvm::SCEV*& sum, llvm::ScalarEvolution& evolution) {
  if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(sum)) {
    if (constant->getAPInt().getSignificantBits() > 32) return 0;
    sum = evolution.getZero(constant->getType());
    return constant->getAPInt().getSExtValue();
  }
  const auto* add = llvm::dyn_cast<llvm::SCEVAddExpr>(sum);
  const auto* steps = llvm::dyn_cast<llvm::SCEVAddRecExpr>(sum);
  if (!add && !steps) return 0;
  llvm::SmallVector<const llvm::SCEV*, 8> terms(add ? add->operands() : steps->operands());
  int64_t constant = take_constant(terms.front(), evolution);
  if (add)
    for (const llvm::SCEV*& term : llvm::drop_begin(terms))
      if (llvm::isa<llvm::SCEVAddRecExpr>(term)) constant += take_constant(term, evolution);
  if (constant != 0)
    sum = add ? evolution.getAddExpr(terms)
              : evolution.getAddRecExpr(terms, steps->getLoop(), llvm::SCEV::FlagAnyWrap);
  return constant;
}

bool can_advance(const llvm::Loop& loop) { return loop.getLoopPreheader() && loop.getLoopLatch(); }

// Takes off `sum` what it advances by in `loop` and in those around it.
std::vector<Step> take_steps(const llvm::SCEV*& sum, const llvm::Loop* loop,
                             llvm::ScalarEvolution& evolution) {
  std::vector<Step> steps;
  for (; loop && can_advance(*loop); loop = loop->getParentLoop()) {
    const auto* advancing = llvm::dyn_cast<llvm::SCEVAddRecExpr>(sum);
    if (!advancing || advancing->getLoop() != loop || !advancing->isAffine()) break;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(advancing->getStepRecurrence(evolution));
    if (!step || step->getAPInt().getSignificantBits() > 32) break;
    steps.emplace_back(loop, step->getAPInt().getSExtValue());
    sum = advancing->getStart();
  }
  return steps;
}

llvm::Use* pointer_of(llvm::Instruction& instruction) {
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) return &load->getOperandUse(0);
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) return &store->getOperandUse(1);
  auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (!call) return nullptr;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::prefetch:
    case llvm::Intrinsic::masked_load: return &call->getArgOperandUse(0);
    case llvm::Intrinsic::masked_store: return &call->getArgOperandUse(1);
    default: return nullptr;
  }
}

template <typename T, typename Is>
T& found_or_added(std::vector<T>& all, const Is& is, T one) {
  const auto found = std::find_if(all.begin(), all.end(), is);
  return found == all.end() ? all.emplace_back(std::move(one)) : *found;
}

/// A pointer without the constant bytes that are added to it last: what advances, and by what.
struct Course {
  const llvm::SCEV *object, *start;
  int64_t offset;
  std::vector<Step> steps;
  bool can_be_written;
};

Course course_of(llvm::Value* pointer, const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                 const llvm::SCEVExpander& expander) {
  const llvm::SCEV* sum = evolution.getSCEV(pointer);
  const llvm::SCEV* object = evolution.getPointerBase(sum);
  const int64_t offset = take_constant(sum, evolution);
  std::vector<Step> steps = take_steps(sum, &loop, evolution);
  const bool can_be_written = !steps.empty() && expander.isSafeToExpand(sum);
  return {object, sum, offset, std::move(steps), can_be_written};
}

std::vector<Walk> walks_of(const llvm::Loop& loop, llvm::ScalarEvolution& evolution,
                           const llvm::SCEVExpander& expander) {
  std::vector<Walk> walks;
  // An unrolled loop has a thousand addresses, which are constants apart from ten of them.
  std::unordered_map<llvm::Value*, Course> courses;
  const llvm::DataLayout& layout = loop.getHeader()->getModule()->getDataLayout();
  for (llvm::BasicBlock* block : loop.blocks())
    for (llvm::Instruction& instruction : *block) {
      llvm::Use* pointer = pointer_of(instruction);
      if (!pointer || llvm::isa<llvm::PHINode>(pointer->get())) continue;
      llvm::APInt added(64, 0);
      llvm::Value* base = pointer->get()->stripAndAccumulateConstantOffsets(layout, added, true);
      if (added.getSignificantBits() > 32) continue;
      auto known = courses.find(base);
      if (known == courses.end())
        known = courses.emplace(base, course_of(base, loop, evolution, expander)).first;
      const Course& course = known->second;
      if (!course.can_be_written) continue;
      Walk& walk = found_or_added(
          walks,
          [&](const Walk& one) { return one.object == course.object && one.steps == course.steps; },
          {course.object, course.steps, {}});
      found_or_added(walk.places, [&](const Place& one) { return one.start == course.start; },
                     {course.start, {}})
          .accesses.push_back({pointer, course.offset + added.getSExtValue()});
    }
  return walks;
}

llvm::Value* moved(llvm::IRBuilder<>& builder, llvm::Value* pointer, int64_t bytes) {
  return bytes == 0 ? pointer
                    : builder.CreateGEP(builder.getInt8Ty(), pointer, builder.getInt64(bytes));
}

/// Writes the pointers of one loop.
class Writer {
 public:
  explicit Writer(llvm::SCEVExpander& expander) : expander_(expander) {}

  void write(const Walk& walk, llvm::ScalarEvolution& evolution) {
    // Up to so many places have a pointer each. More share one and keep an offset each, so that an
    // iteration makes one sum and not one for each place.
    constexpr size_t kMostPointers = 2;
    llvm::BasicBlock* outside = walk.steps.back().first->getLoopPreheader();
    llvm::Instruction* before = outside->getTerminator();
    if (walk.places.size() <= kMostPointers) {
      for (const Place& place : walk.places) {
        const int64_t least = least_offset(place);
        llvm::IRBuilder<> builder(before);
        llvm::Value* start = expanded(place.start, before);
        redirect(place, advancing(moved(builder, start, least), walk.steps), nullptr, least);
      }
      return;
    }
    llvm::Value* pointer = advancing(expanded(walk.object, before), walk.steps);
    for (const Place& place : walk.places)
      redirect(place, pointer, expanded(evolution.removePointerBase(place.start), before), 0);
  }

  /// What no access needs any more.
  void clean_up() {
    expander_.clear();
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(left_);
  }

 private:
  llvm::Value* expanded(const llvm::SCEV* sum, llvm::Instruction* before) {
    return expander_.expandCodeFor(sum, sum->getType(), before->getIterator());
  }

  static int64_t least_offset(const Place& place) {
    return std::min_element(place.accesses.begin(), place.accesses.end(),
                            [](const Access& a, const Access& b) { return a.offset < b.offset; })
        ->offset;
  }

  static llvm::Value* advancing(llvm::Value* start, const std::vector<Step>& steps) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const auto& [loop, bytes] = *step;
      llvm::IRBuilder<> builder(loop->getHeader(), loop->getHeader()->begin());
      llvm::PHINode* pointer = builder.CreatePHI(start->getType(), 2, "advancing");
      builder.SetInsertPoint(loop->getLoopLatch()->getTerminator());
      pointer->addIncoming(start, loop->getLoopPreheader());
      pointer->addIncoming(moved(builder, pointer, bytes), loop->getLoopLatch());
      start = pointer;
    }
    return start;
  }

  void redirect(const Place& place, llvm::Value* pointer, llvm::Value* offset, int64_t from) {
    for (const Access& access : place.accesses) {
      llvm::IRBuilder<> builder(llvm::cast<llvm::Instruction>(access.pointer->getUser()));
      left_.emplace_back(access.pointer->get());
      llvm::Value* at = offset ? builder.CreateGEP(builder.getInt8Ty(), pointer, offset) : pointer;
      access.pointer->set(moved(builder, at, access.offset - from));
    }
  }

  llvm::SCEVExpander& expander_;
  llvm::SmallVector<llvm::WeakTrackingVH, 64> left_;
};

}  // namespace

llvm::PreservedAnalyses AdvancePointers::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                             llvm::LoopStandardAnalysisResults& standard,
                                             llvm::LPMUpdater&) {
  if (!loop.isInnermost()) return llvm::PreservedAnalyses::all();
  llvm::ScalarEvolution& evolution = standard.SE;
  llvm::SCEVExpander expander(evolution, loop.getHeader()->getModule()->getDataLayout(), "pointer");
  const std::vector<Walk> walks = walks_of(loop, evolution, expander);
  if (walks.empty()) return llvm::PreservedAnalyses::all();
  Writer writer(expander);
  for (const Walk& walk : walks) writer.write(walk, evolution);
  writer.clean_up();
  evolution.forgetLoop(&loop);
  return llvm::getLoopPassPreservedAnalyses();
}

}  // namespace tenon::llvm_backend
