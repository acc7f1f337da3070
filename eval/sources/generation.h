// One response to a task, of any origin, and the interface of what makes them.
#ifndef TRITONRL_EVAL_SOURCES_GENERATION_H_
#define TRITONRL_EVAL_SOURCES_GENERATION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/chat/chat_template.h"
#include "tasks/response.h"

namespace tritonrl {

// A response to a task, or a program that somebody took out of one.
struct Generation {
  std::string task;  // Task::id
  int sample = 0;    // number of the sample among those of its task, from 0
  int turn = 0;      // number of the turn of its conversation, from 0
  // The whole response, with its reasoning; nullopt: there is only a program.
  std::optional<std::string> response;
  std::string code;        // the program, if there is no response
  ResponseStyle style;     // how `response` is read
  bool truncated = false;  // generation reached its length limit
  int tokens = 0;          // of the response; 0: unknown
  std::string source;      // for people: "model/mini", "run.jsonl, line 3"

  bool operator==(const Generation&) const = default;
};

// One JSON object on one line: task, sample, turn, response (with response_style, code_block,
// truncated and tokens) or code, and source.
std::string GenerationToJson(const Generation& generation);

// The inverse. `turn`, `truncated`, `tokens` and `source` may be missing; `style` is the style of a
// response that names none. `finish_reason`: "length" means truncated too. InvalidArgument names
// the field and what it must be.
absl::StatusOr<Generation> GenerationFromJson(const std::string& line,
                                              const ResponseStyle& style = {});

// A generation to make: one sample of a task at one turn.
struct GenerationRequest {
  std::string task;
  int sample = 0, turn = 0;
  std::vector<ChatMessage> messages;  // the conversation so far
};

// Makes generations: a policy, an endpoint, or files with what somebody generated before.
class GenerationSource {
 public:
  virtual ~GenerationSource() = default;
  // For people.
  virtual std::string Describe() const = 0;
  // Changes with everything that the generations depend on beside the requests. It does not depend
  // on paths or times.
  virtual std::string Fingerprint() const = 0;
  // False: it has generations of turn 0 only.
  virtual bool converses() const { return true; }
  // Calls `emit` once for each request, in any order, as soon as its generation is there. It ends
  // with the first error of `emit`, and with Cancelled if `keep_going` returns false.
  virtual absl::Status Generate(absl::Span<const GenerationRequest> requests,
                                absl::FunctionRef<absl::Status(Generation)> emit,
                                const std::function<bool()>& keep_going) = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_EVAL_SOURCES_GENERATION_H_
