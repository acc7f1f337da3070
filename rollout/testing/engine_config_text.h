// Engine configurations from protobuf text, for tests.
#ifndef TRITONRL_ROLLOUT_TESTING_ENGINE_CONFIG_TEXT_H_
#define TRITONRL_ROLLOUT_TESTING_ENGINE_CONFIG_TEXT_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "rollout/engine/engine_config.h"

namespace tritonrl {

// Parses the concatenated parts: MakeEngineConfig("max_num_seqs: ", n, " enable_sleep_mode: true").
template <typename... Parts>
EngineConfig MakeEngineConfig(const Parts&... parts) {
  EngineConfig config;
  const std::string text = absl::StrCat(parts...);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_TESTING_ENGINE_CONFIG_TEXT_H_
