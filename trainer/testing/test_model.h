// A policy of a few thousand parameters in a folder, for tests.
#ifndef TRITONRL_TRAINER_TESTING_TEST_MODEL_H_
#define TRITONRL_TRAINER_TESTING_TEST_MODEL_H_

#include <string>

#include "model/weights/model_config.h"
#include "trainer/config/config.pb.h"
#include "trainer/learner/policy.h"

namespace tritonrl {

// Two layers of hidden size 32, byte tokens, `<think>`, `</think>` and an end token.
ModelConfig TinyModelConfig();

// Writes config.json and tokenizer.json (no weights) into `dir`.
void WriteTinyModel(const std::string& dir);

// A PolicyConfig for the model in `dir`: random weights, on the CPU.
PolicyConfig TinyPolicyConfig(const std::string& dir);

// Writes and loads the model; aborts on an error.
Policy LoadTinyPolicy(const std::string& dir);

}  // namespace tritonrl

#endif  // TRITONRL_TRAINER_TESTING_TEST_MODEL_H_
