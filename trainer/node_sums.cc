#include "trainer/node_sums.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "model/torch_status.h"
#include "parallel/time_buckets.h"

namespace tritonrl {
namespace {

using Json = nlohmann::ordered_json;

const char* Name(BucketWay way) { return way == BucketWay::kPlain ? "plain" : "two levels"; }

std::string Over(const NodeGrid& grid) {
  return absl::StrCat("sums over ", grid.nodes, " nodes of ", grid.ranks_per_node, " ranks: ");
}

// What the record says for this grid; nothing if there is none, or one for another grid.
absl::StatusOr<std::optional<BucketWay>> ReadRecord(const std::string& path, const NodeGrid& grid) {
  if (path.empty() || !FileExists(path)) return std::optional<BucketWay>();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    const Json json = Json::parse(text);
    const NodeGrid recorded{.nodes = json.at("nodes").get<int>(),
                            .ranks_per_node = json.at("ranks_per_node").get<int>()};
    const bool two_level = json.at("two_level").get<bool>();
    if (recorded != grid) return std::optional<BucketWay>();
    return std::optional(two_level ? BucketWay::kTwoLevel : BucketWay::kPlain);
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", error.what(), "; remove it to measure again"));
  }
}

// Rank 0's answer on every rank.
absl::StatusOr<std::optional<BucketWay>> Recorded(const std::string& path, const NodeGrid& grid,
                                                  DataParallel* ranks) {
  absl::StatusOr<std::optional<BucketWay>> found = std::optional<BucketWay>();
  if (ranks->is_root()) found = ReadRecord(path, grid);
  RETURN_IF_ERROR(ranks->Agree(found.status()));
  ASSIGN_OR_RETURN(const bool any, ranks->Any(found->has_value()));
  if (!any) return std::optional<BucketWay>();
  ASSIGN_OR_RETURN(const bool two_level, ranks->Any(*found == BucketWay::kTwoLevel));
  return std::optional(two_level ? BucketWay::kTwoLevel : BucketWay::kPlain);
}

std::string Describe(const BucketTimes& times) {
  return absl::StrFormat("%.2f ms a bucket (sum %.2f, exchange %.2f)", 1e3 * times.both(),
                         1e3 * times.reduce, 1e3 * times.gather);
}

// Times both ways, sets the faster one and keeps it.
absl::StatusOr<std::string> Measure(const std::string& record, const NodeGrid& grid,
                                    const Weights& weights, DataParallel* ranks) {
  const int64_t elements = std::min(weights.layout().flat_size, ShardPlan::kBucketElements);
  BucketTimes plain, two_level;
  RETURN_IF_ERROR(CatchTorch(
      "timing sums over nodes", "set optimizer.node_sums to PLAIN", [&]() -> absl::Status {
        const auto time = [&] {
          return TimeBuckets(elements, weights.dtype(), weights.device(), ranks);
        };
        ASSIGN_OR_RETURN(plain, time());
        RETURN_IF_ERROR(ranks->SetBucketWay(BucketWay::kTwoLevel));
        ASSIGN_OR_RETURN(two_level, time());
        return absl::OkStatus();
      }));
  const BucketWay way = two_level.both() < plain.both() ? BucketWay::kTwoLevel : BucketWay::kPlain;
  RETURN_IF_ERROR(ranks->SetBucketWay(way));
  absl::Status kept;
  if (ranks->is_root() && !record.empty()) {
    const Json json{{"nodes", grid.nodes},
                    {"ranks_per_node", grid.ranks_per_node},
                    {"two_level", way == BucketWay::kTwoLevel},
                    {"bucket_elements", elements},
                    {"plain_s", plain.both()},
                    {"two_level_s", two_level.both()}};
    kept = WriteFileAtomic(record, json.dump(2) + "\n");
  }
  RETURN_IF_ERROR(ranks->Agree(kept));
  return absl::StrCat(Over(grid), Name(way), ", as plain took ", Describe(plain),
                      " and two levels ", Describe(two_level));
}

}  // namespace

absl::StatusOr<std::string> ChooseNodeSums(const NodeSumsRequest& request, const Weights& weights,
                                           DataParallel* ranks) {
  const absl::StatusOr<NodeGrid> grid =
      ranks == nullptr ? GridOf({0}) : absl::StatusOr<NodeGrid>(ranks->Grid());
  if (request.wanted == OptimizerConfig::TWO_LEVEL) {
    if (!grid.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("optimizer.node_sums is TWO_LEVEL, but ",
                                                     Message(grid.status()),
                                                     "; set it to MEASURED or PLAIN"));
    }
    RETURN_IF_ERROR(ranks->SetBucketWay(BucketWay::kTwoLevel));
    return absl::StrCat(Over(*grid), "two levels (optimizer.node_sums)");
  }
  if (ranks == nullptr || ranks->nodes() == 1) return std::string();
  if (!grid.ok()) {
    return absl::StrCat("sums over ", ranks->nodes(), " nodes: plain, as ", Message(grid.status()));
  }
  if (request.wanted == OptimizerConfig::PLAIN) {
    return absl::StrCat(Over(*grid), "plain (optimizer.node_sums)");
  }
  if (request.deterministic) return absl::StrCat(Over(*grid), "plain (policy.deterministic)");
  ASSIGN_OR_RETURN(const std::optional<BucketWay> recorded, Recorded(request.record, *grid, ranks));
  if (!recorded.has_value()) return Measure(request.record, *grid, weights, ranks);
  RETURN_IF_ERROR(ranks->SetBucketWay(*recorded));
  return absl::StrCat(Over(*grid), Name(*recorded), ", as this run began (",
                      BaseName(request.record), ")");
}

}  // namespace tritonrl
