// SPDX-License-Identifier: Apache-2.0
// The graph: a box for each call of the program, coloured by who computes it, with the operators of
// the model that it computes.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/driver/console.h"
#include "tenon/driver/report/graph_layout.h"
#include "tenon/driver/report/page_parts.h"
#include "tenon/support/markup.h"

namespace tenon::page {

namespace {

constexpr double kWidth = 262, kLine = 16, kHead = 25, kMargin = 12;
constexpr size_t kMostOperators = 5;  // that a box names

/// A box of the drawing, before it has a place.
struct Box {
  std::string html;  // with places counted from its corner
  std::string text;  // what a search looks at
  std::string link;  // "#kernel-3"; empty: none
  double height = 0;
};

std::string line(double y, const char* kind, const std::string& text, size_t most) {
  return fmt::format("<text class=\"{}\" x=\"9\" y=\"{:.0f}\">{}</text>", kind, y,
                     markup(shortened(text, most)));
}

std::string frame(double height, const std::string& kind, const std::string& title) {
  return fmt::format(
      "<rect class=\"box {}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\"/><title>{}</title>", kind,
      kWidth, height, markup(title));
}

std::string operator_text(const Report::Operator& op) {
  return op.type.empty() ? op.node : op.type + "  " + op.node;
}

// At most about `most` bytes: names of nodes differ at their end, which follows the scopes that they
// are in.
std::string operator_line(const Report::Operator& op, size_t most) {
  const std::string text = operator_text(op);
  const size_t head = op.type.empty() ? 0 : op.type.size() + 2;
  if (text.size() <= most || head + 8 > most) return text;
  size_t begin = text.size() - (most - head - 3);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return text.substr(0, head) + "..." + text.substr(begin);
}

Box box_of_call(const Report& report, size_t i, const Index& index, double longest) {
  const ProgramPlan::Call& planned = report.plan.calls[i];
  const Report::Call& call = report.calls[i];
  Box box;
  const size_t shown = std::min(call.operators.size(), kMostOperators);
  const bool has_more = call.operators.size() > shown;
  box.height =
      kHead + 6 + kLine * static_cast<double>(std::max<size_t>(shown, 1) + (has_more ? 1 : 0));
  const std::string& name = planned.symbol.empty() ? planned.callee : planned.symbol;
  std::string title = fmt::format("{}: {}", name, provider_name(call.provider));
  box.text = name + " " + provider_name(call.provider);
  for (const Report::Operator& op : call.operators) {
    title += "\n" + operator_text(op);
    box.text += " " + op.type + " " + op.node;
  }
  box.html = frame(box.height, provider_class(call.provider), shortened(title, 600));
  box.html += line(17, "fn", name, 33);
  for (size_t k = 0; k < shown; ++k)
    // The time stands at the end of the first.
    box.html += line(kHead + 9 + kLine * static_cast<double>(k), "op",
                     operator_line(call.operators[k], k == 0 && call.milliseconds ? 30 : 40), 44);
  if (has_more)
    box.html += line(kHead + 9 + kLine * static_cast<double>(shown), "op",
                     fmt::format("and {} more", call.operators.size() - shown), 40);
  if (call.milliseconds && longest > 0)
    box.html += measured(fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text><rect class=\"share\" "
        "x=\"1\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"3\"/>",
        kWidth - 8, kHead + 9, time_text(*call.milliseconds / 1e3), box.height - 4,
        (kWidth - 2) * *call.milliseconds / longest));
  if (const auto kernel = index.kernels.find(planned.callee); kernel != index.kernels.end())
    box.link = fmt::format("#kernel-{}", kernel->second);
  return box;
}

Box box_of_memory(const ProgramPlan::Memory& memory, const char* kind) {
  Box box;
  box.height = kHead + 6 + kLine;
  box.html = frame(box.height, "p-plain", fmt::format("{} {}\n{}", kind, memory.name, memory.type));
  box.html += line(17, "fn", fmt::format("{} {}", kind, memory.name), 36);
  box.html += line(kHead + 9, "op", memory.type, 42);
  box.text = fmt::format("{} {} {}", kind, memory.name, memory.type);
  return box;
}

std::string curve(const std::vector<LayoutPoint>& path) {
  std::string out = fmt::format("M{:.1f} {:.1f}", path[0].x, path[0].y);
  for (size_t i = 1; i < path.size(); ++i) {
    const LayoutPoint &a = path[i - 1], &b = path[i];
    // Pairs of points are the ends of a way through one layer, which is straight.
    if (i % 2 == 0) {
      out += fmt::format("V{:.1f}", b.y);
      continue;
    }
    const double middle = (a.y + b.y) / 2;
    out += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, middle, b.x, middle, b.x,
                       b.y);
  }
  return out;
}

std::string legend(const Report& report) {
  struct Row {
    size_t calls = 0;
    double milliseconds = 0;
  };
  std::map<std::string, Row> rows;
  for (const Report::Call& call : report.calls) {
    Row& row = rows[call.provider];
    ++row.calls;
    row.milliseconds += call.milliseconds.value_or(0);
  }
  const double total = total_milliseconds(report);
  std::string out = "<div class=\"legend\">";
  for (const auto& [provider, row] : rows)
    out += fmt::format(
        "<span><i class=\"{}\"></i>{}: {}{}</span>", provider_class(provider),
        markup(provider_name(provider)), counted(row.calls, "call"),
        total > 0 ? measured(fmt::format(", {:.1f} % of the time", 100 * row.milliseconds / total))
                  : "");
  return out + "</div>\n";
}

/// The boxes of a drawing, and which calls and memories they are.
struct Drawing {
  std::vector<Box> boxes;
  std::vector<LayoutArrow> arrows;
  std::vector<std::string> arrow_titles;
};

Drawing drawing_of(const Report& report, const Index& index, size_t most) {
  Drawing out;
  double longest = 0;
  for (const Report::Call& call : report.calls)
    longest = std::max(longest, call.milliseconds.value_or(0));
  const size_t calls = std::min(report.calls.size(), most);
  for (size_t i = 0; i < calls; ++i) out.boxes.push_back(box_of_call(report, i, index, longest));
  std::map<std::pair<size_t, bool>, size_t> of_memory;  // whether it is an output
  for (const Report::Edge& edge : report.edges) {
    const auto outside = [&](bool is_output) {
      const auto [it, is_new] = of_memory.try_emplace({edge.memory, is_output}, out.boxes.size());
      if (is_new)
        out.boxes.push_back(
            box_of_memory(report.plan.memories[edge.memory], is_output ? "output" : "input"));
      return it->second;
    };
    const auto is_drawn = [&](int64_t call) {
      return call == Report::Edge::kOutside || static_cast<size_t>(call) < calls;
    };
    if (!is_drawn(edge.from) || !is_drawn(edge.to)) continue;
    const size_t from =
        edge.from == Report::Edge::kOutside ? outside(false) : static_cast<size_t>(edge.from);
    const size_t to =
        edge.to == Report::Edge::kOutside ? outside(true) : static_cast<size_t>(edge.to);
    out.arrows.push_back({from, to});
    const ProgramPlan::Memory& memory = report.plan.memories[edge.memory];
    out.arrow_titles.push_back(memory.name + ": " + memory.type);
  }
  return out;
}

std::string svg_of(const Drawing& drawing) {
  std::vector<LayoutBox> sizes;
  for (const Box& box : drawing.boxes) sizes.push_back({kWidth, box.height});
  const GraphLayout layout = lay_out(sizes, drawing.arrows);
  const double width = layout.width + 2 * kMargin, height = layout.height + 2 * kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"graph of the program\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" data-w=\"{0:.0f}\" data-h=\"{1:.0f}\" "
      "viewBox=\"{2:.0f} "
      "{2:.0f} {0:.0f} {1:.0f}\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" "
      "refY=\"4\" "
      "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 "
      "8z\"/></marker></defs>\n",
      width, height, -kMargin);
  for (size_t i = 0; i < drawing.arrows.size(); ++i)
    out += fmt::format(
        "<path class=\"edge\" marker-end=\"url(#tip)\" d=\"{}\"><title>{}</title></path>\n",
        curve(layout.paths[i]), markup(drawing.arrow_titles[i]));
  for (size_t i = 0; i < drawing.boxes.size(); ++i) {
    const Box& box = drawing.boxes[i];
    const std::string inside =
        box.link.empty() ? box.html : fmt::format("<a href=\"{}\">{}</a>", box.link, box.html);
    out += fmt::format("<g transform=\"translate({:.1f} {:.1f})\" data-text=\"{}\">{}</g>\n",
                       layout.boxes[i].x, layout.boxes[i].y, markup(shortened(box.text, 2000)),
                       inside);
  }
  return out + "</svg>\n";
}

}  // namespace

std::string graph_section(const Report& report, const Index& index, const PageOptions& options) {
  std::string out = "<section id=\"graph\"><h2>Graph</h2>\n";
  if (report.calls.empty())
    return out + "<p class=\"note\">The program makes no calls of kernels.</p></section>\n";
  out += legend(report);
  out +=
      "<div class=\"tools\" id=\"graph-tools\"><input type=\"search\" placeholder=\"search "
      "kernels, "
      "nodes, operators\" aria-label=\"search the graph\"><span class=\"count\"></span>"
      "<button data-zoom=\"out\" aria-label=\"smaller\">&minus;</button><button data-zoom=\"in\" "
      "aria-label=\"larger\">+</button><button data-zoom=\"width\">width</button><button "
      "data-zoom=\"all\">all</button></div>\n";
  out += "<div class=\"graph\" data-tools=\"graph-tools\">" +
         svg_of(drawing_of(report, index, options.graph_calls)) + "</div>\n";
  out +=
      "<p class=\"note\">A box is a call of the program with the operators of the model that it "
      "computes; it leads to its code. Drag to move, Ctrl and the wheel or two fingers to zoom, "
      "Enter "
      "in the search field for the next find.</p>\n";
  if (report.calls.size() > options.graph_calls)
    out += fmt::format("<p class=\"note\">The first {} of {} calls are drawn.</p>\n",
                       options.graph_calls, report.calls.size());
  return out + "</section>\n";
}

}  // namespace tenon::page
