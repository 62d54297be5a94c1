#include "common/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "common/bounded_json.h"
#include "common/check.h"

namespace disttrain::checkpoint {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian, and this program copies them without swapping bytes");

constexpr const char* kMetadata = "__metadata__";
constexpr const char* kDtype = "dtype";
constexpr const char* kShape = "shape";
constexpr const char* kOffsets = "data_offsets";

constexpr std::uint64_t kBytesAtOnce = std::uint64_t{4} << 20;
constexpr std::uint64_t kPartsAtOnce = 64 * 1024;  // names, numbers and brackets of the header: they take some ms

struct DTypeEntry {
  DType dtype;
  const char* name;
  std::uint64_t bytes;
};
constexpr DTypeEntry kDTypes[] = {
    {DType::kF32, "F32", 4},        {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},
    {DType::kF64, "F64", 8},        {DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},          {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E8M0, "F8_E8M0", 1}, {DType::kU16, "U16", 2},        {DType::kI16, "I16", 2},
    {DType::kU32, "U32", 4},        {DType::kI32, "I32", 4},        {DType::kU64, "U64", 8},
    {DType::kI64, "I64", 8},        {DType::kC64, "C64", 8}};

const DTypeEntry& entry_of(DType dtype) {
  const auto found = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                  [dtype](const DTypeEntry& entry) { return entry.dtype == dtype; });
  DISTTRAIN_CHECK(found != std::end(kDTypes));
  return *found;
}

// Returns false if the product exceeds 64 bits.
bool product_of(const std::vector<std::uint64_t>& sizes, std::uint64_t& product) {
  for (const std::uint64_t size : sizes)
    if (__builtin_mul_overflow(product, size, &product)) return false;
  return true;
}

// Reads the header as the parser meets its parts, and builds no tree of JSON values: a header may have a million
// tensors.
class Parser final : public nlohmann::json_sax<Json> {
 public:
  Parser(const std::string& path, const IsCancelled& is_cancelled) : path_(path), is_cancelled_(is_cancelled) {}

  Result<TensorTable> parse(const std::string& text, std::uint64_t data_bytes) {
    if (text.empty() || text.front() != '{') return tl::unexpected(error_of("its header doesn't begin with {"));
    const bool is_whole = read_bounded_json<Json>(text, *this);
    if (error_) return tl::unexpected(*error_);
    if (!is_whole) return tl::unexpected(error_of("its header isn't JSON, or is nested too deeply"));
    if (!check_names() || !check_places(data_bytes)) return tl::unexpected(*error_);
    return std::move(table_);
  }

  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool number_integer(number_integer_t) override { return other_value(); }  // below 0
  bool number_float(number_float_t, const string_t&) override { return other_value(); }
  bool binary(binary_t&) override { return other_value(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  bool number_unsigned(number_unsigned_t number) override {
    if (place_ != Place::kSizes) return other_value();
    (key_ == kShape ? tensor_.shape : offsets_).push_back(number);
    return count_part();
  }

  bool string(string_t& value) override {
    if (place_ == Place::kTexts)
      return table_.metadata.emplace(key_, std::move(value)).second ? count_part() : has_key_twice();
    if (place_ != Place::kTensor || key_ != kDtype) return other_value();
    const auto known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                    [&value](const DTypeEntry& one) { return one.name == value; });
    if (known == std::end(kDTypes))
      return bad("tensor " + tensor_.name + " has the unknown dtype " + value + "; F32, F16 and BF16 can be read",
                 ErrorCode::kConfig);
    tensor_.dtype = known->dtype;
    return count_part();
  }

  bool key(string_t& key) override {
    if (place_ == Place::kTensor) {
      bool* const has = key == kDtype     ? &has_dtype_
                        : key == kShape   ? &has_shape_
                        : key == kOffsets ? &has_offsets_
                                          : nullptr;
      if (has == nullptr) return other_value();
      if (*has) return has_key_twice();
      *has = true;
    }
    (place_ == Place::kNames ? tensor_.name : key_) = std::move(key);
    return count_part();
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kNames;
    } else if (place_ != Place::kNames) {
      return other_value();
    } else if (tensor_.name == kMetadata) {
      if (has_metadata_) return has_key_twice();
      has_metadata_ = true;
      place_ = Place::kTexts;
    } else {
      has_dtype_ = has_shape_ = has_offsets_ = false;
      tensor_.shape.clear();
      offsets_.clear();
      place_ = Place::kTensor;
    }
    return count_part();
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !add_tensor()) return false;
    place_ = Place::kNames;
    return count_part();
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == kDtype) return other_value();
    place_ = Place::kSizes;
    return count_part();
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return count_part();
  }

 private:
  // Where the next part of the header stands: before the header, among the names of tensors, in the object of a tensor,
  // in its shape or data_offsets, or in __metadata__.
  enum class Place { kStart, kNames, kTensor, kSizes, kTexts };

  Error error_of(const std::string& what, ErrorCode code = ErrorCode::kData) const {
    return {code, path_ + " isn't a valid safetensors file: " + what};
  }
  // Keeps the error. Returns false, which ends the parse.
  bool bad(const std::string& what, ErrorCode code = ErrorCode::kData) {
    error_ = error_of(what, code);
    return false;
  }
  bool has_key_twice() { return bad("its header has a key twice"); }  // the format forbids it
  // The header has a value of another type than the format has in this place.
  bool other_value() {
    if (place_ == Place::kTexts) return bad("__metadata__ " + key_ + " isn't a string");
    if (place_ == Place::kNames && tensor_.name == kMetadata) return bad("__metadata__ isn't an object");
    return bad("tensor " + tensor_.name + " must have dtype, shape, two data_offsets and nothing else");
  }
  // Returns false if the caller has cancelled the parse.
  bool count_part() {
    if (++parts_ % kPartsAtOnce != 0 || !is_cancelled_ || !is_cancelled_()) return true;
    error_ = Error{ErrorCode::kTemporary, path_ + ": reading it was cancelled"};
    return false;
  }

  bool add_tensor() {
    if (!has_dtype_ || !has_shape_ || offsets_.size() != 2) return other_value();
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    std::uint64_t bytes = bytes_of(tensor_.dtype);
    if (!product_of(tensor_.shape, bytes) || tensor_.end < tensor_.begin || tensor_.end - tensor_.begin != bytes)
      return bad("tensor " + tensor_.name + " has bytes [" + std::to_string(tensor_.begin) + ", " +
                 std::to_string(tensor_.end) + "), but its shape needs another number of bytes");
    table_.tensors.push_back(std::move(tensor_));
    return true;
  }

  bool check_names() {
    std::unordered_set<std::string_view> names;
    names.reserve(table_.tensors.size());
    for (const Tensor& tensor : table_.tensors) {
      if (!names.insert(tensor.name).second) return has_key_twice();
      if (!count_part()) return false;
    }
    return true;
  }

  // Sorts the tensors by their bytes, and checks that these leave no gaps.
  bool check_places(std::uint64_t data_bytes) {
    std::sort(table_.tensors.begin(), table_.tensors.end(), [](const Tensor& a, const Tensor& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::uint64_t at = 0;
    for (const Tensor& tensor : table_.tensors) {
      if (tensor.begin != at)
        return bad("tensor " + tensor.name + " begins at byte " + std::to_string(tensor.begin) + "; expected " +
                   std::to_string(at));
      at = tensor.end;
    }
    return at == data_bytes || bad("its tensors end at byte " + std::to_string(at) + ", its data ends at byte " +
                                   std::to_string(data_bytes) + ": it is truncated, or something was appended");
  }

  const std::string& path_;
  const IsCancelled& is_cancelled_;
  TensorTable table_;
  std::optional<Error> error_;
  std::uint64_t parts_ = 0;
  Place place_ = Place::kStart;
  bool has_metadata_ = false;
  std::string key_;                     // of the value that is read now, in a tensor's object or in __metadata__
  Tensor tensor_;                       // which is read now
  std::vector<std::uint64_t> offsets_;  // its data_offsets
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

// What a file is that begins with these 8 bytes, if it is what torch.save() writes. Otherwise null. Call it only if the
// bytes can't be the length of a header.
const char* other_format(std::uint64_t first_bytes) {
  constexpr std::uint64_t kZip = 0x04034b50;  // "PK\3\4"
  if ((first_bytes & 0xffffffff) == kZip) return "a zip archive, as torch.save() writes it (.pt, .pth, .bin)";
  const std::uint64_t pickle = first_bytes & 0xffff;  // the opcode PROTO and its version
  if ((pickle & 0xff) == 0x80 && (pickle >> 8) >= 2 && (pickle >> 8) <= 5)
    return "a pickle, as old versions of torch.save() write it (.pt, .pth, .bin)";
  return nullptr;
}

}  // namespace

std::uint64_t bytes_of(DType dtype) {
  return entry_of(dtype).bytes;
}

const char* name_of(DType dtype) {
  return entry_of(dtype).name;
}

// Builds the JSON text by hand, because the keys must be in the order of the data. nlohmann::json would sort the keys,
// and its ordered variant takes quadratic time.
std::string encode_header(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += "\"" + std::string(kMetadata) + "\":" + Json(metadata).dump();
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    DISTTRAIN_CHECK_EQ(tensor.begin, at);
    at = tensor.end;
    const Json entry = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
    text += (text.size() > 1 ? "," : "") + Json(tensor.name).dump() + ":" + entry.dump();
  }
  text += "}";
  std::uint64_t length = text.size();
  const std::uint64_t whole = (sizeof(length) + length + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  length = whole - sizeof(length);
  text.resize(length, ' ');
  std::string header(sizeof(length), '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  return header + text;
}

Result<TensorTable> read_header(InputFile& file, const std::string& path, const IsCancelled& is_cancelled) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length))
    return fail(ErrorCode::kData,
                path + " has " + std::to_string(file.size()) + " bytes; it is too short for a safetensors file");
  if (Status read = file.read_at(0, std::as_writable_bytes(std::span(&length, 1))); !read)
    return tl::unexpected(read.error());
  if (length > kMaxHeaderBytes || length > file.size() - sizeof(length)) {
    if (const char* const other = other_format(length); other != nullptr)
      return fail(
          ErrorCode::kConfig,
          path + " is " + other +
              ", not a safetensors file: convert it once with Python, where it was written: `import torch, "
              "safetensors.torch; state = torch.load(\"" +
              path.substr(path.rfind('/') + 1) +
              "\", map_location=\"cpu\"); state = state.get(\"state_dict\", state); "
              "safetensors.torch.save_file({name: value.contiguous().clone() for name, value in state.items()}, "
              "\"weights.safetensors\")`, and name the new file");
    return fail(ErrorCode::kData, path + " says that its header has " + std::to_string(length) +
                                      " bytes, but the file has " + std::to_string(file.size()) +
                                      " bytes and a header has at most " + std::to_string(kMaxHeaderBytes) +
                                      " bytes: the file is truncated, or isn't a safetensors file");
  }
  std::string text(length, '\0');
  for (std::uint64_t at = 0; at < length; at += kBytesAtOnce) {
    if (is_cancelled && is_cancelled()) return fail(ErrorCode::kTemporary, path + ": reading it was cancelled");
    const auto some = std::span(text).subspan(at, std::min(kBytesAtOnce, length - at));
    if (Status read = file.read_at(sizeof(length) + at, std::as_writable_bytes(some)); !read)
      return tl::unexpected(read.error());
  }
  const std::uint64_t data_begin = sizeof(length) + length;
  Result<TensorTable> table = Parser(path, is_cancelled).parse(text, file.size() - data_begin);
  if (table) table->data_begin = data_begin;
  return table;
}

}  // namespace disttrain::checkpoint
