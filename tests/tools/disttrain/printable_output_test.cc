// Texts of strangers can't control the terminal, whether they are printed as text, in a table or as JSON.
#include "tools/disttrain/printable_output.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tools/disttrain/json.h"
#include "tools/disttrain/table.h"

namespace disttrain::cli {
namespace {

TEST(Output, ShowsCodesOfStrangersAndPassesOurs) {
  std::ostringstream to;
  {
    const PrintableOutput door(to);
    to << "name \x1b[2J" << '\x07' << "\tend\n";
    write_codes(to, "\x1b[K");
    to << "G\xc3" << std::flush << "\xb6\xc2\x9b\xe2\x80\xae \xff" << std::flush << "\xe2\x80";
  }
  EXPECT_EQ(to.str(), "name \\x1b[2J\\x07\tend\n\x1b[KG\xc3\xb6\\x9b\\u202e \\xff\\xe2\\x80");
  to << "\x1b[K";
  EXPECT_TRUE(to.str().ends_with("\x1b[K")) << "nothing is changed any more";
}

TEST(Output, ThatCantBeWrittenIsNoticed) {
  std::ofstream full("/dev/full");
  const PrintableOutput door(full);
  full << std::string(100'000, 'x') << std::flush;
  EXPECT_FALSE(full);
}

TEST(Output, CellsOfATableAreOneLineEach) {
  Table table({"NAME"});
  table.add({"a\nb\x1b[2J"});
  EXPECT_EQ(table.text(), "NAME\na\\nb\\x1b[2J\n");
}

TEST(Output, JsonStaysJsonAndHasNoCodes) {
  const Json json = {{"name", "\x1b\x7f\xc2\x9b\xe2\x80\xae\xc3\xb6"}};
  const std::string line = line_of(json);
  EXPECT_EQ(line, R"({"name":"\u001b\u007f\u009b\u202e\u00f6"})");
  EXPECT_EQ(Json::parse(line), json);
  EXPECT_EQ(line_of(Json{{"name", "\xc3\xb6"}}), "{\"name\":\"\xc3\xb6\"}");
}

}  // namespace
}  // namespace disttrain::cli
