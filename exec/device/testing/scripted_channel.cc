#include "exec/device/testing/scripted_channel.h"

#include "absl/strings/str_cat.h"

namespace tritonrl::device {

std::string TensorText(int storage, const std::string& dtype, const std::string& shape,
                       const std::string& stride, int offset) {
  return absl::StrCat(R"({"t":{"s":)", storage, R"(,"dtype":")", dtype, R"(","shape":[)", shape,
                      R"(],"stride":[)", stride, R"(],"offset":)", offset, "}}");
}

std::string FloatTensor(int storage, int count, int offset) {
  return TensorText(storage, "float32", absl::StrCat(count), "1", offset);
}

std::string OperatorText(const std::string& name, const std::string& overload,
                         const std::string& args, const std::string& kwargs) {
  return absl::StrCat(R"({"do":"op","name":")", name, R"(","overload":")", overload,
                      R"(","args":[)", args, R"(],"kwargs":{"dict":[)", kwargs, R"(]},"line":7})");
}

std::string EmptyText(int count, const std::string& dtype) {
  return OperatorText(
      "empty", "memory_format", absl::StrCat("[", count, "]"),
      absl::StrCat(R"(["dtype",{"dtype":")", dtype, R"("}],["device",{"device":"cuda"}])"));
}

std::string KernelText(const std::string& ttir) {
  return absl::StrCat(R"({"do":"kernel","name":"k","ttir":")", ttir,
                      R"(","num_warps":4,"num_stages":3,"num_ctas":1,"shared":0})");
}

std::string LaunchText(int kernel, const std::string& args) {
  return absl::StrCat(R"({"do":"launch","kernel":)", kernel, R"(,"grid":[1,1,1],"args":[)", args,
                      R"(],"line":9})");
}

std::vector<Frame> Script(const std::vector<std::string>& texts) {
  std::vector<Frame> frames;
  for (const std::string& text : texts) frames.push_back({text, ""});
  return frames;
}

}  // namespace tritonrl::device
