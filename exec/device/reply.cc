#include "exec/device/reply.h"

#include <utility>

#include "base/status.h"
#include "exec/device/value_writer.h"

namespace tritonrl::device {
namespace {

absl::StatusOr<Json> DescribeResult(const Placed& placed, StorageTable& memory,
                                    std::string& payload) {
  if (placed.argument < 0) {
    if (placed.is_new) return DescribeTensor(placed.tensor, memory);
    return ValueToJson(placed.other, payload);
  }
  Json json = {{"arg", placed.argument}};
  if (placed.is_new) json["meta"] = DescribeTensor(placed.tensor, memory)["new"];
  return json;
}

}  // namespace

Json DescribeTensor(const TensorRef& tensor, StorageTable& memory) {
  const Storage& storage = *memory.Find(tensor.storage);
  return {{"new",
           {{"storage", storage.number},
            {"address", reinterpret_cast<uint64_t>(storage.place)},
            {"nbytes", storage.bytes},
            {"dtype", std::string(NameOf(tensor.dtype))},
            {"shape", tensor.shape},
            {"stride", tensor.stride},
            {"offset", tensor.offset}}}};
}

absl::StatusOr<Json> DescribeResults(const std::vector<PlacedList>& results, StorageTable& memory,
                                     std::string& payload) {
  Json all = Json::array();
  for (const PlacedList& list : results) {
    Json items = Json::array();
    for (const Placed& placed : list.items) {
      ASSIGN_OR_RETURN(Json json, DescribeResult(placed, memory, payload));
      items.push_back(std::move(json));
    }
    all.push_back(list.is_list ? std::move(items) : std::move(items.at(0)));
  }
  if (all.empty()) return Json();
  if (all.size() == 1) return std::move(all.at(0));
  return Json{{"tuple", std::move(all)}};
}

Reply ErrorReply(const absl::Status& status) {
  Reply reply;
  const char* const kind = absl::IsPermissionDenied(status) ? "refused" : "error";
  reply.header[kind] = Message(status);
  return reply;
}

absl::StatusOr<Value> PlaceInputs(const Value& value, Device& device,
                                  std::vector<WrittenInput>& placed) {
  if (value.kind == Value::Kind::kHost) {
    TensorRef tensor;
    tensor.dtype = value.host.scalar_type();
    tensor.shape = value.host.sizes().vec();
    tensor.stride = value.host.strides().vec();
    if (NameOf(tensor.dtype).empty()) return absl::InternalError("an input of a type not held");
    ASSIGN_OR_RETURN(const int64_t span, SpanOf(tensor));
    ASSIGN_OR_RETURN(const Storage* storage,
                     device.memory().Allocate(span * BytesOf(tensor.dtype), tensor.dtype));
    tensor.storage = storage->number;
    ASSIGN_OR_RETURN(WrittenInput written, WriteInput(value.host, tensor, device));
    placed.push_back(std::move(written));
    return Value::Tensor(std::move(tensor));
  }
  Value copy = value;
  for (Value& item : copy.items) {
    ASSIGN_OR_RETURN(item, PlaceInputs(item, device, placed));
  }
  return copy;
}

}  // namespace tritonrl::device
