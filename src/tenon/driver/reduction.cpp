// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/reduction.h"

#include <algorithm>
#include <filesystem>

#include "tenon/backend/c_compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/defined.h"
#include "tenon/driver/load.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/expr.h"
#include "tenon/import/onnx/reduce.h"
#include "tenon/reduce/reduce.h"
#include "tenon/support/codes.h"
#include "tenon/tir/stmt.h"

namespace tenon {

static std::string with_file(std::string text, const std::string& file) {
  for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + file.size()))
    text.replace(at, 2, file);
  return text;
}

std::string FaultCommand::shown(const std::string& file) const {
  if (!line.empty()) {
    const bool names_file = line.find("{}") != std::string::npos;
    return with_file(names_file ? line : line + " {}", shell_word(file));
  }
  std::vector<std::string> words;
  for (const std::string& word : arguments) words.push_back(with_file(word, file));
  words[0] = std::filesystem::path(words[0]).filename().string();
  return shell_line(words);
}

Outcome FaultCommand::run(const std::string& file) const {
  ProbeOptions options = limits;
  options.file = file;
  if (!line.empty()) return probe_shell(shown(file), options);
  std::vector<std::string> words;
  for (const std::string& word : arguments) words.push_back(with_file(word, file));
  return probe(words, options);
}

bool FaultCommand::shows(const Outcome& first, const Outcome& run) const {
  return run.key == first.key && (message.empty() || run.output.find(message) != std::string::npos);
}

static std::string counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string size_text(const IRModule& module) {
  size_t bindings = 0, statements = 0;
  for (const auto& [name, function] : module.functions()) {
    walk<graph::Binding>(function, [&](const graph::Binding&) { ++bindings; });
    walk(function, [&](const NodePtr& node) {
      statements += node.as<tir::StmtNode>() && !node.as<tir::Seq>() && !node.as<tir::Block>();
    });
  }
  std::string text = counted(module.size(), "function");
  if (bindings > 0) text += ", " + counted(bindings, "binding");
  if (statements > 0) text += ", " + counted(statements, "statement");
  return text;
}

namespace {

class FileReduction {
 public:
  explicit FileReduction(const ReductionRequest& request) : request_(request) {}

  ReducedFile run() {
    try {
      const IRModule module = load_module(request_.model);
      if (shows(module)) return as_module(module);
    } catch (const CompileError&) {
      // The fault may be in reading the file: it is reduced as what it is.
    }
    return as_file();
  }

 private:
  bool shows(const IRModule& module) {
    const std::string file = folder_.file("candidate.tvmscript");
    std::error_code ignored;
    std::filesystem::remove(file + ".constants", ignored);
    write_module(module, file);
    return shows_file(file);
  }
  bool shows_file(const std::string& file) {
    ++out_.runs;
    return command_.shows(request_.outcome, command_.run(file));
  }

  std::string path_for(const std::string& extension) const {
    if (!request_.out.empty()) return request_.out;
    return std::filesystem::path(request_.model).stem().string() + ".reduced" + extension;
  }

  ReducedFile as_module(const IRModule& module) {
    out_.before = size_text(module);
    IRModule smallest = reduced(module);
    // A shorter pipeline may let more go.
    if (fewer_passes(smallest)) smallest = reduced(smallest);
    out_.after = size_text(smallest);
    out_.path = path_for(".tvmscript");
    write_module(smallest, out_.path);
    return finished();
  }

  IRModule reduced(const IRModule& module) {
    const std::vector<std::string> defined = defined_kernels(module);
    reduce::Options options;
    options.verify = [&](const IRModule& candidate) {
      verify_module(candidate);
      check_defined(candidate, defined);
    };
    options.out_of_time = request_.out_of_time;
    options.progress = [&](const IRModule& smaller, std::string_view step) {
      if (request_.progress)
        request_.progress(fmt::format("{} ({} runs, {})", size_text(smaller), out_.runs, step));
    };
    return reduce::reduce(
               module, [&](const IRModule& candidate) { return shows(candidate); }, options)
        .module;
  }

  // A kernel that was well defined stays so: else a candidate differs because it has no one result.
  static void check_defined(const IRModule& module, const std::vector<std::string>& defined) {
    const std::vector<std::string> still = defined_kernels(module);
    for (const std::string& name : defined)
      if (module.contains(name) && !std::binary_search(still.begin(), still.end(), name))
        throw CompileError(kUninitialisedRead, {}, "`{}` is not well defined any more", name);
  }

  // Leaves out what `--passes` names and the fault does not need.
  bool fewer_passes(const IRModule& module) {
    const auto option = std::find(command_.arguments.begin(), command_.arguments.end(), "--passes");
    if (option == command_.arguments.end() || option + 1 == command_.arguments.end()) return false;
    std::string& text = *(option + 1);
    const Pipeline passes = parse_pass_list(text);
    const auto list = [&](const std::vector<size_t>& kept) {
      std::string names;
      for (const size_t i : kept) names += (names.empty() ? "" : ", ") + pass_text(passes[i]);
      return names;
    };
    const std::vector<size_t> kept = reduce::minimise(
        passes.size(),
        [&](const std::vector<size_t>& some) {
          const std::string whole = std::exchange(text, list(some));
          const bool still = shows(module);
          text = whole;
          return still;
        },
        request_.out_of_time);
    text = list(kept);
    return kept.size() < passes.size();
  }

  ReducedFile as_file() {
    const std::string extension = std::filesystem::path(request_.model).extension().string();
    const std::string candidate = folder_.file("candidate" + extension);
    const std::string contents = read_file(request_.model);
    const auto still = [&](const std::string& smaller) {
      write_file(candidate, smaller);
      const bool found = shows_file(candidate);
      if (found && request_.progress)
        request_.progress(fmt::format("{} bytes ({} runs)", smaller.size(), out_.runs));
      return found;
    };
    std::string smallest;
    if (kind_of(request_.model) == ModelKind::kOnnx)
      smallest = onnx::reduce_network(contents, still, request_.out_of_time);
    else
      smallest = reduce::reduce_text(contents, still, request_.out_of_time);
    out_.before = fmt::format("{} bytes", contents.size());
    out_.after = fmt::format("{} bytes", smallest.size());
    out_.path = path_for(extension);
    write_file(out_.path, smallest);
    return finished();
  }

  ReducedFile finished() {
    out_.command = command_.shown(out_.path);
    return std::move(out_);
  }

  const ReductionRequest& request_;
  FaultCommand command_ = request_.command;  // with fewer passes, later
  backend::TemporaryFolder folder_;
  ReducedFile out_;
};

}  // namespace

ReducedFile reduce_file(const ReductionRequest& request) { return FileReduction(request).run(); }

}  // namespace tenon
