#include "exec/client_run/run_failures.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device_backend.h"

namespace tritonrl {
namespace {

// Of what a call of the reference takes: the output of the call before may be there still.
constexpr int64_t kRoom = 2;

Outcome::Reason ReasonOf(const device::Failure& failure) {
  // Names of Triton's errors; what raises them otherwise only harms itself.
  for (const char* kind : {"CompilationError", "CompileTimeAssertionFailure",
                           "UnsupportedLanguageConstruct", "PTXASError"}) {
    if (failure.kind == kind) return Outcome::COMPILE_ERROR;
  }
  if (failure.kind == "MLIRError" || absl::StrContains(failure.text, "PassManager::run failed")) {
    return Outcome::COMPILE_ERROR;
  }
  if (failure.kind == "OutOfMemoryError" || failure.kind == "MemoryError" ||
      absl::StrContains(failure.text, "can't allocate memory") ||
      absl::StrContains(failure.text, "CUDA out of memory")) {
    return Outcome::OUT_OF_MEMORY;
  }
  if (failure.phase == "import") return Outcome::IMPORT_ERROR;
  if (failure.phase == "init") {
    return absl::StrContains(failure.text, "the program defines no ModelNew")
               ? Outcome::NO_MODEL_NEW
               : Outcome::CONSTRUCT_ERROR;
  }
  return Outcome::RUNTIME_ERROR;
}

}  // namespace

RuleFinding OwnWords(const device::Failure& failure) {
  const std::string where = failure.line > 0 ? absl::StrCat(" at line ", failure.line) : "";
  const char* what = failure.phase == "import"    ? "the candidate does not import"
                     : failure.phase == "init"    ? "ModelNew cannot be constructed"
                     : failure.phase == "forward" ? "forward failed"
                                                  : "forward's result cannot be handed over";
  return {ReasonOf(failure), absl::StrCat(what, where, ": ", failure.kind, ": ", failure.text),
          failure.line};
}

RuleFinding ReplayFailed(const absl::Status& status) {
  const Outcome::Reason reason = absl::IsOutOfRange(status)          ? Outcome::OUT_OF_BOUNDS
                                 : absl::IsDeadlineExceeded(status)  ? Outcome::TIMEOUT
                                 : absl::IsResourceExhausted(status) ? Outcome::OUT_OF_MEMORY
                                                                     : Outcome::RUNTIME_ERROR;
  return {reason, Message(status), 0};
}

void SetLackOutcome(const MemoryLack& lack, ExecResult* result) {
  if (lack.allowed_bytes < lack.reference_bytes) {
    SetOutcome(Outcome::NO_DEVICE_MEMORY,
               absl::StrCat("the GPU is too small for the task: a call of the reference takes ",
                            lack.reference_bytes >> 20, " MiB, and ", lack.allowed_bytes >> 20,
                            " MiB are left for a candidate"),
               result->mutable_outcome());
  } else if (lack.lacking_bytes > 0 && lack.lacking_bytes <= kRoom * lack.reference_bytes) {
    result->mutable_outcome()->set_device_memory(true);
  }
}

void SetSessionOutcome(const absl::Status& status, bool out_of_memory, ExecResult* result) {
  const Outcome::Reason reason = absl::IsDeadlineExceeded(status)    ? Outcome::TIMEOUT
                                 : absl::IsResourceExhausted(status) ? Outcome::RUNTIME_ERROR
                                 : absl::IsInternal(status)          ? Outcome::INTERNAL_ERROR
                                                                     : Outcome::BAD_RESULT;
  // A limit that the pool enforced says more.
  if (reason == Outcome::TIMEOUT && result->outcome().reason() != Outcome::EXITED &&
      result->outcome().reason() != Outcome::DEADLINE) {
    return;
  }
  if (reason == Outcome::TIMEOUT && out_of_memory) {
    SetOutcome(Outcome::OUT_OF_MEMORY,
               "the kernel ended one of the candidate's processes for its memory, and the others "
               "did not finish in time",
               result->mutable_outcome());
    return;
  }
  SetOutcome(reason, Message(status), result->mutable_outcome());
}

}  // namespace tritonrl
