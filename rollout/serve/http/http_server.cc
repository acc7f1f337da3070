#include "rollout/serve/http/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "rollout/serve/openai/api_json.h"

namespace tritonrl {

namespace {

// Limits for reading on after the refusal of a request whose body is unread: if the connection were
// closed at once, a client that still sends could lose the answer.
constexpr absl::Duration kLinger = absl::Seconds(2);
constexpr int64_t kLingerBytes = 64 << 20;

// Runs each connection in a thread of its own. Beyond the limit the accepting thread handles the
// connection, and HttpServer refuses it there.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t limit) : limit_(limit) {}

  void enqueue(std::function<void()> serve) override {
    absl::ReleasableMutexLock lock(&mutex_);
    for (std::thread& thread : ended_) thread.join();
    ended_.clear();
    if (running_.size() >= limit_) {
      lock.Release();
      serve();
      return;
    }
    const auto entry = running_.emplace(running_.end());
    try {
      *entry = std::thread([this, entry, serve] {
        serve();
        absl::MutexLock end_lock(&mutex_);
        ended_.splice(ended_.end(), running_, entry);
      });
    } catch (const std::system_error&) {  // The system has no thread left.
      running_.erase(entry);
      lock.Release();
      serve();
    }
  }

  void shutdown() override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::list<std::thread>* running) { return running->empty(); }, &running_));
    for (std::thread& thread : ended_) thread.join();
    ended_.clear();
  }

 private:
  const size_t limit_;
  absl::Mutex mutex_;
  std::list<std::thread> running_ ABSL_GUARDED_BY(mutex_);
  std::list<std::thread> ended_ ABSL_GUARDED_BY(mutex_);
};

void Refuse(int fd) {
  const std::string body =
      JsonText(ErrorJson(absl::UnavailableError("the server has too many connections")));
  const std::string answer = absl::StrCat(
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n",
      "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  send(fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  close(fd);
}

void Linger(int fd) {
  shutdown(fd, SHUT_WR);
  const absl::Time deadline = absl::Now() + kLinger;
  char buffer[16 << 10];
  for (int64_t bytes = 0; bytes < kLingerBytes && absl::Now() < deadline;) {
    const ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) {
      bytes += n;
    } else if (n == 0 || errno != EAGAIN || !WaitForSocket(fd, POLLIN, deadline)) {
      return;
    }
  }
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options) : options_(options) {
  new_task_queue = [this] { return new ConnectionThreads(options_.max_connections); };
  // httplib's default lets a second server take the same port.
  set_socket_options([](socket_t fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  // httplib's Keep-Alive header states the limits of its own loop, which is not used.
  set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
    response.headers.erase("Keep-Alive");
  });
}

HttpServer::~HttpServer() { Stop(absl::ZeroDuration()); }

absl::Status HttpServer::Start() {
  errno = 0;
  port_ = options_.port;
  if (options_.port == 0) port_ = bind_to_any_port(options_.host);
  if (port_ <= 0 || (options_.port != 0 && !bind_to_port(options_.host, options_.port))) {
    const std::string reason = errno == 0 ? "no such address" : strerror(errno);
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.host, ":", options_.port, ": ", reason));
  }
  // httplib's own backlog is five connections.
  ::listen(svr_sock_, SOMAXCONN);
  accept_thread_ = std::thread([this] {
    accept_thread_id_ = std::this_thread::get_id();
    listen_after_bind();
  });
  while (!is_running()) absl::SleepFor(absl::Milliseconds(1));
  return absl::OkStatus();
}

void HttpServer::Stop(absl::Duration grace) {
  if (!accept_thread_.joinable()) return;
  // From now on new connections are refused. httplib's accepting thread closes the socket and ends.
  // Its stop() would also cut streams that have not begun.
  shutdown(svr_sock_, SHUT_RDWR);
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [fd, connection] : connections_) {
      if (!connection->busy) shutdown(fd, SHUT_RDWR);
    }
    mutex_.AwaitWithTimeout(absl::Condition(this, &HttpServer::NoneOpen), grace);
    for (const auto& [fd, connection] : connections_) shutdown(fd, SHUT_RDWR);
  }
  accept_thread_.join();
}

bool HttpServer::process_and_close_socket(socket_t fd) {
  if (std::this_thread::get_id() == accept_thread_id_) {
    Refuse(fd);
    return false;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Connection connection;
  connection.fd = fd;
  {
    absl::MutexLock lock(&mutex_);
    connections_[fd] = &connection;
  }
  SocketStream stream(fd, options_.write_timeout);
  ServeRequests(&stream, &connection);
  const bool stopping = !SetBusy(&connection, true);
  if (!stopping && (connection.body_unread || !connection.understood)) Linger(fd);
  absl::MutexLock lock(&mutex_);
  connections_.erase(fd);
  close(fd);  // Under the lock, so that Stop does not shut down another file that gets this number.
  return true;
}

bool HttpServer::SetBusy(Connection* connection, bool busy) {
  absl::MutexLock lock(&mutex_);
  connection->busy = busy;
  return !stopping_;
}

void HttpServer::ServeRequests(SocketStream* stream, Connection* connection) {
  // The first request of a connection must begin within read_timeout.
  absl::Duration wait = options_.read_timeout;
  while (SetBusy(connection, false) && stream->WaitForRequest(absl::Now() + wait) &&
         SetBusy(connection, true)) {
    if (!ServeOne(stream, connection)) return;
    wait = options_.idle_timeout;
  }
}

bool HttpServer::ServeOne(SocketStream* stream, Connection* connection) {
  stream->BeginRequest(absl::Now() + options_.read_timeout, options_.max_header_bytes);
  connection->understood = false;
  connection->body_unread = false;
  bool closed = false;
  bool answered = false;
  const httplib::Request* request = nullptr;
  try {
    answered =
        process_request(*stream, /*close_connection=*/false, closed, [&](httplib::Request& parsed) {
          request = &parsed;
          SetUp(&parsed, stream, connection);
        });
  } catch (const std::exception&) {
    answered = false;  // An exception of httplib outside handlers, such as lack of memory.
  }
  absl::MutexLock lock(&mutex_);
  requests_.erase(request);
  return answered && !closed && connection->understood && !connection->body_unread;
}

void HttpServer::SetUp(httplib::Request* request, SocketStream* stream, Connection* connection) {
  // Answers are short, so they are neither compressed nor sent in ranges.
  request->headers.erase("Accept-Encoding");
  request->ranges.clear();
  stream->Allow(8 * options_.max_body_bytes + options_.max_header_bytes);
  absl::MutexLock lock(&mutex_);
  connection->understood = true;
  // Without a length, the bytes after a POST's head may be its body or the next request.
  const bool has_length = request->has_header("Content-Length");
  connection->body_unread = request->has_header("Transfer-Encoding") ||
                            (has_length ? request->get_header_value("Content-Length") != "0"
                                        : request->method != "GET" && request->method != "HEAD");
  requests_[request] = connection;
}

HttpServer::Connection* HttpServer::Find(const httplib::Request& request) const {
  const auto it = requests_.find(&request);
  return it == requests_.end() ? nullptr : it->second;
}

int HttpServer::SocketOf(const httplib::Request& request) const {
  absl::MutexLock lock(&mutex_);
  const Connection* connection = Find(request);
  return connection == nullptr ? -1 : connection->fd;
}

bool HttpServer::BodyIsUnread(const httplib::Request& request) const {
  absl::MutexLock lock(&mutex_);
  const Connection* connection = Find(request);
  return connection == nullptr || connection->body_unread;
}

void HttpServer::BodyRead(const httplib::Request& request) {
  absl::MutexLock lock(&mutex_);
  Connection* connection = Find(request);
  if (connection != nullptr) connection->body_unread = false;
}

namespace {

constexpr size_t kMinKeyLength = 16;

absl::StatusOr<std::string> CheckKey(absl::string_view text, const std::string& where) {
  const std::string key(absl::StripAsciiWhitespace(text));
  if (key.size() < kMinKeyLength || key.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(where, " must hold one key of at least ",
                                                   kMinKeyLength, " characters and nothing else"));
  }
  return key;
}

}  // namespace

absl::StatusOr<std::string> LoadApiKey(const std::string& file, const char* environment_value) {
  if (file.empty()) {
    if (environment_value == nullptr || *environment_value == '\0') return "";
    return CheckKey(environment_value, "the environment variable for the API key");
  }
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return ErrnoStatus(errno, "read", file);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(file, " holds a key and must be a plain file of this user with mode 600"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return CheckKey(text, file);
}

bool HasApiKey(absl::string_view authorization, const std::string& key) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return false;
  authorization.remove_prefix(kScheme.size());
  // Hashes have the same length for all keys, and the loop has no early exit.
  const std::string given = Sha256Hex(absl::StripAsciiWhitespace(authorization));
  const std::string wanted = Sha256Hex(key);
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference = difference | static_cast<unsigned char>(given[i] ^ wanted[i]);
  }
  return difference == 0;
}

bool IsLoopback(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "::1" || host == "localhost";
}

}  // namespace tritonrl
