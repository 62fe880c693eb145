# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tenon._stubs` from the compiler's tables.
from collections.abc import Callable, Sequence
from typing import Any

from tenon._core import BlockRV, LoopRV, PrimExpr, _Schedule

class Primitives(_Schedule):
    """A method for each primitive."""

    def get_block(self, name: str) -> BlockRV:
        """The block of this name."""

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block, the outermost first."""

    def get_child_blocks(self, block_or_loop: LoopRV | BlockRV | str) -> list[BlockRV]:
        """The blocks below a block or a loop, without those inside of them, in program order."""

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks that write what a block reads, in program order."""

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks that read what a block writes, in program order."""

    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> PrimExpr:
        """A number of several, each as likely as its part of all probabilities.

        Sizes and numbers of other primitives may be expressions of it.

        Args:
            probs: one for each candidate.
            decision: which candidate; None: drawn.
        """

    def sample_perfect_tile(self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None) -> list[PrimExpr]:
        """Factors for split, outermost first, whose product is the extent of the loop, a constant.

        Each tiling is as likely as any other.

        Args:
            n: how many.
            decision: the factors; None: drawn.
        """

    def split(self, loop: LoopRV, factors: Sequence[int | PrimExpr | None]) -> list[LoopRV]:
        """Cuts a loop into nested ones, the outermost first.

        Where the factors do not divide its extent, blocks inside run under a predicate.

        Args:
            factors: extents of the new loops: integers and expressions of the function's dimensions; one may be None: it follows.
        """

    def fuse(self, *loops: LoopRV) -> LoopRV:
        """One loop over the product of perfectly nested ones.

        Args:
            loops: from the outermost.
        """

    def merge(self, *loops: LoopRV) -> LoopRV:
        """One loop whose iterations do what those of the given ones do, which follow each other and have the same extent: in each iteration first that of the first one, then that of the next.

        Args:
            loops: in program order.
        """

    def reorder(self, *loops: LoopRV) -> None:
        """Puts loops of one nest, without branches between them, in the given order.

        Args:
            loops: from the outermost.
        """

    def loop_partition(self, loop: LoopRV, points: Sequence[int | PrimExpr | None]) -> list[LoopRV]:
        """Loops one after the other over [0, points[0]), [points[0], points[1]), ..., each of which starts at 0 again.

        Blocks inside are copied, and renamed in all parts but the first.

        Args:
            points: where the loop is cut, in growing order.
        """

    def add_unit_loop(self, block: BlockRV | str) -> LoopRV:
        """A loop of extent 1 around a block."""

    def parallel(self, loop: LoopRV) -> None:
        """Lets the iterations of a loop run on several threads."""

    def vectorize(self, loop: LoopRV) -> None:
        """Makes vectors of the iterations of a loop of constant extent."""

    def unroll(self, loop: LoopRV) -> None:
        """Writes out the iterations of a loop of constant extent."""

    def annotate(self, block_or_loop: LoopRV | BlockRV | str, ann_key: str, ann_val: Any) -> None:
        """Sets an annotation."""

    def unannotate(self, block_or_loop: LoopRV | BlockRV | str, ann_key: str) -> None:
        """Removes an annotation."""

    def software_pipeline(self, loop: LoopRV, stages: Sequence[int], versions: int = 2) -> None:
        """Marks a loop as a software pipeline: its stages run at the same time on iterations one after the other.

        The marks are annotations, and stand in the trace as these.

        Args:
            stages: of each statement of its body.
            versions: of the buffers between stages, at least.
        """

    def fuse_block_iters(self, block: BlockRV | str, first: int, count: int) -> None:
        """Joins consecutive axes of a block into one.

        Its loops are made afresh, one for each axis.

        Args:
            first: of the axes that are joined.
            count: of them.
        """

    def split_block_iter(self, block: BlockRV | str, axis: int, factor: int) -> None:
        """Cuts an axis of a block in two.

        Where the factor does not divide its extent, the domain grows.

        Args:
            factor: the extent of the inner one.
        """

    def simplify_block_iters(self, block: BlockRV | str) -> None:
        """Drops axes of extent 1.

        The block's loops are made afresh, one for each axis that is left.
        """

    def reorder_block_iters(self, block: BlockRV | str, order: Sequence[int]) -> None:
        """Puts the axes of a block in another order.

        Its loops are made afresh.

        Args:
            order: the old position of each axis.
        """

    def pad_reduction(self, block: BlockRV | str, axis: int, factor: int) -> None:
        """Lets a reduction axis run up to the next multiple of a factor.

        What is beyond its end adds the neutral element.
        """

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Lets the axes of a sum of products run up to the next multiples of `padding`.

        Operands are copied into larger buffers before it, the result out of one after it.

        Args:
            padding: one for each axis.
        """

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Cuts a block that stores a value inside and a constant outside in two below a loop: the constant everywhere, then the value.

        Gives the block of the constant.
        """

    def blockize(self, loop: LoopRV) -> BlockRV:
        """Makes a block of a loop that holds loops around one block.

        Primitives that move blocks take it as a whole.
        """

    def tensorize(self, block_or_loop: LoopRV | BlockRV | str, tensor_intrin: str) -> None:
        """Puts a call of a kernel in the place of a block made by blockize, or of what blockize makes of a loop, which must be what the kernel's description says.

        Args:
            tensor_intrin: the name of the kernel.
        """

    def compute_at(self, block: BlockRV | str, loop: LoopRV) -> None:
        """Computes a producer where its consumers below a loop need it, as much as they need."""

    def reverse_compute_at(self, block: BlockRV | str, loop: LoopRV) -> None:
        """Computes a consumer right after what its producers below a loop have written."""

    def compute_inline(self, block: BlockRV | str) -> None:
        """Puts the value of an element-wise block in the place of every read of it."""

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Puts an element-wise consumer in the place of its producer's store."""

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Splits a reduction into its start, before a loop, and its update.

        Gives the block of the start.
        """

    def rfactor(self, loop: LoopRV) -> BlockRV:
        """Partial results for each iteration of a loop over the reduction, which the block then joins.

        Gives the block of the partial results.
        """

    def winograd(self, block: BlockRV | str, tile: int, block_tiles: int) -> list[BlockRV]:
        """Computes a convolution of 3 x 3 taps of stride 1 by Winograd's form, which rounds otherwise.

        Gives the blocks around the products: two of the filters, three of the patches, two of the result.

        Args:
            tile: rows and columns of outputs: 2, 4 or 6.
            block_tiles: tiles of a block, the outermost axis of what follows.
        """

    def cache_read(self, block: BlockRV | str, read_buffer_index: int, storage_scope: str) -> BlockRV:
        """A copy of a region that a block reads, made before it.

        Gives the block of the copy.

        Args:
            read_buffer_index: of the regions that the block reads.
            storage_scope: of the new buffer: "global", "local".
        """

    def cache_write(self, block: BlockRV | str, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """Lets a block write a new buffer, which a copy after it puts in place.

        Gives the block of the copy.

        Args:
            write_buffer_index: of the regions that the block writes.
            storage_scope: of the new buffer: "global", "local".
        """

    def reindex_cache_read(self, block: BlockRV | str, read_buffer_index: int, storage_scope: str, axes: Sequence[int]) -> BlockRV:
        """cache_read into a buffer indexed by axes of the block: a packed copy.

        Args:
            read_buffer_index: of the regions that the block reads.
            storage_scope: of the new buffer: "global", "local".
            axes: of the block, in the order of the dimensions.
        """

    def transform_layout(self, block: BlockRV | str, buffer: str | Sequence[str | int], index_map: Callable[..., Any], pad_value: bool | int | float | PrimExpr | None = None) -> None:
        """Stores an intermediate in another layout, everywhere.

        Where the map does not take up whole extents, these are rounded up.

        Args:
            buffer: of the block: ("read", i) or ("write", i).
            index_map: from the indices of a place to those that it gets: lambda i, j: (j, i).
            pad_value: of the places that rounding up adds; None: anything.
        """

    def set_scope(self, block: BlockRV | str, buffer_index: int, storage_scope: str) -> None:
        """Gives a buffer another scope.

        Args:
            buffer_index: of the regions that the block writes.
        """

    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Rounds the stride of a dimension up to factor * k + offset.

        Args:
            buffer_index: of the regions that the block writes.
            axis: the dimension.
        """

    def prefetch(self, block: BlockRV | str, loop: LoopRV, ahead: LoopRV, read_buffer_index: int, distance: int, locality: int = 2) -> None:
        """A hint in each iteration of a loop to bring into cache what a block will read later.

        Args:
            loop: where the hint stands.
            ahead: whose iterations are counted.
            read_buffer_index: of the regions that the block reads.
            distance: iterations of `ahead`.
            locality: 3: into the first cache, 2: into the second.
        """

    def prefetch_spread(self, block: BlockRV | str, loop: LoopRV, ahead: LoopRV, over: LoopRV, read_buffer_index: int, distance: int, elements: int, first: int, runs: int) -> None:
        """As prefetch, where the iterations of a loop around read the same lines: each asks for some of them.

        Args:
            loop: where the hint stands.
            ahead: whose iterations are counted.
            over: whose iterations share the work.
            read_buffer_index: of the regions that the block reads.
            distance: iterations of `ahead`.
            elements: of a run of lines that one iteration asks for.
            first: run of iteration 0.
            runs: in all.
        """
