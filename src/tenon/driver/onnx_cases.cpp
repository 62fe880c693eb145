// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/onnx_cases.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tenon/driver/console.h"
#include "tenon/support/diagnostics.h"

namespace tenon {

namespace fs = std::filesystem;

static constexpr int kMaxFolders = 64;  // depth

static std::vector<std::string> numbered(const fs::path& folder, const std::string& stem) {
  std::vector<std::string> files;
  for (;;) {
    const fs::path file = folder / fmt::format("{}_{}.pb", stem, files.size());
    if (!fs::exists(file)) return files;
    files.push_back(file.string());
  }
}

static std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  if (error)
    throw CompileError(kFileError, {}, "cannot read folder `{}`: {}", folder.string(),
                       error.message());
  // Numbers at the end by their value: test_data_set_2 before test_data_set_10.
  const auto key = [](const fs::path& path) {
    const std::string name = path.filename().string();
    const size_t last = name.find_last_not_of("0123456789");
    const size_t digits = last == std::string::npos ? 0 : last + 1;
    return std::tuple(name.substr(0, digits), name.size() - digits, name.substr(digits));
  };
  std::sort(entries.begin(), entries.end(),
            [&](const fs::path& a, const fs::path& b) { return key(a) < key(b); });
  return entries;
}

// The runner of ONNX reads `rtol` and `atol` of a case there.
static Tolerance tolerance_in(const fs::path& file) {
  Tolerance tolerance = kOnnxTolerance;
  if (!fs::exists(file)) return tolerance;
  const auto json = nlohmann::json::parse(read_file(file.string()), nullptr, false);
  if (!json.is_object())
    throw CompileError(kFileError, {}, "`{}` is no JSON object", file.string());
  const auto read = [&](const char* name, double& value) {
    if (!json.contains(name)) return;
    if (!json[name].is_number() || json[name] < 0)
      throw CompileError(kFileError, {}, "`{}`: `{}` is {}; expected a number from 0",
                         file.string(), name, json[name].dump());
    value = json[name];
  };
  read("rtol", tolerance.relative);
  read("atol", tolerance.absolute);
  return tolerance;
}

static OnnxCase folder_case(const fs::path& folder, std::string name) {
  OnnxCase found{std::move(name), (folder / "model.onnx").string(), {}};
  found.tolerance = tolerance_in(folder / "data.json");
  for (const fs::path& entry : sorted_entries(folder))
    if (entry.filename().string().starts_with("test_data_set_") && fs::is_directory(entry))
      found.data_sets.push_back({numbered(entry, "input"), numbered(entry, "output"), false});
  return found;
}

static void search(const fs::path& folder, const std::string& name, int depth,
                   std::vector<OnnxCase>& out) {
  if (depth > kMaxFolders) return;
  if (fs::is_regular_file(folder / "model.onnx")) {
    out.push_back(folder_case(folder, name.empty() ? folder.filename().string() : name));
    return;
  }
  for (const fs::path& entry : sorted_entries(folder)) {
    const std::string below = (name.empty() ? "" : name + "/") + entry.filename().string();
    if (fs::is_directory(entry)) {
      search(entry, below, depth + 1, out);
    } else if (entry.extension() == ".onnx") {
      const std::string stem = entry.stem().string();
      std::vector<std::string> outputs = numbered(folder, stem + "_output");
      if (outputs.empty()) continue;
      out.push_back({(name.empty() ? "" : name + "/") + stem,
                     entry.string(),
                     {{{}, std::move(outputs), true}}});
    }
  }
}

std::vector<OnnxCase> find_onnx_cases(const std::string& path) {
  std::error_code error;
  fs::path root = fs::path(path).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();  // a trailing slash
  if (!fs::exists(root, error)) throw CompileError(kFileError, {}, "`{}` does not exist", path);
  std::vector<OnnxCase> cases;
  if (fs::is_regular_file(root) && root.filename() == "model.onnx") {
    const fs::path folder = fs::absolute(root).parent_path();
    cases.push_back(folder_case(folder, folder.filename().string()));
  } else if (fs::is_directory(root)) {
    if (root == ".") root = fs::absolute(root).lexically_normal().parent_path();
    search(root, "", 0, cases);
  }
  if (cases.empty())
    throw CompileError(kFileError, {},
                       "`{}` holds no cases; expected folders with model.onnx and "
                       "test_data_set_*, or NAME.onnx with NAME_output_0.pb",
                       path);
  return cases;
}

}  // namespace tenon
