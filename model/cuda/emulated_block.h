// Runs a kernel's blocks on a CPU, for tests of what a kernel computes where there is no GPU. To be
// included before the kernel, which is then compiled as C++. Each thread is a fiber; they run in
// turn, one until it waits for others. TRITONRL_EMULATED_THREADS: of a block.
#ifndef TRITONRL_MODEL_CUDA_EMULATED_BLOCK_H_
#define TRITONRL_MODEL_CUDA_EMULATED_BLOCK_H_

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static

namespace tritonrl {

class EmulatedBlock {
 public:
  static constexpr int kThreads = TRITONRL_EMULATED_THREADS;

  // kernel() in all threads of blocks 0 to `blocks` - 1, one block after the other.
  static void Run(int blocks, const std::function<void()>& kernel) {
    EmulatedBlock block;
    current_ = &block;
    block.kernel_ = &kernel;
    block.blocks_ = blocks;
    for (block.index_ = 0; block.index_ < blocks; ++block.index_) block.RunBlock();
    current_ = nullptr;
  }
  static EmulatedBlock& Current() { return *current_; }

  int thread() const { return thread_; }
  int index() const { return index_; }
  int blocks() const { return blocks_; }

  // Returns when all threads of the block, or of the thread's warp, have come here.
  void WaitForBlock() { Wait(&block_, kThreads); }
  void WaitForWarp() { Wait(&warps_[thread_ / 32], 32); }
  // The same for the block's first `threads` threads, which are always as many.
  void WaitForFirst(int threads) { Wait(&first_, threads); }

  // Lets the others run.
  void Yield() { swapcontext(&fibers_[thread_], &main_); }

 private:
  struct Barrier {
    int arrived = 0, passed = 0;
  };

  EmulatedBlock() : stacks_(kThreads * kStack) {}

  static void Enter() {
    (*current_->kernel_)();
    current_->ended_[current_->thread_] = true;
    current_->Yield();
  }

  void RunBlock() {
    ended_.fill(false);
    for (int i = 0; i < kThreads; ++i) {
      getcontext(&fibers_[i]);
      fibers_[i].uc_stack.ss_sp = stacks_.data() + i * kStack;
      fibers_[i].uc_stack.ss_size = kStack;
      fibers_[i].uc_link = &main_;
      makecontext(&fibers_[i], &Enter, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (thread_ = 0; thread_ < kThreads; ++thread_) {
        if (ended_[thread_]) continue;
        any = true;
        swapcontext(&main_, &fibers_[thread_]);
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
  int blocks_ = 0, index_ = 0, thread_ = 0;
  Barrier block_, first_;
  std::array<Barrier, kThreads / 32> warps_;
  std::array<bool, kThreads> ended_;
  std::array<ucontext_t, kThreads> fibers_;
  ucontext_t main_;
  std::vector<char> stacks_;
};

struct EmulatedIndex {
  unsigned x = 0;
};

inline float EmulatedShuffleXor(unsigned /*mask*/, float x, int with) {
  static std::array<float, EmulatedBlock::kThreads> values;
  EmulatedBlock& block = EmulatedBlock::Current();
  const int thread = block.thread();
  values[thread] = x;
  block.WaitForWarp();
  const float result = values[thread ^ with];
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
using std::min;  // as CUDA has it
#define rsqrtf(x) (1.0f / std::sqrt(x))

#endif  // TRITONRL_MODEL_CUDA_EMULATED_BLOCK_H_
