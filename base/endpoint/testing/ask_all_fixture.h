// Runs of AskAll against an endpoint, with the journal in a folder of the test's own.
#ifndef TRITONRL_BASE_ENDPOINT_TESTING_ASK_ALL_FIXTURE_H_
#define TRITONRL_BASE_ENDPOINT_TESTING_ASK_ALL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/endpoint/ask_all.h"
#include "base/endpoint/response_journal.h"
#include "base/file.h"
#include "base/status.h"

namespace tritonrl {

class AskAllFixture : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = MakeTempDirectory("ask_all_");
    ASSERT_TRUE(folder.ok()) << folder.status();
    folder_ = *folder;
    options_.journal = folder_ + "/out/responses.jsonl";
    options_.messages = fopen("/dev/null", "w");
    endpoint_options_.first_pause = absl::Milliseconds(1);
    endpoint_options_.max_attempts = 2;
    endpoint_options_.max_in_flight = 4;
  }
  void TearDown() override {
    fclose(options_.messages);
    EXPECT_TRUE(RemoveTree(folder_).ok());
  }

  // Asks "question 0", "question 1", ... with the keys "task 0", "task 1", ... and a new client.
  absl::StatusOr<AskAllSummary> Run(int count, const std::string& url,
                                    const std::string& model = "teacher") {
    endpoint_options_.url = url;
    ASSIGN_OR_RETURN(const auto client, EndpointClient::Make(endpoint_options_));
    const auto item = [&](int64_t i) -> absl::StatusOr<AskItem> {
      AskItem item = {.key = absl::StrCat("task ", i), .request = request_};
      item.request.model = model;
      item.request.messages = {{.role = "user", .content = absl::StrCat("question ", i)}};
      return item;
    };
    return AskAll(count, item, options_, client.get());
  }

  // The accepted responses of the journal, by key.
  std::map<std::string, EndpointResponse> Stored() {
    std::map<std::string, EndpointResponse> stored;
    const absl::Status read = ReadResponses(options_.journal, [&](StoredResponse response) {
      EXPECT_EQ(response.refused, "");
      EXPECT_TRUE(stored.emplace(response.key, response.response).second) << response.key;
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return stored;
  }

  // All responses of the journal.
  std::vector<StoredResponse> AllStored() {
    std::vector<StoredResponse> stored;
    const auto keep = [&](StoredResponse response) {
      stored.push_back(std::move(response));
      return absl::OkStatus();
    };
    const absl::Status read = ReadResponses(options_.journal, keep, /*with_refused=*/true);
    EXPECT_TRUE(read.ok()) << read;
    return stored;
  }

  std::string folder_;
  AskAllOptions options_;
  EndpointOptions endpoint_options_;
  EndpointRequest request_;  // what all items have beside model and question
};

}  // namespace tritonrl

#endif  // TRITONRL_BASE_ENDPOINT_TESTING_ASK_ALL_FIXTURE_H_
