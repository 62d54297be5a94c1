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
// A one-hot column makes at most this many numbers of a record.
inline constexpr std::uint32_t kMaxOneHot = 1 << 16;
// Whether the column's values are categories that become numbers of the array "inputs" (ColumnSection::one_hot).
bool is_one_hot(const ColumnSection& column);

bool is_tokens(const ColumnSection& column);
bool is_bytes(const ColumnSection& column);
// Whether each record has a sequence of tokens or bytes. The column is then an array of its own.
bool is_sequence(const ColumnSection& column);
bool is_weight(const ColumnSection& column);

// Whether the model takes one number as the label of a record, and never a class: a builtin model of one output with
// the loss mse.
bool takes_target(const ModelSection& model);

// The outputs of a builtin model with the loss sigmoid_cross_entropy, whose targets are numbers from 0 to 1. 0 for any
// other model: a program or a trainer has its own loss.
std::uint64_t sigmoid_outputs(const ModelSection& model);

// The most values that a record of a libsvm file may have.
inline constexpr std::uint32_t kMaxLibsvmWidth = 1 << 24;

// Whether the model's number of tokens follows from a tokenizer or from data.columns (TransformerSection::vocabulary).
bool takes_vocabulary(const JobConfig& job);

// The number of different values of a column of categories, also of a one-hot one. It is `size_in_files` if the column
// has a vocabulary that the data files give.
std::uint32_t category_size(const ColumnSection& column, std::uint32_t size_in_files);

// The number of values that the column has in each record of the array "inputs"; 0 if it isn't in this array.
std::uint64_t input_count(const ColumnSection& column, std::uint32_t size_in_files);

// For each column of the array "categories", the number of its values.
std::vector<std::uint32_t> category_sizes(const std::vector<ColumnSection>& columns, std::uint32_t size_in_files);

// Whether a size depends on a vocabulary that the data files give.
bool has_size_in_files(const std::vector<ColumnSection>& columns);

// Sets the sizes that the model's section leaves out: those of wide_deep. Does nothing for other models or without
// columns.
void take_column_sizes(const std::vector<ColumnSection>& columns, std::uint32_t size_in_files, ModelSection& model);

}  // namespace disttrain
