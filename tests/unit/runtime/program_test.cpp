// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tenon::runtime {
namespace {

constexpr DLDataType kF32{TENON_DTYPE_FLOAT, 32, 1};

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return std::to_string(error.code()) + ": " + error.what();
  }
  return "no error";
}

bool aligned(const void* pointer, uintptr_t alignment = 64) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

Tensor tensor(std::vector<int64_t> shape, std::vector<float> values) {
  Tensor result(kF32, std::move(shape));
  std::copy(values.begin(), values.end(), result.as<float>().begin());
  return result;
}

std::vector<float> values(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

std::vector<Tensor> run(Program& program, const std::vector<Tensor>& inputs) {
  std::vector<DLTensor> views;
  for (const Tensor& input : inputs) views.push_back(input.view());
  std::vector<const DLTensor*> pointers;
  for (const DLTensor& view : views) pointers.push_back(&view);
  return program.run(pointers);
}

// A program with constant shapes: z = x + y * constants, by way of the workspace, a task for each
// row.

const int64_t kTwoByThree[] = {2, 3};
const TenonTensorInfo kStaticInputs[] = {{"x", kTwoByThree, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0},
                                         {"y", kTwoByThree, 2, TENON_DTYPE_FLOAT, 32, 1, 16, 0}};
const TenonTensorInfo kStaticOutputs[] = {{"z", kTwoByThree, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0}};
alignas(64) const float kConstants[] = {1, 10, 100};

struct StaticEnv {
  const float *x, *y, *constants;
  float *z, *workspace;
};

int32_t static_row(TenonContext*, void* env, int64_t row) {
  const StaticEnv& e = *static_cast<StaticEnv*>(env);
  for (int64_t i = row * 3; i < row * 3 + 3; ++i) {
    e.workspace[i] = e.y[i] * e.constants[i % 3];
    e.z[i] = e.x[i] + e.workspace[i];
  }
  return TENON_OK;
}

int32_t static_run(TenonContext* context, void* const* buffers, const int64_t*, void* workspace,
                   const void* constants) {
  if (!aligned(buffers[0]) || !aligned(buffers[1], 16) || !aligned(buffers[2]) ||
      !aligned(workspace))
    return context->report(context, TENON_ERROR_INTERNAL, "run", "buffers are not aligned", 0, 0);
  StaticEnv env{static_cast<const float*>(buffers[0]), static_cast<const float*>(buffers[1]),
                static_cast<const float*>(constants), static_cast<float*>(buffers[2]),
                static_cast<float*>(workspace)};
  return context->parallel_for(context, static_row, &env, 2);
}

TenonProgram static_program() {
  TenonProgram program{};
  program.abi_version = TENON_ABI_VERSION;
  program.struct_size = sizeof(TenonProgram);
  program.name = "static";
  program.input_count = 2;
  program.output_count = 1;
  program.inputs = kStaticInputs;
  program.outputs = kStaticOutputs;
  program.alignment = 64;
  program.run = static_run;
  program.constants = kConstants;
  program.constant_bytes = sizeof(kConstants);
  program.workspace_bytes = 24;
  return program;
}

struct StaticProgram : testing::Test {
  TenonProgram declaration = static_program();
  std::shared_ptr<Program> program = Program::wrap(&declaration);
  Tensor x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor y = tensor({2, 3}, {1, 1, 1, 2, 2, 2});
  const std::vector<float> expected = {2, 12, 103, 6, 25, 206};

  std::string error_with(const Tensor& first) {
    return error_of([&] { run(*program, {first, y}); });
  }
};

TEST_F(StaticProgram, RunsAtAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 0}) {
    program->set_threads(threads);
    EXPECT_EQ(values(run(*program, {x, y}).at(0)), expected);
  }
  EXPECT_EQ(error_of([&] { program->set_threads(-1); }),
            "1: -1 threads wanted; possible are 1 to 4096, or 0 for as many as there are CPUs");
}

TEST_F(StaticProgram, RunsInSeveralThreadsAtOnce) {
  program->set_threads(2);
  std::vector<std::thread> users;
  std::atomic<int> wrong = 0;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&, user] {
      Tensor own = tensor({2, 3}, std::vector<float>(6, static_cast<float>(user)));
      for (int i = 0; i < 500; ++i)
        wrong += values(run(*program, {own, y}).at(0))[1] != static_cast<float>(user) + 10;
    });
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(StaticProgram, ArgumentsThatDoNotFitAreErrors) {
  EXPECT_EQ(error_of([&] { run(*program, {x}); }),
            "1: 1 input given; the program declares 2: `x`, `y`");
  EXPECT_EQ(error_with(Tensor({TENON_DTYPE_FLOAT, 64, 1}, {2, 3})),
            "1: input `x` has dtype float64; the program declares float32");
  EXPECT_EQ(error_with(Tensor(kF32, {2, 4})),
            "1: input `x` has shape (2, 4); the program declares (2, 3)");
  EXPECT_EQ(error_with(Tensor(kF32, {6})),
            "1: input `x` has shape (6,); the program declares (2, 3)");

  DLTensor good = y.view(), bad = x.view();
  auto error = [&] {
    const DLTensor* inputs[] = {&bad, &good};
    return error_of([&] { program->run(inputs); });
  };
  int64_t strides[] = {1, 2};
  bad.strides = strides;
  EXPECT_EQ(error(),
            "1: input `x` of shape (2, 3) has strides (1, 2); the program needs it packed, with "
            "strides (3, 1)");
  bad = x.view();
  bad.data = nullptr;
  EXPECT_EQ(error(), "1: input `x` has shape (2, 3) and no data");
  bad = x.view();
  bad.device.device_type = kDLCUDA;
  EXPECT_EQ(error(),
            "1: input `x` lies on a device of DLPack type 2; the program runs in CPU memory (1)");
  const DLTensor* with_null[] = {nullptr, &good};
  EXPECT_EQ(error_of([&] { program->run(with_null); }), "1: input `x` is null");
}

TEST_F(StaticProgram, MisalignedArgumentsAreCopied) {
  Tensor room = Tensor(kF32, {64});
  float* odd = room.as<float>().data() + 1;
  float* odd_output = room.as<float>().data() + 33;
  std::memcpy(odd, x.data(), 24);
  DLTensor first = x.view(), second = y.view(), output = x.view();
  first.data = room.data();
  first.byte_offset = sizeof(float);
  output.data = odd_output;
  odd_output[6] = -1;
  const DLTensor* inputs[] = {&first, &second};
  DLTensor* outputs[] = {&output};
  program->run(inputs, outputs);
  EXPECT_EQ(std::vector<float>(odd_output, odd_output + 6), expected);
  EXPECT_EQ(odd_output[6], -1);
}

// An output in the memory of `x`: one is added to what it holds.
int32_t in_place_run(TenonContext*, void* const* buffers, const int64_t*, void*, const void*) {
  auto* z = static_cast<float*>(buffers[2]);
  for (int i = 0; i < 6; ++i) z[i] += 1;
  return TENON_OK;
}

struct InPlaceProgram : StaticProgram {
  TenonTensorInfo output = kStaticOutputs[0];
  TenonProgram declared = declaration;
  void SetUp() override {
    output.flags = TENON_TENSOR_IN_PLACE_OF(0);
    declared.outputs = &output;
    declared.run = in_place_run;
  }
};

TEST_F(InPlaceProgram, SharesTheMemoryOfAnInputOrCopiesIt) {
  const auto shared = Program::wrap(&declared);
  const std::vector<float> before = values(x);
  std::vector<float> after = before;
  for (float& value : after) value += 1;
  EXPECT_EQ(values(run(*shared, {x, y})[0]), after);
  EXPECT_EQ(values(x), before);
  DLTensor first = x.view(), second = y.view(), third = x.view();
  const DLTensor* inputs[] = {&first, &second};
  DLTensor* outputs[] = {&third};
  shared->run(inputs, outputs);
  EXPECT_EQ(values(x), after);
  third.shape = first.shape;
  third.data = y.data();
  EXPECT_EQ(error_of([&] { shared->run(inputs, outputs); }),
            "1: output `z` overlaps input `y` in memory; the program needs them apart");
}

TEST_F(InPlaceProgram, SharedInputsAreChecked) {
  output.flags = TENON_TENSOR_IN_PLACE_OF(2);
  EXPECT_EQ(error_of([&] { Program::wrap(&declared); }),
            "7: not a valid program: output `z` shares memory with an input that is not there");
  output.flags = TENON_TENSOR_IN_PLACE_OF(0);
  output.bits = 64;
  EXPECT_EQ(error_of([&] { Program::wrap(&declared); }),
            "7: not a valid program: output `z` shares memory with an input of another type");
}

TEST_F(StaticProgram, OutputsOfTheCallerAreChecked) {
  DLTensor first = x.view(), second = y.view();
  const DLTensor* inputs[] = {&first, &second};
  auto error = [&](std::vector<DLTensor*> outputs) {
    return error_of([&] { program->run(inputs, outputs); });
  };
  EXPECT_EQ(error({}), "1: 0 outputs given; the program declares 1: `z`");
  Tensor small(kF32, {2, 2});
  DLTensor output = small.view();
  EXPECT_EQ(error({&output}), "1: output `z` has shape (2, 2); the program declares (2, 3)");
  output = y.view();
  EXPECT_EQ(error({&output}),
            "1: output `z` overlaps input `y` in memory; the program needs them apart");
}

TEST_F(StaticProgram, FloatingPointStateIsTheSameForEveryHost) {
#if defined(__SSE__)
  Tensor tiny = tensor({2, 3}, std::vector<float>(6, 1e-40f)),
         zero = tensor({2, 3}, std::vector<float>(6, 0.0f));
  uint32_t before = _mm_getcsr();
  uint32_t flushing = before | 0x8040;  // denormals are flushed and read as zero
  _mm_setcsr(flushing);
  std::vector<Tensor> outputs = run(*program, {tiny, zero});
  uint32_t after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(values(outputs[0]), values(tiny));
  EXPECT_EQ(after & ~0x3fu, flushing & ~0x3fu);
#endif
}

TEST_F(StaticProgram, OtherVersionsAreRefused) {
  auto error = [&] { return error_of([&] { Program::wrap(&declaration); }); };
  declaration.abi_version = 2u << 16;
  EXPECT_EQ(error(),
            "7: program was compiled for version 2.0 of the runtime interface; this runtime "
            "provides 1.2");
  declaration.abi_version = TENON_ABI_VERSION + 1;
  EXPECT_EQ(error(),
            "7: program was compiled for version 1.3 of the runtime interface; this runtime "
            "provides 1.2");
  declaration.abi_version = TENON_ABI_VERSION;
  declaration.struct_size = 64;
  EXPECT_EQ(error(), "7: not a valid program: its declaration has 64 bytes; version 1.2 has 152");
}

TEST_F(StaticProgram, BrokenDeclarationsAreRefused) {
  auto error_after = [](auto change) {
    TenonProgram broken = static_program();
    change(broken);
    return error_of([&] { Program::wrap(&broken); });
  };
  EXPECT_EQ(error_of([] { Program::wrap(nullptr); }), "7: not a valid program: it is null");
  EXPECT_EQ(error_after([](TenonProgram& p) { p.run = nullptr; }),
            "7: not a valid program: it has no function to run");
  EXPECT_EQ(error_after([](TenonProgram& p) { p.alignment = 48; }),
            "7: not a valid program: its alignment is no power of 2");
  EXPECT_EQ(error_after([](TenonProgram& p) { p.workspace_bytes = -1; }),
            "7: not a valid program: nothing computes the size of its workspace");
  EXPECT_EQ(error_after([](TenonProgram& p) { p.constants = nullptr; }),
            "7: program has 12 bytes of constants outside of it; none were given");
  static const int64_t symbolic[] = {TENON_DIM_SYMBOL(0)};
  static const TenonTensorInfo input[] = {{"x", symbolic, 1, TENON_DTYPE_FLOAT, 32, 1, 0, 0}};
  EXPECT_EQ(error_after([](TenonProgram& p) {
              p.inputs = input;
              p.input_count = 1;
            }),
            "7: not a valid program: input `x` names a symbol that is not there");
}

TEST_F(StaticProgram, ConstantsMayComeFromOutside) {
  TenonProgram without = static_program();
  without.constants = nullptr;
  alignas(64) const float ones[] = {1, 1, 1, 0};
  EXPECT_EQ(values(run(*Program::wrap(&without, ones), {x, y}).at(0)),
            (std::vector<float>{2, 3, 4, 6, 7, 8}));
  EXPECT_EQ(error_of([&] { Program::wrap(&without, ones + 1); }),
            "7: constants are not aligned; the program declares an alignment of 64 bytes");
}

TEST(Program, HoldsItsOwnerUntilTheEnd) {
  TenonProgram declaration = static_program();
  auto owner = std::make_shared<int>(0);
  std::shared_ptr<Program> program = Program::wrap(&declaration, nullptr, owner);
  EXPECT_EQ(owner.use_count(), 2);
  program = nullptr;
  EXPECT_EQ(owner.use_count(), 1);
}

// A program with symbolic shapes: rows of `table` (n, 4) gathered by `index` (m,), repeated `count`
// times: (m * k, 4). `weight` (n, 1) only has to agree with `table`.

const int64_t kTable[] = {TENON_DIM_SYMBOL(0), 4}, kWeight[] = {TENON_DIM_SYMBOL(0), 1},
              kIndex[] = {TENON_DIM_SYMBOL(1)};
const int64_t kCount[] = {2}, kGathered[] = {TENON_DIM_COMPUTED, 4};
const TenonTensorInfo kGatherInputs[] = {{"table", kTable, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0},
                                         {"weight", kWeight, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0},
                                         {"index", kIndex, 1, TENON_DTYPE_INT, 64, 1, 0, 0},
                                         {"count", kCount, 1, TENON_DTYPE_INT, 32, 1, 0, 0}};
const TenonTensorInfo kGatherOutputs[] = {{"rows", kGathered, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0}};
const TenonSymbol kGatherSymbols[] = {{"n", TENON_SYMBOL_DIM, 0, 0, 1, 512},
                                      {"m", TENON_SYMBOL_DIM, 2, 0, 0, INT64_MAX},
                                      {"k", TENON_SYMBOL_VALUE, 3, 1, 1, 3}};

int32_t gather_shapes(TenonContext* context, const int64_t* symbols, int64_t* output_dims,
                      int64_t* workspace_bytes) {
  if (symbols[1] > 1000)
    return context->report(context, TENON_ERROR_SHAPE, "Gather_7",
                           "{value} rows are more than {bound}", symbols[1], 1000);
  output_dims[0] = symbols[1] * symbols[2];
  output_dims[1] = 4;
  *workspace_bytes = symbols[1] * 8;
  return TENON_OK;
}

struct GatherEnv {
  const float* table;
  const int64_t* index;
  float* rows;
  const int64_t* symbols;
};

int32_t gather_row(TenonContext* context, void* env, int64_t row) {
  const GatherEnv& e = *static_cast<GatherEnv*>(env);
  int64_t n = e.symbols[0], m = e.symbols[1], from = e.index[row % m];
  if (from < 0 || from >= n)
    return context->report(context, TENON_ERROR_INDEX, "Gather_7",
                           "index {value} is out of range for an axis of {bound} elements", from,
                           n);
  for (int64_t i = 0; i < 4; ++i) e.rows[row * 4 + i] = e.table[from * 4 + i];
  return TENON_OK;
}

int32_t gather_run(TenonContext* context, void* const* buffers, const int64_t* symbols,
                   void* workspace, const void*) {
  std::memset(workspace, 0xff, static_cast<size_t>(symbols[1] * 8));  // as much as was asked for
  GatherEnv env{static_cast<const float*>(buffers[0]), static_cast<const int64_t*>(buffers[2]),
                static_cast<float*>(buffers[4]), symbols};
  return context->parallel_for(context, gather_row, &env, symbols[1] * symbols[2]);
}

struct SymbolicProgram : testing::Test {
  static TenonProgram declare() {
    TenonProgram program{};
    program.abi_version = TENON_ABI_VERSION;
    program.struct_size = sizeof(TenonProgram);
    program.name = "gather";
    program.input_count = 4;
    program.output_count = 1;
    program.symbol_count = 3;
    program.inputs = kGatherInputs;
    program.outputs = kGatherOutputs;
    program.symbols = kGatherSymbols;
    program.alignment = 64;
    program.shapes = gather_shapes;
    program.run = gather_run;
    program.workspace_bytes = -1;
    return program;
  }

  static Tensor index(std::vector<int64_t> rows) {
    Tensor result({TENON_DTYPE_INT, 64, 1}, {static_cast<int64_t>(rows.size())});
    std::copy(rows.begin(), rows.end(), result.as<int64_t>().begin());
    return result;
  }
  static Tensor count(int32_t k) {
    Tensor result({TENON_DTYPE_INT, 32, 1}, {2});
    result.as<int32_t>()[0] = -9;
    result.as<int32_t>()[1] = k;
    return result;
  }
  static Tensor table(int64_t n) {
    Tensor result(kF32, {n, 4});
    for (size_t i = 0; i < result.as<float>().size(); ++i)
      result.as<float>()[i] = static_cast<float>(i / 4);
    return result;
  }

  TenonProgram declaration = declare();
  std::shared_ptr<Program> program = Program::wrap(&declaration);

  std::string error_with(const Tensor& first, const Tensor& weight, const Tensor& rows, int32_t k) {
    return error_of([&] { run(*program, {first, weight, rows, count(k)}); });
  }
};

TEST_F(SymbolicProgram, RunsOnSeveralSizes) {
  for (int64_t m : {3, 700, 5, 0}) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < m; ++i) rows.push_back(i % 6);
    std::vector<Tensor> outputs =
        run(*program, {table(6), Tensor(kF32, {6, 1}), index(rows), count(2)});
    ASSERT_EQ(outputs.at(0).shape(), (std::vector<int64_t>{2 * m, 4}));
    for (int64_t i = 0; i < 8 * m; ++i)
      ASSERT_EQ(values(outputs[0])[static_cast<size_t>(i)], static_cast<float>(i / 4 % m % 6));
  }
}

TEST_F(SymbolicProgram, TellsShapesBeforeTheRun) {
  std::vector<Tensor> inputs = {table(6), Tensor(kF32, {6, 1}), index({1, 2, 3}), count(3)};
  std::vector<DLTensor> views;
  for (const Tensor& input : inputs) views.push_back(input.view());
  const DLTensor* pointers[] = {&views[0], &views[1], &views[2], &views[3]};
  Program::Shapes shapes = program->shapes(pointers);
  EXPECT_EQ(shapes.symbols, (std::vector<int64_t>{6, 3, 3}));
  EXPECT_EQ(shapes.output_dims, (std::vector<int64_t>{9, 4}));
  EXPECT_EQ(shapes.workspace_bytes, 24);

  Tensor wrong(kF32, {8, 4});
  DLTensor output = wrong.view();
  DLTensor* outputs[] = {&output};
  EXPECT_EQ(error_of([&] { program->run(pointers, outputs); }),
            "1: output `rows` has shape (8, 4); the program declares (?, 4), here (9, 4)");
}

TEST_F(SymbolicProgram, SymbolsOutOfBoundsAndInDisagreementAreErrors) {
  Tensor weight(kF32, {6, 1}), rows = index({0});
  EXPECT_EQ(
      error_with(table(513), weight, rows, 1),
      "1: input `table` has shape (513, 4); the program declares (n, 4) with n from 1 to 512");
  EXPECT_EQ(error_with(table(6), Tensor(kF32, {5, 1}), rows, 1),
            "1: input `weight` has shape (5, 1); the program declares (n, 1) with n = 6, dimension "
            "0 of input `table`");
  EXPECT_EQ(error_with(Tensor(kF32, {6, 5}), weight, rows, 1),
            "1: input `table` has shape (6, 5); the program declares (n, 4)");
  EXPECT_EQ(error_with(table(6), weight, rows, 4),
            "1: element 1 of input `count` is 4; the program declares it as k, from 1 to 3");
}

TEST_F(SymbolicProgram, ErrorsOfTheProgramNameTheOperator) {
  Tensor weight(kF32, {6, 1});
  std::vector<int64_t> rows(200, 0);
  rows[50] = 6;
  rows[51] = -3;
  rows[150] = 99;
  for (int threads : {1, 2, 3}) {
    program->set_threads(threads);
    for (int round = 0; round < 50; ++round)
      ASSERT_EQ(error_with(table(6), weight, index(rows), 1),
                "2: `Gather_7`: index 6 is out of range for an axis of 6 elements");
  }
  EXPECT_EQ(error_with(table(6), weight, index(std::vector<int64_t>(1001, 0)), 1),
            "3: `Gather_7`: 1001 rows are more than 1000");
}

TEST(Program, AnErrorWithoutAReportHasAMessage) {
  TenonProgram declaration = static_program();
  declaration.input_count = declaration.output_count = 0;
  declaration.run = [](TenonContext*, void* const*, const int64_t*, void*, const void*) -> int32_t {
    return TENON_ERROR_LIBRARY;
  };
  std::shared_ptr<Program> program = Program::wrap(&declaration);
  EXPECT_EQ(error_of([&] { program->run({}); }), "6: `static` failed: a library call failed");
}

// An output whose extent depends on the data: the elements of x (n,) above 0.

const int64_t kVector[] = {TENON_DIM_SYMBOL(0)};
const TenonTensorInfo kPositiveInputs[] = {{"x", kVector, 1, TENON_DTYPE_FLOAT, 32, 1, 0, 0}};
const TenonTensorInfo kPositiveOutputs[] = {{"y", kVector, 1, TENON_DTYPE_FLOAT, 32, 1, 0, 0}};
const TenonSymbol kPositiveSymbols[] = {{"n", TENON_SYMBOL_DIM, 0, 0, 0, INT64_MAX}};

int32_t positive_run(TenonContext* context, void* const* buffers, const int64_t* symbols, void*,
                     const void*) {
  int64_t found = 0;
  for (int64_t i = 0; i < symbols[0]; ++i) {
    float value = static_cast<const float*>(buffers[0])[i];
    if (value > 0) static_cast<float*>(buffers[1])[found++] = value;
  }
  context->output_dims[0] = found;
  return TENON_OK;
}

TEST(Program, OutputsMayTurnOutSmallerThanTheirBound) {
  TenonProgram declaration = static_program();
  declaration.input_count = declaration.output_count = declaration.symbol_count = 1;
  declaration.inputs = kPositiveInputs;
  declaration.outputs = kPositiveOutputs;
  declaration.symbols = kPositiveSymbols;
  declaration.run = positive_run;
  std::shared_ptr<Program> program = Program::wrap(&declaration);
  Tensor x = tensor({4}, {-1, 5, 0, 7});
  EXPECT_EQ(values(run(*program, {x}).at(0)), (std::vector<float>{5, 7}));

  Tensor y = tensor({4}, {-1, -1, -1, -1});
  DLTensor input = x.view(), output = y.view();
  int64_t shape[] = {4};
  output.shape = shape;
  const DLTensor* inputs[] = {&input};
  DLTensor* outputs[] = {&output};
  program->run(inputs, outputs);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(values(y), (std::vector<float>{5, 7, -1, -1}));
}

}  // namespace
}  // namespace tenon::runtime
