"""Attention as an operation of PyTorch: gradients, transforms, graphs, autocast."""

import warnings

import pytest
import torch
from torch import func
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from flashlib import torch_ref
from flashlib.kernels import DEVICE, autograd, backward, decode, forward, varlen
from tests.kernels.gradients import reference, rounding

X = torch.zeros(1, 2, 8, 16, device=DEVICE)
QKV = 0, 1, 2
CU = torch.tensor([0, 7], dtype=torch.int32)
loads_a_lot = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # forward mode does, once


def tensors(device, *batch, B=1):
    """Return Q, K and V, with `batch` before their axes; two query heads read one head of K and V."""
    shapes = (B, 2, 7, 16), (B, 1, 11, 16), (B, 1, 11, 16)
    return [torch.randn(*batch, *shape, device=device) for shape in shapes]


@pytest.fixture
def leaves(device):
    return [Y.requires_grad_() for Y in tensors(device)]


@pytest.fixture
def launches(monkeypatch):
    """The names of the launched kernels."""
    names = []
    for name in ("_launch", "_launch_backward"):
        launch = getattr(autograd, name)
        monkeypatch.setattr(autograd, name, lambda *a, _name=name, _of=launch: names.append(_name) or _of(*a))
    return names


def standard(Q, K, V, **problem):
    """Return standard attention with grouped heads."""
    K, V = (Y.repeat_interleave(Q.shape[1] // K.shape[1], dim=1) for Y in (K, V))
    return torch_ref.attention(Q, K, V, **problem)


def loss_by(attention, causal=True):
    """Return a function of Q, K and V whose value depends on O and lse, with operations before and after."""

    def loss(Q, K, V, **options):
        O, lse = attention(Q * 2, K, V.sin(), causal=causal, **options)
        return O.square().sum() + lse.sin().sum()

    return loss


loss = loss_by(autograd.attention)


def hold(transform, *inputs):
    """Compare a transform of our attention with the same transform of standard attention in fp64."""
    given = tree_leaves(transform(autograd.attention)(*inputs))
    expected = tree_leaves(transform(standard)(*(Y.double() for Y in inputs)))
    for Y, Y_exact in zip(given, expected, strict=True):
        torch.testing.assert_close(Y.double(), Y_exact, atol=5e-5, rtol=1e-4)


def assert_equal(given, expected):
    assert all(torch.equal(Y, Z) for Y, Z in zip(given, expected, strict=True))


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("with_lse", [True, False])
def test_gradients_are_those_of_standard_attention(deterministic, with_lse, device, poisoned):
    shapes = (1, 2, 37, 16), (1, 1, 53, 16), (1, 1, 53, 16)
    leaves = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
    outputs = autograd.attention(*leaves, causal=True, deterministic=deterministic)
    dO, dlse = (torch.randn_like(Y) for Y in outputs)
    of = (outputs.O, outputs.lse) if with_lse else (outputs.O,)
    given = torch.autograd.grad(of, leaves, (dO, dlse)[: len(of)])
    detached = [Y.detach() for Y in leaves]
    exact = reference(*(Y.double() for Y in detached), dO, dlse if with_lse else None, causal=True)
    bounds = rounding(*detached, dO, dlse, causal=True)
    for Y, Y_exact, bound in zip(given, exact, bounds, strict=True):
        assert (Y - Y_exact).abs().max().item() <= bound


def test_the_gradient_of_lse_alone(leaves):
    lse = autograd.attention(*leaves).lse
    dQ, dK, dV = torch.autograd.grad(lse.sum(), leaves, allow_unused=True)
    exact = reference(*(Y.double() for Y in leaves), torch.zeros_like(leaves[0]), torch.ones_like(lse))
    for Y, Y_exact in zip((dQ, dK), exact[:2], strict=True):
        torch.testing.assert_close(Y.double(), Y_exact, atol=1e-5, rtol=1e-5)
    assert dV is None or not dV.any()


def test_only_Q_K_V_O_and_lse_are_saved(leaves):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda Y: kept.append(Y) or Y, lambda Y: Y):
        O, lse = autograd.attention(*leaves)
    expected = sum(Y.numel() for Y in (*leaves, O, lse))
    assert sum(Y.numel() for Y in {Y.data_ptr(): Y for Y in kept}.values()) == expected


def test_values_are_those_of_the_kernel(leaves):
    with torch.no_grad():
        expected = forward.attention(*leaves, causal=True, scale=0.3)
        plain = autograd.attention(*leaves, causal=True, scale=0.3)
    assert_equal(autograd.attention(*leaves, causal=True, scale=0.3), expected)
    assert_equal(plain, expected)
    assert not any(Y.requires_grad for Y in plain)


def test_eager_mode_does_not_call_an_operator(leaves, monkeypatch):
    monkeypatch.delattr(autograd, "_attention")
    monkeypatch.delattr(autograd, "_attention_backward")
    torch.autograd.grad(loss(*leaves), leaves)


# Transforms of torch.func and their relatives


@pytest.mark.parametrize("causal", [False, True])
def test_grad(causal, device):
    hold(lambda attention: func.grad(loss_by(attention, causal), QKV), *tensors(device))


def test_grad_of_one_output_by_one_input(device):
    hold(lambda attention: func.grad(lambda *Y: attention(*Y).O.square().sum(), 1), *tensors(device))
    hold(lambda attention: func.grad(lambda *Y: attention(*Y).lse.sum()), *tensors(device))


def test_vjp(device):
    Q, K, V = tensors(device)
    gradients = torch.randn_like(Q), torch.randn_like(Q[..., 0])

    def transform(attention):
        def pull(*Y):
            outputs, vjp = func.vjp(lambda *Z: tuple(attention(*Z, causal=True)), *Y)
            return *outputs, *vjp(tuple(dY.to(Y.dtype) for dY, Y in zip(gradients, outputs, strict=True)))

        return pull

    hold(transform, Q, K, V)


def test_jacrev_launches_the_backward_pass_once(device, launches):
    hold(lambda attention: func.jacrev(lambda *Y: attention(*Y).O[0, 0, 3:5, 0], QKV), *tensors(device))
    assert launches == ["_launch", "_launch_backward"]


@pytest.mark.parametrize(
    "amount, in_dims",
    [("few", (0, 0, 0)), ("all", (None, None, 0)), ("few", (None, -1, 2)), ("few", (4, 0, None))],
    ids=str,
)
def test_vmap_launches_once(amount, in_dims, device, launches):
    inputs = tensors(device)
    for i, (Y, dim) in enumerate(zip(tensors(device, 2), in_dims, strict=True)):
        inputs[i] = inputs[i] if dim is None else Y.movedim(0, dim)
    hold(lambda attention: func.vmap(func.grad(loss_by(attention), QKV), in_dims), *inputs)
    assert launches == ["_launch", "_launch_backward"]


def test_vmap_of_the_outputs(device):
    (Q, K, _), (_, _, V) = tensors(device, 3, B=2), tensors(device, B=2)
    hold(lambda attention: func.vmap(lambda *Y: tuple(attention(*Y)), (0, 0, None), (1, -1)), Q, K, V)


def test_the_gradient_of_a_vmap_sums_over_what_is_shared(device):
    inputs = *tensors(device, 2)[:2], tensors(device)[2]
    hold(lambda f: func.grad(lambda *Y: func.vmap(loss_by(f), (0, 0, None))(*Y).sum(), QKV), *inputs)


@pytest.mark.parametrize("size", [0, 1])
def test_small_batches(size, device):
    hold(lambda attention: func.vmap(func.grad(loss_by(attention), QKV)), *tensors(device, size))


def test_vmap_in_vmap(device, launches):
    (Q, _, V), (_, K, _) = tensors(device, 2, 2), tensors(device, 2)
    hold(lambda f: func.vmap(func.vmap(func.grad(loss_by(f), QKV)), (0, None, 0)), Q, K, V)
    assert launches == ["_launch", "_launch_backward"]


def test_transforms_of_functions_that_do_not_depend_on_attention(leaves):
    x = torch.arange(3.0, device=leaves[0].device)
    O = autograd.attention(*leaves).O
    assert torch.equal(func.vmap(lambda y: autograd.attention(*leaves).O * y)(x)[2], O * 2)
    torch.testing.assert_close(func.grad(lambda y: (autograd.attention(*leaves).O * y).sum())(x[0]), O.sum())


def test_gradients_in_batches(device):
    leaves = [torch.randn(1, 1, N, 16, device=device, requires_grad=True) for N in (7, 11, 11)]
    outputs = autograd.attention(*leaves, causal=True)
    for of, given in ((outputs, leaves), (outputs[1:], leaves[:2])):
        gradients = [torch.randn(2, *Y.shape, device=device) for Y in of]

        def pull(*each, of=of, given=given, **options):
            return torch.autograd.grad(of, given, each, retain_graph=True, **options)

        one_by_one = [pull(*each) for each in zip(*gradients, strict=True)]
        expected = [torch.stack(each) for each in zip(*one_by_one, strict=True)]
        assert_equal(pull(*gradients, is_grads_batched=True), expected)
        torch.testing.assert_close(list(func.vmap(pull)(*gradients)), expected)


def dual(Y):
    return forward_ad.make_dual(Y, torch.ones_like(Y))


def of_V(Q, K):
    return lambda V: autograd.attention(Q, K, V).O.sum()


FORWARD_MODE = "forward mode.*use flashlib.torch_ref.attention or SDPA's math backend"


@loads_a_lot
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda Q, K, V: func.jvp(of_V(Q, K), (V,), (V,)),
        lambda Q, K, V: torch.no_grad()(func.jvp)(of_V(Q, K), (V,), (V,)),
        lambda Q, K, V: func.jacfwd(of_V(Q, K))(V),
        lambda Q, K, V: func.hessian(of_V(Q, K))(V),
        lambda Q, K, V: func.jvp(func.vmap(of_V(Q, K)), (V[None],), (V[None],)),
        lambda Q, K, V: func.jvp(func.vjp(of_V(Q, K), V)[1], (V.sum(),), (V.sum(),)),
        lambda Q, K, V: func.jvp(lambda V: forward.attention(Q, K, V).O, (V,), (V,)),
        lambda Q, K, V: func.jvp(lambda V: backward.backward(Q, K, V, Q, Q[..., 0], Q).dQ, (V,), (V,)),
    ],
)
def test_torch_func_in_forward_mode_is_refused_in_words(differentiate, device):
    with pytest.raises(RuntimeError, match=FORWARD_MODE):
        differentiate(*tensors(device))


@loads_a_lot
@pytest.mark.parametrize(
    "amount, differentiate",
    [
        ("few", lambda Q, K, V: of_V(Q, K)(dual(V))),
        ("few", lambda Q, K, V: torch.no_grad()(of_V(Q, K))(dual(V))),
        ("few", lambda Q, K, V: of_V(Q.requires_grad_(), K)(dual(V))),
        ("all", lambda Q, K, V: torch.compile(of_V(Q, K), backend="aot_eager")(dual(V))),
        ("few", lambda Q, K, V: forward.attention(Q, K, dual(V))),
        ("few", lambda Q, K, V: backward.backward(Q, K, dual(V), Q, Q[..., 0], Q)),
    ],
)
def test_dual_tensors_are_refused_in_words(amount, differentiate, device):
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=FORWARD_MODE):
        differentiate(*tensors(device))


@loads_a_lot
@pytest.mark.parametrize(
    "amount, wrap", [("few", lambda f: f), ("all", lambda f: torch.compile(f, backend="aot_eager"))]
)
def test_dual_gradients_are_refused_in_words(amount, wrap, device):
    Q, K, V = tensors(device)
    value = wrap(of_V(Q, K))(V.requires_grad_())
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=FORWARD_MODE):
        torch.autograd.grad(value, V, dual(Q.sum()))


@loads_a_lot
def test_forward_mode_around_attention_of_constants(device):
    Q, K, V = tensors(device)
    O = autograd.attention(Q, K, V).O
    tangent = func.jvp(lambda x: autograd.attention(Q, K, V).O * x, (X.sum(),), (X.sum() + 2,))[1]
    assert torch.equal(tangent, O * 2)


def test_kernels_refuse_batches_in_words(device):
    Q, K, V = tensors(device)
    with pytest.raises(RuntimeError, match="K is a batch of torch.func.vmap.*call .*autograd.attention"):
        func.vmap(lambda K: forward.attention(Q, K, V).O)(K[None])
    saved = forward.attention(Q, K, V)
    with pytest.raises(RuntimeError, match="V is a batch of torch.func.vmap.*call .*autograd.attention"):
        func.vmap(lambda V: backward.backward(Q, K, V, *saved, Q).dQ)(V[None])


@pytest.mark.parametrize("twice", [lambda f: func.grad(lambda *Y: func.grad(f)(*Y).sum()), func.hessian])
@loads_a_lot
def test_second_derivatives_by_torch_func_are_refused_in_words(twice, device):
    with pytest.raises(RuntimeError, match="torch_ref.attention or SDPA's math backend"):
        twice(loss)(*tensors(device))


def test_a_second_derivative_is_refused_in_words(leaves):
    (dQ,) = torch.autograd.grad(loss(*leaves), leaves[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated again.*torch_ref.attention"):
        dQ.sum().backward()


# Graphs


def test_a_compiled_graph_contains_the_whole_operation_for_any_size(device):
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for N, d in ((5, 16), (9, 24), (13, 20)):
        leaves = [torch.randn(1, 1, N, d, device=device, requires_grad=True) for _ in range(3)]
        assert_equal(*(torch.autograd.grad(f(*leaves), leaves) for f in (compiled, loss)))


@pytest.mark.parametrize("amount", ["all"])
def test_a_compiled_graph_of_O_or_lse_alone_and_without_gradients(amount, leaves):
    for of in (0, 1):
        f = lambda *Y, of=of: autograd.attention(*Y, causal=True)[of].square().sum()  # noqa: E731
        compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
        assert_equal(*(torch.autograd.grad(g(*leaves), leaves[:2]) for g in (compiled, f)))
    with torch.no_grad():
        assert torch.equal(compiled(*leaves), f(*leaves))


def test_the_operation_is_traced_with_its_gradients(leaves):
    """As torch before 2.13 traces it in a compiled graph."""

    def gradients(*Y):
        O, lse = torch.ops.flashlib.attention(*Y, True, 0.25, True)
        return torch.autograd.grad(O.square().sum() + lse.sum(), Y)

    traced = make_fx(gradients)(*leaves)
    assert any(node.target == torch.ops.flashlib.attention_backward.default for node in traced.graph.nodes)
    assert_equal(traced(*leaves), gradients(*leaves))


@pytest.mark.parametrize("amount", ["all"])
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf", "ignore:.torch.jit.script_method. is deprecated"
)  # both by torch itself
def test_a_compiled_backward_pass(amount, leaves):
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)):
        given = torch.autograd.grad(loss(*leaves), leaves)
    assert_equal(given, torch.autograd.grad(loss(*leaves), leaves))


@pytest.mark.parametrize("amount", ["all"])
@pytest.mark.parametrize(
    "call",
    [
        lambda Q, K, V: forward.attention(Q, K, V, causal=True),
        lambda Q, K, V: backward.backward(Q, K, V, Q, Q[..., 0].contiguous(), Q),
        lambda Q, K, V: autograd.attention(Q, K, V, sink=0.5),
        lambda Q, K, V: decode.attention(Q, K, V),
        lambda Q, K, V: varlen.attention(*(X[0].transpose(0, 1) for X in (Q, K, V)), CU, CU * 11 // 7),
    ],
    ids=["forward", "backward", "sinks", "decode", "varlen"],
)
def test_a_call_that_is_not_traced_runs_between_compiled_graphs(amount, call, device):
    def around(Q, K, V):
        first, second, *_ = call(Q + 1, K, V)
        return first * 2, second

    graphs, inputs = [], tensors(device)
    compiled = torch.compile(around, backend=lambda graph, _: graphs.append(graph) or graph.forward)
    counted = []
    for _ in range(3):
        assert all(map(torch.equal, compiled(*inputs), around(*inputs)))
        counted.append(len(graphs))
    assert counted[0] == counted[2] > 0, "a second call compiles nothing"


@pytest.mark.parametrize("amount", ["all"])
def test_torch_func_inside_a_compiled_graph_is_refused_in_words(amount, device):
    compiled = torch.compile(func.grad(loss), backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="torch.compile takes no torch.func around flashlib's attention"):
        compiled(*tensors(device))


def test_a_trace_computes_again(device):
    Q, K, V = tensors(device)
    graph = make_fx(lambda *Y: func.grad(loss, QKV)(*Y))(Q, K, V)
    assert_equal(graph(Q, K + 1, V), func.grad(loss, QKV)(Q, K + 1, V))


def test_activation_checkpointing(leaves):
    given = torch.autograd.grad(checkpoint(loss, *leaves, use_reentrant=False), leaves)
    assert_equal(given, torch.autograd.grad(loss(*leaves), leaves))


def test_the_operators_keep_torchs_rules(leaves):
    rules = {"test_utils": ("test_schema", "test_autograd_registration", "test_faketensor")}
    Q, K, V = leaves
    spread = Q.detach().transpose(1, 2).contiguous().transpose(1, 2).bfloat16().requires_grad_()
    for arguments in ((Q, K, V), (spread, K.bfloat16(), V.bfloat16())):
        forward_check = torch.library.opcheck(autograd._attention, (*arguments, True, 0.25, True), **rules)
        detached = [Y.detach() for Y in arguments]
        O, lse = autograd.attention(*detached, causal=True, scale=0.25)
        saved = (*detached, O, lse, torch.ones_like(O), None, True, 0.25, True)
        backward_check = torch.library.opcheck(autograd._attention_backward, saved, **rules)
        assert {*forward_check.values(), *backward_check.values()} == {"SUCCESS"}


# Autocast and determinism


@pytest.mark.parametrize(
    "amount, wrap",
    [("few", lambda f: f), ("all", lambda f: torch.compile(f, backend="aot_eager", fullgraph=True))],
)
def test_autocast_casts_the_inputs(amount, wrap, leaves):
    def of(attention):
        with torch.autocast(leaves[0].device.type, dtype=torch.bfloat16):
            return attention(*leaves, causal=True)

    O, lse = wrap(of)(autograd.attention)
    assert O.dtype == torch.bfloat16 and lse.dtype == torch.float32
    grads = torch.autograd.grad(O.float().sum(), leaves)
    assert all(grad.dtype == torch.float32 for grad in grads)
    with torch.no_grad():
        rounded = [Y.bfloat16() for Y in leaves]
        assert_equal((O, lse), forward.attention(*rounded, causal=True))
        assert_equal((O, lse), of(forward.attention))
        assert_equal((O, lse), of(autograd.attention))


def test_autocast_of_inputs_that_have_its_dtype_already(leaves):
    mixed = leaves[0].half(), leaves[1], leaves[2].bfloat16()
    with torch.autocast(leaves[0].device.type, dtype=torch.float16):
        O = autograd.attention(*mixed).O
    assert O.dtype == torch.float16
    grads = torch.autograd.grad(O.sum(), mixed)
    assert [grad.dtype for grad in grads] == [Y.dtype for Y in mixed]


@pytest.fixture
def use_deterministic_algorithms():
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


def test_sums_in_any_order_obey_torch(leaves, use_deterministic_algorithms):
    by_adding, by_passes = (autograd.attention(*leaves, deterministic=way).O for way in (False, True))
    dO = torch.ones_like(by_adding)
    use_deterministic_algorithms(True)
    assert autograd.attention(*leaves, deterministic=False).O.requires_grad  # the forward pass adds nothing
    with pytest.raises(RuntimeError, match="adds to dQ in any order.*pass deterministic=True"):
        torch.autograd.grad(by_adding, leaves, dO, retain_graph=True)
    torch.autograd.grad(by_passes, leaves, dO)
    use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="adds to dQ in any order.*pass deterministic=True"):
        torch.autograd.grad(by_adding, leaves, dO, retain_graph=True)
    use_deterministic_algorithms(False)
    with warnings.catch_warnings(action="error"):
        torch.autograd.grad(by_adding, leaves, dO)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((X, X, X[:, :, :5]), ValueError, "V"),
        ((X.half(), X, X), TypeError, "K has dtype torch.float32 and Q has torch.float16"),
        ((X.tolist(), X, X), TypeError, "Q is of type list; pass a torch tensor"),
    ],
)
def test_bad_input_is_refused_as_by_the_kernel(arguments, error, message):
    with pytest.raises(error, match=message):
        autograd.attention(*arguments)
    with torch.autocast(DEVICE, dtype=torch.bfloat16), pytest.raises((TypeError, ValueError)):
        autograd.attention(X, X, X.int())
    with pytest.raises(TypeError, match="deterministic is 0"):
        autograd.attention(X, X, X, deterministic=0)


def test_a_model_learns_the_same_as_with_standard_attention(device):
    def train(attention):
        torch.manual_seed(0)
        W = (torch.randn(16, 48, device=device) / 4).requires_grad_()
        x, y = torch.randn(2, 1, 1, 11, 16, device=device)
        losses = []
        for _ in range(5):
            loss = (attention(*(x @ W).chunk(3, dim=-1), causal=True).O - y).square().mean()
            (grad,) = torch.autograd.grad(loss, W)
            W = (W - grad / 10).detach().requires_grad_()
            losses.append(loss.item())
        return losses

    ours, plain = train(autograd.attention), train(torch_ref.attention)
    assert ours[-1] < ours[0]
    assert ours == pytest.approx(plain, rel=1e-4)
