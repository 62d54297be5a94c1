#include "input/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace disttrain::input {

namespace {

struct TypeName {
  std::string_view name;
  ElementType type;
};
constexpr std::array<TypeName, 8> kTypes{{{"u1", ElementType::kU8},
                                          {"b1", ElementType::kU8},
                                          {"i1", ElementType::kI8},
                                          {"i2", ElementType::kI16},
                                          {"i4", ElementType::kI32},
                                          {"i8", ElementType::kI64},
                                          {"f4", ElementType::kF32},
                                          {"f8", ElementType::kF64}}};

// Parses the header of an npy file, which is a Python literal. An example:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// The functions whose names begin with `take` return false or nothing if the text doesn't continue as they expect.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  bool take(std::string_view expected) {
    skip_blanks();
    if (text_.substr(0, expected.size()) != expected) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  std::optional<std::string_view> take_string() {
    skip_blanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  std::optional<std::uint64_t> take_number() {
    skip_blanks();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
    if (error != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return number;
  }

  bool at_end() {
    skip_blanks();
    return text_.empty();
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }

  std::string_view text_;
};

std::optional<std::vector<std::uint64_t>> take_shape(HeaderText& text) {
  if (!text.take("(")) return std::nullopt;
  std::vector<std::uint64_t> shape;
  while (!text.take(")")) {
    const std::optional<std::uint64_t> dimension = text.take_number();
    if (!dimension || shape.size() == kMaxDimensions) return std::nullopt;
    shape.push_back(*dimension);
    if (text.take(")")) break;
    if (!text.take(",")) return std::nullopt;
  }
  return shape;
}

struct Fields {
  std::optional<std::string_view> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

std::optional<Fields> parse_fields(std::string_view header) {
  HeaderText text(header);
  Fields fields;
  if (!text.take("{")) return std::nullopt;
  while (!text.take("}")) {
    const std::optional<std::string_view> key = text.take_string();
    if (!key || !text.take(":")) return std::nullopt;
    if (*key == "descr") {
      fields.type = text.take_string();
      if (!fields.type) return std::nullopt;
    } else if (*key == "fortran_order") {
      fields.fortran_order = text.take("True");
      if (!*fields.fortran_order && !text.take("False")) return std::nullopt;
    } else if (*key == "shape") {
      fields.shape = take_shape(text);
      if (!fields.shape) return std::nullopt;
    } else {
      return std::nullopt;
    }
    text.take(",");
  }
  if (!text.at_end() || !fields.type || !fields.fortran_order || !fields.shape) return std::nullopt;
  return fields;
}

}  // namespace

Result<ArrayHeader> read_npy_header(ByteSource& file) {
  const auto bad = [&file](const std::string& what) { return fail(ErrorCode::kData, file.path() + ": " + what); };
  std::array<std::byte, 8> start{};
  Result<std::size_t> got = file.read(start);
  if (!got) return tl::unexpected(got.error());
  if (*got == 0) return bad("is empty, expected an npy file: fetch or copy it again");
  constexpr std::string_view kMagic("\x93NUMPY", 6);
  const std::string_view begins(reinterpret_cast<const char*>(start.data()), std::min(*got, kMagic.size()));
  if (begins != kMagic) {
    return bad("doesn't begin with npy's \\x93NUMPY: is data.format right, and is it a data file?");
  }
  if (*got < start.size()) return bad("is truncated within its npy header: fetch or copy it again");
  const int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3) {
    return bad("is npy version " + std::to_string(version) + ", expected 1, 2 or 3: save it again with numpy.save");
  }
  std::array<std::byte, 4> length_bytes{};
  const std::span<std::byte> length_span(length_bytes.data(), version == 1 ? 2 : 4);
  got = file.read(length_span);
  if (!got) return tl::unexpected(got.error());
  if (*got < length_span.size()) return bad("is truncated within its npy header: fetch or copy it again");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes.size(); ++i)
    length |= std::to_integer<std::size_t>(length_bytes[i]) << 8 * i;
  if (length > kMaxNpyHeaderBytes) {
    return bad("has an npy header of " + std::to_string(length) + " bytes, expected at most " +
               std::to_string(kMaxNpyHeaderBytes) + ": the file is damaged, save it again with numpy.save");
  }
  std::string text(length, '\0');
  got = file.read(std::as_writable_bytes(std::span(text)));
  if (!got) return tl::unexpected(got.error());
  if (*got < length) return bad("is truncated within its npy header: fetch or copy it again");

  const std::optional<Fields> fields = parse_fields(text);
  if (!fields) {
    return bad(
        "has an npy header that can't be read, expected {'descr': ..., 'fortran_order': ..., 'shape': ...} with "
        "a plain type: save it again with numpy.save");
  }
  const std::string_view order = fields->type->substr(0, 1);
  const std::string_view name = fields->type->substr(order.size());
  const auto* known = std::find_if(kTypes.begin(), kTypes.end(), [name](const TypeName& t) { return t.name == name; });
  if (known == kTypes.end() || (order != "<" && order != ">" && order != "|" && order != "=")) {
    return bad("has values of type '" + std::string(*fields->type) +
               "', expected u1, b1, i1, i2, i4, i8, f4 or f8: convert it with numpy's astype");
  }
  if (*fields->fortran_order && fields->shape->size() > 1) {
    return bad("is in Fortran order, expected C order: save numpy.ascontiguousarray of it");
  }
  if (fields->shape->empty()) return bad("holds a single value, expected an array [records, ...]");
  return ArrayHeader{known->type, order == ">", *fields->shape};
}

}  // namespace disttrain::input
