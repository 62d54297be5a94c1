// Files in gzip and zstd format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include "input/file_reader.h"
#include "tests/input/blocks.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;

// One frame. It has a checksum, as those of the program zstd have.
std::string zstd(const std::string& content, int window_bits = 0) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (window_bits > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_bits);
  if (window_bits > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  ZSTD_inBuffer in{content.data(), content.size(), 0};
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  // Without flushing at once, the frame would have the window of its content.
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush), 0U);
  EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0U);
  packed.resize(out.pos);
  ZSTD_freeCCtx(context);
  return packed;
}

std::string mixed_content() {
  std::string content;
  for (unsigned i = 0; i < 200'000; ++i) content += std::to_string(i * i % 1013);
  return content + std::string(3'000'000, 'x');
}

class CompressedFile : public testing::Test {
 protected:
  // The content of a file, read by pieces of `piece` bytes, or the error.
  std::string read(const std::string& name, const std::string& packed, std::size_t piece = 1 << 20) {
    const auto file = FileReader::open(folder_.write(name, packed));
    if (!file) return "error: " + error_of(file);
    std::string content;
    std::string part(piece, '\0');
    for (;;) {
      const auto got = (*file)->read(std::as_writable_bytes(std::span(part)));
      if (!got) return "error: " + error_of(got);
      content += part.substr(0, *got);
      if (*got < piece) break;
    }
    EXPECT_LE(content.size(), (*file)->most_content_bytes());
    return content;
  }

  const Folder folder_;
};

// A small file would take the time and the memory of a huge one.
TEST_F(CompressedFile, MoreContentThanTheFileMayHaveIsAnError) {
  const std::string packed = zstd(std::string(kFreeContentBytes + 1, 'x'));
  const std::string path = folder_.write("bomb.zst", packed);
  std::string content(kFreeContentBytes + (1 << 20), '\0');
  const auto read_with = [&](std::uint64_t max_expansion) {
    const auto file = FileReader::open(path, {}, max_expansion);
    return (*file)->read(std::as_writable_bytes(std::span(content)));
  };
  const auto refused = read_with(100);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("bomb.zst: has more than 67108864 bytes of content"),
                                                      HasSubstr("raise data.max_expansion (100)")));
  EXPECT_EQ(read_with((kFreeContentBytes + packed.size()) / packed.size()).value_or(0), kFreeContentBytes + 1);
}

TEST_F(CompressedFile, ContentComesInPiecesOfAnySize) {
  const std::string content = mixed_content();
  for (const std::size_t piece : {1'000U, 65'536U, 1U << 20, 1U << 24}) {
    EXPECT_TRUE(read("a.gz", gzip(content), piece) == content) << piece;
    EXPECT_TRUE(read("a.zst", zstd(content), piece) == content) << piece;
    EXPECT_TRUE(read("a", zstd(content), piece) == content) << "the name doesn't matter";
  }
  EXPECT_EQ(read("a.zst", zstd("abc"), 1), "abc");
  EXPECT_EQ(read("a.zst", zstd("")), "");
}

TEST_F(CompressedFile, FilesMayHaveSeveralParts) {
  const std::string skippable = std::string("\x50\x2a\x4d\x18\x03\0\0\0", 8) + "xyz";
  EXPECT_EQ(read("a.zst", zstd("a") + skippable + zstd("") + zstd("bc")), "abc");
  EXPECT_EQ(read("a.zst", skippable + zstd("a")), "a");
  EXPECT_EQ(read("a.gz", gzip("a") + gzip("") + gzip("bc")), "abc");
}

// Tapes fill files so. gzip and Python read them, too.
TEST_F(CompressedFile, ZerosBehindGzipAreSkipped) {
  EXPECT_EQ(read("a.gz", gzip("a") + std::string(1, '\0')), "a");
  EXPECT_EQ(read("a.gz", gzip("a") + std::string(1'000'000, '\0')), "a");
  EXPECT_EQ(read("a.gz", gzip("a") + std::string(7, '\0') + gzip("bc") + std::string(512, '\0')), "abc");
  EXPECT_THAT(read("a.gz", gzip("a") + std::string(7, '\0') + "more"), HasSubstr("corrupt gzip data"));
  EXPECT_THAT(read("a.gz", std::string(512, '\0')),
              HasSubstr("its name ends in .gz, but it doesn't begin with gzip's"));
}

// They aren't the begin of a part that is cut off.
TEST_F(CompressedFile, OtherBytesBehindTheDataAreNamed) {
  const std::string zeros(512, '\0');
  for (const std::string& more : {std::string("x"), zeros + "x", "\x1fx" + zeros, zeros + "\x1f\x8c", zeros + "more"})
    EXPECT_EQ(read("a.gz", gzip("ab") + more),
              "error: " + folder_ /
                              "a.gz: corrupt gzip data (bytes behind the gzip data that are neither zeros nor gzip "
                              "data) after 2 decompressed bytes: the file is damaged, fetch or copy it again");
  for (const std::string& more : {std::string("x"), std::string("\0", 1), std::string("\x28\xb5x"), std::string("Px")})
    EXPECT_THAT(read("a.zst", zstd("ab") + more),
                HasSubstr("a.zst: corrupt zstd data (bytes behind the zstd data that aren't zstd data)"));
  for (const char* cut : {"\x1f", "\x1f\x8b", "\x1f\x8b\x08"})
    EXPECT_THAT(read("a.gz", gzip("ab") + cut), HasSubstr("gzip data ends too early"));
  for (const char* cut : {"\x28", "\x28\xb5\x2f\xfd", "\x50\x2a"})
    EXPECT_THAT(read("a.zst", zstd("ab") + cut), HasSubstr("zstd data ends too early"));
}

TEST_F(CompressedFile, DamageIsFound) {
  const std::string content = "some words, some words, some more words";
  for (const std::string& packed : {zstd(content) + zstd(content), zstd(mixed_content())}) {
    for (std::size_t bytes = 4; bytes < packed.size(); bytes += packed.size() < 500 ? 1 : 997) {
      if (bytes == zstd(content).size()) continue;  // a whole frame
      EXPECT_THAT(read("a.zst", packed.substr(0, bytes)), HasSubstr("a.zst: zstd data ends too early")) << bytes;
    }
  }
  std::string packed = zstd(content);
  packed.back() = static_cast<char>(packed.back() ^ 1);
  EXPECT_THAT(read("a.zst", packed), HasSubstr("a.zst: corrupt zstd data (libzstd: "));
  EXPECT_THAT(read("a.zst", zstd(content) + "more"), HasSubstr("corrupt zstd data"));
  EXPECT_THAT(read("a.zst", content), HasSubstr("its name ends in .zst, but it doesn't begin with zstd's bytes"));
  EXPECT_THAT(read("a.zst", ""), HasSubstr("its name ends in .zst, but it is empty"));
}

TEST_F(CompressedFile, OtherCompressionsAreRefusedByTheirNames) {
  const std::string bzip2("BZh91AY&SY\xa3\x20\x54\x39", 14);
  const std::string empty_bzip2("BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0", 14);
  const std::string xz("\xfd\x37zXZ\0\0\4\xe6\xd6", 10);
  const std::string zip("PK\3\4\x14\0\0\0\x08\0", 10);
  for (const std::string& packed : {bzip2, empty_bzip2})
    EXPECT_THAT(read("a.csv.bz2", packed), HasSubstr("a.csv.bz2: the file is compressed by bzip2, but disttrain reads "
                                                     "gzip and zstd: decompress the file"));
  EXPECT_THAT(read("a.gz", xz), HasSubstr("compressed by xz"));
  EXPECT_THAT(read("a.csv", zip),
              HasSubstr("a zip archive, but disttrain reads gzip and zstd: decompress the file, or"));
  for (const char* text : {"BZh9", "BZh is a word", "PK,3", "\xfd\x37z"}) EXPECT_EQ(read("a", text), text);
}

TEST_F(CompressedFile, LargeWindowsAreRefused) {
  EXPECT_EQ(read("a.zst", zstd("abc", kMaxZstdWindowBits)), "abc");
  EXPECT_THAT(read("a.zst", zstd("abc", kMaxZstdWindowBits + 1)),
              HasSubstr("corrupt zstd data (libzstd: Frame requires too much memory"));
}

}  // namespace
}  // namespace disttrain::input
