// SPDX-License-Identifier: Apache-2.0
// A network under construction: its values are typed as the compiler types them and have numbers,
// those that the reference interpreter gives for the inputs drawn, so that a generator knows what
// an operator will see: no logarithm of a negative number, no index out of range.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choices.h"
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/expr.h"
#include "tenon/ir/visit.h"

namespace tenon::fuzz {

/// A tensor of the network.
struct Item {
  graph::Value value;  // a variable, an item of one, or a constant
  Ref<graph::TensorType> type;
  Ref<TensorData> data;  // what it is for the inputs drawn
  bool exact = true;     // every target computes these bits: nothing in its history was rounded
  double least = 0, most = 0;  // of its elements that are finite
  bool finite = true;
  bool on_grid = false;   // all are multiples of 1/16
  bool is_last = false;   // is given to no operator
  bool is_inner = false;  // is no output either, where an operator has it already

  DType dtype() const { return type->dtype; }
  size_t ndim() const { return data->shape.size(); }
  const std::vector<int64_t>& shape() const { return data->shape; }
  bool is_static() const { return type->static_shape().has_value(); }
  double magnitude() const;
};
Item item_of(graph::Value value, Ref<graph::TensorType> type, Ref<TensorData> data, bool exact);

/// What the elements of a new tensor are.
struct Content {
  enum class Kind : uint8_t {
    kAny,      // small integers; floats on a coarse grid or, in other networks, any
    kUniform,  // from `least` to `most`
    kFull,     // of integers: every value of the dtype
  };
  Kind kind = Kind::kAny;
  double least = -2, most = 2;
};
inline Content from_to(double least, double most) { return {Content::Kind::kUniform, least, most}; }

/// What an operator's rounding does to its result.
enum class Rounds : uint8_t {
  kNever,       // moves or selects elements: exact where its operands are
  kArithmetic,  // sums and products: exact where operands and result lie on a coarse grid
  kAlways,
};

/// What variables are.
using Known = std::map<const Node*, graph::Value>;

struct LoopStep;

/// A binding.
struct Step {
  enum class Kind : uint8_t {
    kCall,
    kIf,
    kNumbers,  // the elements of an integer tensor as variables of dimensions
    kMatch,    // another name for a value whose dimensions are named now
    kAssert,
    kLoop
  };
  Kind kind = Kind::kCall;
  Ref<graph::Var> var;
  Ref<graph::Call> call;  // or what is asserted
  Rounds rounds = Rounds::kAlways;
  graph::Value source;                   // of numbers and of a match
  std::vector<Ref<tenon::Var>> numbers;  // of numbers
  Ref<graph::TensorType> match;          // of a match
  graph::Value condition;                // of an `if`
  std::vector<Step> branches[2];         // then, else
  graph::Value results[2];
  std::shared_ptr<LoopStep> loop;
};

/// `R.loop`: its body is written among the values of the network that it uses.
struct LoopStep {
  Ref<tenon::Var> iteration;
  Expr count;
  bool while_first = false;
  std::vector<int64_t> reversed_inputs, reversed_outputs;
  std::vector<graph::Value> states, slices;
  std::vector<Ref<graph::Var>> state_params, slice_params;
  std::vector<Ref<tenon::Var>> rows;  // of states whose first dimension changes; null: of others
  std::vector<Step> body;
  std::vector<graph::Value> next, stacked;
  std::vector<graph::Type> types;              // of the results
  std::vector<std::vector<Expr>> part_shapes;  // of what is stacked, in one iteration
};

/// Every value that steps use, those inside of branches and bodies too.
void each_value(const std::vector<Step>& steps,
                const std::function<void(const graph::Value&)>& visit);

/// A program and what it computes.
struct Network {
  IRModule module;
  std::vector<Ref<TensorData>> inputs, outputs;
  std::vector<bool> exact;                   // of the outputs
  std::vector<std::vector<bool>> near_ties;  // of the outputs: Draft::keep_apart
  std::vector<std::string> operators;        // names, in order
};

/// How the type rules took the calls of one operator.
struct Tally {
  int64_t made = 0, refused = 0, wild = 0;  // wild: numbers that are no test (too large, no number)
  std::map<std::string, int64_t> reasons;
};

class Draft {
 public:
  explicit Draft(Choices& choices);

  Choices& choices;

  // ---- shapes and types
  /// An extent around multiples of vector lengths and tiles, at most `most`.
  int64_t extent(int64_t most = 65);
  /// A shape of this rank with at most `elements` elements.
  std::vector<int64_t> shape(size_t rank, int64_t elements = 2048);
  DType float_dtype();    // mostly float32
  DType integer_dtype();  // mostly int32 and int64
  DType number_dtype();
  DType any_dtype();

  // ---- operands
  using Fits = std::function<bool(const Item&)>;
  /// A value of the network that fits, or nothing.
  std::optional<Item> find(const Fits& fits);
  /// A new input or constant; its dimensions may be symbolic.
  Item fresh(DType dtype, const std::vector<Expr>& shape, Content content = {});
  Item fresh(DType dtype, const std::vector<int64_t>& shape, Content content = {});
  Item constant(DType dtype, const std::vector<int64_t>& shape, Content content = {});
  /// One that fits, or a new one of a rank from `least` to `most`, whose dtype `dtype` draws.
  Item operand(const std::function<DType()>& dtype, size_t least_rank, size_t most_rank,
               const Fits& fits = {}, Content content = {}, int64_t elements = 2048);
  /// One of this dtype and shape: of the network, or new.
  Item like(DType dtype, const std::vector<Expr>& shape, const Fits& fits = {},
            Content content = {});
  /// The number that a dimension is in this run.
  int64_t value_of(const Expr& dim) const;

  // ---- calls
  /// Emits a call, and gives nothing where the type rules refuse it or its numbers are no test.
  std::optional<Item> call(std::string_view op, const std::vector<graph::Value>& args,
                           const Attrs& attrs = {}, Rounds rounds = Rounds::kAlways);
  /// The same of an operator that gives several tensors; empty: nothing.
  std::vector<Item> calls(std::string_view op, const std::vector<graph::Value>& args,
                          const Attrs& attrs = {}, Rounds rounds = Rounds::kAlways);
  // ---- what only the run knows
  /// A number that is `value` in this run: that itself, or, in some networks, a variable that the
  /// program reads from an input or from what it has computed.
  Expr number(int64_t value);
  /// Variables for all of them, read from this tensor.
  std::vector<Expr> numbers_of(const Item& tensor);
  /// A loop whose body `make` writes: the states of the next iteration and what is stacked.
  struct Loop {
    Expr count;
    bool while_first = false;
    std::vector<int64_t> reversed_inputs, reversed_outputs;
    std::vector<Item> states, slices;
    std::vector<bool> grows;  // of the states: the first dimension changes
  };
  struct LoopBody {
    std::vector<Item> states, slices;  // in the body
    std::vector<Item> next, stacked;
  };
  bool loop(const Loop& outside, const std::function<bool(LoopBody& body)>& make);
  /// How many loops there are around what is written now.
  size_t loops_around() const { return loops_; }

  /// An `if` between what two runs of `make` give for x: values of its type, or nothing.
  bool branch(const Item& condition, const Item& x,
              const std::function<std::optional<Item>(const Item& x)>& make);

  /// What was quantised of rounded numbers, whose elements may be a step off where `near_ties` says
  /// so and nowhere else: given to no operator, as what a step becomes is no matter of rounding.
  void keep_apart(const Item& item, std::vector<bool> near_ties);
  /// A value of the operators that have it already: given to no other, and no output.
  void keep_inside(const Item& item);
  /// Every target computes these bits, whatever was rounded before.
  void declare_exact(const Item& item);

  Network finish();

  size_t size() const { return operators_.size(); }
  const std::map<std::string, Tally>& tally() const { return tally_; }

 private:
  struct Scope {
    std::vector<Item> items;
    std::vector<Step> steps;
    std::vector<std::pair<Expr, int64_t>> numbers;  // what only the run knows
  };
  /// What a call gives now.
  struct Computed {
    std::vector<Item> items;
    graph::Value result;
  };
  bool holds(const graph::AssumedDims& assumed) const;
  bool is_test(const Item& item, const std::vector<Item>& args) const;
  // Of the item that stands for the same value.
  void change(const Item& item, const std::function<void(Item&)>& change);
  std::optional<Computed> compute(const Step& step,
                                  const std::vector<Ref<graph::TensorType>>& types) const;
  Item named(const Item& item, const std::vector<Expr>& shape);
  // An input of the network with this value.
  Item parameter(const Ref<graph::TensorType>& type, const Ref<TensorData>& data);
  Item given(DType dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& values);
  Ref<TensorData> data_of(const graph::Value& value) const;
  bool is_exact(const graph::Value& value) const;
  std::optional<LoopBody> write_body(LoopStep& loop, const Loop& outside,
                                     const std::function<bool(LoopBody&)>& make_body);
  static void type_results(LoopStep& loop, const Loop& outside, const LoopBody& body);
  void name_length(const graph::Value& value, const std::vector<Expr>& part, Ref<TensorData> data,
                   bool exact);
  bool replay(const std::vector<Step>& steps);
  bool replay_call(const Step& step);
  std::optional<std::vector<std::pair<Ref<TensorData>, bool>>> run(const LoopStep& loop);
  Ref<TensorData> random_data(DType dtype, const std::vector<int64_t>& shape,
                              const Content& content);
  Expr symbolic(int64_t extent);
  /// What stands for variables, and for items of tuples, in the program.
  struct Renamed {
    Known values;
    std::map<std::pair<const Node*, int64_t>, graph::Value> items;
  };
  static graph::Value rebuilt(const graph::Value& value, const Renamed& renamed);
  void rebuild(graph::BlockBuilder& builder, const std::vector<Step>& steps,
               Renamed& renamed) const;
  void rebuild_if(graph::BlockBuilder& builder, const Step& step, Renamed& renamed) const;
  void rebuild_loop(graph::BlockBuilder& builder, const Step& step, Renamed& renamed) const;

  std::vector<Scope> scopes_;
  std::vector<Item> params_;
  Known known_;                                               // what variables are
  std::map<const Node*, bool> exact_;                         // of variables
  std::map<const Node*, std::vector<bool>> near_ties_;        // likewise
  Substitution symbols_;                                      // to numbers
  std::vector<std::pair<Ref<tenon::Var>, int64_t>> extents_;  // the same
  std::vector<std::string> operators_;
  std::map<std::string, Tally> tally_;
  int next_name_ = 0;
  int next_number_ = 0;
  size_t loops_ = 0;
  uint32_t run_time_share_ = 0;
  uint32_t constant_share_ = 0, symbolic_share_ = 0, special_share_ = 0, other_dtypes_ = 0;
  bool grid_ = true;
};

}  // namespace tenon::fuzz
