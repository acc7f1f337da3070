// The program `serve`: its start, its end and invalid flags.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/subprocess.h"
#include "model/testing/mini_folders.h"
#include "parallel/testing/mpi_launch.h"
#include "rollout/serve/testing/server_fixture.h"

namespace tritonrl {
namespace {

using nlohmann::json;

class ServeProcessTest : public testing::Test {
 protected:
  static std::string Model() {
    const auto folder = Runfile("model/mini");
    EXPECT_TRUE(folder.ok()) << folder.status();
    return folder.value_or("");
  }

  // Starts the program; with several `ranks` under mpirun and tensor-parallel.
  void Start(std::vector<std::string> flags = {}, int ranks = 1) {
    const auto program = Runfile("rollout/serve/serve");
    ASSERT_TRUE(program.ok()) << program.status();
    SubprocessOptions options;
    options.argv = {*program, "--model=" + Model(), "--port=0", "--device=cpu", "--max_num_seqs=4"};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    if (ranks > 1) {
      options.argv.push_back(absl::StrCat("--tensor_parallel=", ranks));
      options.argv = MpirunCommand(ranks, options.argv);
      options.env = MpiTestEnvironment();
    }
    options.out = Stdio::Pipe();
    auto started = Subprocess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    process_.emplace(*std::move(started));
    line_ = ReadLine();
    const size_t begin = line_.find("http://127.0.0.1:");
    ASSERT_NE(begin, std::string::npos) << line_;
    ASSERT_TRUE(absl::SimpleAtoi(line_.substr(begin + 17, line_.find("/v1") - begin - 17), &port_));
  }

  std::string ReadLine() {
    std::string line;
    char c = 0;
    while (c != '\n' && WaitForSocket(process_->stdout_fd(), POLLIN, absl::Now() + kPatience) &&
           read(process_->stdout_fd(), &c, 1) == 1) {
      line += c;
    }
    return line;
  }

  // The process of rank 0 among mpirun's children.
  pid_t FirstRank() {
    const std::string mpirun = absl::StrCat(process_->pid());
    const auto children = ReadFile(absl::StrCat("/proc/", mpirun, "/task/", mpirun, "/children"));
    EXPECT_TRUE(children.ok()) << children.status();
    for (const auto child : absl::StrSplit(*children, ' ', absl::SkipWhitespace())) {
      const auto environment = ReadFile(absl::StrCat("/proc/", child, "/environ"));
      pid_t pid = 0;
      if (environment.ok() && absl::StrContains(*environment, "OMPI_COMM_WORLD_RANK=0") &&
          absl::SimpleAtoi(child, &pid)) {
        return pid;
      }
    }
    ADD_FAILURE() << "no rank 0 among " << *children;
    return 0;
  }

  // Starts a stream that fills the context; returns when its first text has arrived.
  void BeginStream(RawClient* client) {
    const std::string body = json{{"prompt", "x"}, {"stream", true}, {"n", 8}}.dump();
    client->Send(absl::StrCat("POST /v1/completions HTTP/1.1\r\nContent-Length: ", body.size(),
                              "\r\n\r\n", body));
    EXPECT_TRUE(absl::StrContains(client->ReadUntil("\"text\""), "\"text\""));
  }

  std::optional<Subprocess> process_;
  std::string line_;
  int port_ = 0;
};

TEST_F(ServeProcessTest, ASignalLetsAStreamEnd) {
  Start();
  EXPECT_TRUE(absl::StrContains(line_, "mini on cpu, context 1024, 4 at once, chat template: none"))
      << line_;
  RawClient client(port_);
  BeginStream(&client);
  ASSERT_EQ(kill(process_->pid(), SIGTERM), 0);
  EXPECT_TRUE(absl::StrContains(client.ReadUntil("[DONE]"), "[DONE]"));
  const auto exit = process_->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 0) << exit->ToString();
}

TEST_F(ServeProcessTest, AModelSpreadOverTwoRanksIsServed) {
  Start({}, 2);
  EXPECT_TRUE(absl::StrContains(line_, "mini on cpu and that of 1 other rank, context 1024"))
      << line_;
  RawClient client(port_);
  BeginStream(&client);
  // Not to mpirun, which would forward the signal and end all ranks a second later.
  ASSERT_EQ(kill(FirstRank(), SIGTERM), 0);
  EXPECT_TRUE(absl::StrContains(client.ReadUntil("[DONE]"), "[DONE]"));
  EXPECT_TRUE(absl::StrContains(ReadLine(), "signal 15"));
  EXPECT_TRUE(absl::StrContains(ReadLine(), "serve: ended"));
  const auto exit = process_->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 0) << exit->ToString();
}

TEST_F(ServeProcessTest, AShortDrainCancelsAndStillEndsWell) {
  Start({"--drain_seconds=0"});
  RawClient client(port_);
  BeginStream(&client);
  ASSERT_EQ(kill(process_->pid(), SIGINT), 0);
  EXPECT_TRUE(absl::StrContains(client.ReadUntil("[DONE]"), "shutting down"));
  const auto exit = process_->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->exit_code, 0) << exit->ToString();
}

TEST_F(ServeProcessTest, ASecondSignalEndsItAtOnce) {
  Start({"--drain_seconds=1000"});
  RawClient client(port_);
  BeginStream(&client);
  ASSERT_EQ(kill(process_->pid(), SIGTERM), 0);
  EXPECT_TRUE(absl::StrContains(ReadLine(), "signal 15"));
  ASSERT_EQ(kill(process_->pid(), SIGTERM), 0);
  const auto exit = process_->Wait(kPatience);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->signal, SIGTERM) << exit->ToString();
}

TEST_F(ServeProcessTest, MistakesInTheCallAreToldInOneSentence) {
  const auto program = Runfile("rollout/serve/serve");
  ASSERT_TRUE(program.ok());
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {*program, "--device=cpu"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    const auto result = RunCommand(argv);
    return result.ok() ? absl::StrCat(result->exit_code, " ", result->err) : "";
  };
  const std::string model = "--model=" + Model();
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "2 serve: --model=FOLDER is needed"},
      {{"--model=/no/such/folder"}, "2 serve: --model=/no/such/folder is not a folder"},
      {{"--model=/tmp"}, "2 serve: "},
      {{model, "--port=99999"}, "2 serve: --port must be"},
      {{model, "--host=0.0.0.0", "--port=0"}, "2 serve: --host=0.0.0.0 can be reached"},
      {{model, "--chat_template=/no/jinja"}, "2 serve: the chat template /no/jinja does not"},
      {{model, "--max_length=5000"}, "2 serve: --max_length is 5000, the model has 1024"},
      {{model, "--api_key_file=/no/key"}, "2 serve: "},
      {{model, "--max_concurrent=0"}, "2 serve: --max_concurrent must be"},
  };
  for (const auto& [flags, start] : cases) {
    const std::string told = run(flags);
    EXPECT_TRUE(absl::StartsWith(told, start)) << told;
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  }
  const std::string dir = MakeTempDirectory("serve").value();
  EXPECT_EQ(run({"--model=" + dir + "/none"}),
            absl::StrCat("2 serve: --model=", dir, "/none is not a folder\n"));
  const std::string shard = WriteMiniWithMissingShard(dir + "/shard");
  EXPECT_EQ(run({"--model=" + dir + "/shard"}),
            absl::StrCat("2 serve: ", shard, ": is missing, though model.safetensors.index.json ",
                         "lists it; copy or download it into the folder\n"));
  WriteMiniWithTemplate(dir + "/raises", kRaisingTemplate);
  EXPECT_EQ(run({"--model=" + dir + "/raises"}),
            absl::StrCat("2 serve: ", RaisingTemplateError(dir + "/raises"), "\n"));
  EXPECT_TRUE(RemoveTree(dir).ok());
}

}  // namespace
}  // namespace tritonrl
