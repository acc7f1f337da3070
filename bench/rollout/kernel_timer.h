// Time of kernels on a GPU, without that of starting them.
#ifndef TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_
#define TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_

#include <functional>
#include <string>

namespace tritonrl {

// Microseconds of one call of launch(i), which puts its work on the current stream. Calls with i
// from 0 to rotations - 1 in turn, which should use other memory each so that none of it is in the
// cache, are captured as a graph of about 10 ms, which runs once before it is timed. Throws
// c10::Error if CUDA does.
double MicrosecondsOf(int rotations, const std::function<void(int)>& launch);

// The same over and over for about three seconds, in the last two of which the card is at the clock
// that it can keep.
struct Sustained {
  double microseconds = 0;  // of a call
  // Mean power, and the clock at one moment; 0 where this machine cannot say.
  double watts = 0, megahertz = 0;
};
Sustained SustainedOf(int rotations, const std::function<void(int)>& launch);
// A line of it on stdout. rate: what a call achieves, in `unit`.
void PrintPower(const std::string& what, const Sustained& found, double rate, const char* unit);

// Each prints a table on stdout. They allocate what they need and free it.
void BenchAttention();
void BenchStepKernels();
void BenchSampling();
void BenchProducts();
void BenchChains();
void BenchMappedMemory();
void BenchExactAndFp8Products();
// Rate, power and clock of what fills the GPU for long.
// Draft tokens behind each token, and prompts of several samples, read at once and each by itself.
void BenchAttentionTogether();
void BenchAttentionPower();
void BenchProductsPower();

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_
