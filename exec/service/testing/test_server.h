// A server with a scripted backend in this process, and a client for such servers.
#ifndef TRITONRL_EXEC_SERVICE_TESTING_TEST_SERVER_H_
#define TRITONRL_EXEC_SERVICE_TESTING_TEST_SERVER_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "exec/service/exec_server.h"
#include "exec/service/remote_backend.h"
#include "exec/testing/scripted_backend.h"

namespace tritonrl {

inline const std::string& Token() {
  static const std::string* const token = new std::string(64, 'k');
  return *token;
}

inline absl::Time Soon() { return absl::Now() + absl::Seconds(20); }

inline ScriptedBackend::Answer AnswerOk() {
  return [](const ExecRequest& request, absl::Time) {
    ExecResult result = ScriptedBackend::Result(Outcome::OK);
    result.set_output(request.candidate_source());
    return result;
  };
}

// A server on loopback, at `port` or, if that is 0, at a free port.
struct TestServer {
  explicit TestServer(ScriptedBackend::Answer answer, DispatcherOptions options = {},
                      int concurrency = 2, bool modelled = true, int port = 0) {
    auto made = std::make_unique<ScriptedBackend>(std::move(answer), concurrency, modelled);
    backend = made.get();
    std::vector<std::unique_ptr<DeviceBackend>> backends;
    backends.push_back(std::move(made));
    dispatcher = std::make_unique<Dispatcher>(options, std::move(backends));
    auto started = ExecServer::Start({.port = port, .token = Token()}, dispatcher.get());
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server = *std::move(started);
  }
  std::string address() const { return server->address(); }
  int port() const {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address().substr(address().rfind(':') + 1), &port));
    return port;
  }

  ScriptedBackend* backend = nullptr;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<ExecServer> server;
};

inline std::unique_ptr<RemoteBackend> Connect(const std::vector<const TestServer*>& servers) {
  RemoteOptions options;
  for (const TestServer* server : servers) options.servers.push_back({server->address(), Token()});
  options.connect_timeout = absl::Seconds(10);
  auto backend = RemoteBackend::Connect(options);
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

}  // namespace tritonrl

#endif  // TRITONRL_EXEC_SERVICE_TESTING_TEST_SERVER_H_
