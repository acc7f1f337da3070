#include "trainer/same_config.h"

#include <google/protobuf/util/message_differencer.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace tritonrl {
namespace {

using ProtoMessage = google::protobuf::Message;  // Message() is of base/status.h

// One line for each field: "modified: optimizer.learning_rate: 0.0001 -> 1e-05".
std::string Differences(const ProtoMessage& ours, const ProtoMessage& theirs) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string text;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(ours, theirs);
  absl::StripAsciiWhitespace(&text);
  return absl::StrReplaceAll(text, {{"\n", "; "}});
}

}  // namespace

absl::Status SameConfigOnAllRanks(const ProtoMessage& config, DataParallel* ranks) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   ranks->AllGather(config.SerializeAsString()));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::unique_ptr<ProtoMessage> first(config.New()), other(config.New());
    if (!first->ParseFromString(all[0]) || !other->ParseFromString(all[rank])) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " runs another version of this program than rank 0"));
    }
    const std::string differences = Differences(*first, *other);
    if (differences.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " has another configuration than rank 0: ", differences,
                     "; start all ranks with the same one"));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
