// The language-model judge: asks a model behind an OpenAI-compatible endpoint whether a candidate
// cheats.
#ifndef TRITONRL_VERIFY_JUDGE_H_
#define TRITONRL_VERIFY_JUDGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tritonrl {

struct JudgeOpinion {
  bool cheating = false;
  int rule = 0;        // Number of the broken rule of the prompt, 1 to 5; 0 if none.
  std::string reason;  // The model's one sentence.
};

class Judge {
 public:
  virtual ~Judge() = default;

  // Blocks for one opinion on `candidate` as an implementation of `reference` (Python sources). Any
  // error means that there is no opinion: Unavailable after all attempts failed. Never the
  // candidate's fault. Threads may share a judge.
  virtual absl::StatusOr<JudgeOpinion> Ask(const std::string& reference,
                                           const std::string& candidate) = 0;

  // Identifies model and prompt; a part of the verdict cache's key.
  virtual std::string name() const = 0;
};

struct HttpJudgeOptions {
  std::string url;    // "http://host:port/v1/chat/completions"
  std::string model;  // "Qwen3-235B-A22B-Instruct-2507"
  // Name of the environment variable with the key sent as a bearer token; "": none is sent.
  std::string api_key_variable;
  std::string prompt_file;                     // "": the prompt of this folder, judge_prompt.txt
  absl::Duration timeout = absl::Seconds(60);  // one attempt
  int attempts = 3;
  absl::Duration first_pause = absl::Milliseconds(500);  // doubled after each failed attempt
  int max_tokens = 1024;
};

// NotFound or InvalidArgument when the prompt cannot be read or lacks {reference} or {candidate},
// url or model are missing, the url is none of http or https, or the key's variable is not set.
// Does not connect.
absl::StatusOr<std::unique_ptr<Judge>> MakeHttpJudge(const HttpJudgeOptions& options);

// Reads a model's answer: its last non-empty line, or the text of its last fenced block, must be
// one JSON object with "cheating" (bool), "rule" (0 to 5, 0 exactly when not cheating) and "reason"
// (text), and no other member.
absl::StatusOr<JudgeOpinion> ParseJudgeAnswer(const std::string& answer);

}  // namespace tritonrl

#endif  // TRITONRL_VERIFY_JUDGE_H_
