// Base class of tests that need a GPU; without one they are skipped.
#ifndef TRITONRL_ROLLOUT_CUDA_TESTING_DEVICE_FIXTURE_H_
#define TRITONRL_ROLLOUT_CUDA_TESTING_DEVICE_FIXTURE_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "model/testing/test_util.h"
#include "model/weights/model_config.h"

namespace tritonrl {

// The process's first GPU and another one. Tests on a GPU that the machine lacks are skipped.
inline std::vector<int> TestedGpus() { return {0, 1}; }

// A small model that CudaRunner supports.
inline ModelConfig RunnerConfig() {
  ModelConfig config;
  config.vocab_size = 512;
  config.hidden_size = 256;
  config.intermediate_size = 640;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  config.max_positions = 4096;
  config.tie_word_embeddings = true;
  config.family = ModelFamily::kQwen3;
  config.eos_token_ids = {1};
  return config;
}

class DeviceTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string missing = MissingDevice(device());
    if (!missing.empty()) GTEST_SKIP() << missing;
    guard_.set_device(device());
  }

  static at::Device device() { return {at::kCUDA, static_cast<at::DeviceIndex>(GetParam())}; }
  static void* stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

  static at::Tensor Empty(at::IntArrayRef shape, at::ScalarType type) {
    return at::empty(shape, at::TensorOptions(device()).dtype(type));
  }

  // Normally distributed numbers in bf16.
  static at::Tensor Numbers(at::IntArrayRef shape, uint64_t seed, double scale = 1.0) {
    return RandomTensor(shape, seed, scale).to(at::kBFloat16).to(device());
  }

  template <typename T>
  static at::Tensor Bytes(const std::vector<T>& values) {
    const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(T));
    at::Tensor host = at::empty({bytes}, at::kByte);
    std::memcpy(host.data_ptr(), values.data(), bytes);
    return host.to(device());
  }
  static at::Tensor Ints(const std::vector<int32_t>& values) {
    return Bytes(values).view(at::kInt);
  }

  // A CUDA graph of the work that `launch` puts on the current stream. The constructor runs
  // `launch` once before the capture, because kernels must have run before they are captured.
  class Graph {
   public:
    explicit Graph(const std::function<void()>& launch) {
      launch();
      const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
      c10::cuda::CUDAStreamGuard on(stream);
      cudaGraph_t graph = nullptr;
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      EXPECT_EQ(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal),
                cudaSuccess);
      launch();
      EXPECT_EQ(cudaStreamEndCapture(stream.stream(), &graph), cudaSuccess);
      EXPECT_EQ(cudaGraphInstantiate(&graph_, graph, 0), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    ~Graph() { EXPECT_EQ(cudaGraphExecDestroy(graph_), cudaSuccess); }
    void Replay() const {
      EXPECT_EQ(cudaGraphLaunch(graph_, c10::cuda::getCurrentCUDAStream().stream()), cudaSuccess);
    }

   private:
    cudaGraphExec_t graph_ = nullptr;
  };

 private:
  c10::cuda::OptionalCUDAGuard guard_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_CUDA_TESTING_DEVICE_FIXTURE_H_
