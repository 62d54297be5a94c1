// The update rules, with one function for each. A function computes new parameters p from a gradient and from the
// rule's slots. It works element by element in float32, in one pass over memory. Slots begin at 0. UpdateRule
// (update_rule.h) chooses the function and computes the numbers that it needs.
//
// All spans of a call must have the same size and must not overlap. Any size and alignment is allowed. Updating a span
// in pieces gives the same bits as updating it whole, at any vector width.
#pragma once

#include <limits>
#include <span>

#include "common/update/vector_width.h"

namespace disttrain::update {

// The formulas of the rules below use g. It is computed from the gradient, in the same pass over memory:
//   g = min(max(scale * gradient, -limit), limit) + decay * p
// A NaN stays a NaN.
struct GradientTerms {
  float scale = 1.0F;                                    // turns a sum into a mean, and clips by the global norm
  float limit = std::numeric_limits<float>::infinity();  // clip by value, > 0
  float decay = 0.0F;                                    // L2 weight decay, >= 0
};

// p -= rate * g                                                     Robbins & Monro 1951
void sgd(GradientTerms terms, float rate, std::span<float> parameters, std::span<const float> gradient,
         VectorWidth width);

// v = momentum * v + g;  p -= rate * v                              Polyak 1964, in the form of Sutskever et al. 2013
void momentum(GradientTerms terms, float rate, float momentum, std::span<float> parameters,
              std::span<const float> gradient, std::span<float> velocity, VectorWidth width);

// v = momentum * v + g;  p -= rate * (g + momentum * v)             Nesterov 1983, as in Bengio et al. 2012, eq. 7
void nesterov(GradientTerms terms, float rate, float momentum, std::span<float> parameters,
              std::span<const float> gradient, std::span<float> velocity, VectorWidth width);

// a += g^2;  p -= rate * g / (sqrt(a) + epsilon)                    Duchi, Hazan, Singer 2011, diagonal form
void adagrad(GradientTerms terms, float rate, float epsilon, std::span<float> parameters,
             std::span<const float> gradient, std::span<float> squares, VectorWidth width);

// s = rho * s + (1 - rho) * g^2;  p -= rate * g / (sqrt(s) + epsilon)      Tieleman & Hinton 2012, lecture 6.5
struct RmspropNumbers {
  float rate = 0.0F;
  float rho = 0.0F;
  float one_minus_rho = 0.0F;
  float epsilon = 0.0F;
  float momentum = 0.0F;  // rmsprop_with_momentum only
};
void rmsprop(GradientTerms terms, RmspropNumbers numbers, std::span<float> parameters, std::span<const float> gradient,
             std::span<float> squares, VectorWidth width);

// s = rho * s + (1 - rho) * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p -= rate * v
//                                                                   Graves 2013, without his centring
void rmsprop_with_momentum(GradientTerms terms, RmspropNumbers numbers, std::span<float> parameters,
                           std::span<const float> gradient, std::span<float> squares, std::span<float> velocity,
                           VectorWidth width);

// m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
// p = keep * p - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// adam:  keep = 1                                                   Kingma & Ba 2015, algorithm 1
// adamw: keep = 1 - rate * weight_decay                             Loshchilov & Hutter 2019, algorithm 2; the decay
//                                                                   follows the learning rate, as it does in PyTorch
struct AdamNumbers {
  float beta1 = 0.0F;
  float one_minus_beta1 = 0.0F;
  float beta2 = 0.0F;
  float one_minus_beta2 = 0.0F;
  float rate = 0.0F;        // learning rate / (1 - beta1^t)
  float root_scale = 0.0F;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0.0F;
  float keep = 1.0F;
};
void adam(GradientTerms terms, AdamNumbers numbers, std::span<float> parameters, std::span<const float> gradient,
          std::span<float> first_moment, std::span<float> second_moment, VectorWidth width);

}  // namespace disttrain::update
