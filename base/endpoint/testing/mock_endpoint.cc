#include "base/endpoint/testing/mock_endpoint.h"

#include <httplib.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/thread_pool.h"

namespace tritonrl {

namespace {

using nlohmann::json;

// Not httplib::ThreadPool: LibTorch has its own version of that class, with another layout, and its
// functions may be the ones that the linker takes.
class MockThreads : public httplib::TaskQueue {
 public:
  explicit MockThreads(int threads) : pool_(std::make_unique<ThreadPool>(threads)) {}
  void enqueue(std::function<void()> work) override { pool_->Schedule(std::move(work)); }
  void shutdown() override { pool_.reset(); }

 private:
  std::unique_ptr<ThreadPool> pool_;
};

std::string PromptOf(const json& body) {
  if (body.contains("messages") && !body["messages"].empty()) {
    return body["messages"].back().value("content", "");
  }
  return body.value("prompt", "");
}

}  // namespace

MockReply MockReply::Chat(const std::string& content, const std::string& reasoning,
                          const std::string& finish_reason) {
  json message = {{"role", "assistant"}, {"content", content}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  const json choice = {{"index", 0}, {"message", message}, {"finish_reason", finish_reason}};
  const json body = {
      {"object", "chat.completion"},
      {"model", "mock-model"},
      {"choices", json::array({choice})},
      {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 1000}, {"total_tokens", 1100}}}};
  return {.body = body.dump()};
}

MockReply MockReply::Error(int status, const std::string& message, const std::string& code) {
  json error = {{"message", message}, {"type", "invalid_request_error"}};
  if (!code.empty()) error["code"] = code;
  return {.status = status, .body = json{{"error", error}}.dump()};
}

class MockEndpoint::Impl {
 public:
  Impl(Script script, std::string key, int threads)
      : script_(std::move(script)), key_(std::move(key)) {
    server_.new_task_queue = [threads] { return new MockThreads(threads); };
    server_.set_keep_alive_max_count(1000000);
    server_.set_keep_alive_timeout(1);  // seconds; bounds the time of the destructor
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      Handle(request, &response);
    };
    server_.Post("/v1/chat/completions", handle);
    server_.Post("/v1/completions", handle);
  }

  int Listen() {
    const int port = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // stop() has no effect on a server that does not run yet.
    while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
    return port;
  }

  ~Impl() {
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
    }
    server_.stop();
    thread_.join();
  }

  int64_t requests() const {
    absl::MutexLock lock(&mutex_);
    return static_cast<int64_t>(log_.size());
  }
  int64_t most_at_once() const {
    absl::MutexLock lock(&mutex_);
    return most_;
  }
  std::vector<MockRequest> log() const {
    absl::MutexLock lock(&mutex_);
    return log_;
  }

 private:
  void Handle(const httplib::Request& request, httplib::Response* response) {
    MockRequest asked;
    asked.path = request.path;
    asked.authorization = request.get_header_value("Authorization");
    asked.body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
    asked.prompt = asked.body.is_object() ? PromptOf(asked.body) : "";
    {
      absl::MutexLock lock(&mutex_);
      asked.number = static_cast<int64_t>(log_.size()) + 1;
      log_.push_back(asked);
      most_ = std::max(most_, ++now_);
    }
    MockReply reply = key_.empty() || asked.authorization == "Bearer " + key_
                          ? script_(asked)
                          : MockReply::Error(401, absl::StrCat("bad key ", asked.authorization));
    Pause(reply);
    Answer(reply, response);
    absl::MutexLock lock(&mutex_);
    --now_;
  }

  void Pause(const MockReply& reply) {
    absl::MutexLock lock(&mutex_);
    const absl::Duration pause =
        reply.fault == MockReply::Fault::kHang ? absl::InfiniteDuration() : reply.delay;
    mutex_.AwaitWithTimeout(absl::Condition(&ending_), pause);
  }

  static void Answer(const MockReply& reply, httplib::Response* response) {
    response->status = reply.status;
    if (!reply.retry_after.empty()) response->set_header("Retry-After", reply.retry_after);
    if (reply.fault != MockReply::Fault::kCut) {
      response->set_content(reply.body, "application/json");
      return;
    }
    response->set_content_provider(reply.body.size() + 1, "application/json",
                                   [half = reply.body.substr(0, reply.body.size() / 2)](
                                       size_t, size_t, httplib::DataSink& sink) {
                                     sink.write(half.data(), half.size());
                                     return false;  // closes the connection
                                   });
  }

  const Script script_;
  const std::string key_;
  httplib::Server server_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<MockRequest> log_ ABSL_GUARDED_BY(mutex_);
  int64_t now_ ABSL_GUARDED_BY(mutex_) = 0, most_ ABSL_GUARDED_BY(mutex_) = 0;
};

MockEndpoint::MockEndpoint(Script script, std::string key, int threads)
    : impl_(std::make_unique<Impl>(std::move(script), std::move(key), threads)),
      port_(impl_->Listen()) {}

MockEndpoint::~MockEndpoint() = default;

std::string MockEndpoint::url() const { return absl::StrCat("http://127.0.0.1:", port_, "/v1"); }
int64_t MockEndpoint::requests() const { return impl_->requests(); }
int64_t MockEndpoint::most_at_once() const { return impl_->most_at_once(); }
std::vector<MockRequest> MockEndpoint::log() const { return impl_->log(); }

}  // namespace tritonrl
