#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tritonrl {

namespace {

// Formats the message as a JSON string. Invalid UTF-8 becomes U+FFFD.
class JsonMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text =
        nlohmann::json(std::string(message.payload.data(), message.payload.size()))
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

constexpr char kName[] = "tritonrl";

std::atomic<int> log_rank{-1};

// Formats the rank between `before` and `after`, or nothing if it is not set.
class Rank : public spdlog::custom_flag_formatter {
 public:
  Rank(const char* before, const char* after) : before_(before), after_(after) {}
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    const int rank = log_rank.load();
    if (rank < 0) return;
    const std::string text = absl::StrCat(before_, rank, after_);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Rank>(before_, after_);
  }

 private:
  const char* const before_;
  const char* const after_;
};

std::unique_ptr<spdlog::formatter> Formatter(const LogOptions& options) {
  const bool json = options.format == "json";
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JsonMessage>('*');
  formatter->add_flag<Rank>('&', json ? R"("rank":)" : "[rank ", json ? "," : "] ");
  formatter->set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%&"message":%*})"
                              : "%Y-%m-%dT%H:%M:%S.%e %L %&%v");
  return formatter;
}

}  // namespace

void Log(LogLevel level, absl::string_view message) {
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                          spdlog::level::warn, spdlog::level::err};
  // Before SetUpLog spdlog's own logger would write to standard output.
  static const bool ready =
      spdlog::default_logger_raw()->name() == kName || SetUpLog(LogOptions()).ok();
  (void)ready;
  spdlog::default_logger_raw()->log(kLevels[static_cast<int>(level)],
                                    spdlog::string_view_t(message.data(), message.size()));
}

absl::Status SetUpLog(const LogOptions& options) {
  static const std::pair<const char*, spdlog::level::level_enum> kLevels[] = {
      {"debug", spdlog::level::debug},  {"info", spdlog::level::info},
      {"warning", spdlog::level::warn}, {"error", spdlog::level::err},
      {"off", spdlog::level::off},
  };
  if (options.format != "text" && options.format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("--log_format is text or json, not '", options.format, "'"));
  }
  for (const auto& [name, level] : kLevels) {
    if (options.level != name) continue;
    auto logger =
        std::make_shared<spdlog::logger>(kName, std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_formatter(Formatter(options));
    logger->set_level(level);
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--log_level is debug, info, warning, error or off, not '", options.level, "'"));
}

void SetLogRank(int rank) { log_rank.store(rank); }

}  // namespace tritonrl
