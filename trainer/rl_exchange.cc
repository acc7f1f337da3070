#include "trainer/rl_exchange.h"

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

// Every field of an item, in one order for both ways.
template <typename Item, typename Visit>
void ForEachField(Item* item, const Visit& visit) {
  auto& sample = item->sample;
  visit(&sample.prompt);
  visit(&sample.response);
  visit(&sample.old_log_probs);
  visit(&sample.reference_log_probs);
  visit(&sample.proximal_log_probs);
  visit(&sample.stale_end);
  visit(&sample.plan_end);
  visit(&sample.reward_correct);
  visit(&sample.reward_speedup);
  visit(&sample.counted);
  visit(&sample.reward_plan);
  visit(&sample.reward_code);
  visit(&sample.advantage_plan);
  visit(&sample.advantage_code);
  visit(&item->group_weight);
}

}  // namespace

std::string ItemsToBytes(const std::vector<RlItem>& items) {
  Writer writer;
  for (const RlItem& item : items) {
    ForEachField(&item, [&](const auto* field) { writer.Put(*field); });
  }
  return writer.Take();
}

absl::StatusOr<std::vector<RlItem>> ItemsFromBytes(absl::string_view bytes) {
  std::vector<RlItem> items;
  for (Reader reader(bytes); !reader.done();) {
    RlItem item;
    ForEachField(&item, [&](auto* field) { reader.Get(field); });
    if (!reader.good()) return absl::DataLossError("samples of another rank are damaged");
    items.push_back(std::move(item));
  }
  return items;
}

absl::StatusOr<std::vector<RlItem>> ExchangeItems(std::vector<RlItem> items,
                                                  const SequenceCost& cost, DataParallel* ranks) {
  if (ranks->size() == 1) return items;
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, ranks->AllGather(ItemsToBytes(items)));
  std::vector<RlItem> all;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(std::vector<RlItem> others, ItemsFromBytes(text));
    for (RlItem& item : others) all.push_back(std::move(item));
  }
  std::vector<int64_t> lengths;
  for (const RlItem& item : all) {
    lengths.push_back(item.sample.length());
  }
  const std::vector<int> owners = BalanceOverRanks(lengths, ranks->size(), cost);
  std::vector<RlItem> mine;
  for (size_t i = 0; i < all.size(); ++i) {
    if (owners[i] == ranks->rank()) mine.push_back(std::move(all[i]));
  }
  return mine;
}

}  // namespace tritonrl
