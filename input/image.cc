#include "input/image.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "input/image_resize.h"

namespace disttrain::input {

namespace {

enum class Kind : std::uint8_t { kJpeg, kPng };

tl::unexpected<Error> bad(const std::string& what) {
  return fail(ErrorCode::kData, what);
}

bool begins_with(std::span<const std::byte> file, std::string_view text) {
  return file.size() >= text.size() && std::memcmp(file.data(), text.data(), text.size()) == 0;
}

// The simplified interface of libpng. It frees what it has allocated.
class PngReader {
 public:
  explicit PngReader(std::span<const std::byte> file) {
    image_.version = PNG_IMAGE_VERSION;
    is_open_ = png_image_begin_read_from_memory(&image_, file.data(), file.size()) != 0;
  }
  ~PngReader() { png_image_free(&image_); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool is_open() const { return is_open_; }
  png_image& image() { return image_; }
  tl::unexpected<Error> damaged() const {
    return bad(std::string("found a damaged or truncated PNG image (libpng: ") + image_.message +
               "), expected a whole one: copy it again or leave it out");
  }

 private:
  png_image image_{};
  bool is_open_ = false;
};

std::uint8_t gray_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

// Converts pixels of `from` channels (1 or 3, and one more if they have transparency) to `to` channels.
void convert_pixels(const std::uint8_t* in, std::size_t from, std::size_t pixels, std::size_t to, std::uint8_t* out) {
  for (std::size_t i = 0; i < pixels; ++i, in += from, out += to) {
    if (to == 1) {
      out[0] = from >= 3 ? gray_of(in) : in[0];
    } else {
      for (std::size_t c = 0; c < 3; ++c) out[c] = in[from >= 3 ? c : 0];
    }
  }
}

// Whether a JPEG has a marker here. A byte 0xff before another one fills a gap, and one before a 0 is data.
bool is_marker(std::span<const std::byte> file, std::size_t at) {
  return file[at] == std::byte{0xff} && file[at + 1] != std::byte{0xff} && file[at + 1] != std::byte{0};
}

// Copies a JPEG without the bytes between the parts of its header. Leaves the first scan and all after it as they are:
// bytes there could be pixels.
void copy_without_stray_bytes(std::span<const std::byte> file, std::vector<std::byte>& out) {
  constexpr std::size_t kMarkerBytes = 2;
  constexpr std::size_t kLengthBytes = 2;
  const auto copy = [&file, &out](std::size_t begin, std::size_t end) {
    const auto from = file.begin();
    out.insert(out.end(), from + static_cast<std::ptrdiff_t>(begin), from + static_cast<std::ptrdiff_t>(end));
  };
  out.clear();
  out.reserve(file.size());
  std::size_t at = std::min(kMarkerBytes, file.size());
  copy(0, at);  // the marker of the image's begin
  for (;;) {
    while (at + kMarkerBytes + kLengthBytes <= file.size() && !is_marker(file, at)) ++at;
    if (at + kMarkerBytes + kLengthBytes > file.size()) break;
    const auto marker = std::to_integer<std::uint8_t>(file[at + 1]);
    const bool has_length = marker >= 0xc0 && (marker < 0xd0 || marker > 0xd9);
    const bool begins_scan = marker == 0xda;
    const std::size_t end = at + kMarkerBytes + std::to_integer<std::size_t>(file[at + 2]) * 256 +
                            std::to_integer<std::size_t>(file[at + 3]);
    if (!has_length || begins_scan || end > file.size()) break;
    copy(at, end);
    at = end;
  }
  copy(at, file.size());
}

}  // namespace

struct ImageDecoder::Header {
  Kind kind = Kind::kJpeg;
  ImageShape shape;
};

class ImageDecoder::Jpeg {
 public:
  Jpeg() : handle_(tjInitDecompress()) {}
  ~Jpeg() {
    if (handle_ != nullptr) tjDestroy(handle_);
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  tjhandle handle() const { return handle_; }

  // Decodes the image to the size `to`. Returns false if libjpeg has warned or failed. Stray bytes before the end
  // marker are no reason: the image is complete before them.
  bool decode(std::span<const std::byte> file, const ImageShape& to, std::uint8_t* pixels) {
    // An image in many scans can take minutes to decode, so the flag limits their number.
    const int answer = tjDecompress2(handle_, reinterpret_cast<const unsigned char*>(file.data()),
                                     static_cast<unsigned long>(file.size()), pixels, static_cast<int>(to.width), 0,
                                     static_cast<int>(to.height), to.channels == 1 ? TJPF_GRAY : TJPF_RGB,
                                     TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS);
    return answer == 0 || (warns_of("extraneous") && warns_of("before marker 0xd9"));
  }
  // libjpeg keeps only its first warning. So after this one the image may be truncated, too.
  bool warns_of_stray_bytes() const { return warns_of("extraneous"); }

  tl::unexpected<Error> damaged() {
    const std::string why = tjGetErrorStr2(handle_);
    // After an error in a header, libjpeg would go on in the middle of that header, even with another image.
    tjDestroy(handle_);
    handle_ = tjInitDecompress();
    return bad("found a damaged or truncated JPEG image (libjpeg: " + why +
               "), expected a whole one: copy it again or leave it out");
  }

 private:
  bool warns_of(std::string_view text) const {
    return tjGetErrorCode(handle_) == TJERR_WARNING &&
           std::string_view(tjGetErrorStr2(handle_)).find(text) != std::string_view::npos;
  }

  tjhandle handle_;
};

ImageDecoder::ImageDecoder() : jpeg_(std::make_unique<Jpeg>()) {}
ImageDecoder::~ImageDecoder() = default;

Result<ImageDecoder::Header> ImageDecoder::read_header(std::span<const std::byte> file) {
  Header header;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  if (begins_with(file, "\xff\xd8\xff")) {
    if (jpeg_->handle() == nullptr) return fail(ErrorCode::kConfig, "not enough memory to decode JPEG images");
    if (file.size() > std::numeric_limits<std::uint32_t>::max()) return bad("found a JPEG image of more than 4 GiB");
    int columns = 0;
    int lines = 0;
    int sampling = 0;
    int colours = -1;
    const int answer =
        tjDecompressHeader3(jpeg_->handle(), reinterpret_cast<const unsigned char*>(file.data()),
                            static_cast<unsigned long>(file.size()), &columns, &lines, &sampling, &colours);
    // The library also fails if it has no name for the sampling of the colours. It can decode such images.
    if (columns <= 0 || lines <= 0 || (answer != 0 && colours < 0)) return jpeg_->damaged();
    if (colours == TJCS_CMYK || colours == TJCS_YCCK)
      return bad("found a JPEG image with the colours of print (CMYK), expected RGB or gray: convert it");
    header.kind = Kind::kJpeg;
    height = static_cast<std::uint32_t>(lines);
    width = static_cast<std::uint32_t>(columns);
    header.shape.channels = colours == TJCS_GRAY ? 1 : 3;
  } else if (begins_with(file, "\x89PNG\r\n\x1a\n")) {
    PngReader png(file);
    if (!png.is_open()) return png.damaged();
    header.kind = Kind::kPng;
    height = png.image().height;
    width = png.image().width;
    header.shape.channels = (png.image().format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
  } else {
    return bad(
        file.empty()
            ? "found no bytes, expected a JPEG or PNG image: copy it again or leave it out"
            : "found bytes that begin neither as JPEG nor as PNG, expected such an image: convert it, or leave it "
              "out");
  }
  if (height == 0 || width == 0 || height > kMaxImageSide || width > kMaxImageSide ||
      std::uint64_t{height} * width > kMaxImagePixels)
    return bad("found an image of " + std::to_string(width) + " x " + std::to_string(height) +
               " pixels, expected at most " + std::to_string(kMaxImagePixels) + " in all: make it smaller");
  header.shape.height = height;
  header.shape.width = width;
  return header;
}

Result<ImageShape> ImageDecoder::shape_of(std::span<const std::byte> file) {
  const Result<Header> header = read_header(file);
  if (!header) return tl::unexpected(header.error());
  return header->shape;
}

Status ImageDecoder::decode(std::span<const std::byte> file, const ImageShape& wanted, std::span<std::uint8_t> out) {
  DISTTRAIN_CHECK(wanted.channels == 1 || wanted.channels == 3);
  DISTTRAIN_CHECK_EQ(out.size(), wanted.bytes());
  const Result<Header> header = read_header(file);
  if (!header) return tl::unexpected(header.error());
  if (header->kind == Kind::kJpeg) return decode_jpeg(file, *header, wanted, out);
  const ImageShape whole{header->shape.height, header->shape.width, wanted.channels};
  if (whole == wanted) return decode_png(file, whole, scratch_, out);
  decoded_.resize(whole.bytes());
  if (Status decoded = decode_png(file, whole, scratch_, decoded_); !decoded) return decoded;
  resize_image(whole, decoded_, wanted, out);
  return {};
}

Status ImageDecoder::decode_jpeg(std::span<const std::byte> file, const Header& header, const ImageShape& wanted,
                                 std::span<std::uint8_t> out) {
  ImageShape scaled{header.shape.height, header.shape.width, wanted.channels};
  // libjpeg has fast code for these three factors only.
  for (const int divisor : {8, 4, 2}) {
    const tjscalingfactor factor{1, divisor};
    const auto height = static_cast<std::uint32_t>(TJSCALED(static_cast<int>(header.shape.height), factor));
    const auto width = static_cast<std::uint32_t>(TJSCALED(static_cast<int>(header.shape.width), factor));
    if (height < wanted.height || width < wanted.width) continue;
    scaled.height = height;
    scaled.width = width;
    break;
  }
  const bool is_wanted_size = scaled == wanted;
  if (!is_wanted_size) decoded_.resize(scaled.bytes());
  std::uint8_t* const pixels = is_wanted_size ? out.data() : decoded_.data();
  if (!jpeg_->decode(file, scaled, pixels)) {
    if (!jpeg_->warns_of_stray_bytes()) return jpeg_->damaged();
    copy_without_stray_bytes(file, without_stray_bytes_);
    if (!jpeg_->decode(without_stray_bytes_, scaled, pixels)) return jpeg_->damaged();
  }
  if (!is_wanted_size) resize_image(scaled, decoded_, wanted, out);
  return {};
}

// `wanted` has the size of the image.
Status ImageDecoder::decode_png(std::span<const std::byte> file, const ImageShape& wanted,
                                std::vector<std::uint8_t>& scratch, std::span<std::uint8_t> out) {
  PngReader png(file);
  if (!png.is_open()) return png.damaged();
  png_image& image = png.image();
  // libpng would blend transparent pixels with a background, so it also has to give their transparency.
  const bool has_colours = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool has_alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  image.format = (has_colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) | (has_alpha ? PNG_FORMAT_FLAG_ALPHA : 0U);
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // the values of 16 bits mean the same colours as those of 8 bits
  const std::size_t channels = PNG_IMAGE_SAMPLE_CHANNELS(image.format);
  const std::size_t pixels = std::size_t{wanted.height} * wanted.width;
  const bool is_direct = channels == wanted.channels;
  if (!is_direct) scratch.resize(pixels * channels);
  if (png_image_finish_read(&image, nullptr, is_direct ? out.data() : scratch.data(), 0, nullptr) == 0)
    return png.damaged();
  if (!is_direct) convert_pixels(scratch.data(), channels, pixels, wanted.channels, out.data());
  return {};
}

}  // namespace disttrain::input
