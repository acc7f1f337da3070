// What a warp of decode_kernel.cuh has in shared memory of the pages that it reads.
#ifndef TRITONRL_ROLLOUT_CUDA_DECODE_RING_CUH_
#define TRITONRL_ROLLOUT_CUDA_DECODE_RING_CUH_

#include <cstdint>

#include "model/cuda/programmatic.cuh"
#include "model/cuda/tensor_copy.cuh"
#include "rollout/cuda/decode_page.cuh"
#include "rollout/cuda/decode_units.cuh"

namespace tritonrl::decode {

// kStages pages, keys and behind them values, under way or there. kBoxes: by the tensor memory
// accelerator, two copies a page that one thread asks for, where instructions of all threads would
// take power that the GPU has better use for; whole pages then, be they used or not.
template <typename Cached, int kDim, int kStages, bool kBoxes>
class PageRing {
 public:
  using Format = PageFormat<Cached, kDim>;
  static constexpr int kStageBytes = 2 * Format::kBytes;
  static constexpr int kBytes = kStages * kStageBytes;

  // memory: kBytes at a multiple of 1,024; barriers: kStages. Both are this warp's alone.
  __device__ PageRing(const Call& call, const Units& units, uint8_t* memory,
                      SharedBarrier* barriers, int warp)
      : call_(call),
        stream_(units, call.page_table, warp),
        memory_(memory),
        barriers_(barriers),
        address_(Kept(SharedAddress(memory))) {
    if constexpr (kBoxes) {
      policy_ = EvictFirstPolicy();
      if (threadIdx.x % 32 == 0) {
        for (int i = 0; i < kStages; ++i) InitBarrier(barriers + i, 1);
        PublishBarriers();
      }
      __syncwarp();
    }
  }

  // Until what earlier kernels wrote is seen.
  __device__ void WaitForEarlier() {
    if (!waited_) WaitForEarlierKernels();
    waited_ = true;
  }

  // Begins to copy the next page, if there is one, to where all lanes have read what was there:
  // `read` is a word of it (WarpSums::Add).
  __device__ void Fill(uint32_t read) {
    if (!stream_.AtEnd()) {
      const PageStream::Page page = stream_.Take();
      if (!page.settled) WaitForEarlier();
      uint8_t* const to = memory_ + filled_ * kStageBytes;
      if constexpr (kBoxes) {
        // The copy waits for the word; nothing else orders the two.
        if (threadIdx.x % 32 == 0) CopyPage(page, static_cast<int>(read & call_.zero), to);
      } else {
        Format::Copy(call_.keys, call_.values, page.id, call_.key_heads, page.head, page.tokens,
                     to);
      }
    }
    if constexpr (!kBoxes) EndCopies();
    filled_ = filled_ + 1 == kStages ? 0 : filled_ + 1;
  }

  // Until the page that was asked for first, of those not yet taken, is there; SharedAddress of it.
  __device__ uint32_t Take() {
    if constexpr (kBoxes) {
      WaitForPhase(barriers_ + stage_, parity_);
    } else {
      WaitForCopies<kStages - 1>();
      __syncwarp();
    }
    const uint32_t page = address_ + stage_ * kStageBytes;
    if (++stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1;
    }
    return page;
  }

 private:
  __device__ void CopyPage(const PageStream::Page& page, int zero, uint8_t* to) {
    SharedBarrier* const there = barriers_ + filled_;
    const int slot = page.id * kPageTokens + zero, line = page.head * Format::kLines;
    ArriveAndExpect(there, kStageBytes);
    CopyBox(to, &call_.key_boxes, 0, slot, line, there, policy_);
    CopyBox(to + Format::kBytes, &call_.value_boxes, 0, slot, line, there, policy_);
  }

  const Call& call_;
  PageStream stream_;
  uint8_t* const memory_;
  SharedBarrier* const barriers_;
  const uint32_t address_;
  uint64_t policy_ = 0;
  int filled_ = 0, stage_ = 0;  // the one that is filled next, and the one that is taken next
  uint32_t parity_ = 0;
  bool waited_ = false;
};

}  // namespace tritonrl::decode

#endif  // TRITONRL_ROLLOUT_CUDA_DECODE_RING_CUH_
