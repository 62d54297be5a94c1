#include "input/probability.h"

#include "common/printable.h"
#include "input/column_values.h"
#include "input/record_block.h"

namespace disttrain::input {

std::string wrong_probability(const ColumnSection& column, std::string_view label) {
  return "the label " + printable(shown_text(label)) + " in column '" + name_in_files(column) + "'" +
         kExpectedProbability + "if there are two labels, list them as the files write them, such as " +
         key_of(column) + ".vocabulary = [\"-1\", \"+1\"], to make them 0 and 1; otherwise choose another model.loss";
}

std::string wrong_probability_in_csv(std::string_view label) {
  return "the label " + printable(shown_text(label)) + " in the last column" + kExpectedProbability +
         "if there are two labels, write them as 0 and 1, or add [data.columns], where the label may have a "
         "vocabulary such as [\"-1\", \"+1\"]; otherwise choose another model.loss";
}

}  // namespace disttrain::input
