// The sizes of a model that follow from [data.columns].
#pragma once

#include <cstdint>
#include <vector>

#include "common/config/job_config.h"

namespace disttrain {

// Whether the column's values are numbers of the array "inputs".
bool is_number(const ColumnSection& column);
// Whether the column's values are the pixels of an image, which are the array "inputs".
bool is_image(const ColumnSection& column);
// Whether the column's values are whole numbers of the array "categories".
bool is_category(const ColumnSection& column);

bool is_tokens(const ColumnSection& column);

// Whether the model's number of tokens follows from a tokenizer or from data.columns (TransformerSection::vocabulary).
bool takes_vocabulary(const JobConfig& job);

// For each category column, the number of its values. The size of a vocabulary that the data files give is
// `size_in_files`.
std::vector<std::uint32_t> known_category_sizes(const std::vector<ColumnSection>& columns, std::uint32_t size_in_files);

// Sets the sizes that the model's section leaves out: those of wide_deep. `categories` has the number of values of each
// category column. Does nothing for other models or without columns.
void take_column_sizes(const std::vector<ColumnSection>& columns, const std::vector<std::uint32_t>& categories,
                       ModelSection& model);

}  // namespace disttrain
