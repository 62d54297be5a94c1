#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "common/printable.h"
#include "input/csv.h"
#include "input/find_files.h"
#include "input/load.h"
#include "input/read_parallel.h"
#include "input/record_block.h"

namespace disttrain::input {

namespace {

Result<CsvPart> read_part(const Source& source, const std::string& path) {
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled, source.max_expansion);
  if (!file) return tl::unexpected(std::move(file.error()));
  return read_csv(**file, source.takes_probabilities());
}

// The header that all files of a data set must have.
struct CommonHeader {
  std::vector<std::string> names;  // empty: the files have none
  std::string where;               // for error texts
};

CommonHeader common_header(const std::vector<CsvPart>& parts, const Source& source) {
  if (!source.header.empty()) return {source.header, "the training set"};
  for (const CsvPart& part : parts)
    if (!part.header.empty()) return {part.header, part.path};
  return {};
}

// Without [data.columns] a column is known by its place. So a file with another order would give wrong inputs. The last
// column is the label whatever its name is.
Status check_header(const CsvPart& part, const CommonHeader& common) {
  if (part.header.empty() || common.names.empty()) return {};
  const std::string place = part.path + ":" + std::to_string(part.header_line) + ": ";
  const std::string advice =
      ": all files of the training set and of the test set must have the same columns in the same order: correct the "
      "file";
  if (part.header.size() != common.names.size())
    return fail(ErrorCode::kData, place + "the header has " + std::to_string(part.header.size()) +
                                      " columns, expected " + std::to_string(common.names.size()) + " as in " +
                                      common.where + advice);
  const auto label = part.header.end() - 1;
  const auto differ = std::mismatch(part.header.begin(), label, common.names.begin());
  if (differ.first == label) return {};
  return fail(ErrorCode::kData, place + "the header's column " +
                                    std::to_string(differ.first - part.header.begin() + 1) + " is " +
                                    printable(shown_text(*differ.first)) + ", expected " +
                                    printable(shown_text(*differ.second)) + " as in " + common.where + advice);
}

Status check_alike(const std::vector<CsvPart>& parts, const CommonHeader& header) {
  const CsvPart& first = parts.front();
  for (const CsvPart& part : parts) {
    const auto bad = [&part](const std::string& what) {
      return fail(ErrorCode::kData, part.path + ":" + std::to_string(part.labels.lines.front()) + ": " + what +
                                        ": all files of a data set must be alike");
    };
    if (part.columns != first.columns) {
      return bad(std::to_string(part.columns + 1) + " fields, expected " + std::to_string(first.columns + 1) +
                 " as in " + first.path);
    }
    if (Status ok = check_header(part, header); !ok) return ok;
    if (part.labels.names.empty() != first.labels.names.empty()) {
      return bad(std::string("the labels are ") + (part.labels.names.empty() ? "numbers" : "text") + ", expected " +
                 (first.labels.names.empty() ? "numbers" : "text") + " as in " + first.path);
    }
  }
  return {};
}

Status join_text_labels(const std::vector<CsvPart>& parts, const Source& source, Contents& contents) {
  if (source.label_names && source.label_names->empty()) {
    const CsvLabels& labels = parts.front().labels;
    return fail(ErrorCode::kData, parts.front().path + ":" + std::to_string(labels.lines.front()) + ": the label " +
                                      printable(shown_text(labels.names.front())) +
                                      " isn't a number as those of the training set: correct the file");
  }
  std::vector<std::string>& names = contents.label_names;
  names = source.label_names.value_or(std::vector<std::string>());
  if (names.empty()) {
    for (const CsvPart& part : parts) names.insert(names.end(), part.labels.names.begin(), part.labels.names.end());
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : names) numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  for (const CsvPart& part : parts) {
    std::vector<std::int64_t> of_code;
    for (std::size_t i = 0; i < part.labels.names.size(); ++i) {
      const auto known = numbers.find(part.labels.names[i]);
      if (known == numbers.end()) {
        return fail(ErrorCode::kData, part.path + ":" + std::to_string(part.labels.lines[i]) + ": the label " +
                                          shown_text(part.labels.names[i]) + " isn't one of the training set's " +
                                          std::to_string(names.size()) + " labels (" + shown_text(names.front()) +
                                          " ... " + shown_text(names.back()) + "): correct the file");
      }
      of_code.push_back(known->second);
    }
    for (const std::uint32_t code : part.labels.codes) contents.labels.push_back(of_code[code]);
  }
  return {};
}

std::size_t records_with(const std::string& label, const CsvLabels& labels) {
  const auto found = std::find(labels.names.begin(), labels.names.end(), label);
  if (found == labels.names.end()) return 0;
  return static_cast<std::size_t>(std::count(labels.codes.begin(), labels.codes.end(), found - labels.names.begin()));
}

// Warns if the first record is probably a header: only first lines of files have its label.
std::string notice_of_header(const std::vector<CsvPart>& parts) {
  const CsvPart& first = parts.front();
  if (!first.header.empty() || first.labels.names.empty()) return "";
  const std::string& label = first.labels.names.front();
  bool has_others = false;
  for (const CsvPart& part : parts) {
    const bool begins_with_it = part.header.empty() && part.labels.names.front() == label;
    if (records_with(label, part.labels) != (begins_with_it ? 1 : 0)) return "";
    has_others = has_others || part.records > 1;
  }
  if (!has_others) return "";
  return first.path + ":" + std::to_string(first.labels.lines.front()) + ": the label " + printable(shown_text(label)) +
         " is on no other line, so this line may be a header, but it is read as a record, because some of its input "
         "columns are numbers; if it is a header, remove it, or name the columns by words";
}

// Warns if a header is probably a record: the name of its last column is the label of a record.
std::string notice_of_record(const std::vector<CsvPart>& parts) {
  std::map<std::string_view, const CsvPart*> headers;  // by the name of the last column
  for (const CsvPart& part : parts)
    if (!part.header.empty()) headers.emplace(part.header.back(), &part);
  for (const CsvPart& part : parts)
    for (const std::string& label : part.labels.names)
      if (const auto found = headers.find(label); found != headers.end())
        return found->second->path +
               ": the first line is read as a header, because it has no numbers, but its last field " +
               printable(shown_text(label)) +
               " is a label of other lines, so it may be a record; if it is one, write its inputs as numbers";
  return "";
}

Status join_number_labels(const std::vector<CsvPart>& parts, const Source& source, Contents& contents) {
  if (source.label_names && !source.label_names->empty()) {
    return fail(ErrorCode::kData, parts.front().path + ":" + std::to_string(parts.front().labels.lines.front()) +
                                      ": the labels are numbers, expected text as in the training set (" +
                                      shown_text(source.label_names->front()) + " ...): correct the file");
  }
  std::vector<double> all;
  for (const CsvPart& part : parts) all.insert(all.end(), part.labels.numbers.begin(), part.labels.numbers.end());
  if (take_labels(all, contents)) return {};
  std::vector<float> targets;
  for (const double value : all) targets.push_back(static_cast<float>(value));  // it fits: CsvLabels::numbers
  contents.targets = values_of(targets, 1);
  return {};
}

// Frees the inputs of each part as soon as they are copied.
Values join_inputs(std::vector<CsvPart>& parts, std::uint64_t records) {
  Values joined{DType::kFloat32, parts.front().columns, {}};
  joined.bytes = std::make_unique_for_overwrite<std::byte[]>(records * joined.elements * sizeof(float));
  std::byte* to = joined.bytes.get();
  for (CsvPart& part : parts) {
    const std::span<const std::byte> from = std::as_bytes(std::span(part.inputs));
    to = std::copy(from.begin(), from.end(), to);
    part.inputs = {};
  }
  return joined;
}

}  // namespace

Result<Contents> load_csv(const Source& source) {
  if (!source.labels.empty()) {
    return fail(ErrorCode::kConfig, source.labels_key + " = \"" + source.labels +
                                        "\", but csv files have their labels in the last column: remove the key");
  }
  const Result<std::vector<std::string>> paths = find_files(source, source.files, source.files_key);
  if (!paths) return tl::unexpected(paths.error());
  Result<std::vector<CsvPart>> parts =
      read_parallel<CsvPart>(*paths, [&source](const std::string& path) { return read_part(source, path); });
  if (!parts) return tl::unexpected(parts.error());
  CommonHeader header = common_header(*parts, source);
  if (Status alike = check_alike(*parts, header); !alike) return tl::unexpected(alike.error());
  const CsvPart& first = parts->front();
  if (!source.target_taker.empty() && !first.labels.names.empty())
    return fail(ErrorCode::kData, first.path + ":" + std::to_string(first.labels.lines.front()) + ": the label " +
                                      printable(shown_text(first.labels.names.front())) + " isn't a number, which " +
                                      source.target_taker + " needs: correct the file, or choose a loss for classes");

  Contents contents;
  contents.header = std::move(header.names);
  const Status joined = parts->front().labels.names.empty() ? join_number_labels(*parts, source, contents)
                                                            : join_text_labels(*parts, source, contents);
  if (!joined) return tl::unexpected(joined.error());
  if (!source.label_names) contents.notice = notice_of_header(*parts);
  if (!source.label_names && contents.notice.empty()) contents.notice = notice_of_record(*parts);
  for (const CsvPart& part : *parts) {
    contents.records += part.records;
    contents.bytes_read += part.file_bytes;
  }
  contents.inputs = join_inputs(*parts, contents.records);
  return contents;
}

}  // namespace disttrain::input
