"""The sizes, bandwidth and peaks of some GPUs, each with its source.

Peaks are dense (no sparsity), of the tensor cores, at the boost clock: what a datasheet promises, not what a
kernel reaches. A datasheet that counts sparsity, as those of the H100 and H200 do, shows twice these numbers.

>>> GPUS["A100"].sram // KB, round(GPUS["A100"].ridge)
(164, 201)
"""

from dataclasses import dataclass, field
from typing import NamedTuple

KB, MB, GB = 1024, 1024**2, 1024**3  # memory is counted in powers of two, bandwidth in powers of ten


class Latency(NamedTuple):
    """Clock cycles until an answer arrives, for one thread on an idle GPU, so the least possible."""

    sram: float
    l2: float
    hbm: float


@dataclass(frozen=True)
class GPU:
    """One GPU. Sizes are in bytes, bandwidth in bytes per second, the clock in Hz, peaks in FLOP/s.

    name        its key in `GPUS`
    sms         streaming multiprocessors switched on; AMD calls them compute units
    sram        shared memory of one multiprocessor, as much as can be set; the rest of that memory is L1 cache.
                FlashAttention (2022), section 2.1, says 192 KB for the A100: both together. AMD's LDS has no
                part in the L1 cache
    block_sram  how much of it one thread block can have: from the A100 on, 1 KB per block is the system's
    registers   of one multiprocessor
    l2          cache that all multiprocessors share
    memory      the large memory, HBM or GDDR: its size, and `kind`, its name
    bandwidth   of the large memory
    fp16, bf16  peak of a matrix product that adds up in fp32; bf16 is None where tensor cores lack it
    sources     for each of these, and for link, clock and latency, the document and the place in it
    link        to other GPUs of its host, all its links together: each way, bytes per second; None if it has no
                such link, or the number is not known here. Datasheets give the sum of both ways
    clock       the highest clock of the multiprocessors, or None
    latency     Latency as measured, or None
    maker       "NVIDIA" or "AMD"
    """

    name: str
    sms: int
    sram: int
    block_sram: int
    registers: int
    l2: int
    memory: int
    kind: str
    bandwidth: float
    fp16: float
    bf16: float | None
    sources: dict[str, str] = field(repr=False, compare=False)
    link: float | None = None
    clock: float | None = None
    latency: Latency | None = None
    maker: str = "NVIDIA"

    @property
    def all_sram(self) -> int:
        """Bytes of shared memory of all multiprocessors."""
        return self.sms * self.sram

    @property
    def sram_bandwidth(self) -> float | None:
        """Bytes per second of all shared memory at the highest clock, or None if that is not known."""
        return self.clock and self.sms * SRAM_BYTES * self.clock

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which the fp16 peak, not the bandwidth, is the limit."""
        return self.fp16 / self.bandwidth


# Bytes per clock that the shared memory of one multiprocessor reads or writes. CUDA C++ Programming Guide, section
# "Shared Memory" of compute capability 5.x, which later ones refer to: 32 banks, each of 32 bits per clock cycle.
# AMD's LDS is the same: "AMD CDNA 3 Architecture" (white paper), 128 bytes per clock.
SRAM_BYTES = 128

# The guide gives shared memory by compute capability: T4 7.5, A100 8.0, RTX 4090 8.9, H100 and H200 9.0.
GUIDE = 'CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", column '
UNIFIED = 'section "Unified Shared Memory/L1/Texture Cache"'
TURING = f"{GUIDE}7.5; Turing Tuning Guide, {UNIFIED}"
AMPERE = f"{GUIDE}8.0; NVIDIA Ampere GPU Architecture Tuning Guide, {UNIFIED}"
ADA = f'{GUIDE}8.9; NVIDIA Ada GPU Architecture Tuning Guide, section "Occupancy"'
HOPPER = f"{GUIDE}9.0; NVIDIA Hopper Tuning Guide, {UNIFIED}"

REGISTERS = (
    'CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability": '
    "64 K 32-bit registers per SM, in every column from 5.0 on"
)

# This table also has a column for the A100, the one with 40 GB.
H100_PAPER = (
    "NVIDIA H100 Tensor Core GPU Architecture (whitepaper), "
    'Table 3 "Comparison of NVIDIA A100 and H100 Data Center GPUs"'
)
ADA_PAPER = "NVIDIA Ada GPU Architecture (whitepaper), Appendix A, Table 2, column GeForce RTX 4090"
T4_PAGE = "nvidia.com/en-us/data-center/tesla-t4, specifications"
H200_SHEET = "NVIDIA H200 Tensor Core GPU datasheet, specifications, column H200 SXM"

# Numbers that no datasheet has come from the GPU itself: torch.cuda.get_device_properties(0).
ASKED = "the GPU's own answer (cudaDeviceProp, printed by deviceQuery): "

LATENCIES = (
    "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (arXiv 2402.13499), Table IV"
)

ROCM = 'ROCm documentation, "GPU hardware specifications", table of AMD Instinct GPUs, row '
MI300 = 'ROCm documentation, "AMD Instinct MI300 series microarchitecture"'
MI355X_SHEET = "AMD Instinct MI355X GPU data sheet"
LLVM = "LLVM, the compiler: llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp, "
INFINITY = "the Infinity Cache, there L3; of the L2 caches, 4 MB, each die of eight has its own"

_ALL = (
    GPU(
        name="T4",
        sms=40,
        sram=64 * KB,
        block_sram=64 * KB,
        registers=256 * KB,
        l2=4 * MB,
        memory=16 * GB,
        kind="GDDR6",
        bandwidth=320e9,
        fp16=65e12,
        bf16=None,
        sources={
            "sms": f"{ASKED}multiProcessorCount 40",
            "sram": TURING,
            "block_sram": TURING,
            "registers": REGISTERS,
            "l2": f"{ASKED}l2CacheSize 4194304",
            "memory": f"{T4_PAGE}: 16 GB GDDR6",
            "bandwidth": f"{T4_PAGE}: 320+ GB/s (256 bits at 10 Gbit/s are 320); the datasheet has 300",
            "fp16": f"{T4_PAGE}: mixed precision (FP16/FP32) 65 TFLOPS",
            "bf16": "CUDA C++ Programming Guide, warp matrix functions: bf16 needs compute capability 8.0",
        },
    ),
    GPU(
        name="A100",  # SXM4, 40 GB, 1.5 TB/s as in FlashAttention (2022); FlashAttention-2 has 80 GB, 2039 GB/s
        sms=108,
        sram=164 * KB,
        block_sram=163 * KB,
        registers=256 * KB,
        l2=40 * MB,
        memory=40 * GB,
        kind="HBM2",
        bandwidth=1555e9,
        fp16=312e12,
        bf16=312e12,
        sources={
            "sms": H100_PAPER,
            "sram": AMPERE,
            "block_sram": AMPERE,
            "registers": REGISTERS,
            "l2": H100_PAPER,
            "memory": f"{H100_PAPER}: 40 GB",
            "bandwidth": f"{H100_PAPER}: 1555 GB/sec",
            "fp16": f"{H100_PAPER}, peak with FP32 accumulate: 312/624, the second with sparsity",
            "bf16": f"{H100_PAPER}, peak with FP32 accumulate: 312/624, the second with sparsity",
            "link": "NVIDIA A100 Tensor Core GPU datasheet, interconnect of A100 SXM: NVLink 600 GB/s, both ways",
            "clock": f"{H100_PAPER}: GPU boost clock 1410 MHz",
            "latency": f"{LATENCIES}, measured on the PCIe card with 40 GB",
        },
        link=300e9,
        clock=1410e6,
        latency=Latency(29.0, 261.5, 466.3),
    ),
    GPU(
        name="H100",  # SXM5, 80 GB of HBM3; the PCIe card is slower, with 114 multiprocessors
        sms=132,
        sram=228 * KB,
        block_sram=227 * KB,
        registers=256 * KB,
        l2=50 * MB,
        memory=80 * GB,
        kind="HBM3",
        bandwidth=3.35e12,
        fp16=989.4e12,
        bf16=989.4e12,
        sources={
            "sms": H100_PAPER,
            "sram": HOPPER,
            "block_sram": HOPPER,
            "registers": REGISTERS,
            "l2": H100_PAPER,
            "memory": "NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM: 80GB",
            "bandwidth": "NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM: 3.35 TB/s",
            "fp16": f"{H100_PAPER}, peak with FP32 accumulate: 989.4/1978.9, the second with sparsity",
            "bf16": f"{H100_PAPER}, peak with FP32 accumulate: 989.4/1978.9, the second with sparsity",
            "link": "NVIDIA H100 Tensor Core GPU datasheet, column H100 SXM: NVLink 900GB/s, both ways",
            "latency": f"{LATENCIES}, measured on a Hopper PCIe card: the same chip, slower HBM and lower clocks",
        },
        link=450e9,
        latency=Latency(29.0, 263.0, 478.8),
    ),
    GPU(
        name="H200",  # SXM, 141 GB of HBM3e: the H100's multiprocessors, more memory
        sms=132,
        sram=228 * KB,
        block_sram=227 * KB,
        registers=256 * KB,
        # Not the H100's 50 MB: the whole chip has 60 and six stacks of HBM, of which the H100 uses five.
        l2=60 * MB,
        memory=141 * GB,
        kind="HBM3e",
        bandwidth=4.8e12,
        fp16=989.4e12,
        bf16=989.4e12,
        sources={
            "sms": f"{ASKED}multiProcessorCount 132",
            "sram": HOPPER,
            "block_sram": HOPPER,
            "registers": REGISTERS,
            "l2": f"{ASKED}l2CacheSize 62914560 (the datasheet has none)",
            "memory": f"{H200_SHEET}: 141GB (the GPU says 143771 MiB)",
            "bandwidth": f"{H200_SHEET}: 4.8TB/s",
            "fp16": f"{H200_SHEET}: 1,979 TFLOPS with sparsity, the H100's 1978.9 rounded; dense is half",
            "bf16": f"{H200_SHEET}: 1,979 TFLOPS with sparsity, the H100's 1978.9 rounded; dense is half",
            "link": f"{H200_SHEET}: NVLink 900GB/s, both ways",
            "clock": f"{ASKED}clockRate 1980000 (in kHz)",
        },
        link=450e9,
        clock=1980e6,
    ),
    GPU(
        name="RTX 4090",
        sms=128,
        sram=100 * KB,
        block_sram=99 * KB,
        registers=256 * KB,
        l2=72 * MB,
        memory=24 * GB,
        kind="GDDR6X",
        bandwidth=1008e9,
        fp16=165.2e12,  # the 330 also quoted is for sums in fp16
        bf16=165.2e12,
        sources={
            "sms": ADA_PAPER,
            "sram": ADA,
            "block_sram": ADA,
            "registers": REGISTERS,
            "l2": f"{ADA_PAPER}: 73728 KB",
            "memory": f"{ADA_PAPER}: 24 GB GDDR6X",
            "bandwidth": f"{ADA_PAPER}: 1008 GB/sec",
            "fp16": f"{ADA_PAPER}, peak with FP32 accumulate: 165.2/330.4, the second with sparsity",
            "bf16": f"{ADA_PAPER}, peak with FP32 accumulate: 165.2/330.4, the second with sparsity",
            "clock": f"{ADA_PAPER}: GPU boost clock 2520 MHz",
            "latency": LATENCIES,
        },
        clock=2520e6,
        latency=Latency(30.1, 273.0, 541.5),
    ),
    GPU(
        name="MI300X",
        sms=304,
        sram=64 * KB,
        block_sram=64 * KB,
        registers=512 * KB,
        l2=256 * MB,
        memory=192 * GB,
        kind="HBM3",
        bandwidth=5.3e12,
        fp16=1307.4e12,
        bf16=1307.4e12,
        sources={
            "sms": f"{ROCM}MI300X: 304 (38 per XCD)",
            "sram": f"{ROCM}MI300X: LDS 64 KiB",
            "block_sram": f"{LLVM}getAddressableLocalMemorySize: 65536",
            "registers": f"{ROCM}MI300X: VGPR file 512 KiB",
            "l2": f"{ROCM}MI300X: 256 MiB, {INFINITY}",
            "memory": f"{ROCM}MI300X: 192 GiB",
            "bandwidth": f"{MI300}: 5.3 TB per second",
            "fp16": f"{MI300}, table of peaks: matrix FP16 1307.4 TFLOPS",
            "bf16": f"{MI300}, table of peaks: matrix BF16 1307.4 TFLOPS",
            "clock": f"{MI300}, table of peaks: 1307.4 TFLOPS are 2048 a clock of each of 304 units",
        },
        clock=2100e6,
        maker="AMD",
    ),
    GPU(
        name="MI355X",
        sms=256,
        sram=160 * KB,
        block_sram=160 * KB,
        registers=512 * KB,
        l2=256 * MB,
        memory=288 * GB,
        kind="HBM3E",
        bandwidth=8e12,
        fp16=2516.6e12,
        bf16=2516.6e12,
        sources={
            "sms": f"{ROCM}MI355X: 256 (32 per XCD)",
            "sram": f"{ROCM}MI355X: LDS 160 KiB",
            "block_sram": f"{LLVM}getAddressableLocalMemorySize: 163840",
            "registers": f"{ROCM}MI355X: VGPR file 512 KiB",
            "l2": f"{ROCM}MI355X: 256 MiB, {INFINITY}",
            "memory": f"{ROCM}MI355X: 288 GiB",
            "bandwidth": f"{MI355X_SHEET}: peak memory bandwidth 8 TB/s",
            "fp16": f"{MI355X_SHEET}: half precision (FP16), matrix, 2.5 PFLOPS: 256 x 4096 a clock of 2.4 GHz",
            "bf16": f"{MI355X_SHEET}: bfloat16, matrix, 2.5 PFLOPS: 256 x 4096 a clock of 2.4 GHz",
            "clock": f"{MI355X_SHEET}: peak engine clock 2400 MHz",
        },
        clock=2400e6,
        maker="AMD",
    ),
)

GPUS = {gpu.name: gpu for gpu in _ALL}
