// tests/data/npz/make.py writes the files.
#include "input/npz.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/input/blocks.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = DISTTRAIN_TEST_DATA "/npz/";

TEST(Npz, StoredAndDeflatedArraysAreRead) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto arrays = read_npz(kFolder + name, {});
    ASSERT_TRUE(arrays) << arrays.error().message;
    ASSERT_EQ(arrays->size(), 2U);
    EXPECT_EQ((*arrays)[0].name, "x");
    EXPECT_THAT((*arrays)[0].array.header.shape, ElementsAre(4, 3));
    std::vector<float> values(12);
    ASSERT_TRUE(write_as(DType::kFloat32, (*arrays)[0].array, std::as_writable_bytes(std::span(values))));
    EXPECT_EQ(values[11], 11.0F);
    EXPECT_THAT(whole_numbers((*arrays)[1].array).value(), ElementsAre(3, 1, 2, 0));
  }
}

TEST(Npz, OnlyNamedArraysAreRead) {
  const auto arrays = read_npz(kFolder + "deflated.npz", {"y"});
  ASSERT_TRUE(arrays) << arrays.error().message;
  ASSERT_EQ(arrays->size(), 1U);
  EXPECT_EQ((*arrays)[0].name, "y");
  EXPECT_THAT(error_of(read_npz(kFolder + "stored.npz", {"y", "z"})), HasSubstr("stored.npz: has no array \"z\""));
}

// Zeros, which deflate makes a thousandth of.
TEST(Npz, ArraysWithTooMuchContentInAllAreRefused) {
  const std::string array = npy<std::uint8_t>("|u1", "(41943040,)", std::vector<std::uint8_t>(40 << 20));
  const auto read = [&array](int arrays) {
    std::vector<std::byte> file(4 << 20);
    std::size_t used = 0;
    const std::unique_ptr<archive, int (*)(archive*)> zip(archive_write_new(), &archive_write_free);
    archive_write_set_format_zip(zip.get());
    EXPECT_EQ(archive_write_open_memory(zip.get(), file.data(), file.size(), &used), ARCHIVE_OK);
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(), &archive_entry_free);
    for (int i = 0; i < arrays; ++i) {
      archive_entry_set_pathname(entry.get(), ("a" + std::to_string(i) + ".npy").c_str());
      archive_entry_set_filetype(entry.get(), AE_IFREG);
      archive_entry_set_size(entry.get(), static_cast<la_int64_t>(array.size()));
      EXPECT_EQ(archive_write_header(zip.get(), entry.get()), ARCHIVE_OK);
      EXPECT_EQ(archive_write_data(zip.get(), array.data(), array.size()), static_cast<la_ssize_t>(array.size()));
    }
    EXPECT_EQ(archive_write_close(zip.get()), ARCHIVE_OK);
    return error_of(read_npz_from(std::span(file).first(used), "a.npz", {}));
  };
  EXPECT_EQ(read(1), "");
  EXPECT_THAT(read(2), HasSubstr("a.npz, array \"a1\": has more than 67108864 bytes of content"));
}

TEST(Npz, DamagedFilesAreRefused) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = read_whole(kFolder + name);
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 3) {
      const auto content = std::as_bytes(std::span(whole)).first(bytes);
      EXPECT_NE(error_of(read_npz_from(content, "a.npz", {"x", "y"})), "") << name << " " << bytes;
    }
    std::string damaged = whole;
    const std::size_t value = name[0] == 's' ? 128 + 60 : 128;
    damaged[value] = static_cast<char>(damaged[value] ^ 1);
    EXPECT_THAT(error_of(read_npz_from(std::as_bytes(std::span(damaged)), "a.npz", {})),
                HasSubstr("a.npz, array \"x\""));
  }
  EXPECT_NE(error_of(read_npz_from(std::as_bytes(std::span("no zip file")), "a.npz", {})), "");
  EXPECT_EQ(read_npz(kFolder + "absent.npz", {}).error().code, ErrorCode::kNoInput);
  EXPECT_EQ(read_npz(kFolder + "stored.npz", {}, [] { return true; }).error().code, ErrorCode::kTemporary);
}

}  // namespace
}  // namespace disttrain::input
