// tests/data/image/make.py writes the images and the pixels that Pillow finds in them.
#include "input/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "common/random.h"
#include "input/image_resize.h"
#include "tests/input/blocks.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;

constexpr ImageShape kColour{29, 37, 3};
constexpr ImageShape kGray{29, 37, 1};

std::string file(const std::string& name) {
  return read_whole(DISTTRAIN_TEST_DATA "/image/" + name);
}

// With bytes between two parts of its header.
std::string with_stray_bytes(std::string jpeg) {
  return jpeg.insert(jpeg.find("\xff\xdb"), 3, '\0');
}

class Image : public testing::Test {
 protected:
  std::string decode(const std::string& content, const ImageShape& wanted) {
    pixels_.assign(wanted.bytes(), 0);
    return error_of(decoder_.decode(std::as_bytes(std::span(content)), wanted, pixels_));
  }
  std::string shape_error(const std::string& content) {
    return error_of(decoder_.shape_of(std::as_bytes(std::span(content))));
  }

  ImageDecoder decoder_;
  std::vector<std::uint8_t> pixels_;
};

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  int largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

std::vector<std::uint8_t> expected_of(const std::string& name) {
  const std::string pixels = file(name + ".rgb");
  return {pixels.begin(), pixels.end()};
}

TEST_F(Image, PixelsAreThoseOfPillow) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "gray.jpg", "colour.png", "gray.png", "palette.png",
                           "transparent.png", "transparent-gray.png"}) {
    ASSERT_EQ(decode(file(name), kColour), "") << name;
    EXPECT_LE(largest_difference(pixels_, expected_of(name)), 1) << name;
  }
}

TEST_F(Image, ColoursBecomeGray) {
  for (const char* name : {"colour.jpg", "colour.png", "gray.jpg", "gray.png", "palette.png", "transparent.png"}) {
    std::vector<std::uint8_t> expected;
    const auto rgb = expected_of(name);
    for (std::size_t i = 0; i < rgb.size(); i += 3)
      expected.push_back(static_cast<std::uint8_t>(0.299 * rgb[i] + 0.587 * rgb[i + 1] + 0.114 * rgb[i + 2] + 0.5));
    ASSERT_EQ(decode(file(name), kGray), "") << name;
    // A JPEG has its gray values, so they don't suffer from the way over RGB.
    EXPECT_LE(largest_difference(pixels_, expected), std::string(name) == "colour.jpg" ? 3 : 1) << name;
  }
}

TEST_F(Image, HeaderSaysTheShape) {
  const auto shape = [this](const std::string& name) {
    const std::string content = file(name);
    return *decoder_.shape_of(std::as_bytes(std::span(content)));
  };
  EXPECT_EQ(shape("colour.jpg"), kColour);
  EXPECT_EQ(shape("gray.jpg"), kGray);
  EXPECT_EQ(shape("palette.png"), kColour);
  EXPECT_EQ(shape("transparent-gray.png"), kGray);
}

TEST_F(Image, OtherSizesAreResized) {
  for (const char* name : {"colour.jpg", "colour.png"}) {
    for (const ImageShape wanted : {ImageShape{40, 50, 3}, ImageShape{20, 30, 3}, ImageShape{1, 1, 3}}) {
      std::vector<std::uint8_t> expected(wanted.bytes());
      resize_image(kColour, expected_of(name), wanted, expected);
      ASSERT_EQ(decode(file(name), wanted), "");
      // The smallest size comes from an eighth of the JPEG, which is a mean of more pixels.
      if (wanted.height > 1) {
        EXPECT_LE(largest_difference(pixels_, expected), 1) << name;
      }
    }
  }
}

// Half of the size is a mean of four pixels, also if libjpeg computes it.
TEST_F(Image, JpegIsDecodedAtAFractionOfItsSize) {
  const ImageShape half{15, 19, 3};
  ASSERT_EQ(decode(file("colour.jpg"), half), "");
  const auto whole = expected_of("colour.jpg");
  for (std::size_t y = 2; y + 2 < half.height; ++y) {
    for (std::size_t x = 2; x + 2 < half.width; ++x) {
      for (std::size_t c = 0; c < 2; ++c) {  // red and green grow evenly
        int sum = 0;
        for (const std::size_t at : {(2 * y * 37 + 2 * x) * 3, (2 * y * 37 + 2 * x + 1) * 3,
                                     ((2 * y + 1) * 37 + 2 * x) * 3, ((2 * y + 1) * 37 + 2 * x + 1) * 3})
          sum += whole[at + c];
        EXPECT_NEAR(pixels_[(y * half.width + x) * 3 + c], sum / 4.0, 8) << y << " " << x;
      }
    }
  }
}

TEST_F(Image, TruncatedOnesAreRefused) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "gray.jpg", "colour.png", "transparent.png"}) {
    const std::string whole = file(name);
    for (std::size_t bytes = 0; bytes + 2 < whole.size(); bytes += bytes < 700 ? 1 : 13) {
      if (std::string(name).ends_with(".png") && bytes + 16 > whole.size()) continue;  // all pixels are there
      EXPECT_THAT(decode(whole.substr(0, bytes), kColour), HasSubstr("found ")) << name << " " << bytes;
    }
  }
}

// libjpeg keeps only its first warning, here that of the stray bytes.
TEST_F(Image, TruncatedOnesWithStrayBytesAreRefused) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "gray.jpg"}) {
    const std::string whole = file(name);
    const std::string scans = std::string(whole).insert(whole.rfind("\xff\xc4"), 3, '\0');
    for (const std::string& content : {with_stray_bytes(whole), scans, with_stray_bytes(scans)})
      for (std::size_t bytes = 0; bytes + 2 < content.size(); bytes += bytes < 700 ? 1 : 13)
        EXPECT_THAT(decode(content.substr(0, bytes), kColour), HasSubstr("found ")) << name << " " << bytes;
  }
}

TEST_F(Image, DamagedOneDoesNotChangeTheNext) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "colour.png"}) {
    const std::string whole = file(name);
    for (std::size_t bytes = 0; bytes < whole.size() / 2; bytes += 7) {
      EXPECT_NE(decode(whole.substr(0, bytes), kColour), "") << name << " " << bytes;
      ASSERT_EQ(decode(whole, kColour), "") << name << " " << bytes;
    }
  }
}

TEST_F(Image, OtherContentIsRefused) {
  EXPECT_EQ(decode("", kColour), "found no bytes, expected a JPEG or PNG image: copy it again or leave it out");
  EXPECT_EQ(decode("GIF89a", kColour),
            "found bytes that begin neither as JPEG nor as PNG, expected such an image: convert it, or leave it out");
  EXPECT_THAT(decode(file("print.jpg"), kColour), HasSubstr("found a JPEG image with the colours of print (CMYK)"));
  EXPECT_THAT(shape_error("\xff\xd8\xff"), HasSubstr("found a damaged or truncated JPEG image (libjpeg: "));
}

TEST_F(Image, BytesBetweenThePartsOfAJpegAreIgnored) {
  for (const char* name : {"colour.jpg", "progressive.jpg", "gray.jpg"}) {
    const std::string whole = file(name);
    const std::string early = std::string(whole).insert(20, "????");  // behind the first two markers
    const std::string at_end = std::string(whole).insert(whole.size() - 2, 3, '\0');
    for (const std::string& content : {early, with_stray_bytes(early), at_end, with_stray_bytes(at_end)}) {
      ASSERT_EQ(decode(content, kColour), "") << name;
      EXPECT_LE(largest_difference(pixels_, expected_of(name)), 1) << name;
    }
  }
}

// The sizes in the headers, not checked against a checksum in JPEG.
TEST_F(Image, LargeOnesAreRefusedBeforeTheyAreDecoded) {
  std::string content = file("gray.jpg");
  const std::size_t frame = content.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  content.replace(frame + 5, 4, std::string("\x80\0\x80\0", 4));
  EXPECT_EQ(shape_error(content),
            "found an image of 32768 x 32768 pixels, expected at most 67108864 in all: make it smaller");
}

// The naive twin of resize_image().
std::vector<std::uint8_t> resized(const ImageShape& from, const std::vector<std::uint8_t>& in, const ImageShape& to) {
  const auto place = [](std::uint32_t i, std::uint32_t n_from, std::uint32_t n_to) {
    return std::min(std::max((i + 0.5) * n_from / n_to - 0.5, 0.0), n_from - 1.0);
  };
  std::vector<std::uint8_t> out;
  for (std::uint32_t y = 0; y < to.height; ++y) {
    for (std::uint32_t x = 0; x < to.width; ++x) {
      for (std::uint32_t c = 0; c < to.channels; ++c) {
        const double py = place(y, from.height, to.height);
        const double px = place(x, from.width, to.width);
        double sum = 0;
        for (std::uint32_t sy = 0; sy < from.height; ++sy)
          for (std::uint32_t sx = 0; sx < from.width; ++sx)
            sum += std::max(0.0, 1 - std::abs(py - sy)) * std::max(0.0, 1 - std::abs(px - sx)) *
                   in[(sy * from.width + sx) * from.channels + c];
        out.push_back(static_cast<std::uint8_t>(sum + 0.5));
      }
    }
  }
  return out;
}

TEST(ImageResize, PixelsAreThoseOfTheTwin) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto side = [&random] { return static_cast<std::uint32_t>(1 + random.below(12)); };
    const std::uint32_t channels = random.below(2) == 0 ? 1 : 3;
    const ImageShape from{side(), side(), channels};
    const ImageShape to{side(), side(), channels};
    std::vector<std::uint8_t> in(from.bytes());
    for (auto& value : in) value = static_cast<std::uint8_t>(random.below(256));
    std::vector<std::uint8_t> out(to.bytes());
    resize_image(from, in, to, out);
    EXPECT_LE(largest_difference(out, resized(from, in, to)), 1) << "seed " << seed;
    if (from == to) {
      EXPECT_EQ(out, in);
    }
  }
}

}  // namespace
}  // namespace disttrain::input
