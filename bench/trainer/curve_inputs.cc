#include "bench/trainer/curve_inputs.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "model/tokenizer/tokenizer.h"
#include "model/weights/model_config.h"
#include "tasks/dataset.h"
#include "trainer/optimizer/adamw.h"
#include "trainer/sft/sft_data.h"

namespace tritonrl {
namespace {

nlohmann::json SequencesOf(const SftMicroBatch& micro) {
  const int32_t no_target = -1;
  const int64_t* tokens = micro.batch.tokens.const_data_ptr<int64_t>();
  const int64_t* targets = micro.targets.const_data_ptr<int64_t>();
  nlohmann::json sequences = nlohmann::json::array();
  for (int64_t i = 0; i < micro.batch.num_sequences(); ++i) {
    const int64_t begin = micro.batch.offsets[i], end = micro.batch.offsets[i + 1];
    int64_t first = begin;
    while (first < end && targets[first] == no_target) ++first;
    sequences.push_back(
        {{"tokens", std::vector<int64_t>(tokens + begin, tokens + end)}, {"first", first - begin}});
  }
  return sequences;
}

}  // namespace

absl::StatusOr<std::vector<SftBatch>> MakeCurveBatches(const CurveSettings& settings,
                                                       const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string mini, Runfile("model/mini"));
  ASSIGN_OR_RETURN(const ModelConfig mini_config, ReadModelConfig(mini));
  ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(JoinPath(mini, "tokenizer.json")));
  const std::string corpus = JoinPath(folder, "corpus.jsonl");
  CorpusSettings corpus_settings;
  corpus_settings.seed = settings.seed;
  RETURN_IF_ERROR(WriteCorpus(corpus_settings, 0, settings.steps * settings.sequences,
                              /*with_references=*/false, corpus));
  ASSIGN_OR_RETURN(const auto data, JsonlData::Open({corpus}));
  std::vector<SftBatch> batches;
  for (int64_t step = 0; step < settings.steps; ++step) {
    std::vector<int64_t> examples(settings.sequences);
    std::iota(examples.begin(), examples.end(), step * settings.sequences);
    ASSIGN_OR_RETURN(batches.emplace_back(),
                     MakeSftBatch(*data, examples, tokenizer,
                                  static_cast<int32_t>(mini_config.eos_token_ids.front()),
                                  settings.max_sequence_tokens, settings.micro_batch_tokens));
  }
  return batches;
}

absl::Status WriteCurveBatches(const std::vector<SftBatch>& batches, const OptimizerConfig& config,
                               const std::string& path) {
  const int64_t steps = static_cast<int64_t>(batches.size());
  std::string text;
  for (int64_t step = 0; step < steps; ++step) {
    nlohmann::json line{{"learning_rate", LearningRate(config, step, steps)},
                        {"sequences", nlohmann::json::array()}};
    for (const SftMicroBatch& micro : batches[step].micro_batches) {
      for (nlohmann::json& sequence : SequencesOf(micro)) {
        line["sequences"].push_back(std::move(sequence));
      }
    }
    text += line.dump() + "\n";
  }
  return WriteFileAtomic(path, text);
}

}  // namespace tritonrl
