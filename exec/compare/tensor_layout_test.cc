#include "exec/compare/tensor_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tritonrl {
namespace {

using Json = nlohmann::json;

Json Tensor() {
  return Json::parse(R"({"dtype": "float32", "shape": [2, 3], "stride": [3, 1], "device": "cpu",
                         "layout": "strided", "offset": 64})");
}

TEST(TensorLayoutTest, ReadsNestedValues) {
  Json pair = {Json{{"value", 2.5}}, Json{{"value", nullptr}}};
  const Json node{{"tuple",
                   {Json{{"tensor", Tensor()}},
                    Json{{"dict", {{"a", Json{{"list", pair}}}, {7, Json{{"value", true}}}}}},
                    Json{{"float", "-inf"}}, Json{{"other", "Thing"}}}}};
  const auto leaves = ParseLayout(node, 88);
  ASSERT_TRUE(leaves.ok()) << leaves.status();
  ASSERT_EQ(leaves->size(), 6u);
  const Leaf& tensor = (*leaves)[0];
  EXPECT_EQ(tensor.kind, Leaf::Kind::kTensor);
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.elements, 6);
  EXPECT_EQ(tensor.bytes(), 24);
  EXPECT_EQ(*tensor.offset, 64u);
  EXPECT_EQ((*leaves)[1].number, 2.5);
  EXPECT_EQ((*leaves)[2].type_name, "NoneType");
  EXPECT_EQ((*leaves)[3].number, 1);
  EXPECT_TRUE(std::isinf((*leaves)[4].number));
  EXPECT_EQ((*leaves)[5].type_name, "Thing");
}

TEST(TensorLayoutTest, DistinctElementsOfExpandedTensors) {
  Json tensor = Tensor();
  tensor["stride"] = {0, 1};
  const auto leaves = ParseLayout(Json{{"tensor", tensor}}, 88);
  ASSERT_TRUE(leaves.ok()) << leaves.status();
  EXPECT_EQ((*leaves)[0].elements, 6);
  EXPECT_EQ((*leaves)[0].distinct_elements, 3);
}

// A good tensor with one field replaced by one of these values must be refused.
TEST(TensorLayoutTest, LiesAreRefused) {
  const Json good{{"tensor", Tensor()}};
  EXPECT_TRUE(ParseLayout(good, 88).ok());
  EXPECT_FALSE(ParseLayout(good, 87).ok());  // the tensor's last byte is outside
  const std::pair<const char*, Json> lies[] = {
      {"offset", 65},
      {"offset", -64},
      {"offset", uint64_t{1} << 63},
      {"offset", ~uint64_t{0} - 8},
      {"offset", 1.5},
      {"offset", "64"},
      {"shape", {2, 4}},
      {"shape", {-2, -3}},
      {"shape", {2, 3, 1}},
      {"shape", {int64_t{1} << 40, int64_t{1} << 40}},
      {"shape", {int64_t{1} << 62, 4}},
      {"shape", {2.0, 3.0}},
      {"shape", {~uint64_t{0}, 1}},
      {"shape", "2, 3"},
      {"shape", Json(std::vector<int>(65, 1))},
      {"stride", {-3, 1}},
      {"stride", {1}},
      {"stride", nullptr},
      {"dtype", "float128"},
      {"dtype", 32},
      {"dtype", "float64"},  // twice the bytes
      {"dtype", std::string(100, 'x')},
      {"device", nullptr},
      {"layout", Json::object()},
  };
  for (const auto& [name, value] : lies) {
    Json tensor = Tensor();
    tensor[name] = value;
    EXPECT_FALSE(ParseLayout(Json{{"tensor", tensor}}, 88).ok()) << name << " " << value;
  }
  for (const char* name : {"dtype", "shape", "stride", "device", "layout", "offset"}) {
    Json tensor = Tensor();
    tensor.erase(name);
    EXPECT_FALSE(ParseLayout(Json{{"tensor", tensor}}, 88).ok()) << name;
  }
}

TEST(TensorLayoutTest, NonsenseIsRefused) {
  for (const char* text :
       {"null", "3", "[]", "{}", R"({"value": 1, "list": []})", R"({"value": []})",
        R"({"list": {}})", R"({"dict": [[1]]})", R"({"dict": [[1, {"value": 1}, 2]]})",
        R"({"float": "huge"})", R"({"tensor": []})", R"({"pickle": "x"})"}) {
    EXPECT_FALSE(ParseLayout(Json::parse(text), 88).ok()) << text;
  }
  Json deep{{"value", 1}};
  for (int i = 0; i < 100; ++i) deep = Json{{"list", Json::array({deep})}};
  EXPECT_FALSE(ParseLayout(deep, 88).ok());
  const Json wide{{"list", std::vector<Json>(5000, Json{{"value", 1}})}};
  EXPECT_FALSE(ParseLayout(wide, 88).ok());
}

TEST(TensorLayoutTest, ATensorWithoutAnOffsetNeedsNoMemory) {
  Json tensor = Tensor();
  tensor["offset"] = nullptr;
  tensor["shape"] = {1 << 20, 1 << 20};
  tensor["dtype"] = "quint8";
  const auto leaves = ParseLayout(Json{{"tensor", tensor}}, 88);
  ASSERT_TRUE(leaves.ok()) << leaves.status();
  EXPECT_FALSE((*leaves)[0].offset.has_value());
}

Leaf At(uint64_t address, int64_t elements, bool dense = true) {
  Leaf leaf;
  leaf.kind = Leaf::Kind::kTensor;
  leaf.elements = elements;
  leaf.address = address;
  leaf.dense = dense;
  return leaf;
}

TEST(TensorSharingTest, SameAddressOrOverlap) {
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(116, 4)}, {At(132, 4)}), "");
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(100, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(100, 4), At(112, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(112, 4), At(100, 4)}, {}),
            "outputs 0 and 1 lie in the same memory");
  EXPECT_EQ(FindSharedOutputs({At(50, 2), At(100, 4)}, {At(0, 1), At(100, 8)}),
            "output 1 lies in the memory of input 1");
}

TEST(TensorSharingTest, ViewsThatInterleaveAndUnknownAddressesDoNotCount) {
  EXPECT_EQ(FindSharedOutputs({At(100, 8, false), At(104, 8, false)}, {}), "");
  EXPECT_EQ(FindSharedOutputs({At(100, 0), At(100, 4)}, {}), "");
  Leaf unknown = At(100, 4);
  unknown.address.reset();
  EXPECT_EQ(FindSharedOutputs({unknown, At(100, 4)}, {}), "");
  // A hostile address at the end of the address space, where an addition would overflow.
  EXPECT_EQ(FindSharedOutputs({At(~uint64_t{0}, 4), At(0, 4)}, {}), "");
}

}  // namespace
}  // namespace tritonrl
