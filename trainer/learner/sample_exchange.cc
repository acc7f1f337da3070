#include "trainer/learner/sample_exchange.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace tritonrl {
namespace {

class Writer {
 public:
  template <typename T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void Put(const std::string& text) { Put(std::vector<char>(text.begin(), text.end())); }
  template <typename T>
  void Put(const std::vector<T>& values) {
    Put<uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Get(T* value) {
    if (!Has(sizeof(T))) return;
    std::memcpy(value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
  }
  template <typename T>
  void Get(std::vector<T>* values) {
    uint64_t size = 0;
    Get(&size);
    if (size > bytes_.size() / sizeof(T) || !Has(size * sizeof(T))) {
      good_ = false;
      return;
    }
    values->resize(size);
    if (size > 0) std::memcpy(values->data(), bytes_.data(), size * sizeof(T));
    bytes_.remove_prefix(size * sizeof(T));
  }
  void Get(std::string* text) {
    std::vector<char> characters;
    Get(&characters);
    text->assign(characters.begin(), characters.end());
  }
  bool good() const { return good_; }
  bool done() const { return bytes_.empty() || !good_; }

 private:
  bool Has(size_t size) {
    good_ = good_ && bytes_.size() >= size;
    return good_;
  }

  absl::string_view bytes_;
  bool good_ = true;
};

// Visits every field of a sample in the order that writer and reader share.
template <typename Sample, typename Visit>
void ForEachField(Sample* sample, const Visit& visit) {
  visit(&sample->prompt);
  visit(&sample->response);
  visit(&sample->old_log_probs);
  visit(&sample->reference_log_probs);
  visit(&sample->proximal_log_probs);
  visit(&sample->stale_end);
  visit(&sample->plan_end);
  visit(&sample->reward_correct);
  visit(&sample->reward_speedup);
  visit(&sample->counted);
  visit(&sample->reward_plan);
  visit(&sample->reward_code);
  visit(&sample->advantage_plan);
  visit(&sample->advantage_code);
}

absl::Status Damaged() { return absl::DataLossError("samples of another rank are damaged"); }

}  // namespace

std::string SerializeSamples(const std::vector<WeightedSample>& items) {
  Writer writer;
  for (const WeightedSample& item : items) {
    ForEachField(&item.sample, [&](const auto* field) { writer.Put(*field); });
    writer.Put(item.group_weight);
  }
  return writer.Take();
}

absl::StatusOr<std::vector<WeightedSample>> ParseSamples(absl::string_view bytes) {
  std::vector<WeightedSample> items;
  for (Reader reader(bytes); !reader.done();) {
    WeightedSample item;
    ForEachField(&item.sample, [&](auto* field) { reader.Get(field); });
    reader.Get(&item.group_weight);
    if (!reader.good()) return Damaged();
    items.push_back(std::move(item));
  }
  return items;
}

std::string SerializeGroups(const std::vector<PlacedGroup>& groups) {
  Writer writer;
  for (const PlacedGroup& placed : groups) {
    writer.Put(placed.slot);
    writer.Put(placed.group.task_id);
    writer.Put<uint64_t>(placed.group.samples.size());
    for (const RlSample& sample : placed.group.samples) {
      ForEachField(&sample, [&](const auto* field) { writer.Put(*field); });
    }
  }
  return writer.Take();
}

absl::StatusOr<std::vector<PlacedGroup>> ParseGroups(absl::string_view bytes) {
  std::vector<PlacedGroup> groups;
  for (Reader reader(bytes); !reader.done();) {
    PlacedGroup placed;
    uint64_t samples = 0;
    reader.Get(&placed.slot);
    reader.Get(&placed.group.task_id);
    reader.Get(&samples);
    for (uint64_t i = 0; i < samples && reader.good(); ++i) {
      RlSample& sample = placed.group.samples.emplace_back();
      ForEachField(&sample, [&](auto* field) { reader.Get(field); });
    }
    if (!reader.good()) return Damaged();
    groups.push_back(std::move(placed));
  }
  return groups;
}

absl::StatusOr<RlBatch> RedistributeGroups(const std::vector<PlacedGroup>& groups, int index,
                                           int count, ProcessGroup* ranks) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ranks->AllGather(SerializeGroups(groups)));
  RlBatch batch;
  if (index < 0) return batch;
  std::vector<PlacedGroup> mine;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(std::vector<PlacedGroup> all, ParseGroups(text));
    for (PlacedGroup& placed : all) {
      if (placed.slot % count == index) mine.push_back(std::move(placed));
    }
  }
  std::sort(mine.begin(), mine.end(),
            [](const PlacedGroup& a, const PlacedGroup& b) { return a.slot < b.slot; });
  for (PlacedGroup& placed : mine) batch.push_back(std::move(placed.group));
  return batch;
}

std::vector<int64_t> SequenceLengths(std::span<const WeightedSample> items) {
  std::vector<int64_t> lengths;
  for (const WeightedSample& item : items) lengths.push_back(item.sample.length());
  return lengths;
}

absl::StatusOr<std::vector<WeightedSample>> BalanceSamples(std::vector<WeightedSample> items,
                                                           const SequenceCost& cost,
                                                           ProcessGroup* ranks) {
  if (ranks->size() == 1) return items;
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ranks->AllGather(SerializeSamples(items)));
  std::vector<WeightedSample> all;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(std::vector<WeightedSample> others, ParseSamples(text));
    for (WeightedSample& item : others) all.push_back(std::move(item));
  }
  const std::vector<int> owners = BalanceOverRanks(SequenceLengths(all), ranks->size(), cost);
  std::vector<WeightedSample> mine;
  for (size_t i = 0; i < all.size(); ++i) {
    if (owners[i] == ranks->rank()) mine.push_back(std::move(all[i]));
  }
  return mine;
}

}  // namespace tritonrl
