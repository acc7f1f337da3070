#include "exec/device/testing/honest_streams.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "exec/device/testing/scripted_channel.h"

namespace tritonrl::device {
namespace {

using Texts = std::vector<std::string>;

Texts WithInit(const Texts& init, const Texts& forward) {
  Texts texts = {R"({"do":"begin"})", EmptyText(4),
                 OperatorText("uniform_", "", absl::StrCat(FloatTensor(1, 4), ",-1.0,1.0"))};
  texts.insert(texts.end(), init.begin(), init.end());
  texts.push_back(absl::StrCat(R"({"do":"constructed","state":[["w",)", FloatTensor(1, 4), "]]}"));
  texts.insert(texts.end(), forward.begin(), forward.end());
  return texts;
}

std::string OutputText(const std::string& value) {
  return absl::StrCat(R"({"do":"output","value":)", value, R"(,"free":[2]})");
}

std::string AddText(int out) {
  return LaunchText(
      0, absl::StrCat(FloatTensor(2, 4), ",", FloatTensor(1, 4), ",", FloatTensor(out, 4), ",4"));
}

Texts OneKernel() {
  return WithInit({}, {EmptyText(4), KernelText("add"), AddText(3),
                       OutputText(absl::StrCat(R"({"tuple":[)", FloatTensor(3, 4), "]}"))});
}

Texts Autotuned() {
  return WithInit({}, {EmptyText(4), KernelText("add"), R"({"do":"bench","begin":true})",
                       AddText(3), AddText(3), R"({"do":"bench","begin":false})", AddText(3),
                       absl::StrCat(R"({"do":"read","tensor":)", FloatTensor(3, 1), "}"),
                       OutputText(FloatTensor(3, 4))});
}

Texts Graph() {
  return WithInit({},
                  {KernelText("add"), R"({"do":"graph","begin":true})", EmptyText(4), AddText(3),
                   R"({"do":"graph","begin":false})", R"({"do":"replay","graph":0})",
                   OutputText(absl::StrCat(R"({"dict":[["y",)", FloatTensor(3, 4), "]]}"))});
}

// Copies, casts, joins, draws and small operators.
Texts Neutral() {
  return WithInit(
      {R"({"do":"generator"})", R"({"do":"seed","seed":3,"generator":1})",
       OperatorText("mul_", "Tensor", absl::StrCat(FloatTensor(1, 4), ",0.5"))},
      {EmptyText(4, "float16"),
       OperatorText("copy_", "",
                    absl::StrCat(TensorText(3, "float16", "4", "1"), ",", FloatTensor(2, 4))),
       OperatorText("cat", "", absl::StrCat("[", FloatTensor(2, 4), ",", FloatTensor(1, 4), "],0")),
       OperatorText("normal_", "", FloatTensor(4, 4, 4), R"(["generator",{"generator":1}])"),
       OperatorText("add_", "Tensor", absl::StrCat(FloatTensor(4, 4), ",1.5"),
                    R"(["alpha",{"float":"inf"}])"),
       OperatorText("fill_", "Scalar", absl::StrCat(FloatTensor(4, 2), ",{\"complex\":[1,0]}")),
       R"({"do":"seed","seed":9,"generator":null})",
       OutputText(absl::StrCat("[", FloatTensor(4, 8), ",null,true,1.5]"))});
}

// Constructors that compute tables and initial weights.
Texts Constructor() {
  const std::string w = TensorText(1, "float32", "2,2", "2,1");
  const std::string device = R"(["dtype",{"dtype":"int64"}],["device",{"device":"cuda"}])";
  return WithInit(
      {OperatorText("arange", "start_step", "0,8,2", device), OperatorText("linalg_qr", "", w),
       OperatorText("sum", "dim_IntList", absl::StrCat(w, ",[0],true")),
       OperatorText("index", "Tensor",
                    absl::StrCat(w, ",[", TensorText(2, "int64", "1", "1"), "]")),
       OperatorText("where", "self", absl::StrCat(w, ",", w, ",", w))},
      {OutputText(FloatTensor(1, 4))});
}

}  // namespace

std::vector<std::vector<Frame>> HonestStreams() {
  std::vector<std::vector<Frame>> streams;
  for (const Texts& texts : {OneKernel(), Autotuned(), Graph(), Neutral(), Constructor()}) {
    streams.push_back(Script(texts));
  }
  const std::string host = R"({"host":{"dtype":"float32","shape":[2,2],"at":0}})";
  std::vector<Frame> uploads = Script(WithInit({}, {}));
  uploads.push_back(
      {OperatorText("copy_", "", absl::StrCat(TensorText(1, "float32", "2,2", "1,2"), ",", host)),
       std::string(16, '\x3F')});
  uploads.push_back(
      {OutputText(absl::StrCat("[", FloatTensor(1, 4), ",", host, "]")), std::string(16, 'a')});
  streams.push_back(uploads);
  return streams;
}

}  // namespace tritonrl::device
