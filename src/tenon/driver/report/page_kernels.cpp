// SPDX-License-Identifier: Apache-2.0
// How long each call takes, and each kernel from the nodes of the model to machine code.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "tenon/driver/console.h"
#include "tenon/driver/report/page_parts.h"
#include "tenon/support/markup.h"

namespace tenon::page {

static std::string node_list(const Report::Call& call, const Index& index) {
  constexpr size_t kMost = 6;
  std::string out;
  for (size_t i = 0; i < call.operators.size(); ++i) {
    if (i == kMost) return out + fmt::format(" and {} more", call.operators.size() - kMost);
    const std::string name = markup(shortened(call.operators[i].node, 80));
    const auto story = index.stories.find(call.operators[i].node);
    out += out.empty() ? "" : ", ";
    out += story == index.stories.end()
               ? name
               : fmt::format("<a href=\"#node-{}\">{}</a>", story->second, name);
  }
  return out;
}

static std::string time_cells(const Report::Call& call, double total, double longest) {
  if (!call.milliseconds)
    return "<td class=\"n\"></td><td class=\"n\"></td><td class=\"n\"></td><td></td>";
  const double share = total > 0 ? *call.milliseconds / total : 0;
  const std::optional<double> gflops = gflops_of(call);
  return measured(fmt::format(
      "<td class=\"n\" data-v=\"{0:.6f}\">{0:.4f}</td><td class=\"n\" data-v=\"{1:.6f}\">{2:.1f} "
      "%</td><td class=\"n\" data-v=\"{3}\">{3}</td>{4}",
      *call.milliseconds, share, 100 * share, gflops ? fmt::format("{:.1f}", *gflops) : "",
      bar_cell(longest > 0 ? *call.milliseconds / longest : 0)));
}

std::string times_section(const Report& report, const Index& index, const PageOptions& options) {
  std::string out = "<section id=\"times\"><h2>Time of each call</h2>\n";
  if (report.run)
    out += fmt::format(
        "<p class=\"note\">The fastest of {} on {}; GFLOP/s counts the products and sums of "
        "contractions.</p>\n",
        counted(report.run->runs, "run"),
        counted(static_cast<size_t>(report.run->threads), "thread"));
  else
    out += fmt::format("<p class=\"note\">Not measured: {}.</p>\n", markup(report.not_run));
  out +=
      "<div class=\"tools\" data-filters=\"#calls tbody tr\"><input type=\"search\" "
      "placeholder=\"kernel or node\" aria-label=\"filter calls\"><span "
      "class=\"count\"></span></div>\n"
      "<div class=\"wide\"><table id=\"calls\" class=\"sortable roomy\"><thead><tr><th "
      "class=\"n\">call</th><th>kernel</th><th class=\"n\" data-first=\"1\">ms</th><th "
      "class=\"n\">share</th><th class=\"n\">GFLOP/s</th><th></th><th>computed by</th>"
      "<th>nodes</th></tr></thead><tbody>\n";
  const double total = total_milliseconds(report);
  double longest = 0;
  for (const Report::Call& call : report.calls)
    longest = std::max(longest, call.milliseconds.value_or(0));
  for (size_t i = 0; i < std::min(report.calls.size(), options.rows); ++i) {
    const Report::Call& call = report.calls[i];
    const ProgramPlan::Call& planned = report.plan.calls[i];
    const auto kernel = index.kernels.find(planned.callee);
    out += fmt::format(
        "<tr><td class=\"n\">{}</td><td><a href=\"#kernel-{}\"><code>{}</code></a></td>{}"
        "<td class=\"k\">{}</td><td>{}</td></tr>\n",
        i, kernel == index.kernels.end() ? 0 : kernel->second,
        markup(planned.symbol.empty() ? planned.callee : planned.symbol),
        time_cells(call, total, longest), markup(provider_name(call.provider)),
        node_list(call, index));
  }
  out += "</tbody></table></div>\n";
  if (report.calls.size() > options.rows)
    out += fmt::format("<p class=\"note\">The first {} of {} calls are listed.</p>\n", options.rows,
                       report.calls.size());
  return out + "</section>\n";
}

// ---- kernels

static std::string code(const char* title, const char* language, const std::string& text,
                        Budget& budget, const PageOptions& options) {
  if (text.empty()) return "";
  return fmt::format(
      "<details><summary>{} <span class=\"soft\">{} lines</span></summary><pre "
      "data-code=\"{}\">{}</pre></details>\n",
      title, std::count(text.begin(), text.end(), '\n'), language,
      markup(budget.take(text, options.text_bytes)));
}

static std::string remark_line(const Remark& remark) {
  std::string line = remark.pass + ": " + remark.subject + " " + remark.verdict;
  if (!remark.reason.empty()) line += " (" + remark.reason + ")";
  if (!remark.detail.empty()) line += ": " + remark.detail;
  return line;
}

static std::string story_text(const Story& story) {
  std::string out = "from " + story.origin + "\n";
  for (size_t i = 0; i < story.steps.size(); ++i) {
    const Story::Step& step = story.steps[i];
    out += i == 0 ? "\nas imported" : "\nafter " + step.pass;
    out += step.lines.empty() ? ": nothing is left of it\n" : "\n";
    for (const std::string& line : step.lines) out += "  " + line + "\n";
  }
  out += "\n";
  for (const Placement& placement : story.placements) out += "placement: " + str(placement) + "\n";
  for (const Story::Group& group : story.groups) {
    out += "fused into " + group.function + ":";
    for (const std::string& node : group.nodes) out += " " + node;
    out += "\n";
  }
  for (const Story::Place& buffer : story.buffers)
    out += fmt::format("buffer {}: {}{}\n", buffer.name,
                       buffer.bytes < 0 ? "symbolic size" : bytes_text(buffer.bytes),
                       buffer.where.empty() ? "" : ", " + buffer.where);
  for (const Remark& remark : story.remarks) out += remark_line(remark) + "\n";
  return out;
}

static std::string story_of(const Report& report, size_t i, Budget& budget,
                            const PageOptions& options) {
  const Story& story = report.stories[i];
  // An origin ends with the type of the operator, where it has one.
  return fmt::format(
      "<details id=\"node-{}\" data-text=\"{}\"><summary>{} <span "
      "class=\"soft\">{}</span></summary><pre "
      "class=\"wrap\">{}</pre></details>\n",
      i, markup(shortened(story.node, 300)), markup(shortened(story.node, 160)),
      markup(shortened(story.origin, 200)),
      markup(budget.take(story_text(story), options.text_bytes)));
}

static std::string kernel_summary(const Report& report, const Report::Kernel& kernel) {
  double milliseconds = 0;
  bool is_measured = false;
  for (const size_t i : kernel.calls) {
    is_measured |= report.calls[i].milliseconds.has_value();
    milliseconds += report.calls[i].milliseconds.value_or(0);
  }
  return fmt::format("{}, {}{}", provider_name(report.calls[kernel.calls[0]].provider),
                     counted(kernel.calls.size(), "call"),
                     is_measured ? measured(fmt::format(", {:.4f} ms", milliseconds)) : "");
}

std::string kernels_section(const Report& report, const Index& index, const PageOptions& options) {
  std::string out =
      "<section id=\"kernels\"><h2>Kernels, from node to machine code</h2>\n<div class=\"tools\" "
      "data-filters=\".kernel\"><input type=\"search\" placeholder=\"kernel or node\" "
      "aria-label=\"filter "
      "kernels\"><span class=\"count\"></span></div>\n";
  static_cast<void>(index);
  // By the functions and symbols that they end in.
  std::map<std::string, std::vector<size_t>> stories;
  for (size_t i = 0; i < report.stories.size(); ++i) {
    std::set<std::string> ends(report.stories[i].kernels.begin(), report.stories[i].kernels.end());
    ends.insert(report.stories[i].libraries.begin(), report.stories[i].libraries.end());
    for (const std::string& end : ends) stories[end].push_back(i);
  }
  Budget for_code{options.code_bytes}, for_stories{options.story_bytes};
  for (const Report::CText& text : report.c)
    out += code(markup(text.name).c_str(), "c", text.text, for_code, options);
  std::set<size_t> told;
  for (size_t k = 0; k < report.kernels.size(); ++k) {
    const Report::Kernel& kernel = report.kernels[k];
    const std::vector<size_t>& nodes =
        stories[kernel.symbol.starts_with("fn.") ? kernel.function : kernel.symbol];
    std::string names, text = kernel.function;
    for (const size_t i : nodes) text += " " + report.stories[i].node;
    for (size_t i = 0; i < std::min<size_t>(nodes.size(), 4); ++i)
      names += (i > 0 ? ", " : "") + report.stories[nodes[i]].node;
    if (nodes.size() > 4) names += fmt::format(", ... ({})", nodes.size());
    out += fmt::format(
        "<details class=\"kernel\" id=\"kernel-{}\" data-text=\"{}\"><summary><code>{}</code> {} "
        "<span "
        "class=\"soft\">{}</span></summary>\n",
        k, markup(shortened(text, 4000)), markup(kernel.function), markup(shortened(names, 200)),
        kernel_summary(report, kernel));
    for (const size_t i : nodes) {
      if (told.insert(i).second)
        out += story_of(report, i, for_stories, options);
      else
        out += fmt::format("<p class=\"note\"><a href=\"#node-{}\">{}</a> is told above.</p>\n", i,
                           markup(shortened(report.stories[i].node, 160)));
    }
    out += code("TensorIR before it is scheduled", "script", kernel.tensor_ir, for_code, options);
    out += code("scheduled TensorIR", "script", kernel.scheduled, for_code, options);
    out += code("assembly", "assembly", kernel.assembly, for_code, options);
    out += code("C", "c", kernel.c, for_code, options);
    if (kernel.tensor_ir.empty() && kernel.assembly.empty() && kernel.c.empty())
      out += fmt::format("<p class=\"note\">Code of a library: <code>{}</code>.</p>\n",
                         markup(kernel.symbol));
    out += "</details>\n";
  }
  std::string rest;
  size_t count = 0;
  for (size_t i = 0; i < report.stories.size(); ++i) {
    if (told.count(i) != 0) continue;
    ++count;
    rest += story_of(report, i, for_stories, options);
  }
  if (count > 0)
    out += fmt::format(
        "<details><summary>{} that no kernel computes <span class=\"soft\">folded, removed, or "
        "views of "
        "others' memory</span></summary>\n{}</details>\n",
        counted(count, "node"), rest);
  return out + "</section>\n";
}

}  // namespace tenon::page
