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

// The HTTP side of the server: connections, their threads and their limits.
//
// The key that clients give as "Authorization: Bearer KEY".

namespace tritonrl {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;               // 0: any free one.
  int max_connections = 576;  // One more is told 503 and closed. Each has a thread.
  int64_t max_header_bytes = 64 << 10;
  int64_t max_body_bytes = 4 << 20;  // As sent; a chunked body may take eight times as much.
  // From a request's first byte to its last.
  absl::Duration read_timeout = absl::Seconds(30);
  // For each piece that is sent.
  absl::Duration write_timeout = absl::Seconds(30);
  // Between two requests of a connection.
  absl::Duration idle_timeout = absl::Seconds(30);
};

// cpp-httplib's server with a loop of its own for each connection. Handlers are set with its
// methods before Start. A handler that reads a body calls BodyRead; where a request had a body that
// was not read, or could not be understood, its connection is closed after the answer.
class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(const HttpServerOptions& options);
  ~HttpServer() override;  // As Stop(absl::ZeroDuration()).

  // Listens when it returns. Unavailable: the address cannot be had.
  absl::Status Start();
  int port() const { return port_; }

  // Closes the listening socket and connections without a request at once, others when their
  // request is answered, or after `grace`; returns when all are closed.
  void Stop(absl::Duration grace);

  // For handlers. The socket on which a request came; to see whether its client is still there.
  int SocketOf(const httplib::Request& request) const;
  // Whether the request has a body that nobody has read.
  bool BodyIsUnread(const httplib::Request& request) const;
  // The whole body was read.
  void BodyRead(const httplib::Request& request);

 private:
  struct Connection {
    int fd = -1;
    bool busy = false;         // A request has begun.
    bool understood = true;    // Its head was.
    bool body_unread = false;  // Nobody has read its body.
  };

  bool process_and_close_socket(socket_t fd) override;
  void ServeRequests(SocketStream* stream, Connection* connection);
  // Whether the connection is to go on.
  bool ServeOne(SocketStream* stream, Connection* connection);
  void SetUp(httplib::Request* request, SocketStream* stream, Connection* connection);
  // Notes that a request begins or has ended; false if the server stops.
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

// The key in a file of this user with mode 600 (or 400), else that in `environment_value` (null or
// empty: none), without white space around it. Empty if `file` is empty and the environment has
// none. InvalidArgument or PermissionDenied: a key shorter than 16 characters or of several words,
// a file that others may read.
absl::StatusOr<std::string> LoadApiKey(const std::string& file, const char* environment_value);

// Whether the value of an Authorization header carries `key`; takes the same time wherever they
// differ.
bool HasApiKey(absl::string_view authorization, const std::string& key);

// Whether a server on `host` can be reached from this machine alone: 127.x.x.x, ::1, localhost.
bool IsLoopback(const std::string& host);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_SERVE_HTTP_HTTP_SERVER_H_
