"""The private parts of Triton and torch that this package uses, and the versions that they were tried with.

A new version may change any of them; `tests/test_private_apis.py` reports what has changed. To try a new version,
run that test, fix what it names, and note in TRIED what does not run there.

USED lists, by feature and by module, each name and what is expected of it: its parameters, or its type if it has
none, or "set" for an attribute that is set when an object is made. Attributes of kernels and compiled kernels are
read elsewhere too.
"""

import warnings

TORCH, TRITON = "2.13.0", "3.7.1"  # the versions with which everything was tried
TRIED = {  # Triton: what does not run there
    TRITON: "",
    "3.6.0": "decode, kernels.hopper, and gradients under a window or a prefix with a 1 in it do not compile; the "
    "interpreter needs NumPy before 2.4",
}

USED = {
    "launches": {
        "triton": {
            "knobs.runtime.interpret": "bool",
            "knobs.runtime.launch_enter_hook.calls": "list",
            "knobs.runtime.launch_exit_hook.calls": "list",
            "JITFunction.arg_names": "set",
        },
        "triton.compiler": {
            "CompiledKernel.run": "property",
            "CompiledKernel.function": "set",
            "CompiledKernel.packed_metadata": "set",
            "CompiledKernel.metadata": "set",
        },
        "triton.backends.nvidia.driver": {
            "CudaLauncher.__call__": "self, gridX, gridY, gridZ, stream, function, kernel_metadata, "
            "launch_metadata, launch_enter_hook, launch_exit_hook, args",
            "CudaLauncher.launch": "set",
            "CudaLauncher.global_scratch_size": "set",
            "CudaLauncher.profile_scratch_size": "set",
            "CudaDriver.get_current_device": "set",
            "CudaDriver.get_current_stream": "set",
            "CudaUtils.get_device_properties": "set",
            "CudaUtils.launch": "set",
            "make_tensordesc_arg": "arg, metadata",
        },
        "triton.backends.amd.driver": {
            "HIPLauncher.__call__": "self, gridX, gridY, gridZ, stream, function, kernel_metadata, "
            "launch_metadata, launch_enter_hook, launch_exit_hook, args",
            "HIPUtils.get_device_properties": "set",
        },
        "triton.tools.tensor_descriptor": {"TensorDescriptor.__post_init__": "self"},
    },
    "reports on compiled kernels": {
        "triton": {
            "knobs.compilation.always_compile": "bool",
            "knobs.cache.dir": "str",
            "knobs.nvidia.dump_ptxas_log": "bool",
            "knobs.nvidia.ptxas.path": "str",
            "knobs.nvidia.nvdisasm.path": "str",
            "JITFunction.run": "self, args, grid, warmup, kwargs",
            "JITFunction.device_caches": "set",
        },
        "triton.compiler": {"CompiledKernel.asm": "set", "CompiledKernel.metadata": "set"},
        "triton.compiler.errors": {
            "CompilationError.src": "set",
            "CompilationError.node": "set",
            "CompilationError.error_message": "set",
        },
        "triton.backends.compiler": {"GPUTarget": "backend, arch, warp_size"},
        "triton.backends.nvidia.compiler": {
            "CUDABackend.make_llir": "self, src, metadata, options, capability",
            "CUDABackend.target": "set",
            "get_ptx_version_from_options": "options, arch",
        },
        "triton.backends.amd.compiler": {"HIPBackend.make_llir": "src, metadata, options"},
        "triton.runtime": {"driver.set_active": "driver"},
        "triton.runtime.cache": {"get_cache_manager": "key"},
    },
    "kernels in the interpreter": {
        "triton.runtime.interpreter": {
            "InterpretedFunction.run": "self, args, grid, warmup, kwargs",
            "_patch_lang": "fn",
            "_LangPatchScope": "",
            "_LangPatchScope.restore": "self",
            "_get_np_dtype": "tt_dtype",
            "interpreter_builder.options.sanitize_overflow": "bool",
            "InterpreterBuilder.set_grid_idx": "self, x, y, z",
            "InterpreterBuilder.set_grid_dim": "self, nx, ny, nz",
            "_patch_builtin": "pkg, builder, scope",
            "_LangPatchScope.set_attr": "self, obj, name, value",
            "TensorHandle.__init__": "self, data, dtype, attr",
            "TensorHandle.data": "set",
            "TensorHandle.dtype": "set",
            "TensorHandle.get_element_ty": "self",
            "InterpreterBuilder.create_broadcast": "self, arg, shape",
            "InterpreterBuilder.create_splat": "self, ret_ty, arg",
            "interpreter_semantic.cast": "input, dst_ty, fp_downcast_rounding",
            "interpreter_semantic.broadcast_impl_value": "lhs, rhs",
            "interpreter_semantic.binary_op_type_checking_impl": "lhs, rhs, allow_lhs_ptr, allow_rhs_ptr, "
            "arithmetic_check, div_or_mod",
        },
        "triton.language": {
            "core._tensor_member_fn": "fn",
            "core.is_builtin": "fn",
            "load.__wrapped__": "pointer, mask, other, boundary_check, padding_option, cache_modifier, "
            "eviction_policy, volatile, _semantic",
            "block_type.__init__": "self, element_ty, shape",
            "tensor.__init__": "self, handle, type",
        },
    },
    "checks of kernels": {
        "triton": {"JITFunction.fn": "set"},
        "triton.runtime.interpreter": {
            "InterpretedFunction.fn": "set",
            "InterpretedFunction.arg_names": "set",
            "InterpretedFunction.run": "self, args, grid, warmup, kwargs",
            "GridExecutor.fn": "set",
            "GridExecutor.arg_names": "set",
            "GridExecutor.__call__": "self, args_dev, kwargs",
            "GridExecutor._init_args_hst": "self, args_dev, kwargs",
            "_get_np_dtype": "tt_dtype",
            "TensorHandle.__init__": "self, data, dtype, attr",
            "TensorHandle.data": "set",
            "TensorHandle.get_element_ty": "self",
            "InterpreterBuilder.create_load": "self, ptr, _0, _1, is_volatile",
            "InterpreterBuilder.create_masked_load": "self, ptrs, mask, other, cache_modifier, eviction_policy, "
            "is_volatile",
            "InterpreterBuilder.create_masked_store": "self, ptrs, value, mask, cache_modifier, eviction_policy",
            "InterpreterBuilder.create_atomic_rmw": "self, rmwOp, ptr, val, mask, sem, scope",
            "InterpreterBuilder.create_atomic_cas": "self, ptr, cmp, val, sem, scope",
            "InterpreterBuilder.create_dot": "self, a, b, d, input_precision, max_num_imprecise_acc",
            "InterpreterBuilder.create_select": "self, cond, lhs, rhs",
            "_patch_lang_tensor": "tensor, scope",
            "_LangPatchScope.set_attr": "self, obj, name, value",
        },
        "triton.runtime.autotuner": {"Autotuner.do_bench": "cached_property"},
        "triton.language": {"load.__triton_builtin__": "bool"},
    },
    "loops of kernels": {
        "triton.runtime.interpreter": {
            "FunctionRewriter.ast_transformer": "ASTTransformer",
            "InterpretedFunction.rewritten_fn": "dict",
            "interpreter_semantic": "TritonSemantic",
            "TensorHandle.data": "set",
        },
    },
    "kernels.hopper": {
        "triton.experimental.gluon._runtime": {
            "GluonJITFunction.fn": "set",
            "GluonJITFunction.arg_names": "set",
        },
        "triton.experimental.gluon.nvidia.hopper": {"TensorDescriptor.__post_init__": "self"},
        "triton.experimental.gluon.language._core": {"builtin": "fn"},
        "triton.experimental.gluon.language._semantic": {
            "GluonSemantic._convert_to_ir_values": "self, list_like, require_i64"
        },
        "triton._C.libtriton.gluon_ir": {"GluonOpBuilder.create_async_tma_reduce": "instancemethod"},
        "triton._C.libtriton.ir": {"DESCRIPTOR_REDUCE_KIND.ADD": "DESCRIPTOR_REDUCE_KIND"},
    },
}
USED_OF_TORCH = {
    "torch": {"Tensor._version": "getset_descriptor"},
    "torch._C": {
        "_are_functorch_transforms_active": "builtin_function_or_method",
        "_len_torch_dispatch_stack": "builtin_function_or_method",
        "_FunctionBase.apply": "builtin_function_or_method",
    },
    "torch.autograd": {"Function.apply": "args, kwargs"},
    "torch.autograd.forward_ad": {"_current_level": "int"},
    "torch.distributed._symmetric_memory": {"empty": "size, dtype, device", "rendezvous": "tensor, group"},
    "torch.distributed.tensor.experimental._attention": {"set_rotate_method": "rotate_method"},
    "torch._C._distributed_c10d": {
        "_SymmetricMemory.get_buffer": "instancemethod",
        "_SymmetricMemory.put_signal": "instancemethod",
        "_SymmetricMemory.wait_signal": "instancemethod",
    },
    "torch._functorch.config": {"donated_buffer": "bool"},
    "torch._dynamo.config": {"recompile_limit": "int"},
    "torch._dynamo.utils": {"counters": "defaultdict"},
}


def warn_of_version(found: str) -> None:
    """Warn if this version of Triton is not TRITON: name in one sentence what may not work."""
    found = found.partition("+")[0]
    missing = TRIED.get(found, f"these use its insides and may not work: {', '.join(USED)}")
    if missing:
        warnings.warn(f"The kernels were tried with Triton {TRITON}, and this is {found}: {missing}", stacklevel=3)
