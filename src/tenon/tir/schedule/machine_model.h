// SPDX-License-Identifier: Apache-2.0
// The numbers by which the default schedule, the choice of layouts and the estimate of own code judge
// a machine: one table, with a row for each kind. Sizes of caches and widths of vectors are the
// target's own (support/target.h).
//
// Each number has a unit and a source:
//   [conv], [gemm]  hand-written kernels on one core, tiles and blockings tried beside each other
//   [winograd]      the same of Winograd's forms, on a core with vectors of 256 bits
//   [neighbours]    bench/neighbours.py
//   [name]          the measurement named there, in the history or on docs/performance.md
//   [chosen]        never measured on its own: a guess that no benchmark has contradicted
// docs/design/0007-scheduling.md describes the experiments.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "tenon/support/target.h"

namespace tenon::tir {

struct MachineModel {
  // ---- what differs from kind to kind -----------------------------------------------------------

  /// Vector registers of the kind. A target that states fewer has fewer.
  int64_t registers = 16;
  /// Registers that a tile of accumulators and one row of weights leave free: LLVM hoists loads
  /// across unrolled steps, and one spill costs 20 to 40 % of the kernel. [conv] [gemm]
  int64_t spare_registers = 1;
  /// Vectors of a tile of one row, which is bound by reading the weights: loads in flight. [gemm],
  /// for 16 registers [chosen]
  int64_t row_vectors = 6;
  /// Outputs of a tile of one vector of weights: a broadcast that serves one accumulator waits in a
  /// register of its own. [neighbours]
  int64_t lone_broadcast_outputs = 8;
  /// Cycles that each such accumulator adds to a step, as its broadcast is no operand of the
  /// multiply-add. [neighbours]
  double lone_broadcast_cycles = 0.06;
  /// Vectors for which what follows a tile's sums computes functions side by side, at most: a polynomial waits for itself,
  /// and a core sees few of them at once. [Zen 5, products with a GELU behind them take 0.955 of their time, bert_tiny 0.98,
  /// vit_tiny 0.99; with 16 registers 1.00 to 1.02]
  int64_t interleaved_vectors = 1;

  // ---- the cost of a tile, in cycles for each step of the reduction ------------------------------

  /// Multiply-adds of vectors, and loads of vectors, that start in a cycle: ports of server cores
  /// since Haswell. [gemm]
  double fmas_per_cycle = 2, loads_per_cycle = 2;
  /// Instructions that issue in a cycle. [gemm]
  double issues_per_cycle = 4;
  /// Cycles of a multiply-add's latency: fewer accumulators wait for themselves. [conv]
  double fma_latency = 4;
  /// Cycles of each load beyond its port. [conv], fitted
  double load_cycles = 0.13;
  /// Cycles of each vector of weights from the nearest cache, ... [conv], fitted
  double near_weight_cycles = 0.05;
  /// ... and from beyond it, by a vector of `far_weight_bits`. [conv], fitted at 512 bits; narrower
  /// vectors by their bytes: [neighbours]
  double far_weight_cycles = 0.6;
  int far_weight_bits = 512;
  /// Bytes of weights in one outer step above which they leave the nearest cache between two
  /// tiles, of 32 KiB. [conv]
  int64_t near_weight_bytes = 20 * 1024;
  /// Bytes of weights that come from the second cache in a cycle. [a 1 x 1 convolution of stride 2 to 2048 channels
  /// of 7 x 7 with 32 registers: tiles of 4 and 3 columns by 4 vectors, 36 bytes, took 1.19 times as long as 7 by 2;
  /// Zen 3: 512 to 1000 channels of 13 x 13 in tiles of 2 columns by 5 vectors 27 bytes]
  double l2_bytes_per_cycle = 26;
  /// Accumulators beyond which each costs `crowded_cycles` more: the unrolled body no longer fits the
  /// cache of decoded instructions. [conv], fitted
  double crowded_accumulators = 28;
  double crowded_cycles = 0.06;

  // ---- the cost of a tile besides its steps ------------------------------------------------------

  /// Cycles to start, finish and store one accumulator, and of a tile's loops. [conv], fitted
  double accumulator_cycles = 3, tile_cycles = 20;
  /// Shares of a tile's cost: for each row beyond the first where the reduction reads one pixel only,
  /// [conv]; for a window, each row that a tile is taller than wide, by stride, and each row or
  /// column that it is off a square: lines of the image that it touches. [conv], fitted
  double row_share = 0.03, tall_share = 0.008, aspect_share = 0.001;

  // ---- which tiles are tried ---------------------------------------------------------------------

  /// Rows, columns and vectors at most. [conv]
  int64_t most_rows = 7, most_columns = 28, most_vectors = 8;
  /// The cycles of two nests, of tiles of two widths, over those of one whose width divides the vectors: they
  /// are taken for less. 17 vectors took 0.79 to 0.82 of the time as tiles of 4 and 3 (predicted: 0.87), 5 as 3
  /// and 2 took 1.02 (predicted: 0.95). [neighbours]
  double two_widths_share = 0.9;
  /// Lengths assumed where they are known only at run time: long enough that the remainder does not
  /// decide. [chosen]
  int64_t unknown_width = 960, unknown_height = 64, unknown_vectors = 64;
  /// Steps assumed: of one axis of a reduction, and of a product whose depth is unknown. [chosen]
  int64_t unknown_steps = 64, unknown_depth = 256;
  /// What is left of a length known at run time goes by so many, then one by one. [chosen]
  int64_t remainder = 4;

  // ---- windows over channels, and planar windows -------------------------------------------------

  /// Outputs of a tile: four accumulators hide the latency, and beyond that its shape hardly matters
  /// (2x4, 2x7, 1x7 and 4x4 within 3 %). [conv] With 32 registers eight: rows of 5 and of 7 are two in a tile.
  /// [Zen 5: tiny_dscnn 0.99, mobilenet_v3_small 0.99]
  int64_t window_columns = 8, window_least_columns = 5, window_accumulators = 4, window_rows = 2;
  /// Registers that the columns of such a tile may take, in eighths of all. [chosen]
  int64_t window_register_eighths = 5;
  /// Taps that are unrolled at most (5 x 5 are, 7 x 7 are not). [chosen]
  int64_t unrolled_taps = 32;
  /// Elements between lanes up to which strided reads are worth vectors. [pooling: 3x3 / 2 of
  /// 64 x 112 x 112 took 0.55 ms planar instead of 2.7]
  int64_t widest_lane_stride = 4;
  /// Lanes below which a vector is not worth its loop. [chosen]
  int64_t least_lanes = 4;
  /// Elements of a row of unknown length, as work. [chosen]
  int64_t unknown_row = 64;

  // ---- rows of padding ---------------------------------------------------------------------------

  /// Rows that a padding is computed for at a time, by preference: one row is least to keep; then
  /// numbers that divide outputs of common sizes (56, 28, 14, 7), then others. [chosen]
  std::array<int64_t, 7> padding_rows = {1, 4, 7, 8, 6, 5, 3};
  /// Quarters of the padding's elements that may be computed again. [chosen]
  int64_t repeated_quarters = 3;
  /// Parts of the caches that the rows may take: a quarter of the second, three of the first.
  /// [chosen]
  int64_t padding_l2_quarters = 1, padding_l1_quarters = 3;

  // ---- unrolling ---------------------------------------------------------------------------------

  /// Multiply-adds of an unrolled body: 64 to 128 are best. [conv]
  int64_t unrolled_fmas = 128;
  /// Steps of a reduction that are unrolled whole at most, and in part: [conv]
  int64_t whole_unrolled_steps = 16, unrolled_steps = 8;
  /// Iterations of loops of an epilogue, or over lanes of a sum, that are unrolled. [chosen]
  int64_t unrolled_iterations = 64;

  /// Steps of a chunk of a long reduction, at least, and chunks, at most, as each has code of its own: two
  /// take 0.96 of the time at 128 x 3072 x 768, 0.99 at 4096 and 0.67 at 8192, four 0.95, 0.97 and
  /// 0.64 [Sapphire Rapids]; four 0.91 of two at 3072 with a second cache of 1 MiB [Cascade Lake]. With
  /// columns that are no whole panels, four are more code than is unrolled.
  int64_t chunk_steps = 512, most_chunks = 4, most_uneven_chunks = 2;
  /// Rows of a product that has chunks, at least, and vectors of a panel that is counted in the cache.
  /// [chosen]
  int64_t chunk_rows = 24, chunk_vectors = 4;
  /// Accumulators of a product that waits for them, at most: chunks that hide their latency. One takes 0.52
  /// to 0.78 of the time, two 0.63 to 0.96, four 0.92 to 1.12 (64 to 1024 steps). [Sapphire Rapids, with
  /// vectors of 512 and of 256 bits]
  int64_t waiting_accumulators = 2;

  // ---- tasks for threads -------------------------------------------------------------------------

  /// Multiply-adds of vectors of lanes worth a task: some ten microseconds, where the hand-over takes
  /// about one. [chosen]
  int64_t task_macs = 512 << 10;
  /// Tasks of a contraction, and of other loops, at most: a few for each core of a large machine.
  /// [chosen]
  int64_t contraction_tasks = 32, loop_tasks = 64;
  /// Panels of a contraction that are tasks enough, so that their rows need not be cut. Rows of 128 in
  /// four parts took 1.08 of the time whole; 9 panels are 5 and 4 for two threads. [bert_base, vit_tiny]
  int64_t panel_tasks = 12;
  /// Kernels of which all is in this part of the second cache divide rows, the same as their neighbours:
  /// tiny_dscnn took 0.89 of its time on two threads, tiny_mobilenet_v1 0.88. [tiny networks]
  int64_t near_l2_parts = 4;
  /// Larger ones that the second cache holds whole do so up to so many multiply-adds, where the tasks are even:
  /// with more threads larger kernels need more tasks. [mobilenet_v2: a 1 x 1 convolution of 576 channels of
  /// 14 x 14 took 0.76 of its time on two threads]
  int64_t even_macs = 16 << 20;
  /// Multiply-adds of such a task, at least, tasks, at most, where two threads get as many each, and the
  /// share of full use of two threads that is enough otherwise. [tiny networks]
  int64_t near_task_macs = 32 << 10, near_tasks = 6;
  double near_share = 0.8;
  /// Columns up to which narrower panels take the place of wide ones that are odd in number and leave columns, and
  /// the cycles that they may take at most, over those of wide ones. [mobilenet_v2, 49 columns: 0.93 of the time on one and on two
  /// threads; vit_tiny, 197 columns: 1.0 and 1.1, as a core reads all rows that the others wrote]
  int64_t narrow_columns = 64;
  double narrow_share = 1.05;
  /// Tasks that are enough, where the loops inside are better left as they are. [chosen]
  int64_t enough_tasks = 8;
  /// Numbers of threads by whose times a plane of tiles, and rows of two kernels, are cut into tasks, with their
  /// weights. Rows that two tasks compute count twice, and tiles by their cycles. Even numbers of tasks: mobilenet_v2 takes
  /// 0.96 of its time on two threads and 1.00 on one, efficientnet_b0 0.97. Ten tasks in the place of five, where a seventh
  /// is computed twice, took 1.11 of the kernel's time on one thread and 0.94 on two. [mobilenet_v2, efficientnet_b0]
  std::array<std::pair<int64_t, double>, 4> task_threads = {{{1, 2}, {2, 2}, {4, 1}, {8, 1}}};
  /// Costs that are even (`spread_cost`): more tasks are taken then, as there may be more threads. A product of 64 x 512 x 800 takes
  /// 1.03 of its time in tasks of 16 rows (6, 5, 5), which the model holds for 1.005 on each. [mlp]
  double even_cost = 0.01;
  /// Times the wanted number of tasks that a divisor may be. [chosen]
  int64_t task_slack = 4;
  /// The part of the columns that may be left over where no number of tasks divides them. [chosen]
  int64_t uneven_parts = 8;
  /// Operations worth a task where there is no contraction. [chosen]
  int64_t task_operations = 16 << 10;
  /// Operations assumed of a reduction or a row of unknown length. [chosen]
  int64_t unknown_operations = 256;
  /// Operations of an element that is no part of a vector, and of an element of a reduced row.
  /// [chosen]
  int64_t scalar_operations = 4, row_operations = 16;
  /// Vectors below which a single row is one task, without a loop over vectors. [chosen]
  int64_t least_row_vectors = 4;
  /// Of dot products: instructions of one beside its multiply-adds, the least rows, and the part of the first
  /// cache (a quarter) that copies of columns may take. [chosen]
  int64_t dot_instructions = 10, least_dot_rows = 8, dot_l1_parts = 4;
  /// Elements from which an axis of a reduction is long enough alone: joined axes make places that
  /// are harder to simplify. [chosen]
  int64_t long_axis = 512;

  // ---- weights and caches ------------------------------------------------------------------------

  /// Halves of the second cache in which weights stay between two uses. [conv: prefetches gain for
  /// weights of more than about 300 KB, and lose nothing elsewhere]
  int64_t weights_l2_halves = 1;
  /// Weights that do not stay from run to run are prefetched from so many panels on, or for so many rows: the last
  /// panel of a thread hints at one that another thread reads. [efficientnet_b0, 49 rows: 24 panels take
  /// 0.86 of the time on one thread and 0.93 on two, three panels 0.95 and 1.1]
  int64_t far_panels = 8, far_rows = 128;
  /// Quarters of the second cache that two panels may take, so that one can be fetched while the other is in use.
  /// They need not fit: a line that is pushed out comes from the third cache, and no longer from memory. [Zen 3, 512 KB,
  /// 16 registers: a 3 x 3 convolution of 512 channels with stride 2, in panels of 288 KB, takes 0.91; with 32: chosen]
  int64_t panels_l2_quarters = 6;
  /// Bytes of a cache line.
  int64_t line_bytes = 64;
  /// Multiply-adds of vectors for each prefetch, at least, so that these do not crowd out the
  /// arithmetic. [gemm]
  int64_t prefetch_fmas = 24;
  /// Bytes of weights of few bits between what is in use and what is fetched, at least: so many are used
  /// up in the latency of the third cache. [decoding of lm15m int4]
  int64_t packed_ahead_bytes = 8 << 10;
  /// Bytes of a row that lives on the stack, in the nearest cache beside what it is made of. [chosen]
  int64_t stack_row_bytes = 8 << 10;

  // ---- layouts -----------------------------------------------------------------------------------

  /// Input channels that are read as planes: the first layer's. [conv]
  int64_t planar_channels = 4;
  /// A side of a transposed square, in lanes. 16 x 16 in vectors of 512 bits took 0.72 of the time of
  /// 8 x 8 on squares of 512 rows. [chosen]
  int64_t square_lanes = 16;
  /// Iterations around a transpose's squares that are tasks enough. [chosen]
  int64_t square_tasks = 4;

  // ---- Winograd's forms --------------------------------------------------------------------------

  /// Cycles of the two transforms for each position and vector of channels: F(4x4, 3x3) took 60 ns and
  /// 36 ns a tile and 8 channels at 3.2 GHz. [winograd]
  double winograd_input_cycles = 5.3, winograd_output_cycles = 3.2;
  /// Forms in the order in which they are looked at: each is taken where it takes less than `gain` of the time
  /// of the best before it.
  struct WinogradRule {
    int64_t tile;           // rows and columns of outputs
    double transforms = 1;  // times the cycles above
    double gain = 1;
    int64_t least_inputs = 1;  // channels that it sums
    /// Where filters come from beyond the second cache: the least tiles of a layer, and of a block of them.
    int64_t least_tiles = 1, least_block = 12;
    /// Whether its tiles may take memory up to GrowScratchRoom's limit (kGrownRoom), and not kScratchRoom's alone.
    bool takes_grown_room = false;
  };
  /// F(6x6, 3x3): its rows have more terms, and a tile more values than there are registers (64 to 128 channels on
  /// 28 x 28 to 112 x 112). It has twice the error of F(4x4, 3x3), nearly twice its filters, and more code: layers of
  /// resnet18 took 0.94 to 0.97 by it, the network 0.95 to 1. The errors of sums in another order grow with the root
  /// of the terms, and with 16 channels those of F(6x6, 3x3) were larger. [Zen 3, 16 registers] [WinogradError]
  std::array<WinogradRule, 3> winograd_forms = {{{.tile = 4},
                                                 {.tile = 2},
                                                 {.tile = 6,
                                                  .transforms = 1.3,
                                                  .gain = 0.93,
                                                  .least_inputs = 64,
                                                  .least_tiles = 24,
                                                  .least_block = 24,
                                                  .takes_grown_room = true}}};
  /// The share of the ports' rate that products reach, in either form. [conv] [winograd]
  double winograd_share = 0.9;
  /// The share of the direct sums' time above which these are kept. [chosen]
  double winograd_gain = 0.95;
  /// Tiles that are transformed together: enough that each filter is used 16 to 24 times between two
  /// loads, few enough that they stay in the second cache. [winograd]
  int64_t winograd_tiles = 24;
  /// Tiles that are transformed together, at most, where filters come from beyond the second cache, and
  /// this holds what the tiles take: 256 channels on 14 x 14 take 0.80 to 0.95 in one block of 49, 128 on
  /// 28 x 28 0.85 to 1. [resnet18, resnet50]
  int64_t winograd_streamed_tiles = 50;
  /// Halves of the second cache that such tiles take, at most: filters that are read once more cost as much as tiles that leave
  /// it. [1 MiB of it, Zen 5, tiles of 1.8 MiB for 0.9: 128 channels on 28 x 28 0.92, 136 on 29 x 29 0.81, 256 on 14 x 14 0.93]
  int64_t winograd_l2_halves = 4;
  /// Fewer are not worth it where the memory for more would make the program larger, with filters in the second
  /// cache. 16 channels on 32 x 32 take 0.45 of the direct sums' time in blocks of 13 and 0.54 in blocks of 7,
  /// 32 on 16 x 16 0.38 and 0.42. [tiny_resnet8]
  int64_t winograd_few_tiles = 3;
  /// Tasks of blocks of tiles, each with memory for one block: on two threads squeezenet1_1 took 0.88 of
  /// its time, resnet18 0.97. With four of them squeezenet1_1 took 0.92, and resnet18 a third more
  /// memory. [squeezenet1_1, resnet18]
  int64_t winograd_tasks = 2;

  // ---- rows of two kernels ----------------------------------------------------------------------

  /// Taps of a window whose input is computed row by row, at most: 11 x 11 of one channel. [chosen]
  int64_t row_taps = 128;
  /// What is between two kernels is computed row by row where it takes more than this part of the
  /// second cache. [chosen]
  int64_t row_l2_parts = 4;
  /// Channels of a task, at least. [chosen]
  int64_t row_channels = 48;
  /// Rows of the result in a task, at least. [chosen]
  int64_t least_task_rows = 4;
  /// The part of the second cache that the rows of a task may take, ... [chosen]
  int64_t ring_l2_parts = 8;
  /// ... and of what is between the kernels, all tasks' rows together, ... [chosen]
  int64_t ring_parts = 4;
  /// ... and rows of the result that are computed between two moves of what they share. [chosen]
  int64_t least_ring_steps = 2, most_ring_steps = 16;

  // ---- steps of recurrent layers -----------------------------------------------------------------

  /// Rows of another operand that one loaded vector of weights serves, and rows of weights that are
  /// added to an accumulator while it is in a register. [a layer of 256 units: 64 steps took 0.68 ms
  /// instead of 70]
  int64_t recurrent_rows = 4, recurrent_steps = 4;
  /// Sums of vectors in registers for which a step's product keeps them there, at least: of one row, and of several, where a
  /// vector of weights is used by all. [8 sums of 4 rows take 1.07 of the time of sums in memory, 12 of 2 rows 0.84]
  int64_t least_sums = 8, least_sums_of_rows = 12;
  /// Bytes from one use of an instruction to its next that a core foresees: longer steps wait for the second cache.
  /// [256 x 256 from there, Zen 5: 200 GB/s in steps of 1 KB, 137 in steps of 2 and of 4]
  int64_t foreseen_bytes = 1 << 10;
  /// The same of a row's weights that may be in the second cache; those that are not come faster in longer steps.
  /// [tiny_autoencoder, Zen 5: 0.85 of its time in steps of 512 bytes, 0.91 of 1 KB, 1 of 4]
  int64_t row_step_bytes = 512;
  /// Multiply-adds of a task of a step, at least, and tasks of a step, at most: the hand-over takes
  /// 0.6 us, and threads wait for each other in each step. [chosen]
  int64_t step_macs = 64 << 10, step_tasks = 8;

  // ---- operations of element-wise code -----------------------------------------------------------

  /// Costs of operations, in additions: a call of a mathematical function, a division. [chosen]
  int64_t call_operations = 8, division_operations = 4;
  /// Additions that are rather computed again than stored and loaded. [chosen]
  int64_t repeated_operations = 2;

  // ---- seconds -----------------------------------------------------------------------------------

  /// Cycles in a second: a server core at its vector clock (512 bits 2.4, 256 bits 2.7). [gemm]
  double cycles_per_second = 2.5e9;
  /// Bytes in a second from memory by one core (9 to 12 GB/s). [gemm]
  double bytes_per_second = 1e10;
  /// The share of a core's peak that contractions reach over whole networks. [chosen]: kernels alone
  /// reach .8 to .95
  double share_of_peak = 0.7;
  /// Vectors of elements in a cycle, in what is no contraction. [chosen]
  double elements_per_cycle = 0.25;
  /// Seconds of a kernel's call. [chosen]
  double call_seconds = 2e-7;
};

/// The cost of so many tasks of one size: logarithms of their times over `task_threads`, weighted.
double spread_cost(int64_t tasks, double size, const MachineModel& model);

/// The row of the target's kind: 32 vector registers (AVX-512, AArch64) or 16 (AVX2, SSE, and C,
/// whose compiler is not known).
const MachineModel& machine_model(const Target& target);

}  // namespace tenon::tir
