// Runs a kernel's blocks on a CPU, so that tests check its results without a GPU. Include this
// header before the kernel, which is then compiled as C++.
#ifndef TRITONRL_MODEL_CUDA_TESTING_EMULATED_BLOCK_H_
#define TRITONRL_MODEL_CUDA_TESTING_EMULATED_BLOCK_H_

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#ifndef TRITONRL_EMULATED_CLUSTER
#define TRITONRL_EMULATED_CLUSTER 1
#endif

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static

namespace tritonrl {

// The blocks of the cluster that currently runs. Each of their threads is a fiber; fibers run in
// turn, each until it waits for other threads. The test defines TRITONRL_EMULATED_THREADS, the
// threads of a block, and TRITONRL_EMULATED_CLUSTER, the blocks of a cluster (default 1).
class EmulatedBlock {
 public:
  static constexpr int kThreads = TRITONRL_EMULATED_THREADS;
  static constexpr int kCluster = TRITONRL_EMULATED_CLUSTER;
  static constexpr int kFibers = kThreads * kCluster;  // of a cluster

  // Runs kernel() in all threads of blocks 0 to `blocks` - 1, in clusters of kCluster or fewer
  // blocks, one cluster after the other.
  static void Run(int blocks, const std::function<void()>& kernel) {
    EmulatedBlock block;
    current_ = &block;
    block.kernel_ = &kernel;
    block.blocks_ = blocks;
    for (block.first_block_ = 0; block.first_block_ < blocks; block.first_block_ += kCluster) {
      block.RunCluster();
    }
    current_ = nullptr;
  }
  static EmulatedBlock& Current() { return *current_; }

  int thread() const { return fiber_ % kThreads; }
  int rank() const { return fiber_ / kThreads; }  // of the block in its cluster
  int fiber() const { return fiber_; }
  int index() const { return first_block_ + rank(); }
  int blocks() const { return blocks_; }

  // Return when all threads of the block, or of the thread's warp, have made the call.
  void WaitForBlock() { Wait(&block_[rank()], kThreads); }
  void WaitForWarp() { Wait(&warps_[fiber_ / 32], 32); }
  // Returns when `threads` threads of the block have made the call; all calls pass the same number.
  void WaitForFirst(int threads) { Wait(&first_[rank()], threads); }

  // Lets the other fibers run.
  void Yield() { swapcontext(&fibers_[fiber_], &main_); }

 private:
  static_assert(kThreads % 32 == 0);
  struct Barrier {
    int arrived = 0, passed = 0;
  };

  EmulatedBlock() : stacks_(kFibers * kStack) {}

  static void Enter() {
    (*current_->kernel_)();
    current_->ended_[current_->fiber_] = true;
    current_->Yield();
  }

  void RunCluster() {
    ended_.fill(false);
    const int fibers = kThreads * std::min(kCluster, blocks_ - first_block_);
    for (int i = 0; i < fibers; ++i) {
      getcontext(&fibers_[i]);
      fibers_[i].uc_stack.ss_sp = stacks_.data() + i * kStack;
      fibers_[i].uc_stack.ss_size = kStack;
      fibers_[i].uc_link = &main_;
      makecontext(&fibers_[i], &Enter, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (fiber_ = 0; fiber_ < fibers; ++fiber_) {
        if (ended_[fiber_]) continue;
        any = true;
        swapcontext(&main_, &fibers_[fiber_]);
      }
    }
  }

  void Wait(Barrier* barrier, int threads) {
    const int before = barrier->passed;
    if (++barrier->arrived == threads) {
      barrier->arrived = 0;
      ++barrier->passed;
    }
    while (barrier->passed == before) Yield();
  }

  static constexpr int64_t kStack = 65536;
  static inline EmulatedBlock* current_ = nullptr;

  const std::function<void()>* kernel_ = nullptr;
  int blocks_ = 0, first_block_ = 0, fiber_ = 0;
  std::array<Barrier, kCluster> block_, first_;
  std::array<Barrier, kFibers / 32> warps_;
  std::array<bool, kFibers> ended_;
  std::array<ucontext_t, kFibers> fibers_;
  ucontext_t main_;
  std::vector<char> stacks_;
};

struct EmulatedIndex {
  unsigned x = 0;
};

inline float EmulatedShuffleXor(unsigned /*mask*/, float x, int with) {
  static std::array<float, EmulatedBlock::kFibers> values;
  EmulatedBlock& block = EmulatedBlock::Current();
  const int fiber = block.fiber();
  values[fiber] = x;
  block.WaitForWarp();
  const float result = values[fiber ^ with];
  block.WaitForWarp();
  return result;
}

}  // namespace tritonrl

#define threadIdx \
  (::tritonrl::EmulatedIndex{static_cast<unsigned>(::tritonrl::EmulatedBlock::Current().thread())})
#define blockIdx \
  (::tritonrl::EmulatedIndex{static_cast<unsigned>(::tritonrl::EmulatedBlock::Current().index())})
#define gridDim \
  (::tritonrl::EmulatedIndex{static_cast<unsigned>(::tritonrl::EmulatedBlock::Current().blocks())})
#define blockDim (::tritonrl::EmulatedIndex{::tritonrl::EmulatedBlock::kThreads})
#define __syncwarp() ::tritonrl::EmulatedBlock::Current().WaitForWarp()
#define __syncthreads() ::tritonrl::EmulatedBlock::Current().WaitForBlock()
#define __shfl_xor_sync ::tritonrl::EmulatedShuffleXor
#define __expf std::exp
#undef __grid_constant__
#define __grid_constant__
using std::max;  // as CUDA has them
using std::min;
#define rsqrtf(x) (1.0f / std::sqrt(x))

#endif  // TRITONRL_MODEL_CUDA_TESTING_EMULATED_BLOCK_H_
