#include "bench/harness/harness.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/run_command.h"
#include "base/runfiles.h"
#include "base/status.h"
#include "base/subprocess.h"

ABSL_FLAG(int, warmup, -1, "Rounds (in some benches steps) that run before, unmeasured.");
ABSL_FLAG(int, repeats, -1, "Measured rounds.");
ABSL_FLAG(std::string, peer, "none", "Whether, or how, to measure what the bench compares with.");
ABSL_FLAG(std::string, device, "none", "cpu, cuda, cuda:N or auto.");
ABSL_FLAG(std::string, csv, "", "Append the figures to this file in the form of results/*.csv.");

namespace tritonrl {
namespace {

constexpr absl::string_view kCsvHeader =
    "id,subject,setting,metric,value,unit,peer,peer_value,bound,machine,commit,date,command,page";
constexpr size_t kErrorBytes = 2000;  // of a failed peer's stderr

// At least four significant digits, and never fewer than all digits before the point.
std::string Number(double value) {
  return std::abs(value) >= 1000 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.4g", value);
}

std::string Optional(const std::optional<double>& value) { return value ? Number(*value) : ""; }

std::string Spread(const std::vector<double>& rounds) {
  if (rounds.size() < 2) return "";
  const auto [least, most] = std::minmax_element(rounds.begin(), rounds.end());
  return absl::StrCat(Number(*least), " to ", Number(*most));
}

// Lays out a table with aligned columns. A column that is empty below its head is omitted.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size());
  std::vector<bool> used(lines[0].size());
  for (size_t row = 0; row < lines.size(); ++row) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], lines[row][i].size());
      if (row > 0 && !lines[row][i].empty()) used[i] = true;
    }
  }
  std::string table;
  for (const std::vector<std::string>& line : lines) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!used[i]) continue;
      const int width = static_cast<int>(widths[i]);
      if (i == 2 || i == 4 || i == 5) {  // numbers
        absl::StrAppendFormat(&text, "%*s  ", width, line[i]);
      } else {
        absl::StrAppendFormat(&text, "%-*s  ", width, line[i]);
      }
    }
    absl::StrAppend(&table, absl::StripTrailingAsciiWhitespace(text), "\n");
  }
  return table;
}

std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// GPUs as the driver names them, for example "2x H200", and CPU cores.
std::string Machine() {
  const std::string cores = absl::StrCat(std::thread::hardware_concurrency(), " CPU cores");
  const std::string folder = "/proc/driver/nvidia/gpus";
  const auto gpus = ListDirectory(folder);
  if (!gpus.ok() || gpus->empty()) return cores;
  std::string model = "GPU";
  const auto text = ReadFile(JoinPath(folder, gpus->front() + "/information"));
  for (absl::string_view line : absl::StrSplit(text.ok() ? *text : "", '\n')) {
    if (absl::ConsumePrefix(&line, "Model:")) {
      model = absl::StrReplaceAll(absl::StripAsciiWhitespace(line), {{"NVIDIA ", ""}});
    }
  }
  return absl::StrCat(gpus->size(), "x ", model, ", ", cores);
}

const char* EnvOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

RunInfo ThisRun(const std::string& name, int argc, char** argv) {
  // Under `bazel run` the workspace is known, in an archive of tools/bundle.sh the commit.
  const std::string workspace = EnvOr("BUILD_WORKSPACE_DIRECTORY", "");
  RunInfo info = {.machine = Machine(),
                  .commit = EnvOr("TRITONRL_COMMIT", ""),
                  .date = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()),
                  .command = absl::StrCat("./run ", name)};
  if (!workspace.empty()) {
    const auto head = RunCommand({"git", "-C", workspace, "rev-parse", "HEAD"});
    if (head.ok() && head->ok()) info.commit = head->out.substr(0, 7);
    const std::vector<std::string> path = absl::StrSplit(ProgramPath().value_or(name), "/bin/");
    info.command = absl::StrCat("bazel run //", DirName(path.back()), ":", name);
  }
  const char* separator = workspace.empty() ? " " : " -- ";
  for (int i = 1; i < argc; ++i) {
    if (absl::StartsWith(argv[i], "--csv")) continue;
    absl::StrAppend(&info.command, std::exchange(separator, " "), argv[i]);
  }
  return info;
}

// Sets a common flag's default, before the command line is read.
template <typename T>
void SetDefault(const std::optional<T>& value, absl::Flag<T>* flag) {
  if (value) absl::SetFlag(flag, *value);
}

// Returns the flag's value if the bench has this flag; otherwise sets *wrong to the sentence that
// refuses it.
template <typename T>
std::optional<T> TakeFlag(const std::optional<T>& wanted, const absl::Flag<T>& flag, const T& unset,
                          std::string* wrong) {
  const T value = absl::GetFlag(flag);
  if (wanted) return value;
  if (value != unset) *wrong = absl::StrCat("this bench has no --", flag.Name());
  return std::nullopt;
}

BenchOptions ReadFlags(const BenchOptions& defaults, int argc, char** argv, std::string* wrong) {
  SetDefault(defaults.warmup, &FLAGS_warmup);
  SetDefault(defaults.repeats, &FLAGS_repeats);
  SetDefault(defaults.peer, &FLAGS_peer);
  SetDefault(defaults.device, &FLAGS_device);
  std::vector<char*> words(argv, argv + argc);
  for (char*& word : words) {
    static char no_peer[] = "--peer=false";
    if (absl::string_view(word) == "--nopeer") word = no_peer;
  }
  if (StartProgram(defaults.usage, argc, words.data()).size() > 1) {
    *wrong = "arguments are flags of the form --name=value";
  }
  const std::string none = "none";
  BenchOptions flags = {.usage = defaults.usage,
                        .warmup = TakeFlag(defaults.warmup, FLAGS_warmup, -1, wrong),
                        .repeats = TakeFlag(defaults.repeats, FLAGS_repeats, -1, wrong),
                        .peer = TakeFlag(defaults.peer, FLAGS_peer, none, wrong),
                        .device = TakeFlag(defaults.device, FLAGS_device, none, wrong)};
  if (flags.warmup.value_or(0) < 0) *wrong = "--warmup must be at least 0";
  if (flags.repeats.value_or(1) < 1) *wrong = "--repeats must be at least 1";
  bool as_switch = false;
  if (defaults.peer && absl::SimpleAtob(*defaults.peer, &as_switch) &&
      !absl::SimpleAtob(*flags.peer, &as_switch)) {
    *wrong = "--peer must be true or false";
  }
  return flags;
}

absl::Status Guarded(const std::function<absl::Status(Bench*)>& run, Bench* bench) {
  try {
    return run(bench);
  } catch (const std::exception& error) {
    const std::vector<std::string> lines = absl::StrSplit(error.what(), '\n');
    return absl::InternalError(lines.front());  // below it: the backtrace of a c10::Error
  }
}

}  // namespace

absl::StatusOr<std::vector<nlohmann::json>> RunPeer(const PeerCommand& command) {
  ASSIGN_OR_RETURN(const PythonEnv python, FindPythonEnv());
  std::vector<std::string> argv = {python.interpreter};
  argv.insert(argv.end(), command.launcher.begin(), command.launcher.end());
  if (!command.script.empty()) {
    ASSIGN_OR_RETURN(argv.emplace_back(), Runfile(command.script));
  }
  argv.insert(argv.end(), command.arguments.begin(), command.arguments.end());
  RunCommandOptions options;
  options.timeout = command.timeout;
  options.input = command.input;
  options.env = python.Environment(command.python_path);
  options.env.insert(options.env.end(), command.env.begin(), command.env.end());
  ASSIGN_OR_RETURN(const CommandResult run, RunCommand(argv, options));
  const std::string name = command.script.empty() ? "the peer" : "the peer " + command.script;
  if (run.timed_out) {
    return absl::DeadlineExceededError(
        absl::StrCat(name, " did not finish in ", absl::FormatDuration(command.timeout)));
  }
  if (!run.ok()) {
    const size_t begin = run.err.size() - std::min(run.err.size(), kErrorBytes);
    return absl::InternalError(
        absl::StrCat(name, " failed with ", ExitStatus{run.exit_code, run.signal}.ToString(), ": ",
                     absl::StripAsciiWhitespace(absl::string_view(run.err).substr(begin))));
  }
  std::vector<nlohmann::json> figures;
  for (const absl::string_view line : absl::StrSplit(run.out, '\n')) {
    nlohmann::json parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_object()) figures.push_back(std::move(parsed));
  }
  if (figures.empty()) return absl::InternalError(name + " printed no figures as JSON");
  return figures;
}

std::optional<double> PeerValue(const nlohmann::json& line, const char* key, double scale) {
  if (!line.is_object() || !line.contains(key)) return std::nullopt;
  return scale * line[key].get<double>();
}

Bench::Bench(std::string name, BenchOptions flags)
    : name_(std::move(name)), flags_(std::move(flags)), subject_(name_) {}

std::string Bench::peer() const {
  for (const char* const none : {"none", "no", "false"}) {
    if (flags_.peer == none) return "";
  }
  return flags_.peer.value_or("");
}

absl::StatusOr<std::vector<std::vector<double>>> Bench::Measure(
    const std::vector<BenchCase>& cases) const {
  for (const BenchCase& run : cases) {
    for (int i = 0; i < warmup(); ++i) RETURN_IF_ERROR(run(/*measured=*/false).status());
  }
  std::vector<std::vector<double>> values(cases.size());
  for (int round = 0; round < repeats(); ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      ASSIGN_OR_RETURN(values[i].emplace_back(), cases[i](/*measured=*/true));
    }
  }
  return values;
}

void Bench::Add(const std::string& setting, std::vector<Figure> figures) {
  for (Figure& figure : figures) {
    rows_.push_back({subject_, setting, peer_name_, std::move(figure)});
  }
}

void Bench::PrintTable() {
  std::fputs(TakeTable().c_str(), stdout);
  std::fflush(stdout);
}

std::string Bench::TakeTable() {
  std::string tables;
  while (!muted_ && printed_ < rows_.size()) {
    std::vector<std::vector<std::string>> lines = {
        {"setting", "metric", "value", "unit", "peer", "bound", "spread"}};
    const std::string title = rows_[printed_].subject;
    std::string last, peers;
    for (; printed_ < rows_.size() && rows_[printed_].subject == title; ++printed_) {
      const auto& [subject, setting, peer_name, f] = rows_[printed_];
      lines.push_back({setting == last ? "" : setting, f.metric, Number(f.value), f.unit,
                       Optional(f.peer), Optional(f.bound), Spread(f.rounds)});
      last = setting;
      if (f.peer && !absl::StrContains(peers, peer_name)) {
        absl::StrAppend(&peers, peers.empty() ? "peer: " : "; ", peer_name);
      }
    }
    absl::StrAppend(&tables, title, "\n", Aligned(lines), peers, peers.empty() ? "" : "\n");
  }
  return tables;
}

std::string Bench::CsvLines(const std::string& prefix, int first, const RunInfo& info) const {
  std::string lines;
  for (const auto& [subject, setting, peer_name, f] : rows_) {
    const std::vector<std::string> cells = {
        absl::StrFormat("%s-%03d", prefix, first++),
        subject,
        setting,
        f.metric,
        Number(f.value),
        f.unit,
        f.peer ? peer_name : "",
        Optional(f.peer),
        f.bound ? absl::StrCat(Number(*f.bound), f.unit.empty() ? "" : " ", f.unit) : "",
        info.machine,
        info.commit,
        info.date,
        info.command,
        "no"};
    absl::StrAppend(&lines,
                    absl::StrJoin(cells, ",",
                                  [](std::string* out, const std::string& cell) {
                                    out->append(CsvCell(cell));
                                  }),
                    "\n");
  }
  return lines;
}

absl::Status Bench::AppendCsv(const std::string& path, const RunInfo& info, bool write) const {
  std::string text;
  if (FileExists(path)) {
    ASSIGN_OR_RETURN(text, ReadFile(path));
  }
  if (text.empty()) text = absl::StrCat(kCsvHeader, "\n");
  const std::string prefix(absl::StripSuffix(BaseName(path), ".csv"));
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines.front() != kCsvHeader) {
    return absl::InvalidArgumentError(
        absl::StrCat("--csv=", path, " must begin with the line ", kCsvHeader));
  }
  int last = 0;
  for (absl::string_view line : lines) {
    int number = 0;
    if (absl::ConsumePrefix(&line, prefix + "-") &&
        absl::SimpleAtoi(line.substr(0, line.find(',')), &number)) {
      last = std::max(last, number);
    }
  }
  if (!write || muted_) return absl::OkStatus();
  if (!absl::EndsWith(text, "\n")) text += "\n";
  return WriteFileAtomic(path, text + CsvLines(prefix, last + 1, info));
}

Figure Count(std::string metric, int64_t number, std::string unit) {
  return {std::move(metric), static_cast<double>(number), std::move(unit)};
}

std::vector<double> Rates(double amount, const std::vector<double>& seconds) {
  std::vector<double> rates;
  for (const double s : seconds) rates.push_back(amount / s);
  return rates;
}

double Fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time start = absl::Now();
  work();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

void RunBench(const BenchOptions& options, int argc, char** argv,
              const std::function<absl::Status(Bench*)>& run) {
  std::string wrong;
  const BenchOptions flags = ReadFlags(options, argc, argv, &wrong);
  const std::string name = BaseName(argv[0]);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s: %s; see --help\n", name.c_str(), wrong.c_str());
    std::exit(2);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string csv = absl::GetFlag(FLAGS_csv);
  const RunInfo info = csv.empty() ? RunInfo() : ThisRun(name, argc, argv);
  Bench bench(name, flags);
  absl::Status status;
  if (!csv.empty()) status = bench.AppendCsv(UserPath(csv), info, /*write=*/false);
  if (status.ok()) {
    status = Guarded(run, &bench);
    bench.PrintTable();
    if (!csv.empty()) status.Update(bench.AppendCsv(UserPath(csv), info));
  }
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", name.c_str(), Message(status).c_str());
  std::fflush(nullptr);
  // exit() would crash: once torch's profiler has run, the CUDA runtime's shutdown calls back into
  // Kineto, which frees objects that its static destructors have already freed (torch 2.11).
  std::_Exit(status.ok() ? 0 : 1);
}

}  // namespace tritonrl
