#include "base/endpoint/http_transfers.h"

#include <curl/curl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tritonrl {

namespace {

// curl_global_init must be called once per process, before other calls.
void InitCurlOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

// Idle connections that are kept for later requests.
constexpr long kKeptConnections = 1024;

struct Transfer {
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }

  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  HttpRequest request;  // libcurl reads its body during the transfer
  HttpReply reply;
  int64_t max_body_bytes = 0;
  bool too_long = false;
  char error[CURL_ERROR_SIZE] = {};
};

size_t TakeBody(char* data, size_t size, size_t count, void* to) {
  auto* transfer = static_cast<Transfer*>(to);
  const size_t bytes = size * count;
  if (static_cast<int64_t>(transfer->reply.body.size() + bytes) > transfer->max_body_bytes) {
    transfer->too_long = true;
    return 0;  // ends the transfer with an error
  }
  transfer->reply.body.append(data, bytes);
  return bytes;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* to) {
  auto* transfer = static_cast<Transfer*>(to);
  const absl::string_view line(data, size * count);
  for (const auto& [name, value] : {std::pair("retry-after:", &transfer->reply.retry_after),
                                    std::pair("location:", &transfer->reply.location)}) {
    if (!absl::StartsWithIgnoreCase(line, name)) continue;
    *value =
        std::string(absl::StripAsciiWhitespace(line.substr(std::char_traits<char>::length(name))));
  }
  return size * count;
}

class CurlTransfers : public HttpTransfers {
 public:
  CurlTransfers(CURLM* multi, int64_t max_body_bytes, absl::Duration connect_timeout)
      : multi_(multi), max_body_bytes_(max_body_bytes), connect_timeout_(connect_timeout) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kKeptConnections);
  }

  ~CurlTransfers() override {
    for (auto& [easy, transfer] : transfers_) curl_multi_remove_handle(multi_, easy);
    transfers_.clear();
    curl_multi_cleanup(multi_);
  }

  absl::Status Start(int64_t id, HttpRequest request) override {
    auto transfer = std::make_unique<Transfer>();
    transfer->easy = curl_easy_init();
    if (transfer->easy == nullptr) return absl::ResourceExhaustedError("libcurl gives no handle");
    transfer->request = std::move(request);
    transfer->reply.id = id;
    transfer->max_body_bytes = max_body_bytes_;
    SetUp(transfer.get());
    CURL* const easy = transfer->easy;
    const CURLMcode code = curl_multi_add_handle(multi_, easy);
    if (code != CURLM_OK) return absl::ResourceExhaustedError(curl_multi_strerror(code));
    transfers_[easy] = std::move(transfer);
    return absl::OkStatus();
  }

  std::vector<HttpReply> Wait(absl::Duration timeout) override {
    int running = 0;
    curl_multi_perform(multi_, &running);
    std::vector<HttpReply> replies = TakeFinished();
    if (!replies.empty()) return replies;
    const int64_t wait = std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout), 0, 60000);
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(wait), nullptr);
    curl_multi_perform(multi_, &running);
    return TakeFinished();
  }

  void Wake() override { curl_multi_wakeup(multi_); }

 private:
  void SetUp(Transfer* transfer) {
    CURL* const easy = transfer->easy;
    const HttpRequest& request = transfer->request;
    // An empty "Expect:" keeps libcurl from waiting a second for "100 Continue" with long prompts.
    transfer->headers = curl_slist_append(nullptr, "Expect:");
    for (const std::string& header : request.headers) {
      transfer->headers = curl_slist_append(transfer->headers, header.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    // 0 would mean no limit.
    curl_easy_setopt(
        easy, CURLOPT_TIMEOUT_MS,
        static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(request.timeout))));
    curl_easy_setopt(
        easy, CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(connect_timeout_))));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    // A reply may take minutes without a byte: keep-alive finds a peer that has gone.
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    // With HTTP/2 all requests would share one connection, and fail together when it is cut.
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &TakeBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &TakeHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
  }

  std::vector<HttpReply> TakeFinished() {
    std::vector<HttpReply> replies;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const easy = message->easy_handle;
      const CURLcode code = message->data.result;  // `message` is gone after the next call
      curl_multi_remove_handle(multi_, easy);
      const auto found = transfers_.find(easy);
      std::unique_ptr<Transfer> transfer = std::move(found->second);
      transfers_.erase(found);
      if (transfer->too_long) {
        transfer->reply.error =
            absl::StrCat("the reply is longer than ", max_body_bytes_, " bytes");
      } else if (code != CURLE_OK) {
        transfer->reply.error =
            transfer->error[0] != 0 ? transfer->error : curl_easy_strerror(code);
      } else {
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        transfer->reply.status = static_cast<int>(status);
      }
      replies.push_back(std::move(transfer->reply));
    }
    return replies;
  }

  CURLM* const multi_;
  const int64_t max_body_bytes_;
  const absl::Duration connect_timeout_;
  absl::flat_hash_map<CURL*, std::unique_ptr<Transfer>> transfers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpTransfers>> HttpTransfers::Make(int64_t max_body_bytes,
                                                                   absl::Duration connect_timeout) {
  InitCurlOnce();
  CURLM* const multi = curl_multi_init();
  if (multi == nullptr) return absl::ResourceExhaustedError("libcurl gives no handle");
  return std::make_unique<CurlTransfers>(multi, max_body_bytes, connect_timeout);
}

}  // namespace tritonrl
