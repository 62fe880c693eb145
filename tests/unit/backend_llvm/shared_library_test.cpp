// SPDX-License-Identifier: Apache-2.0
// Shared libraries: linked in process, loaded by the runtime, equal bytes wherever they are made.
#include "tenon/backend/llvm/shared_library.h"

#include <elf.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_program.h"
#include "tenon/runtime/program.h"
#include "tenon/support/temporary_files.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;
namespace fs = std::filesystem;

CompileOptions named(const std::string& name) {
  CompileOptions options;
  options.name = name;
  return options;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Ref<Buffer> floats(const std::string& name, int64_t n) {
  return make<Buffer>(name, kFloat32, std::vector<Expr>{int64(n)});
}

/// c[i] = a[i] + b[i] for i < n.
Ref<PrimFunc> add_kernel(int64_t n) {
  auto a = floats("a", n), b = floats("b", n), c = floats("c", n);
  auto i = var("i");
  return PrimFunc::of_buffers(
      {a, b, c}, nest({i}, {int64(n)},
                      make<BufferStore>(c, load(a, {i}) + load(b, {i}), std::vector<Expr>{i})));
}

/// y = x + weights, the weights a constant.
IRModule add_constant(const Ref<TensorData>& weights) {
  const int64_t n = weights->elements();
  IRModule module;
  module.set("add", add_kernel(n));
  auto x = floats("x", n), y = floats("y", n), w = floats("w", n);
  Stmt body = make<Seq>(std::vector<Stmt>{
      make<AllocConst>(w, weights),
      make<CallTir>(make<GlobalVar>("add"),
                    std::vector<NodePtr>{BufferRegion::whole(x), BufferRegion::whole(w),
                                         BufferRegion::whole(y)})});
  module.set("main",
             PrimFunc::of_buffers({x, y}, body,
                                  Attrs{{"tenon.entry", true},
                                        {"tenon.num_inputs", int64_t{1}},
                                        {"input_names", std::vector<std::string>{"x:0"}},
                                        {"output_names", std::vector<std::string>{"y:0"}}}));
  return module;
}

// y = x + w, twice w at different offsets, and a splat.
IRModule repeated_constants() {
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

Ref<TensorData> counted(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 9973);
  return TensorData::of(kFloat32, {n}, values);
}

std::vector<float> run_library(const std::string& path, const std::vector<float>& x) {
  const auto program = runtime::Program::load(path);
  runtime::Tensor input(DLDataType{kDLFloat, 32, 1}, {static_cast<int64_t>(x.size())});
  std::memcpy(input.data(), x.data(), x.size() * sizeof(float));
  const DLTensor view = input.view();
  const DLTensor* inputs[] = {&view};
  const auto outputs = program->run(inputs);
  const auto* values = static_cast<const float*>(outputs.at(0).data());
  return {values, values + x.size()};
}

TEST(SharedLibrary, RunsAsTheRuntimeLoadsIt) {
  const TemporaryFolder folder;
  write_shared_library(compile(add_constant(counted(100)), host(), named("adder")),
                       folder.file("adder.so"));
  const auto program = runtime::Program::load(folder.file("adder.so"));
  EXPECT_STREQ(program->declaration().name, "adder");
  EXPECT_STREQ(program->inputs()[0].name, "x:0");
  EXPECT_STREQ(program->outputs()[0].name, "y:0");
  EXPECT_EQ(program->declaration().constant_bytes, 448);  // whole cache lines
  const auto y = run_library(folder.file("adder.so"), std::vector<float>(100, 0.5f));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(i) + 0.5f);
}

TEST(SharedLibrary, EqualConstantsAreStoredOnce) {
  const TemporaryFolder folder;
  const CompiledProgram compiled = compile(repeated_constants(), host());
  EXPECT_EQ(compiled.constants.items.size(), 2U);
  write_shared_library(compiled, folder.file("a.so"));
  EXPECT_EQ(run_library(folder.file("a.so"), {10, 20, 30}), (std::vector<float>{14, 26, 38}));

  // The JIT links the same object.
  const auto jit = link_in_process(compiled);
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<float>{10, 20, 30});
  buffers.emplace_back(12);
  Host host;
  EXPECT_EQ(run(*jit, host, buffers), 0);
  EXPECT_EQ(buffers[1].as<float>(), (std::vector<float>{14, 26, 38}));
}

TEST(SharedLibrary, OfAProgramWithoutConstants) {
  const TemporaryFolder folder;
  write_shared_library(compile(program_of(add_kernel(4)), host()), folder.file("plain.so"));
  const auto program = runtime::Program::load(folder.file("plain.so"));
  EXPECT_EQ(program->declaration().constants, nullptr);
  EXPECT_EQ(program->inputs().size(), 2u);
}

TEST(SharedLibrary, BytesDependOnTheProgramAlone) {
  const TemporaryFolder one, other;
  fs::create_directory(other.file("a longer name"));
  const std::string first = one.file("a.so"), second = other.file("a longer name/b.so");
  write_shared_library(compile(add_constant(counted(1000)), host()), first);
  write_shared_library(compile(add_constant(counted(1000)), host()), second);
  EXPECT_EQ(contents(first), contents(second));
  EXPECT_EQ(contents(first).find(fs::path(one.path()).filename().string()), std::string::npos);
  // Nothing but the library is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(one.path()), {}), 1);
}

// What a loader reads of the file: needs no other library, no code on the stack, exports one
// symbol.
TEST(SharedLibrary, NeedsNothingAndExportsTheProgram) {
  const TemporaryFolder folder;
  write_shared_library(compile(add_constant(counted(1000)), host()), folder.file("a.so"));
  const std::string file = contents(folder.file("a.so"));
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  ASSERT_EQ(header.e_type, ET_DYN);
  bool has_stack_note = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type != PT_GNU_STACK) continue;
    has_stack_note = true;
    EXPECT_EQ(segment.p_flags & PF_X, 0u);
  }
  EXPECT_TRUE(has_stack_note);

  bool has_constants = false;
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr names, section;
    std::memcpy(&names, file.data() + header.e_shoff + header.e_shstrndx * sizeof(names),
                sizeof(names));
    std::memcpy(&section, file.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type == SHT_DYNAMIC) {
      for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        std::memcpy(&entry, file.data() + section.sh_offset + at, sizeof(entry));
        EXPECT_NE(entry.d_tag, DT_NEEDED);
        EXPECT_NE(entry.d_tag, DT_TEXTREL);
        EXPECT_NE(entry.d_tag, DT_SONAME);
      }
    }
    if (section.sh_type == SHT_DYNSYM) {
      ASSERT_EQ(section.sh_size, 2 * sizeof(Elf64_Sym));  // the first is none
      Elf64_Sym symbol;
      std::memcpy(&symbol, file.data() + section.sh_offset + sizeof(symbol), sizeof(symbol));
      EXPECT_NE(symbol.st_shndx, SHN_UNDEF);
    }
    if (std::string(file.data() + names.sh_offset + section.sh_name) == ".lrodata") {
      has_constants = true;
      EXPECT_EQ(section.sh_size, 4032u);
      EXPECT_EQ(section.sh_offset % 4096, 0u);
      EXPECT_EQ(section.sh_flags & (SHF_WRITE | SHF_EXECINSTR), 0u);
    }
  }
  EXPECT_TRUE(has_constants);
}

/// While it lives, this process can allocate no more than `bytes` beyond what it holds.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    std::ifstream status("/proc/self/status");
    rlimit limit = before_;
    for (std::string line; std::getline(status, line);)
      if (line.rfind("VmData:", 0) == 0)
        limit.rlim_cur = std::stoull(line.substr(7)) * 1024 + bytes;
    setrlimit(RLIMIT_DATA, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

// A splat of 128 MiB is written out in the file and nowhere in memory.
TEST(SharedLibrary, LargeConstantsAreStreamed) {
  const TemporaryFolder folder;
  const int64_t n = 32 << 20;
  const float value = 2.5f;
  std::vector<std::byte> element(4);
  std::memcpy(element.data(), &value, 4);
  const auto compiled = compile(add_constant(TensorData::splat(kFloat32, {n}, element)), host());
  {
    const MemoryLimit limit(32 << 20);
    write_shared_library(compiled, folder.file("large.so"));
  }
  const auto program = runtime::Program::load(folder.file("large.so"));
  EXPECT_EQ(program->declaration().constant_bytes, n * 4);
  const auto* constants = static_cast<const float*>(program->declaration().constants);
  for (const int64_t i : {int64_t{0}, n / 2, n - 1}) EXPECT_EQ(constants[i], value);
}

TEST(SharedLibrary, DistinctLargeValues) {
  const TemporaryFolder folder;
  const int64_t n = 16 << 20;  // 64 MiB
  write_shared_library(compile(add_constant(counted(n)), host()), folder.file("large.so"));
  const auto y = run_library(folder.file("large.so"), std::vector<float>(n, 1.0f));
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(y[static_cast<size_t>(i)], static_cast<float>(i % 9973) + 1.0f);
}

void expect_error(const std::string& expected, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected: " << expected;
  } catch (const CompileError& error) {
    EXPECT_EQ(std::string(error.what()), expected);
  }
}

TEST(SharedLibrary, PlacesThatCannotBeWritten) {
  const TemporaryFolder folder;
  const auto compiled = compile(program_of(add_kernel(4)), host());
  const std::string missing = folder.file("missing/a.so");
  expect_error("error[TN0002]: cannot write `" + missing + "`: No such file or directory",
               [&] { write_shared_library(compiled, missing); });
  const std::string file = folder.file("file");
  std::ofstream(file) << "text";
  expect_error("error[TN0002]: cannot write `" + file + "/a.so`: Not a directory",
               [&] { write_shared_library(compiled, file + "/a.so"); });
  expect_error("error[TN0002]: cannot write `" + folder.path() + "`: it is a folder",
               [&] { write_shared_library(compiled, folder.path()); });
}

TEST(SharedLibrary, SaysWhatIsNotDefined) {
  const TemporaryFolder folder;
  auto a = floats("a", 4), b = floats("b", 4), c = floats("c", 4);
  auto i = var("i");
  const Expr called =
      call(IntrinsicId::kCallExtern, {make<StringImm>("no_such_function"), load(a, {i})}, kFloat32);
  const auto compiled = compile(
      program_of(PrimFunc::of_buffers(
          {a, b, c}, nest({i}, {int64(4)}, make<BufferStore>(c, called, std::vector<Expr>{i})))),
      host(), named("caller"));
  for (int again = 0; again < 2; ++again)  // and the linker can be used after a failure
    expect_error(
        "error[TN0603]: `kernel` calls library function `no_such_function`, and no library is "
        "given; name the one that has it with --link",
        [&] { write_shared_library(compiled, folder.file("a.so")); });
  EXPECT_FALSE(fs::exists(folder.file("a.so")));
}

// In a process of its own: LLD cannot be used again after an error of this kind.
TEST(SharedLibrary, ABrokenObjectIsAnErrorAndNotTheEnd) {
  const TemporaryFolder folder;
  CompiledProgram compiled = compile(program_of(add_kernel(4)), host(), named("broken"));
  compiled.object.resize(compiled.object.size() / 2);
  const auto link_twice = [&] {
    for (int again = 0; again < 2; ++again) try {
        write_shared_library(compiled, folder.file("a.so"));
      } catch (const CompileError& error) {
        fprintf(stderr, "%s\n", error.what());
      }
    std::_Exit(3);
  };
  EXPECT_EXIT(link_twice(), testing::ExitedWithCode(3),
              "TN0603.: `broken` cannot be linked: .*section header.*\n"
              ".*TN0603.*: an earlier failure left the linker unusable");
}

}  // namespace
}  // namespace tenon::llvm_backend
