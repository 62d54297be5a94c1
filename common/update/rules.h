// The update rules, with one function for each; lamb has two. A function computes new parameters p from a gradient and
// from the rule's slots. It works element by element, in one pass over memory. Slots begin at 0. UpdateRule
// (update_rule.h) chooses the function and computes the numbers that it needs.
//
// T is the type of the parameters, float or double. Gradients and slots have the same type, and all arithmetic is done
// in it.
//
// A function that writes parameters or slots returns whether all that it has written is small (magnitude.h), and so is
// finite. If it returns false, a value is large, or it is an infinity or a NaN.
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
template <typename T>
struct GradientTerms {
  T scale = 1;                                   // turns a sum into a mean, and clips by the global norm
  T limit = std::numeric_limits<T>::infinity();  // clip by value, > 0
  T decay = 0;                                   // L2 weight decay, >= 0
};

// p -= rate * g                                                     Robbins & Monro 1951
template <typename T>
bool sgd(GradientTerms<T> terms, T rate, std::span<T> parameters, std::span<const T> gradient, VectorWidth width);

// v = momentum * v + g;  p -= rate * v                              Polyak 1964, in the form of Sutskever et al. 2013
template <typename T>
bool momentum(GradientTerms<T> terms, T rate, T momentum, std::span<T> parameters, std::span<const T> gradient,
              std::span<T> velocity, VectorWidth width);

// v = momentum * v + g;  p -= rate * (g + momentum * v)             Nesterov 1983, as in Bengio et al. 2012, eq. 7
template <typename T>
bool nesterov(GradientTerms<T> terms, T rate, T momentum, std::span<T> parameters, std::span<const T> gradient,
              std::span<T> velocity, VectorWidth width);

// a += g^2;  p -= rate * g / (sqrt(a) + epsilon)                    Duchi, Hazan, Singer 2011, diagonal form
template <typename T>
bool adagrad(GradientTerms<T> terms, T rate, T epsilon, std::span<T> parameters, std::span<const T> gradient,
             std::span<T> squares, VectorWidth width);

// s = rho * s + (1 - rho) * g^2;  p -= rate * g / (sqrt(s) + epsilon)      Tieleman & Hinton 2012, lecture 6.5
template <typename T>
struct RmspropNumbers {
  T rate = 0;
  T rho = 0;
  T one_minus_rho = 0;
  T epsilon = 0;
  T momentum = 0;  // rmsprop_with_momentum only
};
template <typename T>
bool rmsprop(GradientTerms<T> terms, RmspropNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
             std::span<T> squares, VectorWidth width);

// s = rho * s + (1 - rho) * g^2;  v = momentum * v + g / (sqrt(s) + epsilon);  p -= rate * v
//                                                                   Graves 2013, without his centring
template <typename T>
bool rmsprop_with_momentum(GradientTerms<T> terms, RmspropNumbers<T> numbers, std::span<T> parameters,
                           std::span<const T> gradient, std::span<T> squares, std::span<T> velocity, VectorWidth width);

// m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
// p = keep * p - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// adam:  keep = 1                                                   Kingma & Ba 2015, algorithm 1
// adamw: keep = 1 - rate * weight_decay                             Loshchilov & Hutter 2019, algorithm 2; the decay
//                                                                   follows the learning rate, as it does in PyTorch
template <typename T>
struct AdamNumbers {
  T beta1 = 0;
  T one_minus_beta1 = 0;
  T beta2 = 0;
  T one_minus_beta2 = 0;
  T rate = 0;        // learning rate / (1 - beta1^t)
  T root_scale = 0;  // 1 / sqrt(1 - beta2^t)
  T epsilon = 0;
  T keep = 1;
};
template <typename T>
bool adam(GradientTerms<T> terms, AdamNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
          std::span<T> first_moment, std::span<T> second_moment, VectorWidth width);

// m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2
// u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * p
// p -= rate * trust * u                                             You et al. 2020, algorithm 2, with phi(z) = z
// trust = |p| / |u|, over the whole variable; 1 if one of the two norms is 0. As in the paper, the moments have a bias
// correction and the decay is a part of u. The norms aren't limited (torch_optimizer limits |p| to 10).
//
// lamb_moments() updates the slots. Afterwards lamb_direction() writes u to `direction`. Both leave p as it is. The
// gradient's terms have no decay.
template <typename T>
struct LambNumbers {
  T beta1 = 0;
  T one_minus_beta1 = 0;
  T beta2 = 0;
  T one_minus_beta2 = 0;
  T first_scale = 0;  // 1 / (1 - beta1^t)
  T root_scale = 0;   // 1 / sqrt(1 - beta2^t)
  T epsilon = 0;
  T decay = 0;
};
template <typename T>
bool lamb_moments(GradientTerms<T> terms, LambNumbers<T> numbers, std::span<const T> gradient,
                  std::span<T> first_moment, std::span<T> second_moment, VectorWidth width);
template <typename T>
void lamb_direction(LambNumbers<T> numbers, std::span<T> direction, std::span<const T> parameters,
                    std::span<const T> first_moment, std::span<const T> second_moment, VectorWidth width);

// n' = n + g^2;  z += g - (sqrt(n') - sqrt(n)) / rate * p
// p = -(z - sign(z) * l1) / (sqrt(n') / rate + 2 * l2), or 0 if |z| <= l1
//                                   McMahan et al. 2013, algorithm 1, in the form of TensorFlow's Ftrl with
//                                   learning_rate_power = -0.5, beta = 0 and initial_accumulator_value = 0.1
// n begins at kFtrlInitialSquares. The slot `squares` has n - kFtrlInitialSquares, so that it begins at 0 like every
// slot.
template <typename T>
inline constexpr T kFtrlInitialSquares = static_cast<T>(0.1);
template <typename T>
struct FtrlNumbers {
  T one_over_rate = 0;
  T l1 = 0;
  T twice_l2 = 0;
};
template <typename T>
bool ftrl(GradientTerms<T> terms, FtrlNumbers<T> numbers, std::span<T> parameters, std::span<const T> gradient,
          std::span<T> squares, std::span<T> linear, VectorWidth width);

}  // namespace disttrain::update
