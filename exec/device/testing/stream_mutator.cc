#include "exec/device/testing/stream_mutator.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "exec/device/init_operators.h"
#include "exec/device/testing/honest_streams.h"

namespace tritonrl::device {

StreamMutator::StreamMutator(const std::mt19937& random)
    : streams_(HonestStreams()), random_(random) {
  for (const auto& stream : streams_) {
    for (const Frame& frame : stream) Collect(Json::parse(frame.header));
  }
}

void StreamMutator::Collect(const Json& json) {
  words_.push_back(json);
  if (json.is_structured()) {
    for (const Json& item : json) Collect(item);
  }
}

void StreamMutator::DamageBytes(std::vector<Frame>& stream) {
  Frame& frame = stream[Pick(stream.size())];
  std::string& bytes = frame.payload.empty() || Pick(4) > 0 ? frame.header : frame.payload;
  for (size_t changes = 1 + Pick(3); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = Pick(bytes.size());
    switch (Pick(5)) {
      case 0:
        bytes[at] = static_cast<char>(Pick(256));
        break;
      case 1:
        bytes[at] = "0123456789-.eE\"[]{},:"[Pick(21)];
        break;
      case 2:
        bytes.erase(at, 1 + Pick(8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(Pick(bytes.size()), Pick(20)));
        break;
      default:
        bytes.insert(at, 1, static_cast<char>('0' + Pick(10)));
    }
  }
}

void StreamMutator::DamageValues(std::vector<Frame>& stream) {
  if (Pick(8) == 0) DamageOrder(stream);
  Frame& frame = stream[Pick(stream.size())];
  Json json = Json::parse(frame.header);
  for (size_t changes = 1 + Pick(2); changes > 0; --changes) DamageOne(json);
  frame.header = WriteJson(json);
}

void StreamMutator::DamageOperator(std::vector<Frame>& stream) {
  static const std::vector<std::string> names = InitOperators();
  static const char* const overloads[] = {"",    "Tensor", "Scalar", "out",
                                          "dim", "int",    "self",   "default"};
  std::vector<size_t> places;
  for (size_t i = 0; i < stream.size(); ++i) {
    if (absl::StrContains(stream[i].header, R"("do":"op")")) places.push_back(i);
  }
  Json json = Json::parse(stream[places[Pick(places.size())]].header);
  json["name"] = names[Pick(names.size())] + (Pick(3) == 0 ? "_" : "");
  json["overload"] = overloads[Pick(8)];
  Json& args = json["args"];
  if (Pick(3) == 0) args = Json::array();
  for (size_t i = 0; i <= Pick(3); ++i) args.push_back(Word());
  if (Pick(2) == 0) json["kwargs"] = {{"dict", Json::array()}};
  const size_t at = Pick(2) == 0 ? 3 : stream.size() - 1;  // in init, or late in forward
  stream.insert(stream.begin() + static_cast<int64_t>(at), {WriteJson(json), ""});
}

Json StreamMutator::Word() {
  switch (Pick(4)) {
    case 0: {
      const int64_t numbers[] = {
          0, 1, 2, 3, -1, 4, 16, 65, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN, int64_t{1} << 61};
      return numbers[Pick(13)];
    }
    case 1: {
      const double numbers[] = {0.5, -1.0, 1e300, 1e-300, 4.0};
      return numbers[Pick(5)];
    }
    default:
      return words_[Pick(words_.size())];
  }
}

void StreamMutator::DamageOne(Json& json) {
  Json* at = &json;
  while (at->is_structured() && !at->empty() && Pick(6) > 0) {
    at = &*std::next(at->begin(), static_cast<int64_t>(Pick(at->size())));
  }
  if (at->is_array() && !at->empty() && Pick(2) == 0) {
    if (Pick(2) == 0) {
      at->erase(Pick(at->size()));
    } else {
      at->push_back(Word());
    }
    return;
  }
  if (at->is_object() && !at->empty() && Pick(2) == 0) {
    at->erase(std::next(at->begin(), static_cast<int64_t>(Pick(at->size()))).key());
    return;
  }
  *at = Word();
}

void StreamMutator::DamageOrder(std::vector<Frame>& stream) {
  const size_t from = Pick(stream.size());
  const size_t to = Pick(stream.size());
  if (Pick(2) == 0) {
    std::swap(stream[from], stream[to]);
  } else {
    stream.insert(stream.begin() + static_cast<int64_t>(to), stream[from]);
  }
}

}  // namespace tritonrl::device
