// Time of kernels on a GPU, without that of starting them.
#ifndef TRITONRL_ROLLOUT_CUDA_BENCH_TIMER_H_
#define TRITONRL_ROLLOUT_CUDA_BENCH_TIMER_H_

#include <functional>

namespace tritonrl {

// Microseconds of one call of launch(i), which puts its work on the current stream. Calls with i
// from 0 to rotations - 1 in turn, which should use other memory each so that none of it is in the
// cache, are captured as a graph of about 10 ms, which runs once before it is timed. Throws
// c10::Error if CUDA does.
double MicrosecondsOf(int rotations, const std::function<void(int)>& launch);

// Each prints a table on stdout. They allocate what they need and free it.
void BenchAttention();
void BenchStepKernels();
void BenchSampling();
void BenchProducts();
void BenchChains();
void BenchMappedMemory();
void BenchExactAndFp8Products();

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_BENCH_TIMER_H_
