#include "exec/executor/value_message.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "exec/device/geometry.h"
#include "exec/device/limits.h"
#include "exec/device/torch_errors.h"

namespace tritonrl::executor {
namespace {

using device::BytesOf;
using device::TensorRef;
using Kind = device::Value::Kind;

constexpr size_t kMaxText = 8 << 20;

absl::Status Nonsense(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("a message has ", what));
}

void WriteForm(at::ScalarType dtype, at::IntArrayRef shape, at::IntArrayRef stride,
               TensorForm* form) {
  form->set_dtype(std::string(device::NameOf(dtype)));
  for (const int64_t size : shape) form->add_shape(size);
  for (const int64_t step : stride) form->add_stride(step);
}

// A tensor from the begin of its storage on.
absl::StatusOr<TensorRef> ReadForm(const TensorForm& form) {
  const auto dtype = device::ParseScalarType(form.dtype());
  if (!dtype.has_value() || form.dtype().empty()) return Nonsense("a tensor of an unknown type");
  if (form.shape_size() > device::kMaxRank || form.shape_size() != form.stride_size()) {
    return Nonsense("a tensor with too many sizes, or other strides than sizes");
  }
  TensorRef tensor;
  tensor.dtype = *dtype;
  tensor.shape.assign(form.shape().begin(), form.shape().end());
  tensor.stride.assign(form.stride().begin(), form.stride().end());
  return tensor;
}

class Reader {
 public:
  explicit Reader(absl::Span<const Region> regions) : regions_(regions) {}

  absl::StatusOr<device::Value> Read(const Value& message) {
    if (++nodes_ > device::kMaxJsonNodes) return Nonsense("too many values");
    if (message.kind() > static_cast<uint32_t>(Kind::kConfig)) return Nonsense("an unknown value");
    if (message.text().size() > kMaxText) return Nonsense("a text that is too long");
    device::Value value;
    value.kind = static_cast<Kind>(message.kind());
    value.is_unsigned = message.is_unsigned();
    value.integer = message.integer();
    value.number = message.number();
    value.imaginary = message.imaginary();
    value.text = message.text();
    RETURN_IF_ERROR(CheckInteger(value));
    if (value.kind == Kind::kTensor) {
      ASSIGN_OR_RETURN(value.tensor, ReadTensorRef(message.tensor()));
    } else if (value.kind == Kind::kHost) {
      ASSIGN_OR_RETURN(value.host, ReadTensor(message.host(), regions_));
    }
    RETURN_IF_ERROR(ReadItems(message, &value));
    return value;
  }

 private:
  static absl::Status CheckInteger(const device::Value& value) {
    const int64_t number = value.integer;
    bool known = true;
    if (value.kind == Kind::kBool) known = number == 0 || number == 1;
    if (value.kind == Kind::kDType) {
      known = number >= 0 && number < static_cast<int64_t>(at::ScalarType::NumOptions) &&
              !device::NameOf(static_cast<at::ScalarType>(number)).empty();
    }
    if (value.kind == Kind::kMemoryFormat) {
      known = number >= 0 && number < static_cast<int64_t>(at::MemoryFormat::NumOptions);
    }
    return known ? absl::OkStatus() : Nonsense("a number that no value has");
  }

  absl::Status ReadItems(const Value& message, device::Value* value) {
    const bool dict = value->kind == Kind::kDict || value->kind == Kind::kConfig;
    if (!dict && value->kind != Kind::kList && value->kind != Kind::kTuple) {
      return message.items().empty() && message.keys().empty()
                 ? absl::OkStatus()
                 : Nonsense("items of a value that is no list");
    }
    if (message.keys_size() != (dict ? message.items_size() : 0)) {
      return Nonsense("a dict with other keys than values");
    }
    for (const Value& item : message.items()) {
      ASSIGN_OR_RETURN(device::Value read, Read(item));
      value->items.push_back(std::move(read));
    }
    for (const Value& key : message.keys()) {
      ASSIGN_OR_RETURN(device::Value read, Read(key));
      if (read.kind != Kind::kText && read.kind != Kind::kInteger && read.kind != Kind::kFloat) {
        return Nonsense("a key that is neither a text nor a number");
      }
      value->keys.push_back(std::move(read));
    }
    return absl::OkStatus();
  }

  absl::Span<const Region> regions_;
  int64_t nodes_ = 0;
};

}  // namespace

absl::StatusOr<HostTensor> WriteTensor(const at::Tensor& tensor, ContentsPlacer* placer) {
  if (device::NameOf(tensor.scalar_type()).empty()) {
    return absl::InvalidArgumentError("a tensor of a type that cannot be sent");
  }
  at::Tensor plain = tensor;
  RETURN_IF_ERROR(device::CatchTorch([&] { plain = tensor.resolve_conj().resolve_neg(); }));
  HostTensor message;
  WriteForm(plain.scalar_type(), plain.sizes(), plain.strides(), message.mutable_form());
  ASSIGN_OR_RETURN(const TensorRef form, ReadForm(message.form()));
  ASSIGN_OR_RETURN(const int64_t span, device::SpanOf(form));
  if (span == 0) return message;
  if (plain.is_meta()) return message;
  const auto bytes = static_cast<size_t>(span * BytesOf(form.dtype));
  ASSIGN_OR_RETURN(*message.mutable_contents(), placer->Place(plain, bytes));
  return message;
}

absl::Status WriteValue(const device::Value& value, ContentsPlacer* placer, Value* message) {
  message->set_kind(static_cast<uint32_t>(value.kind));
  message->set_is_unsigned(value.is_unsigned);
  message->set_integer(value.integer);
  message->set_number(value.number);
  message->set_imaginary(value.imaginary);
  message->set_text(value.text);
  if (value.kind == Kind::kTensor) WriteTensorRef(value.tensor, message->mutable_tensor());
  if (value.kind == Kind::kHost) {
    ASSIGN_OR_RETURN(*message->mutable_host(), WriteTensor(value.host, placer));
  }
  for (const device::Value& item : value.items) {
    RETURN_IF_ERROR(WriteValue(item, placer, message->add_items()));
  }
  for (const device::Value& key : value.keys) {
    RETURN_IF_ERROR(WriteValue(key, placer, message->add_keys()));
  }
  return absl::OkStatus();
}

void WriteTensorRef(const TensorRef& tensor, DeviceTensor* message) {
  WriteForm(tensor.dtype, tensor.shape, tensor.stride, message->mutable_form());
  message->set_storage(tensor.storage);
  message->set_offset(tensor.offset);
  message->set_negative(tensor.negative);
  message->set_conjugate(tensor.conjugate);
}

absl::StatusOr<at::Tensor> ReadTensor(const HostTensor& message, absl::Span<const Region> regions) {
  ASSIGN_OR_RETURN(const TensorRef form, ReadForm(message.form()));
  ASSIGN_OR_RETURN(const int64_t span, device::SpanOf(form));
  at::Tensor tensor;
  if (span == 0) {
    RETURN_IF_ERROR(device::CatchTorch(
        [&] { tensor = at::empty(form.shape, at::TensorOptions().dtype(form.dtype)); }));
    return tensor;
  }
  if (!message.has_contents()) {
    const bool may_miss = std::any_of(regions.begin(), regions.end(),
                                      [](const Region& region) { return region.is_window; });
    if (!may_miss) return Nonsense("a tensor without contents");
    RETURN_IF_ERROR(device::CatchTorch([&] {
      tensor = at::empty_strided(form.shape, form.stride,
                                 at::TensorOptions().dtype(form.dtype).device(at::kMeta));
    }));
    return tensor;
  }
  const auto bytes = static_cast<uint64_t>(span * BytesOf(form.dtype));
  const uint64_t offset = message.contents().offset();
  if (message.contents().region() >= regions.size()) return Nonsense("contents in no region");
  const Region& region = regions[message.contents().region()];
  if (offset > region.memory.size() || bytes > region.memory.size() - offset ||
      offset % static_cast<uint64_t>(BytesOf(form.dtype)) != 0) {
    return Nonsense("contents outside of their region");
  }
  // Nobody writes to the tensors of a message.
  char* const data = const_cast<char*>(region.memory.data()) + offset;
  RETURN_IF_ERROR(device::CatchTorch([&] {
    tensor = at::for_blob(data, form.shape)
                 .strides(form.stride)
                 .deleter([keeps = region.keeps](void*) {})
                 .options(at::TensorOptions().dtype(form.dtype).device(region.device))
                 .target_device(region.device)
                 .make_tensor();
  }));
  return tensor;
}

absl::StatusOr<device::Value> ReadValue(const Value& message, absl::Span<const Region> regions) {
  return Reader(regions).Read(message);
}

absl::StatusOr<TensorRef> ReadTensorRef(const DeviceTensor& message) {
  ASSIGN_OR_RETURN(TensorRef tensor, ReadForm(message.form()));
  tensor.storage = message.storage();
  tensor.offset = message.offset();
  tensor.negative = message.negative();
  tensor.conjugate = message.conjugate();
  RETURN_IF_ERROR(device::SpanOf(tensor).status());
  if (tensor.storage < 0 || tensor.storage > (int64_t{1} << 32)) {
    return Nonsense("a storage that cannot be");
  }
  return tensor;
}

}  // namespace tritonrl::executor
