// SPDX-License-Identifier: Apache-2.0
// Compares the compiler's tables with the golden files: the folder of each pass shows a module that
// it changes, one with symbolic dimensions among them, and one that it leaves as it is; each
// operator is legalised, with symbolic dimensions and with every attribute. A folder that belongs
// to no pass is named.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "file.h"
#include "tenon/driver/passes.h"
#include "tenon/graph/expr.h"
#include "tenon/graph/op.h"
#include "tenon/tir/stmt.h"

namespace tenon::golden {
namespace {

namespace fs = std::filesystem;

// What the folder of a pass must show of it.
enum class Shows { kChanged, kUnchanged, kSymbolic };
constexpr std::pair<Shows, const char*> kAllShows[] = {
    {Shows::kChanged, "that it changes"},
    {Shows::kUnchanged, "that it leaves as it is"},
    {Shows::kSymbolic, "with symbolic dimensions that it changes"}};

// What a pass cannot show.
struct Exception {
  const char* pass;
  Shows what;
  const char* reason;
};
const Exception kExceptions[] = {
    {"LowerGraph", Shows::kUnchanged, "it refuses a module without a graph function main"},
    {"VerifyParallelLoops", Shows::kChanged, "it only refuses"},
    {"VerifyParallelLoops", Shows::kSymbolic, "it only refuses"},
    {"Tensorize", Shows::kUnchanged, "it refuses what does not match"},
};

bool is_exempt(const Pass& pass, Shows what) {
  return std::any_of(std::begin(kExceptions), std::end(kExceptions),
                     [&](const Exception& e) { return e.pass == pass.name && e.what == what; });
}

// Folders whose files show a notion, and not one pass.
const std::set<std::string> kNotions = {"tir/call_extern", "tir/call_tir"};

// `FuseTIR` -> `fuse_tir`, `FoldBatchnormToConv2D` -> `fold_batchnorm_to_conv2d`,
// `SplitCallTIRByPattern` -> `split_call_tir_by_pattern`.
std::string snake_case(const std::string& name) {
  std::string out;
  const auto at = [&](size_t i) { return i < name.size() ? name[i] : '\0'; };
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(at(i)) && (lower(at(i - 1)) || lower(at(i + 1)))) out += '_';
    out += upper(at(i)) ? static_cast<char>(at(i) - 'A' + 'a') : at(i);
  }
  return out;
}

TEST(Coverage, FoldersAreNamedAfterPasses) {
  EXPECT_EQ(snake_case("FuseTIR"), "fuse_tir");
  EXPECT_EQ(snake_case("FoldBatchnormToConv2D"), "fold_batchnorm_to_conv2d");
  EXPECT_EQ(snake_case("SplitCallTIRByPattern"), "split_call_tir_by_pattern");
  EXPECT_EQ(snake_case("RemoveNoOp"), "remove_no_op");
}

bool has_symbolic_dimensions(const IRModule& module) {
  bool found = false;
  for (const auto& [name, function] : module.functions()) {
    if (const auto* kernel = function.as<tir::PrimFunc>())
      found |= !tir::symbolic_vars(*kernel).empty();
    else
      walk<graph::TensorType>(function, [&](const graph::TensorType& type) {
        found |= type.has_shape() && !type.static_shape();
      });
  }
  return found;
}

// What a pass shows that made `after` of `before`.
std::set<Shows> shown(const IRModule& before, const IRModule& after) {
  if (structural_equal(before, after)) return {Shows::kUnchanged};
  if (has_symbolic_dimensions(before)) return {Shows::kChanged, Shows::kSymbolic};
  return {Shows::kChanged};
}

// Runs the passes of a file, where it expects no error, and says what each does to its module.
using Visitor = std::function<void(const Pass&, const IRModule& before, const IRModule& after)>;
void run(const fs::path& path, const Visitor& visitor) {
  if (expects_errors(path)) return;
  const std::string comment = comment_of(path), text = input_of(read(path), comment);
  IRModule module = module_of(path, text);
  const Backends backends(text, comment, module);
  PassRunner runner;
  IRModule before;
  runner.before = [&](const Pass&, const IRModule& given) { before = given; };
  runner.after = [&](const Pass& pass, const IRModule& after) { visitor(pass, before, after); };
  runner.run(std::move(module), passes_of(text, comment));
}

// `graph/fuse_ops` of a file in it.
std::string folder_of(const fs::path& path) {
  return fs::relative(path.parent_path(), root()).generic_string();
}

TEST(Coverage, EveryPassHasAFolder) {
  std::map<std::string, const Pass*> passes;
  for (const Pass& pass : all_passes()) passes[snake_case(pass.name)] = &pass;
  std::map<const Pass*, std::set<Shows>> seen;
  std::map<const Pass*, std::set<std::string>> folders;
  for (const fs::path& path : all_files()) {
    const std::string folder = folder_of(path);
    if (!folder.starts_with("graph/") && !folder.starts_with("tir/")) continue;
    const auto owner = passes.find(folder.substr(folder.find('/') + 1));
    if (owner == passes.end()) {
      EXPECT_TRUE(kNotions.count(folder))
          << "tests/golden/" << folder << " is the name of no pass; name it after one, or add it "
          << "to the notions in tests/golden/coverage.cpp";
      continue;
    }
    const Pass* pass = owner->second;
    folders[pass].insert(folder);
    if (expects_errors(path)) continue;
    bool runs = false;
    run(path, [&](const Pass& ran, const IRModule& before, const IRModule& after) {
      if (ran.name != pass->name) return;
      runs = true;
      seen[pass].merge(shown(before, after));
    });
    EXPECT_TRUE(runs) << path << " does not run " << pass->name;
  }
  for (const Pass& pass : all_passes()) {
    EXPECT_LE(folders[&pass].size(), 1u) << pass.name << " has folders at both levels";
    for (const auto& [what, words] : kAllShows) {
      const bool shows = seen[&pass].count(what) > 0;
      if (is_exempt(pass, what)) {
        EXPECT_FALSE(shows) << "a file shows a module " << words << " by " << pass.name
                            << ", and tests/golden/coverage.cpp says that there is none";
        continue;
      }
      EXPECT_TRUE(shows) << "tests/golden/{graph,tir}/" << snake_case(pass.name)
                         << " shows no module " << words;
    }
  }
}

// What the files of LegalizeOps show of an operator.
struct Legalised {
  bool has_symbolic_dimensions = false;
  std::set<std::string> attrs;  // with a value other than the default one
};

// Attributes that change no loop, and operators without symbolic dimensions.
struct OperatorException {
  const char* op;
  const char* attr;  // null: symbolic dimensions
  const char* reason;
};
const OperatorException kOperatorExceptions[] = {
    {"nn.attention", "window_size", "must be None"},
    {"vision.all_class_non_max_suppression", "output_format", "must be onnx"},
    {"vision.roi_align", "layout", "must be NCHW"},
};

bool is_exempt(const graph::OpDef& op, const char* attr) {
  return std::any_of(std::begin(kOperatorExceptions), std::end(kOperatorExceptions),
                     [&](const OperatorException& e) {
                       return e.op == op.name && !e.attr == !attr &&
                              (!attr || std::string_view(attr) == e.attr);
                     });
}

bool has_symbolic_type(const graph::Binding& binding) {
  bool found = false;
  const auto look = [&](const graph::Type& type) {
    walk<graph::TensorType>(type, [&](const graph::TensorType& tensor) {
      found |= tensor.has_shape() && !tensor.static_shape();
    });
  };
  look(binding.var->type);
  walk<graph::Var>(binding.value, [&](const graph::Var& var) { look(var.type); });
  walk<Var>(binding.value, [&](const Var&) { found = true; });
  return found;
}

TEST(Coverage, EveryOperatorIsLegalised) {
  std::map<const graph::OpDef*, Legalised> seen;
  const auto see = [&](const graph::Binding& binding) {
    const auto* call = binding.value.as<graph::Call>();
    if (!call || !call->op) return;
    Legalised& shown = seen[call->op];
    shown.has_symbolic_dimensions |= has_symbolic_type(binding);
    for (const graph::OpAttr& attr : call->op->attrs) {
      const AttrValue* value = call->attrs.find(attr.name);
      if (value && !(attr.default_value && *value == *attr.default_value))
        shown.attrs.insert(attr.name);
    }
  };
  for (const fs::path& path : all_files()) {
    if (folder_of(path) != "graph/legalize_ops") continue;
    run(path, [&](const Pass& pass, const IRModule& before, const IRModule&) {
      if (pass.name != "LegalizeOps") return;
      for (const auto& [name, function] : before.functions()) walk<graph::Binding>(function, see);
    });
  }
  for (const graph::OpDef* op : graph::all_ops()) {
    if (!op->lower) continue;
    const std::string missing = "no file of tests/golden/graph/legalize_ops calls " + op->name;
    EXPECT_TRUE(seen.count(op)) << missing;
    const Legalised& shown = seen[op];
    EXPECT_NE(shown.has_symbolic_dimensions, is_exempt(*op, nullptr))
        << missing << " with symbolic dimensions";
    for (const graph::OpAttr& attr : op->attrs)
      EXPECT_NE(shown.attrs.count(attr.name) > 0, is_exempt(*op, attr.name.c_str()))
          << missing << " with a value of " << attr.name << " that is not its default";
  }
}

}  // namespace
}  // namespace tenon::golden
