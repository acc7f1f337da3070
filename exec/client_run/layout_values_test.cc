#include "exec/client_run/layout_values.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exec/device/value_writer.h"

namespace tritonrl {
namespace {

using device::Value;
using testing::HasSubstr;
using Json = nlohmann::json;
using Kind = Value::Kind;

// Six floats, 0 to 5, from byte 64 on.
std::string Memory() {
  std::string memory(64, '\0');
  for (float number = 0; number < 6; ++number) {
    memory.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return memory;
}

Json Tensor(const std::vector<int64_t>& stride) {
  return {{"tensor",
           {{"dtype", "float32"},
            {"shape", {2, 3}},
            {"stride", stride},
            {"device", "cpu"},
            {"layout", "strided"},
            {"offset", 64}}}};
}

TEST(ValueOfLayout, DenseTensorsAreViewsOfTheMemory) {
  const std::string memory = Memory();
  const auto value = ValueOfLayout(Tensor({3, 1}), memory);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->host.const_data_ptr(), memory.data() + 64);
  EXPECT_TRUE(at::equal(value->host, at::arange(6, at::kFloat).reshape({2, 3})));
}

// Of KernelBook's tasks, whose constructors take configurations.
TEST(ValueOfLayout, ConfigurationsStayApartFromDicts) {
  const std::string memory = Memory();
  const Json width = Json::array({"width", Json{{"value", 4}}});
  const Json layout = {{"config", Json::array({width, Json::array({"scale", Tensor({3, 1})})})}};
  const auto value = ValueOfLayout(layout, memory);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->kind, Kind::kConfig);
  EXPECT_EQ(value->keys[0].text, "width");
  EXPECT_EQ(TensorsOf(*value).size(), 1u);
  std::string copied;
  const auto again = LayoutOfValue(*value, &copied);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->begin().key(), "config");
  std::string payload;
  const auto sent = device::ValueToJson(*value, payload);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->begin().key(), "config");
  Value dict = *value;
  dict.kind = Kind::kDict;
  EXPECT_FALSE(SameForm(*value, dict));
}

TEST(ValueOfLayout, StridesComeBack) {
  const std::string memory = Memory();
  const auto value = ValueOfLayout(Tensor({1, 2}), memory);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->host.strides(), at::IntArrayRef({1, 2}));
  EXPECT_TRUE(at::equal(value->host, at::arange(6, at::kFloat).reshape({2, 3})));
  // Elements that shared one place have places of their own.
  const auto expanded = ValueOfLayout(Tensor({0, 1}), memory);
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  EXPECT_EQ(expanded->host.strides(), at::IntArrayRef({3, 1}));
}

TEST(ValueOfLayout, EveryKindOfValue) {
  const Json layout = Json::parse(R"({"list": [
      {"tuple": [{"value": 3}, {"value": 2.5}, {"value": true}]},
      {"dict": [["name", {"value": "text"}]]}, {"value": null}, {"float": "-inf"},
      {"complex": ["1.0", "-2.0"]}, {"dtype": "bfloat16"}]})");
  const auto value = ValueOfLayout(layout, "");
  ASSERT_TRUE(value.ok()) << value.status();
  const std::vector<Value>& items = value->items;
  ASSERT_EQ(items.size(), 6);
  EXPECT_EQ(items[0].kind, Kind::kTuple);
  EXPECT_EQ(items[0].items[0].integer, 3);
  EXPECT_EQ(items[0].items[1].number, 2.5);
  EXPECT_EQ(items[0].items[2].kind, Kind::kBool);
  EXPECT_EQ(items[1].keys[0].text, "name");
  EXPECT_EQ(items[1].items[0].text, "text");
  EXPECT_EQ(items[2].kind, Kind::kNull);
  EXPECT_EQ(items[3].number, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(items[4].imaginary, -2);
  EXPECT_EQ(items[5].kind, Kind::kDType);
}

TEST(ValueOfLayout, WhatCannotBeHandedOverIsNamed) {
  const auto value = ValueOfLayout({{"other", "SomeClass"}}, "");
  EXPECT_THAT(std::string(value.status().message()), HasSubstr("of kind other"));
}

TEST(LeavesOfValue, ThereAndBack) {
  const std::string memory = Memory();
  const Json layout = {{"tuple", {Tensor({1, 2}), Json{{"value", 7}}}}};
  const auto value = ValueOfLayout(layout, memory);
  ASSERT_TRUE(value.ok()) << value.status();
  Value dense = *value;
  dense.items[0].host = dense.items[0].host.contiguous();
  const auto leaves = LeavesOfValue(dense);
  ASSERT_TRUE(leaves.ok()) << leaves.status();
  ASSERT_EQ(leaves->leaves.size(), 2);
  const Leaf& tensor = leaves->leaves[0];
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::string(leaves->memory, *tensor.offset, 24), memory.substr(64));
  EXPECT_EQ(leaves->leaves[1].number, 7);
  EXPECT_FALSE(tensor.bare);
}

TEST(SameForm, ContentsDoNotCountShapesAndNumbersDo) {
  const auto with = [](int64_t rows, double number) {
    return Value::List({Value::Host(at::arange(rows, at::kFloat)), Value::Float(number)});
  };
  Value other = with(4, 1);
  other.items[0].host = other.items[0].host.add(1);
  EXPECT_TRUE(SameForm(with(4, 1), other));
  EXPECT_FALSE(SameForm(with(4, 1), with(5, 1)));
  EXPECT_FALSE(SameForm(with(4, 1), with(4, 2)));
  other.items[0].host = other.items[0].host.to(at::kHalf);
  EXPECT_FALSE(SameForm(with(4, 1), other));
  EXPECT_FALSE(SameForm(with(4, 1), Value::List({with(4, 1).items[0]})));
}

}  // namespace
}  // namespace tritonrl
