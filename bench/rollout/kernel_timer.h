// Times of kernels on a GPU without that of starting them, and the parts of kernel_bench.
#ifndef TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_
#define TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/harness/harness.h"

namespace tritonrl {

// Microseconds of one call of launch(i), which puts its work on the current stream. Calls with i
// from 0 to rotations - 1 in turn, which should use other memory each so that none of it is in the
// cache, are captured as a graph of about 10 ms, which runs once before it is timed. Throws
// c10::Error if CUDA does.
double MicrosecondsOf(int rotations, const std::function<void(int)>& launch);

// Runs the same for about three seconds and adds the figures of the last two, in which the card is
// at the clock that it can keep: time, rate (of a call that does `amount` bytes or FLOP), mean
// power, and clock at one moment. The last two are 0 where this machine cannot tell.
void AddSustained(Bench* bench, const std::string& setting, int rotations, double amount,
                  const char* unit, const std::function<void(int)>& launch);

// A call's time and rate; unit: "TB/s" or "TFLOP/s".
std::vector<Figure> TimeAndRate(double microseconds, double amount, const char* unit);

// The current stream.
void* KernelStream();
// Normal numbers on the GPU.
at::Tensor RandomNumbers(at::IntArrayRef shape, at::ScalarType type = at::kBFloat16,
                         double scale = 1);
at::Tensor IntsOnGpu(const std::vector<int32_t>& values);

// The parts. They allocate what they need and free it.
void BenchAttention(Bench* bench);
// Draft tokens behind each token, and prompts of several samples, read at once and each by itself.
void BenchAttentionTogether(Bench* bench);
void BenchAttentionPower(Bench* bench);
void BenchStepKernels(Bench* bench);
void BenchSampling(Bench* bench);
void BenchMappedMemory(Bench* bench);
void BenchGemms(Bench* bench);
void BenchFusedLayer(Bench* bench);
void BenchInvariantAndFp8Gemms(Bench* bench);
void BenchGemmPower(Bench* bench);

}  // namespace tritonrl

#endif  // TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_
