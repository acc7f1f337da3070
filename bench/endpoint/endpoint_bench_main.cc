// Measures the CPU time of a client that keeps many requests to an endpoint in flight and keeps
// each response in a journal. The endpoint is a mock in another process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/client.h"
#include "base/endpoint/testing/mock_endpoint.h"
#include "base/file.h"
#include "base/status.h"
#include "bench/harness/harness.h"

ABSL_FLAG(int, in_flight, 200, "Requests in flight.");
ABSL_FLAG(int, requests, 1000, "Requests in all.");
ABSL_FLAG(int, answer_bytes, 40000, "Size of an answer.");
ABSL_FLAG(int, prompt_bytes, 4000, "Size of a prompt.");
ABSL_FLAG(absl::Duration, delay, absl::Seconds(2), "Time that the endpoint takes for an answer.");

namespace tritonrl {
namespace {

// Serves in a child process until the parent closes `alive`; writes the address to `out`.
[[noreturn]] void ServeInChild(int out, int alive) {
  const std::string answer(absl::GetFlag(FLAGS_answer_bytes), 'x');
  MockEndpoint endpoint(
      [&](const MockRequest&) {
        MockReply reply = MockReply::Chat(answer);
        reply.delay = absl::GetFlag(FLAGS_delay);
        return reply;
      },
      /*key=*/"", /*threads=*/absl::GetFlag(FLAGS_in_flight) + 16);
  const std::string url = endpoint.url();
  if (write(out, url.data(), url.size()) < 0) _exit(1);
  char end = 0;
  while (read(alive, &end, 1) > 0) {
  }
  _exit(0);
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

absl::Status Measure(const std::string& url, Bench* bench) {
  EndpointOptions options;
  options.url = url;
  options.max_in_flight = absl::GetFlag(FLAGS_in_flight);
  ASSIGN_OR_RETURN(const std::unique_ptr<EndpointClient> client, EndpointClient::Make(options));
  ASSIGN_OR_RETURN(const std::string folder, MakeTempDirectory("endpoint_bench_"));
  const std::string prompt(absl::GetFlag(FLAGS_prompt_bytes), 'p');
  const auto item = [&](int64_t i) -> absl::StatusOr<AskItem> {
    AskItem item = {.key = absl::StrCat(i)};
    item.request.model = "mock";
    item.request.messages = {{.role = "user", .content = absl::StrCat(prompt, i)}};
    return item;
  };
  AskAllOptions ask;
  ask.journal = folder + "/responses.jsonl";
  const absl::Time start = absl::Now();
  const double cpu = CpuSeconds();
  const auto summary = AskAll(absl::GetFlag(FLAGS_requests), item, ask, client.get());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const double used = CpuSeconds() - cpu;
  RETURN_IF_ERROR(RemoveTree(folder));
  RETURN_IF_ERROR(summary.status());
  bench->set_subject("endpoint client");
  bench->Add(absl::StrCat(absl::GetFlag(FLAGS_in_flight), " in flight, answers of ",
                          absl::GetFlag(FLAGS_answer_bytes), " bytes after ",
                          absl::FormatDuration(absl::GetFlag(FLAGS_delay))),
             {{"CPU share of a core", 100 * used / seconds, "%", std::nullopt, 20.0},
              {"rate", summary->answered / seconds, "requests/s"},
              {"CPU time of a request", 1e3 * used / std::max<int64_t>(1, summary->answered), "ms"},
              Count("failed", summary->failed, "requests")});
  return absl::OkStatus();
}

absl::Status Run(Bench* bench) {
  int address[2], alive[2];
  if (pipe(address) != 0 || pipe(alive) != 0) return absl::UnavailableError("no pipe");
  const pid_t child = fork();  // before this process has threads
  if (child == 0) {
    close(alive[1]);
    ServeInChild(address[1], alive[0]);
  }
  close(alive[0]);
  char url[100] = {};
  const bool started = read(address[0], url, sizeof(url) - 1) > 0;
  const absl::Status measured =
      started ? Measure(url, bench) : absl::UnavailableError("the mock endpoint does not start");
  close(alive[1]);
  waitpid(child, nullptr, 0);
  return measured;
}

}  // namespace
}  // namespace tritonrl

int main(int argc, char** argv) {
  tritonrl::RunBench({.usage = "CPU time of many requests to an endpoint."}, argc, argv,
                     tritonrl::Run);
}
