// The command line applies --set, makes paths absolute, and sends the job's file to the chief as TOML text. The chief
// reads the text with the same reader, so both report the same problems. The ps tasks and workers get the values that
// the chief has read, as a message (JobConfig in transport/wire/protocol.capnp).
#include "common/config/reader/job_text.h"

#include <vector>

#include "common/config/reader/problems.h"
#include "common/config/reader/toml_bounds.h"

namespace disttrain::config {

namespace {

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = text.find('.', begin);
    parts.push_back(text.substr(begin, dot - begin));
    if (dot == std::string::npos) return parts;
    begin = dot + 1;
  }
}

void set_source(TomlValue& value, const TomlPosition& at) {
  value.at = at;
  if (auto* items = value.as<TomlValue::Array>())
    for (TomlValue& item : *items) set_source(item, at);
  if (auto* entries = value.as<TomlValue::Table>())
    for (TomlEntry& entry : *entries) {
      entry.key_at = at;
      set_source(entry.value, at);
    }
}

// Reads the text as a TOML value if it is one, else as a string. A text with a newline could add more keys, so it
// counts as a string.
TomlValue value_of(const std::string& text, const TomlPosition& at) {
  TomlValue value{text, at};
  auto parsed = parse_toml(std::make_shared<const TomlSource>(TomlSource{"--set", "value = " + text}));
  if (parsed) {
    auto& table = *parsed->as<TomlValue::Table>();
    if (table.size() == 1 && table.front().value.as<TomlDate>() == nullptr) value = std::move(table.front().value);
  }
  set_source(value, at);
  return value;
}

}  // namespace

Status apply_set(TomlValue& document, const std::string& set) {
  const std::size_t equals = set.find('=');
  const std::vector<std::string> path = split_path(set.substr(0, equals));
  bool is_well_formed = equals != std::string::npos && path.size() >= 2 && path.size() <= kMaxTomlKeyParts;
  for (const std::string& part : path) is_well_formed = is_well_formed && !part.empty();
  constexpr std::size_t kLongestShown = 200;
  if (!is_well_formed)
    return fail(ErrorCode::kUsage, "--set " + set.substr(0, kLongestShown) +
                                       ": expected section.key=value, such as --set train.mode=sync");

  const TomlPosition at{std::make_shared<const TomlSource>(TomlSource{"--set " + set, ""})};
  TomlValue* here = &document;
  for (const std::string& part : path) {
    auto* table = here->as<TomlValue::Table>();
    if (table == nullptr)
      return tl::unexpected<Error>(to_error({Problem{
          at, "", "", "", "", "the part before ." + part + " isn't a table, so no key can follow it", false}}));
    TomlEntry* entry = find(*table, part);
    if (entry == nullptr) {
      table->push_back(TomlEntry{part, at, TomlValue{TomlValue::Table{}, at}});
      entry = &table->back();
    }
    here = &entry->value;
  }
  *here = value_of(set.substr(equals + 1), at);
  return {};
}

bool has_key_of(TomlValue& document, const std::string& set) {
  TomlValue* here = &document;
  for (const std::string& part : split_path(set.substr(0, set.find('=')))) {
    auto* table = here->as<TomlValue::Table>();
    if (table == nullptr) return true;
    TomlEntry* entry = find(*table, part);
    if (entry == nullptr) return false;
    here = &entry->value;
  }
  return true;
}

// A trainer runs in the job file's folder, unless the file names another one.
static void set_trainers_folder(TomlValue::Table* sections, const std::filesystem::path& folder) {
  TomlEntry* model = sections == nullptr ? nullptr : find(*sections, "model");
  auto* keys = model == nullptr ? nullptr : model->value.as<TomlValue::Table>();
  const TomlEntry* trainer = keys == nullptr ? nullptr : find(*keys, "trainer");
  if (trainer == nullptr || find(*keys, "folder") != nullptr) return;
  const TomlPosition at = trainer->key_at;
  keys->push_back(TomlEntry{"folder", at, TomlValue{folder.lexically_normal().string(), at}});
}

// data.columns.NAME.tokenizer.
static void make_tokenizers_absolute(TomlValue::Table* sections, const std::filesystem::path& folder) {
  const auto table_in = [](TomlValue::Table* table, const std::string& key) {
    TomlEntry* const entry = table == nullptr ? nullptr : find(*table, key);
    return entry == nullptr ? nullptr : entry->value.as<TomlValue::Table>();
  };
  auto* const columns = table_in(table_in(sections, "data"), "columns");
  if (columns == nullptr) return;
  for (TomlEntry& column : *columns) {
    auto* const keys = column.value.as<TomlValue::Table>();
    TomlEntry* const entry = keys == nullptr ? nullptr : find(*keys, "tokenizer");
    auto* const path = entry == nullptr ? nullptr : entry->value.as<std::string>();
    if (path != nullptr && !path->empty() && std::filesystem::path(*path).is_relative())
      *path = (folder / *path).lexically_normal().string();
  }
}

void make_paths_absolute(TomlValue& document, const std::filesystem::path& folder) {
  auto* sections = document.as<TomlValue::Table>();
  set_trainers_folder(sections, folder);
  make_tokenizers_absolute(sections, folder);
  for (const auto& [section_name, key] :
       {std::pair{"data", "path"}, std::pair{"data", "index"}, std::pair{"data", "tokenizer"},
        std::pair{"evaluate", "path"}, std::pair{"checkpoint", "directory"}, std::pair{"checkpoint", "init_from"},
        std::pair{"model", "program"}, std::pair{"model", "folder"}}) {
    TomlEntry* section = sections == nullptr ? nullptr : find(*sections, section_name);
    auto* keys = section == nullptr ? nullptr : section->value.as<TomlValue::Table>();
    TomlEntry* entry = keys == nullptr ? nullptr : find(*keys, key);
    auto* path = entry == nullptr ? nullptr : entry->value.as<std::string>();
    if (path != nullptr && !path->empty() && std::filesystem::path(*path).is_relative())
      *path = (folder / *path).lexically_normal().string();
  }
}

}  // namespace disttrain::config
