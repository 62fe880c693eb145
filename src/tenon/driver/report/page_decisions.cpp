// SPDX-License-Identifier: Apache-2.0
// What the passes decided, and why: remarks as a table that is filtered by words, pass and verdict.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "tenon/driver/report/page_parts.h"
#include "tenon/support/markup.h"

namespace tenon::page {

static std::string choice(const char* name, const char* all, const std::set<std::string>& values) {
  std::string out = fmt::format(
      "<select name=\"{}\" aria-label=\"{}\"><option value=\"\">{}</option>", name, name, all);
  for (const std::string& value : values)
    out += fmt::format("<option value=\"{0}\">{0}</option>", markup(value));
  return out + "</select>\n";
}

static std::string numbers_of(const Remark& remark) {
  std::string out;
  for (const auto& [name, number] : remark.numbers)
    out += fmt::format("{}{} {:.6g}", out.empty() ? "" : ", ", name, number);
  return out;
}

static std::string row_of(const Remark& remark, const Index& index) {
  const std::string node = remark.origin ? remark.origin.name() : "";
  const auto story = index.stories.find(node.empty() ? remark.subject : node);
  const std::string name = markup(shortened(node, 160));
  return fmt::format(
      "<tr data-pass=\"{0}\" data-verdict=\"{1}\"><td "
      "class=\"k\">{0}</td><td><code>{2}</code></td><td>{3}</td>"
      "<td>{1}</td><td>{4}</td><td>{5}</td><td>{6}</td></tr>\n",
      markup(remark.pass), markup(remark.verdict), markup(shortened(remark.subject, 160)),
      story == index.stories.end() || name.empty()
          ? name
          : fmt::format("<a href=\"#node-{}\">{}</a>", story->second, name),
      markup(remark.reason), markup(numbers_of(remark)),
      remark.detail.empty()
          ? std::string()
          : fmt::format("<div class=\"words\">{}</div>", markup(shortened(remark.detail, 1200))));
}

std::string decisions_section(const Report& report, const Index& index,
                              const PageOptions& options) {
  std::set<std::string> passes, verdicts;
  const size_t count = std::min(report.remarks.size(), options.rows);
  std::string rows;
  for (size_t i = 0; i < count; ++i) {
    passes.insert(report.remarks[i].pass);
    verdicts.insert(report.remarks[i].verdict);
    rows += row_of(report.remarks[i], index);
  }
  std::string out =
      "<section id=\"decisions\"><h2>Decisions, with reasons</h2>\n<div class=\"tools\" "
      "data-filters=\"#remarks tbody tr\"><input type=\"search\" placeholder=\"node, reason, any "
      "word\" "
      "aria-label=\"filter decisions\">\n";
  out += choice("pass", "all passes", passes) + choice("verdict", "all verdicts", verdicts);
  out +=
      "<span class=\"count\"></span></div>\n<div class=\"wide\"><table id=\"remarks\" "
      "class=\"sortable "
      "roomy\"><thead><tr><th>pass</th><th>about</th><th>node</th><th>verdict</th><th>reason</th>"
      "<th>numbers</th><th>words</th></tr></thead><tbody>\n" +
      rows + "</tbody></table></div>\n";
  if (report.remarks.size() > count)
    out += fmt::format(
        "<p class=\"note\">The first {} of {} are listed; <code>tenon explain --json</code> has "
        "all.</p>\n",
        count, report.remarks.size());
  return out + "</section>\n";
}

}  // namespace tenon::page
