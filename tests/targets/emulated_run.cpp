// SPDX-License-Identifier: Apache-2.0
// Runs a shared library that Tenon made for another processor, under an emulator:
//
//     emulated_run PROGRAM.so THREADS IN... -- OUT...
//
// Each file holds one tensor: the rank and the dimensions as int64, then the elements.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tenon/runtime/tenon_runtime.h"

namespace {

struct File {
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, tenon_last_error());
  std::exit(1);
}

int64_t count(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

File read(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  int64_t rank = 0;
  if (!file || std::fread(&rank, 8, 1, file) != 1) fail(path);
  File out;
  out.shape.resize(static_cast<size_t>(rank));
  if (std::fread(out.shape.data(), 8, out.shape.size(), file) != out.shape.size()) fail(path);
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
    out.bytes.insert(out.bytes.end(), buffer, buffer + n);
  std::fclose(file);
  return out;
}

DLTensor tensor(const TenonTensorInfo& info, File& file) {
  DLTensor out{};
  out.data = file.bytes.data();
  out.device = {kDLCPU, 0};
  out.ndim = static_cast<int32_t>(file.shape.size());
  out.dtype = {info.code, info.bits, info.lanes};
  out.shape = file.shape.data();
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> in, out;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0)
      out.assign(argv + i + 1, argv + argc), i = argc;
    else
      in.emplace_back(argv[i]);
  }
  TenonModel* model = nullptr;
  if (argc < 4 || tenon_model_load(argv[1], nullptr, &model) != TENON_OK) fail("load");
  tenon_model_set_threads(model, std::atoi(argv[2]));
  const TenonProgram* program = tenon_model_program(model);
  std::vector<File> inputs, outputs(static_cast<size_t>(program->output_count));
  std::vector<DLTensor> in_tensors, out_tensors;
  std::vector<const DLTensor*> in_list;
  std::vector<DLTensor*> out_list;
  for (const std::string& path : in) inputs.push_back(read(path.c_str()));
  for (size_t i = 0; i < inputs.size(); ++i)
    in_tensors.push_back(tensor(program->inputs[i], inputs[i]));
  for (const DLTensor& one : in_tensors) in_list.push_back(&one);
  const auto given = static_cast<int32_t>(in_list.size());
  int64_t ranks = 0;
  for (int i = 0; i < program->output_count; ++i) ranks += program->outputs[i].ndim;
  std::vector<int64_t> dims(static_cast<size_t>(ranks));
  if (tenon_model_shapes(model, in_list.data(), given, dims.data(), nullptr) != TENON_OK)
    fail("shapes");
  auto dim = dims.begin();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TenonTensorInfo& info = program->outputs[i];
    outputs[i].shape.assign(dim, dim + info.ndim);
    dim += info.ndim;
    outputs[i].bytes.resize(static_cast<size_t>(count(outputs[i].shape)) * info.bits / 8);
    out_tensors.push_back(tensor(info, outputs[i]));
  }
  for (DLTensor& one : out_tensors) out_list.push_back(&one);
  if (tenon_model_run(model, in_list.data(), given, out_list.data(), program->output_count) !=
      TENON_OK)
    fail("run");
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::FILE* file = std::fopen(out.at(i).c_str(), "wb");
    if (!file) fail(out[i].c_str());
    const auto rank = static_cast<int64_t>(outputs[i].shape.size());
    std::fwrite(&rank, 8, 1, file);
    std::fwrite(outputs[i].shape.data(), 8, outputs[i].shape.size(), file);
    std::fwrite(outputs[i].bytes.data(), 1, outputs[i].bytes.size(), file);
    std::fclose(file);
  }
  tenon_model_free(model);
  return 0;
}
