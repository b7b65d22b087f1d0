"""What operations with gradients are written with: here they run forward, and nothing is kept for gradients."""

import contextlib
import types

from .missing import no_gradients


class no_grad(contextlib.ContextDecorator):
    """A `with` that changes nothing, since there are no gradients anyway."""

    def __init__(self, mode=True):
        if mode is False:  # torch.inference_mode(False)
            no_gradients()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class _Context:
    """What `forward` saves for a backward pass: nothing needs it."""

    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        pass

    mark_dirty = save_for_forward = mark_non_differentiable

    def set_materialize_grads(self, value):
        pass


class _FunctionBase:
    @classmethod
    def apply(cls, *arguments):
        """Return what `forward` returns."""
        if hasattr(cls, "setup_context"):
            return cls.forward(*arguments)
        return cls.forward(_Context(), *arguments)


class Function(_FunctionBase):
    """An operation with a forward pass, and a backward pass that is never asked for."""

    @classmethod
    def apply(cls, *arguments):
        return super().apply(*arguments)


def once_differentiable(backward):
    return backward


def unpack_dual(X, *, level=None):  # noqa: ARG001
    return types.SimpleNamespace(primal=X, tangent=None)


class Operation:
    """What torch.library.custom_op makes of a function: it is called as it is."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments, **options):
        return self.function(*arguments, **options)

    def register_fake(self, function):
        return function

    register_vmap = register_autograd = register_kernel = register_fake


def custom_op(name, function=None, /, **options):  # noqa: ARG001
    return Operation if function is None else Operation(function)


def register_autograd(operation, backward, **options):
    """Ignore the backward pass of an operation."""
