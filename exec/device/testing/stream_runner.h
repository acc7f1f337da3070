// Runs streams that may be damaged, as a session on the CPU does, and what may follow them.
#ifndef TRITONRL_EXEC_DEVICE_TESTING_STREAM_RUNNER_H_
#define TRITONRL_EXEC_DEVICE_TESTING_STREAM_RUNNER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "exec/device/arena.h"
#include "exec/device/session.h"
#include "exec/device/testing/fake_compiler.h"

namespace tritonrl::device {

class StreamRunner {
 public:
  // Makes torch compute in one thread.
  static absl::StatusOr<std::unique_ptr<StreamRunner>> Create();

  // Serves the stream, then replays its call and its constructor. Returns how the session ended.
  absl::Status Run(const std::vector<Frame>& stream);

  SessionOptions& options() { return options_; }
  Arena* arena() { return arena_.get(); }
  FakeCompiler* compiler() { return &compiler_; }

 private:
  explicit StreamRunner(std::unique_ptr<Arena> arena);

  std::unique_ptr<Arena> arena_;
  FakeCompiler compiler_;
  SessionOptions options_;
};

// What an end of a session must be, whatever the stream: a result, or one sentence that blames the
// candidate's process, its end or a limit. Internal otherwise.
absl::Status CheckEnd(const absl::Status& end);

}  // namespace tritonrl::device

#endif  // TRITONRL_EXEC_DEVICE_TESTING_STREAM_RUNNER_H_
