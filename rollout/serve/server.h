// OpenAI's HTTP API over a generation engine.
#ifndef TRITONRL_ROLLOUT_SERVE_SERVER_H_
#define TRITONRL_ROLLOUT_SERVE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/engine/engine.h"
#include "rollout/serve/generation.h"
#include "rollout/serve/http/http_server.h"
#include "rollout/serve/metrics.h"
#include "rollout/serve/request_parser.h"

namespace tritonrl {

struct ServerOptions {
  HttpServerOptions http;
  std::string api_key;       // Empty: the server requires no key.
  int max_concurrent = 256;  // Requests that generate at the same time; more get HTTP 429.
  int max_tokens_limit = 0;  // Maximum tokens of a completion; 0: the context limits it.
  absl::Duration request_timeout = absl::Minutes(10);  // Of one generating request.
};

// Endpoints: POST /v1/completions, POST /v1/chat/completions, GET /v1/models, GET
// /v1/models/NAME, GET /health, GET /metrics. Every response has an X-Request-Id.
class Server {
 public:
  // Returns when the server listens. The engine must outlive the server, and no other code may take
  // samples from it. InvalidArgument: an address other than loopback without a key. Unavailable:
  // the server cannot listen on the address.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       ServedModel model, Engine* engine);
  ~Server();  // As Drain(absl::ZeroDuration()).
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return http_server_.port(); }

  // The engine's failure, if it failed; all generating requests then get this error.
  absl::Status health() const { return service_.health(); }

  // Refuses new requests (503), waits at most `wait` until the running ones end, then cancels the
  // rest and stops listening. False if any request was cancelled.
  bool Drain(absl::Duration wait);

 private:
  // Counts a generating request as long as it lives.
  class Slot;

  Server(const ServerOptions& options, ServedModel model, Engine* engine);
  void SetRoutes();
  // Error for requests that reach no handler: unknown path, wrong method, missing key, draining
  // server.
  absl::Status CheckBeforeBody(const httplib::Request& request, httplib::Response* response) const;
  absl::StatusOr<std::string> ReadBody(const httplib::Request& request,
                                       const httplib::ContentReader& reader);
  void HandleGenerating(bool chat, const httplib::Request& request, httplib::Response* response,
                        const httplib::ContentReader& reader);
  absl::Status Generate(bool chat, const std::string& body, const httplib::Request& request,
                        httplib::Response* response);
  void Fail(const absl::Status& status, const httplib::Request& request,
            httplib::Response* response) const;
  // The request's own X-Request-Id if it can be returned, else a new one.
  std::string RequestId(const httplib::Request& request);
  void HandleHealth(httplib::Response* response) const;
  std::string MetricsText() const;
  bool Idle() const { return in_progress_ == 0; }

  const ServerOptions options_;
  Engine* const engine_;
  const absl::Time start_;
  RequestParser parser_;
  Metrics metrics_;
  GenerationService service_;
  std::atomic<bool> draining_{false};
  std::atomic<uint64_t> next_request_id_{1};
  mutable absl::Mutex mutex_;
  int in_progress_ = 0;     // Generating requests; changed under mutex_.
  HttpServer http_server_;  // Last: its threads use all other members.
};

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_SERVER_H_
