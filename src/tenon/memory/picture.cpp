// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "tenon/support/markup.h"

namespace tenon::memory {

// Two hues for neighbours, each in a light and a dark scheme; a page that says `color-scheme` of its
// own sets the variables.
static constexpr const char* kStyle = R"(<style>
.tenon-memory{--m-ink:#1f2933;--m-faint:#d5dbe1;--m-a:#5b8def;--m-b:#7fb7be;--m-c:#b39ddb;--m-d:#f2b880;--m-peak:#c0392b;--m-bound:#1e8449;font:12px system-ui,sans-serif}
@media (prefers-color-scheme:dark){.tenon-memory{--m-ink:#d9dfe6;--m-faint:#3a444f;--m-a:#4a76c9;--m-b:#4f8f97;--m-c:#8a74b8;--m-d:#b98247;--m-peak:#ff7b6b;--m-bound:#58d68d}}
.tenon-memory text{fill:var(--m-ink)}
.tenon-memory .m-axis{stroke:var(--m-faint);stroke-width:1}
.tenon-memory .m-b0{fill:var(--m-a)}.tenon-memory .m-b1{fill:var(--m-b)}.tenon-memory .m-b2{fill:var(--m-c)}.tenon-memory .m-b3{fill:var(--m-d)}
.tenon-memory rect.m-block{stroke:var(--m-ink);stroke-opacity:.35;stroke-width:.6;fill-opacity:.75}
.tenon-memory rect.m-block:hover{fill-opacity:1;stroke-opacity:1;stroke-width:1.6}
.tenon-memory .m-peak{stroke:var(--m-peak);stroke-width:1.5}
.tenon-memory .m-bound{stroke:var(--m-bound);stroke-width:1.5;stroke-dasharray:6 4}
.tenon-memory .m-load{fill:none;stroke:var(--m-ink);stroke-width:1.4;stroke-opacity:.8}
</style>)";

static constexpr double kLeft = 92, kRight = 12, kTop = 34, kBottom = 40;  // around the axes

static std::string bytes_short(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1 << 10) return fmt::format("{} B", bytes);
  if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", value / 1024);
  if (bytes < 1 << 30) return fmt::format("{:.1f} MiB", value / (1 << 20));
  return fmt::format("{:.2f} GiB", value / (1 << 30));
}

namespace {

/// Steps and bytes as places of the drawing.
struct Scale {
  double x0, x1, y0, y1;  // y0 is the bottom, where offset 0 is
  int64_t first, last;    // steps
  double bytes;
  double x(int64_t step) const {
    return x0 + (x1 - x0) * static_cast<double>(step - first) / static_cast<double>(last - first);
  }
  double y(int64_t offset) const { return y0 - (y0 - y1) * static_cast<double>(offset) / bytes; }
};

}  // namespace

// The largest, in the order in which they are given.
static std::vector<size_t> drawn_blocks(const Picture& picture, size_t most) {
  std::vector<size_t> order(picture.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return picture.blocks[i].bytes <= 0; });
  if (order.size() <= most) return order;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(-picture.blocks[a].bytes, a) < std::pair(-picture.blocks[b].bytes, b);
  });
  order.resize(most);
  std::sort(order.begin(), order.end());
  return order;
}

static std::string axes(const Scale& scale, const Picture& picture) {
  std::string out;
  constexpr int kTicks = 4;
  for (int i = 0; i <= kTicks; ++i) {
    const int64_t bytes = picture.peak / kTicks * i + picture.peak % kTicks * i / kTicks;
    out += fmt::format(
        "<line class=\"m-axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        scale.x0, scale.x1, scale.y(bytes), scale.y(bytes), scale.x0 - 6, scale.y(bytes) + 4,
        bytes_short(bytes));
  }
  const int64_t steps = scale.last - scale.first;
  const int64_t ticks = std::min<int64_t>(steps, 6);
  for (int64_t i = 0; i <= ticks; ++i) {
    const int64_t step = scale.first + steps / ticks * i + steps % ticks * i / ticks;
    const char* anchor = i == 0 ? "start" : i == ticks ? "end" : "middle";
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       scale.x(step), scale.y0 + 16, anchor, step);
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">program step</text>\n",
                     (scale.x0 + scale.x1) / 2, scale.y0 + 33);
  return out;
}

static std::string line_across(const Scale& scale, const char* kind, int64_t bytes) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind,
      scale.x0, scale.x1, scale.y(bytes), scale.y(bytes));
}

// In front of the drawing, so that words never lie over blocks.
static std::string legend(const Picture& picture, double left, size_t left_out) {
  std::string out = fmt::format(
      "<line class=\"m-peak\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"14\" y2=\"14\"/>"
      "<text class=\"m-peak-text\" x=\"{2:.1f}\" y=\"18\">peak {3} bytes</text>\n",
      left, left + 22, left + 28, picture.peak);
  out += fmt::format(
      "<line class=\"m-bound\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"14\" y2=\"14\"/>"
      "<text class=\"m-bound-text\" x=\"{2:.1f}\" y=\"18\">lower bound {3} bytes</text>\n",
      left + 210, left + 232, left + 238, picture.bound);
  out += fmt::format(
      "<line class=\"m-load\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"14\" y2=\"14\"/>"
      "<text x=\"{2:.1f}\" y=\"18\">bytes alive{3}</text>\n",
      left + 460, left + 482, left + 488,
      left_out > 0 ? fmt::format("; {} small buffers are not drawn", left_out) : "");
  return out;
}

std::string picture_svg(const Picture& picture, const PictureOptions& options) {
  std::string out = fmt::format(
      "<svg class=\"tenon-memory\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"memory over time\">\n{}\n",
      options.width, options.height, kStyle);
  if (picture.peak <= 0) {
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">nothing is allocated</text>\n</svg>\n",
        options.width / 2, options.height / 2);
    return out;
  }
  // Nothing is alive while constants are declared.
  int64_t first = std::max<int64_t>(picture.steps, 1) - 1;
  for (const Picture::Block& block : picture.blocks) first = std::min(first, block.lower);
  const Scale scale{kLeft,
                    options.width - kRight,
                    options.height - kBottom,
                    kTop,
                    first,
                    std::max<int64_t>(picture.steps, first + 1),
                    static_cast<double>(std::max<int64_t>(picture.peak, 1))};
  out += axes(scale, picture);
  const std::vector<size_t> drawn = drawn_blocks(picture, options.max_blocks);
  for (const size_t i : drawn) {
    const Picture::Block& block = picture.blocks[i];
    const double x = scale.x(block.lower), y = scale.y(block.offset + block.bytes);
    out += fmt::format(
        "<rect class=\"m-block m-b{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
        "height=\"{:.2f}\"><title>{}: {}; steps {} to {}</title></rect>\n",
        i % 4, x, y, std::max(scale.x(block.upper) - x, 0.5),
        std::max(scale.y(block.offset) - y, 0.5), markup(block.name), markup(block.words),
        block.lower, block.upper - 1);
  }
  std::string points;
  double level = scale.y(0);
  for (const Load& load : picture.loads) {
    const double x = scale.x(load.step);
    points += fmt::format("{:.1f},{:.1f} ", x, level);
    level = scale.y(load.bytes);
    points += fmt::format("{:.1f},{:.1f} ", x, level);
  }
  if (!points.empty()) points.pop_back();
  out += fmt::format("<polyline class=\"m-load\" points=\"{}\"/>\n", points);
  out += line_across(scale, "m-bound", picture.bound);
  out += line_across(scale, "m-peak", picture.peak);
  out += legend(picture, kLeft, picture.blocks.size() - drawn.size());
  return out + "</svg>\n";
}

Picture picture_of(const Problem& problem, const Plan& plan, int pool) {
  Picture picture;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Allocation& buffer = problem.buffers[i];
    if (buffer.pool != pool) continue;
    picture.blocks.push_back({buffer.name,
                              fmt::format("{} bytes at {}", buffer.bytes, plan.offsets[i]),
                              buffer.lower, buffer.upper, plan.offsets[i], buffer.bytes});
    picture.steps = std::max(picture.steps, buffer.upper);
  }
  picture.loads = load_profile(problem, pool);
  picture.peak = plan.pools[static_cast<size_t>(pool)].peak;
  picture.bound = plan.pools[static_cast<size_t>(pool)].lower_bound;
  return picture;
}

}  // namespace tenon::memory
