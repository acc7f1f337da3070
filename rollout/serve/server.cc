#include "rollout/serve/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "rollout/serve/http/http_server.h"
#include "rollout/serve/openai/api_json.h"
#include "rollout/serve/openai/response.h"

namespace tritonrl {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kCompletions[] = "/v1/completions";
constexpr char kChatCompletions[] = "/v1/chat/completions";
constexpr char kModels[] = "/v1/models";
constexpr char kModelPrefix[] = "/v1/models/";
// Longer ids of clients are not returned.
constexpr size_t kMaxRequestIdLength = 128;
// After a drain: time for cancelled requests to end, and for answers to be sent.
constexpr absl::Duration kLastWait = absl::Seconds(5);

// The endpoint of a path, as named in metrics; empty if the path is unknown.
std::string EndpointOf(const std::string& path) {
  for (const char* known : {kCompletions, kChatCompletions, kModels, "/health", "/metrics"}) {
    if (path == known) return known;
  }
  return absl::StartsWith(path, kModelPrefix) ? kModels : "";
}

bool IsGenerating(const std::string& path) {
  return path == kCompletions || path == kChatCompletions;
}

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

// Logs one line per request: id, method, path, status. Method and path are untrusted text, so they
// are escaped and cut.
void LogRequest(const httplib::Request& request, const httplib::Response& response) {
  const LogLevel level = response.status >= 500   ? LogLevel::kError
                         : response.status >= 400 ? LogLevel::kWarning
                                                  : LogLevel::kInfo;
  Log(level, absl::StrCat("request ", response.get_header_value("X-Request-Id"), " ",
                          absl::CEscape(request.method.substr(0, 16)), " ",
                          absl::CEscape(request.path.substr(0, 200)), " -> ", response.status));
}

}  // namespace

class Server::Slot {
 public:
  // Null if max_concurrent requests are in progress.
  static std::shared_ptr<Slot> Take(Server* server) {
    absl::MutexLock lock(&server->mutex_);
    if (server->in_progress_ >= server->options_.max_concurrent) return nullptr;
    ++server->in_progress_;
    return std::shared_ptr<Slot>(new Slot(server));
  }
  ~Slot() {
    absl::MutexLock lock(&server_->mutex_);
    --server_->in_progress_;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  explicit Slot(Server* server) : server_(server) {}
  Server* const server_;
};

Server::Server(const ServerOptions& options, ServedModel model, Engine* engine)
    : options_(options),
      engine_(engine),
      start_(absl::Now()),
      parser_(std::move(model),
              {.max_tokens = options.max_tokens_limit, .timeout = options.request_timeout}, start_),
      service_(engine),
      http_server_(options.http) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      ServedModel model, Engine* engine) {
  if (options.api_key.empty() && !IsLoopback(options.http.host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--host=", options.http.host,
                     " can be reached from other machines: give a key with --api_key_file"));
  }
  std::unique_ptr<Server> server(new Server(options, std::move(model), engine));
  server->SetRoutes();
  RETURN_IF_ERROR(server->http_server_.Start());
  return server;
}

Server::~Server() { Drain(absl::ZeroDuration()); }

bool Server::Drain(absl::Duration wait) {
  draining_ = true;
  bool finished = false;
  {
    absl::MutexLock lock(&mutex_);
    finished = mutex_.AwaitWithTimeout(absl::Condition(this, &Server::Idle), wait);
  }
  service_.Abort(ShuttingDown());
  {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &Server::Idle), kLastWait);
  }
  http_server_.Stop(kLastWait);
  return finished;
}

void Server::SetRoutes() {
  using httplib::ContentReader, httplib::Request, httplib::Response;
  http_server_.set_pre_routing_handler([this](const Request& request, Response& response) {
    response.set_header("X-Request-Id", RequestId(request));
    const absl::Status status = CheckBeforeBody(request, &response);
    if (status.ok()) return httplib::Server::HandlerResponse::Unhandled;
    Fail(status, request, &response);
    return httplib::Server::HandlerResponse::Handled;
  });
  http_server_.Get("/health",
                   [this](const Request&, Response& response) { HandleHealth(&response); });
  http_server_.Get("/metrics", [this](const Request&, Response& response) {
    response.set_content(MetricsText(), "text/plain; version=0.0.4");
  });
  const int64_t created = absl::ToUnixSeconds(start_);
  http_server_.Get(kModels, [this, created](const Request&, Response& response) {
    response.set_content(
        JsonText(ModelList(parser_.model().name, created, parser_.model().context)), kJson);
  });
  http_server_.Get("/v1/models/.+", [this, created](const Request& request, Response& response) {
    const absl::Status known =
        parser_.CheckModelName(request.path.substr(sizeof(kModelPrefix) - 1));
    if (!known.ok()) return Fail(known, request, &response);
    response.set_content(
        JsonText(ModelCard(parser_.model().name, created, parser_.model().context)), kJson);
  });
  for (const bool chat : {false, true}) {
    http_server_.Post(
        chat ? kChatCompletions : kCompletions,
        [this, chat](const Request& request, Response& response, const ContentReader& reader) {
          HandleGenerating(chat, request, &response, reader);
        });
  }
  // Bodies for httplib's own answers: to heads that it cannot parse, and after handlers that threw.
  http_server_.set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty()) return;
    absl::Status status = absl::InternalError("the server has a fault");
    if (response.status < 500) status = absl::InvalidArgumentError("not a valid HTTP request");
    response.set_content(JsonText(ErrorJson(status)), kJson);
  });
  http_server_.set_exception_handler(
      [](const Request&, Response& response, const std::exception_ptr&) { response.status = 500; });
  http_server_.set_logger([this](const Request& request, const Response& response) {
    const std::string endpoint = EndpointOf(request.path);
    metrics_.CountRequest(endpoint.empty() ? "other" : endpoint, response.status);
    LogRequest(request, response);
  });
}

absl::Status Server::CheckBeforeBody(const httplib::Request& request,
                                     httplib::Response* response) const {
  const std::string endpoint = EndpointOf(request.path);
  if (endpoint != "/health" && !options_.api_key.empty() &&
      !HasApiKey(request.get_header_value("Authorization"), options_.api_key)) {
    response->set_header("WWW-Authenticate", "Bearer");
    return WithErrorCode(
        absl::UnauthenticatedError("the API key is missing or wrong (Authorization: Bearer KEY)"),
        "invalid_api_key");
  }
  if (endpoint.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no ", request.path.substr(0, 100),
                                            " here; see /v1/completions, /v1/chat/completions, "
                                            "/v1/models, /health, /metrics"));
  }
  const bool generating = IsGenerating(request.path);
  const std::string& method = request.method;
  if (generating ? method != "POST" : method != "GET" && method != "HEAD") {
    response->set_header("Allow", generating ? "POST" : "GET, HEAD");
    return absl::UnimplementedError(
        absl::StrCat(endpoint, " takes ", generating ? "POST" : "GET", " requests, not ", method));
  }
  if (generating && draining_) return ShuttingDown();
  return absl::OkStatus();
}

std::string Server::RequestId(const httplib::Request& request) {
  const std::string given = request.get_header_value("X-Request-Id");
  const bool fits = !given.empty() && given.size() <= kMaxRequestIdLength &&
                    std::all_of(given.begin(), given.end(), absl::ascii_isgraph);
  if (fits) return given;
  return absl::StrFormat("req-%016x%08x", absl::ToUnixNanos(start_), next_request_id_++);
}

void Server::Fail(const absl::Status& status, const httplib::Request& request,
                  httplib::Response* response) const {
  response->status = HttpStatus(status);
  if (response->status == 429 || response->status == 503) {
    response->set_header("Retry-After", "1");
  }
  if (http_server_.BodyIsUnread(request)) response->set_header("Connection", "close");
  response->set_content(JsonText(ErrorJson(status)), kJson);
}

absl::StatusOr<std::string> Server::ReadBody(const httplib::Request& request,
                                             const httplib::ContentReader& reader) {
  const int64_t limit = options_.http.max_body_bytes;
  const auto too_large = [limit] {
    return absl::OutOfRangeError(
        absl::StrCat("the request's body is larger than the limit of ", limit, " bytes"));
  };
  if (request.is_multipart_form_data()) {
    return absl::InvalidArgumentError("the request's body must be JSON, not a form");
  }
  const size_t lengths = request.get_header_value_count("Content-Length");
  const bool chunked = request.has_header("Transfer-Encoding");
  int64_t length = 0;
  if (lengths + (chunked ? 1 : 0) != 1 ||
      (!chunked &&
       (!absl::SimpleAtoi(request.get_header_value("Content-Length"), &length) || length < 0))) {
    return absl::InvalidArgumentError("the request needs one valid Content-Length");
  }
  if (length > limit) return too_large();
  std::string body;
  bool fits = true;
  const bool whole = reader([&](const char* data, size_t size) {
    fits = static_cast<int64_t>(body.size() + size) <= limit;
    if (fits) body.append(data, size);
    return fits;
  });
  if (!fits) return too_large();
  if (!whole) {
    return absl::InvalidArgumentError("the request's body did not arrive whole and in time");
  }
  http_server_.BodyRead(request);
  return body;
}

void Server::HandleGenerating(bool chat, const httplib::Request& request,
                              httplib::Response* response, const httplib::ContentReader& reader) {
  const absl::StatusOr<std::string> body = ReadBody(request, reader);
  const absl::Status status = body.ok() ? Generate(chat, *body, request, response) : body.status();
  if (status.ok()) return;
  Fail(status, request, response);
  // The client has disconnected. Only the metrics use this status, which nginx defines.
  if (absl::IsCancelled(status)) response->status = 499;
}

absl::Status Server::Generate(bool chat, const std::string& body, const httplib::Request& request,
                              httplib::Response* response) {
  // Before the body is parsed: tokenizing megabytes takes seconds.
  const std::shared_ptr<Slot> slot = Slot::Take(this);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server has its limit of ", options_.max_concurrent, " requests; try again"));
  }
  ASSIGN_OR_RETURN(ParsedRequest parsed, parser_.Parse(chat, body));
  absl::StatusOr<std::unique_ptr<Generation>> generation = service_.Start(parsed.generation);
  if (!generation.ok()) return generation.status();
  const auto answer = std::make_shared<CompletionHandler>(
      std::move(parsed.answer), parser_.model().tokenizer, *std::move(generation), &metrics_);
  const int socket = http_server_.SocketOf(request);
  if (!parsed.params.stream) {
    ASSIGN_OR_RETURN(const nlohmann::json whole, answer->Whole(socket));
    response->set_content(JsonText(whole), kJson);
    return absl::OkStatus();
  }
  response->set_header("Cache-Control", "no-cache");
  // One call writes the whole stream: between calls httplib would end it when the server stops.
  response->set_chunked_content_provider(
      "text/event-stream", [answer, slot, socket](size_t, httplib::DataSink& sink) {
        const absl::Status status = answer->Stream(socket, [&sink](const std::string& text) {
          return sink.write(text.data(), text.size());
        });
        if (absl::IsCancelled(status)) return false;
        sink.done();
        return true;
      });
  return absl::OkStatus();
}

void Server::HandleHealth(httplib::Response* response) const {
  const absl::Status failure = health();
  const char* word = !failure.ok() ? "failed" : draining_ ? "draining" : "ok";
  response->status = failure.ok() && !draining_ ? 200 : 503;
  response->set_content(JsonText({{"status", word}, {"model", parser_.model().name}}), kJson);
}

std::string Server::MetricsText() const {
  ServerGauges gauges;
  {
    absl::MutexLock lock(&mutex_);
    gauges.requests = in_progress_;
  }
  gauges.running_samples = service_.running();
  gauges.waiting_samples = service_.waiting();
  gauges.engine = engine_->Stats();
  return metrics_.Text(gauges);
}

}  // namespace tritonrl
