// Measures attention at the shape of Qwen3-8B over a KV cache of 17 GB with pages in random order.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "bench/rollout/kernel_timer.h"
#include "rollout/cuda/attention/paged_attention.h"

namespace tritonrl {
namespace {

constexpr CacheHeads kShape = {32, 8, 128};
constexpr int64_t kTokens = 256 * 16384;
constexpr int32_t kPages = kTokens / kPageTokens;
constexpr int kMaxRotations = 64;  // covers the L2 cache several times

// Rows that one unit reads together because they attend to the same keys.
int MostTogether() {
  return DecodeSharingFor(kShape.query_heads, kShape.key_heads, /*batch_invariant=*/false)
      .tile_rows;
}

struct Cache {
  CacheHeads shape = kShape;
  at::Tensor pools[2], table;

  explicit Cache(CacheType type) {
    shape.type = type;
    for (at::Tensor& pool : pools) {
      pool = RandomNumbers({kPages, shape.PageElements()});
      if (type == CacheType::kE4M3) pool = pool.to(at::kFloat8_e4m3fn);
    }
    std::vector<int32_t> pages(kPages);
    std::iota(pages.begin(), pages.end(), 0);
    Philox(1).Shuffle(&pages);
    table = IntsOnGpu(pages);
  }

  PagedKeysValues view() const {
    return {pools[0].const_data_ptr(), pools[1].const_data_ptr(), table.const_data_ptr<int32_t>()};
  }
};

// First table entry of sequence i, which has `tokens` positions; i counts over all rotations.
int32_t PageBegin(int64_t i, int64_t tokens) {
  const int64_t pages = PagesFor(tokens);
  return static_cast<int32_t>(i % (kPages / pages) * pages);
}

struct Rows {
  at::Tensor queries, out;

  explicit Rows(int64_t rows) {
    queries = RandomNumbers({rows, kShape.query_heads, kShape.head_dim});
    out = at::empty(queries.sizes(), queries.options());
  }
  AttentionRows view() const {
    return {queries.const_data_ptr(), out.data_ptr(), queries.size(0),
            1.0f / std::sqrt(static_cast<float>(kShape.head_dim))};
  }
};

// One token and its draft tokens of each of `batch` sequences. Each rotation uses other sequences.
struct Decoding {
  const Cache& cache;
  DecodePlan plan;
  Rows rows;
  int rotations;
  double bytes;  // read by one launch
  std::vector<at::Tensor> words;
  at::Tensor table, partial, arrived;

  // group: number of sequences that share a prompt, the first half of their pages. together: rows
  // that one unit reads.
  Decoding(const Cache& from, int batch, int64_t tokens, const DecodeSplit& split, int group = 1,
           int num_draft_tokens = 0, int together = MostTogether())
      : cache(from),
        plan(batch * (num_draft_tokens + 1), 32768, split,
             {together, /*min_sequences=*/1, /*min_pages=*/1}),
        rows(batch * (num_draft_tokens + 1)),
        rotations(
            static_cast<int>(std::clamp<int64_t>(kTokens / (batch * tokens), 1, kMaxRotations))),
        bytes(2.0 * batch * tokens * from.shape.PageBytes() / kPageTokens) {
    table = from.table;
    if (group > 1) {
      table = from.table.clone();
      const int64_t pages = PagesFor(tokens);
      const at::Tensor rows_of_pages = table.narrow(0, 0, kPages / pages * pages).view({-1, pages});
      for (int64_t row = 0; row < rows_of_pages.size(0); ++row) {
        rows_of_pages[row]
            .narrow(0, 0, pages / 2)
            .copy_(rows_of_pages[row / group * group].narrow(0, 0, pages / 2));
      }
    }
    for (int rotation = 0; rotation < rotations; ++rotation) {
      std::vector<int32_t> lengths, begins, shared, filled(plan.words());
      for (int i = 0; i < batch; ++i) {
        for (int draft_token = 0; draft_token <= num_draft_tokens; ++draft_token) {
          lengths.push_back(static_cast<int32_t>(tokens) - num_draft_tokens + draft_token);
          begins.push_back(PageBegin(rotation * batch + i, tokens));
          shared.push_back(i % group == 0 ? 0 : static_cast<int32_t>(PagesFor(tokens) / 2));
        }
      }
      plan.Fill(lengths, begins, shared, filled.data());
      words.push_back(IntsOnGpu(filled));
    }
    partial = at::empty({plan.PartialBytes(kShape.query_heads, kShape.head_dim) + 1},
                        at::TensorOptions(at::kCUDA).dtype(at::kByte));
    arrived = at::zeros({plan.rows(), kShape.query_heads}, words[0].options());
  }
  void Launch(int i) const {
    PagedKeysValues paged = cache.view();
    paged.page_table = table.const_data_ptr<int32_t>();
    LaunchDecodeAttention(cache.shape, paged, plan, plan.At(words[i].const_data_ptr<int32_t>()),
                          rows.view(), {partial.data_ptr(), arrived.data_ptr<int32_t>()},
                          KernelStream());
  }
};

void BenchDecode(Bench* bench, const Cache& cache, int batch, int64_t tokens,
                 const DecodeSplit& split) {
  const Decoding decoding(cache, batch, tokens, split);
  const double time = MicrosecondsOf(decoding.rotations, [&](int i) { decoding.Launch(i); });
  bench->Add(absl::StrCat("decode, ", batch, " x ", tokens, ", parts of ",
                          std::min(split.PartTokens(tokens, batch), tokens)),
             TimeAndRate(time, decoding.bytes, "TB/s"));
}

void BenchChunks(Bench* bench, const Cache& cache, int sequences, int32_t count, int32_t context,
                 bool hopper) {
  PrefillDevice device = CurrentPrefillDevice();
  if (hopper && !device.hopper) return;
  device.hopper = hopper;
  const Rows rows(int64_t{sequences} * count);
  const int rotations = 2;
  std::vector<PrefillPlan> plans;
  std::vector<at::Tensor> words;
  for (int rotation = 0; rotation < rotations; ++rotation) {
    std::vector<PrefillChunk> chunks;
    for (int i = 0; i < sequences; ++i) {
      chunks.push_back({i * count, count, context + count,
                        PageBegin(rotation * sequences + i, context + count)});
    }
    plans.push_back(PlanPrefill(cache.shape, device, chunks, kPages));
    words.push_back(IntsOnGpu(plans.back().words));
  }
  const double time = MicrosecondsOf(rotations, [&](int i) {
    LaunchPrefillAttention(cache.shape, cache.view(), plans[i], words[i].const_data_ptr<int32_t>(),
                           rows.view(), KernelStream());
  });
  const double flops = 4.0 * kShape.query_heads * kShape.head_dim * sequences * count *
                       (context + 0.5 * (count + 1));
  bench->Add(absl::StrCat("chunks, ", sequences, " x ", count, ", context ", context, ", ",
                          hopper ? "FA3" : "FA2"),
             TimeAndRate(time, flops, "TFLOP/s"));
}

void BenchBf16Attention(Bench* bench) {
  bench->set_subject("attention (32 query, 8 key heads of 128, pages of 16)");
  const Cache cache(CacheType::kBFloat16);
  for (const int batch : {32, 128, 256}) {
    for (const int64_t tokens : {1024, 4096, 8192, 16384}) {
      BenchDecode(bench, cache, batch, tokens, DecodeSplitFor(batch, /*batch_invariant=*/false));
    }
  }
  // Splits other than the chosen one.
  for (const int batch : {1, 2, 4, 8, 16, 32}) {
    for (const int64_t tokens : {1024, 4096, 16384}) {
      for (const int part : {128, 256, 512, 1024}) {
        BenchDecode(bench, cache, batch, tokens, {.parts = 1, .least = 16, .most = part});
      }
    }
  }
  for (const int batch : {32, 40, 64, 128, 256}) {
    for (const int64_t tokens : {1024, 1536, 4096, 16384}) {
      for (const int part : {512, 1024, 2048, 4096, 1 << 20}) {
        if (part < tokens || part == 1 << 20) {
          BenchDecode(bench, cache, batch, tokens, {.parts = 1, .most = part});
        }
      }
    }
  }
  for (const bool hopper : {true, false}) {
    BenchChunks(bench, cache, 1, 8192, 0, hopper);
    BenchChunks(bench, cache, 4, 2048, 0, hopper);
    BenchChunks(bench, cache, 1, 2048, 14336, hopper);
    BenchChunks(bench, cache, 8, 256, 0, hopper);
  }
  BenchChunks(bench, cache, 64, 16, 4096, false);
  BenchChunks(bench, cache, 64, 4, 4096, false);
}

// With 8-bit keys and values, and with the split of batch-invariant steps.
void BenchFp8Attention(Bench* bench) {
  bench->set_subject("attention, FP8 KV cache");
  const Cache cache(CacheType::kE4M3);
  for (const int batch : {1, 32, 128, 256}) {
    for (const int64_t tokens : {1024, 4096, 16384}) {
      BenchDecode(bench, cache, batch, tokens, DecodeSplitFor(batch, /*batch_invariant=*/false));
    }
  }
  for (const int batch : {128, 256}) {
    BenchDecode(bench, cache, batch, 4096, DecodeSplitFor(batch, /*batch_invariant=*/true));
  }
  BenchChunks(bench, cache, 1, 8192, 0, /*hopper=*/false);
  BenchChunks(bench, cache, 1, 2048, 14336, false);
}

}  // namespace

void BenchAttentionPower(Bench* bench) {
  bench->set_subject("power");
  const Cache cache(CacheType::kBFloat16);
  const auto add = [bench](const std::string& setting, const Decoding& decoding) {
    AddSustained(bench, setting, decoding.rotations, decoding.bytes, "TB/s",
                 [&](int i) { decoding.Launch(i); });
  };
  for (const auto& [batch, tokens] : {std::pair{32, 4096}, {128, 4096}, {256, 1536}}) {
    add(absl::StrCat("decode attention, ", batch, " x ", tokens),
        Decoding(cache, batch, tokens, DecodeSplitFor(batch, false)));
  }
  for (const int together : {1, MostTogether()}) {
    add(absl::StrCat("decode attention, 256 x 2048, 8 share 1024, ", together, " read at once"),
        Decoding(cache, 256, 2048, DecodeSplitFor(256, false), 8, 0, together));
  }
}

void BenchAttentionTogether(Bench* bench) {
  const Cache cache(CacheType::kBFloat16);
  const int most = MostTogether();
  bench->set_subject(absl::StrCat("attention, ", most, " rows that see the same pages at once"));
  bench->set_peer_name("each row by itself");
  const auto add = [&](int batch, int num_draft_tokens, int group, int64_t tokens) {
    const DecodeSplit split = DecodeSplitFor(batch * (num_draft_tokens + 1), false);
    double times[2];
    for (const bool apart : {false, true}) {
      const Decoding decoding(cache, batch, tokens, split, group, num_draft_tokens,
                              apart ? 1 : most);
      times[apart] = MicrosecondsOf(decoding.rotations, [&](int i) { decoding.Launch(i); });
    }
    bench->Add(absl::StrCat(batch, " x ", tokens, ", draft tokens: ", num_draft_tokens,
                            ", samples of a prompt: ", group),
               {{"time", times[0], "us", times[1]}});
  };
  for (const int batch : {1, 8, 32}) {
    for (const int num_draft_tokens : {1, 3, 5, 8, 15}) {
      for (const int64_t tokens : {2048, 16384}) add(batch, num_draft_tokens, 1, tokens);
    }
  }
  for (const int batch : {8, 32, 48, 64, 96, 128, 256}) {
    for (const int64_t tokens : {1024, 2048, 4096}) add(batch, 0, 8, tokens);
  }
}

void BenchAttention(Bench* bench) {
  BenchBf16Attention(bench);
  BenchFp8Attention(bench);
}

}  // namespace tritonrl
