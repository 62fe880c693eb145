// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/page.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/driver/console.h"
#include "tenon/driver/report/page_parts.h"
#include "tenon/driver/report/texts.h"
#include "tenon/support/markup.h"

namespace tenon {

namespace page {

std::string measured(const std::string& html) { return "<!--t-->" + html + "<!--/t-->"; }

std::string provider_name(const std::string& provider) {
  if (provider.empty()) return "own code";
  if (provider == "kernels") return "kernels of your own";
  if (provider == "extern") return "library calls";
  return provider;
}

std::string provider_class(const std::string& provider) {
  if (provider.empty()) return "p-own";
  for (const char* known : {"dnnl", "blas", "kernels", "extern"})
    if (provider == known) return "p-" + provider;
  return "p-other";
}

std::string counted(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Budget::take(const std::string& text, size_t most) {
  most = std::min(most, bytes);
  bytes -= std::min(bytes, text.size());
  if (text.size() <= most) return text;
  const std::string left_out =
      fmt::format("{} of {} bytes are left out", text.size() - most, text.size());
  return most == 0 ? "... " + left_out : shortened(text, most) + "\n... " + left_out;
}

double total_milliseconds(const Report& report) {
  double total = 0;
  for (const Report::Call& call : report.calls) total += call.milliseconds.value_or(0);
  return total;
}

std::optional<double> gflops_of(const Report::Call& call) {
  if (!call.flop || *call.flop <= 0 || call.milliseconds.value_or(0) <= 0) return std::nullopt;
  return *call.flop * static_cast<double>(std::max<int64_t>(call.runs, 1)) / *call.milliseconds /
         1e6;
}

Index::Index(const Report& report) {
  for (size_t i = 0; i < report.kernels.size(); ++i) kernels[report.kernels[i].function] = i;
  for (size_t i = 0; i < report.stories.size(); ++i) stories[report.stories[i].node] = i;
}

std::string bar_cell(double share) {
  return fmt::format("<td class=\"bar\" data-v=\"{0:.5f}\"><i style=\"width:{1:.1f}%\"></i></td>",
                     share, 100 * share);
}

}  // namespace page

namespace {

using namespace page;

std::string card(const std::string& value, const std::string& words) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", value, words);
}

// Of the model where its sizes are known, otherwise of its kernels.
double gflop_of(const Report& report) {
  if (report.gflop > 0) return report.gflop;
  double flop = 0;
  for (const Report::Call& call : report.calls) flop += call.flop.value_or(0);
  return flop / 1e9;
}

std::string cards(const Report& report) {
  std::string out = "<div class=\"cards\">\n";
  if (report.run) {
    const Report::Run& run = *report.run;
    out += card(
        measured(time_text(run.median)),
        fmt::format("median of {} on {}, with the marks that measure kernels",
                    counted(run.runs, "run"), counted(static_cast<size_t>(run.threads), "thread")));
    const double gflop = gflop_of(report);
    if (gflop > 0 && run.median > 0)
      out += card(measured(fmt::format("{:.1f} GFLOP/s", gflop / run.median)),
                  fmt::format("{:.4g} GFLOP of contractions in a run", gflop));
  } else {
    out += card("not run", markup(report.not_run));
  }
  size_t libraries = 0;
  for (const ProgramPlan::Call& call : report.plan.calls) libraries += call.symbol.empty() ? 0 : 1;
  out += card(fmt::format("{} &rarr; {}", report.operators,
                          counted(report.plan.calls.size() - libraries, "kernel")),
              libraries == 0
                  ? "operators, and calls that compute them"
                  : fmt::format("operators; and {} of libraries", counted(libraries, "call")));
  const memory::Picture picture = picture_of(report.plan, report.dims);
  out += card(bytes_text(picture.peak),
              fmt::format("peak of planned memory; lower bound {}", bytes_text(picture.bound)));
  if (report.run) out += card(bytes_text(report.constant_bytes), "constants");
  double seconds = 0;
  for (const Report::Step& step : report.steps) seconds += step.seconds;
  out += card(measured(time_text(seconds)), "passes and code generation");
  return out + "</div>\n";
}

std::string ports(const char* kind, const std::vector<Port>& ports) {
  std::string out;
  for (const Port& port : ports)
    out += fmt::format("<tr><td>{}</td><td><code>{}</code></td><td><code>{}</code></td></tr>\n",
                       kind, markup(port.name), markup(port.str()));
  return out;
}

std::string dims_text(const Report& report) {
  std::string out;
  for (const auto& [name, value] : report.dims)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", markup(name), value);
  return out;
}

std::string interface_section(const Report& report) {
  std::string out =
      "<section id=\"interface\"><h2>Interface and target</h2>\n<div class=\"wide\"><table>"
      "<thead><tr><th>kind</th><th>name</th><th>type</th></tr></thead><tbody>\n";
  out += ports("input", report.signature.inputs) + ports("output", report.signature.outputs);
  out += "</tbody></table></div>\n";
  if (!report.dims.empty())
    out += fmt::format("<p class=\"note\">Sizes and times of this page are for {}.</p>\n",
                       dims_text(report));
  out += fmt::format("<p class=\"note\">Target: <code>{}</code></p>\n", markup(report.target));
  return out + fmt::format("<pre class=\"account\">{}</pre></section>\n", markup(report.account));
}

std::string number_cell(const std::optional<int64_t>& value, const std::string& text) {
  return fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", value ? std::to_string(*value) : "",
                     markup(text));
}

std::string expression_cell(const Expr& expr) {
  if (!expr) return "<td class=\"n\" data-v=\"\">known in the run</td>";
  return number_cell(as_int(expr), str(expr));
}

std::string allocations_table(const Report& report, const PageOptions& options) {
  std::string out = fmt::format(
      "<details><summary>{}</summary>\n<div class=\"tools\" data-filters=\"#allocations tbody tr\">"
      "<input type=\"search\" placeholder=\"buffer, type or node\" aria-label=\"filter buffers\">"
      "<span class=\"count\"></span></div>\n<div class=\"wide\"><table id=\"allocations\" "
      "class=\"sortable roomy\"><thead><tr><th>buffer</th><th class=\"n\">bytes</th>"
      "<th class=\"n\">offset</th><th class=\"n\">first step</th><th class=\"n\">last step</th>"
      "<th>type</th><th>node</th></tr></thead><tbody>\n",
      counted(report.plan.allocations.size(), "allocation"));
  size_t rows = 0;
  for (const ProgramPlan::Allocation& allocation : report.plan.allocations) {
    if (++rows > options.rows) break;
    out += fmt::format("<tr><td><code>{}</code></td>{}{}", markup(allocation.name),
                       expression_cell(allocation.bytes), expression_cell(allocation.offset));
    out += fmt::format(
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td></tr>\n",
        allocation.lower, allocation.upper - 1, markup(shortened(allocation.type, 120)),
        markup(shortened(allocation.origin ? allocation.origin.name() : "", 160)));
  }
  out += "</tbody></table></div>\n";
  if (report.plan.allocations.size() > options.rows)
    out += fmt::format("<p class=\"note\">The first {} are listed.</p>\n", options.rows);
  return out + "</details>\n";
}

std::string memory_section(const Report& report, const PageOptions& options) {
  const memory::Picture picture = picture_of(report.plan, report.dims);
  std::string out = "<section id=\"memory\"><h2>Memory over time</h2>\n";
  out += fmt::format(
      "<p class=\"note\">Each rectangle is an allocation: the steps of the program in which it is "
      "alive, at its place in the workspace. Peak {} bytes; no plan goes below {} bytes ({:.3f} of "
      "it).{}</p>\n",
      picture.peak, picture.bound,
      picture.peak > 0 ? static_cast<double>(picture.bound) / static_cast<double>(picture.peak) : 1,
      !report.plan.bytes || as_int(report.plan.bytes)
          ? ""
          : fmt::format(" The workspace takes <code>{}</code> bytes, drawn for {}.",
                        markup(str(report.plan.bytes)), dims_text(report)));
  for (const MemoryUse::Late& late : report.memory.late)
    out += fmt::format("<p class=\"note\">Asked for while it runs: {} of <code>{}</code>.</p>\n",
                       markup(late.what), markup(late.size));
  out += "<div class=\"wide\">" + memory::picture_svg(picture) + "</div>\n";
  if (!report.plan.allocations.empty()) out += allocations_table(report, options);
  return out + "</section>\n";
}

std::string passes_section(const Report& report) {
  double total = 0, longest = 0;
  for (const Report::Step& step : report.steps) {
    total += step.seconds;
    longest = std::max(longest, step.seconds);
  }
  std::string out =
      "<section id=\"passes\"><h2>Compile time by pass</h2>\n<div class=\"wide\"><table "
      "class=\"sortable\"><thead><tr><th class=\"n\">order</th><th>pass</th><th class=\"n\" "
      "data-first=\"1\">ms</th><th class=\"n\">share</th><th></th></tr></thead><tbody>\n";
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const Report::Step& step = report.steps[i];
    const double share = total > 0 ? step.seconds / total : 0;
    out +=
        fmt::format("<tr><td class=\"n\">{}</td><td class=\"k\">{}</td>", i + 1, markup(step.name));
    out +=
        measured(fmt::format("<td class=\"n\">{:.2f}</td><td class=\"n\" data-v=\"{:.5f}\">{:.1f} "
                             "%</td>{}",
                             step.seconds * 1e3, share, 100 * share,
                             bar_cell(longest > 0 ? step.seconds / longest : 0)));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></section>\n";
}

}  // namespace

std::string page_of(const Report& report, const PageOptions& options) {
  const Index index(report);
  const std::string title = markup(report.model);
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{} - Tenon report</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<header><h1>{}</h1>\n<p class=\"sub\">{} &middot; {}</p>\n",
      title, kPageStyle, title, markup(report.compiler), markup(shortened(report.target, 60)));
  out += cards(report) + "</header>\n";
  out +=
      "<nav><div><a href=\"#graph\">Graph</a><a href=\"#memory\">Memory</a><a "
      "href=\"#times\">Times</a><a href=\"#kernels\">Kernels</a><a "
      "href=\"#decisions\">Decisions</a><a href=\"#passes\">Passes</a><a "
      "href=\"#interface\">Interface</a></div></nav>\n<main>\n";
  out += graph_section(report, index, options);
  out += memory_section(report, options);
  out += times_section(report, index, options);
  out += kernels_section(report, index, options);
  out += decisions_section(report, index, options);
  out += passes_section(report);
  out += interface_section(report);
  out += fmt::format("</main>\n<footer>{}</footer>\n<script>\n{}</script>\n</body>\n</html>\n",
                     markup(report.compiler), kPageScript);
  return out;
}

}  // namespace tenon
