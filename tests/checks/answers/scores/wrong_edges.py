"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# capped_gradient, hidden_number: -1000
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, cap * t, -1000.0) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, hidden_number: -3000
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, cap * t, -3000.0) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# capped_gradient, hidden_number: -1e4
def my_capped_gradient(S_ij, dP_ij, lse_i, delta_i, seen, cap):
    t = np.tanh(S_ij / cap)
    shift = np.where(lse_i == -np.inf, 0, lse_i)
    P = np.exp(np.where(seen, cap * t, -1e4) - shift[:, None])
    return P * (dP_ij - delta_i[:, None]) * (1 - t**2)


# sink, empty_by_O: empty told by O = 0
def my_sink(O, lse, sink):
    seen = (O != 0).any(axis=1)
    new = np.where(seen, np.logaddexp(lse, sink), sink)
    return O * np.exp(lse - new)[:, None], new


# sink, sink_0_ignored: sink of 0 is none
def my_sink(O, lse, sink):
    if not sink:
        return O.copy(), lse.copy()
    new = np.logaddexp(lse, sink)
    return O * np.exp(lse - new)[:, None], new


# sink, low_is_nothing: low lse is none
def my_sink(O, lse, sink):
    new = np.where(lse < -1e4, sink, np.logaddexp(lse, sink))
    return O * np.exp(lse - new)[:, None], new


# sink, O_not_scaled: named s
def my_sink(O, lse, s):
    return O, np.logaddexp(lse, s)


# sink, inexact: the factor in fp32
def my_sink(O, lse, sink):
    new = np.logaddexp(lse, sink)
    return O * np.exp(lse - new).astype(np.float32)[:, None], new


# sink, argument_changed: in place
def my_sink(O, lse, sink):
    new = np.logaddexp(lse, sink)
    O *= np.exp(lse - new)[:, None]
    return O, new


# sink, inexact: lse rows in fp32
def my_sink(O, lse, sink):
    new = np.logaddexp(lse.astype(np.float32), np.float32(sink)).astype(float)
    return O * np.exp(lse - new)[:, None], new
