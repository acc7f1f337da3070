// Candidates of tests, as an executor's process sees them.
#ifndef TRITONRL_EXEC_EXECUTOR_TESTING_SCRIPTED_CLIENT_H_
#define TRITONRL_EXEC_EXECUTOR_TESTING_SCRIPTED_CLIENT_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exec/device/session.h"
#include "exec/executor/executor.h"

namespace tritonrl {

// The other end of an executor's socket: sends prepared messages, each after the answer to the one
// before. `before` is called in front of each with its number.
class ScriptedClient {
 public:
  using Before = std::function<void(size_t)>;
  explicit ScriptedClient(std::vector<std::string> texts, Before before = nullptr);
  ~ScriptedClient();
  int socket() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
  std::thread thread_;
};

// The message of a kernel of the corpus, number 0 if it is the first.
std::string KernelOf(const std::string& corpus_text);

// The messages of a candidate that adds its weight to its input, `count` floats. Storage 1: the
// weight; 2: the input; 3: the output.
std::vector<std::string> AddScript(int count);
inline constexpr size_t kLaunchOfScript = 6;  // its place among these messages

// One live call on an input, with the weight 0.5.
device::SessionOptions OptionsOf(const at::Tensor& input);
ReplayRequest ReplayOn(const at::Tensor& input);

struct ScriptRun {
  std::vector<std::string> script;
  absl::Duration limit = absl::Seconds(60);
  ScriptedClient::Before before = nullptr;
  const SharedMemory* shared = nullptr;
};
// Runs a script with OptionsOf(input) on a free executor. `*session` becomes the executor's, after
// the one that it held has gone back.
absl::StatusOr<device::SessionResult> RunScript(Executors* executors, const at::Tensor& input,
                                                ScriptRun run,
                                                std::unique_ptr<ExecutorSession>* session);

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_EXECUTOR_TESTING_SCRIPTED_CLIENT_H_
