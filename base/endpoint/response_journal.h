// The journal of an endpoint's responses, a JSONL file: its lines and their readers.
#ifndef TRITONRL_BASE_ENDPOINT_RESPONSE_JOURNAL_H_
#define TRITONRL_BASE_ENDPOINT_RESPONSE_JOURNAL_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/endpoint/message.h"
#include "base/jsonl.h"

namespace tritonrl {

// A line of the journal. A key has at most one accepted response, and any number of refused ones.
struct StoredResponse {
  std::string key;
  std::string request_hash;   // of the item's request; a repeated request may have another seed
  std::string refused;        // why the response is in another form than asked for; "": accepted
  EndpointResponse response;  // without `raw`
  int64_t offset = 0;         // of the line in the journal, for ReadResponseAt
  int64_t bytes = 0;
};

// The line, without a line break.
std::string ResponseLine(const StoredResponse& stored);

// Parses a line of the journal `path`. DataLoss names file and line.
absl::StatusOr<StoredResponse> ParseResponseLine(const std::string& path, const Line& line);

// Passes each accepted response of a journal, or each response if `with_refused`, to `each` in the
// file's order, until it returns an error.
absl::Status ReadResponses(const std::string& journal,
                           absl::FunctionRef<absl::Status(StoredResponse)> each,
                           bool with_refused = false);

// Reads the response of one line, by `offset` and `bytes` as ReadResponses gave them.
absl::StatusOr<StoredResponse> ReadResponseAt(const std::string& journal, int64_t offset,
                                              int64_t bytes);

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_RESPONSE_JOURNAL_H_
