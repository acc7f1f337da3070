#include "exec/device/value.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "exec/device/json.h"
#include "exec/device/value_parser.h"
#include "exec/device/value_writer.h"
#include "gtest/gtest.h"

namespace tritonrl::device {
namespace {

absl::StatusOr<Value> Parse(const std::string& text, absl::string_view payload = "") {
  auto json = ParseJson(text);
  if (!json.ok()) return json.status();
  return ParseValue(*json, payload);
}

void ExpectHostile(const std::string& text, absl::string_view payload = "") {
  const auto value = Parse(text, payload);
  ASSERT_FALSE(value.ok()) << text;
  EXPECT_TRUE(absl::StartsWith(value.status().message(), "the candidate's process sent "))
      << value.status();
}

TEST(ValueTest, TreesComeBackAsTheyWere) {
  const std::string texts[] = {
      R"(null)",
      R"([true,1,-2,18446744073709551615,1.5,"text"])",
      R"({"tuple":[{"complex":[1.0,{"float":"inf"}]}]})",
      R"({"dict":[["a",{"dtype":"bfloat16"}],[3,{"memory_format":"channels_last"}]]})",
      R"([{"device":"cuda"},{"layout":"strided"},{"generator":2}])",
      R"({"t":{"conj":true,"dtype":"complex64","offset":3,"s":7,"shape":[2,2],"stride":[0,1]}})",
  };
  for (const std::string& text : texts) {
    const auto value = Parse(text);
    ASSERT_TRUE(value.ok()) << text << value.status();
    std::string payload;
    EXPECT_EQ(WriteJson(*ValueToJson(*value, payload)), text);
  }
}

TEST(ValueTest, FloatsThatJsonLacks) {
  EXPECT_TRUE(std::isnan(Parse(R"({"float":"nan"})")->number));
  EXPECT_EQ(Parse(R"({"float":"-inf"})")->number, -INFINITY);
  ExpectHostile("NaN");
  ExpectHostile("1e999");
  ExpectHostile(R"({"float":"x"})");
}

TEST(ValueTest, HostTensorsTravelInThePayload) {
  std::string payload = "before";
  const at::Tensor tensor = at::arange(6, at::kInt).reshape({2, 3}).t();
  const Json json = *ValueToJson(Value::Host(tensor), payload);
  const auto back = ParseValue(json, payload);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->host.equal(tensor));
  EXPECT_TRUE(back->host.is_contiguous());
}

TEST(ValueTest, HostTensorsOutsideOfThePayloadAreHostile) {
  const std::string payload(16, 'x');
  EXPECT_TRUE(Parse(R"({"host":{"dtype":"float32","shape":[4],"at":0}})", payload).ok());
  ExpectHostile(R"({"host":{"dtype":"float32","shape":[4],"at":1}})", payload);
  ExpectHostile(R"({"host":{"dtype":"float32","shape":[5],"at":0}})", payload);
  ExpectHostile(R"({"host":{"dtype":"float32","shape":[],"at":17}})", payload);
  ExpectHostile(R"({"host":{"dtype":"float32","shape":[4611686018427387904,4],"at":0}})", payload);
  ExpectHostile(R"({"host":{"dtype":"float32","shape":[0,4611686018427387904,4],"at":0}})",
                payload);
  ExpectHostile(R"({"host":{"dtype":"quint8","shape":[1],"at":0}})", payload);
}

TEST(ValueTest, BoolsAreZeroOrOne) {
  const auto value =
      Parse(R"({"host":{"dtype":"bool","shape":[2],"at":0}})", absl::string_view("\x00\x07", 2));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(static_cast<const uint8_t*>(value->host.data_ptr())[1], 1);
}

TEST(ValueTest, WrongValuesAreHostile) {
  const char* const texts[] = {
      R"({})",
      R"({"t":1})",
      R"({"t":{},"host":{}})",
      R"({"unknown":1})",
      R"({"tuple":1})",
      R"({"dict":[1]})",
      R"({"dict":[[[1],2]]})",
      R"({"complex":[1]})",
      R"({"dtype":"torch.float32"})",
      R"({"layout":"sparse_coo"})",
      R"({"generator":-1})",
      R"({"t":{"s":1,"dtype":"float32","shape":[1],"stride":[],"offset":0}})",
      R"({"t":{"s":1,"dtype":"float32","shape":[1],"stride":[-1],"offset":0}})",
      R"({"t":{"s":1,"dtype":"float32","shape":[1],"stride":[1],"offset":0,"conj":true}})",
      R"({"t":{"s":1,"dtype":"bool","shape":[1],"stride":[1],"offset":0,"neg":true}})",
      R"({"t":{"s":1.5,"dtype":"float32","shape":[1],"stride":[1],"offset":0}})",
  };
  for (const char* const text : texts) ExpectHostile(text);
}

TEST(JsonTest, DepthAndSizeAreBounded) {
  const auto repeat = [](const std::string& text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += text;
    return result;
  };
  ExpectHostile(repeat("[", 1'000'000));
  ExpectHostile(repeat("{\"a\":", 1'000'000));
  ExpectHostile("[" + repeat("0,", 2'000'000) + "0]");
  ExpectHostile("[" + repeat("0,", 70'000) + "0]");
  EXPECT_TRUE(Parse(repeat("[", 60) + repeat("]", 60)).ok());
  EXPECT_TRUE(Parse("\"" + repeat("[", 1000) + "\\\"" + repeat("{", 1000) + "\"").ok());
}

TEST(JsonTest, TextsThatAreNotUtf8AreRefusedAndNeverThrow) {
  ExpectHostile("\"\xFF\xFE\"");
  EXPECT_EQ(WriteJson(Json("\xFFz")), "\"\xEF\xBF\xBDz\"");
}

}  // namespace
}  // namespace tritonrl::device
