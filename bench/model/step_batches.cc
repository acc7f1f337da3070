#include "bench/model/step_batches.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tritonrl {

absl::StatusOr<std::vector<std::vector<int64_t>>> ParseBatches(absl::string_view text) {
  std::vector<std::vector<int64_t>> batches;
  for (const absl::string_view batch : absl::StrSplit(text, ';')) {
    std::vector<int64_t>& lengths = batches.emplace_back();
    for (const absl::string_view number : absl::StrSplit(batch, ',')) {
      int64_t length = 0;
      if (!absl::SimpleAtoi(number, &length) || length < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("--lengths: \"", number, "\" is no length of a sequence; write lengths ",
                         "divided by commas, and batches by semicolons"));
      }
      lengths.push_back(length);
    }
  }
  return batches;
}

double StepFlops(const ModelConfig& config, const std::vector<int64_t>& lengths) {
  const int64_t embedding = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  const double products = 6.0 * static_cast<double>(config.NumParameters() - embedding);
  const double attention = 6.0 * static_cast<double>(config.num_layers * config.query_size());
  double flops = 0;
  for (const int64_t length : lengths) {
    const double n = static_cast<double>(length);
    flops += n * (products + attention * n);
  }
  return flops;
}

}  // namespace tritonrl
