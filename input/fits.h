// Checks whether a model can be trained on a data set. The worker does this when it has loaded the data, before the
// first step.
#pragma once

#include <string>
#include <vector>

#include "common/model.h"
#include "common/result.h"
#include "input/dataset.h"

namespace disttrain::input {

// Checks that the model `spec`, which `model` chooses, fits the data set, which was loaded from `source`: each column
// of the model can take the values to which it is bound (bind.h). The model may have fewer columns than the data set; a
// builtin model must use all of [data.columns].
// Errors: kConfig if the sizes or types differ, kData if a label is out of range. The error text says what the data set
// has, what the model expects, and which setting can be changed.
Status fits(const Dataset& dataset, const ModelSpec& spec, const ModelSection& model, const Source& source);

// Sets the vocabulary of a transformer that its section leaves out (takes_vocabulary()), from the data set's tokens.
void size_vocabulary(const Dataset& dataset, ModelSection& model);

// Sets the sizes of the model that its section leaves out, and the scale of its targets, from [data.columns] and what
// they took from the training set.
void size_model(const FittedColumns& fitted, const DataSection& data, ModelSection& model);

// What of a builtin model takes the labels as numbers, for Source::target_taker. "" if it may take classes.
std::string target_taker(const ModelSection& model);

// What an operator should know about the categories of a test set that have words which aren't in the vocabulary: their
// names and numbers of records, and how a job can prevent it. "" if there are none.
std::string notice_of_unknown(const Dataset& dataset, const std::vector<ColumnSection>& columns);

// Says that the training set has no words of fewer than min_count records, so that it doesn't train the number 0. "" if
// this is so for no column.
std::string notice_of_min_count(const FittedColumns& fitted, const std::vector<ColumnSection>& columns);

// Tells the source as which types the model takes its columns. Call it before load_dataset(), so that the data set
// keeps the types that the model wants.
void keep_types_of(const ModelSpec& spec, Source& source);

}  // namespace disttrain::input
