// Update rules with their settings, and one element of each rule in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/update/update_rule.h"

namespace disttrain::update {

struct RuleCase {
  std::string name;
  OptimizerConfig optimizer;
  ClipConfig clip;
  std::size_t slots = 0;
};

inline OptimizerConfig optimizer_of(Rule rule, double learning_rate, double weight_decay, double momentum,
                                    double epsilon) {
  OptimizerConfig optimizer;
  optimizer.rule = rule;
  optimizer.learning_rate = learning_rate;
  optimizer.weight_decay = weight_decay;
  optimizer.momentum = momentum;
  optimizer.epsilon = epsilon;
  return optimizer;
}

inline OptimizerConfig ftrl_of(double learning_rate, double l1, double l2) {
  OptimizerConfig optimizer;
  optimizer.rule = Rule::kFtrl;
  optimizer.learning_rate = learning_rate;
  optimizer.l1 = l1;
  optimizer.l2 = l2;
  return optimizer;
}

inline std::vector<RuleCase> rule_cases() {
  const ClipConfig none;
  const ClipConfig clip{ClipKind::kValue, 0.7};
  return {
      {"Sgd", optimizer_of(Rule::kSgd, 0.05, 0.0, 0.9, 1e-8), none, 0},
      {"SgdDecayed", optimizer_of(Rule::kSgd, 0.05, 0.01, 0.9, 1e-8), none, 0},
      {"SgdClipped", optimizer_of(Rule::kSgd, 0.05, 0.01, 0.9, 1e-8), clip, 0},
      {"Momentum", optimizer_of(Rule::kMomentum, 0.05, 0.01, 0.9, 1e-8), none, 1},
      {"MomentumClipped", optimizer_of(Rule::kMomentum, 0.05, 0.0, 0.5, 1e-8), clip, 1},
      {"Nesterov", optimizer_of(Rule::kNesterov, 0.05, 0.01, 0.9, 1e-8), none, 1},
      {"Adagrad", optimizer_of(Rule::kAdagrad, 0.05, 0.01, 0.9, 1e-10), none, 1},
      {"Rmsprop", optimizer_of(Rule::kRmsprop, 0.01, 0.01, 0.0, 1e-8), none, 1},
      {"RmspropWithMomentum", optimizer_of(Rule::kRmsprop, 0.01, 0.01, 0.9, 1e-8), none, 2},
      {"Adam", optimizer_of(Rule::kAdam, 0.01, 0.0, 0.9, 1e-8), none, 2},
      {"AdamDecayedClipped", optimizer_of(Rule::kAdam, 0.01, 0.1, 0.9, 1e-8), clip, 2},
      {"Adamw", optimizer_of(Rule::kAdamw, 0.01, 0.1, 0.9, 1e-8), none, 2},
      {"Ftrl", ftrl_of(0.05, 0.0, 0.0), none, 2},
      {"FtrlL1L2Clipped", ftrl_of(0.05, 0.5, 0.1), clip, 2},
  };
}

// One element in float64. This code follows the papers, and shares nothing with rules.cc.
struct Reference {
  double p = 0.0;
  double a = 0.0;
  double b = 0.0;

  void update(const RuleCase& rule, const UpdateStep& step, double gradient) {
    const OptimizerConfig& o = rule.optimizer;
    const double eta = step.learning_rate;
    double g = gradient * step.gradient_scale;
    if (rule.clip.kind == ClipKind::kValue) g = std::clamp(g, -rule.clip.value, rule.clip.value);
    if (o.rule != Rule::kAdamw) g += o.weight_decay * p;
    switch (o.rule) {
      case Rule::kSgd:
        p = p - eta * g;
        break;
      case Rule::kMomentum:
        a = o.momentum * a + g;
        p = p - eta * a;
        break;
      case Rule::kNesterov:
        a = o.momentum * a + g;
        p = p - eta * (g + o.momentum * a);
        break;
      case Rule::kAdagrad:
        a = a + g * g;
        p = p - eta * g / (std::sqrt(a) + o.epsilon);
        break;
      case Rule::kRmsprop:
        a = o.rho * a + (1 - o.rho) * g * g;
        b = o.momentum * b + g / (std::sqrt(a) + o.epsilon);
        p = p - eta * b;
        break;
      case Rule::kAdam:
      case Rule::kAdamw: {
        a = o.beta1 * a + (1 - o.beta1) * g;
        b = o.beta2 * b + (1 - o.beta2) * g * g;
        const double t = static_cast<double>(step.t) + 1;
        const double m = a / (1 - std::pow(o.beta1, t));
        const double v = b / (1 - std::pow(o.beta2, t));
        const double decay = o.rule == Rule::kAdamw ? o.weight_decay * p : 0.0;
        p = p - eta * (m / (std::sqrt(v) + o.epsilon) + decay);
        break;
      }
      case Rule::kFtrl: {  // a: n without its initial value, b: z
        const double n = 0.1 + a;
        const double sigma = (std::sqrt(n + g * g) - std::sqrt(n)) / eta;
        b = b + g - sigma * p;
        a = a + g * g;
        const double sign = b < 0 ? -1 : 1;
        p = std::abs(b) <= o.l1 ? 0.0 : -(b - sign * o.l1) / (std::sqrt(0.1 + a) / eta + 2 * o.l2);
        break;
      }
      case Rule::kLamb:
        break;  // see the tests of Lamb below
    }
  }
};

}  // namespace disttrain::update
