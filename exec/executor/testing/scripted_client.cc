#include "exec/executor/testing/scripted_client.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "exec/device/frame.h"
#include "exec/device/json.h"
#include "exec/device/testing/scripted_channel.h"
#include "exec/ttir/testing/corpus.h"

namespace tritonrl {

using device::FloatTensor;

ScriptedClient::ScriptedClient(std::vector<std::string> texts, Before before) {
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
  thread_ = std::thread([this, texts = std::move(texts), before = std::move(before)] {
    device::SocketChannel channel(ends_[1]);
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (before != nullptr) before(i);
      if (!channel.Send({texts[i], ""}, deadline).ok()) return;
      if (!channel.Receive(deadline).ok()) return;
    }
  });
}

ScriptedClient::~ScriptedClient() {
  shutdown(ends_[0], SHUT_RDWR);
  thread_.join();
  close(ends_[0]);
  close(ends_[1]);
}

std::string KernelOf(const std::string& corpus_text) {
  const device::Json kernel = {
      {"do", "kernel"}, {"name", "add"},   {"ttir", ttir::CorpusTextOf(corpus_text)},
      {"num_warps", 4}, {"num_stages", 3}, {"num_ctas", 1},
      {"shared", 0}};
  return kernel.dump();
}

std::vector<std::string> AddScript(int count) {
  std::string launch =
      device::LaunchText(0, absl::StrCat(FloatTensor(2, count), ",", FloatTensor(1, count), ",",
                                         FloatTensor(3, count), ",", count));
  launch.replace(launch.find("[1,1,1]"), 7, absl::StrCat("[", (count + 1023) / 1024, ",1,1]"));
  return {R"({"do":"begin"})",
          device::EmptyText(count),
          device::OperatorText("uniform_", "", FloatTensor(1, count)),
          absl::StrCat(R"({"do":"constructed","state":[["w",)", FloatTensor(1, count), "]]}"),
          device::EmptyText(count),
          KernelOf("vector_add.ttir"),
          launch,
          absl::StrCat(R"({"do":"output","value":)", FloatTensor(3, count), "}")};
}

device::SessionOptions OptionsOf(const at::Tensor& input) {
  device::SessionOptions options;
  options.source = "class ModelNew: ...";
  options.init_seed = 5;
  options.init_args.kind = device::Value::Kind::kList;
  options.init_kwargs.kind = device::Value::Kind::kDict;
  device::CallInputs& call = options.calls.emplace_back();
  call.args = device::Value::List({device::Value::Host(input)});
  call.kwargs.kind = device::Value::Kind::kDict;
  options.state = {{"w", at::full({input.numel()}, 0.5)}};
  options.deadline = absl::Now() + absl::Seconds(60);
  return options;
}

ReplayRequest ReplayOn(const at::Tensor& input) {
  ReplayRequest request;
  request.inputs = {input};
  request.deadline = absl::Now() + absl::Seconds(60);
  return request;
}

absl::StatusOr<device::SessionResult> RunScript(Executors* executors, const at::Tensor& input,
                                                ScriptRun run,
                                                std::unique_ptr<ExecutorSession>* session) {
  session->reset();
  auto acquired = executors->Acquire(absl::Now() + absl::Seconds(60));
  if (!acquired.ok()) return acquired.status();
  *session = *std::move(acquired);
  device::SessionOptions options = OptionsOf(input);
  options.deadline = absl::Now() + run.limit;
  const ScriptedClient client(std::move(run.script), run.before);
  return (*session)->Run(options, run.shared, client.socket());
}

}  // namespace tritonrl
