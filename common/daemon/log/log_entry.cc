#include "common/daemon/log/log_entry.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "common/daemon/log/message_ids.h"
#include "common/printable.h"

namespace disttrain::daemon {

namespace {

std::string time_text(std::int64_t wall_nanoseconds, char between, int digits) {
  const std::time_t seconds = wall_nanoseconds / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
  text[10] = between;
  std::string fraction = std::to_string(1'000'000'000 + wall_nanoseconds % 1'000'000'000);
  return std::string(text, length) + "." + fraction.substr(1, static_cast<std::size_t>(digits));
}

// Returns the path from the top of the source tree, whatever the build folder is.
std::string file_of(const std::source_location& place) {
  std::string file = place.file_name();
  while (file.starts_with("./") || file.starts_with("../")) file.erase(0, file.find('/') + 1);
  return file;
}

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      break;
  }
  return "error";
}

int priority_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return 7;
    case Level::kInfo:
      return 6;
    case Level::kWarn:
      return 4;
    case Level::kError:
      break;
  }
  return 3;
}

std::string to_text(const LogLine& line) {
  std::string level = to_string(static_cast<Level>(line.level));
  level.resize(5, ' ');
  return time_text(line.wall_nanoseconds, ' ', 3) + " " + level + " " + to_string(line.task) + " " +
         indented(printable(line.text, Lines::kMany));
}

std::string to_json(const LogEntry& entry) {
  nlohmann::ordered_json json;
  json["time"] = time_text(entry.line.wall_nanoseconds, 'T', 6) + "Z";
  json["level"] = to_string(static_cast<Level>(entry.line.level));
  json["task"] = to_string(entry.line.task);
  json["message"] = entry.line.text;
  if (!entry.fields.job.empty()) json["job"] = entry.fields.job;
  if (entry.fields.step) json["step"] = *entry.fields.step;
  if (!entry.fields.kind.empty()) json["event"] = entry.fields.kind;
  json["code"] = file_of(entry.place) + ":" + std::to_string(entry.place.line());
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

JournalFields to_journal(const LogEntry& entry) {
  JournalFields fields{{"MESSAGE", printable(entry.line.text, Lines::kMany)},
                       {"PRIORITY", std::to_string(priority_of(static_cast<Level>(entry.line.level)))},
                       {"DISTTRAIN_TASK", to_string(entry.line.task)},
                       {"CODE_FILE", file_of(entry.place)},
                       {"CODE_LINE", std::to_string(entry.place.line())},
                       {"CODE_FUNC", entry.place.function_name()}};
  const LogFields& known = entry.fields;
  if (!known.job.empty()) fields.emplace_back("DISTTRAIN_JOB", known.job);
  if (known.step) fields.emplace_back("DISTTRAIN_STEP", std::to_string(*known.step));
  if (known.kind.empty()) return fields;
  fields.emplace_back("DISTTRAIN_EVENT", known.kind);
  if (const std::string id = message_id_of(known.kind); !id.empty()) fields.emplace_back("MESSAGE_ID", id);
  return fields;
}

}  // namespace disttrain::daemon
