// For tests: a server on a free port of loopback, and clients for it.
#ifndef TRITONRL_ROLLOUT_SERVE_TESTING_SERVER_FIXTURE_H_
#define TRITONRL_ROLLOUT_SERVE_TESTING_SERVER_FIXTURE_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "model/chat/chat_template.h"
#include "model/chat/testing/chat_folder.h"
#include "nlohmann/json.hpp"
#include "rollout/serve/server.h"
#include "rollout/serve/testing/scripted_engine.h"

namespace tritonrl {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

// A connection whose bytes the test writes itself.
class RawClient {
 public:
  explicit RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // A small buffer, so that a server soon notices a client that does not read.
    const int bytes = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  // False when the server has closed the connection.
  bool Send(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Reads until the text contains `end`, the connection ends, or kPatience has passed.
  std::string ReadUntil(const std::string& end) {
    std::string text;
    const absl::Time deadline = absl::Now() + kPatience;
    while (text.find(end) == std::string::npos && absl::Now() < deadline) {
      if (!WaitForSocket(fd_, POLLIN, deadline)) break;
      char buffer[4096];
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  std::string ReadToEnd() { return ReadUntil(std::string(1, '\xFF')); }

 private:
  int fd_;
};

struct HttpReply {
  int status = 0;  // 0: no reply.
  std::string body;
  httplib::Headers headers;
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  // error.message of the body.
  std::string error() const { return json().value("/error/message"_json_pointer, ""); }
  // The events of a stream without "data: "; the last is [DONE].
  std::vector<std::string> events() const {
    std::vector<std::string> events;
    for (absl::string_view event : absl::StrSplit(body, "\n\n", absl::SkipEmpty())) {
      EXPECT_TRUE(absl::ConsumePrefix(&event, "data: ")) << event;
      events.emplace_back(event);
    }
    return events;
  }
};

inline HttpReply Call(int port, const std::string& method, const std::string& path,
                      const std::string& body = "", const httplib::Headers& headers = {}) {
  httplib::Client client("127.0.0.1", port);
  client.set_read_timeout(absl::ToInt64Seconds(kPatience));
  client.set_connection_timeout(absl::ToInt64Seconds(kPatience));
  httplib::Request request;
  request.method = method;
  request.path = path;
  request.headers = headers;
  request.body = body;
  const httplib::Result result = client.send(request);
  if (!result) return {};
  return {result->status, result->body, result->headers};
}

inline HttpReply Post(int port, const std::string& path, const nlohmann::json& request,
                      const httplib::Headers& headers = {}) {
  return Call(port, "POST", path, request.dump(), headers);
}

inline bool WaitUntil(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

// A request to /v1/completions; `more` adds or replaces fields.
inline nlohmann::json Completion(const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json request = {{"model", "test"}, {"prompt", "Hello"}, {"max_tokens", 50}};
  request.update(more);
  return request;
}

// A server whose tokens are bytes, which the test draws.
class ServerTest : public testing::Test {
 protected:
  static constexpr int32_t kEnd = 258;

  void Start(const ServerOptions& options = {}) {
    const Tokenizer tokenizer =
        ByteTokenizer({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, {std::string(60000, '#')});
    static const ChatTemplate chat =
        ChatTemplate::Load(ChatFolder(kThinkingChatMl).dir(), {}, tokenizer).value();
    ServedModel model{"test",
                      tokenizer,
                      chat,
                      {kEnd},
                      /*begin_tokens=*/{},
                      /*context=*/200,
                      /*vocab_size=*/300};
    auto server = Server::Start(options, std::move(model), &engine_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }

  // Sends a request from a thread of its own.
  std::future<HttpReply> PostAsync(const std::string& path, const nlohmann::json& request) {
    return std::async(std::launch::async,
                      [this, path, request] { return Post(port(), path, request); });
  }
  // The value of a line of /metrics.
  std::string Metric(const std::string& name) {
    const std::string text = Call(port(), "GET", "/metrics").body;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::ConsumePrefix(&line, name + " ")) return std::string(line);
    }
    return "";
  }
  void EndWith(const GenerateRequest& request, int index, const std::string& text,
               FinishReason reason = FinishReason::kStop) {
    engine_.Draw(request, index, text);
    if (reason == FinishReason::kStop) engine_.Draw(request, index, kEnd);
    engine_.End(request, index, reason);
  }

  ScriptedEngine engine_;
  std::unique_ptr<Server> server_;
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_TESTING_SERVER_FIXTURE_H_
