#include "common/program/pickle_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttrain::program {
namespace {

using testing::HasSubstr;
using testing::Optional;

std::string repeated(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

const std::string kBegin = "\x80\x02";

// What torch.jit.save writes for a module with a parameter, a number and a list.
TEST(PickleBounds, RealPickleIsTaken) {
  const std::string pickle = kBegin + "c__torch__\nM\nq" + std::string(1, '\0') + ")\x81}(X\x08" +
                             std::string(3, '\0') + "trainingq\x01\x88X\x01" + std::string(3, '\0') +
                             "wq\x02"
                             "ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07" +
                             std::string(3, '\0') +
                             "storageq\x04"
                             "ctorch\nFloatStorage\nq\x05X\x01" +
                             std::string(3, '\0') + "0q\x06X\x03" + std::string(3, '\0') + "cpuq\x07K\x02tQK" +
                             std::string(1, '\0') +
                             "K\x02\x85q\x08K\x01\x85q\x09\x89"
                             "ccollections\nOrderedDict\nq\x0a)RtRq\x0bub.";
  EXPECT_EQ(find_deep_pickle(pickle), std::nullopt);
}

TEST(PickleBounds, DeepValuesAreFound) {
  EXPECT_EQ(find_deep_pickle(kBegin + ")" + repeated(900, "\x85") + "."), std::nullopt);
  EXPECT_THAT(find_deep_pickle(kBegin + ")" + repeated(1'000'000, "\x85") + "."),
              Optional(HasSubstr("deeper than 1000")));
  EXPECT_THAT(find_deep_pickle(kBegin + repeated(100'000, "](") + "N" + repeated(100'000, "e") + "."),
              Optional(HasSubstr("deeper than 1000")));
  EXPECT_THAT(find_deep_pickle(kBegin + repeated(100'000, "}N") + "N" + repeated(100'000, "s") + "."),
              Optional(HasSubstr("deeper than 1000")));
}

// Each list gets a list when it is in another one already.
TEST(PickleBounds, ListsThatGrowFromInsideAreFound) {
  std::string pickle = kBegin + "]r" + std::string(4, '\0') + "0";
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto number = [](std::uint32_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof(n)); };
    pickle += "j" + number(i) + "]r" + number(i + 1) + "a0";
  }
  EXPECT_THAT(find_deep_pickle(pickle + "N."), Optional(HasSubstr("deeper than 1000")));
  EXPECT_EQ(find_deep_pickle(kBegin + "]q\x01h\x01"
                                      "a."),
            "a value contains itself");
}

// The name of a list's type stands beside the list.
TEST(PickleBounds, DeepTypesAreFound) {
  const auto list_of = [](const std::string& type) {
    const auto size = static_cast<std::uint32_t>(type.size());
    return kBegin + "ctorch.jit._pickle\nrestore_type_tag\n]X" +
           std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + type + "\x86R.";
  };
  const std::string deep = repeated(200'000, "List[") + "int" + repeated(200'000, "]");
  EXPECT_EQ(find_deep_pickle(list_of("List[Dict[str, int]]")), std::nullopt);
  EXPECT_THAT(find_deep_pickle(list_of(deep)), Optional(HasSubstr("the name of a type has more than 200 brackets")));
  EXPECT_THAT(find_deep_pickle(kBegin + "c__torch__\nM" + deep + "\n."), Optional(HasSubstr("the name of a type")));
  EXPECT_EQ(find_deep_pickle(kBegin + "U\xff" + repeated(255, "[") + "."), std::nullopt) << "a text that is no type";
}

TEST(PickleBounds, LongFlatValuesAreTaken) {
  EXPECT_EQ(find_deep_pickle(kBegin + "](" + repeated(300'000, "K\x01\x85") + "e."), std::nullopt);
  EXPECT_EQ(find_deep_pickle(kBegin + "}(" + repeated(300'000, "X\x01" + std::string(3, '\0') + "kN") + "u."),
            std::nullopt);
}

TEST(PickleBounds, DamagedPicklesAreRefused) {
  for (const char* text : {"", "\x80", "\x80\x02", "\x85.", "t.", "e.", "s.", "h\x01.", "X\xff\xff\xff\xff", "cx\n",
                           "I1\n.", "q\x01.", "(\x85.", "0."})
    EXPECT_NE(find_deep_pickle(text), std::nullopt) << text;
}

}  // namespace
}  // namespace disttrain::program
