// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include "program_writer.h"

namespace tenon::fuzz {

// ---- stages

Value Writer::elementwise(const Array& to) {
  Value known;
  const Body body = [&](const std::vector<Index>& at) {
    if (random_.one_in(5)) {
      lines_.add(fmt::format("if {}:", condition(at, 1)));
      lines_.in();
      store(to, names_of(at), at, known);
      lines_.out();
      lines_.add("else:");
      lines_.in();
      store(to, names_of(at), at, known);
      lines_.out();
      return;
    }
    store(to, names_of(at), at, known);
  };
  switch (random_.below(5)) {
    case 0: over(to.shape, true, body); break;
    case 1:  // a block without axes in loops
      over(to.shape, true, [&](const std::vector<Index>& at) {
        lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
        lines_.in();
        body(at);
      });
      break;
    case 2:
      block_over(to.shape, std::string(to.shape.size(), random_.one_in(3) ? 'O' : 'S'), false,
                 body);
      break;
    default: block_over(to.shape, std::string(to.shape.size(), 'S'), true, body);
  }
  return known;
}

// Two blocks under conditions that leave nothing out.
Value Writer::guarded(const Array& to) {
  Value known;
  const int64_t cut = random_.from(0, 4);
  for (const char* test : {"<", ">="})
    over(to.shape, true, [&](const std::vector<Index>& at) {
      lines_.add(fmt::format("if {} {} {}:", at[0].name, test, cut));
      lines_.in();
      store(to, names_of(at), at, known);
    });
  return known;
}

// Ranges of inner loops that depend on outer ones.
Value Writer::triangular(const Array& to) {
  if (to.shape.size() < 2 || to.shape[0].is_symbol() || to.shape[1].is_symbol())
    return elementwise(to);
  Value known;
  const Dim &rows = to.shape[0], &columns = to.shape[1];
  const std::vector<Dim> rest(to.shape.begin() + 2, to.shape.end());
  const bool blocks = random_.coin();
  over({rows}, true, [&](const std::vector<Index>& row) {
    const std::string& i = row[0].name;
    for (const bool lower : {true, false}) {
      const std::string j = fresh("j");
      if (lower)
        lines_.add(fmt::format("for {} in range(T.min({} + 1, {})):", j, i, columns.text));
      else
        lines_.add(fmt::format("for {} in range({} - T.min({} + 1, {})):", j, columns.text, i,
                               columns.text));
      lines_.in();
      const int depth = lines_.depth();
      over(rest, false, [&](const std::vector<Index>& inner) {
        std::string column = lower ? j : fmt::format("{} + T.min({} + 1, {})", j, i, columns.text);
        std::string at_row = i;
        if (blocks) {
          lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
          lines_.in();
          const std::string v = fresh("v"), w = fresh("v");
          lines_.add(fmt::format("{} = T.axis.spatial({}, {})", v, rows.text, i));
          lines_.add(fmt::format("{} = T.axis.spatial({}, {})", w, columns.text, column));
          at_row = v;
          column = w;
        }
        std::vector<std::string> at{at_row, column};
        std::vector<Index> indices{{at_row, rows}};
        if (blocks) indices.push_back({column, columns});
        for (const Index& index : inner) {
          at.push_back(index.name);
          indices.push_back(index);
        }
        store(to, at, indices, known);
      });
      lines_.out(lines_.depth() - depth + 1);
    }
  });
  return known;
}

Value Writer::reduction(const Array& to) {
  if (to.dtype == "bool") return elementwise(to);
  Value known;
  std::vector<Dim> extents = to.shape;
  const size_t count = 1 + random_.below(2);
  double steps = 1;
  for (size_t n = 0; n < count; ++n) {
    const int64_t e = random_.from(1, 5);
    extents.push_back({std::to_string(e), e});
    steps *= static_cast<double>(e);
  }
  const std::string kinds = std::string(to.shape.size(), 'S') + std::string(count, 'R');
  const int op = static_cast<int>(random_.below(3));
  block_over(extents, kinds, true, [&](const std::vector<Index>& axes) {
    const std::vector<Index> spatial(axes.begin(),
                                     axes.begin() + static_cast<std::ptrdiff_t>(to.shape.size()));
    const std::string place = fmt::format("{}[{}]", to.name, joined(names_of(spatial)));
    Value v = expression(to.dtype, axes, 2);
    if (op == 0 && v.bound * steps > room_of(to.dtype)) v = number(to.dtype, 1);
    known = {{}, op == 0 ? v.bound * steps : std::max(v.bound, 100.0), v.is_exact};
    lines_.add("with T.init():");
    lines_.in();
    lines_.add(fmt::format("{} = {}", place,
                           number(to.dtype, op == 0   ? 0
                                            : op == 1 ? -100
                                                      : 100)
                               .text));
    lines_.out();
    static const char* const kForms[] = {"{0} + {1}", "T.max({0}, {1})", "T.min({0}, {1})"};
    lines_.add(fmt::format("{} = {}", place, fmt::format(fmt::runtime(kForms[op]), place, v.text)));
  });
  return known;
}

// An accumulator of one's own in a loop.
Value Writer::by_hand(const Array& to) {
  if (to.dtype == "bool") return elementwise(to);
  Value known;
  const int64_t steps = random_.from(1, 6);
  const int form = static_cast<int>(random_.below(3));
  over(to.shape, form != 2, [&](const std::vector<Index>& at) {
    const std::string k = fresh("k"), acc = fresh("acc");
    const std::string cell = form == 1 ? acc : acc + "[0]";
    const std::vector<Dim> step{{std::to_string(steps), steps}};
    if (form == 1)
      lines_.add(fmt::format("{} = {}", acc, number(to.dtype, 0).text));
    else
      lines_.add(fmt::format("{} = T.{}((1,), \"{}\", scope=\"local\")", acc,
                             form == 0 ? "alloc_buffer" : "decl_buffer", to.dtype));
    if (form != 1) lines_.add(fmt::format("{} = {}", cell, number(to.dtype, 0).text));
    std::vector<Index> inside = at;
    inside.push_back({k, step[0]});
    Value v = expression(to.dtype, inside, 1);
    if (v.bound * static_cast<double>(steps) > room_of(to.dtype)) v = number(to.dtype, 1);
    known = {{}, v.bound * static_cast<double>(steps), v.is_exact};
    lines_.add(fmt::format("for {} in range({}):", k, steps));
    lines_.in();
    lines_.add(fmt::format("{0} = {0} + {1}", cell, v.text));
    lines_.out();
    lines_.add(fmt::format("{}[{}] = {}", to.name, joined(names_of(at)), cell));
  });
  return known;
}

// Each column from the one before it.
Value Writer::scan(const Array& to) {
  const Dim& last = to.shape.back();
  if (to.dtype == "bool" || last.is_symbol() || last.value < 2) return elementwise(to);
  Value known;
  const std::vector<Dim> rows(to.shape.begin(), to.shape.end() - 1);
  const auto first = [&](const std::vector<Index>& at) {
    std::vector<std::string> place = names_of(at);
    place.emplace_back("0");
    store(to, place, at, known);
  };
  over(rows, false, first);
  const double room = room_of(to.dtype) / 2;
  const Dim rest{std::to_string(last.value - 1), last.value - 1};
  std::vector<Dim> extents = rows;
  extents.push_back(rest);
  const int form = static_cast<int>(random_.below(4));
  const auto next = [&](const std::vector<Index>& at, const std::string& j) {
    std::vector<std::string> place = names_of(at), before = place;
    place.back() = j;
    before.back() = j + " - 1";
    Value v = expression(to.dtype, {at.begin(), at.end() - 1}, 1);
    const double total = known.bound + v.bound * static_cast<double>(last.value);
    if (total > room) v = number(to.dtype, 0);
    known.bound += v.bound * static_cast<double>(last.value);
    known.is_exact = known.is_exact && v.is_exact;
    lines_.add(
        fmt::format("{0}[{1}] = {0}[{2}] + {3}", to.name, joined(place), joined(before), v.text));
  };
  if (form == 0) {
    over(extents, false, [&](const std::vector<Index>& at) { next(at, at.back().name + " + 1"); });
    return known;
  }
  over(extents, false, [&](const std::vector<Index>& at) {
    lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
    lines_.in();
    std::vector<Index> axes;
    for (size_t i = 0; i + 1 < at.size(); ++i) {
      axes.push_back({fresh("v"), at[i].extent});
      lines_.add(fmt::format("{} = T.axis.{}({}, {})", axes.back().name,
                             form == 2 ? "opaque" : "spatial", at[i].extent.text, at[i].name));
    }
    axes.push_back({fresh("v"), last});
    if (form == 3)
      lines_.add(fmt::format("{} = T.axis.opaque({}, {} + 1)", axes.back().name, last.text,
                             at.back().name));
    else
      lines_.add(fmt::format("{} = T.axis.scan((1, {}), {} + 1)", axes.back().name, last.value,
                             at.back().name));
    next(axes, axes.back().name);
  });
  return known;
}

// A block with a buffer of its own, written and read in it.
Value Writer::local_row(const Array& to) {
  Value known;
  const std::vector<Dim> rows(to.shape.begin(), to.shape.end() - 1);
  const Dim row = to.shape.back();
  block_over(rows, std::string(rows.size(), 'S'), true, [&](const std::vector<Index>& at) {
    if (rows.empty() && random_.coin()) lines_.add("T.reads()"), lines_.add("T.writes()");
    const Array local{fresh("row"), to.dtype, {row}};
    lines_.add(fmt::format("{} = T.alloc_buffer({}, \"{}\"{})", local.name, text_of(local.shape),
                           to.dtype, random_.coin() ? ", scope=\"local\"" : ""));
    const int depth = lines_.depth();
    over({row}, false, [&](const std::vector<Index>& inner) {
      std::vector<Index> all = at;
      all.push_back(inner[0]);
      store(local, {inner[0].name}, all, known);
    });
    lines_.out(lines_.depth() - depth);
    over({row}, false, [&](const std::vector<Index>& inner) {
      std::vector<std::string> place = names_of(at);
      place.push_back(inner[0].name);
      lines_.add(
          fmt::format("{}[{}] = {}[{}]", to.name, joined(place), local.name,
                      random_.coin() ? inner[0].name : row.text + " - 1 - " + inner[0].name));
    });
  });
  return known;
}

// A block that looks at a row of the buffer as a buffer.
Value Writer::view(const Array& to) {
  if (to.shape.size() < 2) return local_row(to);
  Value known;
  const std::vector<Dim> rows(to.shape.begin(), to.shape.end() - 1);
  const Dim row = to.shape.back();
  block_over(rows, std::string(rows.size(), 'S'), true, [&](const std::vector<Index>& at) {
    const Array part{fresh("view"), to.dtype, {row}};
    std::string region = joined(names_of(at)) + fmt::format(", 0:{}", row.text);
    lines_.add(fmt::format("T.writes({}[{}])", to.name, region));
    std::string reads;
    for (const Array& array : arrays_) {
      std::string whole;
      for (const Dim& d : array.shape) whole += (whole.empty() ? "0:" : ", 0:") + d.text;
      reads += (reads.empty() ? "" : ", ") + fmt::format("{}[{}]", array.name, whole);
    }
    lines_.add(fmt::format("T.reads({})", reads));
    lines_.add(fmt::format("{} = T.match_buffer({}[{}], ({},), \"{}\", offset_factor=1)", part.name,
                           to.name, region, row.text, to.dtype));
    over({row}, random_.coin(), [&](const std::vector<Index>& inner) {
      std::vector<Index> all = at;
      all.push_back(inner[0]);
      store(part, {inner[0].name}, all, known);
    });
  });
  return known;
}

// Blocks in a block.
Value Writer::nested(const Array& to) {
  if (to.shape.size() < 2) return elementwise(to);
  Value known;
  const std::vector<Dim> outer{to.shape[0]};
  const std::vector<Dim> inner(to.shape.begin() + 1, to.shape.end());
  block_over(outer, "S", true, [&](const std::vector<Index>& at) {
    block_over(inner, std::string(inner.size(), 'S'), true, [&](const std::vector<Index>& below) {
      std::vector<Index> all = at;
      all.insert(all.end(), below.begin(), below.end());
      store(to, names_of(all), all, known);
    });
  });
  return known;
}

// A loop that ends by itself, and places that are data.
Value Writer::counted(const Array& to) {
  if (to.dtype == "bool" || to.dtype == "float16" || to.dtype == "int8") return elementwise(to);
  for (const Dim& d : to.shape)
    if (d.is_symbol()) return elementwise(to);
  over(to.shape, true, [&](const std::vector<Index>& at) {
    lines_.add(fmt::format("{}[{}] = {}", to.name, joined(names_of(at)), number(to.dtype, 0).text));
  });
  const std::string i = fresh("i");
  const int64_t steps = random_.from(1, 8);
  const Index index{i, {std::to_string(steps), steps}};
  std::vector<std::string> place;
  place.reserve(to.shape.size());
  for (const Dim& d : to.shape) place.push_back(fmt::format("({} * 3 + 1) % {}", i, d.text));
  const auto add = [&] {
    lines_.add(fmt::format("{0}[{1}] = {0}[{1}] + {2}", to.name, joined(place),
                           number(to.dtype, random_.from(1, 3)).text));
  };
  if (random_.coin()) {
    lines_.add(fmt::format("{} = 0", i));
    lines_.add(fmt::format("while {} < {}:", i, steps));
    lines_.in();
    add();
    lines_.add(fmt::format("{} += 1", i));
    lines_.out();
  } else {
    lines_.add(fmt::format("for {} in range({}):", i, steps));
    lines_.in();
    add();
    lines_.out();
  }
  return {{}, 3.0 * static_cast<double>(steps)};
}

// State that one iteration of a loop hands on to the next: the last value, or the last two in turn.
Value Writer::carried(const Array& to) {
  if (to.dtype == "bool" || to.shape[0].is_symbol()) return elementwise(to);
  Value known;
  const std::string state = fresh("state");
  const bool in_turn = random_.coin();
  lines_.add(fmt::format("{} = T.alloc_buffer(({},), \"{}\")", state, in_turn ? 2 : 1, to.dtype));
  for (int64_t k = 0; k < (in_turn ? 2 : 1); ++k)
    lines_.add(fmt::format("{}[{}] = {}", state, k, number(to.dtype, random_.from(-2, 2)).text));
  const std::string i = fresh("i");
  lines_.add(fmt::format("for {} in range({}):", i, to.shape[0].text));
  lines_.in();
  std::string row = i;
  const bool blocks = random_.coin();
  if (blocks) {
    lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
    lines_.in();
    row = fresh("v");
    lines_.add(fmt::format("{} = T.axis.{}({}, {})", row, random_.coin() ? "opaque" : "scan",
                           to.shape[0].text, i));
  }
  Value v = expression(to.dtype, {{row, to.shape[0]}}, 1);
  const auto steps = static_cast<double>(to.shape[0].value);
  if ((v.bound + 2) * steps > room_of(to.dtype) / 2) v = number(to.dtype, 1);
  known = {{}, (v.bound + 2) * steps + 2, v.is_exact};
  const std::string now = in_turn ? fmt::format("{}[{} % 2]", state, row) : state + "[0]";
  const std::string before = in_turn ? fmt::format("{}[({} + 1) % 2]", state, row) : now;
  const auto update = [&] { lines_.add(fmt::format("{} = {} + {}", now, before, v.text)); };
  const bool first = random_.coin();
  if (first) update();
  const int depth = lines_.depth();
  over({to.shape.begin() + 1, to.shape.end()}, false, [&](const std::vector<Index>& inner) {
    std::vector<std::string> place{row};
    for (const Index& index : inner) place.push_back(index.name);
    lines_.add(fmt::format("{}[{}] = {}", to.name, joined(place), random_.coin() ? now : before));
  });
  lines_.out(lines_.depth() - depth);
  if (!first) update();
  lines_.out(blocks ? 2 : 1);
  return known;
}

// Rows of a buffer that another block of the same loop, in front or behind, reads some rows later.
Value Writer::behind(const Array& to) {
  if (to.shape.size() < 2 || to.shape[0].is_symbol()) return elementwise(to);
  Value known;
  const Array rows{fresh("rows"), to.dtype, to.shape};
  const std::vector<Dim> rest(to.shape.begin() + 1, to.shape.end());
  lines_.add(
      fmt::format("{} = T.alloc_buffer({}, \"{}\")", rows.name, text_of(rows.shape), rows.dtype));
  const int64_t distance = random_.from(1, 2);
  const bool reads_first = random_.one_in(3), is_guarded = reads_first || random_.coin();
  const std::string kind = random_.coin() ? "opaque" : "spatial";
  const Value other = number(to.dtype, 1);
  over({to.shape[0]}, false, [&](const std::vector<Index>& row) {
    const int depth = lines_.depth();
    const auto block = [&](const std::vector<Index>& inner, const std::string& axis) {
      lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
      lines_.in();
      std::vector<Index> axes{{fresh("v"), to.shape[0]}};
      lines_.add(
          fmt::format("{} = T.axis.{}({}, {})", axes[0].name, axis, to.shape[0].text, row[0].name));
      for (const Index& index : inner) {
        axes.push_back({fresh("v"), index.extent});
        lines_.add(fmt::format("{} = T.axis.spatial({}, {})", axes.back().name, index.extent.text,
                               index.name));
      }
      return axes;
    };
    const auto write = [&](const std::vector<Index>& inner) {
      const std::vector<Index> axes = block(inner, "spatial");
      store(rows, names_of(axes), axes, known);
    };
    const auto read = [&](const std::vector<Index>& inner) {
      const std::vector<Index> axes = block(inner, kind);
      std::vector<std::string> place = names_of(axes);
      place[0] = is_guarded ? fmt::format("{} - {}", place[0], distance)
                            : fmt::format("T.max({} - {}, 0)", place[0], distance);
      std::string value = fmt::format("{}[{}]", rows.name, joined(place));
      if (is_guarded)
        value = fmt::format("T.if_then_else({} >= {}, {}, {})", axes[0].name, distance, value,
                            other.text);
      lines_.add(fmt::format("{}[{}] = {}", to.name, joined(names_of(axes)), value));
    };
    if (reads_first) over(rest, false, read);
    lines_.out(lines_.depth() - depth);
    over(rest, true, write);
    lines_.out(lines_.depth() - depth);
    if (!reads_first) over(rest, false, read);
  });
  known.bound = std::max(known.bound, other.bound);
  return known;
}

// A buffer of one element, assigned by its name.
Value Writer::named(const Array& to) {
  if (to.shape.size() != 1 || to.shape[0].value != 1) return elementwise(to);
  const Value value = expression(to.dtype, {}, 2);
  lines_.add(fmt::format("{} = {}", to.name, value.text));
  return value;
}

// A column as a buffer with strides of its own.
Value Writer::column_view(const Array& to) {
  if (to.shape.size() != 2) return view(to);
  Value known;
  const Dim &rows = to.shape[0], &columns = to.shape[1];
  const std::string down = fresh("s"), across = fresh("s");
  lines_.add(fmt::format("{} = T.int32()", down));
  lines_.add(fmt::format("{} = T.int32()", across));
  block_over({columns}, "S", true, [&](const std::vector<Index>& at) {
    const Array part{fresh("view"), to.dtype, {rows, {"1", 1}}};
    const std::string region =
        fmt::format("{0}[0:{1}, {2}:{2} + 1]", to.name, rows.text, at[0].name);
    lines_.add(
        fmt::format("{} = T.match_buffer({}, ({}, 1), \"{}\", strides=[{}, {}], offset_factor=1)",
                    part.name, region, rows.text, to.dtype, down, across));
    over({rows}, false, [&](const std::vector<Index>& inner) {
      store(part, {inner[0].name, "0"}, {at[0], inner[0]}, known);
    });
  });
  return known;
}

/// A kernel that is called: b = f(a, s) over `length` elements.
void Writer::helper(const std::string& name, const std::string& dtype, bool symbolic,
                    int64_t length, bool scalar) {
  const std::string size = symbolic ? "m" : std::to_string(length);
  std::string text = "    @T.prim_func(private=True)\n";
  if (symbolic && given_) {
    text += fmt::format("    def {}(a: T.handle, b: T.handle, m: T.int32{}):\n", name,
                        scalar ? ", s: T.int32" : "");
    text += fmt::format(
        "        A = T.match_buffer(a, (m,), \"{0}\")\n        B = "
        "T.match_buffer(b, (m,), \"{0}\")\n",
        dtype);
  } else if (symbolic) {
    text += fmt::format("    def {}(a: T.handle, b: T.handle{}):\n", name,
                        scalar ? ", s: T.int32" : "");
    text += "        m = T.int32()\n";
    text += fmt::format(
        "        A = T.match_buffer(a, (m,), \"{0}\")\n        B = "
        "T.match_buffer(b, (m,), \"{0}\")\n",
        dtype);
  } else {
    text +=
        fmt::format("    def {0}(A: T.Buffer(({2},), \"{1}\"), B: T.Buffer(({2},), \"{1}\"){3}):\n",
                    name, dtype, size, scalar ? ", s: T.int32" : "");
  }
  const std::string more = scalar ? fmt::format(" + T.Cast(\"{}\", s)", dtype) : "";
  text += fmt::format("        for i in range({}):\n", size);
  if (random_.coin()) {
    text += "            with T.block(\"f\"):\n";
    text += fmt::format("                vi = T.axis.spatial({}, i)\n", size);
    text += fmt::format("                B[vi] = A[vi] + {}{}\n", number(dtype, 1).text, more);
  } else {
    text += fmt::format("            B[i] = A[i] + {}{}\n", number(dtype, 1).text, more);
  }
  helpers_ += text + "\n";
}

Value Writer::called(const Array& to) {
  const Dim row = to.shape.back();
  if (to.dtype == "bool" || to.dtype == "int8") return elementwise(to);
  const Array* from = readable([&](const Array& a) {
    return a.dtype == to.dtype && a.shape.back().text == row.text &&
           a.bound + 20 < room_of(to.dtype);
  });
  if (!from) return elementwise(to);
  const Array source = *from;
  const std::string name = fresh("f");
  const bool scalar = random_.one_in(3);
  given_ = !row.is_symbol() && random_.coin();
  const bool symbolic = row.is_symbol() || random_.coin();
  helper(name, to.dtype, symbolic, row.value, scalar);
  const std::vector<Dim> rows(to.shape.begin(), to.shape.end() - 1);
  const Body body = [&](const std::vector<Index>& at) {
    const auto region = [&](const Array& array, bool is_target) {
      std::vector<std::string> items;
      for (size_t d = 0; d + 1 < array.shape.size(); ++d)
        items.push_back(is_target ? at[d].name : index_into(array.shape[d], {}));
      for (std::string& item : items)
        if (item.find('[') != std::string::npos) item = "0";
      items.push_back("0:" + row.text);
      return fmt::format("{}[{}]", array.name, joined(items));
    };
    std::string more;
    if (symbolic && given_) more = fmt::format(", T.int32({})", row.text);
    if (scalar)
      more += at.empty() || at[0].extent.is_symbol() ? ", T.int32(2)"
                                                     : fmt::format(", {} + 1", at[0].name);
    lines_.add(fmt::format("T.call_tir(cls.{}, {}, {}{})", name, region(source, false),
                           region(to, true), more));
  };
  if (random_.coin())
    over(rows, true, body);
  else
    block_over(rows, std::string(rows.size(), 'S'), true, body);
  return {{}, source.bound + 20, source.is_exact};
}

void Writer::stage(Array to) {
  using Form = Value (Writer::*)(const Array&);
  static const std::vector<Form> kForms = {
      &Writer::elementwise, &Writer::elementwise, &Writer::guarded, &Writer::triangular,
      &Writer::reduction,   &Writer::reduction,   &Writer::by_hand, &Writer::scan,
      &Writer::local_row,   &Writer::view,        &Writer::nested,  &Writer::counted,
      &Writer::carried,     &Writer::column_view, &Writer::called,  &Writer::behind,
      &Writer::behind,      &Writer::named};
  const int depth = lines_.depth();
  const Value known = (this->*random_.pick(kForms))(to);
  lines_.out(lines_.depth() - depth);
  to.bound = known.bound;
  to.is_exact = known.is_exact;
  arrays_.push_back(std::move(to));
}

std::string Writer::module() {
  symbol_ = random_.one_in(4);
  const size_t inputs = 1 + random_.below(3), outputs = 1 + random_.below(2);
  const size_t locals = random_.below(3);
  std::vector<Array> params;
  for (size_t i = 0; i < inputs; ++i) {
    Array array{fmt::format("A{}", i), dtype(), shape(), 3};
    if (i == 0 && symbol_) array.shape[0] = {"n", 0};
    params.push_back(array);
    arrays_.push_back(array);
  }
  for (size_t i = 0; i < outputs; ++i)
    params.push_back({fmt::format("B{}", i), dtype(), shape(), 0});
  lines_.in();
  lines_.in();
  std::string head;
  for (const Array& array : params)
    head +=
        (head.empty() ? "" : ", ") + (symbol_ ? fmt::format("p{}: T.handle", array.name)
                                              : fmt::format("{}: T.Buffer({}, \"{}\")", array.name,
                                                            text_of(array.shape), array.dtype));
  if (symbol_) {
    lines_.add(random_.coin() ? "n = T.int32()" : "n = T.int64()");
    for (const Array& array : params)
      lines_.add(fmt::format("{0} = T.match_buffer(p{0}, {1}, \"{2}\")", array.name,
                             text_of(array.shape), array.dtype));
  }
  for (size_t i = 0; i < locals; ++i) {
    const Array array{fmt::format("t{}", i), dtype(), shape(), 0};
    lines_.add(fmt::format("{} = T.alloc_buffer({}, \"{}\")", array.name, text_of(array.shape),
                           array.dtype));
    stage(array);
  }
  for (size_t i = 0; i < outputs; ++i) stage(params[inputs + i]);
  std::string text = exact_ ? "" : "# tolerance 1e-5\n";
  text += "from tenon.script import ir as I, tir as T\n\n@I.ir_module\nclass Module:\n" + helpers_;
  text += fmt::format("    @T.prim_func\n    def kernel({}):\n", head);
  return text + lines_.text();
}

std::string random_program(Random& random) { return Writer(random).module(); }

}  // namespace tenon::fuzz
