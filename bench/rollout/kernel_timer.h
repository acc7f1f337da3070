// Measures kernel times on a GPU without launch overhead; declares the parts of kernel_bench.
#ifndef TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_
#define TRITONRL_BENCH_ROLLOUT_KERNEL_TIMER_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/harness/harness.h"

namespace tritonrl {

// Returns the microseconds of one call of launch(i), which enqueues its work on the current stream.
// Calls with i = 0 to rotations - 1 in turn are captured as a CUDA graph of about 10 ms, which runs
// once before it is timed. Each i should use other memory, so that the L2 cache holds none of it.
// Throws c10::Error on a CUDA error.
double MicrosecondsOf(int rotations, const std::function<void(int)>& launch);

// Runs the same graph for about three seconds and adds the figures of the last two seconds, in
// which the GPU is at its sustained clock: time, rate (`amount` is a call's bytes or FLOP), mean
// power, and the clock at one moment. Power and clock are 0 on machines without these counters.
void AddSustained(Bench* bench, const std::string& setting, int rotations, double amount,
                  const char* unit, const std::function<void(int)>& launch);

// The time and the rate of a call; `unit` is "TB/s" or "TFLOP/s".
std::vector<Figure> TimeAndRate(double microseconds, double amount, const char* unit);

// The current stream.
void* KernelStream();
// Normally distributed numbers on the GPU.
at::Tensor RandomNumbers(at::IntArrayRef shape, at::ScalarType type = at::kBFloat16,
                         double scale = 1);
at::Tensor IntsOnGpu(const std::vector<int32_t>& values);

// The parts of kernel_bench. Each allocates its own memory and frees it.
void BenchAttention(Bench* bench);
// Rows that share keys (draft tokens, samples of one prompt), read together and one by one.
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
