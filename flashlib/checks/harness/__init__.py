"""Run answers and watch them: loops, kernels, roles, tensors with strides, slow memory."""
