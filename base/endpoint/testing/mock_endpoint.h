// An OpenAI-compatible endpoint for tests: real HTTP on a local port, replies and faults by script.
#ifndef TRITONRL_BASE_ENDPOINT_TESTING_MOCK_ENDPOINT_H_
#define TRITONRL_BASE_ENDPOINT_TESTING_MOCK_ENDPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace tritonrl {

// A request as the endpoint got it.
struct MockRequest {
  int64_t number = 0;  // 1 for the first request
  std::string path;    // "/v1/chat/completions"
  std::string authorization;
  nlohmann::json body;
  std::string prompt;  // the last message's content, or the prompt

  std::string model() const { return body.value("model", ""); }
};

struct MockReply {
  enum class Fault {
    kNone,
    kCut,   // the connection ends in the middle of the body
    kHang,  // there is no byte of a reply until the endpoint is destroyed
  };
  int status = 200;
  std::string body;
  std::string retry_after;                      // header; "": none
  absl::Duration delay = absl::ZeroDuration();  // before the reply
  Fault fault = Fault::kNone;

  // A chat completion with this content, and reasoning_content if it is not empty.
  static MockReply Chat(const std::string& content, const std::string& reasoning = "",
                        const std::string& finish_reason = "stop");
  // A refusal in OpenAI's form.
  static MockReply Error(int status, const std::string& message, const std::string& code = "");
};

// Thread-safe.
class MockEndpoint {
 public:
  // Called on a thread of its own for each request to /v1/chat/completions and /v1/completions.
  using Script = std::function<MockReply(const MockRequest&)>;

  // `key`: requests without this bearer token get 401; "": all are answered. At most `threads`
  // requests are answered at the same time.
  explicit MockEndpoint(Script script, std::string key = "", int threads = 32);
  ~MockEndpoint();
  MockEndpoint(const MockEndpoint&) = delete;
  MockEndpoint& operator=(const MockEndpoint&) = delete;

  std::string url() const;  // "http://127.0.0.1:PORT/v1"
  int port() const { return port_; }
  int64_t requests() const;              // so far
  int64_t most_at_once() const;          // most requests between arrival and reply
  std::vector<MockRequest> log() const;  // in the order of arrival

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  int port_ = 0;
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_TESTING_MOCK_ENDPOINT_H_
