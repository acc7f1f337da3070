// Judges the outputs of a candidate's calls, one after the other, against those of the reference.
#ifndef TRITONRL_EXEC_CANDIDATE_CALL_JUDGE_H_
#define TRITONRL_EXEC_CANDIDATE_CALL_JUDGE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "exec/candidate/run_conclusion.h"
#include "exec/compare/input_sensitivity.h"
#include "exec/compare/tensor_compare.h"
#include "exec/messages.pb.h"
#include "exec/reference/reference_runner.h"

namespace tritonrl {

// Where the outputs lie. An error of either is an infrastructure error.
struct OutputAccess {
  // Compares an output with that of the reference's call number `call` (CallsOf).
  std::function<absl::StatusOr<Comparison>(size_t call, const std::vector<Leaf>& output)> compare;
  // MeasureInputSensitivity of tensor `leaf` of the output of call `call`, which has the type and
  // shape of the reference's. The first call gives zeros and is what later ones are compared with.
  std::function<absl::StatusOr<InputSensitivity>(size_t call, int leaf, const Leaf& got)> follow;
};

// The access to outputs in memory of this process: `memory` returns that of the current output. Its
// arguments must outlive it, and the reference's tensors must be in memory of this machine.
OutputAccess AccessInMemory(const ExecRequest& request, const ReferenceResult& reference_result,
                            std::function<absl::string_view()> memory);

// The tensors of a right output of call `call`, on the inputs of `trial`, whose elements are to
// follow the inputs (CallJudge::NoteFollowing).
std::vector<int> FollowedLeaves(const ReferenceResult& reference_result, int trial, size_t call,
                                const std::vector<Leaf>& output);

// Notes in RunFindings what it finds: wrong, repeated, max_error, robust, following.
class CallJudge {
 public:
  // All arguments must outlive the judge.
  CallJudge(const ExecRequest& request, const ReferenceResult& reference_result,
            OutputAccess access, RunFindings* found)
      : request_(request),
        reference_result_(reference_result),
        access_(std::move(access)),
        found_(*found) {}

  // Whether the output of call `call`, on the inputs of `trial`, is right. If it is not, or
  // nothing can be compared (lost()), found.wrong says why.
  bool Judge(int trial, size_t call, const std::vector<Leaf>& output);
  // The comparison alone, without a note of it.
  Comparison Compare(size_t call, const std::vector<Leaf>& output);
  // Notes how the outputs of a right call follow its inputs; the first call is only the base.
  void NoteFollowing(int trial, size_t call, const std::vector<Leaf>& output);
  // With RULES_ROBUST: false, and found.wrong says why, when an output lies in the memory of
  // another output or of an input although the reference's do not.
  bool CheckSharing(int trial, const std::vector<Leaf>& output, const std::vector<Leaf>& inputs);

  // Unless RULES_PAPER, or the reference does so too: false, and found.wrong says why, when forward
  // changed its inputs.
  bool CheckInputs(int trial, bool unchanged);

  // The first error of `access`.
  const absl::Status& lost() const { return lost_; }

 private:
  void Refuse(int trial, const char* kind, const std::string& message);
  void NoteShare(const Comparison& comparison, int trial);
  template <typename T>
  T Answered(absl::StatusOr<T> answer, T otherwise) {
    if (answer.ok()) return *std::move(answer);
    lost_.Update(answer.status());
    return otherwise;
  }

  const ExecRequest& request_;
  const ReferenceResult& reference_result_;
  const OutputAccess access_;
  RunFindings& found_;
  absl::Status lost_;
};

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_CANDIDATE_CALL_JUDGE_H_
