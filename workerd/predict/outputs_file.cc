#include "workerd/predict/outputs_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace disttrain::workerd {

namespace {

constexpr char kNpy[] = ".npy";
constexpr char kCsv[] = ".csv";
constexpr char kParquet[] = ".parquet";

bool is_npy(const std::string& path) {
  return std::filesystem::path(path).extension() == kNpy;
}

bool is_parquet(const std::string& path) {
  return std::filesystem::path(path).extension() == kParquet;
}

std::string column_name(std::uint64_t column) {
  return "output_" + std::to_string(column);
}

// Version 1.0: a magic number, the version, the length of the dict, the dict and spaces up to a multiple of 64 bytes.
std::string npy_head(std::uint64_t rows, std::uint64_t columns) {
  static_assert(std::endian::native == std::endian::little);
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                     std::to_string(columns) + "), }";
  constexpr std::size_t kBefore = 10;
  while ((kBefore + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  const auto length = static_cast<std::uint16_t>(dict.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) + static_cast<char>(length >> 8) + dict;
}

void append(std::string& text, float value) {
  std::array<char, 32> digits;
  const auto [end, problem] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), problem == std::errc() ? end : digits.data());
}

}  // namespace

Result<OutputsFile> OutputsFile::open(const std::string& path, std::uint64_t rows) {
  const std::filesystem::path place(path);
  if (!is_npy(path) && !is_parquet(path) && place.extension() != kCsv)
    return fail(ErrorCode::kUsage,
                "can't write predictions to " + path + ": expected a file NAME.npy, NAME.csv or NAME.parquet");
  std::error_code ignored;
  if (std::filesystem::is_directory(place, ignored))
    return fail(ErrorCode::kUsage, "can't write predictions to " + path + ": it is a folder; name a file");
  OutputsFile file(
      path, (place.parent_path() / ("." + place.filename().string() + ".tmp-" + std::to_string(::getpid()))).string(),
      rows);
  if (Status ok = file.check(); !ok) return tl::unexpected(ok.error());
  return file;
}

OutputsFile::OutputsFile(std::string path, std::string temporary, std::uint64_t rows)
    : path_(std::move(path)), temporary_(std::move(temporary)), rows_(rows), file_(temporary_, std::ios::binary) {}

OutputsFile::OutputsFile(OutputsFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      rows_(other.rows_),
      columns_(other.columns_),
      file_(std::move(other.file_)),
      parquet_(std::move(other.parquet_)) {}

OutputsFile::~OutputsFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputsFile::check() {
  if (file_) return {};
  return fail(ErrorCode::kFailed, "can't write predictions to " + path_ + ": " +
                                      std::generic_category().message(errno) +
                                      "; check the folder's permissions and the space on its disk");
}

Status OutputsFile::add(std::span<const float> values, std::uint64_t columns) {
  if (columns_ == 0) {
    columns_ = columns;
    if (Status ok = write_head(); !ok) return ok;
  }
  if (columns != columns_)
    return fail(ErrorCode::kData, "the model returned " + std::to_string(columns) +
                                      " outputs for each record of a batch and " + std::to_string(columns_) +
                                      " for those before; expected equally many for each record");
  if (parquet_ != nullptr) return parquet_->add(values);
  if (is_npy(path_)) {
    file_.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
    return check();
  }
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    append(text, values[i]);
    text += (i + 1) % columns == 0 ? '\n' : ',';
  }
  file_ << text;
  return check();
}

Status OutputsFile::write_head() {
  if (is_parquet(path_)) {
    std::vector<std::string> names;
    for (std::uint64_t c = 0; c < columns_; ++c) names.push_back(column_name(c));
    Result<std::unique_ptr<input::ParquetWriter>> made = input::ParquetWriter::create(temporary_, names);
    if (!made) return tl::unexpected(std::move(made.error()));
    parquet_ = std::move(*made);
    return {};
  }
  if (is_npy(path_)) {
    file_ << npy_head(rows_, columns_);
  } else {
    for (std::uint64_t c = 0; c < columns_; ++c) file_ << column_name(c) << (c + 1 == columns_ ? '\n' : ',');
  }
  return check();
}

Status OutputsFile::finish() {
  if (parquet_ != nullptr)
    if (Status ok = parquet_->finish(); !ok) return ok;
  file_.close();
  if (Status ok = check(); !ok) return ok;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail(ErrorCode::kFailed,
                "can't rename " + temporary_ + " to " + path_ + ": " + std::generic_category().message(errno));
  temporary_.clear();
  return {};
}

}  // namespace disttrain::workerd
