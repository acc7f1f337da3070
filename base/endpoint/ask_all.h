// Asks an endpoint many requests and keeps each response in a journal, from which a killed run goes
// on without asking anything twice.
#ifndef TRITONRL_BASE_ENDPOINT_ASK_ALL_H_
#define TRITONRL_BASE_ENDPOINT_ASK_ALL_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/client.h"
#include "base/endpoint/message.h"

namespace tritonrl {

// One request of a run.
struct AskItem {
  std::string key;  // unique in the run and the same in each run: "level1/07_softmax#3"
  EndpointRequest request;
};

struct AskAllOptions {
  // JSONL file (response_journal.h), made with its folder if it is missing.
  std::string journal;
  std::string label = "responses";  // of the progress bar
  // Requests that end with an error one after another before the run gives up; 0: any number.
  int max_failures_in_a_row = 20;
  std::function<bool()> stop = [] { return false; };  // true: start no further request
  // Whether the journal's responses count for the client's cost ceiling. False if an earlier call
  // with the same client has counted them.
  bool count_earlier = true;
  // Refuses a response in another form than asked for; may be null. `raw` is not set. The request
  // is then sent again with another seed, until the client's max_attempts responses of this run are
  // refused.
  std::function<absl::Status(const EndpointResponse&)> check;
  std::FILE* messages = stderr;  // progress, and the first failures
};

struct AskAllSummary {
  int64_t total = 0;
  int64_t earlier = 0;       // accepted responses that the journal held before
  int64_t answered = 0;      // accepted responses of this run, all in the journal
  int64_t refused = 0;       // responses of this run in another form, all in the journal
  int64_t failed = 0;        // requests without such a response; the next run asks them again
  bool interrupted = false;  // `stop` returned true
  // The endpoint's error that ended the run early: a refused key, a reached cost ceiling, too many
  // failures in a row. OK if all requests were sent.
  absl::Status ended;
  std::vector<std::string> failures;  // one sentence for each of the first 20
};

// Sends item(0), ..., item(count - 1), except those whose accepted response is in the journal.
// Responses of earlier runs, refused ones included, count for the client's cost ceiling (see
// count_earlier). A response is in the journal before the next call of `stop`, and a refused one
// before its request is sent again. After `stop` returns true, or after an error that ends all
// requests, requests in flight are waited for and kept.
//
// If a request has a seed, each refused response of its key, those of earlier runs included,
// changes the seed: the same request might get the same response.
//
// Before a request is sent, the journal reserves room on the disk for its response and all others
// under way (MostBytes), so that a full disk loses no response. Without that room fewer requests
// are sent at a time; if not even one response fits, the run ends with ResourceExhausted.
//
// Errors: FailedPrecondition if the journal holds the accepted response to another request with the
// same key, or another process writes it; DataLoss for a line that is not a response or a second
// accepted one for its key; those of the file. A response that cannot be written, on a file system
// without reservations, is kept in memory, and written with the next.
absl::StatusOr<AskAllSummary> AskAll(int64_t count,
                                     absl::FunctionRef<absl::StatusOr<AskItem>(int64_t index)> item,
                                     const AskAllOptions& options, EndpointClient* client);

// "1.2M tokens, $3.45, 2 retries": for progress lines and summaries.
std::string CountsText(const EndpointCounts& counts);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_ASK_ALL_H_
