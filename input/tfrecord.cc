#include "input/tfrecord.h"

#include <bit>
#include <cstring>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "input/column_text.h"
#include "input/number_word.h"
#include "transport/wire/checksum.h"

namespace disttrain::input {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are in the file");

constexpr std::size_t kHeadBytes = 12;  // length and its checksum
constexpr std::size_t kTailBytes = 4;   // checksum of the data

template <typename T>
T number_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// TFRecord stores checksums rotated and shifted, so that the checksum of data that holds checksums is still useful.
std::uint32_t masked_crc(std::span<const std::byte> bytes) {
  return std::rotr(wire::crc32c(bytes), 15) + 0xa282ead8U;
}

// The numbers of tf.Example's messages: Example.features, Features.feature, key and value of its entries, and the
// alternatives of Feature. The values of each list are field 1.
enum class ExampleField : protozero::pbf_tag_type { kFeatures = 1 };
enum class EntryField : protozero::pbf_tag_type { kKey = 1, kValue = 2 };

constexpr auto kLength = protozero::pbf_wire_type::length_delimited;
constexpr auto kVarint = protozero::pbf_wire_type::varint;
constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
constexpr const char* kListNames[] = {"no list", "bytes_list", "float_list", "int64_list"};

std::string_view text_of(const protozero::data_view& view) {
  return {view.data(), view.size()};
}

class ExampleReader {
 public:
  ExampleReader(const std::vector<WantedColumn>& wanted, Table& table) : wanted_(wanted), table_(table) {
    starts_.resize(wanted.size());
    seen_in_.resize(wanted.size());
    first_of_name_.resize(wanted.size());
    same_name_.resize(wanted.size(), wanted.size());
    for (std::size_t c = 0; c < wanted.size(); ++c) {
      std::size_t earlier = c;
      while (earlier > 0 && wanted[earlier - 1].name != wanted[c].name) --earlier;
      first_of_name_[c] = earlier == 0 ? c : first_of_name_[earlier - 1];
      if (earlier > 0) same_name_[earlier - 1] = c;
      successor_.push_back(c + 1 == wanted.size() ? 0 : c + 1);
    }
  }

  // Appends record `number`, from 0, and sets its lengths, which are 0. Throws protozero::exception if the bytes aren't
  // a tf.Example. Returns an error text if a feature has a wrong type.
  std::optional<std::string> read(std::size_t number, const char* data, std::size_t size) {
    number_ = number;
    protozero::pbf_reader example(data, size);
    while (example.next()) {
      if (example.tag_and_type() != protozero::tag_and_type(ExampleField::kFeatures, kLength)) {
        example.skip();
        continue;
      }
      protozero::pbf_reader features = example.get_message();
      while (features.next()) {
        if (features.tag_and_type() != protozero::tag_and_type(ExampleField::kFeatures, kLength)) {
          features.skip();
          continue;
        }
        if (auto problem = read_entry(features.get_message())) return problem;
      }
    }
    return std::nullopt;
  }

 private:
  // The first column of this name, or the number of columns. Features of an example usually have the same order in each
  // record, which is seldom that of the columns. So it looks first at the column that followed the last one before.
  std::size_t column_of(std::string_view name) {
    if (wanted_.empty()) return 0;
    const std::size_t likely = successor_[last_];
    if (wanted_[likely].name == name) {
      last_ = first_of_name_[likely];
      return last_;
    }
    for (std::size_t c = 0; c < wanted_.size(); ++c) {
      if (wanted_[c].name != name) continue;
      successor_[last_] = first_of_name_[c];
      last_ = first_of_name_[c];
      return last_;
    }
    return wanted_.size();
  }

  std::optional<std::string> read_entry(protozero::pbf_reader entry) {
    std::string_view key;
    protozero::data_view value("", 0);
    while (entry.next()) {
      if (entry.tag_and_type() == protozero::tag_and_type(EntryField::kKey, kLength))
        key = text_of(entry.get_view());
      else if (entry.tag_and_type() == protozero::tag_and_type(EntryField::kValue, kLength))
        value = entry.get_view();
      else
        entry.skip();
    }
    for (std::size_t c = column_of(key); c < wanted_.size(); c = same_name_[c])
      if (auto problem = read_feature(protozero::pbf_reader(value), c)) return problem;
    return std::nullopt;
  }

  std::optional<std::string> read_feature(protozero::pbf_reader feature, std::size_t c) {
    TableColumn& column = table_.columns[c];
    if (seen_in_[c] == number_ + 1) {
      drop_values_behind(column, starts_[c]);
    } else {
      seen_in_[c] = number_ + 1;
      starts_[c] = values_in(column);
    }
    protozero::pbf_tag_type list = 0;
    while (feature.next()) {
      if (feature.tag() < 1 || feature.tag() > 3 || feature.wire_type() != kLength) {
        feature.skip();
        continue;
      }
      // A message has only one of the lists: the last.
      if (list != 0 && list != feature.tag()) drop_values_behind(column, starts_[c]);
      list = feature.tag();
      if (auto problem = read_list(feature.get_message(), list, wanted_[c], column)) return problem;
    }
    column.lengths[number_] = static_cast<std::uint32_t>(values_in(column) - starts_[c]);
    return std::nullopt;
  }

  // Returns an error text if the column can't take the list.
  std::optional<std::string> read_list(protozero::pbf_reader list, protozero::pbf_tag_type kind,
                                       const WantedColumn& wanted, TableColumn& column) {
    const bool is_whole = kind == 3;
    if (kind == 1) return read_texts(list, wanted, column);
    if (column.kind == ValueKind::kFloat) {
      is_whole ? read_integers(list, column.floats) : read_floats(list, column.floats);
    } else if (column.kind == ValueKind::kInteger && is_whole) {
      read_integers(list, column.integers);
    } else if (column.kind == ValueKind::kInteger) {
      return wrong_list(kind, wanted);
    } else if (is_whole) {
      integers_.clear();
      read_integers(list, integers_);
      for (const std::int64_t number : integers_) column.bytes.push_back(number_word(number, table_.texts));
    } else {
      floats_.clear();
      read_floats(list, floats_);
      for (const float number : floats_) column.bytes.push_back(number_word(number, table_.texts));
    }
    return std::nullopt;
  }

  static std::string wrong_list(protozero::pbf_tag_type kind, const WantedColumn& wanted) {
    return ": column '" + wanted.name + "' has a " + kListNames[kind] +
           ", expected an int64_list: correct the record, or the kind of the column";
  }

  static std::optional<std::string> read_texts(protozero::pbf_reader& list, const WantedColumn& wanted,
                                               TableColumn& column) {
    if (column.kind == ValueKind::kInteger) return wrong_list(1, wanted);
    while (list.next()) {
      if (list.tag_and_type() != protozero::tag_and_type(ExampleField::kFeatures, kLength)) {
        list.skip();
        continue;
      }
      const std::string_view text = text_of(list.get_view());
      if (column.kind == ValueKind::kBytes) {
        column.bytes.push_back(text);
        continue;
      }
      const std::optional<float> number = number_of_text(text, wanted.missing);
      if (!number) return ": " + wrong_number(text, wanted.name);
      column.floats.push_back(*number);
    }
    return std::nullopt;
  }

  static void read_floats(protozero::pbf_reader& list, std::vector<float>& out) {
    while (list.next()) {
      if (list.tag_and_type() == protozero::tag_and_type(ExampleField::kFeatures, kLength)) {
        const protozero::data_view packed = list.get_view();
        if (packed.size() % sizeof(float) != 0) throw protozero::invalid_length_exception();
        if (packed.size() == 0) continue;
        if (packed.size() == sizeof(float)) {
          out.push_back(number_at<float>(reinterpret_cast<const std::byte*>(packed.data())));
          continue;
        }
        const std::size_t old = out.size();
        out.resize(old + packed.size() / sizeof(float));
        std::memcpy(out.data() + old, packed.data(), packed.size());
      } else if (list.tag_and_type() == protozero::tag_and_type(ExampleField::kFeatures, kFixed32)) {
        out.push_back(list.get_float());
      } else {
        list.skip();
      }
    }
  }

  template <typename T>
  static void read_integers(protozero::pbf_reader& list, std::vector<T>& out) {
    while (list.next()) {
      if (list.tag_and_type() == protozero::tag_and_type(ExampleField::kFeatures, kLength)) {
        const protozero::data_view packed = list.get_view();
        const char* at = packed.data();
        const char* const end = at + packed.size();
        while (at != end) out.push_back(static_cast<T>(static_cast<std::int64_t>(protozero::decode_varint(&at, end))));
      } else if (list.tag_and_type() == protozero::tag_and_type(ExampleField::kFeatures, kVarint)) {
        out.push_back(static_cast<T>(list.get_int64()));
      } else {
        list.skip();
      }
    }
  }

  const std::vector<WantedColumn>& wanted_;
  Table& table_;
  std::size_t number_ = 0;              // of the current record
  std::vector<std::size_t> seen_in_;    // for each column: the last record that has it, from 1
  std::vector<std::size_t> starts_;     // for each column: where its values of that record begin
  std::vector<std::size_t> successor_;  // for each column: the column of the feature that followed its own
  std::size_t last_ = 0;                // the column of the last feature
  // Several columns may take the same feature.
  std::vector<std::size_t> first_of_name_;
  std::vector<std::size_t> same_name_;  // for each column: the next one of the same name, or the number of columns
  std::vector<std::int64_t> integers_;
  std::vector<float> floats_;
};

}  // namespace

Result<std::size_t> find_tfrecords(const RecordBlock& block, std::vector<RecordPlace>& records) {
  records.clear();
  std::size_t at = 0;
  while (block.bytes.size() - at >= kHeadBytes) {
    const std::byte* const head = block.bytes.data() + at;
    const auto found = number_at<std::uint32_t>(head + 8);
    const std::uint32_t expected = masked_crc({head, 8});
    if (found != expected)
      return fail(ErrorCode::kData, name_of(block, records.size()) + ": the length at byte " +
                                        std::to_string(block.offset + at) + " has checksum " + std::to_string(found) +
                                        ", but expected " + std::to_string(expected) +
                                        "; the file is damaged or isn't a TFRecord file");
    const auto length = number_at<std::uint64_t>(head);
    if (length > kMaxTfRecordBytes)
      return fail(ErrorCode::kData, name_of(block, records.size()) + " has " + std::to_string(length) +
                                        " bytes, but expected at most " + std::to_string(kMaxTfRecordBytes));
    if (block.bytes.size() - at - kHeadBytes < length + kTailBytes) break;
    records.push_back({at + kHeadBytes, static_cast<std::size_t>(length)});
    at += kHeadBytes + length + kTailBytes;
  }
  if (block.is_last && at != block.bytes.size())
    return fail(ErrorCode::kData, name_of(block, records.size()) + " is truncated: it begins at byte " +
                                      std::to_string(block.offset + at) + ", and the file ends at byte " +
                                      std::to_string(block.offset + block.bytes.size()) + "; copy the file again");
  return at;
}

Status decode_examples(const RecordBlock& block, std::span<const RecordPlace> records,
                       const std::vector<WantedColumn>& wanted, Table& table) {
  start_table(wanted, table);
  table.records = records.size();
  for (TableColumn& column : table.columns) column.lengths.assign(records.size(), 0);
  ExampleReader reader(wanted, table);
  for (std::size_t r = 0; r < records.size(); ++r) {
    const auto data = block.bytes.subspan(records[r].begin, records[r].bytes);
    const auto found = number_at<std::uint32_t>(data.data() + data.size());
    const std::uint32_t expected = masked_crc(data);
    if (found != expected)
      return fail(ErrorCode::kData, name_of(block, r) + ": the data at byte " +
                                        std::to_string(block.offset + records[r].begin) + " has checksum " +
                                        std::to_string(found) + ", but expected " + std::to_string(expected) +
                                        "; the file is damaged");
    try {
      if (auto problem = reader.read(r, reinterpret_cast<const char*>(data.data()), data.size()))
        return fail(ErrorCode::kData, name_of(block, r) + *problem);
    } catch (const protozero::exception& e) {
      return fail(ErrorCode::kData,
                  name_of(block, r) + " isn't a tf.Example: found " + e.what() + ", but expected a protobuf message");
    }
  }
  drop_equal_lengths(table);
  return {};
}

}  // namespace disttrain::input
