// SPDX-License-Identifier: Apache-2.0
// Random modules of kernels that call kernels, as text.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tenon::llvm_backend {

/// A module with an entry `main(X0, X1, Y0, Y1)`, all of 16 x 16 float32 (the last two outputs, of
/// which every element is written), that calls a few layers of kernels: on whole buffers, rows,
/// columns and tiles, compact and strided, with symbolic and fixed shapes, that write, accumulate
/// and return values; in loops, in blocks and in loops marked as software pipelines.
class CallGraph {
 public:
  explicit CallGraph(uint64_t seed) : random_(seed) {}
  std::string text();

 private:
  struct Param {
    bool strided = false;  // takes any region
    enum class Use : uint8_t { kIn, kOut, kInOut } use = Use::kIn;
  };
  struct Kernel {
    std::string name;
    int rows = 0, columns = 0;  // of every parameter; 0: symbolic
    std::vector<Param> params;
    bool returns = false;
  };
  struct Place {
    std::string buffer;
    int rows, columns;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  std::string constant();
  void leaf(int number);
  void composed(int number);
  void main();
  std::string calls(const std::vector<Place>& readable, const std::vector<Place>& writable,
                    const std::string& indent, int count);
  std::string call(const Kernel& kernel, const std::vector<Place>& readable,
                   const std::vector<Place>& writable, const std::string& indent);
  std::string pipeline(const Place& in, const Place& out, const std::string& indent);
  const Kernel* pick(int rows, int columns, size_t inputs, bool compact_in, bool compact_out);

  std::mt19937_64 random_;
  std::vector<Kernel> kernels_;
  std::string text_;
  int names_ = 0;
};

}  // namespace tenon::llvm_backend
