// SPDX-License-Identifier: Apache-2.0
// A compiled program, ready to run: from a shared library, or from code in memory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/arguments.h"
#include "tenon/runtime/packed_call.h"
#include "tenon/runtime/registry.h"
#include "tenon/runtime/tensor.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {

class StringTable;  // runtime/strings.h

/// Checks every argument, provides memory and threads, and runs. May be used from several threads
/// at once; each run at a time has a workspace of its own, kept for later ones and replaced by a
/// larger where one is too small.
///
/// Arguments lie in CPU memory, packed. Inputs that are less aligned than the program relies on are
/// copied first, outputs afterwards; strided ones are refused.
class Program {
 public:
  /// Loads what `tenon compile` wrote.
  /// \param prefix     of the names in it: PREFIX_tenon_program; none by default
  /// \param constants  for a library without them; must outlive the program
  /// \throws Error (TENON_ERROR_LOAD) where the file is not a program of a version that runs here
  /// (abi.h), or calls a packed function that is neither linked in nor registered
  static std::shared_ptr<Program> load(const std::string& path, const std::string& prefix = "",
                                       const void* constants = nullptr);

  /// The same to be looked at, not to be run: packed functions may be missing.
  static std::shared_ptr<Program> inspect(const std::string& path);

  /// A program in memory: linked in, or made by the JIT.
  /// \param owner  released after the program: whatever holds its code and constants
  /// \throws Error (TENON_ERROR_LOAD) where it is not valid or of another version, or calls a
  /// packed function that is neither linked in nor registered
  static std::shared_ptr<Program> wrap(const TenonProgram* program, const void* constants = nullptr,
                                       std::shared_ptr<void> owner = nullptr);

  const TenonProgram& declaration() const { return program_; }
  std::span<const TenonTensorInfo> inputs() const {
    return {program_.inputs, static_cast<size_t>(program_.input_count)};
  }
  std::span<const TenonTensorInfo> outputs() const {
    return {program_.outputs, static_cast<size_t>(program_.output_count)};
  }

  /// For the runs that begin from now on, the calling thread included. 0, the default:
  /// default_thread_count().
  /// \throws Error (TENON_ERROR_ARGUMENT) below 0 or above 4096
  void set_threads(int threads);

  /// What follows from the inputs before anything is run.
  struct Shapes {
    std::vector<int64_t> symbols;
    std::vector<int64_t> output_dims;  // of all outputs, concatenated; -1: known in the run only
    int64_t workspace_bytes = 0;
  };
  /// \throws Error (TENON_ERROR_ARGUMENT; what the program reports)
  Shapes shapes(std::span<const DLTensor* const> inputs) const;

  /// The same of values of the symbols, in the order of the declaration.
  /// \throws Error (TENON_ERROR_ARGUMENT where they are too few or out of their bounds; what the
  /// program reports)
  Shapes shapes_of(std::vector<int64_t> symbols) const;

  /// Memory for output `i` of these dimensions, which may be anything.
  /// \throws Error (TENON_ERROR_SHAPE, TENON_ERROR_MEMORY) with its name
  Tensor new_output(size_t i, std::span<const int64_t> dims) const;

  /// Runs into new outputs.
  /// \param keeper  keeps the caller's tensors: whoever holds on to memory that a packed function
  ///                was handed holds it too
  /// \throws Error (TENON_ERROR_ARGUMENT, TENON_ERROR_MEMORY; what the program reports)
  std::vector<Tensor> run(std::span<const DLTensor* const> inputs,
                          std::shared_ptr<const void> keeper = nullptr);

  /// Runs into the caller's outputs, whose shapes are those that shapes() gives. Where an output
  /// turns out smaller, because its extent depends on the data, its `shape` is changed to what it
  /// is. One with dimensions that only the run knows has to be large enough: its `shape` is changed
  /// likewise. The characters of strings lie in a block that release_texts() frees
  /// (runtime/strings.h). \throws Error (TENON_ERROR_MEMORY) where it is not.
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs,
           std::shared_ptr<const void> keeper = nullptr);

 private:
  enum class Packed : uint8_t { kNeeded, kMayBeMissing };
  Program(const TenonProgram* program, const void* constants, std::shared_ptr<void> owner,
          Packed packed);
  static std::shared_ptr<Program> open(const std::string& path, const std::string& prefix,
                                       const void* constants, Packed packed);

  struct Workspace {
    std::shared_ptr<void> data;
    int64_t bytes = 0;
  };
  struct Lease;
  class Strings;
  class Staged;

  /// Gives the memory of output `i` of these dimensions.
  using Provide = std::function<void*(size_t i, std::span<const int64_t> dims)>;
  class LateMemory;

  /// The nodes that ask for memory `i`, of an output or of the workspace, in front of a message.
  std::string asked_by(size_t i) const;
  Tensor new_output(size_t i, DLDataType dtype, std::span<const int64_t> dims) const;
  Tensor new_result(size_t i, std::span<const int64_t> dims) const;
  void execute(std::span<const DLTensor* const> inputs, std::span<const DLTensor* const> outputs,
               Shapes& shapes, const Provide& provide, StringTable* strings,
               std::shared_ptr<RunMemory> memory);
  /// Null where the program calls no packed function.
  std::shared_ptr<RunMemory> run_memory(std::shared_ptr<const void> keeper) const;

  std::shared_ptr<void> owner_;
  TenonProgram program_{};
  const void* constants_ = nullptr;
  std::vector<PackedFunction> packed_;

  std::mutex mutex_;  // of what follows
  int threads_ = 0;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<Workspace> idle_;
};

}  // namespace tenon::runtime
