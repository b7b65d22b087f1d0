"""Widgets that play what the algorithms compute.

Each widget is one class in its own folder. Python computes what is shown and sends it once; JavaScript plays it
without asking again. A folder NAME contains

- NAME.py: the class, with its traits: a Widget, or a Lab (lab.py) where Python answers a change of settings;
- choices.py: the settings, the accepted values of each, and the stops of their sliders; if few, in NAME.py;
- files named after what they compute, such as scan.py or tile_costs.py, with nothing about how it looks;
- words.py: the sentences that the page shows;
- figure.py: the picture for viewers where nothing can play;
- NAME.js, NAME.css and a .js file for each part of the page, joined with shared/; a look that several widgets
  share is a rule of shared/grouped_rules.css.

FlashPlayer and ComparePlayers play the same recorded steps and share a folder, whose views of HBM and SRAM
BackwardPlayer and TripsPlayer also use. CompilerLab, which needs Triton's compiler for every answer, is imported
separately:
`from flashlib.widgets.compiler_lab import CompilerLab`.
"""

from flashlib.widgets.backward_player import BackwardPlayer
from flashlib.widgets.eight_bits_lab import EightBitsLab
from flashlib.widgets.flash_player import ComparePlayers, FlashPlayer
from flashlib.widgets.mask_lab import MaskLab
from flashlib.widgets.merge_tree import MergeTree
from flashlib.widgets.online_softmax_lab import OnlineSoftmaxLab
from flashlib.widgets.overflow_lab import OverflowLab
from flashlib.widgets.pages_lab import PagesLab
from flashlib.widgets.pipeline_player import PipelinePlayer
from flashlib.widgets.programs_lab import ProgramsLab
from flashlib.widgets.ring_player import RingPlayer
from flashlib.widgets.serve_lab import ServeLab
from flashlib.widgets.split_lab import SplitLab
from flashlib.widgets.tiling_lab import TilingLab
from flashlib.widgets.trips_player import TripsPlayer

__all__ = [
    "BackwardPlayer",
    "ComparePlayers",
    "EightBitsLab",
    "FlashPlayer",
    "MaskLab",
    "MergeTree",
    "OnlineSoftmaxLab",
    "OverflowLab",
    "PagesLab",
    "PipelinePlayer",
    "ProgramsLab",
    "RingPlayer",
    "ServeLab",
    "SplitLab",
    "TilingLab",
    "TripsPlayer",
]
