"""Calls of torch that its stand-in computes as torch does.

x, y: floats of one type, (3, 5) and (5,). i: whole numbers (3, 5). g: a generator. t: torch. A call may write to
them. EXACT: calls with floats, among them 0 and infinity, whose results have the same bits in all types; ROUNDED:
in those of 16 bits, as they are computed in fp32; NEAR: nearly the same bits. REFUSED: calls that raise the same.
"""


def _table(text):
    return [call for line in text.strip().splitlines() for call in line.strip().split("; ")]


EXACT = _table("""
    x + y; x - y; x.diff(); x * y; x / 3; 2 - x; 1.5 * x; 0.1 * x; x / y; -x; abs(x); x.abs(); x.square(); x**2
    x.floor(); x.ceil(); x.round(); x.trunc(); x.sign(); x.neg(); x.relu(); x.reciprocal(); x + 2 * y; x < y
    x <= 0.1; x == x; x != y; x > 1; x >= y; x == 0.1; t.lt(x, y); x.maximum(y); t.minimum(x, y)
    x.clamp(-0.5, 0.5); x.clamp(min=0); x.clamp(max=y); x.isnan(); x.isinf(); t.isfinite(x); x.logical_not()
    x.logical_and(y); t.logical_or(x, y); (x > 0) & (x < 1); ~(x > 0); (x > 0) | (y > 0); (x > 0) ^ (y > 0)
    (x > 0).sum(); (x > 0).sum(1); (x > 0).float(); (x > 0).any(1); t.nan_to_num(x); x.nan_to_num(1.0, 5, -5); x.T
    x.T * 2; x.T + 1; x.T + x.T; x[1]; x[1, 2]; x[:, 1:4:2]; x[..., None]; x[None]; x[-1, :2]; x[2:0]; x[[2, 0]]
    x[x > 0]; x[1:, [0, 3]]; x[t.tensor([0, 2, 2])]; x[t.tensor(1)]; x[i[0, 0] % 3]; x[:, None, 2]; x.reshape(5, 3)
    x.T.reshape(-1); x.reshape(-1, 3); x.view(15); x.flatten(); x[None].flatten(1); x.ravel(); x.unsqueeze(1)
    x[None].squeeze(0); x[None].squeeze(); x.squeeze(0); x.expand(2, 3, 5); y.expand(3, -1); x.permute(1, 0)
    x.transpose(0, 1); x.mT; x.t(); x.movedim(0, 1); x.swapaxes(0, 1); x.narrow(1, 1, 3); x.select(0, 2)
    x.unbind(1)[3]; x.split(2)[1]; x.split([1, 2])[1]; x.chunk(2, 1)[1]
    x.split_with_sizes([2, 3], 1)[1]; x.unflatten(1, (5, 1)); x.diagonal()
    x.diagonal(1); x.diagonal(-1); x.as_strided((2, 2), (5, 1), 3); x.view_as(x); x.reshape_as(x); x.detach()
    x.data; x.cpu(); t.broadcast_tensors(x, y)[1]; y.expand_as(x); x[:, 2].contiguous(); x.T.data; x.tril()
    x.triu(1); t.tril(x, -1); x.repeat(2, 1); x.repeat_interleave(2, 1); x.flip(1); x.flip(0, 1); x.roll(1, 0)
    x.gather(1, i % 5); x.index_select(0, t.tensor([2, 0])); x.masked_fill(x > 0, 2.5); x.masked_select(x > 0)
    t.nonzero(x); x.nonzero(as_tuple=True)[1]; t.where(x > 0, x, y); t.where(x > 0, x, 0.0); x.any(); x.all(1)
    x.amax(); x.amax(1, keepdim=True); x.amin(0); x.amax((0, 1)); x.max(); x.min(1).values; x.max(0).indices
    x.argmax(); x.argmax(1); x.argmin(0); x.sort(1).values; x.sort(1, descending=True).values; x.topk(2).values
    y.argsort(); y.argsort(descending=True); x.count_nonzero(); t.searchsorted(y.sort().values, x); t.stack([x, x])
    t.stack([x, x], -1); t.cat([x, x], 1); t.cat([x, i]); t.outer(y, y); t.equal(x, x.clone()); t.zeros_like(x)
    t.full_like(x, 2); t.ones_like(x.T); t.zeros_like(x[:, ::2]); t.zeros_like(x.T[::2]); x.clone(); x.T.clone()
    x.T.contiguous(); x[:, ::2].clone(); x.T.clone(memory_format=t.contiguous_format); x.float(); x.half()
    x.bfloat16(); x.double(); x.T.float(); x.type(t.float32); x.type_as(i); x.bool()
    x.to(dtype=t.float16, copy=True); x.to("cpu", t.bfloat16); x[x.isfinite()].to(t.int32); x.to(i.device)
    x.new_zeros(2, 3); x.new_full((2,), 3); x.new_ones(2); x.new_tensor([1.5]); x.new_empty(0); x.fill_(3)
    x.zero_(); x.copy_(y); x.add_(1); x.mul_(y); x.sub_(y, alpha=2); x.T.copy_(x.clone().reshape(5, 3))
    x.masked_fill_(x > 0, 7); x.index_copy_(0, t.tensor([1]), x[:1].clone()); x.neg_(); x.clamp(0, 1).add(y)
    t.nn.functional.pad(x, (1, 2)); t.nn.functional.pad(x, (0, 0, 1, 0), value=2.0); t.add(x, y, alpha=2)
    t.add(x, y, out=x); x.is_contiguous(); x.T.is_contiguous(); x[1:, 2:].storage_offset(); x.T.stride(); x.numel()
    x.element_size(); x.nbytes; x.itemsize; x.dim(); x.size(); x.size(1); len(x); x.is_floating_point()
    x.dtype.is_floating_point; x.dtype.itemsize; x[1].tolist(); x[1, 2].item(); float(x[0, 1]); bool(x[0, 1])
    [a.item() for a in y]; str(x); repr(y[:2]); f"{x[1, 2]:.3f}"; t.finfo(x.dtype).max; t.finfo(x.dtype).eps
    t.finfo(x.dtype).min; t.finfo(x.dtype).tiny; t.promote_types(x.dtype, t.float16); t.result_type(x, i)
    t.promote_types(x.dtype, t.bfloat16); t.result_type(x, 2.5); str(x.dtype); t.is_tensor(x); x.device.type
""")
WHOLE = _table("""
    i + 1; i * i; i - 7; i / 2; i // 2; -i // 2; i % 3; -i % 3; i & 3; i | 4; i ^ 5; ~i; i << 2; i >> 1; i**2
    i * 0.5; i + True; i.sum(); i.sum(0); i.cumsum(1); i.prod(1); i.max(); i.min(1).indices; i.argmax(1)
    i.sort(1)[0]; i.float() * 0.1; i * x; i + y; i == 2; i > x; i.clamp(1, 3); i.abs(); i.diff(); t.diff(i, dim=0)
    i.neg(); i.bool(); i.int(); i.short() + i; i.to(t.int8); i.to(t.uint8); i.tolist(); t.iinfo(i.dtype).max
    t.bincount(i.flatten()); i.any(); (i > 1).all(0); t.arange(5); t.arange(2, 9, 3); t.arange(0, 1, 0.25)
    t.arange(5.0); t.arange(5, dtype=t.int32); t.eye(3); t.zeros(2, 3); t.zeros((2, 3)); t.ones(2, dtype=t.int64)
    t.full((2, 2), 7); t.full((2,), 1.5); t.full((2,), True); t.empty(0); t.empty_strided((2, 3), (1, 2)).zero_()
    t.linspace(0, 1, 5); t.tensor(3); t.tensor([1.5, 2]); t.tensor([[1, 2], [3, 4]]); t.tensor([True, False])
    t.tensor([t.tensor(1), t.tensor(2)]); t.tensor(2.5).item(); t.tensor([1, 2], dtype=t.bfloat16)
    t.tensor([], dtype=t.float32); t.as_tensor([1, 2]); t.as_tensor(i); t.tensor([0.1, 1e-5, 3e6])
    t.tensor([1.0, 2e9]); t.tensor([float("nan"), 1.0, -float("inf")]); t.zeros(2, 0); t.arange(2000)
    t.arange(2000.0).reshape(20, 100); t.arange(30.0) / 7; t.arange(24).reshape(2, 3, 4); t.zeros(())
    t.arange(1200).reshape(2, 3, 200); t.tensor([[0.5], [100.25]]); t.tensor([1e10, 1.0]); t.tensor(True)
    t.tensor([]); t.float; t.long; t.inf; t.pi; t.Size([1, 2]); t.device("cpu"); t.device("cpu") == i.device
    t.Size((2, 3)).numel(); t.testing.assert_close(i, i); t.testing.assert_close(2.0, 2.0)
""")
RANDOM = _table("""
    t.rand(7); t.rand(3, 5, generator=g); t.randint(10, (4, 5)); t.randint(-3, 4, (20,), generator=g)
    t.randint(0, 2**40, (5,)); t.randperm(9); t.rand(5, dtype=t.float64); t.rand(6, dtype=t.bfloat16)
    t.rand(6, dtype=t.float16); t.rand_like(x)
""")
ROUNDED = _table("""
    x.exp(); x.exp2(); x.log(); x.log2(); x.sqrt(); x.sin(); x.tanh(); x.sum(); x.sum(1); x.mean(0); x.softmax(-1)
    x @ x.T; x.norm(); x.cumsum(1); t.einsum("ab,cb->ac", x, x)
""")
NEAR = _table("""
    t.randn(3); t.randn(15); t.randn(16); t.randn(17); t.randn(3, 4, 5, generator=g); t.randn(40).half()
    t.randn_like(x); t.randn(37, dtype=t.float64); t.randn(3, generator=g) + t.randn(4, generator=g)[:3]
    t.randn(37, dtype=t.bfloat16); t.randn(37, dtype=t.float16); t.randn(5, dtype=t.float16); x.exp(); x.exp2()
    x.expm1(); x.log(); x.log2(); x.log1p(); x.sqrt(); x.sin(); x.cos(); x.tanh(); x.rsqrt(); x.sigmoid(); x**3
    x**0.5; x**-1.5; x.sum(); x.sum(1); x.sum((0, 1)); x.sum(0, keepdim=True); x.sum(dtype=t.float64); x.mean()
    x.mean(1); x.mean(-1, keepdim=True); x.var(); x.std(1); x.var(0, unbiased=False); x.prod(1); x.norm()
    x.norm(dim=1); x.cumsum(1); x.softmax(-1); x.softmax(0); t.softmax(x, 1, dtype=t.float32); x.log_softmax(-1)
    x.logsumexp(1); x.logsumexp(1, keepdim=True); t.logaddexp(x, y); x @ y; x @ x.T; x.matmul(x.mT); t.mm(x, x.T)
    x[None] @ x.T; t.einsum("ab,cb->ac", x, x); t.einsum("ab,b->a", x, y); t.isclose(x, x + 1e-9); t.allclose(x, x)
    t.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])
    t.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True, scale=0.3)
    t.nn.functional.softmax(x, dim=-1); t.nn.functional.elu(x); i.float().mean(); i.exp(); i.sqrt()
""")
REFUSED = _table("""
    x.reshape(4, 4); x.T.view(15); bool(x); len(x[0, 0]); x.item(); x[::-1]; x @ x; x[None] @ x[None]; x[5]
    x[:, 9]; x[0, 0, 0]; x + t.zeros(4); t.zeros(4) * x; x.expand(4, 5); x.sum(2); x.softmax(-3); x.transpose(0, 3)
    t.where(x > 0, x, t.zeros(4)); x + None; x @ 3; range(3)[x[0, 0]]; x.__setitem__(0, t.zeros(4))
    t.zeros(3).expand(2, 4); t.testing.assert_close(x, x + t.eye(3, 5)); t.testing.assert_close(x, y)
    t.testing.assert_close(x, x.half()); t.testing.assert_close(y, y - 0.5, atol=0.125, rtol=0.0)
    t.testing.assert_close(t.tensor(1), t.tensor(2)); t.testing.assert_close(t.tensor(1.0), t.tensor(2.0))
    t.add(None, x); t.exp(None); t.maximum(None, x)
""")
