// A compiled program as a shared library: loads, runs, and has the same bytes every time.
#include "tenon/backend/llvm/shared_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "run_program.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;

// y = x + w, twice w at different offsets, and a splat.
IRModule program() {
  auto x = make<Buffer>("x", kFloat32, std::vector<Expr>{int64(3)});
  auto y = make<Buffer>("y", kFloat32, std::vector<Expr>{int64(3)});
  auto w = make<Buffer>("w", kFloat32, std::vector<Expr>{int64(3)});
  auto u = make<Buffer>("u", kFloat32, std::vector<Expr>{int64(3)});
  auto s = make<Buffer>("s", kFloat32, std::vector<Expr>{int64(5000)});
  auto i = var("i");
  const float two = 2;
  const auto* bytes = reinterpret_cast<const std::byte*>(&two);
  IRModule module;
  module.set("main",
             PrimFunc::of_buffers(
                 {x, y},
                 seq({make<AllocConst>(w, TensorData::of<float>(kFloat32, {3}, {1, 2, 3})),
                      make<AllocConst>(u, TensorData::of<float>(kFloat32, {3}, {1, 2, 3})),
                      make<AllocConst>(s, TensorData::splat(kFloat32, {5000}, {bytes, bytes + 4})),
                      nest({i}, {int64(3)},
                           make<BufferStore>(
                               y, load(x, {i}) + load(w, {i}) + load(u, {i}) + load(s, {i + 4990}),
                               std::vector<Expr>{i}))}),
                 Attrs{{"tenon.entry", true}, {"tenon.num_inputs", 1}}));
  return module;
}

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

TEST(SharedLibrary, LoadsAndRuns) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tenon_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "program.so", again = folder / "other_name.so";
  const CompiledProgram compiled = compile(program(), host(), {.name = "adder", .manifest = "{}"});
  EXPECT_EQ(compiled.constants.items.size(), 2U);  // equal contents are stored once
  write_shared_library(compiled, path);
  write_shared_library(compile(program(), host(), {.name = "adder", .manifest = "{}"}), again);
  EXPECT_EQ(contents(path), contents(again));
  EXPECT_EQ(contents(path).find(folder.string()), std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);

  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto entry = reinterpret_cast<TenonProgramFunction>(dlsym(library, TENON_PROGRAM_SYMBOL));
  ASSERT_NE(entry, nullptr);
  const TenonProgram* loaded = entry();
  EXPECT_EQ(std::string(loaded->name), "adder");
  EXPECT_EQ(std::string(loaded->inputs[0].name), "x");
  EXPECT_EQ(loaded->constant_bytes, compiled.constants.bytes);
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<float>{10, 20, 30});
  buffers.emplace_back(12);
  Host host;
  void* pointers[] = {buffers[0].data, buffers[1].data};
  EXPECT_EQ(loaded->run(&host.context, pointers, nullptr, nullptr, loaded->constants), 0);
  EXPECT_EQ(buffers[1].as<float>(), (std::vector<float>{14, 26, 38}));
  dlclose(library);
  std::filesystem::remove_all(folder);

  // The JIT links the same object.
  const auto jit = link_in_process(compiled);
  EXPECT_EQ(run(*jit, host, buffers), 0);
  EXPECT_EQ(buffers[1].as<float>(), (std::vector<float>{14, 26, 38}));
}

TEST(SharedLibrary, SaysWhatItCannotWrite) {
  const CompiledProgram compiled = compile(program(), host());
  EXPECT_THROW(write_shared_library(compiled, "/nonexistent/folder/x.so"), CompileError);
}

}  // namespace
}  // namespace tenon::llvm_backend
