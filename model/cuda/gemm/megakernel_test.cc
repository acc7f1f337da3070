// Tests the megakernel, emulated thread by thread on a CPU with one cluster: the boxes of weights
// that it copies and when, the elements of its fragments, the messages between the blocks of a
// cluster, and its results. //rollout/cuda:device_test covers the real instructions on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#define TRITONRL_EMULATED_THREADS 384
#define TRITONRL_EMULATED_CLUSTER 2
#include "model/cuda/testing/emulated_block.h"
#include "model/cuda/testing/emulated_mma.h"
#include "model/cuda/testing/emulated_tma.h"

namespace tritonrl {

struct Memory {
  std::array<uint8_t*, EmulatedBlock::kCluster> blocks;  // shared memory of each block
  int arrived = 0;                                       // number of threads of the cluster
} memory;

void ClusterArrive() {
  memory.blocks[EmulatedBlock::Current().rank()] = DynamicSharedMemory();
  ++memory.arrived;
}
void ClusterWait() {
  while (memory.arrived < EmulatedBlock::kFibers) EmulatedBlock::Current().Yield();
}
template <typename T>
T* InBlock(T* mine, int rank) {
  const int64_t offset = reinterpret_cast<uint8_t*>(mine) - DynamicSharedMemory();
  return reinterpret_cast<T*>(memory.blocks[rank] + offset);
}
void StoreAsyncCluster(float* mine, int rank, const float4& value, SharedBarrier* barrier) {
  *reinterpret_cast<float4*>(InBlock(mine, rank)) = value;
  EmulatedBarrier& state = emulated_barriers.at(InBlock(barrier, rank));
  state.copied += sizeof(float4);
  EndPhaseIfDone(&state);
}
template <int kCount>
void DecreaseMaxRegisters() {}
template <int kCount>
void IncreaseMaxRegisters() {}

void NamedBarrierSync(int threads) { EmulatedBlock::Current().WaitForFirst(threads); }
uint64_t AtomicAddRelease(uint64_t* to) { return (*to)++; }
uint64_t LoadAcquire(const uint64_t* from) {
  EmulatedBlock::Current().Yield();  // callers poll in a loop
  return *from;
}
float LoadCacheGlobal(const float* from) { return *from; }
uint2 LoadCacheGlobal8(const void* from) { return *static_cast<const uint2*>(from); }

}  // namespace tritonrl

#include "model/cuda/gemm/megakernel.cuh"

namespace tritonrl {
namespace {

using Element = __nv_bfloat16;
using Numbers = std::vector<Element>;

Numbers Drawn(int64_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  Numbers numbers(count);
  for (Element& x : numbers) x = __float2bfloat16_rn(normal(random));
  return numbers;
}

float Value(Element x) { return __bfloat162float(x); }

// Four dependent GEMMs: attention to hidden, hidden to mlp (with SwiGLU), mlp to hidden, hidden to
// qkv.
struct Layer {
  int rows;
  int64_t attention, hidden, mlp, qkv;
  Numbers x = Drawn(32 * hidden, 1, 1), a = Drawn(32 * attention, 2, 1);
  Numbers o = Drawn(hidden * attention, 3, 0.05f), gate_up = Drawn(2 * mlp * hidden, 4, 0.05f);
  Numbers down = Drawn(hidden * mlp, 5, 0.05f), next = Drawn(qkv * hidden, 6, 0.05f);
  Numbers norm = Drawn(hidden, 7, 1);
  Numbers post_attention = Numbers(32 * hidden), inner = Numbers(32 * mlp),
          out = Numbers(32 * hidden);
  Numbers result = Numbers(32 * qkv + 64, __float2bfloat16_rn(12288.0f));
};

CUtensorMap TensorMapOf(const Numbers& weight, int64_t columns, int64_t inner) {
  return {WeightTensorMap(weight.data(), columns, inner)};
}

template <int kGroups>
void RunChain(Layer* w) {
  memory = {};
  ForgetEmulatedBoxes();
  uint64_t grid_arrivals = 0;
  std::vector<float> squares(2 * 32, -1);
  const auto units = [](MegakernelGemmArguments gemm) {
    DivideUnits(1, &gemm);
    return gemm;
  };
  MegakernelArguments at = {.rows = w->rows, .eps = 1e-6f, .count = 4, .opaque_zero = 0};
  at.grid_arrivals = &grid_arrivals;
  const int hidden = static_cast<int>(w->hidden), mlp = static_cast<int>(w->mlp);
  const int attention = static_cast<int>(w->attention), qkv = static_cast<int>(w->qkv);
  at.gemms[0] =
      units({TensorMapOf(w->o, hidden, attention), w->a.data(), nullptr, w->x.data(),
             w->post_attention.data(), nullptr, squares.data(), attention, hidden, false});
  at.gemms[1] =
      units({TensorMapOf(w->gate_up, 2 * mlp, hidden), w->post_attention.data(), w->norm.data(),
             nullptr, w->inner.data(), squares.data(), nullptr, hidden, mlp, true});
  at.gemms[2] =
      units({TensorMapOf(w->down, hidden, mlp), w->inner.data(), nullptr, w->post_attention.data(),
             w->out.data(), nullptr, squares.data() + 32, mlp, hidden, false});
  at.gemms[3] = units({TensorMapOf(w->next, qkv, hidden), w->out.data(), w->norm.data(), nullptr,
                       w->result.data(), squares.data() + 32, nullptr, hidden, qkv, false});
  EXPECT_LE(
      MegakernelShared<kGroups>::kRingSlots * kRingSlotBytes + sizeof(MegakernelShared<kGroups>),
      kMegakernelSharedBytes);
  emulated_early_copies.clear();
  EmulatedBlock::Run(kClusterBlocks, [&] { Megakernel<kGroups>(at); });
  EXPECT_TRUE(emulated_early_copies.empty()) << "x is what earlier kernels write";
  EXPECT_FALSE(emulated_wrong_bytes || EmulatedBoxesAreLeft());
  EXPECT_FALSE(emulated_box_outside) << "a copy reads outside of W";
  EXPECT_EQ(emulated_box_bytes, 2 * static_cast<int64_t>(w->o.size() + w->gate_up.size() +
                                                         w->down.size() + w->next.size()))
      << "W is read once";
  for (int i = 0; i < 64; ++i) EXPECT_EQ(Value(w->result[w->rows * w->qkv + i]), 12288.0f);
}

// Returns RMSNorm of row m of x with the kernel's roundings.
std::vector<float> RmsNormRow(const Numbers& x, int m, const Numbers& norm) {
  const auto size = static_cast<int64_t>(norm.size());
  double squares = 0;
  for (int64_t k = 0; k < size; ++k) squares += std::pow(Value(x[m * size + k]), 2);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(size) + 1e-6);
  std::vector<float> row(size);
  for (int64_t k = 0; k < size; ++k) {
    const float normed = Value(__double2bfloat16(Value(x[m * size + k]) * inverse));
    row[k] = Value(__float2bfloat16_rn(normed * Value(norm[k])));
  }
  return row;
}

std::vector<float> Row(const Numbers& x, int m, int64_t size) {
  std::vector<float> row(size);
  for (int64_t k = 0; k < size; ++k) row[k] = Value(x[m * size + k]);
  return row;
}

double Dot(const std::vector<float>& x, const Numbers& weight, int64_t n) {
  double sum = 0;
  const auto inner = static_cast<int64_t>(x.size());
  for (int64_t k = 0; k < inner; ++k) sum += x[k] * Value(weight[n * inner + k]);
  return sum;
}

// Compares each GEMM with a reference computed from the kernel's own inputs of that GEMM.
void ExpectRight(const Layer& w) {
  for (int m = 0; m < w.rows; ++m) {
    SCOPED_TRACE(m);
    const auto a = Row(w.a, m, w.attention), inner = Row(w.inner, m, w.mlp);
    const auto normed = RmsNormRow(w.post_attention, m, w.norm),
               next = RmsNormRow(w.out, m, w.norm);
    const auto expect_near = [](double found, double exact, double slack) {
      ASSERT_NEAR(found, exact, std::abs(exact) / 256 + slack);
    };
    for (int64_t n = 0; n < w.hidden; ++n) {
      const int64_t at = m * w.hidden + n;
      expect_near(Value(w.post_attention[at]), Dot(a, w.o, n) + Value(w.x[at]), 1e-4);
      expect_near(Value(w.out[at]), Dot(inner, w.down, n) + Value(w.post_attention[at]), 1e-4);
    }
    for (int64_t n = 0; n < w.mlp; ++n) {
      const double gate = Dot(normed, w.gate_up, n), up = Dot(normed, w.gate_up, w.mlp + n);
      const double exact = gate / (1 + std::exp(-gate)) * up;
      expect_near(Value(w.inner[m * w.mlp + n]), exact,
                  std::abs(exact) / 64 + 0.01 * (std::abs(up) + std::abs(gate) + 0.1));
    }
    for (int64_t n = 0; n < w.qkv; ++n) {
      expect_near(Value(w.result[m * w.qkv + n]), Dot(next, w.next, n), 0.02);
    }
  }
}

TEST(ChainKernelTest, LinksOfAllNumbersOfTiles) {
  for (const int rows : {1, 5, 8}) {
    SCOPED_TRACE(rows);
    Layer w = {rows, 512, 512, 512, 48};
    RunChain<1>(&w);
    ExpectRight(w);
  }
  Layer w = {3, 1024, 512, 1536, 112};
  RunChain<1>(&w);
  ExpectRight(w);
}

TEST(ChainKernelTest, MoreThanEightRows) {
  Layer two = {13, 512, 1024, 1536, 208};
  RunChain<2>(&two);
  ExpectRight(two);
  Layer three = {20, 512, 512, 1024, 80};
  RunChain<3>(&three);
  ExpectRight(three);
  Layer four = {32, 1024, 512, 512, 48};
  RunChain<4>(&four);
  ExpectRight(four);
}

template <int kGroups>
void ExpectFirstRowsOf(const Layer& all, int rows) {
  Layer few = {rows, all.attention, all.hidden, all.mlp, all.qkv};
  RunChain<kGroups>(&few);
  for (int64_t i = 0; i < rows * few.qkv; ++i) {
    ASSERT_EQ(Value(few.result[i]), Value(all.result[i])) << i;
  }
}

TEST(ChainKernelTest, RowsHaveTheBitsOfFewerWithoutTheOthers) {
  Layer many = {29, 512, 512, 1024, 144};
  RunChain<4>(&many);
  ExpectFirstRowsOf<4>(many, 25);
  ExpectFirstRowsOf<3>(many, 17);
  ExpectFirstRowsOf<2>(many, 9);
  ExpectFirstRowsOf<1>(many, 8);
  ExpectFirstRowsOf<1>(many, 3);
}

}  // namespace
}  // namespace tritonrl
