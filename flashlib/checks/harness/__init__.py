"""What runs an answer and watches it: loops, kernels, roles, tensors with strides, slow memory."""
