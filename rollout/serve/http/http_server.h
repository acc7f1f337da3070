// HTTP server: connections, their threads and limits, and the API key.

#ifndef TRITONRL_ROLLOUT_SERVE_HTTP_HTTP_SERVER_H_
#define TRITONRL_ROLLOUT_SERVE_HTTP_HTTP_SERVER_H_

#include <httplib.h>

#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rollout/serve/http/socket_stream.h"

namespace tritonrl {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;               // 0: any free port.
  int max_connections = 576;  // Each has a thread. Further ones get a 503 and are closed.
  int64_t max_header_bytes = 64 << 10;
  int64_t max_body_bytes = 4 << 20;  // A chunked body may take 8 times this on the wire.
  // From a request's first byte to its last byte.
  absl::Duration read_timeout = absl::Seconds(30);
  // For each write to the socket.
  absl::Duration write_timeout = absl::Seconds(30);
  // Between two requests of a connection.
  absl::Duration idle_timeout = absl::Seconds(30);
};

// cpp-httplib's server with our own loop for each connection. Handlers are set with httplib's
// methods before Start. A handler that reads a body must call BodyRead: if a request's body was not
// read, or its head could not be parsed, the connection is closed after the answer.
class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const HttpServerOptions& options);
  ~HttpServer() override;  // As Stop(absl::ZeroDuration()).

  // Returns when the server listens. Unavailable: it cannot listen on the address.
  absl::Status Start();
  int port() const { return port_; }

  // Closes the listening socket and idle connections at once, each other connection when its
  // request is answered or after `grace`. Returns when all are closed.
  void Stop(absl::Duration grace);

  // For handlers: the socket of a request's connection, to check whether the client is still
  // connected.
  int SocketOf(const httplib::Request& request) const;
  // Whether the request has a body that was not read.
  bool BodyIsUnread(const httplib::Request& request) const;
  // Records that the whole body was read.
  void BodyRead(const httplib::Request& request);

 private:
  struct Connection {
    int fd = -1;
    bool busy = false;         // A request has begun.
    bool understood = true;    // The request's head could be parsed.
    bool body_unread = false;  // The request's body was not read.
  };

  bool process_and_close_socket(socket_t fd) override;
  void ServeRequests(SocketStream* stream, Connection* connection);
  // Serves one request. Returns whether the connection stays open.
  bool ServeOne(SocketStream* stream, Connection* connection);
  void SetUp(httplib::Request* request, SocketStream* stream, Connection* connection);
  // Records that a request begins or has ended; false if the server stops.
  bool SetBusy(Connection* connection, bool busy);
  Connection* Find(const httplib::Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NoneOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return connections_.empty(); }

  const HttpServerOptions options_;
  int port_ = 0;
  std::thread accept_thread_;
  std::thread::id accept_thread_id_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int, Connection*> connections_ ABSL_GUARDED_BY(mutex_);  // By socket.
  std::map<const httplib::Request*, Connection*> requests_ ABSL_GUARDED_BY(mutex_);
};

// The API key, which clients send as "Authorization: Bearer KEY": from `file`, which must belong to
// this user with mode 600 or 400, or, if `file` is empty, from `environment_value` (null or empty:
// none). White space around it is removed. Empty if there is no key. InvalidArgument or
// PermissionDenied: a key shorter than 16 characters or of several words, a file that others may
// read.
absl::StatusOr<std::string> LoadApiKey(const std::string& file, const char* environment_value);

// Whether the value of an Authorization header carries `key`. The time does not depend on where the
// two differ.
bool HasApiKey(absl::string_view authorization, const std::string& key);

// Whether a server on `host` can be reached only from this machine: 127.x.x.x, ::1, localhost.
bool IsLoopback(const std::string& host);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_HTTP_HTTP_SERVER_H_
