"""Dynamic programmes and what belongs to their results.

The submodules that compile (``isotone.kernels.viterbi``) are imported by name, so that importing this
package stays quick.
"""

from isotone.kernels.paths import (
    BlankRule,
    EdgeRule,
    check_blank_rules,
    coupling_from_paths,
    fill_blanks,
    subframe_coupling,
)

__all__ = [
    "BlankRule",
    "EdgeRule",
    "check_blank_rules",
    "coupling_from_paths",
    "fill_blanks",
    "subframe_coupling",
]
