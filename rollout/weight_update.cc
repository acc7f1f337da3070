#include "rollout/weight_update.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace tritonrl {
namespace {

constexpr int64_t kAlignment = 64;  // elements, as parameters begin in the flat buffer

int64_t AlignUp(int64_t element) { return (element + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status NoUpdate() {
  return absl::DataLossError("what another rank sent is no update of these weights");
}

}  // namespace

int64_t WeightUpdate::elements() const {
  int64_t count = 0;
  for (const FlatRange& piece : pieces) count += piece.size();
  return count;
}

absl::StatusOr<std::vector<FlatRange>> ChangedPieces(const ParameterLayout& layout,
                                                     const std::vector<std::string>* changed,
                                                     int64_t bucket_elements) {
  std::vector<FlatRange> ranges;
  if (changed == nullptr) {
    ranges.push_back({0, layout.flat_size});
  } else {
    for (const std::string& name : *changed) {
      const auto found = std::find_if(layout.parameters.begin(), layout.parameters.end(),
                                      [&](const ParameterInfo& info) { return info.name == name; });
      if (found == layout.parameters.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the model has no parameter \"", name, "\" whose change could be sent"));
      }
      ranges.push_back({found->offset, AlignUp(found->offset + found->size)});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const FlatRange& a, const FlatRange& b) { return a.begin < b.begin; });
  std::vector<FlatRange> pieces;
  for (size_t i = 0; i < ranges.size();) {
    FlatRange whole = ranges[i];
    for (++i; i < ranges.size() && ranges[i].begin <= whole.end; ++i) {
      whole.end = std::max(whole.end, ranges[i].end);
    }
    for (int64_t begin = whole.begin; begin < whole.end; begin += bucket_elements) {
      pieces.push_back({begin, std::min(whole.end, begin + bucket_elements)});
    }
  }
  return pieces;
}

std::string UpdateToText(const WeightUpdate& update) {
  const auto range = [](std::string* out, const FlatRange& piece) {
    absl::StrAppend(out, " ", piece.begin, " ", piece.end);
  };
  return absl::StrCat(update.version, absl::StrJoin(update.pieces, "", range));
}

absl::StatusOr<WeightUpdate> UpdateFromText(const std::string& text, int64_t flat_size) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  WeightUpdate update;
  if (words.size() % 2 != 1 || !absl::SimpleAtoi(words[0], &update.version)) return NoUpdate();
  int64_t last = 0;
  for (size_t i = 1; i < words.size(); i += 2) {
    FlatRange piece;
    if (!absl::SimpleAtoi(words[i], &piece.begin) || !absl::SimpleAtoi(words[i + 1], &piece.end) ||
        piece.begin < last || piece.end <= piece.begin || piece.end > flat_size ||
        piece.begin % kAlignment != 0 || piece.end % kAlignment != 0) {
      return NoUpdate();
    }
    last = piece.end;
    update.pieces.push_back(piece);
  }
  return update;
}

std::string DescribeWeights(const Weights& weights) {
  const ModelConfig& config = weights.config();
  std::string text = absl::StrCat(
      weights.device().is_cuda() ? "weights on a GPU" : "weights on the CPU", "\n",
      config.num_heads, " heads, ", config.num_kv_heads, " of keys and values, RoPE's theta ",
      config.rope_theta, ", epsilon ", config.rms_norm_eps);
  const char* type = at::toString(weights.dtype());
  for (const ParameterInfo& info : weights.layout().parameters) {
    absl::StrAppend(&text, "\n", info.name, " ", type, " [", absl::StrJoin(info.shape, ", "), "]");
  }
  return text;
}

absl::Status SameDescriptions(const std::vector<std::string>& descriptions) {
  const std::vector<std::string> first = absl::StrSplit(descriptions[0], '\n');
  for (size_t rank = 1; rank < descriptions.size(); ++rank) {
    if (descriptions[rank] == descriptions[0]) continue;
    const std::vector<std::string> other = absl::StrSplit(descriptions[rank], '\n');
    size_t line = 0;
    while (line < first.size() && line < other.size() && first[line] == other[line]) ++line;
    const auto text = [line](const std::vector<std::string>& lines) {
      return line < lines.size() ? lines[line] : std::string("nothing more");
    };
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " cannot get the weights of rank 0, which are others: it has ",
                     text(other), " where rank 0 has ", text(first), "; load the same model"));
  }
  return absl::OkStatus();
}

std::vector<uint64_t> PieceSums(const at::Tensor& flat, const std::vector<FlatRange>& pieces) {
  if (pieces.empty()) return {};
  std::vector<at::Tensor> sums;
  for (const FlatRange& piece : pieces) {
    sums.push_back(flat.narrow(0, piece.begin, piece.size()).view(at::kLong).sum());
  }
  const at::Tensor all = at::stack(sums).cpu();
  const int64_t* data = all.const_data_ptr<int64_t>();
  return std::vector<uint64_t>(data, data + all.numel());
}

std::string ArrivalToText(uint64_t version, const std::vector<uint64_t>& sums) {
  return absl::StrCat(version, " ", absl::StrJoin(sums, " "));
}

absl::Status SameArrivals(const std::vector<std::string>& arrivals,
                          const std::vector<FlatRange>& pieces) {
  const std::vector<absl::string_view> first = absl::StrSplit(arrivals[0], ' ');
  for (size_t rank = 1; rank < arrivals.size(); ++rank) {
    if (arrivals[rank] == arrivals[0]) continue;
    const std::vector<absl::string_view> other = absl::StrSplit(arrivals[rank], ' ');
    if (other.size() != first.size() || other[0] != first[0]) {
      return absl::DataLossError(absl::StrCat("rank ", rank, " has weights of version ", other[0],
                                              ", rank 0 has sent version ", first[0]));
    }
    const auto differ = std::mismatch(first.begin(), first.end(), other.begin()).first;
    const FlatRange& piece = pieces[differ - first.begin() - 1];
    return absl::DataLossError(absl::StrCat(
        "elements ", piece.begin, " to ", piece.end, " of the weights are others on rank ", rank,
        " than on rank 0: the transfer damaged them, or they were changed before its end"));
  }
  return absl::OkStatus();
}

}  // namespace tritonrl
