#include "rollout/distributed/weight_broadcast.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "model/torch_runtime.h"

namespace tritonrl {

namespace {

constexpr int64_t kAlignment = 64;  // elements; alignment of parameters in the flat buffer

int64_t AlignUp(int64_t element) { return (element + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status MalformedUpdate() {
  return absl::DataLossError("a message of another rank is not an update of these weights");
}

}  // namespace

int64_t WeightUpdate::elements() const {
  int64_t count = 0;
  for (const FlatRange& bucket : buckets) count += bucket.size();
  return count;
}

absl::StatusOr<std::vector<FlatRange>> ChangedBuckets(const ParameterLayout& layout,
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
  std::vector<FlatRange> buckets;
  for (size_t i = 0; i < ranges.size();) {
    FlatRange whole = ranges[i];
    for (++i; i < ranges.size() && ranges[i].begin <= whole.end; ++i) {
      whole.end = std::max(whole.end, ranges[i].end);
    }
    for (int64_t begin = whole.begin; begin < whole.end; begin += bucket_elements) {
      buckets.push_back({begin, std::min(whole.end, begin + bucket_elements)});
    }
  }
  return buckets;
}

std::string EncodeUpdate(const WeightUpdate& update) {
  const auto range = [](std::string* out, const FlatRange& bucket) {
    absl::StrAppend(out, " ", bucket.begin, " ", bucket.end);
  };
  return absl::StrCat(update.version, absl::StrJoin(update.buckets, "", range));
}

absl::StatusOr<WeightUpdate> DecodeUpdate(const std::string& text, int64_t flat_size) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  WeightUpdate update;
  if (words.size() % 2 != 1 || !absl::SimpleAtoi(words[0], &update.version))
    return MalformedUpdate();
  int64_t last = 0;
  for (size_t i = 1; i < words.size(); i += 2) {
    FlatRange bucket;
    if (!absl::SimpleAtoi(words[i], &bucket.begin) ||
        !absl::SimpleAtoi(words[i + 1], &bucket.end) || bucket.begin < last ||
        bucket.end <= bucket.begin || bucket.end > flat_size || bucket.begin % kAlignment != 0 ||
        bucket.end % kAlignment != 0) {
      return MalformedUpdate();
    }
    last = bucket.end;
    update.buckets.push_back(bucket);
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

absl::Status CompareDescriptions(const std::vector<std::string>& descriptions) {
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
        absl::StrCat("rank ", rank, " cannot receive the weights of rank 0, which differ: it has ",
                     text(other), " where rank 0 has ", text(first), "; load the same model"));
  }
  return absl::OkStatus();
}

std::vector<uint64_t> BucketChecksums(const at::Tensor& flat,
                                      const std::vector<FlatRange>& buckets) {
  if (buckets.empty()) return {};
  std::vector<at::Tensor> sums;
  for (const FlatRange& bucket : buckets) {
    sums.push_back(flat.narrow(0, bucket.begin, bucket.size()).view(at::kLong).sum());
  }
  const at::Tensor all = at::stack(sums).cpu();
  const int64_t* data = all.const_data_ptr<int64_t>();
  return std::vector<uint64_t>(data, data + all.numel());
}

std::string EncodeArrival(uint64_t version, const std::vector<uint64_t>& sums) {
  return absl::StrCat(version, " ", absl::StrJoin(sums, " "));
}

absl::Status CompareArrivals(const std::vector<std::string>& arrivals,
                             const std::vector<FlatRange>& buckets) {
  const std::vector<absl::string_view> first = absl::StrSplit(arrivals[0], ' ');
  for (size_t rank = 1; rank < arrivals.size(); ++rank) {
    if (arrivals[rank] == arrivals[0]) continue;
    const std::vector<absl::string_view> other = absl::StrSplit(arrivals[rank], ' ');
    if (other.size() != first.size() || other[0] != first[0]) {
      return absl::DataLossError(absl::StrCat("rank ", rank, " has weights of version ", other[0],
                                              ", rank 0 has sent version ", first[0]));
    }
    const auto differ = std::mismatch(first.begin(), first.end(), other.begin()).first;
    const FlatRange& bucket = buckets[differ - first.begin() - 1];
    return absl::DataLossError(absl::StrCat(
        "elements ", bucket.begin, " to ", bucket.end, " of the weights differ between rank ", rank,
        " and rank 0: the transfer damaged them, or they were changed before its end"));
  }
  return absl::OkStatus();
}

namespace {

constexpr char kOperation[] = "the broadcast of weights";

// The checksums and the copies through host memory need little memory compared with the weights.
template <typename Work>
absl::Status Guard(Work&& work) {
  return CatchTorch(kOperation, "leave the engine less memory", std::forward<Work>(work));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightBroadcast>> WeightBroadcast::Join(
    std::shared_ptr<Weights> weights, ProcessGroup* group, int64_t bucket_elements) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, group->AllGather(DescribeWeights(*weights)));
  RETURN_IF_ERROR(CompareDescriptions(all));
  return std::unique_ptr<WeightBroadcast>(
      new WeightBroadcast(std::move(weights), group, bucket_elements));
}

absl::Status WeightBroadcast::Send(uint64_t version,
                                   const std::optional<std::vector<std::string>>& changed) {
  if (!group_->is_root()) return absl::InternalError("only rank 0 of a group sends weights");
  const absl::Time began = absl::Now();
  WeightUpdate update{.version = version};
  ASSIGN_OR_RETURN(update.buckets,
                   ChangedBuckets(weights_->layout(), changed.has_value() ? &*changed : nullptr,
                                  bucket_elements_));
  std::string text = EncodeUpdate(update);
  RETURN_IF_ERROR(group_->Broadcast(&text));
  RETURN_IF_ERROR(group_->AllReduceStatus(absl::OkStatus()));
  return Guard([&] { return Exchange(update, began); });
}

absl::Status WeightBroadcast::Exchange(const WeightUpdate& update, absl::Time began) {
  const absl::Time agreed = absl::Now();
  const at::Tensor& flat = weights_->flat();
  if (group_->size() > 1) {
    for (const FlatRange& bucket : update.buckets) {
      RETURN_IF_ERROR(
          group_->collectives()->Broadcast(flat.narrow(0, bucket.begin, bucket.size()), 0));
    }
  }
  // The sender computes its checksums during the transfer, the receivers after it.
  std::vector<uint64_t> sums;
  if (group_->is_root()) sums = BucketChecksums(flat, update.buckets);
  if (group_->size() > 1) RETURN_IF_ERROR(group_->collectives()->Wait(kOperation));
  const absl::Time arrived = absl::Now();
  if (!group_->is_root()) sums = BucketChecksums(flat, update.buckets);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   group_->AllGather(EncodeArrival(update.version, sums)));
  RETURN_IF_ERROR(CompareArrivals(all, update.buckets));
  times_ = {.bytes = update.elements() * static_cast<int64_t>(flat.element_size()),
            .agreement = agreed - began,
            .transfer = arrived - agreed,
            .comparison = absl::Now() - arrived};
  version_ = update.version;
  return absl::OkStatus();
}

absl::StatusOr<WeightUpdate> WeightBroadcast::Await(Engine* engine, const ReceiveOptions& options) {
  std::string text;
  RETURN_IF_ERROR(group_->Broadcast(&text));
  absl::StatusOr<WeightUpdate> update = DecodeUpdate(text, weights_->layout().flat_size);
  absl::Status ready = update.status();
  if (ready.ok() && options.expected.value_or(update->version) != update->version) {
    ready = absl::FailedPreconditionError(absl::StrCat("weights of version ", *options.expected,
                                                       " were expected and version ",
                                                       update->version, " was sent"));
  }
  bool begun = false;
  // After a failed update the engine is still in that update.
  if (ready.ok() && !in_update_) {
    ready = options.pause.has_value() ? engine->PauseForWeightUpdate(*options.pause)
                                      : engine->BeginWeightUpdate();
    begun = ready.ok();
  }
  const absl::Status agreed = group_->AllReduceStatus(ready);
  if (!agreed.ok() && begun) engine->EndWeightUpdate(version_);
  RETURN_IF_ERROR(agreed);
  in_update_ = true;
  return update;
}

absl::StatusOr<uint64_t> WeightBroadcast::Receive(Engine* engine, const ReceiveOptions& options) {
  if (group_->is_root()) return absl::InternalError("rank 0 of a group receives no weights");
  const absl::Time began = absl::Now();
  ASSIGN_OR_RETURN(const WeightUpdate update, Await(engine, options));
  RETURN_IF_ERROR(Guard([&] { return Exchange(update, began); }));
  engine->EndWeightUpdate(version_);
  in_update_ = false;
  return version_;
}

}  // namespace tritonrl
