#include "input/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace disttrain::input {

namespace {

// The largest piece that zlib takes at a time, because it counts in 32 bits.
constexpr std::size_t kMaxPiece = std::size_t{1} << 30;

// Whether the bytes begin with `magic`, or are a piece of it.
bool may_begin_with(std::span<const std::byte> bytes, std::string_view magic) {
  return magic.starts_with({reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), magic.size())});
}

class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }  // 16: gzip, not zlib
  ~GzipDecompressor() override {
    if (ready_) inflateEnd(&stream_);
  }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;

  bool ready() const { return ready_; }
  bool is_between_parts() const override { return is_between_; }

  Step step(std::span<const std::byte> in, std::span<std::byte> out) override {
    in = in.first(std::min(in.size(), kMaxPiece));
    out = out.first(std::min(out.size(), kMaxPiece));
    // Tapes and some backup programs fill the file with zeros behind the last member. gzip and Python skip them, too.
    if (is_between_) {
      const auto member = std::find_if(in.begin(), in.end(), [](std::byte byte) { return byte != std::byte{0}; });
      if (in.empty() || member != in.begin())
        return {static_cast<std::size_t>(member - in.begin()), 0, std::nullopt, false};
      if (!may_begin_with(in, "\x1f\x8b"))
        return {0, 0, "bytes behind the gzip data that are neither zeros nor gzip data", false};
    }
    is_between_ = false;
    // The cast is safe, because zlib only reads the bytes.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int answer = inflate(&stream_, Z_NO_FLUSH);
    Step done{in.size() - stream_.avail_in, out.size() - stream_.avail_out, std::nullopt, answer == Z_MEM_ERROR};
    if (answer == Z_STREAM_END) {
      // A gzip file may have several members, for example after `cat a.gz b.gz`. zlib checks the header of each.
      is_between_ = true;
      inflateReset(&stream_);
    } else if (answer != Z_OK && answer != Z_BUF_ERROR) {
      done.problem = std::string("zlib: ") + (stream_.msg != nullptr ? stream_.msg : "no reason given");
    }
    return done;
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
  bool is_between_ = true;
};

class ZstdDecompressor final : public Decompressor {
 public:
  explicit ZstdDecompressor(int max_window_bits) : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    if (context_ != nullptr) ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, max_window_bits);
  }

  bool ready() const { return context_ != nullptr; }
  bool is_between_parts() const override { return is_between_; }

  Step step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (in.empty() && is_between_) return {};
    if (is_between_ && !may_be_frame(in)) return {0, 0, "bytes behind the zstd data that aren't zstd data", false};
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t answer = ZSTD_decompressStream(context_.get(), &to, &from);
    Step done{from.pos, to.pos, std::nullopt, false};
    if (ZSTD_isError(answer) != 0)
      done.problem = std::string("libzstd: ") + ZSTD_getErrorName(answer);
    else
      is_between_ = answer == 0;
    return done;
  }

 private:
  static bool may_be_frame(std::span<const std::byte> in) {
    const bool may_be_skippable =
        (in[0] & std::byte{0xf0}) == std::byte{0x50} && may_begin_with(in.subspan(1), "\x2a\x4d\x18");
    return may_be_skippable || may_begin_with(in, "\x28\xb5\x2f\xfd");
  }

  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context_;
  bool is_between_ = true;
};

std::uint32_t byte_at(std::span<const std::byte> begin, std::size_t at) {
  return at < begin.size() ? std::to_integer<std::uint32_t>(begin[at]) : 0;
}

}  // namespace

const char* to_string(Compression compression) {
  constexpr const char* kNames[] = {"no", "gzip", "zstd"};
  return kNames[static_cast<std::size_t>(compression)];
}

Compression compression_of(std::span<const std::byte> begin) {
  // RFC 1952 knows the method 8 only. A TFRecord file may begin with the first two bytes.
  if (byte_at(begin, 0) == 0x1f && byte_at(begin, 1) == 0x8b && byte_at(begin, 2) == 8) return Compression::kGzip;
  const std::uint32_t first =
      byte_at(begin, 0) | byte_at(begin, 1) << 8 | byte_at(begin, 2) << 16 | byte_at(begin, 3) << 24;
  const bool is_skippable = (first & 0xfffffff0U) == ZSTD_MAGIC_SKIPPABLE_START;
  return first == ZSTD_MAGICNUMBER || is_skippable ? Compression::kZstd : Compression::kNone;
}

const char* unread_compression(std::span<const std::byte> begin) {
  constexpr char kXz[] = {'\xfd', '7', 'z', 'X', 'Z', '\0'};
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (text.starts_with(std::string_view(kXz, sizeof(kXz)))) return "xz";
  if (text.starts_with("PK\3\4")) return "zip";
  // After "BZh" and a digit comes the first block, or the end of a file without content.
  const std::string_view block = text.substr(std::min<std::size_t>(4, text.size()), 6);
  const bool is_bzip2 = text.starts_with("BZh") && (block == "1AY&SY" || block == "\x17\x72\x45\x38\x50\x90");
  return is_bzip2 ? "bzip2" : nullptr;
}

Compression compression_by_name(const std::string& path) {
  const auto ends_with = [&path](std::string_view end) { return path.size() > end.size() && path.ends_with(end); };
  if (ends_with(".gz")) return Compression::kGzip;
  return ends_with(".zst") ? Compression::kZstd : Compression::kNone;
}

std::uint64_t largest_ratio(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return 1;
    case Compression::kGzip:
      return 1032;  // deflate (RFC 1951): 2 bits can stand for 258 bytes of content
    case Compression::kZstd:
      return 32768;  // a block of one repeated byte (RFC 8878): 4 bytes can stand for 128 KiB
  }
  return 1;
}

std::uint64_t most_content(std::uint64_t file_bytes, std::uint64_t max_expansion) {
  std::uint64_t most = 0;
  if (__builtin_mul_overflow(file_bytes, max_expansion, &most)) return std::numeric_limits<std::uint64_t>::max();
  return std::max(most, kFreeContentBytes);
}

Error expansion_error(const std::string& path, std::uint64_t file_bytes, std::uint64_t max_expansion) {
  return {ErrorCode::kData, path + ": has more than " + std::to_string(most_content(file_bytes, max_expansion)) +
                                " bytes of content, but only " + std::to_string(file_bytes) +
                                " bytes as a compressed file: fetch it again if it shouldn't have so much, or raise "
                                "data.max_expansion (" +
                                std::to_string(max_expansion) + ")"};
}

std::unique_ptr<Decompressor> Decompressor::make(Compression compression, int max_zstd_window_bits) {
  if (compression == Compression::kGzip) {
    auto gzip = std::make_unique<GzipDecompressor>();
    if (gzip->ready()) return gzip;
  } else {
    auto zstd = std::make_unique<ZstdDecompressor>(max_zstd_window_bits);
    if (zstd->ready()) return zstd;
  }
  return nullptr;
}

}  // namespace disttrain::input
