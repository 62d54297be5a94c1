// The builtin models: their variables, columns and metrics. They follow from the [model] section of a job file alone.
// The command line uses them to plan memory, and the engine builds exactly these variables.
#pragma once

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain {

// linear: one dense layer. Its variables are those of an mlp with these two layers.
//
// mlp: a network of dense layers. layers[0] is the number of inputs. Layer i has layers[i] inputs and layers[i + 1]
// outputs. Its variables are "layer<i>/weight" [inputs, outputs] and "layer<i>/bias" [outputs]. The activation, and
// then dropout, follow every layer except the last.
//
// cnn: inputs of 1 x 28 x 28, and 10 classes.
// - "layer0": 32 convolutions of 5 x 5; weight [32, 1, 5, 5].
// - "layer1": 64 convolutions of 5 x 5; weight [64, 32, 5, 5].
// - "layer2": a dense layer [1024, 512] with the activation and dropout.
// - "layer3": a dense layer [512, 10].
//
// "layer0" and "layer1" don't pad. Each of them is followed by a 2 x 2 maximum and the activation. So the side of the
// image shrinks from 28 to 24, 12, 8 and 4. The network is that of LeCun et al. 1998 with more channels. Classic
// tutorials use padding and 1024 hidden units; that costs three times as much and recognises MNIST no better.
//
// For linear, mlp and cnn model.initializer gives the initial weights, and biases start at 0. The other models have the
// initial values of the implementations that they follow.
//
// resnet: the residual networks of 18, 34 and 50 layers of He et al. 2015 as torchvision implements them: in the
// network of 50 layers the 3 x 3 convolution has the stride. If every "/" of a variable's name is replaced by ".", the
// name and the shape are torchvision's. The stem "imagenet" is a 7 x 7 convolution with stride 2 and a 3 x 3 maximum
// with stride
// 2. The stem "cifar" is a 3 x 3 convolution with stride 1, for small images. "running_mean" and "running_var" of batch
// normalization are state variables. Each step moves them a tenth of the way to the batch's statistics.
//
// transformer: the decoder of Radford et al. 2019 (GPT-2) as nanoGPT trains it, without biases. It has these variables:
// - "token_embedding/weight" [vocabulary, width] and "position_embedding/weight" [context, width].
// - "block<i>/attention": "norm/weight" [width], "weight" [width, 3 * width] (queries, keys and values of all heads, in
//   this order) and "projection/weight" [width, width].
// - "block<i>/mlp": "norm/weight" [width], "weight" [width, 4 * width] and "projection/weight" [4 * width, width].
// - "norm/weight" [width], and without tied embeddings "output/weight" [width, vocabulary].
// The activation is gelu. Dropout follows the embeddings, the attention's softmax and both projections. A record is a
// window of context + 1 tokens or a shorter sequence, and each of its tokens but the first is predicted from those
// before it. So the loss of a batch is the mean over these tokens of all its records, and its metrics count tokens.
//
// matrix_factorization: "user/factors" [users, factors], "user/bias" [users], the same for "item", and "bias" [1]. The
// output is bias + user bias + item bias + the product of the two rows of factors (Koren, Bell & Volinsky 2009, eq. 4).
// A record has two inputs: the number of the user and that of the item.
//
// wide_deep: the sum of a linear model and of a network of dense layers (Cheng et al. 2016). It has a column "inputs"
// and a column "categories" (left out if there are none).
// - "wide/numeric/weight" [numeric, outputs], "wide/category<i>/weight" [size, outputs] and "wide/bias" [outputs].
// - "deep/category<i>/weight" [size, embedding].
// - "deep/layer<i>/weight" and "deep/layer<i>/bias", as in an mlp. Their inputs are the numeric values and then the
//   embeddings.
//
// Except for those of transformer and wide_deep, the first column is "inputs", float32. The last column is "labels",
// int64, with softmax_cross_entropy. With the other losses it is "targets", one float32 for each output. If the data
// has weights, the column before it is "weights": the loss of a batch is the mean over its records of weight times
// loss. The transformer has one ragged column, "tokens": uint8, or int32 if the vocabulary is larger than 256.
//
// Without model.metrics, a model with labels has the metric "accuracy", and the transformer also has "perplexity".
//
// Errors: kConfig. The message begins with the name of the key to change, such as "model.layers".
Result<ModelSpec> builtin_model(const ModelSection& model);

// The number of values that the model outputs for a record; for a transformer, for a token.
std::uint64_t output_elements(const ModelSpec& model);

}  // namespace disttrain
