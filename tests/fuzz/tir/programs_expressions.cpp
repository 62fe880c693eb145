// SPDX-License-Identifier: Apache-2.0
// Scalar expressions, loops and blocks of random programs.
#include "program_writer.h"

namespace tenon::fuzz {

// ---- expressions

std::string Writer::index_into(const Dim& extent, const std::vector<Index>& indices) {
  std::vector<Index> some = indices;
  random_.shuffle(some);
  for (const Index& index : some) {
    if (random_.one_in(8)) continue;
    if (index.extent.text == extent.text) {
      switch (random_.below(8)) {
        case 0: return fmt::format("{} - 1 - {}", extent.text, index.name);
        case 1: return fmt::format("({} + 1) % {}", index.name, extent.text);
        default: return index.name;
      }
    }
    if (extent.is_symbol() || index.extent.is_symbol()) {
      if (random_.coin()) return fmt::format("T.min({}, {} - 1)", index.name, extent.text);
      return fmt::format("{} % {}", index.name, extent.text);
    }
    if (index.extent.value < extent.value)
      return fmt::format("{} + {}", index.name, random_.from(0, extent.value - index.extent.value));
    const int64_t by = (index.extent.value + extent.value - 1) / extent.value;
    return random_.coin() ? fmt::format("{} // {}", index.name, by)
                          : fmt::format("{} % {}", index.name, extent.value);
  }
  if (random_.one_in(3))
    if (const Array* picks = readable([](const Array& a) { return a.dtype == "int32"; })) {
      // Data that is an index.
      return fmt::format(
          "T.max(T.min({}, {} - 1), 0)", element(*picks, indices),
          extent.is_symbol() ? "T.Cast(\"int32\", " + extent.text + ")" : extent.text);
    }
  return extent.is_symbol() ? "0" : std::to_string(random_.from(0, extent.value - 1));
}

std::string Writer::element(const Array& array, const std::vector<Index>& indices) {
  std::vector<std::string> at;
  at.reserve(array.shape.size());
  // An index that is data itself is not nested.
  for (const Dim& extent : array.shape) {
    std::string one = index_into(extent, indices);
    if (one.size() > 60) one = "0";
    at.push_back(std::move(one));
  }
  return fmt::format("{}[{}]", array.name, joined(at));
}

const Array* Writer::readable(const std::function<bool(const Array&)>& suits) {
  std::vector<const Array*> some;
  for (const Array& array : arrays_)
    if (suits(array)) some.push_back(&array);
  return some.empty() ? nullptr : random_.pick(some);
}

Value Writer::converted(Value value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  if (to == "bool") return {fmt::format("({} > T.{}(0))", value.text, from), 1};
  return {fmt::format("T.Cast(\"{}\", {})", to, value.text), value.bound, value.is_exact};
}

Value Writer::leaf(const std::string& dtype, const std::vector<Index>& indices) {
  const double room = room_of(dtype);
  const auto suits = [&](const Array& a) {
    if (dtype == "bool") return a.is_exact && a.dtype != "bool" ? true : a.dtype == "bool";
    return a.bound <= room / 4 && (a.is_exact || is_float(dtype)) &&
           (a.dtype == dtype || random_.one_in(3));
  };
  if (random_.below(5) != 0)
    if (const Array* from = readable(suits))
      return converted({element(*from, indices), from->bound, from->is_exact}, from->dtype, dtype);
  if (!indices.empty() && dtype != "bool" && random_.coin()) {
    const Index& index = random_.pick(indices);
    const double bound = index.extent.is_symbol() ? 16 : static_cast<double>(index.extent.value);
    return {fmt::format("T.Cast(\"{}\", {})", dtype, index.name), bound};
  }
  return number(dtype, dtype == "bool" ? random_.from(0, 1) : random_.from(-3, 4));
}

std::string Writer::condition(const std::vector<Index>& indices, int depth) {
  static const std::vector<std::string> kTests = {"<", "<=", ">", ">=", "==", "!="};
  if (depth > 0 && random_.one_in(4))
    return fmt::format("T.{}({}, {})", random_.coin() ? "And" : "Or", condition(indices, depth - 1),
                       condition(indices, depth - 1));
  if (depth > 0 && random_.one_in(8)) return fmt::format("T.Not({})", condition(indices, 0));
  if (!indices.empty() && random_.coin()) {
    const Index& index = random_.pick(indices);
    return fmt::format("{} {} {}", index.name, random_.pick(kTests), random_.from(0, 5));
  }
  // Whole numbers alone decide: others may differ in their last bits.
  const std::string dtype = random_.coin() ? "int32" : "float32";
  Value a = leaf(dtype, indices), b = leaf(dtype, indices);
  if (!a.is_exact) a = number(dtype, 1);
  if (!b.is_exact) b = number(dtype, 2);
  return fmt::format("{} {} {}", a.text, random_.pick(kTests), b.text);
}

Value Writer::expression(const std::string& dtype, const std::vector<Index>& indices, int depth) {
  if (depth <= 0) return leaf(dtype, indices);
  if (dtype == "bool") {
    if (random_.one_in(3)) return leaf(dtype, indices);
    return {fmt::format("({})", condition(indices, depth)), 1};
  }
  const double room = room_of(dtype);
  const Value a = expression(dtype, indices, depth - 1);
  const auto with = [&](const std::string& format, double bound) -> Value {
    const Value b = expression(dtype, indices, depth - 1);
    Value out{fmt::format(fmt::runtime(format), a.text, b.text), 0, a.is_exact && b.is_exact};
    out.bound = bound > 0 ? a.bound * b.bound : a.bound + b.bound;
    return out.bound <= room ? out : a;
  };
  switch (random_.below(14)) {
    case 0:
    case 1: return with("({} + {})", 0);
    case 2: return with("({} - {})", 0);
    case 3:
    case 4: return with("({} * {})", 1);
    case 5:
    case 6: {
      const Value b = expression(dtype, indices, depth - 1);
      return {fmt::format("T.{}({}, {})", random_.coin() ? "max" : "min", a.text, b.text),
              std::max(a.bound, b.bound), a.is_exact && b.is_exact};
    }
    case 7:
    case 8: {
      const Value b = expression(dtype, indices, depth - 1);
      return {fmt::format("T.{}({}, {}, {})", random_.coin() ? "Select" : "if_then_else",
                          condition(indices, 1), a.text, b.text),
              std::max(a.bound, b.bound), a.is_exact && b.is_exact};
    }
    case 9: {
      const std::string other = random_.pick(
          std::vector<std::string>{"float16", "float32", "float64", "int8", "int32", "int64"});
      if (other == dtype || a.bound > room_of(other) || (!a.is_exact && !is_float(other))) return a;
      return converted(converted(a, dtype, other), other, dtype);
    }
    case 10: {
      const std::string name = fresh("v");
      lines_.add(fmt::format("{} = T.{}()", name, dtype));
      return {
          fmt::format("T.Let({0} * {1}, where={{{0}: {2}}})", name, number(dtype, 1).text, a.text),
          a.bound, a.is_exact};
    }
    case 11:
      if (!is_float(dtype)) {
        if (random_.coin())
          return {fmt::format("T.{}({}, {})", random_.coin() ? "floordiv" : "floormod", a.text,
                              number(dtype, random_.from(2, 5)).text),
                  std::max(a.bound, 5.0)};
        return {fmt::format("T.{}({}, {})", random_.coin() ? "truncdiv" : "truncmod", a.text,
                            number(dtype, random_.from(2, 5)).text),
                std::max(a.bound, 5.0)};
      }
      return {fmt::format("T.abs({})", a.text), a.bound, a.is_exact};
    case 12:
      if (!is_float(dtype)) {
        static const std::vector<std::string> kBits = {"bitwise_and", "bitwise_or", "bitwise_xor"};
        const Value b = expression(dtype, indices, depth - 1);
        const double bound = 2 * std::max(a.bound, b.bound) + 1;
        if (bound > room) return a;
        return {fmt::format("T.{}({}, {})", random_.pick(kBits), a.text, b.text), bound};
      }
      if (dtype == "float32" && random_.coin()) {
        static const std::vector<std::string> kFunctions = {"tanh", "sigmoid", "exp",
                                                            "sqrt", "log",     "erf"};
        const std::string& function = random_.pick(kFunctions);
        exact_ = false;
        if (function == "exp")
          return {fmt::format("T.exp(T.min({}, T.float32(3)))", a.text), 21, false};
        if (function == "sqrt" || function == "log")
          return {fmt::format("T.{}(T.abs({}) + T.float32(1))", function, a.text), a.bound + 1,
                  false};
        return {fmt::format("T.{}({})", function, a.text), 1, false};
      }
      return {fmt::format("({} * {})", a.text, number(dtype, -1).text), a.bound, a.is_exact};
    default:
      if (is_float(dtype) && a.is_exact)
        return {fmt::format("T.{}({})", random_.coin() ? "floor" : "ceil", a.text), a.bound};
      return a;
  }
}

// ---- loops and blocks

std::vector<std::string> Writer::loop_header(const std::string& name, const Dim& extent, bool last,
                                             bool may_run_at_once) {
  std::string range = "range";
  if (may_run_at_once && random_.one_in(6)) range = "T.parallel";
  if (may_run_at_once && last && !extent.is_symbol() && random_.one_in(5)) range = "T.vectorized";
  if (!extent.is_symbol() && random_.one_in(10)) range = "T.unroll";
  if (random_.one_in(12)) range = "T.serial";
  return {fmt::format("for {} in {}({}):", name, range, extent.text)};
}

void Writer::over(const std::vector<Dim>& extents, bool may_run_at_once, const Body& body) {
  std::vector<Index> indices;
  const int depth = lines_.depth();
  bool parallel = false;
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::string name = fresh("i");
    const bool last = i + 1 == extents.size();
    std::string line = loop_header(name, extents[i], last, may_run_at_once)[0];
    if (parallel && line.find("T.parallel") != std::string::npos)
      line = fmt::format("for {} in range({}):", name, extents[i].text);
    parallel = parallel || line.find("T.parallel") != std::string::npos;
    lines_.add(line);
    lines_.in();
    indices.push_back({name, extents[i]});
  }
  body(indices);
  lines_.out(lines_.depth() - depth);
}

/// Loops with a block below them that has an axis for each extent, of the kinds given (S, R); the
/// loops are those of the axes, or cut, joined, reversed, shifted.
void Writer::block_over(const std::vector<Dim>& extents, const std::string& kinds,
                        bool may_run_at_once, const Body& body) {
  std::vector<Dim> loops;
  std::vector<std::string> bindings(extents.size());
  std::string where;
  struct Plan {
    int form;
    int64_t factor;
    size_t first;
  };
  std::vector<Plan> plans;
  for (size_t a = 0; a < extents.size(); ++a) {
    const Dim& e = extents[a];
    Plan plan{static_cast<int>(random_.below(10)), random_.from(2, 4), loops.size()};
    if (e.is_symbol() && plan.form != 3) plan.form = 9;
    // The first step of a sum is where its axis is 0; it must come first.
    if (kinds[a] == 'R' && plan.form == 3) plan.form = 9;
    if (plan.form == 2 && a + 1 < extents.size() && !extents[a + 1].is_symbol() &&
        kinds[a] == kinds[a + 1]) {
      const int64_t product = e.value * extents[a + 1].value;
      loops.push_back({std::to_string(product), product});
      plans.push_back(plan);
      plan.form = -1;  // joined to the one before
      plans.push_back(plan);
      ++a;
      continue;
    }
    if (plan.form == 1) {
      const int64_t outer = (e.value + plan.factor - 1) / plan.factor;
      loops.push_back({std::to_string(outer), outer});
      loops.push_back({std::to_string(plan.factor), plan.factor});
    } else {
      loops.push_back(e);
    }
    plans.push_back(plan);
  }
  over(loops, may_run_at_once && kinds.find('R') == std::string::npos,
       [&](const std::vector<Index>& names) {
         lines_.add(fmt::format("with T.block(\"{}\"):", fresh("b")));
         lines_.in();
         std::vector<Index> axes;
         for (size_t a = 0; a < extents.size(); ++a) {
           const Plan& plan = plans[a];
           const std::string& loop = names[plan.first].name;
           std::string value = loop;
           if (plan.form == 1) {
             value = fmt::format("{} * {} + {}", loop, plan.factor, names[plan.first + 1].name);
             where +=
                 fmt::format("{}{} < {}", where.empty() ? "" : " and ", value, extents[a].text);
           } else if (plan.form == 2 && a + 1 < extents.size() && plans[a + 1].form == -1) {
             value = fmt::format("{} // {}", loop, extents[a + 1].text);
           } else if (plan.form == -1) {
             value = fmt::format("{} % {}", loop, extents[a].text);
           } else if (plan.form == 3) {
             value = fmt::format("{} - 1 - {}", extents[a].text, loop);
           }
           const std::string name = fresh("v");
           const char* kind = kinds[a] == 'R' ? "reduce" : "spatial";
           if (kinds[a] == 'O') kind = "opaque";
           lines_.add(fmt::format("{} = T.axis.{}({}, {})", name, kind, extents[a].text, value));
           axes.push_back({name, extents[a]});
         }
         if (!where.empty()) lines_.add(fmt::format("T.where({})", where));
         body(axes);
       });
}

void Writer::store(const Array& to, const std::vector<std::string>& at,
                   const std::vector<Index>& indices, Value& known) {
  std::string value;
  Value v = expression(to.dtype, indices, static_cast<int>(random_.below(4)));
  if (random_.one_in(5)) {
    const std::string name = fresh("x");
    lines_.add(fmt::format("{}: T.{} = {}", name, to.dtype, v.text));
    v.text = name;
  }
  lines_.add(fmt::format("{}[{}] = {}", to.name, joined(at), v.text));
  known.bound = std::max(known.bound, v.bound);
  known.is_exact = known.is_exact && v.is_exact;
}

}  // namespace tenon::fuzz
