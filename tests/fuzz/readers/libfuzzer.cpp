// SPDX-License-Identifier: Apache-2.0
// The readers as targets of libFuzzer. One program; which reader it feeds is the end of the name
// that it is called by (libfuzzer_onnx, ...).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "protobuf_mutator.h"
#include "readers.h"
#include "tenon/support/diagnostics.h"

static const tenon::fuzz::Reader* chosen = nullptr;
static bool takes_messages = false;  // of protobuf

// Containers that cross into libraries that are not instrumented are not annotated on both sides.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_container_overflow=0"; }

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  std::string name = (*argv)[0];
  name = name.substr(name.find_last_of("/_") + 1);
  const auto found = tenon::fuzz::readers().find(name);
  if (found == tenon::fuzz::readers().end()) {
    std::fprintf(stderr, "libfuzzer_%s: there is no such reader\n", name.c_str());
    std::exit(2);
  }
  chosen = &found->second;
  takes_messages = name == "onnx" || name == "tensor";
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    (*chosen)(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const tenon::CompileError&) {
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t room);

static void mutate_bytes(std::string& bytes, size_t room) {
  const size_t size = bytes.size();
  bytes.resize(std::max(room, size));
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
}

static size_t mutate(uint8_t* data, size_t size, const std::string& other, size_t room,
                     unsigned seed) {
  if (takes_messages && seed % 8 != 0) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    const std::string out =
        tenon::fuzz::mutate_message(bytes, other, room, seed / 8 + 1, mutate_bytes);
    if (!out.empty()) {
      std::memcpy(data, out.data(), out.size());
      return out.size();
    }
  }
  return LLVMFuzzerMutate(data, size, room);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t room, unsigned seed) {
  return mutate(data, size, "", room, seed);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t room, unsigned seed) {
  const size_t size = std::min(first_size, room);
  std::memcpy(out, first, size);
  return mutate(out, size, std::string(reinterpret_cast<const char*>(second), second_size), room,
                seed);
}
