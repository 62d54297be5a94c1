// Odd files of the formats of text, and TFRecord files.
#include <cmath>
#include <limits>
#include <memory>

#include "input/columns.h"
#include "input/unlabelled_dataset.h"
#include "tests/input/odd_files.h"

namespace disttrain::input {
namespace {

using std::string_literals::operator""s;

TEST(OddFiles, Csv) {
  const std::string head = "x,c,y\n";
  expect_odd(
      DataFormat::kCsv,
      {
          {"byte order mark", "\xEF\xBB\xBF" + head + "1,red,0\n", "1 / 1 / 0"},
          {"CRLF", "x,c,y\r\n1,red,0\r\n2,green,1\r\n", "1 2 / 1 2 / 0 1"},
          {"no end of the last line", head + "1,red,0", "1 / 1 / 0"},
          {"empty lines at the end", head + "1,red,0\n\n\n", "1 / 1 / 0"},
          {"empty lines in the middle", head + "1,red,0\n\r\n  \n2,red,0\n", "1 2 / 1 1 / 0 0"},
          {"empty lines before the header", "\n\n" + head + "1,red,0\n", "1 / 1 / 0"},
          {"another order, and more columns", "id,y,unused,c,x\n7,1,\"a,b\",green,3\n", "3 / 2 / 1"},
          {"quotes around all fields", "\"x\",\"c\",\"y\"\n\"1\",\"red\",\"0\"\n", "1 / 1 / 0"},
          {"a comma in quotes", head + "1,\"red, or so\",0\n", "1 / 0 / 0"},
          {"a line end in quotes", head + "1,\"red\ngreen\",0\n2,red,0\n", "1 2 / 0 1 / 0 0"},
          {"a line end in quotes of a column that isn't wanted", "x,text,c,y\n1,\"a\n\nb\",red,0\n2,,red,1\n",
           "1 2 / 1 1 / 0 1"},
          {"doubled quotes", head + "1,\"\"\"red\"\"\",0\n", "1 / 0 / 0"},
          {"blanks around fields", " x ,\tc, y\n 1 , red ,\t0 \n", "1 / 1 / 0"},
          {"blanks in quotes around a word", head + "\" 1 \",\" red \",\" 0 \"\n", "1 / 1 / 0"},
          {"a line end in quotes behind a label", head + "1,red,\"0\n\"\n", "1 / 1 / 0"},
          {"no-break spaces around fields", head + "\xC2\xA0" + "1,red\xC2\xA0,\xC2\xA0" + "0\n", "1 / 1 / 0"},
          {"a byte order mark in the middle", head + "1,red,10\n\xEF\xBB\xBF" + "2,red,9\n", "1 2 / 1 1 / 10 9"},
          {"a no-break space before a quote", head + "1,\xC2\xA0\"red\",0\n", "!odd:2|a quote within the field"},
          {"a trailing comma", head + "1,red,0,\n", "!odd:2|4 fields, expected 3 as on line 1"},
          {"a trailing comma in each line", "x,c,y,\n1,red,0,\n", "1 / 1 / 0"},
          {"too few fields", head + "1,red\n", "!odd:2|2 fields, expected 3"},
          {"semicolons", "x;c;y\n1;red;0\n", "!odd:1|no column '|'x;c;y'"},
          {"tabs", "x\tc\ty\n1\tred\t0\n", "!odd:1|no column '"},
          {"no header", "1,red,0\n2,red,1\n", "!odd:1|no column '"},
          {"a header in another case", "X,C,Y\n1,red,0\n", "!odd:1|no column '"},
          {"a header twice in a wanted column", "x,x,c,y\n1,1,red,0\n", "!odd:1|two columns 'x'"},
          {"a header twice in other columns", "a,a,x,c,y\n0,0,1,red,0\n", "1 / 1 / 0"},
          {"the header again in the middle", head + "1,red,0\nx,c,y\n", "!odd:3|'y' in column 'y'"},
          {"a comment", head + "# one,two,three\n", "!odd:2|'# one' in column 'x'"},
          {"only a header", head, "!odd: has no records"},
          {"nothing", "", "!odd: has no records"},
          {"thousands separators", head + "\"1,000\",red,0\n", "!odd:2|'1,000' in column 'x'"},
          {"a decimal comma", head + "\"1,5\",red,0\n", "!odd:2|'1,5' in column 'x'"},
          {"a plus sign", head + "+1,red,+1\n", "1 / 1 / 1"},
          {"an exponent", head + "1e5,red,1e0\n-2.5E-1,red,0\n", "100000 -0.25 / 1 1 / 1 0"},
          {"a point at the begin or the end", head + ".5,red,0\n5.,red,0\n", "0.5 5 / 1 1 / 0 0"},
          {"zeros before a number", head + "007,red,01\n", "7 / 1 / 1"},
          {"minus zero", head + "-0,red,0\n", "-0 / 1 / 0"},
          {"a hexadecimal number", head + "0x1F,red,0\n", "!odd:2|'0x1F' in column 'x'"},
          {"a percentage", head + "5%,red,0\n", "!odd:2|'5%' in column 'x'"},
          {"a currency", head + "$5,red,0\n", "!odd:2|'$5' in column 'x'"},
          {"a boolean as a number", head + "True,red,0\n", "!odd:2|'True' in column 'x'"},
          {"a date as a number", head + "2024-01-31,red,0\n", "!odd:2|'2024-01-31' in column 'x'"},
          {"digits of another script", head + "\xD9\xA1,red,0\n", "!odd:2|in column 'x'"},
          {"a minus sign of typography", head + "\xE2\x88\x92\x31,red,0\n", "!odd:2|in column 'x'"},
          {"two numbers in a field", head + "1 2,red,0\n", "!odd:2|'1 2' in column 'x'"},
          {"an underscore", head + "1_000,red,0\n", "!odd:2|'1_000' in column 'x'"},
          {"a number that is too large", head + "1e39,red,0\n", "!odd:2|: infinity in column 'x'"},
          {"a number that is nearly 0", head + "1e-400,red,0\n", "0 / 1 / 0"},
          {"more digits than a float has", head + "0.1000000000000000055511151231257827,red,0\n", "0.1 / 1 / 0"},
          {"an infinity", head + "-inf,red,0\n", "!odd:2|-infinity in column 'x'"},
          {"NaN", head + "nan,red,0\n", "!odd:2|no value in column 'x'"},
          {"a missing number", head + "1,red,0\n,red,0\n", "!odd:3|no value in column 'x'|data.columns.x.missing"},
          {"a missing word", head + "1,,0\n1,?,0\n1,red,0\n", "1 1 1 / 0 0 1 / 0 0 0"},
          {"a missing label", head + "1,red,0\n1,red,\n", "!odd:3|no label in column 'y'"},
          {"a label of NaN", head + "1,red,0\n1,red,NaN\n", "!odd:3|no label in column 'y'"},
          {"a label that isn't a number", head + "1,red,0\n1,red,n/a\n", "!odd:3|'n/a' in column 'y'|'0' at"},
          {"labels of words", head + "1,red,no\n1,red,yes\n1,red,no\n", "1 1 1 / 1 1 1 / 0 1 0"},
          {"labels that are fractions", head + "1,red,0.5\n1,red,2\n", "1 1 / 1 1 / 0.5 2"},
          {"a NUL byte in a word", head + "1,re\0d,0\n"s, "!odd:2|column 'c'|NUL"},
          {"NUL bytes at the end of the file", head + "1,red,0\n\0\0\0\0"s, "!odd:3"},
          {"a word in Latin-1", head + "1,gr\xFCn,0\n", "!odd:2|column 'c'|0xfc, which isn't UTF-8"},
          {"a column in Latin-1 that isn't wanted", "n\xE4me,x,c,y\ngr\xFCn,1,red,0\n", "1 / 1 / 0"},
          {"UTF-16", "\xFF\xFEx\0,\0c\0,\0y\0\n\0"s, "!odd|UTF-16"},
          {"a quote within a field", head + "1,re\"d,0\n", "!odd:2|a quote within the field"},
          {"a quote that isn't closed", head + "1,\"red,0\n2,red,0\n", "!odd:2|isn't closed"},
          {"text behind a quote", head + "1,\"red\"x,0\n", "!odd:2|text after the closing quote"},
          {"single quotes", head + "1,'red',0\n", "1 / 0 / 0"},
          {"only CR at the ends of lines", "x,c,y\r1,red,0\r", "!odd:1|a line that ends in CR alone"},
          {"a class beyond 2^53", head + "1,red,1\n1,red,1e300\n", "!odd|column 'y'|float32"},
      },
      60);
}

TEST(OddFiles, Jsonl) {
  const auto line = [](const std::string& x, const std::string& c, const std::string& y) {
    return "{\"x\": " + x + ", \"c\": " + c + ", \"y\": " + y + "}\n";
  };
  expect_odd(
      DataFormat::kJsonl,
      {
          {"byte order mark", "\xEF\xBB\xBF" + line("1", "\"red\"", "0"), "1 / 1 / 0"},
          {"CRLF and empty lines", "{\"x\":1,\"c\":\"red\",\"y\":0}\r\n\r\n{\"x\":2,\"c\":\"red\",\"y\":0}",
           "1 2 / 1 1 / 0 0"},
          {"another order and more members", R"({"z": [{"a": 1}], "y": 1, "c": "green", "x": 3})", "3 / 2 / 1"},
          {"blanks", "  { \"x\" : 1 , \"c\" : \"red\" , \"y\" : 0 }  \n", "1 / 1 / 0"},
          {"escapes", R"({"x": 1, "c": "\u0072ed", "y": 0})", "1 / 1 / 0"},
          {"an escaped name", R"({"\u0078": 1, "c": "red", "y": 0})", "1 / 1 / 0"},
          {"numbers as strings", line("\"1.5\"", "\"red\"", "\"1\""), "1.5 / 1 / 1"},
          {"a string that isn't a number", line("\"many\"", "\"red\"", "0"), "!odd|'many' in column 'x'"},
          {"NaN of Python", line("NaN", "\"red\"", "0"), "!odd|record 0|no value in column 'x'"},
          {"an infinity of Python", line("-Infinity", "\"red\"", "0"), "!odd|record 0|-infinity in column 'x'"},
          {"NaN in a member that isn't wanted", R"({"z": NaN, "x": 1, "c": "red", "y": 0, "w": [NaN, 5]})",
           "1 / 1 / 0"},
          {"null as a number", line("null", "\"red\"", "0"), "!odd|record 0|no value in column 'x'"},
          {"null as a word", line("1", "null", "0") + line("2", "\"red\"", "0"), "1 2 / 0 1 / 0 0"},
          {"null as a label", line("1", "\"red\"", "0") + line("1", "\"red\"", "null"), "!odd|record 1|column 'y'"},
          {"a member that isn't there", line("1", "\"red\"", "0") + R"({"x": 1, "c": "red"})",
           "!odd|record 1|column 'y'"},
          {"booleans", line("true", "\"red\"", "false"), "1 / 1 / 0"},
          {"an exponent", line("1e2", "\"red\"", "1E0"), "100 / 1 / 1"},
          {"a fraction as a class", line("1", "\"red\"", "2.0"), "1 / 1 / 2"},
          {"a number as a word", line("1", "5", "0"), "1 / 0 / 0"},
          {"blanks in strings", line("\" 1 \"", "\" red\\n\"", "\"0\\r\\n\""), "1 / 1 / 0"},
          {"escaped blanks in strings", line("\"\\u00a01\"", "\"\\u000bred\\f\"", "\"\\ufeff10\\r\\n\""), "1 / 1 / 10"},
          {"a list of one", line("[1]", "[\"red\"]", "[0]"), "1 / 1 / 0"},
          {"a list of two", line("[1, 2]", "\"red\"", "0"), "!odd|record 0|2 values in column 'x'"},
          {"an object as a value", line("{\"a\": 1}", "\"red\"", "0"), "!odd|an object in column 'x'"},
          {"a name twice", R"({"x": 7, "x": 1, "c": "red", "y": 0})", "1 / 1 / 0"},
          {"an array instead of an object", "[1, \"red\", 0]\n", "!odd|found an array, expected a JSON object"},
          {"all lines as one array", "[{\"x\": 1, \"c\": \"red\", \"y\": 0}]\n", "!odd|found an array"},
          {"two objects in a line", R"({"x": 1, "c": "red", "y": 0}{"x": 1, "c": "red", "y": 0})",
           "!odd|more than one JSON value"},
          {"an object in several lines", "{\n\"x\": 1,\n\"c\": \"red\", \"y\": 0}\n", "!odd|isn't valid JSON"},
          {"a trailing comma", R"({"x": 1, "c": "red", "y": 0,})", "!odd|JSON"},
          {"single quotes", "{'x': 1, 'c': 'red', 'y': 0}\n", "!odd|JSON"},
          {"a comment", "// records\n" + line("1", "\"red\"", "0"), "!odd|JSON"},
          {"a plus sign", line("+1", "\"red\"", "0"), "!odd|'+1' in column 'x'"},
          {"a hexadecimal number", line("0x10", "\"red\"", "0"), "!odd|column 'x'"},
          {"a word without quotes", line("1", "red", "0"), "!odd|column 'c'"},
          {"a number that is too large", line("1e39", "\"red\"", "0"), "!odd|record 0: infinity in column 'x'"},
          {"labels of numbers and words", line("1", "\"red\"", "0") + line("1", "\"red\"", "\"n/a\""),
           "!odd|record 1|'n/a' in column 'y'"},
          {"a line in Latin-1", line("1", "\"gr\xFCn\"", "0"), "!odd|JSON"},
          {"UTF-16", "\xFF\xFE{\0\"\0"s, "!odd|UTF-16"},
          {"a NUL in a word", line("1", "\"re\\u0000d\"", "0"), "!odd|column 'c'|NUL"},
          {"a file that ends within a line", R"({"x": 1, "c": "re)", "!odd|JSON"},
      },
      30);
}

std::vector<ColumnSection> libsvm_columns(bool with_weight = false) {
  std::vector<ColumnSection> columns = {column_section("features", ColumnKind::kNumeric),
                                        column_section("label", ColumnKind::kLabel)};
  columns[0].shape = {2};
  if (with_weight) columns.push_back(column_section("weight", ColumnKind::kWeight));
  return columns;
}

TEST(OddFiles, Libsvm) {
  expect_odd(DataFormat::kLibsvm,
             {
                 {"the usual", "1 1:0.5 2:3\n0 2:1\n", "0.5 3 0 1 /  / 1 0"},
                 {"byte order mark and CRLF", "\xEF\xBB\xBF\x31 1:1 2:2\r\n", "1 2 /  / 1"},
                 {"signs", "+1 1:+0.5 2:-3\n-1 1:1\n", "0.5 -3 1 0 /  / 1 -1"},
                 {"tabs and blanks at the end", "1\t1:1\t2:2 \t\n", "1 2 /  / 1"},
                 {"empty lines", "\n1 1:1\n\n\n0 1:2\n\n", "1 0 2 0 /  / 1 0"},
                 {"a comment behind the features", "1 1:1 # 2:7\n", "1 0 /  / 1"},
                 {"lines of comments", "# by sklearn\n#\n1 1:1\n  # more\n0 1:2\n", "1 0 2 0 /  / 1 0"},
                 {"no features", "1\n0 1:1\n", "0 0 1 0 /  / 1 0"},
                 {"exponents", "1e0 1:1e-2 2:1E2\n", "0.01 100 /  / 1"},
                 {"fractions as labels", "0.5 1:1\n-2.5 1:1\n", "1 0 1 0 /  / 0.5 -2.5"},
                 {"words as labels", "b 1:1\na 1:1\n", "1 0 1 0 /  / 1 0"},
                 {"no-break spaces", "10\xC2\xA0 1:1\xC2\xA0\n9 1:2\n", "1 0 2 0 /  / 10 9"},
                 {"an index twice", "1 1:1 1:2\n", "!odd|record 0|index 1 behind index 1 in column 'features'"},
                 {"an index that falls", "1 2:1 1:2\n", "!odd|index 1 behind index 2"},
                 {"an index of 0", "1 0:1 1:2\n", "!odd|index 0 in column 'features'|zero_based"},
                 {"an index that is too large", "1 3:1\n", "!odd|index 3 in column 'features', expected 1 to 2"},
                 {"a negative index", "1 -1:1\n", "!odd|'-1:1' in column 'features'"},
                 {"a query of ranking", "1 qid:3 1:1\n", "!odd|'qid:3' in column 'features'"},
                 {"NaN", "1 1:nan\n", "!odd|record 0|no value in column 'features'"},
                 {"an infinity", "1 1:inf\n", "!odd|record 0: infinity in column 'features'"},
                 {"no value", "1 1:\n", "!odd|record 0|'1:' in column 'features'"},
                 {"blanks within a pair", "1 1: 5\n", "!odd|record 0|'1:' in column 'features'"},
                 {"a word as a value", "1 1:red\n", "!odd|record 0|'red' in column 'features'"},
                 {"no label", "1:1 2:2\n", "!odd|record 0|'1:1' in column 'label'"},
                 {"a weight", "1:0.5 1:1\n", "!odd|record 0|'1:0.5' in column 'label'|weight"},
                 {"a label of NaN", "1 1:1\nnan 1:1\n", "!odd|record 1|no label in column 'label'"},
                 {"an infinite label", "1 1:1\ninf 1:1\n", "!odd|record 1|'inf' in column 'label' is infinite"},
                 {"labels of numbers and words", "1 1:1\n2.5x 1:1\n", "!odd|record 1|'2.5x' in column 'label'"},
                 {"two labels", "1,2 1:1\n", "!odd|record 0|'1,2' in column 'label'"},
                 {"a label with a semicolon", "1 1:1\n2;5 1:1\n", "!odd|record 1|'2;5' in column 'label'"},
                 {"a csv file", "x,y\n1,2\n", "!odd|record 0|'x,y' in column 'label'|is data.format right?"},
             },
             20, libsvm_columns());
}

TEST(OddFiles, LibsvmWithWeights) {
  const Folder folder;
  Source source = input::source(DataFormat::kLibsvm, folder, "f");
  source.columns = libsvm_columns(true);
  folder.write("f", "1:0.5 1:1\n0:2 2:3\n1:0.7 2:1\n");
  const Given given = given_of(load_dataset(source));
  EXPECT_EQ(given.error, "");
  EXPECT_EQ(shown(given), "1 0 0 3 0 1 /  / 1 0 1");
  EXPECT_THAT(given.weights, testing::ElementsAre(0.5F, 2, 0.7F));
  folder.write("f", "1:0.5 1:1\n0 2:3\n");
  EXPECT_THAT(given_of(load_dataset(source)).error, testing::HasSubstr("no value in column 'weight'"));
  folder.write("f", "1:x 1:1\n");
  EXPECT_THAT(given_of(load_dataset(source)).error, testing::HasSubstr("'x' in column 'weight'"));
}

TEST(OddFiles, LibsvmToPredict) {
  const Folder folder;
  Source source = input::source(DataFormat::kLibsvm, folder, "f");
  source.columns = libsvm_columns();
  folder.write("f", "1 1:1\n");
  source.fitted = (*load_dataset(source))->fitted_columns();
  const auto inputs_of = [&](const std::string& content, bool with_weight = false) {
    folder.write("f", content);
    Source to_predict = source;
    if (with_weight) to_predict.columns = libsvm_columns(true);
    FittedColumns fitted = *source.fitted;
    fitted.columns.resize(to_predict.columns.size());
    to_predict.fitted = std::make_shared<const FittedColumns>(fitted);
    const Given given = given_of(load_dataset(without_labels(to_predict)));
    return given.error.empty() ? shown(given) : given.error;
  };
  EXPECT_EQ(inputs_of("1:1 2:2\n1:3 2:1\n"), "1 2 3 1 /  / ");
  EXPECT_EQ(inputs_of("0 1:1 2:2\n0 1:3 2:1\n"), "1 2 3 1 /  / ");
  EXPECT_EQ(inputs_of("2:2\n"), "0 2 /  / ");
  EXPECT_THAT(inputs_of("0:2 2:3\n"), testing::HasSubstr("index 0 in column 'features'"));
  // With a weight it may be that, or a feature.
  EXPECT_EQ(inputs_of("0 1:1 2:2\n0:2 2:3\n1:0.7 1:5\n", true), "1 2 0 3 5 0 /  / ");
  EXPECT_THAT(inputs_of("1:1 2:2\n", true), testing::HasSubstr("'1:1' in column 'label', expected a label before"));
}

// A tf.Example of the usual columns, from the bytes of Feature messages.
std::string example(const std::string& x, const std::string& c, const std::string& y) {
  return tfrecord_of_example(pbf(1, example_entry("x", x) + example_entry("c", c) + example_entry("y", y)));
}

TEST(OddFiles, Tfrecord) {
  const std::string x = feature_of(1.5);
  const std::string red = feature_of(std::string("red"));
  const std::string y = feature_of(std::int64_t{1});
  const std::string good = example(x, red, y);
  const std::string raw_float = bytes_of<float>({1.5F}, false);
  const std::string unpacked_float = pbf(2, std::string(1, 1 << 3 | 5) + raw_float);
  const std::string unpacked_whole = pbf(3, std::string(1, 1 << 3 | 0) + varint(7));
  const std::string usual = pbf(1, example_entry("x", x) + example_entry("c", red) + example_entry("y", y));
  std::string bad_data = good;
  bad_data[20] = static_cast<char>(bad_data[20] ^ 1);
  std::string bad_length = good;
  bad_length[8] = static_cast<char>(bad_length[8] ^ 1);
  expect_odd(
      DataFormat::kTfrecord,
      {
          {"the usual", good + good, "1.5 1.5 / 1 1 / 1 1"},
          {"numbers that aren't packed", example(unpacked_float, red, unpacked_whole), "1.5 / 1 / 7"},
          {"whole numbers as floats", example(feature_of(std::int64_t{-3}), red, y), "-3 / 1 / 1"},
          {"floats as labels", example(x, red, feature_of(0.5)), "1.5 / 1 / 0.5"},
          {"whole floats as labels", example(x, red, feature_of(2.0)), "1.5 / 1 / 2"},
          {"negative labels", example(x, red, feature_of(std::int64_t{-100})), "1.5 / 1 / -100"},
          {"texts as labels",
           example(x, red, feature_of(std::string("10\n"))) + example(x, red, feature_of(std::string("2"))),
           "1.5 1.5 / 1 1 / 10 2"},
          {"texts with a byte order mark as labels",
           example(x, red,
                   feature_of(std::string("\xEF\xBB\xBF"
                                          "10\r\n"))) +
               example(x, red, feature_of(std::string("2"))),
           "1.5 1.5 / 1 1 / 10 2"},
          {"a text as a number", example(feature_of(std::string(" 2.5\n")), red, y), "2.5 / 1 / 1"},
          {"a text that isn't a number", good + example(feature_of(std::string("many")), red, y),
           "!odd|record 1|'many' in column 'x'"},
          {"a missing number", good + tfrecord_of_example(pbf(1, example_entry("c", red) + example_entry("y", y))),
           "!odd|record 1|no value in column 'x'"},
          {"a missing word beside others", good + example(x, "", y), "1.5 1.5 / 1 0 / 1 1"},
          {"a missing label", good + example(x, red, ""), "!odd|record 1|column 'y'"},
          {"an empty list", good + example(pbf(2, pbf(1, "")), red, y), "!odd|record 1|no value in column 'x'"},
          {"two values", good + example(feature_of(std::vector<double>{1, 2}), red, y),
           "!odd|record 1|2 values in column 'x'"},
          {"NaN", good + example(feature_of(std::nan("")), red, y), "!odd|record 1|no value in column 'x'"},
          {"an infinity", good + example(feature_of(-std::numeric_limits<double>::infinity()), red, y),
           "!odd|record 1|-infinity in column 'x'"},
          {"a name twice",
           tfrecord_of_example(pbf(1, example_entry("x", feature_of(9.0)) + example_entry("x", x) +
                                          example_entry("c", red) + example_entry("y", y))),
           "1.5 / 1 / 1"},
          // The file begins as a gzip file does, but for the third byte.
          {"a first record of 35,615 bytes",
           tfrecord_of_example(usual + pbf(9, std::string(35'615 - usual.size() - 4, 'z'))), "1.5 / 1 / 1"},
          {"more features",
           tfrecord_of_example(pbf(
               1, example_entry("z", red) + example_entry("x", x) + example_entry("c", red) + example_entry("y", y))),
           "1.5 / 1 / 1"},
          {"unknown fields of protobuf",
           tfrecord_of_example(pbf(9, "abc") +
                               pbf(1, example_entry("x", x) + example_entry("c", red) + example_entry("y", y))),
           "1.5 / 1 / 1"},
          {"a word in Latin-1", good + example(x, feature_of(std::string("gr\xFCn")), y),
           "!odd|record 1|column 'c'|0xfc"},
          {"labels of numbers and words", good + example(x, red, feature_of(std::string("n/a"))),
           "!odd|record 1|'n/a' in column 'y'"},
          {"a wrong checksum of the data", good + bad_data, "!odd|record 1|checksum"},
          {"a wrong checksum of the length", good + bad_length, "!odd|record 1|checksum"},
          {"a file that ends within a record", good + good.substr(0, 20), "!odd|record 1 is truncated"},
          {"something else than tf.Example", good + tfrecord_of_example("\xFF\xFF\xFF"),
           "!odd|record 1 isn't a tf.Example"},
          {"an empty tf.Example", good + tfrecord_of_example(""), "!odd|record 1|no value in column"},
          {"a csv file", "x,c,y\n1,red,0\n2,red,1\n", "!odd|record 0|checksum"},
      },
      20);
}

TEST(OddFiles, PatternsCountCharacters) {
  const Folder folder;
  for (const char* name : {"\xC3\xBC.csv", "a.csv", "\xFC.csv", "ab.csv"}) folder.write(name, "x,c,y\n1,red,0\n");
  Source source = input::source(DataFormat::kCsv, folder, "?.csv");
  source.columns = usual_columns();
  EXPECT_EQ(load(source)->records(), 3U);  // a name that isn't UTF-8 is matched by its bytes
  source.files = "*.csv";
  EXPECT_EQ(load(source)->records(), 4U);
  source.files = "[\xC3\xA4-\xC3\xBC].csv";
  EXPECT_EQ(load(source)->records(), 1U);
}

}  // namespace
}  // namespace disttrain::input
