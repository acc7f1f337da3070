// What an update of an engine's weights from another rank consists of, in words and numbers.
#ifndef TRITONRL_ROLLOUT_WEIGHT_UPDATE_H_
#define TRITONRL_ROLLOUT_WEIGHT_UPDATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/weights.h"
#include "parallel/flat_range.h"

namespace tritonrl {

struct WeightUpdate {
  uint64_t version = 0;
  // Of the flat buffer, in rising order; each begins and ends at a multiple of 64 elements.
  std::vector<FlatRange> pieces;
  int64_t elements() const;
};

// The parts of the flat buffer that hold the parameters `changed` (null: all of it), neighbours
// joined, cut into pieces of at most `bucket_elements` (a multiple of 64). InvalidArgument names a
// parameter that does not exist.
absl::StatusOr<std::vector<FlatRange>> ChangedPieces(const ParameterLayout& layout,
                                                     const std::vector<std::string>* changed,
                                                     int64_t bucket_elements);

// An update as text and back. DataLoss: a text that is no update of buffers of `flat_size`.
std::string UpdateToText(const WeightUpdate& update);
absl::StatusOr<WeightUpdate> UpdateFromText(const std::string& text, int64_t flat_size);

// One line for each thing in which weights must agree before one buffer can be copied over the
// other: the kind of device, what attention makes of them, each parameter with type and shape.
std::string DescribeWeights(const Weights& weights);
// OK if all ranks' descriptions are the first one's, else InvalidArgument, which names the first
// rank that has another one, and the line.
absl::Status SameDescriptions(const std::vector<std::string>& descriptions);

// Of each piece of `flat` the sum of its 64-bit words, modulo 2^64: another value in any one word
// changes it. One pass over the memory.
std::vector<uint64_t> PieceSums(const at::Tensor& flat, const std::vector<FlatRange>& pieces);

// What a rank has after an update, as text for the others.
std::string ArrivalToText(uint64_t version, const std::vector<uint64_t>& sums);
// OK if all ranks have what the first has; DataLoss names the first rank that has another version
// or another sum, and the piece.
absl::Status SameArrivals(const std::vector<std::string>& arrivals,
                          const std::vector<FlatRange>& pieces);

}  // namespace tritonrl

#endif  // TRITONRL_ROLLOUT_WEIGHT_UPDATE_H_
