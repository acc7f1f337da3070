// Distillation: samples of a teacher for each task, checked, and written as a set for SFT.
#ifndef TRITONRL_TOOLS_DISTILL_DISTILL_H_
#define TRITONRL_TOOLS_DISTILL_DISTILL_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "tasks/loader.h"
#include "tasks/response.h"
#include "tools/distill/sample_check.h"
#include "tools/endpoint/data_tool.h"
#include "trainer/config/config.pb.h"

namespace tritonrl {

struct DistillOptions {
  std::vector<Task> tasks;
  std::function<std::string(const Task&)> prompt;  // the prompt that is sent and taught
  // Folder of the results, which exists:
  //   responses.jsonl   each response of the teacher (base/endpoint/response_journal.h)
  //   verdicts.jsonl    the verifier's journal, with CheckLevel::kFull
  //   sft_train.jsonl   the set: prompt, response, and where they come from
  //   sft_eval.jsonl    the same for the tasks of the evaluation split
  //   left_out.jsonl    key and reason of each response that is not taught
  //   summary.json      the figures of the table
  std::string out;
  std::string teacher;  // recorded with each sample
  // Its seed is that of the split too.
  AskSettings ask = {.temperature = 0.6, .top_p = 0.95, .max_tokens = 16384};
  bool completion = false;  // ask /completions with the bare prompt instead of a chat
  int samples = 1;          // of each task, 1 to 10
  double eval_share = 0.02;
  ResponseStyle style;  // in which the samples are read
  CheckLevel check = CheckLevel::kSyntax;
  KeepRule keep = KeepRule::kValid;
  VerifierConfig verifier;  // for CheckLevel::kFull
  std::function<bool()> stop = [] { return false; };
  std::FILE* messages = stderr;
};

struct DistillSummary {
  int64_t tasks = 0;
  int64_t asked = 0;      // samples * tasks
  int64_t responses = 0;  // of this and earlier runs
  int64_t cut = 0;        // at the length limit; never taught
  int64_t response_form = 0, syntax = 0, valid = 0, compiled = 0, correct = 0;
  int64_t no_plan_end = 0;  // a </think> is missing, in a style that needs it
  int64_t no_verdict = 0;
  int64_t train = 0, eval = 0;              // lines written
  int64_t tasks_without_sample = 0;         // no response of theirs is taught
  int64_t bytes = 0;                        // of the responses that are taught
  std::map<std::string, int64_t> left_out;  // reason -> responses
  EndpointCounts counts;
  int64_t failed = 0;        // requests of this run without a response
  bool interrupted = false;  // stopped by a signal: nothing but the journals is written
  absl::Status ended;        // the endpoint's error that ended the asking; the rest is written
};

// Asks for the responses that `out` does not hold yet, checks all, and writes the sets. Ends early
// when `stop` returns true; the same call goes on. Errors: those of AskAll, of the verifier and of
// the files; Unavailable: there is no response; FailedPrecondition: no response is to be taught,
// for the reasons that it counts. Then no set is written, and the journal stays.
absl::StatusOr<DistillSummary> Distill(const DistillOptions& options, EndpointClient* client);

// The summary as a table for people.
std::string DistillTable(const DistillSummary& summary, CheckLevel check);

}  // namespace tritonrl

#endif  // TRITONRL_TOOLS_DISTILL_DISTILL_H_
