// End to end with a real model: the mini policy behind a socket.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/runfiles.h"
#include "model/layers/packed_batch.h"
#include "model/transformer.h"
#include "rollout/factory/make_engine.h"
#include "rollout/serve/testing/server_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;

constexpr char kPrompt[] = "torch.softmax(x, dim=1)\nx: (64, 512)\n";

class MiniTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = Runfile("model/mini");
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto model = LoadModel(*folder, at::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = new LoadedModel(*std::move(model));
  }
  static void TearDownTestSuite() { delete model_; }

  void Start(const ServerOptions& options = {}, int max_num_seqs = 8) {
    EngineConfig config;
    config.set_max_num_seqs(max_num_seqs);
    auto engine = MakeBatchedEngine(model_->weights, config, {.cpu_threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    const ModelConfig& model = model_->weights->config();
    ServedModel served{"mini",
                       model_->tokenizer,
                       ChatTemplate::Load("model/mini", {}, model_->tokenizer).value(),
                       model_->stop_ids,
                       /*begin_tokens=*/{},
                       model.max_positions,
                       model.vocab_size};
    auto server = Server::Start(options, std::move(served), engine_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  HttpReply Complete(const json& more = json::object(), const char* path = "/v1/completions") {
    json request = {{"prompt", kPrompt}, {"max_tokens", 60}, {"seed", 3}};
    if (absl::StrContains(path, "chat")) {
      request.erase("prompt");
      request["messages"] = {{{"role", "user"}, {"content", kPrompt}}};
    }
    request.update(more);
    return Post(server_->port(), path, request);
  }
  json Choice(const json& more = json::object(), int index = 0) {
    const HttpReply reply = Complete(more);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["choices"][index];
  }

  static LoadedModel* model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;  // Destroyed before the engine.
};

LoadedModel* MiniTest::model_ = nullptr;

// The chunks of a stream put together: texts and finish reasons by choice.
struct Streamed {
  std::vector<std::string> texts, reasons;
  json log_probs = json::array();  // token_logprobs of choice 0.
  json usage;
};

Streamed Join(const HttpReply& reply, int choices) {
  Streamed joined;
  joined.texts.resize(choices);
  joined.reasons.resize(choices);
  const std::vector<std::string> events = reply.events();
  EXPECT_FALSE(events.empty());
  for (const std::string& event : events) {
    if (&event == &events.back()) {
      EXPECT_EQ(event, "[DONE]");
      break;
    }
    const json chunk = json::parse(event);
    if (chunk.contains("usage")) joined.usage = chunk["usage"];
    for (const json& choice : chunk["choices"]) {
      const int index = choice["index"];
      EXPECT_EQ(joined.reasons[index], "") << "nothing follows the end";
      joined.texts[index] += choice.contains("delta") ? choice["delta"].value("content", "")
                                                      : choice["text"].get<std::string>();
      if (!choice["finish_reason"].is_null()) joined.reasons[index] = choice["finish_reason"];
      if (index == 0 && choice["logprobs"].is_object() && choice["logprobs"].contains("tokens")) {
        for (const json& value : choice["logprobs"]["token_logprobs"]) {
          joined.log_probs.push_back(value);
        }
      }
    }
  }
  return joined;
}

TEST_F(MiniTest, TheSameSeedGivesTheSameAnswerWhateverRunsBeside) {
  Start();
  const json alone = Choice();
  EXPECT_FALSE(alone["text"].get<std::string>().empty());
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&, i] { EXPECT_EQ(Complete({{"seed", 100 + i}, {"n", 3}}).status, 200); });
  }
  EXPECT_EQ(Choice(), alone);
  for (std::thread& other : others) other.join();
  EXPECT_NE(Choice({{"seed", 4}}), alone);
  EXPECT_EQ(Choice({{"n", 3}}, 0), alone) << "sample 0 of three";
  EXPECT_NE(Complete({{"seed", nullptr}}).json()["choices"],
            Complete({{"seed", nullptr}}).json()["choices"]);
}

TEST_F(MiniTest, AStreamSaysTheSameAsTheWhole) {
  Start();
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    const bool chat = absl::StrContains(path, "chat");
    const json common = {{"n", 3}, {"stop", {"tl.", "\n\n"}}};
    const json whole = Complete(common, path).json();
    json wanted = common;
    wanted.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
    const Streamed joined = Join(Complete(wanted, path), 3);
    for (int i = 0; i < 3; ++i) {
      const json& choice = whole["choices"][i];
      EXPECT_EQ(joined.texts[i], chat ? choice["message"]["content"] : choice["text"]);
      EXPECT_EQ(joined.reasons[i], choice["finish_reason"]);
    }
    EXPECT_EQ(joined.usage, whole["usage"]);
  }
}

TEST_F(MiniTest, LogProbsAreThoseOfTheEngine) {
  Start();
  GenerateRequest request;
  request.prompt = model_->tokenizer.Encode(kPrompt);
  request.sampling.max_tokens = 60;
  request.sampling.stop_ids = model_->stop_ids;
  request.key.run_seed = 3;
  EngineConfig config;
  config.set_max_num_seqs(1);
  auto engine = MakeBatchedEngine(model_->weights, config);
  ASSERT_TRUE(engine.ok());
  ASSERT_TRUE((*engine)->Submit(request).ok());
  auto sample = (*engine)->Next(absl::Now() + kPatience);
  ASSERT_TRUE(sample.ok()) << sample.status();
  const HttpReply reply = Complete({{"logprobs", 0}});
  const json choice = reply.json()["choices"][0];
  EXPECT_EQ(choice["text"], model_->tokenizer.Decode(sample->tokens, /*skip_special=*/true));
  EXPECT_EQ(reply.json()["usage"]["completion_tokens"], sample->tokens.size());
  if (sample->finish_reason == FinishReason::kStop) sample->log_probs.pop_back();
  const json values = choice["logprobs"]["token_logprobs"];
  ASSERT_EQ(values.size(), sample->log_probs.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], sample->log_probs[i]);
  std::string text;
  for (const json& token : choice["logprobs"]["tokens"]) text += token;
  EXPECT_EQ(text, choice["text"]);
  EXPECT_EQ(Join(Complete({{"logprobs", 0}, {"stream", true}}), 1).log_probs, values);
}

TEST_F(MiniTest, EveryStopStringOfAnAnswerCutsItThere) {
  Start();
  const std::string text = Choice({{"temperature", 0}})["text"];
  ASSERT_GT(text.size(), 40u);
  for (size_t begin = 1; begin + 7 < text.size(); begin += 9) {
    const std::string stop = text.substr(begin, 7);
    const json cut = Choice({{"temperature", 0}, {"stop", stop}});
    EXPECT_EQ(cut["text"], text.substr(0, text.find(stop)));
    EXPECT_EQ(cut["finish_reason"], "stop");
  }
}

TEST_F(MiniTest, IdsAndTextAreTheSamePrompt) {
  Start();
  const json ids = model_->tokenizer.Encode(kPrompt);
  EXPECT_EQ(Choice({{"prompt", ids}}), Choice());
}

TEST_F(MiniTest, TheContextIsTheLimit) {
  Start();
  const json usage =
      Complete({{"max_tokens", nullptr}, {"prompt", std::vector<int>(1000, 5)}}).json()["usage"];
  EXPECT_LE(usage["total_tokens"], 1024);
  EXPECT_EQ(Complete({{"prompt", std::vector<int>(1024, 5)}}).status, 400);
}

TEST_F(MiniTest, AnAbandonedStreamFreesItsSamples) {
  Start({}, /*max_num_seqs=*/2);
  {
    RawClient client(server_->port());
    const std::string body = json{{"prompt", kPrompt}, {"n", 200}, {"stream", true}}.dump();
    client.Send(absl::StrCat("POST /v1/completions HTTP/1.1\r\nContent-Length: ", body.size(),
                             "\r\n\r\n", body));
    client.ReadUntil("\"text\"");
    EXPECT_GT(engine_->Outstanding(), 0);
  }
  EXPECT_TRUE(WaitUntil([&] { return engine_->Outstanding() == 0; }));
  EXPECT_LT(engine_->Stats().generated_tokens, 200 * 50) << "they were cut short";
  EXPECT_EQ(Complete().status, 200);
}

TEST_F(MiniTest, TwoHundredClientsAtOnce) {
  ServerOptions options;
  options.max_concurrent = 4;
  options.http.max_connections = 250;
  Start(options);
  const json alone = Choice({{"max_tokens", 10}});
  std::atomic<int> answered{0}, refused{0}, other{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back([&] {
      const HttpReply reply = Complete({{"max_tokens", 10}});
      if (reply.status == 200 && reply.json()["choices"][0] == alone) {
        ++answered;
      } else {
        ++(reply.status == 429 ? refused : other);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(other, 0);
  EXPECT_GE(answered, 4);
  EXPECT_EQ(answered + refused, 200);
  EXPECT_EQ(Complete({{"max_tokens", 10}}).status, 200);
}

// log softmax of the model's logits at each token of `ids` after the first.
std::vector<double> LearnersLogProbs(const LoadedModel& model, const std::vector<int32_t>& ids) {
  const Transformer transformer(model.weights->config(), model.weights);
  const PackedBatch batch = PackSequences({ids});
  const at::Tensor found =
      transformer.Forward(batch, NextTokenTargets(batch), 1.0, nullptr).log_probs;
  const float* values = found.const_data_ptr<float>();
  return {values, values + ids.size() - 1};
}

TEST_F(MiniTest, AnEchoedPromptHasTheLearnersLogProbs) {
  Start();
  const std::vector<int32_t> ids = model_->tokenizer.Encode(kPrompt);
  const HttpReply reply = Complete({{"echo", true}, {"max_tokens", 0}, {"logprobs", 1}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json choice = reply.json()["choices"][0], log_probs = choice["logprobs"];
  EXPECT_EQ(choice["text"], kPrompt);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(reply.json()["usage"]["completion_tokens"], 0);
  ASSERT_EQ(log_probs["tokens"].size(), ids.size());
  EXPECT_TRUE(log_probs["token_logprobs"][0].is_null());
  EXPECT_TRUE(log_probs["top_logprobs"][0].is_null());
  const std::vector<double> expected = LearnersLogProbs(*model_, ids);
  std::string text;
  for (size_t t = 0; t < ids.size(); ++t) {
    EXPECT_EQ(log_probs["text_offset"][t], text.size());
    text += log_probs["tokens"][t];
    if (t == 0) continue;
    const double own = log_probs["token_logprobs"][t];
    EXPECT_NEAR(own, expected[t - 1], 1e-4);
    double most = -1e9;
    for (const auto& [token, value] : log_probs["top_logprobs"][t].items()) {
      most = std::max(most, value.get<double>());
    }
    EXPECT_LE(own, most) << "the most likely token is among them";
    EXPECT_EQ(log_probs["top_logprobs"][t][log_probs["tokens"][t]], own) << "and the token itself";
  }
  EXPECT_EQ(text, kPrompt);
  // One more token, as lm-evaluation-harness asks for: the prompt's values are the same.
  const json longer =
      Choice({{"echo", true}, {"max_tokens", 1}, {"logprobs", 1}, {"temperature", 0}})["logprobs"];
  ASSERT_EQ(longer["token_logprobs"].size(), ids.size() + 1);
  json first = longer["token_logprobs"];
  first.erase(ids.size());
  EXPECT_EQ(first, log_probs["token_logprobs"]);
}

TEST_F(MiniTest, AnEchoIsThePromptThenTheSameAnswer) {
  Start();
  const json alone = Choice({{"logprobs", 2}});
  const json echo = Choice({{"logprobs", 2}, {"echo", true}});
  EXPECT_EQ(echo["text"], kPrompt + alone["text"].get<std::string>());
  EXPECT_EQ(Choice({{"echo", true}})["text"], echo["text"]) << "without log-probabilities";
  const size_t prompt = model_->tokenizer.Encode(kPrompt).size();
  const json values = echo["logprobs"]["token_logprobs"];
  for (size_t t = 0; t < alone["logprobs"]["token_logprobs"].size(); ++t) {
    EXPECT_EQ(values[prompt + t], alone["logprobs"]["token_logprobs"][t]);
  }
  const Streamed joined =
      Join(Complete({{"logprobs", 2}, {"echo", true}, {"stream", true}, {"stop", "tl."}}), 1);
  const json cut = Choice({{"logprobs", 2}, {"echo", true}, {"stop", "tl."}});
  EXPECT_EQ(joined.texts[0], cut["text"]);
  EXPECT_EQ(joined.log_probs, cut["logprobs"]["token_logprobs"]);
}

TEST_F(MiniTest, LogProbsAreTheModelsWhateverTheSampling) {
  Start();
  const json drawn = Complete({{"logprobs", 3},
                               {"temperature", 0.5},
                               {"presence_penalty", 1},
                               {"max_tokens", 30},
                               {"return_token_ids", true}})
                         .json()["choices"][0];
  std::vector<int32_t> ids = model_->tokenizer.Encode(kPrompt);
  const size_t prompt = ids.size();
  for (const json& id : drawn["token_ids"]) ids.push_back(id);
  const json echo = Choice({{"prompt", ids}, {"echo", true}, {"max_tokens", 0}, {"logprobs", 3}});
  const json values = drawn["logprobs"]["token_logprobs"], tops = drawn["logprobs"]["top_logprobs"];
  ASSERT_GT(values.size(), 10u);
  for (size_t t = 0; t < values.size(); ++t) {
    EXPECT_EQ(values[t], echo["logprobs"]["token_logprobs"][prompt + t]) << "to the bit";
    EXPECT_EQ(tops[t], echo["logprobs"]["top_logprobs"][prompt + t]);
  }
}

TEST_F(MiniTest, PromptLogProbsAreOfEachToken) {
  Start();
  const std::vector<int32_t> ids = model_->tokenizer.Encode(kPrompt);
  const std::vector<double> expected = LearnersLogProbs(*model_, ids);
  const json found = Choice({{"prompt_logprobs", 2}, {"max_tokens", 1}})["prompt_logprobs"];
  ASSERT_EQ(found.size(), ids.size());
  EXPECT_TRUE(found[0].is_null());
  for (size_t t = 1; t < ids.size(); ++t) {
    const json own = found[t][absl::StrCat(ids[t])];
    EXPECT_NEAR(own["logprob"].get<double>(), expected[t - 1], 1e-4);
    EXPECT_EQ(own["decoded_token"], model_->tokenizer.TokenBytes(ids[t]));
    EXPECT_EQ(found[t].size(), own["rank"].get<int>() <= 2 ? 2u : 3u);
  }
  const HttpReply chat =
      Complete({{"prompt_logprobs", 0}, {"max_tokens", 0}}, "/v1/chat/completions");
  EXPECT_EQ(chat.json()["prompt_logprobs"].size(), ids.size()) << chat.body;
}

TEST_F(MiniTest, APromptAsLongAsTheContextCanBeScored) {
  Start();
  const json whole = Complete({{"prompt", std::vector<int>(1024, 5)},
                               {"echo", true},
                               {"max_tokens", 0},
                               {"logprobs", 0}})
                         .json();
  EXPECT_EQ(whole["choices"][0]["logprobs"]["token_logprobs"].size(), 1024u);
  const HttpReply longer =
      Complete({{"prompt", std::vector<int>(1025, 5)}, {"echo", true}, {"max_tokens", 0}});
  EXPECT_EQ(longer.status, 400);
  EXPECT_EQ(longer.json()["error"]["code"], "context_length_exceeded");
}

TEST_F(MiniTest, BiasesAndPenaltiesChangeTheAnswer) {
  Start();
  const json greedy = Choice({{"temperature", 0}, {"max_tokens", 20}});
  const int id = model_->tokenizer.Encode("x")[0];
  const json biased = Choice({{"temperature", 0},
                              {"max_tokens", 20},
                              {"logit_bias", {{absl::StrCat(id), 100}}},
                              {"return_token_ids", true}});
  EXPECT_EQ(biased["token_ids"], json(std::vector<int>(20, id)));
  const json penalised = Choice({{"temperature", 0},
                                 {"max_tokens", 20},
                                 {"logit_bias", {{absl::StrCat(id), 100}}},
                                 {"repetition_penalty", 100},
                                 {"return_token_ids", true}});
  EXPECT_NE(penalised["token_ids"], biased["token_ids"]);
  EXPECT_EQ(Choice({{"temperature", 0}, {"max_tokens", 20}, {"min_p", 0.5}})["text"],
            greedy["text"]);
  EXPECT_EQ(Choice({{"min_p", 1}, {"max_tokens", 20}})["text"], greedy["text"])
      << "only the most likely token is left";
  EXPECT_EQ(Choice({{"presence_penalty", 0.0},
                    {"frequency_penalty", 0.0},
                    {"repetition_penalty", 1.0},
                    {"min_p", 0.0}}),
            Choice());
  const HttpReply outside = Complete({{"logit_bias", {{"100000", 1}}}});
  EXPECT_EQ(outside.status, 400);
  EXPECT_EQ(outside.json()["error"]["param"], "logit_bias");
}

}  // namespace
}  // namespace tritonrl
