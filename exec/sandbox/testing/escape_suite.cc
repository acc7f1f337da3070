#include "exec/sandbox/testing/escape_suite.h"

#include <stdio.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "exec/testing/run_request.h"

namespace tritonrl {
namespace {

constexpr char kSaid[] = "escape: ";

absl::StatusOr<std::string> ReadAttempts(const std::string& file) {
  ASSIGN_OR_RETURN(std::string path,
                   Runfile(absl::StrCat("exec/sandbox/testing/escapes/", file, ".py")));
  return ReadFile(path);
}

// The candidate's own message from its output. A forger may print more than one; the last counts.
std::string Said(const std::string& output) {
  const size_t at = output.rfind(kSaid);
  if (at == std::string::npos) return "";
  const std::string line = output.substr(at + sizeof(kSaid) - 1);
  return line.substr(0, line.find('\n'));
}

void PrintRow(const Attempt& attempt, const ExecResult& result) {
  std::string said = Said(result.output());
  if (said.empty()) said = result.outcome().message();
  absl::StrReplaceAll({{"\n", " "}}, &said);
  printf("%-42s %-14s %.110s\n", absl::StrCat(attempt.file, ".", attempt.function).c_str(),
         ReasonName(result.outcome().reason()).c_str(), said.c_str());
  fflush(stdout);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EscapeSuite>> EscapeSuite::Start() {
  std::unique_ptr<EscapeSuite> suite(new EscapeSuite());
  ASSIGN_OR_RETURN(suite->world_, EscapeWorld::Create());
  WorkerPoolOptions options;
  // Small limits, so that memory attempts reach them soon.
  options.limits.set_memory_bytes(256 << 20);
  options.worker_bytes = 768 << 20;
  options.limits.set_tmp_bytes(32 << 20);
  options.limits.set_shm_bytes(16 << 20);
  options.limits.set_file_bytes(64 << 20);
  ASSIGN_OR_RETURN(suite->backend_, StartNativeBackend(options));
  suite->world_->Remember();
  std::vector<std::string> wrong;
  suite->RunHonest(&wrong);
  if (!wrong.empty()) return absl::InternalError(absl::StrJoin(wrong, "; "));
  return suite;
}

absl::StatusOr<ExecResult> EscapeSuite::Run(const Attempt& attempt) {
  ASSIGN_OR_RETURN(const std::string prelude, ReadAttempts("prelude"));
  ASSIGN_OR_RETURN(const std::string attempts, ReadAttempts(attempt.file));
  ExecRequest request;
  request.set_task_id(attempt.function);
  request.set_reference_source(absl::StrCat(kSoftmaxReference, "# ", world_->secret(), "\n"));
  request.set_candidate_source(absl::StrCat(prelude, "\n", attempts,
                                            "\nPARAM = ", world_->Parameters(),
                                            "\nATTEMPT = ", attempt.function, "\n"));
  request.mutable_limits()->set_wall_seconds(attempt.wall_seconds);
  request.mutable_limits()->set_cpu_seconds(attempt.cpu_seconds);
  return backend_->Run(request, absl::Now() + absl::Minutes(2));
}

void EscapeSuite::RunHonest(std::vector<std::string>* wrong) {
  const auto result = Run({"leftovers", "surroundings"});
  if (!result.ok() || result->outcome().reason() != Outcome::OK) {
    wrong->push_back(absl::StrCat(
        "an honest candidate does not pass afterwards: ",
        result.ok() ? result->ShortDebugString() : std::string(result.status().message())));
    return;
  }
  const std::string found = Said(result->output());
  if (surroundings_.empty()) surroundings_ = found;
  if (found != surroundings_) {
    wrong->push_back(absl::StrCat("the next candidate finds ", found, ", not ", surroundings_));
  }
}

void EscapeSuite::CheckOutcome(const Attempt& attempt, const ExecResult& result,
                               std::vector<std::string>* wrong) {
  if (std::count(attempt.outcomes.begin(), attempt.outcomes.end(), result.outcome().reason()) ==
      0) {
    wrong->push_back(absl::StrCat("outcome: ", result.ShortDebugString()));
  }
  if (world_->Tells(result.DebugString())) {
    wrong->push_back(absl::StrCat("it has the secret: ", result.output()));
  }
  const int64_t lost = backend_->pool().counts().workers_lost;
  if (lost != workers_lost_ && !attempt.may_cost_a_worker) wrong->push_back("the worker was lost");
}

void EscapeSuite::AddChanges(bool with_processes, std::vector<std::string>* wrong) {
  std::vector<std::string> changes = world_->Changes();
  for (std::string& change : changes) {
    if (!with_processes && absl::StartsWith(change, "processes below us")) continue;
    wrong->push_back(std::move(change));
  }
  if (!changes.empty()) world_->Remember();  // or the next attempt would fail for these changes
}

std::vector<std::string> EscapeSuite::Try(const Attempt& attempt) {
  std::vector<std::string> wrong;
  const auto result = Run(attempt);
  if (!result.ok()) return {std::string(result.status().message())};
  PrintRow(attempt, *result);
  CheckOutcome(attempt, *result, &wrong);
  const auto lost_a_worker = [this] {
    return backend_->pool().counts().workers_lost != workers_lost_;
  };
  // The pool counts and replaces a lost worker only for the next job. The world is therefore
  // compared after the honest candidate if a worker may be lost.
  const bool compare_first = !attempt.may_cost_a_worker && !lost_a_worker();
  if (compare_first) AddChanges(/*with_processes=*/true, &wrong);
  RunHonest(&wrong);
  const bool lost = lost_a_worker();
  if (lost || !compare_first) AddChanges(/*with_processes=*/!lost, &wrong);
  workers_lost_ = backend_->pool().counts().workers_lost;
  return wrong;
}

EscapeSuite* EscapeTest::suite_ = nullptr;

void EscapeTest::SetUpTestSuite() {
  auto suite = EscapeSuite::Start();
  ASSERT_TRUE(suite.ok()) << suite.status();
  suite_ = suite->release();
}

void EscapeTest::TearDownTestSuite() {
  delete suite_;
  suite_ = nullptr;
}

void EscapeTest::ExpectHeld() {
  ASSERT_NE(suite_, nullptr);
  for (const std::string& wrong : suite_->Try(GetParam())) ADD_FAILURE() << wrong;
}

}  // namespace tritonrl
